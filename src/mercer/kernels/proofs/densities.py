"""Spectral densities that a user declares: what can be said against them.

A density ρ of d columns makes the kernel k(δ) = ∫ ρ(‖ω‖) cos(ω·δ) dω over all ω in d dimensions, and by
Bochner's theorem ρ ≥ 0 makes it a valid one. A declared density is believed only after it was looked at: it
must not be negative anywhere on a fine grid, and it must give the function back. The comparison smooths both
sides with a Gaussian of width h,

    E f(δ + h g) = ∫ ρ(‖ω‖) e^(-h²‖ω‖²/2) cos(ω·δ) dω,    g standard normal,

so that jumps and heavy tails of either are integrated over a bounded range; and for ρ ≥ 0 no value of f is
farther from the right side than f(0) is at δ = 0. One clear disagreement is a contradiction; none is no
proof, and the answer says that it rests on the user's word.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, ive, jv

from mercer.typing import Array, Flags

Profile = Callable[[Array], Array]

_AGREE = 1e-7  # of f(0)
_BLURRED = 1e-4  # of f(0): a quadrature with a larger error compares nothing
_ROUNDING = 1e-9  # of the largest density met: a negative one below it may be rounding
_ACCOUNTED = 0.9  # of f(0): how much of it the density must give within reach
_ALL = 0.9999  # of f(0): what is left then would not be seen by smoothing less
_FINER = 4.0  # from one smoothing to the next
_SMOOTHINGS = 7
_FEW = np.array([0.0, 0.3, 0.7, 1.3, 2.1, 3.7])  # differences, in units of the width of f


@dataclass(frozen=True)
class Band:
    """Frequencies from `low` to `high` at which a density is negative; `deepest` is where it is most so."""

    low: float
    deepest: float
    high: float


@dataclass(frozen=True)
class Verdict:
    """What speaks against a declared density, in a sentence (or nothing); where it is negative, if it is."""

    doubt: str = ""
    band: Band | None = None


def judge_density(f: Callable[[Array], Array], density: Profile, columns: int) -> Verdict:
    """Look at a density declared for f, a function of differences of so many columns."""
    along = np.eye(columns)[0]
    try:
        with np.errstate(all="ignore"):
            return _judge(lambda s: f(s[:, None] * along), f, _readable(density), columns)
    except _Doubt as doubt:
        return Verdict(str(doubt), doubt.band)


class _Doubt(Exception):
    """A sentence against the declaration."""

    def __init__(self, sentence: str, band: Band | None = None) -> None:
        super().__init__(sentence)
        self.band = band


def _readable(density: Profile) -> Profile:
    """The density as a function from frequencies > 0 to numbers; `_Doubt` where it gives none."""

    def read(w: Array) -> Array:
        try:
            values = np.asarray(density(w), dtype=float)
        except Exception as error:  # whatever a user's function raises
            raise _Doubt(
                f"The declared density cannot be read: it raises {type(error).__name__} ({error})."
            ) from error
        if values.shape != w.shape:
            raise _Doubt(
                f"The declared density cannot be read: for frequencies of shape {w.shape} it returns shape "
                f"{values.shape}."
            )
        if not np.all(np.isfinite(values)):
            i = int(np.argmin(np.isfinite(values)))
            raise _Doubt(f"The declared density cannot be read: at ‖ω‖ = {w[i]:.6g} it is {values[i]}.")
        return values

    return read


def _judge(profile: Profile, f: Profile, density: Profile, columns: int) -> Verdict:
    width = _width(profile)
    _refuse_negative(density, width)
    _require_largest_at_zero(profile, width)
    _require_radial(f, profile, columns, width)
    _compare(profile, density, columns, width)
    return Verdict()


def _width(profile: Profile) -> float:
    """Where f first falls below half of f(0)."""
    top = float(profile(np.zeros(1))[0])
    if not (math.isfinite(top) and top > 0):
        raise _Doubt(f"f(0) is {top:.6g}, and a kernel with a density has f(0) > 0.")
    s = np.exp2(np.arange(-60.0, 61.0))
    low = np.abs(profile(s)) <= 0.5 * top
    if not low.any():
        raise _Doubt(
            f"f does not fall below half of f(0) up to ‖δ‖ = {s[-1]:.3g}, and a kernel with a density does."
        )
    return float(s[int(np.argmax(low))])


def _refuse_negative(density: Profile, width: float) -> None:
    near = np.linspace(0.0, 64.0, 8193)[1:]
    far = np.geomspace(1e-4, 1e5, 4097)
    w = np.unique(np.concatenate([near, far])) / width
    values = density(w)
    i = int(np.argmin(values))
    if values[i] >= 0:
        return
    where = f"at ‖ω‖ = {w[i]:.6g} it is {values[i]:.6g}"
    if values[i] < -_ROUNDING * float(np.abs(values).max()):
        raise _Doubt(f"The declared density is negative: {where}.", _band(w, values < 0, i))
    raise _Doubt(
        f"The declared density goes below 0: {where}. If that is rounding, write it so that it does not, for "
        "example with np.maximum."
    )


def _band(w: Array, negative: Flags, i: int) -> Band:
    """The neighbours of w[i] up to where the density is not negative any more."""
    before = np.flatnonzero(~negative[:i])
    after = np.flatnonzero(~negative[i:])
    low = w[before[-1]] if len(before) else 0.0
    high = w[i + after[0]] if len(after) else w[-1]
    return Band(float(low), float(w[i]), float(high))


def _require_largest_at_zero(profile: Profile, width: float) -> None:
    s = width * np.concatenate([np.geomspace(1e-9, 1.0, 91), np.linspace(1.0, 40.0, 391)])
    values = np.abs(profile(s))
    top = float(profile(np.zeros(1))[0])
    i = int(np.argmax(values))
    if not values[i] <= top * (1 + _ROUNDING):
        raise _Doubt(
            f"f is larger at ‖δ‖ = {s[i]:.6g} than at 0, which no kernel is: {values[i]:.9g} and {top:.9g}."
        )


def _require_radial(f: Profile, profile: Profile, columns: int, width: float) -> None:
    """f must depend on ‖δ‖ alone, as the declared density depends on ‖ω‖ alone."""
    r = np.random.default_rng(0)
    s = width * np.linspace(0.1, 4.0, 40)
    top = abs(float(profile(np.zeros(1))[0]))
    expected = profile(s)
    directions = r.normal(size=(40, columns))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    for u in (directions, -np.abs(directions)):
        # a step of f may lie between two differences that are one rounding apart
        apart = np.abs(f(s[:, None] * u) - expected) > 1e-6 * top
        if np.count_nonzero(apart) > 1:
            i = int(np.argmax(apart))
            raise _Doubt(
                "The declared density is a function of ‖ω‖, but f is none of ‖δ‖: it differs between two δ "
                f"of length {s[i]:.6g}."
            )


# ── comparing ───────────────────────────────────────────────────────────────────────────────────────────────


def _compare(profile: Profile, density: Profile, d: int, width: float) -> None:
    top = float(profile(np.zeros(1))[0])
    h = width
    accounted = 0.0
    for step in range(_SMOOTHINGS):
        # far beyond the width of the smoothing the cosine would turn thousands of times
        r = width * _FEW if step < 3 else h * np.array([0.0, 1.0, 3.0])
        _compare_smoothed(profile, density, d, r, h)
        accounted = float(_transform(density, d, r[:1], h)[0][0]) / top
        if step >= 2 and accounted >= _ALL:
            return
        h /= _FINER
    if accounted < _ACCOUNTED:
        raise _Doubt(
            f"The declared density gives {accounted:.3g} of f(0) for frequencies up to "
            f"{_reach(d) / (_FINER * h):.3g}, and "
            "the rest is not in sight."
        )


def _compare_smoothed(profile: Profile, density: Profile, d: int, r: Array, h: float) -> None:
    top = float(profile(np.zeros(1))[0])
    by_density, error = _transform(density, d, r, h)
    by_function, other = _smoothed(profile, d, r, h)
    if not error + other <= _BLURRED * top:
        raise _Doubt(
            f"The declared density could not be compared with f: smoothed over a width of {h:.3g}, their "
            "integrals are only "
            f"known to {error + other:.2g}."
        )
    allowed = _AGREE * top + 2 * (error + other)
    for i in np.flatnonzero(~(np.abs(by_density - by_function) <= allowed)):
        raise _Doubt(
            f"By quadrature, f is not the transform of the declared density: at ‖δ‖ = {r[i]:.6g}, smoothed "
            f"over a width of {h:.3g}, "
            f"f gives {by_function[i]:.9g} and the density {by_density[i]:.9g}."
        )
    found = profile(r)
    for i in np.flatnonzero(~(np.abs(found - by_density) <= top - by_density[0] + allowed)):
        raise _Doubt(
            f"By quadrature, f is not the transform of the declared density: at ‖δ‖ = {r[i]:.6g}, f gives "
            f"{found[i]:.9g}, and the "
            f"density {by_density[i]:.9g} give or take {max(top - by_density[0], 0.0):.3g}."
        )


def _reach(d: int) -> float:
    """Beyond so many standard deviations, a Gaussian in d dimensions has nothing that float64 sees."""
    return 9.0 + 2 * math.sqrt(d)


def _transform(density: Profile, d: int, r: Array, h: float) -> tuple[Array, float]:
    """∫ ρ(‖ω‖) e^(-h²‖ω‖²/2) cos(ω·δ) dω for ‖δ‖ in r, and an estimate of its error.

    In polar coordinates, where the mean of cos(ω·δ) over all directions is a Bessel function of ‖ω‖‖δ‖.
    """
    sphere = 2 * math.pi ** (d / 2) / math.gamma(d / 2)

    def integrand(w: Array) -> Array:
        weight = sphere * density(w) * w ** (d - 1) * np.exp(-0.5 * (h * w) ** 2)
        return np.asarray(weight * _mean_cosine(d, r[:, None] * w))

    top = _reach(d) / h
    edges = np.concatenate([[0.0], top * np.exp2(np.arange(-30.0, -8.0)), top * np.linspace(0, 1, 257)[1:]])
    return integrate(integrand, edges)


def _mean_cosine(d: int, t: Array) -> Array:
    """The mean of cos(t u₁) over unit vectors u in d dimensions: Γ(d/2) (2/t)^ν J_ν(t), ν = d/2 - 1."""
    if d == 1:
        return np.asarray(np.cos(t))
    nu = d / 2 - 1
    safe = np.where(t == 0, 1.0, t)
    return np.where(t == 0, 1.0, math.gamma(d / 2) * (2 / safe) ** nu * jv(nu, safe))


def _smoothed(profile: Profile, d: int, r: Array, h: float) -> tuple[Array, float]:
    """E f(δ + h g) for ‖δ‖ in r, and an estimate of its error; ‖δ + h g‖/h is noncentral chi distributed."""
    out = np.empty(len(r))
    worst = 0.0
    for i, centre in enumerate((r / h).tolist()):
        low = max(0.0, centre - _reach(d))
        edges = np.linspace(low, centre + _reach(d), 129)

        def integrand(s: Array, centre: float = centre) -> Array:
            return np.asarray(profile(h * s) * _noncentral_chi(d, s, centre))[None, :]

        value, error = integrate(integrand, edges)
        out[i] = value[0]
        worst = max(worst, error)
    return out, worst


def _noncentral_chi(d: int, s: Array, centre: float) -> Array:
    """The density of ‖centre e₁ + g‖ at s."""
    if centre == 0:
        return np.asarray(
            np.exp((1 - d / 2) * math.log(2) - gammaln(d / 2) + (d - 1) * np.log(s) - 0.5 * s**2)
        )
    nu = d / 2 - 1
    return np.asarray(s * (s / centre) ** nu * ive(nu, centre * s) * np.exp(-0.5 * (s - centre) ** 2))


# ── quadrature ──────────────────────────────────────────────────────────────────────────────────────────────


def _clenshaw_curtis(n: int) -> tuple[Array, Array]:
    """Nodes cos(πk/n), which include both ends, and their weights; n is even."""
    k = np.arange(n + 1)
    j = np.arange(1, n // 2 + 1)
    factor = np.where(j == n // 2, 1.0, 2.0) / (4.0 * j**2 - 1)
    weights = (1 - np.cos(2 * np.pi * np.outer(k, j) / n) @ factor) * 2 / n
    weights[[0, -1]] /= 2
    return np.cos(np.pi * k / n), weights


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(15)
_OTHER_NODES, _OTHER_WEIGHTS = _clenshaw_curtis(16)
_INSIDE = 1 - 1e-10  # where the end of a panel is asked for: nothing need be defined at the ends of the range
_HALVINGS = 48
_MOST_PANELS = 20_000
_FINE = 1e-12  # of the integral of the size


def integrate(g: Callable[[Array], Array], edges: Array) -> tuple[Array, float]:
    """∫ g over [edges[0], edges[-1]], several functions at once, and an estimate of the largest error.

    Gauss' rule and that of Clenshaw and Curtis on every panel; one on which they differ is halved, so that
    kinks and jumps are closed in on. (Two rules of Gauss would agree on a jump between the end of a panel and
    their first nodes.)
    """
    a = edges[:-1]
    b = edges[1:]
    total: Array | float = 0.0
    size = 0.0
    error = 0.0
    for halving in range(_HALVINGS):
        fine, mass = _rule(g, a, b, _NODES, _WEIGHTS)
        other, _ = _rule(g, a, b, _INSIDE * _OTHER_NODES, _OTHER_WEIGHTS)
        apart = np.abs(fine - other).max(axis=0)
        size = max(size, float(mass.max(axis=0).sum()))
        split = apart > _FINE * size
        last = halving == _HALVINGS - 1 or np.count_nonzero(split) > _MOST_PANELS
        if last:
            split[:] = False
        total = total + fine[:, ~split].sum(axis=1)
        error += float(apart[~split].sum())
        if not split.any():
            break
        middle = 0.5 * (a[split] + b[split])
        a = np.concatenate([a[split], middle])
        b = np.concatenate([middle, b[split]])
    return np.asarray(total), error


def _rule(
    g: Callable[[Array], Array],
    a: Array,
    b: Array,
    nodes: Array,
    weights: Array,
) -> tuple[Array, Array]:
    """∫ g and ∫ |g| on every panel, one row per function."""
    half = 0.5 * (b - a)
    x = 0.5 * (a + b)[:, None] + half[:, None] * nodes
    values = g(x.ravel())
    values = values.reshape(len(values), *x.shape)
    return (values @ weights) * half, (np.abs(values) @ weights) * half
