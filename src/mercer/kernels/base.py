"""What every kernel is: an immutable expression that can be evaluated, combined, printed, tuned and judged.

    evaluate     k(X, Z), k.diag(X)
    combine      + - * **, exp, polynomial, times, of, on, normalized
    print        str(k), k.latex(); mercer.parse(str(k)) == k
    tune         parameters, theta, with_theta, fix, bounded, get_params, set_params
    judge        validity(), features(d), feature_dimension(d)

A subclass must give `block` and `diagonal` (the values), and should give `proof` (why it is a kernel).
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from mercer.arrays import Rows, common_dtype
from mercer.errors import MagnitudeError, NotFiniteError, ParameterError, ShapeError
from mercer.kernels.latex import bracketed
from mercer.kernels.leaves.inheritance import require_same_function
from mercer.params import Bounds, Domain, Open, Parameter, check_bounds, is_real

if TYPE_CHECKING:
    from mercer.gram import GramOperator
    from mercer.kernels.maps.explicit import FeatureMap
    from mercer.kernels.proofs.proof import Proof, Validity


class Kernel(ABC):
    """A function of two things, built from named parts.

    Kernels are values: equal when they are of the same class with the same parameters and the same functions
    (the same objects, not the same text), hashable, and never changed; every method that "changes" one returns a new one.
    """

    __array_ufunc__ = None  # numpy scalars on the left then hand over to __rmul__ and friends

    fixed_names: frozenset[str] = frozenset()
    stated_bounds: tuple[tuple[str, Bounds], ...] = ()
    _tunable_copy: bool = False
    nesting: int = 1
    is_family: ClassVar[bool] = True  # set by a class that may be inherited from

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        require_same_function(cls)

    def __post_init__(self) -> None:
        """Refuse a bad parameter at birth, and keep good ones in canonical form (float, tuple of floats)."""
        for f in dataclasses.fields(self):  # type: ignore[arg-type]
            if "domain" in f.metadata:
                value = getattr(self, f.name)
                checked = f.metadata["domain"].check(value, type(self).__name__, f.name)
                if checked is not value:
                    object.__setattr__(self, f.name, checked)

    # ── must override ───────────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def block(self, x: Rows, z: Rows | None) -> np.ndarray:
        """k(x_i, z_j) in float64; z is None when the two samples are the same observations."""

    @abstractmethod
    def diagonal(self, x: Rows) -> np.ndarray:
        """k(x_i, x_i) for the same observation."""

    @abstractmethod
    def text(self) -> str:
        """The expression, without fix() and bounded()."""

    # ── may override ────────────────────────────────────────────────────────────────────────────────────────

    precedence = 4  # of the text form: 1 sum, 2 product, 3 power, 4 call

    def latex(self) -> str:
        """The kernel as a formula in x and z."""
        return rf"\mathrm{{{type(self).__name__}}}(x, z)"

    def proof(self) -> Proof | None:
        """Why this is a kernel, by the rules alone; None where they do not say."""
        return None

    def root_proof(self) -> Proof | None:
        """Why every power k^r, r > 0, is a kernel (infinite divisibility); None where the rules do not say."""
        return None

    def wanting(self) -> str:
        """What this part would need to be proved, in a sentence; empty where nothing could be declared."""
        return ""

    def children(self) -> list[tuple[str, Kernel]]:
        return []

    def with_children(self, children: list[Kernel]) -> Kernel:
        return self

    def columns_needed(self) -> tuple[int | None, int]:
        """(exactly how many columns X must have, if that is known; at least how many)."""
        needs = [child.columns_needed() for _, child in self.children()]
        exact = {e for e, _ in needs if e is not None}
        return (max(exact) if exact else None, max([1, *(m for _, m in needs)]))

    def takes_things(self) -> bool:
        """Whether the kernel can be evaluated on things that are not vectors."""
        kids = self.children()
        return bool(kids) and all(child.takes_things() for _, child in kids)

    def needs_nonnegative(self) -> bool:
        return any(child.needs_nonnegative() for _, child in self.children())

    # ── evaluate ────────────────────────────────────────────────────────────────────────────────────────────

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        """The dense block k(x_i, z_j). Without Z the two samples are the same observations.

        float32 rows give a float32 block; everything else gives float64.

        >>> from mercer import RBF
        >>> RBF(1.0)([[0.0], [1.0]]).round(4)
        array([[1.    , 0.6065],
               [0.6065, 1.    ]])
        """
        x = Rows.of(X, "X")
        z = None if Z is None else Rows.of(Z, "Z")
        self.check_same_columns(x, z)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self.require_finite(_gram_room().evaluate(self, x, z))

    def gram(
        self,
        X: Any,
        Z: Any = None,
        *,
        memory: int | str = "2GiB",
        dtype: Any = None,
        n_jobs: int | None = None,
    ) -> GramOperator:
        """The Gram operator: `K @ V`, `K.block(rows, cols)`, `K.contract(U, V)`, with K stored if it fits `memory`.

        >>> from mercer import RBF
        >>> K = RBF(1.0).gram([[0.0], [1.0]])
        >>> K.kind, (K @ [1.0, 0.0]).round(4).tolist()
        ('dense', [1.0, 0.6065])
        """
        return _gram_room().gram(self, X, Z, memory=memory, dtype=dtype, n_jobs=n_jobs)

    @property
    def is_open(self) -> bool:
        """Whether a part leaves a lengthscale to the data, as `RBF()` does."""
        own = (getattr(self, name) for name, _ in self.own_domains())
        return any(isinstance(value, Open) for value in own) or any(k.is_open for _, k in self.children())

    def resolved(self, X: Any, *, sample_weight: Any = None) -> Kernel:
        """The kernel with its open lengthscales closed by the spread of the columns that each part sees.

        ℓ_j = s_j √(d/2) for d columns with deviations s_j (`kernels.leaves.closing` has the rules for sparse and constant ones).

        >>> from mercer import RBF, Linear
        >>> (RBF() + Linear()).resolved([[0.0, 0.5], [2.0, 2000.5]])
        RBF([1.0, 1000.0]) + Linear()
        """
        if not self.is_open:
            return self
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        return self.resolved_on(Rows.of(X, "X"), weight)

    def closed(self, lengthscale: float) -> Kernel:
        """The kernel with one number in place of every open lengthscale.

        >>> from mercer import RBF
        >>> (2.0 * RBF()).closed(3.0)
        2.0*RBF(3.0)
        """
        if not self.is_open:
            return self
        own = {n: lengthscale for n, _ in self.own_domains() if isinstance(getattr(self, n), Open)}
        out = self.changed(**own) if own else self
        kids = [child.closed(lengthscale) for _, child in out.children()]
        return out.with_children(kids) if kids else out

    def resolved_on(self, rows: Rows, weight: np.ndarray | None) -> Kernel:
        kids = [child.resolved_on(rows, weight) if child.is_open else child for _, child in self.children()]
        return self.with_children(kids) if kids else self

    def diag(self, X: Any) -> np.ndarray:
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
        for _, child in self.children():
            child.compare_columns(x, z)

    def require_finite(self, K: np.ndarray) -> np.ndarray:
        """`K` itself; an infinity or NaN in it is the kernel's doing, because the data were checked."""
        if np.isfinite(K.sum()):  # one pass and no temporary; only a suspicion is looked at closely
            return K
        good = np.isfinite(K)
        if good.all():
            return K
        where = np.unravel_index(int(np.argmin(good)), K.shape)
        rows = f"rows {where[0]} and {where[-1]}"
        if np.isnan(K[where]):
            raise NotFiniteError(f"{self} is NaN for {rows}: it is not defined there. Look at that pair.")
        raise MagnitudeError(
            f"{self} overflows {K.dtype} for {rows}. Rescale the columns, or take a smaller scale, degree or power."
        )

    # ── combine ─────────────────────────────────────────────────────────────────────────────────────────────

    def __add__(self, other: Kernel | float) -> Kernel:
        from mercer.kernels.algebra import add

        return add(self, other)

    def __radd__(self, other: Kernel | float) -> Kernel:
        from mercer.kernels.algebra import add

        return self if type(other) is int and other == 0 else add(other, self)  # sum(kernels) starts at 0

    def __mul__(self, other: Kernel | float) -> Kernel:
        from mercer.kernels.algebra import multiply

        return multiply(self, other)

    def __rmul__(self, other: Kernel | float) -> Kernel:
        return self * other if is_number(other) else NotImplemented

    def __truediv__(self, other: float) -> Kernel:
        if not is_number(other):
            return NotImplemented
        if other == 0:
            raise ParameterError("a kernel cannot be divided by zero.")
        return self * (1.0 / other)

    def __neg__(self) -> Kernel:
        return self * -1.0

    def __pos__(self) -> Kernel:
        return self

    def __sub__(self, other: Kernel | float) -> Kernel:
        """The difference, treated as what it is: rarely a kernel, and `validity()` says so."""
        if isinstance(other, Kernel):
            return self + (-other)
        return self + -float(other) if is_number(other) else NotImplemented  # -np.uint8(2) would be 254

    def __rsub__(self, other: float) -> Kernel:
        return other + (-self) if is_number(other) else NotImplemented

    def __pow__(self, exponent: float) -> Kernel:
        from mercer.kernels.algebra import Power

        return Power(self, exponent) if is_number(exponent) else NotImplemented

    def exp(self) -> Kernel:
        """e^k."""
        from mercer.kernels.algebra import Exp

        return Exp(self)

    def polynomial(self, coefs: Sequence[float]) -> Kernel:
        """c₀ + c₁k + c₂k² + …, the constant first."""
        from mercer.kernels.algebra import PolynomialOf

        return PolynomialOf(self, tuple(coefs))

    def times(self, f: Callable[[np.ndarray], np.ndarray]) -> Kernel:
        """f(x) k(x, z) f(z); `f` maps the n×d matrix of points to n numbers."""
        from mercer.kernels.algebra import Times

        return Times(self, f)

    def of(self, map: Any) -> Kernel:
        """k(ψ(x), ψ(z)); `map` is a function of the n×d matrix of points, or a matrix A for ψ(x) = Ax."""
        from mercer.kernels.algebra import LinearMap, Of

        return Of(self, map) if callable(map) else LinearMap(self, map)

    def on(self, *columns: str | int | slice) -> Kernel:
        """The kernel on some columns only, by name, number or slice."""
        from mercer.kernels.algebra import On

        return On(self, columns)

    def normalized(self) -> Kernel:
        """k(x, z) / √(k(x, x) k(z, z)): the cosine in feature space; of a cosine it is the cosine itself."""
        from mercer.kernels.algebra import Normalized

        return self if isinstance(self, Normalized) else Normalized(self)

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

    __repr__ = __str__

    @property
    def _rank(self) -> int:
        """Precedence of the printed form, fix() and bounded() included."""
        return 4 if self.fixed_names or self.stated_bounds else self.precedence

    def text_inside(self, level: int) -> str:
        """The text as an operand at `level`: in brackets where it binds more loosely."""
        return str(self) if self._rank >= level else f"({self})"

    def latex_inside(self, level: int) -> str:
        return bracketed(self.latex(), level)

    def _repr_latex_(self) -> str:
        return rf"$\displaystyle k(x, z) = {self.latex()}$"

    def __getstate__(self) -> dict[str, Any]:
        """What is copied and pickled: everything but the proof, which can be found again."""
        return {name: value for name, value in self.__dict__.items() if name != "_remembered_proof"}

    # ── equality ────────────────────────────────────────────────────────────────────────────────────────────

    def key(self) -> tuple:
        values = (_hashable(getattr(self, f.name)) for f in dataclasses.fields(self))  # type: ignore[arg-type]
        return (type(self), self.fixed_names, self.stated_bounds, *values)

    def __eq__(self, other: object) -> bool:
        return self.key() == other.key() if isinstance(other, Kernel) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key())

    # ── parameters ──────────────────────────────────────────────────────────────────────────────────────────

    def own_domains(self) -> Iterator[tuple[str, Domain]]:
        for f in dataclasses.fields(self):  # type: ignore[arg-type]
            if "domain" in f.metadata and f.metadata["domain"].tuned:
                yield f.name, f.metadata["domain"]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Every tunable number of the expression, from left to right.

        >>> from mercer import RBF, Linear
        >>> [p.name for p in (2.0 * RBF([1.0, 3.0]) + Linear()).parameters]
        ['k1__scale', 'k1__kernel__lengthscale[0]', 'k1__kernel__lengthscale[1]']
        """
        out: list[Parameter] = []
        bounds = dict(self.stated_bounds)
        for name, domain in self.own_domains():
            fixed, box = name in self.fixed_names, bounds.get(name)
            for path, value in _flatten(name, getattr(self, name)):
                out.append(Parameter(path, value, domain, fixed, box))
        for prefix, child in self.children():
            out += [dataclasses.replace(p, name=f"{prefix}__{p.name}") for p in child.parameters]
        return tuple(out)

    @property
    def theta(self) -> np.ndarray:
        """The free parameters as unconstrained real numbers: logarithms of positive ones, logits of bounded ones."""
        return np.array([p.theta for p in self.parameters if p.free])

    def with_theta(self, theta: Any) -> Self:
        """The kernel with its free parameters taken from `theta`: the way back.

        >>> from mercer import RBF
        >>> k = 2.0 * RBF(3.0)
        >>> round(k.with_theta(k.theta + 1.0).kernel.lengthscale / 3.0, 9)   # one step of the logarithm
        2.718281828
        """
        values = np.asarray(theta, dtype=float).ravel()
        free = sum(p.free for p in self.parameters)
        if len(values) != free:
            raise ShapeError(f"theta must have {free} numbers, one per free parameter; got {len(values)}.")
        if not np.all(np.isfinite(values)):
            raise ParameterError(f"theta must be finite; got {values}.")
        return self._from_theta(iter(values.tolist()))

    def _from_theta(self, theta: Iterator[float]) -> Self:
        changes, bounds = {}, dict(self.stated_bounds)
        for name, domain in self.own_domains():
            if name in self.fixed_names:
                continue
            box = bounds.get(name)

            def move(v: float, domain: Domain = domain, box: Bounds | None = box) -> float:
                return domain.from_real(next(theta), box, v) if domain.is_free(v) else v

            changes[name] = _map_leaves(move, getattr(self, name))
        moved = self.changed(**changes) if changes else self
        kids = [child._from_theta(theta) for _, child in moved.children()]
        return moved.with_children(kids) if kids else moved  # type: ignore[return-value]

    def fix(self, *names: str) -> Self:
        """The kernel with these parameters held: a full name, or a bare one for all of that name below.

        >>> from mercer import RBF
        >>> (2.0 * RBF(1.0)).fix("lengthscale")
        2.0*RBF(1.0).fix("lengthscale")
        """
        if not names:
            raise ParameterError(f"name at least one parameter to fix; this kernel has {self._names()}.")
        out = self
        for name in names:
            out = out._mark(name, lambda k, own: k.with_tuning(fixed=k.fixed_names | {own}))
        return out

    def bounded(self, **bounds: Bounds) -> Self:
        """The kernel with these parameters kept between two numbers.

        >>> from mercer import RBF
        >>> RBF(1.0).bounded(lengthscale=(0.1, 10))
        RBF(1.0).bounded(lengthscale=(0.1, 10.0))
        """
        if not bounds:
            raise ParameterError(f"name at least one parameter to bound; this kernel has {self._names()}.")
        out = self
        for name, box in bounds.items():

            def mark(k: Kernel, own: str, box: Any = box) -> Kernel:
                pair = check_bounds(box, getattr(k, own), dict(k.own_domains())[own], own)
                return k.with_tuning(bounds=tuple(sorted({**dict(k.stated_bounds), own: pair}.items())))

            out = out._mark(name, mark)
        return out

    def _mark(self, name: str, mark: Callable[[Kernel, str], Kernel]) -> Self:
        """Apply `mark` where `name` points: exactly there if it is a full name, else to all bare names below."""
        if not isinstance(name, str):
            raise ParameterError(
                f"parameters are named by text; got {name!r}. This kernel has {self._names()}."
            )
        owners = {p.name.split("[")[0] for p in self.parameters}
        exact = name in owners
        if not exact and name not in {o.split("__")[-1] for o in owners}:
            raise ParameterError(f"{self} has no tunable parameter {name!r}; it has {self._names()}.")
        return self._marked(name, exact, mark)  # type: ignore[return-value]

    def _marked(self, name: str, exact: bool, mark: Callable[[Kernel, str], Kernel]) -> Kernel:
        out: Kernel = self
        if name in dict(self.own_domains()):
            out = mark(out, name)
            if exact:
                return out
        kids = []
        for prefix, child in out.children():
            if exact:
                head, _, rest = name.partition("__")
                kids.append(child._marked(rest, True, mark) if head == prefix else child)
            else:
                kids.append(child._marked(name, False, mark))
        return out.with_children(kids) if kids else out

    def _names(self) -> list[str]:
        return sorted({p.name.split("[")[0] for p in self.parameters})

    def with_tuning(self, fixed: frozenset[str] | None = None, bounds: tuple | None = None) -> Self:
        """A copy with other fixed names or bounds."""
        out = object.__new__(type(self))
        out.__dict__.update(self.__dict__)
        out.__dict__.pop("_tunable_copy", None)
        out.__dict__.pop("_remembered_proof", None)
        object.__setattr__(out, "fixed_names", self.fixed_names if fixed is None else fixed)
        object.__setattr__(out, "stated_bounds", self.stated_bounds if bounds is None else bounds)
        return out

    def changed(self, **changes: Any) -> Self:
        """A copy with other field values, checked like new ones; fixed names and bounds stay."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        new = type(self)(**{**values, **changes})
        for name, box in self.stated_bounds:
            check_bounds(box, getattr(new, name), dict(self.own_domains())[name], name)
        return new.with_tuning(self.fixed_names, self.stated_bounds)

    # ── the scikit-learn protocol ───────────────────────────────────────────────────────────────────────────

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The fields by name; with `deep`, those of the parts too, as `k1__lengthscale`."""
        kids = dict(self.children())
        out: dict[str, Any] = {
            f.name: getattr(self, f.name)
            for f in dataclasses.fields(self)  # type: ignore[arg-type]
            if not f.metadata.get("children")
        }
        out.update({k: v for k, v in kids.items() if k not in out})
        if deep:
            for prefix, child in kids.items():
                out.update({f"{prefix}__{k}": v for k, v in child.get_params().items()})
        return out

    def set_params(self, **params: Any) -> Self:
        """The kernel with other values, by the names of `get_params`.

        Kernels are values, so this returns a new kernel. Only a copy made by `sklearn.base.clone` is changed in
        place, which is what lets `GridSearchCV` tune `kernel__lengthscale` inside any estimator.

        >>> from mercer import RBF
        >>> (2.0 * RBF(1.0)).set_params(kernel__lengthscale=3.0)
        2.0*RBF(3.0)
        """
        new = self._with_params(params)
        if self._tunable_copy and params:
            object.__setattr__(self, "__class__", type(new))
            self.__dict__.clear()
            self.__dict__.update(new.__dict__, _tunable_copy=True)
            return self
        return new

    def _with_params(self, params: dict[str, Any]) -> Self:
        kids = dict(self.children())
        known = self.get_params(deep=False)
        own: dict[str, Any] = {}
        nested: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            head, _, rest = key.partition("__")
            if head not in known or (rest and head not in kids):
                raise ParameterError(
                    f"Invalid parameter {key!r} for kernel {self}. Valid parameters are: {sorted(self.get_params())}."
                )
            if rest:
                nested.setdefault(head, {})[rest] = value
            elif head in kids:
                kids[head] = as_kernel(value)
            else:
                own[head] = value
        out = self.changed(**own) if own else self
        for head, changes in nested.items():
            kids[head] = kids[head]._with_params(changes)
        if kids and list(kids.values()) != [child for _, child in out.children()]:
            out = out.with_children(list(kids.values()))  # type: ignore[assignment]
        return out

    def __sklearn_clone__(self) -> Self:
        out = self.with_tuning()
        object.__setattr__(out, "_tunable_copy", True)
        return out

    # ── judge ───────────────────────────────────────────────────────────────────────────────────────────────

    def validity(
        self, samples: Any = None, *, columns: int | None = None, seconds: float = 60.0, random_state: int = 0
    ) -> Validity:
        """`Proved` with its proof, `Refuted` with a witness, or `Undecided` with what was tried.

        A proof that rests on something you declared is a `ProvedAsDeclared`. `samples` are things the kernel takes, from
        which a witness may be sought (needed when they are not vectors); `columns` limits the search to points of that
        dimension; an open lengthscale is then taken as 1. The search does a fixed amount of work and its answer is kept; `seconds` only stops it early.

        >>> from mercer import RBF
        >>> print(RBF(2.0).validity())
        RBF(2.0) is a kernel.
        ...
        """
        from mercer.kernels.proofs.validity import judge

        return judge(self, samples, columns=columns, seconds=seconds, random_state=random_state)

    def features(
        self,
        d: int | Sequence[str] | None = None,
        *,
        redundant: bool = False,
        memory: int | str = "1GiB",
    ) -> FeatureMap:
        """The explicit map φ with φ(x)·φ(z) = k(x, z), where it is finite.

        `d` is the number of columns, or their names. With `redundant`, products are listed in every order (x1*x2 and
        x2*x1), as books write φ. A map that would not fit in `memory` is refused with its size.

        >>> from mercer import Linear
        >>> print((Linear() + 1).features(["age", "dose"]))
        φ of Linear() + Constant(1.0): 2 columns -> 3 features (1, age, dose)
        """
        from mercer.kernels.maps.explicit import build

        return build(self, d, redundant=redundant, memory=memory)

    def feature_dimension(self, d: int | Sequence[str], *, redundant: bool = False) -> int | float:
        """How many coordinates φ has for d columns: an exact integer, or infinity; nothing is built.

        >>> from mercer import RBF, Polynomial
        >>> Polynomial(7).feature_dimension(256), RBF().feature_dimension(256)
        (15932831090241, inf)
        """
        from mercer.kernels.maps.explicit import dimension

        return dimension(self, d, redundant=redundant)


# ── helpers ─────────────────────────────────────────────────────────────────────────────────────────────────


def _gram_room() -> Any:
    """The one door from a kernel up to the room that evaluates it; everything else points down."""
    from mercer import gram

    return gram


def is_number(value: Any) -> bool:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    return is_real(value)


def as_kernel(value: Any) -> Kernel:
    """A kernel, its text, or a number (as a constant) — as a kernel."""
    from mercer.kernels.leaves.special import Constant
    from mercer.kernels.text import parse

    if isinstance(value, Kernel):
        return value
    if isinstance(value, str):
        return parse(value)
    if is_number(value):
        return Constant(value)
    raise ParameterError(f"a kernel was expected, or its text such as 'RBF(2.0)'; got {value!r}.")


def _flatten(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, tuple):
        for i, v in enumerate(value):
            yield from _flatten(f"{name}[{i}]", v)
    else:
        yield name, value


def _map_leaves(function: Callable[[float], float], value: Any) -> Any:
    return tuple(_map_leaves(function, v) for v in value) if isinstance(value, tuple) else function(value)


def _hashable(value: Any) -> Any:
    if isinstance(value, slice):
        return ("slice", value.start, value.stop, value.step)
    return tuple(_hashable(v) for v in value) if isinstance(value, tuple) else value
