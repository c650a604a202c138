"""Which kernels may be inherited from: families may, and a kernel with a formula is final.

Proofs, programs, feature maps and spectra are rules about the formula of a class. A subclass with another
formula would inherit them all, and each would be false of it; so it is refused when the class is made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Protocol

from mercer.errors import ParameterError

# What a subclass may change without becoming another function.
MAY_DIFFER = frozenset({"formula", "spellings", "slope", "text", "latex", "_abc_impl"})
# what Python writes into every class
WRITTEN_BY_PYTHON = frozenset(
    {
        "__annotate__",
        "__annotate_func__",
        "__annotations__",
        "__annotations_cache__",
        "__classcell__",
        "__conditional_annotations__",
        "__doc__",
        "__firstlineno__",
        "__module__",
        "__qualname__",
        "__static_attributes__",
    }
)


def is_ours(cls: type) -> bool:
    """Whether a class is mercer's own."""
    return cls.__module__.split(".")[0] == "mercer"


def changes(cls: type) -> list[str]:
    """The names by which a class, as it is written, may differ from its base as a function."""
    return sorted(set(cls.__dict__) - MAY_DIFFER - WRITTEN_BY_PYTHON)


def require_same_function(cls: type) -> None:
    """Refuse a class that changes what a kernel of mercer computes."""
    if is_ours(cls):
        return
    ours = [base for base in cls.__mro__[1:] if is_ours(base)]
    final = [base for base in ours if "is_family" not in base.__dict__]
    changed = changes(cls)
    if not final or not changed:
        return
    family = next(base.__name__ for base in ours if "is_family" in base.__dict__)
    name = final[0].__name__
    raise ParameterError(
        f"{cls.__name__} changes {', '.join(changed)} of {name}, and {name} is final: its proof, its program "
        "and its feature "
        f"map are those of its own formula. Inherit from {family} and write the formula there."
    )


class Provable(Protocol):
    """What brings proofs of itself."""

    def proof(self) -> object: ...

    def root_proof(self) -> object: ...


def own_proof(kernel: Provable) -> tuple[str, ...]:
    """A proof that a class outside mercer gives of itself is its author's word."""
    kind: type[Provable] = type(kernel)
    return _own_proof(kind, kind.proof, kind.root_proof)


@cache
def _own_proof(kind: type, *methods: Callable[..., object]) -> tuple[str, ...]:
    """`own_proof` of a class that has these methods: looked for again where someone has replaced one."""
    for name in ("proof", "root_proof"):
        owner = next(cls for cls in kind.__mro__ if name in cls.__dict__)
        if not is_ours(owner):
            return (f"the class {owner.__name__} brings its own proof",)
    return ()
