"""What tiles write: both halves, at any size and place, past the caches or not; and whether it is finite."""

import mpmath
import numpy as np
import pytest

from core.programs import Problem, encode
from mercer import _core
from mercer.memory import room

pytestmark = pytest.mark.usefixtures("threads_for_all")

RBF = encode("SQDIST", "RBF")
# Bytes from which the core writes past the caches (kLargeOutput), and sides of such matrices.
LARGE = 16 << 20
SIDES = {np.float64: (1456, 1501), np.float32: (2064, 2051)}
FRAME = 7.5


def framed(shape, dtype, offset):
    """Memory `offset` items behind the start of a cache line, and the frame around it that must stay."""
    count = int(np.prod(shape))
    whole = np.full(count + 200, FRAME, dtype)
    first = (-whole.__array_interface__["data"][0] // whole.itemsize) % (64 // whole.itemsize) + 64 + offset
    inside = whole[first : first + count]
    inside[:] = np.nan
    return inside.reshape(shape), (whole[:first], whole[first + count :])


def by_blocks(X, dtype, step=100):
    """K, a few rows at a time against all: small results, and no half is the mirror of another."""
    parts = [Problem(RBF, [], [(X[i : i + step], X)], dtype=dtype).gram() for i in range(0, len(X), step)]
    return np.vstack(parts)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [3, 70])
