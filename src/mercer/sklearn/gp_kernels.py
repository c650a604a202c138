"""scikit-learn's Gaussian process kernels as kernels of mercer, and back.

    to_mercer(kernel)   the same function of two points, with the same bounds and fixed parameters
    to_peer(kernel)     the way back
    operator(kernel, X) the Gram operator of the peer's kernel on X; `contract` is in the order of its theta

Values agree to rounding. The peer's theta is the logarithm of every free parameter, in the alphabetical order
of names in each part; a link says where each of them is found in mercer's kernel and how its derivative is
scaled. What has no counterpart is evaluated by its own `__call__`, gradient included: a user's subclass,
`additive_chi2`, and `ExpSineSquared` on several columns, whose sine is of the distance and not per column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.gaussian_process import kernels as peer

from mercer import kernels as ours
from mercer.arrays import Rows
from mercer.errors import InputError, ParameterError
from mercer.gram import GramOperator, Precomputed, Tiles
from mercer.kernels import algebra
from mercer.kernels.base import Kernel
from mercer.kernels.leaves.leaf import Leaf
from mercer.typing import Array, Table

Lengthscale: TypeAlias = float | tuple[float, ...]
# the place of a parameter in `kernel.parameters`, None where it has none, and the factor of its derivative
Link: TypeAlias = tuple[int | None, float]


@dataclass(frozen=True)
class Rule:
    """One parameter: its name there, its name here, the value here, and d log(here) / d log(there)."""

    theirs: str
    ours: str | None
    convert: Callable[[float], float]
    factor: float


@dataclass(frozen=True)
class Translation:
    """mercer's kernel, and a link to it for each number of the peer's theta."""

    kernel: Kernel
    links: tuple[Link, ...]

    def gradient(self, by_parameter: Array) -> Array:
        """Derivatives by the logarithm of every parameter of ours, as derivatives by the peer's theta."""
        return np.array([0.0 if i is None else f * by_parameter[i] for i, f in self.links])


class _Untranslatable(Exception):
    pass


@dataclass(frozen=True)
class Pair:
    """A leaf there and the same leaf here, with the names of its parameters there and here."""

    theirs: type[peer.Kernel]
    ours: type[Leaf]
    # In the alphabetical order of the peer's theta.
    tuned: dict[str, str]
    untuned: tuple[str, ...] = ()
    # What a kernel there has that is one of several here; such a pair leads there only.
    only: dict[str, float] = field(default_factory=dict)
    # Whether a lengthscale may be a list, and whether the two are the same on one column only.
    lists: bool = False
    one_column: bool = False


LENGTH = {"length_scale": "lengthscale"}
PAIRS = (
    Pair(peer.ConstantKernel, ours.Constant, {"constant_value": "value"}),
    Pair(peer.WhiteKernel, ours.White, {"noise_level": "noise"}),
    Pair(peer.RBF, ours.RBF, LENGTH, lists=True),
    Pair(peer.Matern, ours.Matern, LENGTH, ("nu",), lists=True),
    Pair(peer.Matern, ours.Exponential, LENGTH, only={"nu": 0.5}, lists=True),
    Pair(peer.RationalQuadratic, ours.RationalQuadratic, {"alpha": "alpha", **LENGTH}),
    Pair(peer.ExpSineSquared, ours.Periodic, {**LENGTH, "periodicity": "period"}, one_column=True),
)


# ── there to here ───────────────────────────────────────────────────────────────────────────────────────────


def _lengthscale(value: float | Array, columns: int | None) -> Lengthscale:
    """One number, or one for each column; a list of one counts as a number, as in scikit-learn."""
    values: Array = np.squeeze(value).astype(np.float64)
    if values.ndim == 0:
        return float(values)
    if values.ndim > 1 or (columns is not None and len(values) != columns):
        raise _Untranslatable("the number of length scales is not that of the columns")
    return tuple(values.tolist())


def _same(value: float) -> float:
    return value


def _leaf(k: peer.Kernel, columns: int | None) -> tuple[Kernel, list[Rule]]:
    """The counterpart of one leaf, and its rules in the order of the peer's theta."""
    kind = type(k)
    if kind is peer.DotProduct:
        square = Rule("sigma_0", "value", lambda v: v**2, 2.0)
        return ours.Constant(k.sigma_0**2) + ours.Linear(), [square]
    if kind is peer.PairwiseKernel:
        return _pairwise(k)
    if kind is peer.Matern and k.nu == np.inf:
        return _leaf(peer.RBF(k.length_scale, k.length_scale_bounds), columns)
    for pair in PAIRS:
        if pair.theirs is kind and not pair.only and (columns == 1 or not pair.one_column):
            return _counterpart(k, pair, columns)
    raise _Untranslatable(f"{kind.__name__} has no counterpart")


