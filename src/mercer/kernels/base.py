"""What every kernel is: an immutable expression that can be evaluated, combined, printed, tuned and judged.

    evaluate     k(X, Z), k.diag(X)
    combine      + - * **, exp, polynomial, times, of, on, normalized, bags
    print        str(k), k.latex(); mercer.parse(str(k)) == k
    tune         parameters, theta, with_theta, fix, bounded, get_params, set_params
    judge        validity(), features(d), features_of(X), feature_dimension(d)

A subclass must give `block` and `diagonal` (the values), and should give `proof` (why it is a kernel).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from mercer.arrays import Column, Rows
from mercer.errors import MagnitudeError, NoFiniteMapError, NotFiniteError
from mercer.kernels import doors
from mercer.kernels.combining import Combinable
from mercer.kernels.latex import bracketed
from mercer.kernels.leaves.inheritance import require_same_function
from mercer.kernels.leaves.writing import abbreviated
from mercer.kernels.logarithms import Logarithm, Pairs, of_numbers
from mercer.kernels.maps.monomials import Expansion
from mercer.kernels.maps.parts import Infinite, Node, Space
from mercer.kernels.maps.spectral import NoSpectrum, Spectrum
from mercer.kernels.programs.program import NotLowered, Place
from mercer.kernels.proofs.enclosure import Enclosed, Sample, measured
from mercer.kernels.proofs.expansion import Terms, one_atom
from mercer.kernels.sweep import Sweep, by_differences
from mercer.kernels.things.sparse_map import SparseMap
from mercer.kernels.tuning import REMEMBERED, domains_of, fields_of, hashable
from mercer.samples import common_dtype, samples_of
from mercer.typing import Array, Memory, Setting, Table, Weights

if TYPE_CHECKING:
    from mercer.gram import GramOperator
    from mercer.kernels.maps.explicit import FeatureMap
    from mercer.kernels.proofs.answers import Validity
    from mercer.kernels.proofs.densities import Band
    from mercer.kernels.proofs.proof import Proof


class Kernel(Combinable, ABC):
    """A function of two things, built from named parts.

    Kernels are values: equal when they are of the same class with the same parameters and the same functions
    (the same objects, not the same text), hashable, and never changed; every method that "changes" one
    returns a new one.
    """

    # Numbers of NumPy on the left then hand over to __rmul__ and friends.
    __array_ufunc__ = None
    # Set by a class that may be inherited from.
    is_family: ClassVar[bool] = True
    nesting: int = 1
    # The parameter that multiplies the whole kernel, if there is one.
    factor_name: ClassVar[str | None] = None

    def __init_subclass__(cls, **kwargs: Setting) -> None:
        super().__init_subclass__(**kwargs)
        require_same_function(cls)

    def __post_init__(self) -> None:
        """Refuse a bad parameter at birth, and keep good ones in canonical form (float, tuple of floats)."""
        kind: type = type(self)
        for name, domain in domains_of(kind):
            value = getattr(self, name)
            checked = domain.check(value, kind.__name__, name)
            if checked is not value:
                object.__setattr__(self, name, checked)

    # ── must override ───────────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def block(self, x: Rows, z: Rows | None) -> Array:
        """k(x_i, z_j) in float64; z is None when the two samples are the same observations."""

    @abstractmethod
    def diagonal(self, x: Rows) -> Array:
        """k(x_i, x_i) for the same observation."""

    @abstractmethod
    def text(self) -> str:
        """The expression, without fix() and bounded()."""

    # ── may override ────────────────────────────────────────────────────────────────────────────────────────

    # Of the text form: 1 sum, 2 product, 3 power, 4 call.
    precedence = 4

    def latex(self) -> str:
        """The kernel as a formula in x and z."""
        return rf"\mathrm{{{type(self).__name__}}}(x, z)"

    def proof(self) -> Proof | None:
        """Why this is a kernel, by the rules alone; None where they do not say."""
        return None

    def known_proof(self) -> Proof | None:
        """`proof()`, asked once for this object: a kernel never changes. Not to be overridden."""
        if "_remembered_proof" not in self.__dict__:
            object.__setattr__(self, "_remembered_proof", self.proof())
        found: Proof | None = self.__dict__["_remembered_proof"]
        return found

    def root_proof(self) -> Proof | None:
        """Why every power k^r, r > 0, is a kernel (infinite divisibility); None where no rule says so."""
        return None

    def kept_domains(self) -> tuple[str, ...]:
        """The declared domains of the parameters, with the values that satisfy them, for its proof."""
        return ()

    def wanting(self) -> str:
        """What this part would need to be proved, in a sentence; empty where nothing could be declared."""
        return ""

    def columns_needed(self) -> tuple[int | None, int]:
        """(exactly how many columns X must have, if that is known; at least how many)."""
        needs = [child.columns_needed() for _, child in self.children()]
        exact = {e for e, _ in needs if e is not None}
        return (max(exact) if exact else None, max([1, *(m for _, m in needs)]))

    def takes_things(self) -> bool:
        """Whether the kernel can be evaluated on things that are not vectors."""
        kids = self.children()
        return bool(kids) and all(child.takes_things() for _, child in kids)

    def reads_numbers(self) -> bool:
        """Whether it reads every column of a row as a number, so that a table with text is not for it."""
        kids = self.children()
        if not kids:
            return not self.takes_things()
        return any(child.reads_numbers() for _, child in kids)

    def columns_read(self) -> frozenset[Column] | None:
        """The columns that it looks at, by name or number; None where a part looks at all of them.

        >>> from mercer import RBF, Hamming, White
        >>> sorted((RBF(1.0).on("age") * Hamming().on("sex") + White(0.1)).columns_read())
        ['age', 'sex']
        """
        kids = [child.columns_read() for _, child in self.children()]
        found = [columns for columns in kids if columns is not None]
        return frozenset().union(*found) if kids and len(found) == len(kids) else None

    def needs_nonnegative(self) -> bool:
        """Whether entries below 0 are refused."""
        return any(child.needs_nonnegative() for _, child in self.children())

    def program(self, at: Place) -> None:
        """Its steps for the core, written at a place; `NotLowered` says why there are none."""
        raise NotLowered(f"{type(self).__name__} has no program")

    def cosine_program(self, at: Place) -> bool:
        """Write k(x, z) / √(k(x, x) k(z, z)), where it has steps of its own; False where it has none."""
        return False

    def contract(self, W: Array, at: Sweep) -> None:
        """Add Σ W_ij ∂k_ij/∂p for every parameter p of the kernel and of its parts, by NumPy."""
        by_differences(self, W, at)

    def noise_variance(self) -> float | None:
        """Its number on the diagonal where it is white noise and nothing else; None for other kernels."""
        return None

    def logarithm(self, at: Pairs) -> Logarithm:
        """log|k| and the sign of k, where values may leave the range of float64; here from the values."""
        return of_numbers(at.values(self), self, at)

    def expanded(self, *, split: bool) -> Terms:
        """The kernel multiplied out over others; `split` also takes apart what a first look leaves whole."""
        return one_atom(self)

    def spectrum(self, d: int, names: Sequence[str] | None = None) -> Spectrum:
        """The frequencies of a stationary kernel on d columns; `NoSpectrum` says why where there are none.

        >>> from mercer import RBF
        >>> RBF(2.0).spectrum(3).frequencies(np.full((1, 3), 0.5))          # the middle of N(0, 1/4)
        array([[0., 0., 0.]])
        """
        raise NoSpectrum(f"{self} has no known spectrum")

    def enclosed(self, sample: Sample) -> Enclosed:
        """k(x_i, x_j) with certain bounds; here the values, with the error they are taken to have."""
        return measured(self, sample)

    def in_columns(self) -> Expansion | None:
        """The kernel as a polynomial of x·z and Π (1 + x_d z_d), where it is one; rules ask their parts."""
        return None

    def feature_map(self, space: Space) -> Node:
        """The explicit map of a kernel that is no polynomial; here an infinite one."""
        return Infinite(self)

    def sparse_map(self, x: Rows) -> SparseMap | None:
        """The sparse features that these rows have, where the kernel is an inner product of such; else None.

        `features_of` is the door to it.
        """
        return None

    def map_dimension(self, d: int) -> int | None:
        """The size of the smallest map on d columns, where a formula says it before multiplying out."""
        return None

    def log_integral(self, d: int) -> float | None:
        """log ∫ k(x, t) dt over d columns; None where it is not known or not finite."""
        return None

    def negative_direction(self) -> tuple[float, ...] | None:
        """A point v with k(v, v) < 0, where what was declared names one."""
        return None

    def negative_band(self) -> Band | None:
        """Frequencies at which a declared density is negative, if some were met."""
        return None

    @property
    def is_slow(self) -> bool:
        """Whether every value is one call of a Python function."""
        return False

    # ── evaluate ────────────────────────────────────────────────────────────────────────────────────────────

    def __call__(self, X: Table | Rows, Z: Table | Rows | None = None) -> Array:
        """The dense block k(x_i, z_j). Without Z the two samples are the same observations.

        float32 rows give a float32 block; everything else gives float64.

        >>> from mercer import RBF
        >>> RBF(1.0)([[0.0], [1.0]]).round(4)
        array([[1.    , 0.6065],
               [0.6065, 1.    ]])
        """
        x, z = samples_of(X, Z)
        self.check_same_columns(x, z)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return doors.evaluating().block(self, x, z)

    def gram(
        self,
        X: Table | Rows,
        Z: Table | Rows | None = None,
        *,
        memory: Memory = "2GiB",
        dtype: npt.DTypeLike | None = None,
        n_jobs: int | None = None,
    ) -> GramOperator:
        """The Gram operator: `K @ V`, `K.block(rows, cols)`, `K.contract(U, V)`; stored if it fits `memory`.

        >>> from mercer import RBF
        >>> K = RBF(1.0).gram([[0.0], [1.0]])
        >>> K.kind, (K @ [1.0, 0.0]).round(4).tolist()
        ('dense', [1.0, 0.6065])
        """
        return doors.evaluating().gram(self, X, Z, memory=memory, dtype=dtype, n_jobs=n_jobs)

    def resolved(self, X: Table | Rows, *, sample_weight: Weights = None) -> Kernel:
        """The kernel with its open lengthscales closed by the spread of the columns that each part sees.

        ℓ_j = s_j √(d/2) for d columns with deviations s_j (`kernels.leaves.closing` has the rules for sparse
        and constant ones).

        >>> from mercer import RBF, Linear
        >>> (RBF() + Linear()).resolved([[0.0, 0.5], [2.0, 2000.5]])
        RBF([1.0, 1000.0]) + Linear()
        """
        if not self.is_open:
            return self
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        return self.resolved_on(Rows.of(X, "X"), weight)

    def resolved_on(self, rows: Rows, weight: Array | None) -> Kernel:
        """The kernel with its open lengthscales closed by these rows."""
        kids = [child.resolved_on(rows, weight) if child.is_open else child for _, child in self.children()]
        if kids:
            return self.with_children(kids)
        return self

    def diag(self, X: Table | Rows) -> Array:
        """k(x_i, x_i) for every row, in O(n).

        >>> from mercer import Linear
        >>> Linear().diag([[1.0, 2.0], [3.0, 4.0]])
        array([ 5., 25.])
        """
        x = Rows.of(X, "X")
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self.require_finite(self.diagonal(x).astype(common_dtype(x, None), copy=False))

    def check_same_columns(self, x: Rows, z: Rows | None) -> None:
        """Refuse two samples that differ in the columns this kernel looks at."""
        if z is not None:
            self.compare_columns(x, z)

    def compare_columns(self, x: Rows, z: Rows) -> None:
        """Let every part compare the columns that it looks at."""
        for _, child in self.children():
            child.compare_columns(x, z)

    def require_finite(self, K: Array, first: int = 0) -> Array:
        """`K` itself; an infinity or NaN in it is the kernel's doing, because the data were checked.

        `first` is the row of the data that K begins with.
        """
        # One pass and no temporary; only a suspicion is looked at closely.
        if np.isfinite(K.sum()):
            return K
        good = np.isfinite(K)
        if good.all():
            return K
        where = np.unravel_index(int(np.argmin(good)), K.shape)
        beside = where[-1] if K.ndim > 1 else first + where[-1]
        rows = f"rows {first + where[0]} and {beside}"
        if np.isnan(K[where]):
            raise NotFiniteError(f"{self} is NaN for {rows}: it is not defined there. Look at that pair.")
        raise MagnitudeError(
            f"{self} overflows {K.dtype} for {rows}. Rescale the columns, or take a smaller scale, degree or "
            "power."
        )

    # ── text ────────────────────────────────────────────────────────────────────────────────────────────────

    def __str__(self) -> str:
        text = self.text()
        if self.fixed_names or self.stated_bounds:
            text = text if self.precedence == 4 else f"({text})"
        if self.stated_bounds:
            pairs = ", ".join(f"{n}=({lo!r}, {hi!r})" for n, (lo, hi) in self.stated_bounds)
            text += f".bounded({pairs})"
        if self.fixed_names:
            names = ", ".join('"' + n + '"' for n in sorted(self.fixed_names))
            text += f".fix({names})"
        return text

    def __repr__(self) -> str:
        return abbreviated(str(self))

    @property
    def _rank(self) -> int:
        """Precedence of the printed form, fix() and bounded() included."""
        if self.fixed_names or self.stated_bounds:
            return 4
        return self.precedence

    def text_inside(self, level: int) -> str:
        """The text as an operand at `level`: in brackets where it binds more loosely."""
        if self._rank >= level:
            return str(self)
        return f"({self})"

    def latex_inside(self, level: int) -> str:
        """The formula as an operand at `level`."""
        return bracketed(self.latex(), level)

    def _repr_latex_(self) -> str:
        return rf"$\displaystyle k(x, z) = {self.latex()}$"

    def __getstate__(self) -> dict[str, Setting]:
        """What is copied and pickled: everything but what follows from it."""
        return {name: value for name, value in self.__dict__.items() if name not in REMEMBERED}

    # ── equality ────────────────────────────────────────────────────────────────────────────────────────────

    def key(self) -> tuple[Hashable, ...]:
        """What equality compares: class, fields, and what is fixed and bounded."""
        values = (hashable(getattr(self, f.name)) for f in fields_of(self))
        return (type(self), self.fixed_names, self.stated_bounds, *values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Kernel):
            return NotImplemented
        return self is other or self.key() == other.key()

    def __hash__(self) -> int:
        known: int | None = self.__dict__.get("_remembered_hash")
        if known is None:
            known = hash(self.key())
            if self.stays():
                object.__setattr__(self, "_remembered_hash", known)
        return known

    # ── judge ───────────────────────────────────────────────────────────────────────────────────────────────

    def validity(
        self,
        samples: Table | None = None,
        *,
        columns: int | None = None,
        seconds: float = 60.0,
        random_state: int = 0,
    ) -> Validity:
        """`Proved` with its proof, `Refuted` with a witness, or `Undecided` with what was tried.

        A proof that rests on something you declared is a `ProvedAsDeclared`. `samples` are things the kernel
        takes, from which a witness may be sought (needed when they are not vectors); `columns` limits the
        search to points of that dimension; an open lengthscale is then taken as 1. The search does a fixed
        amount of work and its answer is kept; `seconds` only stops it early.

        >>> from mercer import RBF
        >>> print(RBF(2.0).validity())
        RBF(2.0) is a kernel.
        ...
        """
        return doors.judging()(self, samples, columns=columns, seconds=seconds, random_state=random_state)

    def features(
        self,
        d: int | Sequence[str] | None = None,
        *,
        redundant: bool = False,
        memory: Memory = "1GiB",
    ) -> FeatureMap:
        """The explicit map φ with φ(x)·φ(z) = k(x, z), where it is finite.

        `d` is the number of columns, or their names. With `redundant`, products are listed in every order
        (x1*x2 and x2*x1), as books write φ. A map that would not fit in `memory` is refused with its size.

        >>> from mercer import Linear
        >>> print((Linear() + 1).features(["age", "dose"]))
        φ of Linear() + Constant(1.0): 2 columns -> 3 features (1, age, dose)
        """
        return doors.mapping().build(self, d, redundant=redundant, memory=memory)

    def features_of(self, X: Table | Rows) -> SparseMap:
        """The features that these things have, with names: φ with φ(x)·φ(z) = k(x, z), as sparse rows.

        For kernels that count (`Spectrum`, `Text`, `WeisfeilerLehman`, …) and their sums, multiples,
        normalised forms and means over bags. What is left to the data is closed by these things. The map has
        φ of them as `matrix`, takes other things, and leaves out what none of these has.

        >>> from mercer import Text
        >>> phi = Text(counting="presence").features_of(["to be", "or not to be"])
        >>> list(phi.names)
        ['be', 'not', 'or', 'to']
        >>> (phi(["not"]) @ phi.matrix.T).toarray()              # 1/√4 with the second alone
        array([[0. , 0.5]])
        """
        rows = Rows.of(X, "X")
        found = self.resolved(rows).sparse_map(rows)
        if found is None:
            raise NoFiniteMapError(
                f"{self!r} is no inner product of features that things have one by one, as those of kernels "
                "that count are. For a kernel of columns of numbers ask k.features(d)."
            )
        return found

    def feature_dimension(self, d: int | Sequence[str], *, redundant: bool = False) -> int | float:
        """How many coordinates φ has for d columns: an exact integer, or infinity; nothing is built.

        >>> from mercer import RBF, Polynomial
        >>> Polynomial(7).feature_dimension(256), RBF().feature_dimension(256)
        (15932831090241, inf)
        """
        return doors.mapping().dimension(self, d, redundant=redundant)


# ── helpers ─────────────────────────────────────────────────────────────────────────────────────────────────


def as_kernel(value: Kernel | str | float) -> Kernel:
    """A kernel, its text, or a number (as a constant) — as a kernel."""
    if isinstance(value, Kernel):
        return value
    return doors.reading()(value)
