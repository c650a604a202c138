"""Vector maths against 40-digit arithmetic: at most 2 ulp, and honest special values."""

import mpmath
import numpy as np
import pytest

from mercer import _core

EXACT = {
    "vexp": mpmath.exp,
    "vlog": mpmath.log,
    "vsin": mpmath.sin,
    "vcos": mpmath.cos,
    "vtanh": mpmath.tanh,
    "vacos": mpmath.acos,
    "vlog1p": mpmath.log1p,
}


def call(name, x, *args):
    out = np.empty_like(x)
    getattr(_core, name)(x, *args, out)
    return out


def samples(name, dtype, rng, n=250):
    small = dtype == np.float32
    wide = lambda lo, hi: 10.0 ** rng.uniform(lo, hi, n)
    match name:
        case "vexp":
            x = [
                rng.uniform(-120 if small else -800, 88.7 if small else 709.7, n),
                rng.normal(size=n),
                rng.normal(size=n) * 1e-9,
            ]
        case "vlog":
            x = [
                wide(-37, 38) if small else wide(-307, 308),
                1 + rng.normal(size=n) * 1e-3,
                rng.uniform(0.4, 2.5, n),
            ]
            x += [[1e-310, 5e-324]] if not small else []
        case "vtanh":
            x = [rng.normal(size=n), rng.normal(size=n) * 1e-3, rng.uniform(-30, 30, n)]
        case "vacos":
            x = [rng.uniform(-1, 1, n), 1 - wide(-15, 0), [1.0, -1.0, 0.0]]
        case "vlog1p":
            x = [wide(-30, 30), rng.uniform(0, 1, n), [0.0]]  # the core takes it of h >= 0 only
        case _:
            x = [rng.normal(size=n) * s for s in (1, 100, 1e5, 1e9)] + [np.arange(1, 200) * np.pi / 2]
    return np.concatenate(x).astype(dtype)


def worst_ulp(x, got, exact):
    """Largest error in units of the last place; results below the normal range may be flushed to 0."""
    info, worst = np.finfo(x.dtype), 0.0
    with mpmath.workdps(40):
        for a, b in zip(x, got, strict=True):
            want = exact(mpmath.mpf(float(a)))
            if abs(want) < float(info.tiny):
                assert b == 0 or abs(float(b) - float(want)) <= 4 * float(info.smallest_subnormal)
                continue
            ulp = float(np.spacing(x.dtype.type(abs(float(want)))))
            worst = max(worst, float(abs(mpmath.mpf(float(b)) - want)) / ulp)
    return worst


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", EXACT)
def test_within_two_ulp(isa, name, dtype):
    x = samples(name, dtype, np.random.default_rng(0))
    assert worst_ulp(x, call(name, x), EXACT[name]) <= 2


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("p", [0.5, -0.5, 2.75, -3.25, 0.001, 37.1, -100.7])
def test_pow_within_two_ulp(isa, p, dtype):
    p = float(dtype(p))
    reach = (30 if dtype == np.float32 else 290) / max(1, abs(p))
    x = (10.0 ** np.random.default_rng(1).uniform(-reach, reach, 300)).astype(dtype)
    assert worst_ulp(x, call("vpow", x, p), lambda t: mpmath.power(t, mpmath.mpf(p))) <= 2


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_special_values(isa, dtype):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e4, -1e4], dtype)
    nan = np.nan
    assert_equal = np.testing.assert_array_equal
    assert_equal(call("vexp", x), [1, 1, np.inf, 0, nan, np.inf, 0])
    assert_equal(call("vlog", x)[:5], [-np.inf, -np.inf, np.inf, nan, nan])
    assert_equal(call("vsin", x)[:5], [0, 0, nan, nan, nan])
    assert_equal(call("vcos", x)[:5], [1, 1, nan, nan, nan])
    assert_equal(call("vtanh", x), [0, 0, 1, -1, nan, 1, -1])
    assert_equal(call("vpow", x, 0.5)[:5], [0, 0, np.inf, nan, nan])
    assert_equal(call("vpow", x, -0.5)[:3], [np.inf, np.inf, 0])
    assert_equal(call("vpow", x, 0.0), np.ones(7))
    odd = np.array([0x7FF0000000000FFF, 0xFFF8000000000123], np.uint64).view(np.float64)
    assert np.all(np.isnan(call("vexp", odd)))
