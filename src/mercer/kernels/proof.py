"""What `validity()` answers: a proof, a witness, or an honest "not known".

A proof is a tree. Each node names the kernel it speaks of, the rule that makes it one, and the proofs of its parts;
the leaves of the tree are facts about named kernels. Nothing here samples: a `Proved` rests on rules alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.arrays import Rows

if TYPE_CHECKING:
    from mercer.kernels.base import Kernel


@dataclass(frozen=True)
class Fact:
    """A rule or theorem by its name, and what it says here."""

    rule: str
    reason: str


@dataclass(frozen=True)
class Proof:
    """One node of a proof: `kernel` is a kernel by `fact`, given the `premises`."""

    kernel: Kernel
    fact: Fact
    premises: tuple[Proof, ...] = ()
    conditions: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()

    @property
    def rule(self) -> str:
        return self.fact.rule

    def rules(self) -> set[str]:
        """The names of all rules used in the tree."""
        return {node.rule for node in self.walk()}

    def walk(self) -> Iterator[Proof]:
        yield self
        for premise in self.premises:
            yield from premise.walk()

    def lines(self, number: str = "1", depth: int = 0) -> Iterator[str]:
        """The proof as indented, numbered sentences."""
        pad = "   " * depth
        yield f"{pad}{number}. {self.kernel}  [{self.rule}]"
        yield f"{pad}   {_sentence(self.fact.reason)}"
        if self.conditions:
            yield f"{pad}   Here {'; '.join(self.conditions)}."
        for assumption in self.assumptions:
            yield f"{pad}   Taken from you: {assumption}."
        for i, premise in enumerate(self.premises, 1):
            yield from premise.lines(f"{number}.{i}", depth + 1)

    def latex(self) -> str:
        """The proof as nested LaTeX enumerations."""
        body = rf"\item $k(x,z)={self.kernel.latex()}$: \textbf{{{_escape(self.rule)}}}. {_escape(_sentence(self.fact.reason))}"
        if self.conditions:
            body += f" Here {_escape('; '.join(self.conditions))}."
        for assumption in self.assumptions:
            body += f" Taken as given: {_escape(assumption)}."
        if self.premises:
            body += (
                "\n\\begin{enumerate}\n" + "\n".join(p.latex() for p in self.premises) + "\n\\end{enumerate}"
            )
        return body


class Validity:
    """The common face of `Proved`, `Refuted` and `Undecided`; `status` is one of those words in lower case."""

    status: str = ""
    kernel: Kernel

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


@dataclass(frozen=True, repr=False)
class Proved(Validity):
    """A kernel by the rules; `print` shows the proof, `latex()` sets it."""

    kernel: Kernel
    proof: Proof
    status = "proved"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the proof takes from the user's word (declared Taylor series, say); empty for named kernels."""
        return tuple(a for node in self.proof.walk() for a in node.assumptions)

    def __str__(self) -> str:
        given = " (given what you declared)" if self.assumptions else ""
        return "\n".join([f"{self.kernel} is a kernel{given}.", "Proof.", *self.proof.lines(), "∎"])

    def __repr__(self) -> str:
        return f"<Proved: {self.kernel} by {self.proof.rule}>"

    def latex(self) -> str:
        return "\\begin{enumerate}\n" + self.proof.latex() + "\n\\end{enumerate}"


@dataclass(frozen=True, repr=False, eq=False)
class Refuted(Validity):
    """Not a kernel: points `X` and a vector `q` with `value` = qᵀKq < 0.

    If `asymmetric`, the two points have k(x, z) ≠ k(z, x) instead, and `value` is the gap.
    """

    kernel: Kernel
    X: Any
    q: np.ndarray
    value: float
    asymmetric: bool = False
    searched: tuple[str, ...] = field(default=())
    names: list[str] | None = None
    status = "refuted"

    def gram(self) -> np.ndarray:
        """The Gram matrix of the witness, computed anew."""
        return np.asarray(self.kernel(Rows(self.X, names=self.names)), dtype=float)

    def check(self) -> bool:
        """Recompute qᵀKq from the kernel and the points, and see that it is negative beyond rounding."""
        K = self.gram()
        if self.asymmetric:
            return bool(abs(K[0, 1] - K[1, 0]) > 1e-12 * np.abs(K).max())
        return is_negative(K, self.q)

    def __str__(self) -> str:
        head = f"{self.kernel} is not a kernel."
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
            lines.append(f"Smallest qᵀKq relative to |q|ᵀ|K||q|: {self.lowest:.3g} (rounding explains it).")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Undecided: {self.kernel}, {len(self.tried)} searches>"


# qᵀKq counts as negative when it is below this share of |q|ᵀ|K||q|, far above rounding.
NEGATIVE = 1e-11


def relative_form(K: np.ndarray, q: np.ndarray) -> float:
    """qᵀKq / |q|ᵀ|K||q|: the quadratic form on a scale where rounding is about 1e-16."""
    size = float(np.abs(q) @ np.abs(K) @ np.abs(q))
    return float(q @ K @ q) / size if size > 0 else 0.0


def is_negative(K: np.ndarray, q: np.ndarray) -> bool:
    return bool(np.all(np.isfinite(K))) and relative_form(K, q) < -NEGATIVE


def _sentence(text: str) -> str:
    word = text[:2].isalpha() and text[:2].isascii()  # a formula keeps its small letter
    return (text[:1].upper() + text[1:] if word else text) + ("" if text.endswith(".") else ".")


def _points(X: Any) -> str:
    lines = []
    for i, x in enumerate(X, 1):
        shown = (
            "(" + ", ".join(f"{v:.6g}" for v in np.ravel(x)) + ")" if isinstance(x, np.ndarray) else repr(x)
        )
        lines.append(f"  x{_subscript(i)} = {shown}")
    return "\n".join(lines)


def _matrix(K: np.ndarray) -> str:
    cells = [[f"{v:.6g}" for v in row] for row in K]
    width = max(len(c) for row in cells for c in row)
    return "\n".join("  " + "  ".join(c.rjust(width) for c in row) for row in cells)


def _subscript(i: int) -> str:
    return "".join("₀₁₂₃₄₅₆₇₈₉"[int(c)] for c in str(i))


_LATEX = {
    **{"_": r"\_", "^": r"\textasciicircum{}", "&": r"\&", "%": r"\%", "#": r"\#"},
    **{
        "é": r"\'e",
        "…": r"\ldots{}",
        "‖": r"$\|$",
        "√": r"$\surd$",
        "½": r"$\tfrac12$",
        "ℓ": r"$\ell$",
        "ℕ": r"$\mathbf N$",
    },
    **{"ᵀ": r"$^\top$", "⁰": "$^0$", "²": "$^2$", "ⁿ": "$^n$", "₁": "$_1$", "₂": "$_2$", "ₙ": "$_n$"},
    **{
        "Σ": r"$\sum$",
        "∫": r"$\int$",
        "≥": r"$\ge$",
        "∈": r"$\in$",
        "·": r"$\cdot$",
        "±": r"$\pm$",
        "∞": r"$\infty$",
    },
    **{"π": r"$\pi$", "ψ": r"$\psi$", "δ": r"$\delta$", "ω": r"$\omega$", "γ": r"$\gamma$", "ν": r"$\nu$"},
    **{"λ": r"$\lambda$", "μ": r"$\mu$", "α": r"$\alpha$", "σ": r"$\sigma$", "<": "$<$", ">": "$>$"},
}


def _escape(text: str) -> str:
    return "".join(_LATEX.get(c, c) for c in text)
