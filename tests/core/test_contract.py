"""Gradients of Σ W K against central differences of the core's own values."""

import numpy as np
import pytest

from core.programs import PRIMITIVES, UNARIES, Problem, encode
from mercer import _core

STEP = 1e-5


def problem(code, n, m, d, rng, dtype=np.float64):
    """Positive data away from ties, so that every opcode is smooth at it."""
    X = rng.uniform(0.2, 1.0, (n, d))
    Z = None if m is None else rng.uniform(0.2, 1.0, (m, d))
    u = rng.uniform(2.0, 3.0, n)
    v = None if m is None else rng.uniform(2.0, 3.0, m)
    return Problem(code, [1.3, 0.4, 0.7, -0.2], [(X, Z)], [(u, v)], [rng.uniform(0.5, 1.5, d)], dtype)


def difference(prob, W, change):
    """dL/dε where change(ε) edits the problem in place."""
    value = {}
    for sign in (1, -1):
        change(sign * STEP)
        value[sign] = float(np.sum(W * prob.gram()))
        change(-sign * STEP)
    return (value[1] - value[-1]) / (2 * STEP)


def agrees(got, want, scale):
    assert got == pytest.approx(want, rel=2e-6, abs=2e-7 * scale)


def add_to(array, index):
    def change(eps):
        array[index] += eps

    return change


PROGRAMS = {
    **{p: [p] for p in PRIMITIVES},
    **{u: ["SQDIST", ("AFFINE", 1, 2), (u, 0, 3)] for u in UNARIES},
    **{f"ARCCOS{o}": ["DOT", ("ARCCOS", 0, o)] for o in range(3)},
    "ROWSCALE": ["L1", ("ROWSCALE", 0), "RBF"],
    "MAX": ["SQDIST", "RBF", "DOT", ("AFFINE", 1, 2), "MAX"],
    "MIN": ["SQDIST", "RBF", "DOT", ("AFFINE", 1, 2), "MIN", "EXP"],
    "DELTA": ["MINSUM", ("DELTA", 2), "ADD"],
    "composite": [
        *("SQDIST", "RBF", ("PERIODIC", 0, 0), ("AFFINE", 1, 2), "EXPNEG", "MUL"),
        *(
            "DOT",
            ("HORNER", 0, 3),
            ("CONST", 1),
            "MUL",
            "ADD",
            ("DELTA", 3),
            "ADD",
            "COSPROD",
            ("RQ", 0),
            "ADD",
        ),
    ],
}


