"""Verdicts on disk, so that a run that was interrupted goes on where it was."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from mutation.fault import Fault
from mutation.trial import CAUGHT, INVALID, Verdict


class Results:
    """Verdicts by what is wrong, wherever the code has moved; one holds as long as the fault,
    the file it is put in and the tests it names stay as they are.

    A fault that could not be judged is always judged again.
    """

    def __init__(self, root: Path, file: Path) -> None:
        self.root = root
        self.file = file
        self.kept = self._read()

    def known(self, fault: Fault) -> Verdict | None:
        found = self.kept.get(fault.what)
        if found is None or found["result"] == INVALID or found["of"] != self._fingerprint(fault):
            return None
        return Verdict(found["result"], found["by"], found["sure"])

    def likely(self, fault: Fault) -> str:
        """The test that noticed this fault in an earlier run, also where the verdict no longer holds."""
        found = self.kept.get(fault.what, {})
        return found["by"] if found.get("result") == CAUGHT else ""

    def keep(self, fault: Fault, verdict: Verdict) -> None:
        # another run may have added its own
        self.kept = self._read()
        self.kept[fault.what] = asdict(verdict) | {"of": self._fingerprint(fault)}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        written = self.file.with_suffix(".new")
        written.write_text(json.dumps(self.kept, indent=1, ensure_ascii=False))
        written.replace(self.file)

    def _read(self) -> dict[str, dict[str, Any]]:
        return json.loads(self.file.read_text()) if self.file.exists() else {}

    def _fingerprint(self, fault: Fault) -> str:
        seen = sha256(repr(fault).encode())
        for name in [fault.file, *shlex.split(fault.tests)]:
            path = self.root / name.split("::")[0]
            files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
            for file in files:
                if file.is_file():
                    seen.update(file.read_bytes())
        return seen.hexdigest()[:16]
