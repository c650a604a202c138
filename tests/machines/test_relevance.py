"""Relevance vector machines: the evidence rises, agrees with its definition, and the few vectors kept are enough."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import RelevanceVectorClassifier, RelevanceVectorRegressor


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([RelevanceVectorRegressor(), RelevanceVectorClassifier()])
def test_the_contract(estimator, check):
    check(estimator)
