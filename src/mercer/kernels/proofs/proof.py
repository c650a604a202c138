"""Why something is a kernel: facts, and proofs made of them.

A proof is a tree. Each node names the kernel it speaks of, the rule that makes it one, and the proofs of its
parts; the leaves of the tree are facts about named kernels. Nothing here samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from mercer.kernels.leaves.inheritance import own_proof
from mercer.notebook import code, folded, paragraph

if TYPE_CHECKING:
    from mercer.kernels.base import Kernel


@dataclass(frozen=True)
class Fact:
    """A rule or theorem by its name, and what it says here."""

    rule: str
    reason: str


@dataclass(frozen=True)
class Proof:
    """One node of a proof: `kernel` is a kernel by `fact`, given the `premises`.

    What else must hold is `stated`; with `in_domains` it is also that the parameters are in their domains.
    """

    kernel: Kernel
    fact: Fact
    premises: tuple[Proof, ...] = ()
    stated: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    in_domains: bool = False

    @property
    def conditions(self) -> tuple[str, ...]:
        """What must hold of this kernel, in words, which are written when somebody asks for them."""
        if not self.in_domains:
            return self.stated
        return (*self.stated, *self.kernel.kept_domains())

    @property
    def rule(self) -> str:
        return self.fact.rule

    def rules(self) -> set[str]:
        """The names of all rules used in the tree."""
        return {node.rule for node in self.walk()}

    def declared(self) -> tuple[str, ...]:
        """Everything in the tree that is taken from the user's word; empty where nothing is."""
        words = self.taken()
        for premise in self.premises:
            words += premise.declared()
        if not words:
            return ()
        return tuple(dict.fromkeys(words))

    def taken(self) -> tuple[str, ...]:
        """What this node takes from the user's word: what was declared, and proofs of his own classes."""
        return self.assumptions or own_proof(self.kernel)

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
        for assumption in self.taken():
            yield f"{pad}   Taken from you: {assumption}."
        for i, premise in enumerate(self.premises, 1):
            yield from premise.lines(f"{number}.{i}", depth + 1)

    def latex(self) -> str:
        """The proof as nested LaTeX enumerations."""
        reason = _escape(_sentence(self.fact.reason))
        body = rf"\item $k(x,z)={self.kernel.latex()}$: \textbf{{{_escape(self.rule)}}}. {reason}"
        if self.conditions:
            body += f" Here {_escape('; '.join(self.conditions))}."
        for assumption in self.taken():
            body += f" Taken as given: {_escape(assumption)}."
        if self.premises:
            body += (
                "\n\\begin{enumerate}\n" + "\n".join(p.latex() for p in self.premises) + "\n\\end{enumerate}"
            )
        return body

    def html(self, *, unfolded: bool = True) -> str:
        """The proof as a tree that is folded below its first step, for notebooks."""
        inside = paragraph(_sentence(self.fact.reason))
        if self.conditions:
            inside += paragraph(f"Here {'; '.join(self.conditions)}.")
        for assumption in self.taken():
            inside += paragraph(f"Taken from you: {assumption}.")
        inside += "".join(premise.html(unfolded=False) for premise in self.premises)
        return folded(f"{code(str(self.kernel))} [{escape(self.rule)}]", inside, unfolded=unfolded)


def _sentence(text: str) -> str:
    word = text[:2].isalpha() and text[:2].isascii()  # a formula keeps its small letter
    return (text[:1].upper() + text[1:] if word else text) + ("" if text.endswith(".") else ".")


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
