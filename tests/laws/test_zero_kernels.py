"""A kernel that is 0 has a feature map without features: a machine answers with a constant, or says why not.

A weight that reaches 0, or columns that are all 0, give such kernels in practice.
"""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimators_under_test import NUMBERS, SUBJECTS, X, outputs
from mercer import KernelRidge, KernelRidgeCV, parse, verify
from mercer.errors import MercerError

# Parts of kernels, with and without a finite map of features.
PARTS = (
    "Polynomial(1, offset=0.0).on(1,0)",
    "Linear()",
    "Polynomial(2)",
    "Polynomial(3, offset=0.5).on(0)",
    "RBF(1.0)",
    "Constant(2.0)",
    "Cosine(1.0)",
    "Matern(0.7, nu=1.5)",
)

# Machines for which a kernel that is 0 is no problem to solve, and their words for it.
REFUSED = {
    "FeatureMachineRegressor": "kernel must be one radial kernel",
    "FeatureMachineClassifier": "kernel must be one radial kernel",
    "Perceptron": "0 feature",
    "MultipleKernelClassifier": "cannot be normalised by its trace",
    "MultipleKernelOneClass": "cannot be normalised by its trace",
    "MultipleKernelRegressor": "cannot be normalised by its trace",
    "GaussianProcessRegressor": "not positive definite",
    "GaussianProcessRegressor, tuned": "not positive definite",
    "FalkonRegressor": "is zero on all landmarks",
    "FalkonRegressor, few landmarks": "is zero on all landmarks",
    "FalkonClassifier": "is zero on all landmarks",
    "KernelCCA": "is the same for all rows",
}


@st.composite
def zeros(draw):
    """A kernel that is 0: sums of products, each with a factor that is 0."""
    terms = draw(st.lists(st.lists(st.sampled_from(PARTS), min_size=1, max_size=2), min_size=1, max_size=3))
    kernel = " + ".join("0.0*" + "*".join(term) for term in terms)
    return parse(kernel)


SUBJECTS_WITH_KERNELS = [s for s in SUBJECTS if {"kernel", "kernels"} & set(s.settings)]


@pytest.mark.parametrize("subject", SUBJECTS_WITH_KERNELS, ids=lambda subject: subject.name)
@settings(max_examples=5, deadline=None)
@given(kernel=zeros())
def test_every_machine_answers_with_a_constant_or_says_why_not(subject, kernel):
    change = {"kernel": kernel} if "kernel" in subject.settings else {"kernels": (kernel,)}
    with warnings.catch_warnings():
        # of too few clusters, of classes that cannot be told apart
        warnings.simplefilter("ignore")
        if subject.name in REFUSED:
            with pytest.raises(MercerError, match=REFUSED[subject.name]):
                subject.fit(**change)
            return
        model = subject.fit(**change)
        found = outputs(model)
        # with a margin of 0 a ν-machine has no C-machine to be compared with, and it warns
        assert subject.name == "NuSVC" or verify(model, X, subject.y).ok
    for name, values in found.items():
        assert np.all(values == values[:1]), name
        # the distance to a cluster that stays empty is infinite, as its page says
        if not subject.name.startswith("KernelKMeans") and values.dtype.kind == "f":
            assert np.isfinite(values).all(), name


@settings(max_examples=25, deadline=None)
@given(
    kernel=zeros(),
    intercept=st.booleans(),
    alpha=st.sampled_from([0.01, 0.1, 3.0]),
    solver=st.sampled_from(["auto", "primal"]),
    weighted=st.booleans(),
)
def test_ridge_of_a_zero_kernel_is_the_mean_or_zero(kernel, intercept, alpha, solver, weighted):
    weight = np.where(np.arange(len(NUMBERS)) % 3 == 0, 2.0, 1.0) if weighted else np.ones(len(NUMBERS))
    if solver == "primal" and not np.isfinite(kernel.feature_dimension(X.shape[1])):
        return
    model = KernelRidge(kernel, alpha=alpha, fit_intercept=intercept, solver=solver)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, NUMBERS, sample_weight=weight if weighted else None)
    said = np.average(NUMBERS, weights=weight) if intercept else 0.0
    np.testing.assert_allclose(model.predict(X[:3]), said, atol=1e-14)
    assert model.certificate_.status == "converged"


def test_the_penalty_of_a_zero_kernel_is_chosen_without_features():
    y = NUMBERS + 3.0
    model = KernelRidgeCV("0.0*Linear()", fit_intercept=True).fit(X, y)
    # every row left out is predicted by the mean of the others, whatever the penalty
    others = (y.sum() - y) / (len(y) - 1)
    np.testing.assert_allclose(y - others, (y - y.mean()) * len(y) / (len(y) - 1))
    np.testing.assert_allclose(model.predict(X[:2]), y.mean())
    np.testing.assert_allclose(np.asarray(model.loo_predictions_).ravel(), others)
