"""Any non-decreasing Ω(‖f‖): against a general optimiser in the explicit feature space."""

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer import KernelMachine, parse, verify
from mercer.errors import ParameterError
from mercer.machines.loss.penalty import Penalty
from mercer.theory import function_of, representer

KERNEL = "Polynomial(2)"
CONVEX = {
    "r²/2": lambda r: 0.5 * r**2,
    "r": lambda r: r,
    "r³": lambda r: r**3,
    "exp": lambda r: np.expm1(r),
    "free up to a half": lambda r: np.maximum(0.0, r - 0.5),
    "huber": lambda r: r**2 / 2 if r < 0.3 else 0.3 * r - 0.045,
}


def data(seed, labels):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(18, 2))
    z = X[:, 0] - X[:, 1] ** 2 + 0.3 * rng.normal(size=18)
    return X, (z > 0).astype(int) if labels else z


LOSS = {
    "squared": lambda y, z: 0.5 * (y - z) ** 2,
    "logistic": lambda y, z: np.logaddexp(0, -(2 * y - 1) * z),
    "squared_hinge": lambda y, z: np.maximum(0, 1 - (2 * y - 1) * z) ** 2,
}


def by_hand(omega, loss, X, y, alpha, starts):
    """The smallest Σ loss + αΩ(‖w‖) over w and b in the explicit feature space, from several starts."""
    phi = parse(KERNEL).features(2)(X)

    def objective(v):
        return LOSS[loss](y, phi @ v[:-1] + v[-1]).sum() + alpha * float(omega(float(np.linalg.norm(v[:-1]))))

    found = [minimize(objective, v, method="BFGS", options={"gtol": 1e-9}) for v in starts]
    found += [
        minimize(objective, f.x, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}) for f in found
    ]
    return min(f.fun for f in found)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("loss", list(LOSS))
@pytest.mark.parametrize("name", list(CONVEX))
def test_no_w_in_the_feature_space_is_better(name, loss):
    X, y = data(0, loss != "squared")
    alpha = 0.7
    model = KernelMachine(KERNEL, loss, alpha, penalty=CONVEX[name]).fit(X, y)
    w = function_of(model).explicit()[1][0]
    start = np.concatenate([w, model.intercept_])
    best = by_hand(CONVEX[name], loss, X, y, alpha, [start, np.full(7, 0.1)])
    c = model.certificate_
    assert c.primal <= best * (1 + 1e-6) + 1e-9
    assert c.dual <= best + 1e-9, "weak duality"
    assert c.gap <= 1e-6 * c.primal and c.status == "converged"
    assert verify(model, X, y)
    assert representer(model, X).ok


def test_half_the_square_is_the_default():
    X, y = data(1, True)
    for loss in ("logistic", "hinge"):
        plain = KernelMachine("RBF(1.0)", loss, 0.3).fit(X, y)
        given = KernelMachine("RBF(1.0)", loss, 0.3, penalty=lambda r: r**2 / 2).fit(X, y)
        np.testing.assert_allclose(given.decision_function(X), plain.decision_function(X), atol=1e-5)
        assert given.equivalent_alpha_[0] == pytest.approx(0.3, rel=1e-5)
        assert given.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-8)


def test_the_same_f_is_the_ridge_of_the_equivalent_price():
    X, y = data(2, False)
    model = KernelMachine("RBF(1.0)", "huber", 0.5, penalty=lambda r: r).fit(X, y)
    ridge = KernelMachine("RBF(1.0)", "huber", model.equivalent_alpha_[0]).fit(X, y)
    np.testing.assert_allclose(model.predict(X), ridge.predict(X), atol=1e-9)
    r = function_of(model).norms()[0]
    assert model.equivalent_alpha_[0] * r == pytest.approx(0.5, rel=1e-6)  # a r = αΩ'(r)


def test_a_norm_that_is_too_dear_gives_nothing():
    X, y = data(3, False)
    model = KernelMachine("RBF(1.0)", "squared", 100.0, penalty=lambda r: r).fit(X, y)
    assert len(model.support_) == 0
    np.testing.assert_allclose(model.predict(X), y.mean(), atol=1e-8)
    assert model.certificate_.gap <= 1e-8 * model.certificate_.primal


def test_a_ball_is_a_penalty_too():
    X, y = data(4, False)
    model = KernelMachine("RBF(1.0)", "squared", 1.0, penalty=lambda r: 0.0 if r <= 0.8 else np.inf).fit(X, y)
    assert 0.8 * (1 - 1e-6) <= function_of(model).norms()[0] <= 0.8
    assert model.certificate_.gap <= 1e-6 * model.certificate_.primal


def test_a_penalty_that_is_not_convex_is_the_best_price_tried_and_says_so():
    X, y = data(5, False)
    omega = np.log1p
    model = KernelMachine(KERNEL, "squared", 0.5, penalty=omega).fit(X, y)
    w = function_of(model).explicit()[1][0]
    starts = [np.concatenate([w, model.intercept_]), np.full(7, 0.1), np.full(7, 1e-6)]
    assert model.certificate_.primal <= by_hand(omega, "squared", X, y, 0.5, starts) * (1 + 1e-6)
    assert model.certificate_.gap is None
    assert any("not convex" in note for note in model.certificate_.notes)


@pytest.mark.parametrize(
    ("penalty", "words"),
    [
        (lambda r: -r, "falls from"),
        (lambda r: np.cos(r), "falls from"),
        (lambda w: np.abs(w).sum(), "outside the representer theorem"),
        ("lasso", "outside the representer theorem"),
        (lambda r: np.nan, "must be a number"),
        (lambda r: "much", "takes the norm"),
        (3.0, "penalty must be"),
    ],
)
def test_what_is_no_growing_function_of_the_norm_is_refused_with_the_reason(penalty, words):
    with pytest.raises(ParameterError, match=words):
        KernelMachine("RBF(1.0)", penalty=penalty).fit([[0.0], [1.0]], [0.0, 1.0])


def test_a_changed_coefficient_is_noticed():
    X, y = data(6, True)
    model = KernelMachine("RBF(1.0)", "logistic", 0.5, penalty=lambda r: r**3).fit(X, y)
    assert verify(model, X, y)
    model.dual_coef_[0, 0] *= 1.01
    assert not verify(model, X, y)


CONJUGATE = {
    "r²/2": lambda t, a: t**2 / (2 * a),
    "r": lambda t, a: 0.0 if t < a else np.inf,
    "r³": lambda t, a: 2 / 3 * t * np.sqrt(t / (3 * a)),
    "exp": lambda t, a: t * np.log(t / a) - t + a if t > a else 0.0,
    "free up to a half": lambda t, a: 0.5 * t if t < a else np.inf,
    "huber": lambda t, a: t**2 / (2 * a) if t < 0.3 * a else np.inf,
}


@pytest.mark.parametrize("name", CONVEX)
@pytest.mark.parametrize("seed", range(12))
def test_the_conjugate_of_a_penalty_is_its_closed_form_wherever_it_is_looked_for(name, seed):
    rng = np.random.default_rng(seed)
    alpha = float(np.exp(rng.normal()))
    penalty = Penalty(CONVEX[name], alpha, convex=True)
    t = alpha * float(np.exp(rng.normal()))
    near = float(np.exp(rng.normal()))
    with np.errstate(over="ignore"):
        found = penalty.conjugate(t, near)
    wanted = CONJUGATE[name](t, alpha)
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9 * alpha)
    # never less than what any single r shows, so that a gap by it is never too small
    for r in [near, *rng.uniform(0.0, 3.0, 50)]:
        assert found >= t * r - penalty.value(r) - 1e-9 * alpha
