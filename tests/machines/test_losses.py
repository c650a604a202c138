"""Every loss against its definition: derivative, curvature, convexity, conjugate, and losses of one's own."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mercer.errors import ParameterError
from mercer.machines.loss.losses import LOSSES, Huber, Logistic, Poisson, Quantile, Softmax, Squared
from mercer.machines.loss.smooth import SmoothLoss

NUMBERS = np.array([-2.0, -0.3, 0.0, 0.7, 5.0])
COUNTS = np.array([0.0, 0.5, 1.0, 3.0, 40.0])
SIGNS = np.array([-1.0, 1.0])


def targets(loss):
    if loss.kind == "classification":
        return SIGNS
    return COUNTS if isinstance(loss, Poisson) else NUMBERS


def every_loss():
    return [*(c() for c in LOSSES.values()), Huber(0.2), Quantile(0.05), Quantile(0.93)]


def grid(loss):
    """All pairs of a target and a value, away from kinks."""
    z = np.linspace(-4.123, 4.567, 41)
    y = targets(loss)
    return np.repeat(y, len(z)), np.tile(z, len(y))


@pytest.mark.parametrize("loss", every_loss(), ids=repr)
def test_slope_and_curvature_are_derivatives(loss):
    y, z = grid(loss)
    h = 1e-6
    rise = (loss.value(y, z + h) - loss.value(y, z - h)) / (2 * h)
    np.testing.assert_allclose(loss.slope(y, z), rise, rtol=1e-6, atol=1e-6)
    bend = (loss.slope(y, z + h) - loss.slope(y, z - h)) / (2 * h)
    np.testing.assert_allclose(loss.curvature(y, z), bend, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", every_loss(), ids=repr)
def test_a_loss_is_convex_and_not_negative(loss):
    y, z = grid(loss)
    assert loss.value(y, z).min() >= 0
    for t in (0.3, 0.5):
        other = z[::-1]
        between = loss.value(y, t * z + (1 - t) * other)
        assert np.all(between <= t * loss.value(y, z) + (1 - t) * loss.value(y, other) + 1e-12)


@pytest.mark.parametrize("loss", every_loss(), ids=repr)
def test_fenchel_and_young_agree_with_equality_at_the_slope(loss):
    y, z = grid(loss)
    s = loss.slope(y, z)
    np.testing.assert_allclose(loss.value(y, z) + loss.conjugate(y, s), s * z, rtol=1e-10, atol=1e-10)
    for other in (s[::-1], np.linspace(-3, 3, len(s))):
        assert np.all(loss.value(y, z) + loss.conjugate(y, other) >= other * z - 1e-10)


@pytest.mark.parametrize("loss", every_loss(), ids=repr)
def test_the_conjugate_is_the_supremum(loss):
    for y in targets(loss):
        low, high = (float(v) for v in loss.slopes(y))
        low, high = max(low, -3.0), min(high, 3.0)
        for s in np.linspace(low, high, 7)[1:-1]:
            found = minimize_scalar(
                lambda z, y=y, s=s: loss.value(y, z) - s * z,
                bounds=(-60, 60),
                method="bounded",
                options={"xatol": 1e-10},
            )
            assert float(loss.conjugate(y, s)) == pytest.approx(-found.fun, rel=1e-6, abs=1e-6)
        for outside in (float(loss.slopes(y)[0]) - 0.1, float(loss.slopes(y)[1]) + 0.1):
            if np.isfinite(outside):
                assert loss.conjugate(y, outside) == np.inf


def test_extreme_values_stay_finite():
    z = np.array([-800.0, -40.0, 40.0, 800.0])
    for y in SIGNS:
        loss = Logistic()
        assert np.all(np.isfinite(loss.value(y, z))) and np.all(
            np.isfinite(loss.conjugate(y, loss.slope(y, z)))
        )
    wide = np.array([[0.0, 900.0, -900.0], [0.0, 1e-9, -30.0]])
    soft, y = Softmax(), np.array([2, 1])
    s = soft.slope(y, wide)
    np.testing.assert_allclose(
        soft.value(y, wide) + soft.conjugate(y, s), (s * wide).sum(axis=1), rtol=1e-12, atol=1e-12
    )


def test_softmax_of_two_classes_is_logistic_and_its_derivatives_are_right():
    rng = np.random.default_rng(0)
    soft, z, y = Softmax(), rng.normal(size=(9, 4)), rng.integers(0, 4, 9)
    two = np.column_stack([np.zeros(9), z[:, 0]])
    sign = np.where(y > 1, 1.0, -1.0)
    np.testing.assert_allclose(
        soft.value((y > 1).astype(int), two), Logistic().value(sign, z[:, 0]), rtol=1e-12
    )
    h = 1e-6
    for c in range(4):
        step = h * np.eye(4)[c]
        rise = (soft.value(y, z + step) - soft.value(y, z - step)) / (2 * h)
        np.testing.assert_allclose(soft.slope(y, z)[:, c], rise, atol=1e-8)
        bend = (soft.slope(y, z + step) - soft.slope(y, z - step)) / (2 * h)
        np.testing.assert_allclose(soft.curvature(y, z)[:, c], bend, atol=1e-8)
    R = soft.root(y, z)
    np.testing.assert_allclose(R @ R.transpose(0, 2, 1), soft.curvature(y, z), atol=1e-14)
    assert soft.conjugate(np.array([0]), np.array([[0.5, 0.2]]))[0] == np.inf


def bad(value, slope, **more):
    return SmoothLoss(value, slope, **more)


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (bad(lambda y, z: np.sin(z), lambda y, z: np.cos(z)), "not convex"),
        (bad(lambda y, z: (z - y) ** 2, lambda y, z: z - y), "not the derivative"),
        (bad(lambda y, z: np.abs(z - y), lambda y, z: np.sign(z - y)), "kink"),
        (bad(LOSSES["hinge"]().value, LOSSES["hinge"]().slope, kind="classification"), "kink"),
        (bad(lambda y, z: np.exp(1e3 * z**2), lambda y, z: z), "finite"),
        (bad(lambda y, z: np.sum((z - y) ** 2), lambda y, z: z - y), "entry by entry"),
        (bad(Squared().value, Squared().slope, conjugate_of=lambda y, s: s * y), "conjugate is not"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_a_wrong_loss_is_refused_with_the_reason(loss, words):
    with pytest.raises(ParameterError, match=words):
        loss.check(NUMBERS)


@pytest.mark.parametrize("loss", [c() for c in LOSSES.values() if c.smooth], ids=repr)
def test_the_check_lets_every_smooth_loss_through(loss):
    whole = SmoothLoss.of(loss)
    whole.check(targets(loss))
    plain = SmoothLoss.of(SimpleNamespace(value=loss.value, slope=loss.slope, kind=loss.kind))
    y, z = grid(loss)
    np.testing.assert_allclose(plain.curvature(y, z), loss.curvature(y, z), rtol=1e-4, atol=1e-4)
    assert whole.has_conjugate and not plain.has_conjugate
    with pytest.raises(ParameterError, match="without a conjugate"):
        plain.conjugate(y, z)
