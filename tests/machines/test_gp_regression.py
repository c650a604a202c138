"""Gaussian process regression against its formulas, scikit-learn, refits and finite differences."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import GaussianProcessRegressor


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([GaussianProcessRegressor()])
def test_the_contract(estimator, check):
    check(estimator)