def _counterpart(k: peer.Kernel, pair: Pair, columns: int | None) -> tuple[Kernel, list[Rule]]:
    values = {name: getattr(k, name) for name in pair.untuned}
    for theirs, name in pair.tuned.items():
        value = getattr(k, theirs)
        if pair.lists:
            value = _lengthscale(value, columns)
        elif np.iterable(value):
            raise _Untranslatable(f"{theirs} is a list")
        values[name] = value
    rules = [Rule(theirs, name, _same, 1.0) for theirs, name in pair.tuned.items()]
    return pair.ours(**values), rules


def _pairwise(k: peer.Kernel) -> tuple[Kernel, list[Rule]]:
    more = dict(k.pairwise_kernels_kwargs or {})
    gamma = k.gamma
    metric = k.metric
    if metric == "linear" and not more:
        return ours.Linear(), [Rule("gamma", None, _same, 0.0)]
    if metric == "cosine" and not more:
        return ours.CosineSimilarity(), [Rule("gamma", None, _same, 0.0)]
    if metric == "rbf" and not more:
        return ours.RBF((2 * gamma) ** -0.5), [Rule("gamma", "lengthscale", lambda g: (2 * g) ** -0.5, -0.5)]
    if metric == "laplacian" and not more:
        return ours.Laplacian(1 / gamma), [Rule("gamma", "lengthscale", lambda g: 1 / g, -1.0)]
    if metric == "chi2" and not more:
        return ours.Chi2(gamma), [Rule("gamma", "gamma", _same, 1.0)]
    if metric in ("poly", "polynomial") and set(more) <= {"degree", "coef0"}:
        made = ours.Polynomial(more.get("degree", 3), offset=more.get("coef0", 1.0), scale=gamma)
        return made, [Rule("gamma", "scale", _same, 1.0)]
    if metric == "sigmoid" and set(more) <= {"coef0"}:
        return ours.Sigmoid(gamma, offset=more.get("coef0", 1.0)), [Rule("gamma", "scale", _same, 1.0)]
    raise _Untranslatable(f"PairwiseKernel with metric {metric!r} and {more} has no counterpart")


def translate(kernel: peer.Kernel, columns: int | None) -> Translation | None:
    """mercer's kernel for the peer's on so many columns, all parameters free; None where there is none.

    >>> found = translate(peer.ConstantKernel(2.0) * peer.RBF(3.0) + peer.WhiteKernel(0.5), 2)
    >>> print(found.kernel, found.links)
    Constant(2.0)*RBF(3.0) + White(0.5) ((0, 1.0), (1, 1.0), (2, 1.0))
    """
    try:
        return _remembered(_Stated(_state(kernel), kernel), columns)
    except TypeError:
        # Something in it has no hash.
        return _translated(kernel, columns)


def _translated(kernel: peer.Kernel, columns: int | None) -> Translation | None:
    try:
        made, links = _walk(kernel, columns, marked=False)
    except (_Untranslatable, ParameterError):
        return None
    return Translation(made, tuple(links))


@dataclass(frozen=True)
class _Stated:
    """A kernel of the peer, which may change, by what it is made of now."""

    state: tuple[object, ...]
    kernel: peer.Kernel = field(compare=False)


@lru_cache(maxsize=64)
def _remembered(stated: _Stated, columns: int | None) -> Translation | None:
    return _translated(stated.kernel, columns)


