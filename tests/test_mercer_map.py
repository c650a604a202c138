"""Laws of the eigen-features of a sample."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import MercerMap


@parametrize_with_checks(
    [MercerMap(), MercerMap("Linear() + 1", n_components=2), MercerMap("RBF(2.0)", tolerance=0.01)]
)
def test_the_scikit_learn_contract_is_kept(estimator, check):
    check(estimator)
