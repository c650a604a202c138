"""The families of leaf kernels: what a leaf sees of the data.

    Radial      s = Σ ((x_d - z_d) / ℓ_d)²      and the leaf is a function of s
    DotProduct  t = x · z                       and the leaf is a function of t
    PerColumn   a term for each column, summed or multiplied, and a function of the result

A leaf gives `value` (its formula) and `slope` (its derivative); it knows nothing of blocks, threads or sparsity.
`@leaf` makes a class a frozen dataclass and teaches the parser its name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, TypeVar, dataclass_transform

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from mercer.arrays import Matrix, Rows, dense, require_nonnegative
from mercer.errors import ParameterError, ShapeError
from mercer.kernels.base import Kernel
from mercer.kernels.proof import Fact, Proof
from mercer.params import (
    Vector,
    positive,
)

LEAVES: dict[str, type[Leaf]] = {}

C = TypeVar("C", bound=type[Any])


@dataclass_transform(frozen_default=True, eq_default=False)
def expression(cls: C) -> C:
    """A frozen dataclass whose equality is that of `Kernel`."""
    return dataclass(frozen=True, eq=False, repr=False)(cls)  # type: ignore[return-value]


@dataclass_transform(frozen_default=True, eq_default=False)
def leaf(cls: C) -> C:
    """A kernel with a name: frozen, checked at birth, readable by `mercer.parse`."""
    made = expression(cls)
    if made.spellings:
        _accept_spellings(made)
    LEAVES[made.__name__] = made
    return made


def _accept_spellings(cls: Any) -> None:
    """Let the constructor also take other names of a parameter, such as gamma for RBF's lengthscale."""
    plain = cls.__init__

    @functools.wraps(plain)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        for other, (name, convert) in cls.spellings.items():
            if other in kwargs:
                if args or name in kwargs:
                    names = ", ".join([name, *(o for o, (n, _) in cls.spellings.items() if n == name)])
                    raise ParameterError(
                        f"{cls.__name__}: give one of {names}; they name the same parameter."
                    )
                domain = cls.__dataclass_fields__[name].metadata["domain"]
                kwargs[name] = convert(domain.check(kwargs.pop(other), cls.__name__, other))
        plain(self, *args, **kwargs)

    cls.__init__ = init