def test_both_halves_have_the_same_bits_at_every_size(isa, d, dtype):
    for n in (1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 47, 48, 49, 95, 96, 97, 191, 192, 193, 389):
        X = np.random.default_rng(n).normal(size=(n, d)).astype(dtype)
        K = Problem(RBF, [], [(X, None)], dtype=dtype).gram()
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_allclose(K, by_blocks(X, dtype), rtol=0, atol=100 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("offset", [0, 1, 3])
def test_a_large_matrix_has_the_bits_of_its_small_blocks_wherever_it_lies(isa, dtype, offset):
    for n in SIDES[dtype]:
        X = np.random.default_rng(n).normal(size=(n, 3)).astype(dtype)
        assert n * n * X.itemsize >= LARGE
        K, frame = framed((n, n), dtype, offset)
        assert _core.gram(*Problem(RBF, [], [(X, None)], dtype=dtype).args, K, 1) is True
        np.testing.assert_array_equal(K, by_blocks(X, dtype))
        assert all((side == FRAME).all() for side in frame)


@pytest.mark.parametrize("d", [3, 70])
def test_a_large_matrix_has_the_same_bits_for_any_number_of_threads(isa, d):
    X = np.random.default_rng(0).normal(size=(1501, d))
    problem = Problem(RBF, [], [(X, None)])
    K = problem.gram(1)
    for threads in (2, 3):
        np.testing.assert_array_equal(problem.gram(threads), K)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n, m", [(1, 1), (3, 17), (50, 131), (1501, 2900)])
def test_one_entry_that_is_not_finite_is_seen_wherever_it_is(isa, n, m, dtype):
    """x_i · z_j overflows in one entry alone."""
    huge = np.sqrt(np.finfo(dtype).max) * 2
    rng = np.random.default_rng(0)
    places = [(0, 0), (n - 1, m - 1), (0, m - 1), (n - 1, 0), (rng.integers(n), rng.integers(m))]
    places = places[:2] if n > 1000 else places
    X, Z = np.ones((n, 1), dtype), np.ones((m, 1), dtype)
    out = np.empty((n, m), dtype)
    dots = lambda: _core.gram(*Problem(encode("DOT"), [], [(X, Z)], dtype=dtype).args, out, 1)
    assert dots() is True
    for i, j in places:
        X[i] = Z[j] = huge
        assert dots() is False
        assert np.isinf(out[i, j]) and np.isfinite(np.delete(out.ravel(), i * m + j)).all()
        X[i] = Z[j] = 1
    X[n // 2] = np.nan
    assert dots() is False


def test_memory_that_is_not_aligned_is_refused():
    raw = np.zeros(6 * 6 * 8 + 8, np.uint8)
    out = raw[4 : 4 + 6 * 6 * 8].view(np.float64).reshape(6, 6)
    with pytest.raises(ValueError, match="multiple of 8 bytes"):
        _core.gram(*Problem(RBF, [], [(np.ones((6, 2)), None)]).args, out, 1)


@pytest.mark.parametrize("shape, dtype", [((1000, 1000), np.float64), ((900, 1001), np.float32)])
def test_room_for_a_large_array_starts_where_a_cache_line_does(shape, dtype):
    A = room(shape, dtype)
    assert (A.shape, A.dtype) == (shape, dtype)
    assert A.flags.c_contiguous and A.flags.writeable
    assert A.__array_interface__["data"][0] % 64 == 0
    assert room((0, 3)).shape == (0, 3)


# ── waves: cosines and sines of projections ─────────────────────────────────────────────────────────────────


def vector(name, x):
    out = np.empty(x.size)
    getattr(_core, name)(np.ascontiguousarray(x).ravel(), out)
    return out.reshape(x.shape)


@pytest.mark.parametrize("n, m", [(1, 1), (3, 7), (13, 8), (2, 255), (97, 257), (40, 600), (1700, 701)])
def test_waves_of_phases_are_weighted_cosines_and_sines_to_the_last_bit(isa, n, m):
    """Of the vector functions, which have their own table of forty digits."""
    rng = np.random.default_rng(n)
    t = rng.normal(size=(n, m)) * 10.0 ** rng.uniform(-3, 7, size=(n, m))
    w = rng.uniform(0.1, 2, size=m)
    out, frame = framed((n, 2 * m), np.float64, 1)
    _core.waves(t, None, w, out, 1)
    np.testing.assert_array_equal(out, np.hstack([w * vector("vcos", t), w * vector("vsin", t)]))
    assert all((side == FRAME).all() for side in frame)


def test_waves_are_within_two_ulp_of_forty_digits(isa):
    t = np.concatenate([np.linspace(-30, 30, 300), 1e5 * np.linspace(-3, 3, 99), np.arange(80) * np.pi / 2])
    out = np.empty((1, 2 * len(t)))
    _core.waves(t[None], None, np.ones(len(t)), out, 1)
    with mpmath.workdps(40):
        for found, exact in ((out[0, : len(t)], mpmath.cos), (out[0, len(t) :], mpmath.sin)):
            for a, b in zip(t, found, strict=True):
                want = exact(mpmath.mpf(float(a)))
                assert abs(mpmath.mpf(float(b)) - want) <= 2 * np.spacing(abs(float(want)))


@pytest.mark.parametrize("n, d, m", [(1, 1, 1), (97, 3, 5), (13, 300, 33), (200, 20, 500), (3000, 5, 400)])
def test_waves_of_rows_equal_those_of_extended_projections(isa, n, d, m):
    rng = np.random.default_rng(m)
    X, F, w = rng.normal(size=(n, d)), rng.normal(size=(m, d)), rng.uniform(0.1, 2, size=m)
    out, again = np.full((n, 2 * m), np.nan), np.full((n, 2 * m), np.nan)
    _core.waves(X, F, w, out, 1)
    t = X.astype(np.longdouble) @ F.T.astype(np.longdouble)
    size = np.abs(X) @ np.abs(F).T
    slack = w * ((d + 2) * size + 3) * np.finfo(float).eps
    assert (np.abs(out[:, :m] - w * np.cos(t)) <= slack).all()
    assert (np.abs(out[:, m:] - w * np.sin(t)) <= slack).all()
    _core.waves(X, F, w, again, 2)
    np.testing.assert_array_equal(out, again)


def test_waves_refuse_what_does_not_fit():
    X, F, w, out = np.ones((4, 3)), np.ones((5, 3)), np.ones(5), np.empty((4, 10))
    _core.waves(X[:0], F, w, out[:0], 1)
    _core.waves(X, F[:0], w[:0], np.empty((4, 0)), 1)
    for match, args in (
        ("frequencies", (X, F[:, :2].copy(), w, out)),
        ("frequencies", (X, F[:4], w, out)),
        ("out", (X, F, w, out[:, :9].copy())),
        ("phases", (X, None, w, out)),
        ("float64", (X.astype(np.float32), F, w, out)),
        ("overlaps", (out[:, :3].copy(), F, out.ravel()[:5], out)),
    ):
        with pytest.raises(ValueError, match=match):
            _core.waves(*args, 1)
    with pytest.raises(ValueError, match="threads"):
        _core.waves(X, F, w, out, 0)