@pytest.mark.parametrize("same", [False, True], ids=["cross", "same"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_contract_is_the_derivative_of_the_weighted_sum(name, same):
    rng = np.random.default_rng(7)
    prob = problem(encode(*PROGRAMS[name]), 9, None if same else 11, 3, rng)
    W = rng.normal(size=prob.shape)
    got = prob.contract(W=W, inputs=True)
    scale = np.abs(W).sum()
    for k in range(len(prob.params)):
        agrees(got["params"][k], difference(prob, W, add_to(prob.params, k)), scale)
    (X, Z), (u, v) = prob.views[0], prob.rows[0]
    Xbar, Zbar = got["inputs"][0]
    ubar, vbar = got["rows"][0]
    if same:
        Xbar, ubar = Xbar + Zbar, ubar + vbar
    smooth = not (same and {"EXPNEG", "SQRT", "POW", "LOG"} & set(np.ravel(PROGRAMS[name][-1:])))
    for i in range(3):
        if smooth:
            for k in range(3):
                agrees(Xbar[i, k], difference(prob, W, add_to(X, (i, k))), scale)
                if not same:
                    agrees(Zbar[i, k], difference(prob, W, add_to(Z, (i, k))), scale)
        agrees(ubar[i], difference(prob, W, add_to(u, i)), scale)
        if not same:
            agrees(vbar[i], difference(prob, W, add_to(v, i)), scale)


@pytest.mark.parametrize("same", [False, True], ids=["cross", "same"])
@pytest.mark.parametrize(
    "name, factor", [("SQDIST", 2), ("DOT", 2), ("L1", 1), ("COSPROD", 1), ("ALLSUBSETS", 2), ("PERIODIC", 1)]
)
def test_view_gradient_is_the_derivative_in_the_scale_of_a_column(name, factor, same):
    rng = np.random.default_rng(8)
    prob = problem(encode(name, ("AFFINE", 1, 2), "TANH"), 8, None if same else 10, 3, rng)
    W = rng.normal(size=prob.shape)
    got = prob.contract(W=W)["views"][0]
    original = [None if p is None else p.copy() for p in prob.views[0]]

    for k in range(3):

        def change(eps, k=k):
            for part, kept in zip(prob.views[0], original, strict=True):
                if part is not None:
                    part[:, k] = kept[:, k] if part[0, k] != kept[0, k] else kept[:, k] * (1 + eps)

        row = 1 if name == "PERIODIC" else 0
        agrees(factor * got[row, k], difference(prob, W, change), np.abs(W).sum())
    if name == "PERIODIC":
        w = prob.columns[0]
        for k in range(3):
            agrees(got[0, k] / w[k], difference(prob, W, add_to(w, k)), np.abs(W).sum())
    else:
        assert np.all(got[1] == 0)


@pytest.mark.parametrize("same", [False, True], ids=["cross", "same"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("r", [0, 1, 3, 20])
def test_factored_weights_equal_explicit_ones_over_many_tiles(same, dtype, r):
    rng = np.random.default_rng(r)
    prob = problem(encode(*PROGRAMS["composite"]), 230, None if same else 101, 5, rng, dtype)
    n, m = prob.shape
    U, V = rng.normal(size=(n, r)).astype(dtype), rng.normal(size=(m, r)).astype(dtype)
    a, b = prob.contract(U=U, V=V, inputs=True), prob.contract(W=U @ V.T, inputs=True)
    tol = {"rtol": 1e-9, "atol": 1e-9 * n} if dtype == np.float64 else {"rtol": 2e-3, "atol": 2e-4 * n}
    np.testing.assert_allclose(a["params"], b["params"], **tol)
    np.testing.assert_allclose(a["views"][0], b["views"][0], **tol)
    for key in ("rows", "inputs"):
        for p, q in zip(a[key][0], b[key][0], strict=True):
            np.testing.assert_allclose(p, q, **tol)


def test_same_mode_folds_an_asymmetric_weight_matrix_correctly():
    rng = np.random.default_rng(5)
    prob = problem(encode(*PROGRAMS["composite"]), 210, None, 4, rng)
    W = rng.normal(size=prob.shape)
    got = prob.contract(W=W)
    # The same sum with the observations passed twice; DELTA is then silent, so its share is added by hand.
    twice = Problem(
        prob.code,
        prob.params,
        [(X, X.copy()) for X, _ in prob.views],
        [(u, u) for u, _ in prob.rows],
        prob.columns,
    )
    want = twice.contract(W=W)
    want["params"][3] += np.trace(W)
    np.testing.assert_allclose(got["params"], want["params"], rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(got["views"][0], want["views"][0], rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("name", PROGRAMS)
def test_contract_diag_is_contract_with_a_diagonal_weight(name):
    rng = np.random.default_rng(3)
    prob = problem(encode(*PROGRAMS[name]), 40, None, 3, rng)
    w = rng.normal(size=40)
    got = _core.contract_diag(*prob.args, w, inputs=True)
    with np.errstate(invalid="ignore"):
        want = prob.contract(W=np.diag(w), inputs=True)
    np.testing.assert_allclose(got["params"], want["params"], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(got["views"][0], want["views"][0], rtol=1e-10, atol=1e-10)
    for key in ("rows", "inputs"):
        np.testing.assert_allclose(sum(got[key][0]), sum(want[key][0]), rtol=1e-10, atol=1e-10)


def test_a_singular_slope_counts_as_zero():
    X = np.zeros((3, 2))
    for name in ("SQRT", "EXPNEG"):
        got = Problem(encode("SQDIST", name), [], [(X, None)]).contract(W=np.ones((3, 3)), inputs=True)
        assert np.all(got["views"][0] == 0) and np.all(got["inputs"][0][0] == 0)


def test_sparse_rows_give_the_gradient_of_dense_ones():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(110, 6)) * (rng.random((110, 6)) < 0.4)
    indptr = np.r_[0, np.cumsum((X != 0).sum(1))]
    sparse = (X[X != 0], np.nonzero(X)[1].copy(), indptr, 6)
    code, params = encode("SQDIST", "RBF", "DOT", ("AFFINE", 0, 1), "MUL"), np.array([0.5, 1.0])
    W = rng.normal(size=(110, 110))
    got = _core.contract(_core.Program(code, params), [(sparse, None)], [], [], W=W)
    want = Problem(code, params, [(X, None)]).contract(W=W)
    np.testing.assert_allclose(got["params"], want["params"], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(got["views"][0], want["views"][0], rtol=1e-10, atol=1e-10)
    with pytest.raises(ValueError, match="dense"):
        _core.contract(_core.Program(code, params), [(sparse, None)], [], [], W=W, inputs=True)


# each is steep without bound at 0, where the core says that nothing moves
STEEP = {
    "SQRT": ("SQRT", lambda t: 0.5 / np.sqrt(t)),
    "POW 0.4": (("POW", 1), lambda t: 0.4 * t**-0.6),
    "POW 0.7": (("POW", 2), lambda t: 0.7 * t**-0.3),
    "EXPNEG": ("EXPNEG", lambda t: -0.5 * np.exp(-np.sqrt(t)) / np.sqrt(t)),
}


@pytest.mark.parametrize("d", [1, 3, 20])
@pytest.mark.parametrize("n", [2, 9, 40])
@pytest.mark.parametrize("name", STEEP)
def test_equal_rows_add_nothing_where_a_slope_has_no_end(name, n, d):
    step, slope = STEEP[name]
    rng = np.random.default_rng(n + d)
    X = rng.uniform(0.2, 1.0, (n, d))
    X[n // 2] = X[0]
    prob = Problem(encode("SQDIST", ("AFFINE", 0, 3), step), [1.3, 0.4, 0.7, 0.0], [(X, None)])
    W = rng.normal(size=(n, n))
    got = prob.contract(W=W, inputs=True)
    scale, offset, rows = 0.0, 0.0, np.zeros((n, d))
    for i in range(n):
        for j in range(n):
            apart = X[i] - X[j]
            s = float(apart @ apart)
            if s > 0:
                steep = W[i, j] * slope(1.3 * s)
                scale += steep * s
                offset += steep
                rows[i] += 2 * 1.3 * steep * apart
                rows[j] -= 2 * 1.3 * steep * apart
    size = np.abs(W).sum() / np.sqrt(n)
    assert got["params"][0] == pytest.approx(scale, rel=1e-9, abs=1e-10 * size)
    assert got["params"][3] == pytest.approx(offset, rel=1e-9, abs=1e-10 * size)
    Xbar, Zbar = got["inputs"][0]
    np.testing.assert_allclose(Xbar + Zbar, rows, rtol=1e-8, atol=1e-9 * size)