class Leaf(Kernel):
    """A named kernel. Class facts: `because` (why it is a kernel), `divisible` (why its powers are), `formula`."""

    because: ClassVar[Fact | None] = None
    divisible: ClassVar[str | None] = None
    formula: ClassVar[str | None] = None
    spellings: ClassVar[dict[str, tuple[str, Callable[[Any], Any]]]] = {}

    def _text(self) -> str:
        parts = []
        for position, f in enumerate(fields(self)):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if position == 0:
                parts.append(write_value(value))
            elif value != f.default:
                parts.append(f"{f.name}={write_value(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def _latex(self) -> str:
        values = {f.name: latex_value(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]
        if self.formula is None:
            inside = ", ".join(f"{name}={v}" for name, v in values.items())
            return rf"\mathrm{{{type(self).__name__}}}_{{{inside}}}(x, z)"
        out = self.formula
        for name, value in values.items():
            out = out.replace(f"<{name}>", value)
        return out

    def _conditions(self) -> tuple[str, ...]:
        """The declared domains, with the values that satisfy them."""
        out = []
        for f in fields(self):  # type: ignore[arg-type]
            domain = f.metadata.get("domain")
            if domain is not None and np.isfinite(domain.low):
                shown = write_value(getattr(self, f.name))
                sign = ">" if domain.open_low else "≥"
                whole = " is a whole number" if domain.whole else ""
                out.append(f"{f.name} = {shown if len(shown) < 60 else '…'}{whole} {sign} {domain.low:g}")
        return tuple(out)

    def _proof(self) -> Proof | None:
        return None if self.because is None else Proof(self, self.because, conditions=self._conditions())

    def _root_proof(self) -> Proof | None:
        if self.divisible is None:
            return None
        return Proof(self, Fact("infinitely divisible", self.divisible), conditions=self._conditions())

    def _columns_needed(self) -> tuple[int | None, int]:
        lengths = {
            len(getattr(self, f.name))
            for f in fields(self)  # type: ignore[arg-type]
            if "domain" in f.metadata
            and f.metadata["domain"].per_column
            and f.metadata["domain"].ndim == 0
            and isinstance(getattr(self, f.name), tuple)
        }
        return (max(lengths), max(lengths)) if lengths else (None, 1)

    def _compare_columns(self, x: Rows, z: Rows) -> None:
        if not self._takes_things():
            z.require_columns_of(x)

    def _per_column(self, name: str, d: int) -> np.ndarray:
        """A parameter as one number per column, or an error that says how many columns there are."""
        value = getattr(self, name)
        if not isinstance(value, tuple):
            return np.full(d, value)
        if len(value) != d:
            raise ShapeError(
                f"{type(self).__name__}: {name} has {len(value)} numbers, but the data have {d} columns. "
                "Give one number per column, or a single one for all."
            )
        return np.array(value)


@expression
class Radial(Leaf):
    """A function of the scaled squared distance s = Σ ((x_d - z_d) / ℓ_d)².

    Such a function is a kernel in every dimension iff it is completely monotone in s (Schoenberg).
    """

    lengthscale: Vector = positive(1.0, per_column=True)

    def value(self, s: Any) -> Any:
        raise NotImplementedError

    def slope(self, s: Any) -> Any:
        """d value / d s."""
        raise NotImplementedError

    def _block(self, x: Rows, z: Rows | None) -> np.ndarray:
        X = x.vectors
        with np.errstate(over="ignore"):
            weights = self._per_column("lengthscale", X.shape[1]) ** -2.0
        return self.value(squared_distances(X, None if z is None else z.vectors, weights))

    def _diag(self, x: Rows) -> np.ndarray:
        self._per_column("lengthscale", x.vectors.shape[1])
        return np.full(len(x), float(self.value(np.zeros(1))[0]))


class DotProduct(Leaf):
    """A function of t = x · z. A kernel in every dimension iff its Taylor coefficients are non-negative."""

    def value(self, t: Any) -> Any:
        raise NotImplementedError

    def slope(self, t: Any) -> Any:
        """d value / d t."""
        raise NotImplementedError

    def _block(self, x: Rows, z: Rows | None) -> np.ndarray:
        return self.value(dot_products(x.vectors, None if z is None else z.vectors))

    def _diag(self, x: Rows) -> np.ndarray:
        return self.value(squared_norms(x.vectors))


class PerColumn(Leaf):
    """A term for each column, reduced by a sum or a product, and a function of the result.

    `term(x, z, **parameters)` gets one column of each sample, ready to broadcast, and the parameters of that
    column for every parameter declared `per_column`.
    """

    reduction: ClassVar[Literal["sum", "product"]] = "sum"
    histogram: ClassVar[bool] = False

    term: Callable[..., Any]

    def value(self, r: Any) -> Any:
        return r

    def slope(self, r: Any) -> Any:
        """d value / d r."""
        return np.ones_like(r)

    def _needs_nonnegative(self) -> bool:
        return self.histogram

    def _reduce(self, X: np.ndarray, Z: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        d = X.shape[-1]
        names = [f.name for f in fields(self) if f.metadata.get("domain") and f.metadata["domain"].per_column]  # type: ignore[arg-type]
        columns = {name: self._per_column(name, d) for name in names}
        out = np.zeros(shape) if self.reduction == "sum" else np.ones(shape)
        for j in range(d):
            term = self.term(X[..., j], Z[..., j], **{name: column[j] for name, column in columns.items()})
            if self.reduction == "sum":
                out += term
            else:
                out *= term
        return out

    def _numbers(self, x: Rows) -> np.ndarray:
        if self.histogram:
            require_nonnegative(x.vectors, type(self).__name__, x.name)
        return dense(x.vectors).astype(np.float64, copy=False)

    def _block(self, x: Rows, z: Rows | None) -> np.ndarray:
        X = self._numbers(x)
        Z = X if z is None else self._numbers(z)
        return self.value(self._reduce(X[:, None, :], Z[None, :, :], (len(X), len(Z))))

    def _diag(self, x: Rows) -> np.ndarray:
        X = self._numbers(x)
        return self.value(self._reduce(X, X, (len(X),)))


# ── the primitives ──────────────────────────────────────────────────────────────────────────────────────────


_FARTHEST = (
    1e300  # a larger s is cut to this: every radial kernel is at its limit there, and inf would give 0·inf
)


def squared_distances(X: Matrix, Z: Matrix | None, weights: np.ndarray) -> np.ndarray:
    """Σ_d w_d (x_d - z_d)² by differences, never by expanding the square: large offsets do not cancel."""
    weights = np.minimum(weights, np.finfo(float).max)
    with np.errstate(over="ignore"):
        if sparse.issparse(X) or sparse.issparse(Z):
            s = _sparse_squared_distances(
                sparse.csr_array(X), None if Z is None else sparse.csr_array(Z), weights
            )
        else:
            A = X.astype(np.float64, copy=False)
            B = A if Z is None else Z.astype(np.float64, copy=False)
            same = bool(np.all(weights == weights[0]))
            s = cdist(A, B, "sqeuclidean") * weights[0] if same else cdist(A, B, "sqeuclidean", w=weights)
    return np.minimum(s, _FARTHEST, out=s)


def _sparse_squared_distances(X: Any, Z: Any, weights: np.ndarray) -> np.ndarray:
    """The expansion ‖x‖² + ‖z‖² - 2 x·z on sparse rows, with every pair that cancels done again by differences."""
    A = X.astype(np.float64)
    B = A if Z is None else Z.astype(np.float64)
    a, b = (A.multiply(A) @ weights), (B.multiply(B) @ weights)
    total = a[:, None] + b[None, :]
    with np.errstate(invalid="ignore"):
        s = total - 2 * (A.multiply(weights).tocsr() @ B.T).toarray()
    rows, columns = np.nonzero(~(s > 1e-4 * total))  # written so that NaN from inf - inf is done again too
    for start in range(0, len(rows), 4096):
        i, j = rows[start : start + 4096], columns[start : start + 4096]
        difference = A[i] - B[j]
        s[i, j] = difference.multiply(difference) @ weights
    if Z is None:
        s = np.triu(s, 1)
        s += s.T
    return s


def dot_products(X: Matrix, Z: Matrix | None) -> np.ndarray:
    A = X.astype(np.float64, copy=False)
    B = A if Z is None else Z.astype(np.float64, copy=False)
    out = A @ B.T
    return out.toarray() if sparse.issparse(out) else out


def squared_norms(X: Matrix) -> np.ndarray:
    A = X.astype(np.float64, copy=False)
    return (
        np.asarray(A.multiply(A).sum(axis=1)).ravel() if sparse.issparse(A) else np.einsum("ij,ij->i", A, A)
    )


# ── writing values ──────────────────────────────────────────────────────────────────────────────────────────


def write_value(value: Any) -> str:
    """A parameter as text that the parser reads back; functions as <name>."""
    if isinstance(value, tuple):
        return "[" + ", ".join(map(write_value, value)) + "]"
    if callable(value):
        return f"<{getattr(value, '__name__', type(value).__name__).strip('<>')}>"
    return repr(value)


def latex_value(value: Any) -> str:
    if isinstance(value, tuple):
        return r"(" + ", ".join(map(latex_value, value)) + ")"
    if isinstance(value, float):
        mantissa, _, exponent = f"{value:.6g}".partition("e")
        return rf"{mantissa}\cdot 10^{{{int(exponent)}}}" if exponent else mantissa
    if callable(value):
        return getattr(value, "__name__", "f").replace("<lambda>", "f").replace("_", r"\_")
    return str(value)
