"""`verify` where the best w is 0: hulls of the classes that meet, and rows whose average is the origin.

The objective of a share ν is then 0 but for rounding, so that no tolerance may be a share of it.
"""

from __future__ import annotations

import numpy as np
import pytest

from mercer import NuSVC, OneClassSVM, verify

pytestmark = pytest.mark.filterwarnings("ignore")
KERNELS = ["Linear()", "Linear() + 1", "1e3*Linear()", "Constant(1.0)"]


def meeting(rng):
    """Rows of two classes whose averages can be made to meet, in any units; and the share ν."""
    n = int(rng.integers(6, 40))
    d = int(rng.integers(1, 4))
    half = rng.normal(size=(n // 2, d))
    X = [
        rng.integers(-2, 3, size=(n, d)).astype(float),
        np.repeat(half, 2, axis=0),
        np.vstack([half, -half]),
        rng.normal(size=(n, d)),
    ][rng.integers(4)]
    y = np.arange(len(X)) % 2
    return X * 10.0 ** rng.integers(-3, 4), y, float(rng.choice([0.05, 0.2, 0.5, 0.8]))


@pytest.mark.parametrize("kind", [NuSVC, OneClassSVM])
@pytest.mark.parametrize("part", range(3))
def test_an_optimum_of_nothing_is_believed(kind, part):
    empty = 0
    for seed in range(20 * part, 20 * part + 20):
        rng = np.random.default_rng(seed)
        X, y, nu = meeting(rng)
        kernel = KERNELS[rng.integers(len(KERNELS))]
        given = (X, y) if kind is NuSVC else (X,)
        model = kind(kernel, nu=nu).fit(*given)
        found = verify(model, *given)
        assert found.ok, (seed, kernel, nu, found.findings)
        primal = max(abs(c.primal) for c in model.certificates_)
        reach = float(np.abs(model.dual_coef_).sum()) * np.sqrt(np.abs(model.kernel_.diag(X)).max())
        empty += primal <= 1e-9 * max(reach**2, 1e-300)
    assert empty


# Of these the norm is 0 after rounding, and the margin of rounding by which the rest was divided is not.
ROUNDED_AWAY = 72


def rounded_away():
    rng = np.random.default_rng(ROUNDED_AWAY)
    half = rng.normal(size=(19, 3))
    return np.vstack([half, -half]), np.arange(38) % 2


def test_a_margin_of_rounding_that_was_divided_by_is_multiplied_by_again():
    """The certificate is that of the coefficients published, also where ‖w‖² is 0 after rounding."""
    X, y = rounded_away()
    model = NuSVC("Linear()", nu=0.5).fit(X, y)
    found = verify(model, X, y)
    assert found.ok, found.findings


@pytest.mark.parametrize("name", ["dual_coef_", "intercept_"])
@pytest.mark.parametrize("kind", [NuSVC, OneClassSVM])
def test_coefficients_that_are_no_optimum_are_noticed_where_the_optimum_is_nothing(kind, name):
    X, y = rounded_away()
    given = (X, y) if kind is NuSVC else (X,)
    model = kind("Linear()", nu=0.5).fit(*given)
    value = np.array(getattr(model, name))
    value.flat[0] += 0.01 * np.abs(model.dual_coef_).max()
    setattr(model, name, value)
    assert not verify(model, *given).ok