def _state(k: peer.Kernel) -> tuple[object, ...]:
    """All that a kernel is made of, as something to compare by; types count, since 1 == True."""
    kind = type(k)
    if kind is peer.Sum or kind is peer.Product:
        return (kind, _state(k.k1), _state(k.k2))
    if kind is peer.Exponentiation:
        return (kind, _state(k.kernel), k.exponent)
    parts: list[object] = [kind]
    for value in vars(k).values():
        parts.append(type(value))
        parts.append((value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value)
    return tuple(parts)


def _walk(k: peer.Kernel, columns: int | None, *, marked: bool) -> tuple[Kernel, list[Link]]:
    kind = type(k)
    if kind is peer.Sum or kind is peer.Product:
        a, left = _walk(k.k1, columns, marked=marked)
        b, right = _walk(k.k2, columns, marked=marked)
        shift = len(a.parameters)
        moved: list[Link] = [(None if i is None else i + shift, f) for i, f in right]
        return (a + b if kind is peer.Sum else a * b), left + moved
    if kind is peer.Exponentiation:
        inner, links = _walk(k.kernel, columns, marked=marked)
        if k.exponent != int(k.exponent) and inner.root_proof() is None:
            raise _Untranslatable("a fractional power of a kernel that may be negative")
        return algebra.Power(inner, k.exponent), links
    made, rules = _leaf(k, columns)
    return (_marked(made, k, rules) if marked else made), _links(made, k, rules)


def _links(made: Kernel, k: peer.Kernel, rules: list[Rule]) -> list[Link]:
    names = [p.name.split("[")[0].split("__")[-1] for p in made.parameters]
    out: list[Link] = []
    for rule in rules:
        if getattr(k, f"hyperparameter_{rule.theirs}").fixed:
            continue
        if rule.ours is None:
            out.append((None, 0.0))
        else:
            out += [(i, rule.factor) for i, name in enumerate(names) if name == rule.ours]
    return out


def _marked(made: Kernel, k: peer.Kernel, rules: list[Rule]) -> Kernel:
    """With the bounds and fixed parameters of the peer's leaf."""
    tuned = {p.name.split("[")[0].split("__")[-1] for p in made.parameters}
    for name in sorted(tuned - {rule.ours for rule in rules}):
        made = made.fix(name)
    for rule in rules:
        if rule.ours is None:
            continue
        there = getattr(k, f"hyperparameter_{rule.theirs}")
        if there.fixed:
            made = made.fix(rule.ours)
            continue
        ends = sorted(rule.convert(float(e)) for e in (there.bounds[:, 0].min(), there.bounds[:, 1].max()))
        try:
            made = made.bounded(**{rule.ours: (ends[0], ends[1])})
        except ParameterError:
            # a value outside its bounds, or infinite ones, which mercer has no use for
            continue
    return made


def to_mercer(kernel: peer.Kernel, columns: int | None = None) -> Kernel:
    """The peer's kernel as mercer writes it, with its bounds and fixed parameters.

    `columns` is the number of columns of X where the answer depends on it (`ExpSineSquared` needs 1). Bounds
    that differ by column become their hull; a value that lies outside its bounds gets none.

    >>> to_mercer(peer.ConstantKernel(2.0, "fixed") * peer.RBF([1.0, 3.0], (0.1, 10.0)))
    Constant(2.0).fix("value")*RBF([1.0, 3.0]).bounded(lengthscale=(0.1, 10.0))
    """
    try:
        return _walk(kernel, columns, marked=True)[0]
    except _Untranslatable as error:
        raise ParameterError(f"{kernel!r} cannot be written in mercer: {error}.") from error


# ── here to there ───────────────────────────────────────────────────────────────────────────────────────────


def to_peer(kernel: Kernel) -> peer.Kernel:
    """mercer's kernel as one of scikit-learn's; what it has no word for is refused.

    >>> to_peer(2.0 * ours.RBF(3.0) + ours.White(0.5))
    1.41**2 * RBF(length_scale=3) + WhiteKernel(noise_level=0.5)
    """
    if isinstance(kernel, algebra.Sum | algebra.Product):
        parts = [to_peer(part) for part in kernel.parts]
        out = parts[0]
        for part in parts[1:]:
            out = out + part if isinstance(kernel, algebra.Sum) else out * part
        return out
    if isinstance(kernel, algebra.Scaled):
        return peer.ConstantKernel(kernel.scale, _bounds(kernel, "scale")) * to_peer(kernel.kernel)
    if isinstance(kernel, algebra.Power):
        return peer.Exponentiation(to_peer(kernel.kernel), kernel.exponent)
    if isinstance(kernel, ours.Linear):
        return peer.DotProduct(0.0, "fixed")
    for pair in PAIRS:
        if isinstance(kernel, pair.ours):
            values = {theirs: kernel.closed_value(name) for theirs, name in pair.tuned.items()}
            if pair.lists or not any(isinstance(value, tuple) for value in values.values()):
                return _peer_of(kernel, pair, values)
    raise ParameterError(
        f"scikit-learn has no kernel for {kernel}. It has sums, products and powers of Constant, White, "
        "Linear, RBF, Matern, RationalQuadratic and, on one column, Periodic."
    )


def _peer_of(kernel: Leaf, pair: Pair, values: dict[str, Lengthscale]) -> peer.Kernel:
    given = {name: np.array(value) if isinstance(value, tuple) else value for name, value in values.items()}
    bounds = {f"{theirs}_bounds": _bounds(kernel, name) for theirs, name in pair.tuned.items()}
    others = {name: getattr(kernel, name) for name in pair.untuned}
    return pair.theirs(**given, **bounds, **others, **pair.only)


def _bounds(kernel: Kernel, name: str) -> tuple[float, float] | str:
    if name in kernel.fixed_names:
        return "fixed"
    return dict(kernel.stated_bounds).get(name, (1e-5, 1e5))


# ── on data ─────────────────────────────────────────────────────────────────────────────────────────────────


class Translated(Tiles):
    """The Gram operator of a translated kernel; `contract` gives derivatives by the peer's theta."""

    def __init__(self, translation: Translation, X: Rows, Z: Rows | None = None) -> None:
        super().__init__(translation.kernel, X, Z, dtype=np.float64)
        self.translation = translation

    def contract(
        self,
        U: npt.ArrayLike | None = None,
        V: npt.ArrayLike | None = None,
        *,
        W: npt.ArrayLike | None = None,
    ) -> Array:
        parameters = self.kernel.parameters
        logs = np.zeros(len(parameters))
        logs[[i for i, p in enumerate(parameters) if p.free]] = super().contract(U, V, W=W)
        return self.translation.gradient(logs)


class BlackBox(Precomputed):
    """The Gram matrix that the peer's kernel computes by itself, and its gradient when it is asked for."""

    def __init__(self, kernel: peer.Kernel, X: Table) -> None:
        super().__init__(np.asarray(kernel(X), dtype=np.float64))
        self.kernel = kernel
        self.X = X

    def contract(
        self,
        U: npt.ArrayLike | None = None,
        V: npt.ArrayLike | None = None,
        *,
        W: npt.ArrayLike | None = None,
    ) -> Array:
        U, V, weights = self._weights(U, V, W)
        if weights is None:
            assert U is not None and V is not None
            weights = U @ V.T
        _, gradient = self.kernel(self.X, eval_gradient=True)
        found: Array = np.einsum("ij,ijk->k", weights, gradient, optimize=True)
        return found


@dataclass(frozen=True, eq=False)
class Sample:
    """Training inputs, checked once: as numbers, or as things that only the peer's kernel understands."""

    X: Table
    rows: Rows | None

    @classmethod
    def of(cls, X: Table, vectors: bool) -> Sample:
        if not vectors:
            return cls(X, None)
        try:
            return cls(X, Rows.of(np.asarray(X, dtype=np.float64), "X"))
        except (InputError, TypeError, ValueError):
            return cls(X, None)

    def translate(self, kernel: peer.Kernel) -> Translation | None:
        return None if self.rows is None else translate(kernel, self.rows.width)


def operator(kernel: peer.Kernel, sample: Sample) -> GramOperator:
    """The Gram operator of the peer's kernel on a sample."""
    found = sample.translate(kernel)
    if found is None or sample.rows is None:
        return BlackBox(kernel, sample.X)
    return Translated(found, sample.rows)


class Path:
    """The Gram operators of one kernel of the peer at many thetas, for a search.

    Every rule of translation is a power law, so that a step of their theta is one of our logarithms: the
    kernel is translated once and moved. One that cannot be is given each theta, and asked.

    >>> path = Path(peer.RBF(1.0), Sample.of(np.zeros((2, 1)), True))
    >>> round(path.at(np.log([3.0])).kernel.lengthscale, 12)
    3.0
    """

    def __init__(self, kernel: peer.Kernel, sample: Sample) -> None:
        self.kernel = kernel
        self.sample = sample
        self.begin = np.array(kernel.theta)
        self.translation = sample.translate(kernel)
        found = self.translation
        if found is not None and not all(p.free and p.domain.logarithmic for p in found.kernel.parameters):
            self.translation = None

    def at(self, theta: Array) -> GramOperator:
        found = self.translation
        if found is None or self.sample.rows is None:
            self.kernel.theta = theta
            return operator(self.kernel, self.sample)
        logs = found.kernel.theta
        for (place, factor), step in zip(found.links, theta - self.begin, strict=True):
            if place is not None:
                logs[place] += factor * step
        return Translated(Translation(found.kernel.with_theta(logs), found.links), self.sample.rows)


def cross(kernel: peer.Kernel, new: Sample, old: Sample) -> Array:
    """k(new, old)."""
    found = new.translate(kernel)
    if found is None or new.rows is None or old.rows is None:
        return np.asarray(kernel(new.X, old.X), dtype=np.float64)
    return Translated(found, new.rows, old.rows).dense()


def diagonal(kernel: peer.Kernel, new: Sample) -> Array:
    """k(x, x) of every row."""
    found = new.translate(kernel)
    if found is None or new.rows is None:
        return np.array(kernel.diag(new.X), dtype=np.float64)
    return np.array(found.kernel.diag(new.rows), dtype=np.float64)
