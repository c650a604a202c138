"""What an export made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mercer.memory import say_bytes

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True, eq=False)
class Exported:
    """What `mercer.export_onnx` made: the outputs by name, how many rows are inside, and the graph itself.

    `model` is an `onnx.ModelProto`; `path` is None where no file was asked for.
    """

    machine: str
    outputs: dict[str, str]
    rows: int
    bytes: int
    model: onnx.ModelProto
    path: Path | None = None

    def __str__(self) -> str:
        where = "in memory" if self.path is None else str(self.path)
        lines = [f"{where}: {self.machine}, {say_bytes(self.bytes)}"]
        lines += [f"  {name}: {meaning}" for name, meaning in self.outputs.items()]
        if self.rows:
            lines.append(f"{self.rows} rows of the training data, or landmarks, are inside.")
        return "\n".join(lines)
