"""The twins say what scikit-learn lets pass: masks, dates, Gram matrices that are not symmetric,
kernels that are none.
"""

import warnings

import numpy as np
import pandas as pd
import pytest

from mercer import sklearn as twins
from mercer.errors import InputError, InputTypeError, InvalidKernelWarning

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 2))
NUMBERS = np.sin(X[:, 0])
LABELS = (NUMBERS > 0).astype(int)
DAYS = np.datetime64("2020-01-01") + np.arange(24)
EVERY = [
    (twins.SVC, LABELS),
    (twins.NuSVC, LABELS),
    (twins.SVR, NUMBERS),
    (twins.NuSVR, NUMBERS),
    (twins.OneClassSVM, None),
    (twins.KernelRidge, NUMBERS),
    (twins.KernelPCA, None),
    (twins.GaussianProcessRegressor, NUMBERS),
    (twins.GaussianProcessClassifier, LABELS),
]
every = pytest.mark.parametrize(("twin", "y"), EVERY, ids=lambda v: getattr(v, "__name__", ""))


@every
def test_masked_rows_and_targets_are_refused(twin, y):
    mask = np.zeros(X.shape, bool)
    mask[3, 1] = True
    with pytest.raises(InputError, match="masked"):
        twin().fit(np.ma.masked_array(X, mask=mask), y)
    if y is not None:
        with pytest.raises(InputError, match="masked"):
            twin().fit(X, np.ma.masked_array(y, mask=mask[:, 1]))


@every
def test_dates_are_refused(twin, y):
    for rows in (
        np.column_stack([DAYS, DAYS]),
        pd.DataFrame({"day": DAYS, "x": X[:, 0]}),
        (DAYS - DAYS[0])[:, None],
    ):
        with pytest.raises(InputTypeError, match="dates or times"):
            twin().fit(rows, y)
    if y is not None:
        with pytest.raises(InputTypeError, match="dates or times"):
            twin().fit(X, DAYS)


@pytest.mark.parametrize(
    ("twin", "y"),
    [(twins.SVC, LABELS), (twins.SVR, NUMBERS), (twins.OneClassSVM, None), (twins.KernelRidge, NUMBERS)],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_a_sigmoid_is_used_with_a_warning_that_has_the_witness(twin, y):
    # so large a penalty that the indefinite matrix can be factored all the same
    more = {"alpha": 100.0} if twin is twins.KernelRidge else {}
    with pytest.warns(InvalidKernelWarning, match="qᵀKq"):
        twin(kernel="sigmoid", gamma=1.0, **more).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", InvalidKernelWarning)
        for kernel in ("linear", "rbf", "poly"):
            twin(kernel=kernel, gamma=0.5).fit(X, y)


@pytest.mark.parametrize(("twin", "y"), [(twins.SVC, LABELS), (twins.SVR, NUMBERS)], ids=["SVC", "SVR"])
def test_an_asymmetric_gram_matrix_is_used_with_a_warning(twin, y):
    K = X @ X.T
    bent = K + np.triu(np.ones((24, 24)), 1)
    with pytest.warns(InvalidKernelWarning, match="not symmetric"):
        model = twin(kernel="precomputed").fit(bent, y)
    same = twin(kernel="precomputed").fit(0.5 * (bent + bent.T), y)
    np.testing.assert_allclose(model.dual_coef_, same.dual_coef_)
    with pytest.warns(InvalidKernelWarning, match="not symmetric"):
        twin(kernel=lambda A, B: A @ B.T + A[:, :1]).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", InvalidKernelWarning)
        twin(kernel="precomputed").fit(K, y)
