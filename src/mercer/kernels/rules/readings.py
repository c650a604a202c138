"""A kernel on what a named map makes of the rows: `RBF().of(Date("years"))`."""

from __future__ import annotations

from mercer.arrays import Rows
from mercer.errors import OpenParameterError
from mercer.kernels.base import Kernel
from mercer.kernels.leaves.leaf import expression
from mercer.kernels.rules.combined import ViewOfAnything
from mercer.kernels.things.reading import Reading
from mercer.kernels.things.sparse_map import SparseMap
from mercer.params import given
from mercer.typing import Array


@expression
class Read(ViewOfAnything):
    """k(ψ(x), ψ(z)) for a map ψ with a name."""

    kernel: Kernel = given()
    reading: Reading = given()

    def leaves_open(self) -> bool:
        return self.reading.is_open

    def resolved_on(self, rows: Rows, weight: Array | None) -> Kernel:
        reading = self.reading.resolved_on(rows, weight)
        closed = Read(self.kernel, reading)
        return Read(self.kernel.resolved_on(closed.mapped(rows), weight), reading)

    def mapped(self, x: Rows) -> Rows:
        """The numbers that the kernel inside sees."""
        if self.reading.is_open:
            raise OpenParameterError(
                f"{self} has to see data before it has values: {self.reading} is open. Close it by your "
                "rows, k.resolved(X), or hand it to a machine, which closes it when it is fitted."
            )
        return x.remembered(self.reading, lambda: self.reading.read(x))

    def compare_columns(self, x: Rows, z: Rows) -> None:
        """The reading decides what it takes; what it makes of both samples is compared."""
        self.kernel.compare_columns(self.mapped(x), self.mapped(z))

    def sparse_map(self, x: Rows) -> SparseMap | None:
        inner = self.kernel.sparse_map(self.mapped(x))
        return None if inner is None else inner.seen_through(self.mapped, "")

    def text(self) -> str:
        return f"{self.kernel.text_inside(4)}.of({self.reading.text()})"

    def latex(self) -> str:
        name = self.reading.latex()
        return rf"\left[{self.kernel.latex()}\right]_{{x\to{name}(x),\,z\to{name}(z)}}"
