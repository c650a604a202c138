"""What `validity()` answers: a proof, a proof from what was declared, a witness, or an honest "not known".

A `Proved` rests on rules alone. Where its proof takes something from the user's word, the answer is a
`ProvedAsDeclared` instead. A `Refuted` rests on an inequality in interval arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from mercer.arrays import Rows
from mercer.kernels.base import Kernel
from mercer.kernels.proofs.enclosure import difference, quadratic_form
from mercer.kernels.proofs.intervals import Interval
from mercer.kernels.proofs.proof import Proof
from mercer.kernels.proofs.witness import Points
from mercer.notebook import as_printed, paragraph
from mercer.typing import Array


class Printer(Protocol):
    """What IPython hands to `_repr_pretty_`."""

    def text(self, text: str) -> None: ...


class Validity:
    """The common face of the four answers; `status` is "proved", "declared", "refuted" or "undecided"."""

    status: str = ""
    kernel: Kernel

    def _repr_pretty_(self, printer: Printer, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return as_printed(str(self))


@dataclass(frozen=True, repr=False)
class _WithProof(Validity):
    kernel: Kernel
    proof: Proof

    given: ClassVar[str] = ""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the proof takes from the user's word (a declared Taylor series, say)."""
        return self.proof.declared()

    def __str__(self) -> str:
        return "\n".join([f"{self.kernel} is a kernel{self.given}.", "Proof.", *self.proof.lines(), "∎"])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.kernel} by {self.proof.rule}>"

    def _repr_html_(self) -> str:
        return paragraph(f"{self.kernel} is a kernel{self.given}.") + self.proof.html()

    def latex(self) -> str:
        return "\\begin{enumerate}\n" + self.proof.latex() + "\n\\end{enumerate}"


@dataclass(frozen=True, repr=False)
class Proved(_WithProof):
    """A kernel by the rules; `print` shows the proof, `latex()` sets it."""

    status = "proved"


@dataclass(frozen=True, repr=False)
class ProvedAsDeclared(_WithProof):
    """A kernel if what the user declared is true; `assumptions` lists it.

    Not a `Proved`: nobody else has checked it.
    """

    given: ClassVar[str] = " (given what you declared)"
    status = "declared"


@dataclass(frozen=True, repr=False, eq=False)
class Refuted(Validity):
    """Not a kernel: points `X` and a vector `q` with `value` = qᵀKq < 0, even with every rounding against it.

    If `asymmetric`, the two points have k(x, z) ≠ k(z, x) instead, and `value` is the gap. `remark` is what
    spoke against it before any point was sought, such as a frequency at which a declared density is negative.
    """

    kernel: Kernel
    X: Points
    q: Array
    value: float
    asymmetric: bool = False
    searched: tuple[str, ...] = field(default=())
    names: list[str] | None = None
    remark: str = ""
    status = "refuted"

    def gram(self) -> Array:
        """The Gram matrix of the witness, computed anew."""
        return np.asarray(self.kernel(Rows(self.X, names=self.names)), dtype=float)

    def bounds(self) -> tuple[float, float]:
        """Certain bounds of qᵀKq (of the gap, if asymmetric), computed anew in interval arithmetic."""
        return self._enclosed().outward()

    def check(self) -> bool:
        """Recompute the witness from the kernel and the points, and see that rounding does not decide it."""
        found = self._enclosed()
        if self.asymmetric:
            return found.low > 0 or found.high < 0
        return found.high < 0

    def _enclosed(self) -> Interval:
        rows = Rows(self.X, names=self.names)
        if self.asymmetric:
            return difference(self.kernel, rows)
        return quadratic_form(self.kernel, rows, self.q)

    def __str__(self) -> str:
        head = "\n".join(filter(None, (f"{self.kernel} is not a kernel.", self.remark)))
        K = self.gram()
        if self.asymmetric:
            return (
                f"{head}\nIt is not symmetric:\n{_points(self.X)}\n"
                f"k(x₁, x₂) = {K[0, 1]:.6g}, but k(x₂, x₁) = {K[1, 0]:.6g}."
            )
        if len(K) == 1:
            return f"{head}\nOne point shows it:\n{_points(self.X)}\nk(x₁, x₁) = {K[0, 0]:.6g} < 0."
        terms = ", ".join(f"{v:.6g}" for v in self.q)
        return (
            f"{head}\n{len(K)} points show it:\n{_points(self.X)}\n"
            f"K =\n{_matrix(K)}\nq = ({terms})\nqᵀKq = {self.value:.6g} < 0."
        )

    def __repr__(self) -> str:
        if self.asymmetric:
            return f"<Refuted: {self.kernel} is not symmetric, |k(x, z) - k(z, x)| = {self.value:.3g}>"
        points = "1 point" if len(self.q) == 1 else f"{len(self.q)} points"
        return f"<Refuted: {self.kernel} by {points}, qᵀKq = {self.value:.3g}>"

    def latex(self) -> str:
        if self.asymmetric:
            return r"k(x_1,x_2)\neq k(x_2,x_1)"
        K = self.gram()
        rows = r" \\ ".join(" & ".join(f"{v:.4g}" for v in row) for row in K)
        q = r" \\ ".join(f"{v:.4g}" for v in self.q)
        return (
            rf"q^\top K q = {self.value:.4g} < 0,\quad K=\begin{{pmatrix}}{rows}\end{{pmatrix}},"
            rf"\quad q=\begin{{pmatrix}}{q}\end{{pmatrix}}"
        )


@dataclass(frozen=True, repr=False)
class Undecided(Validity):
    """Neither proved nor refuted; `tried` lists the search, `lowest` the smallest relative qᵀKq it met."""

    kernel: Kernel
    tried: tuple[str, ...]
    lowest: float
    missing: str = ""
    status = "undecided"

    def __str__(self) -> str:
        lines = [f"Whether {self.kernel} is a kernel is not known."]
        if self.missing:
            lines.append(self.missing)
        lines += ["Tried, without finding points at which it fails:", *(f"  - {t}" for t in self.tried)]
        if np.isfinite(self.lowest):
            lines.append(
                f"Smallest qᵀKq relative to |q|ᵀ|K||q|: {self.lowest:.3g} (not beyond what rounding "
                "explains)."
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Undecided: {self.kernel}, {len(self.tried)} searches>"


def _points(X: Points) -> str:
    lines = []
    for i, x in enumerate(X, 1):
        shown = (
            "(" + ", ".join(f"{v:.6g}" for v in np.ravel(x)) + ")" if isinstance(x, np.ndarray) else repr(x)
        )
        lines.append(f"  x{_subscript(i)} = {shown}")
    return "\n".join(lines)


def _matrix(K: Array) -> str:
    cells = [[f"{v:.6g}" for v in row] for row in K]
    width = max(len(c) for row in cells for c in row)
    return "\n".join("  " + "  ".join(c.rjust(width) for c in row) for row in cells)


def _subscript(i: int) -> str:
    return "".join("₀₁₂₃₄₅₆₇₈₉"[int(c)] for c in str(i))
