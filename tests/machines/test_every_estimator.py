"""Every native estimator against the catalogue of bad and unusual inputs: a clear error, or the right answer.

The estimators and their excuses are the table of `tests/estimators_under_test.py`. Nothing is compared with a
stored number: an answer is right when it is that of the same problem stated plainly (a dense array of
float64, the rows repeated instead of weighted, the data without their offset).
"""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import re
import threading
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import DataConversionWarning, NotFittedError

import mercer
from estimators_under_test import LABELS, NEW, SUBJECTS, Subject, X, outputs
from mercer.errors import (
    InputError,
    InputTypeError,
    MagnitudeError,
    MemoryBudgetError,
    MercerError,
    NotFiniteError,
    ParameterError,
    ShapeError,
)
from mercer.solve.solution import Certificate

SUPERVISED = [s for s in SUBJECTS if s.target]
REGRESSORS = [s for s in SUBJECTS if s.target in ("numbers", "counts")]
CLASSIFIERS = [s for s in SUBJECTS if s.target in ("labels", "three")]
TRANSFORMERS = [s for s in SUBJECTS if hasattr(s.build, "fit_transform")]


def every(subjects=SUBJECTS, name="s"):
    return pytest.mark.parametrize(name, subjects, ids=lambda s: s.name)


def takes(s: Subject, name: str) -> bool:
    return name in inspect.signature(s.build.__init__).parameters


def excuse(s: Subject, test: str) -> None:
    """End a test for an estimator that the table excuses, with its reason."""
    if reason := s.excused(test):
        pytest.skip(reason)


def quietly(act):
    """The value of `act()`; what it warns of is not the matter of the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return act()


def fitted(s: Subject, *args, **changes):
    return quietly(lambda: s.fit(*args, **changes))


@cache
def _plain(name: str):
    model = fitted(next(s for s in SUBJECTS if s.name == name))
    return model, outputs(model)


def plain(s: Subject):
    """The model of the plain data, fitted once; no test changes it."""
    return _plain(s.name)[0]


def answer(s: Subject) -> dict:
    """What it says of NEW."""
    return _plain(s.name)[1]


@cache
def _zeros(name: str):
    model = fitted(next(s for s in SUBJECTS if s.name == name), SPARSE_ROWS)
    return model, outputs(model, SPARSE_NEW)


def agree(s: Subject, found: dict, wanted: dict, tolerance: float | None = None) -> None:
    assert found.keys() == wanted.keys()
    for method, value in wanted.items():
        if value.dtype.kind in "iub":
            np.testing.assert_array_equal(found[method], value, err_msg=method)
        else:
            scale = max(1.0, float(np.abs(value).max()))
            atol = (s.tolerance if tolerance is None else tolerance) * scale
            np.testing.assert_allclose(found[method], value, rtol=0, atol=atol, err_msg=method)


def identical(found: dict, wanted: dict) -> None:
    assert found.keys() == wanted.keys()
    for method, value in wanted.items():
        np.testing.assert_array_equal(found[method], value, err_msg=method)


def raised(act) -> Exception | None:
    """What `act()` raises, if anything."""
    try:
        quietly(act)
    except Exception as error:
        return error
    return None


def refuses(act, kind, *words: str) -> None:
    error = raised(act)
    assert isinstance(error, kind), f"{kind.__name__} was expected, not {error!r}"
    for word in words:
        assert re.search(word, str(error)), f"{word!r} is not in: {error}"


# ── the table ───────────────────────────────────────────────────────────────────────────────────────────────


def test_every_estimator_of_the_public_names_is_in_the_table():
    public = {getattr(mercer, name) for name in mercer.__all__}
    estimators = {c for c in public if inspect.isclass(c) and issubclass(c, BaseEstimator)}
    # models of tables hold one of these, and have laws of their own in tests/recipe
    # and so do conformal wrappers, in tests/conformal
    holders = ("mercer.recipe", "mercer.conformal")
    estimators = {c for c in estimators if not c.__module__.startswith(holders)}
    assert estimators == {s.build for s in SUBJECTS}


def test_excuses_are_for_tests_that_exist():
    source = inspect.getsource(inspect.getmodule(excuse))
    for s in SUBJECTS:
        for test, reason in s.excuses.items():
            assert re.search(rf'excused?\((s, )?"{test}"\)', source), (s.name, test)
            assert len(reason.split()) > 3, (s.name, test)


# ── a fit leaves a certificate, and touches nothing ─────────────────────────────────────────────────────────


@every()
def test_a_fit_leaves_a_certificate_that_is_json(s):
    certificate = plain(s).certificate_
    assert isinstance(certificate, Certificate)
    assert certificate.status in ("converged", "limit")
    assert json.loads(json.dumps(certificate.to_dict(), allow_nan=False))["method"] == certificate.method
    assert str(certificate).startswith(certificate.status)


@every()
def test_a_fit_changes_neither_data_nor_parameters(s):
    rows, y = X.copy(), None if s.y is None else s.y.copy()
    model = s.make()
    before = {name: repr(value) for name, value in model.get_params().items()}
    outputs(quietly(lambda: model.fit(rows, y)), rows)
    np.testing.assert_array_equal(rows, X)
    assert y is None or np.array_equal(y, s.y)
    assert {name: repr(value) for name, value in model.get_params().items()} == before


@every()
def test_fitting_twice_gives_the_same_bits(s):
    model = fitted(s)
    identical(outputs(model), answer(s))
    identical(outputs(quietly(lambda: model.fit(X, s.y))), answer(s))


@every()
@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["copy", "pickle"]
)
def test_a_copy_says_the_same(s, again):
    model = plain(s)
    other = again(model)
    identical(outputs(other), answer(s))
    assert other.certificate_ == model.certificate_


@every()
def test_clone_and_parameters(s):
    model = s.make()
    twin = clone(model)
    assert {k: repr(v) for k, v in twin.get_params().items()} == {
        k: repr(v) for k, v in model.get_params().items()
    }
    excuse(s, "kernel parameters")
    name = next(k for k in model.get_params() if k.endswith("lengthscale"))
    assert name.startswith("kernel__")
    assert model.set_params(**{name: 0.25}).get_params()[name] == 0.25
    changed = outputs(quietly(lambda: model.fit(X, s.y)))
    plain = s.settings["kernel"].replace("1.5", "0.25")
    identical(changed, outputs(fitted(s, kernel=plain)))
    refuses(lambda: model.set_params(kernel__nonsense=1.0), ValueError, "nonsense")
    refuses(lambda: model.set_params(nonsense=1.0), ValueError, "nonsense")


@every()
def test_before_fit_there_is_nothing_to_say(s):
    for method in ("predict", "decision_function", "score_samples", "transform", "predict_proba"):
        if hasattr(s.make(), method):
            refuses(
                lambda method=method: getattr(s.make(), method)(NEW), NotFittedError, type(s.make()).__name__
            )


@every()
def test_a_failed_fit_says_nothing_afterwards(s):
    model = s.make()
    refuses(lambda: model.fit(np.full_like(X, np.nan), s.y), NotFiniteError)
    method = "predict" if hasattr(model, "predict") else "transform"
    refuses(lambda: getattr(model, method)(NEW), NotFittedError)


# ── the same data in another form ───────────────────────────────────────────────────────────────────────────


def _strided(A):
    out = np.zeros((2 * A.shape[0], 3 * A.shape[1]))
    out[::2, ::3] = A
    return out[::2, ::3]


def _read_only(A):
    out = A.copy()
    out.setflags(write=False)
    return out


def _untidy(A):
    """CSR with the columns of a row backwards and every zero stored."""
    n, d = A.shape
    indices = np.tile(np.arange(d)[::-1], n)
    return sparse.csr_array((A[:, ::-1].ravel().copy(), indices, np.arange(0, n * d + 1, d)), shape=A.shape)


def _long_indices(A):
    out = sparse.csr_array(A)
    return sparse.csr_array(
        (out.data, out.indices.astype(np.int64), out.indptr.astype(np.int64)), shape=out.shape
    )


FORMS = {
    "Fortran order": np.asfortranarray,
    "strided view": _strided,
    "backwards view": lambda A: A[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": _read_only,
    "list": lambda A: A.tolist(),
    "objects": lambda A: A.astype(object),
    "long double": lambda A: A.astype(np.longdouble),
    "other byte order": lambda A: A.astype(">f8"),
    "frame": lambda A: pd.DataFrame(A, columns=["a", "b", "c"]),
    "CSR": sparse.csr_array,
    "CSC": sparse.csc_array,
    "CSR, unsorted with zeros": _untidy,
    "CSR, 64-bit indices": _long_indices,
}
SPARSE_ROWS, SPARSE_NEW = (np.where(np.abs(A) < 0.5, 0.0, A) for A in (X, NEW))


@every()
@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_the_data_does_not_change_the_answer(s, form):
    convert = FORMS[form]
    dense, wanted = _zeros(s.name)
    rows, new = convert(SPARSE_ROWS), convert(SPARSE_NEW)
    before = copy.deepcopy(rows)
    model = fitted(s, rows)
    found = outputs(model, new)
    if form.startswith(("CSR", "CSC")):
        agree(s, found, wanted)
        agree(s, outputs(model, SPARSE_NEW), wanted)  # fitted on one form, asked in the other
        agree(s, outputs(dense, new), wanted)
        assert (rows != before).nnz == 0
        if form == "CSR, unsorted with zeros":
            assert np.array_equal(rows.indices, before.indices)
    else:
        identical(found, wanted)
        assert np.array_equal(np.asarray(rows), np.asarray(before))


@every()
def test_a_memory_map_is_as_good_as_memory(s, tmp_path):
    np.save(tmp_path / "X.npy", X)
    rows = np.load(tmp_path / "X.npy", mmap_mode="r")
    identical(outputs(fitted(s, rows)), answer(s))


@every()
def test_float32_is_the_same_problem_as_its_numbers_in_float64(s):
    rows, new = X.astype(np.float32), NEW.astype(np.float32)
    wanted = outputs(fitted(s, rows.astype(np.float64)), new.astype(np.float64))
    found = outputs(fitted(s, rows), new)
    agree(s, {k: v.astype(wanted[k].dtype) for k, v in found.items()}, wanted)


@every(SUPERVISED)
def test_the_form_of_the_target_does_not_change_the_answer(s):
    wanted = answer(s)
    forms = [
        s.y.tolist(),
        s.y.astype(object),
        np.asfortranarray(s.y),
        _read_only(s.y),
        np.repeat(s.y, 2, axis=0)[::2],
    ]
    if s.target != "view":
        forms.append(pd.Series(s.y, index=np.arange(len(s.y))[::-1]))
    for y in forms:
        identical(outputs(fitted(s, X, y)), wanted)


@every([s for s in SUPERVISED if s.target != "view"])
def test_a_column_as_target(s):
    excuse(s, "column target")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = s.fit(X, s.y[:, None])
    found, wanted = outputs(model), answer(s)
    identical({k: v.reshape(wanted[k].shape) for k, v in found.items()}, wanted)
    column = found.get("predict").ndim == 2
    assert column != any(issubclass(w.category, DataConversionWarning) for w in said)


@every(CLASSIFIERS)
def test_labels_may_be_text_or_truth_values(s):
    wanted = answer(s)
    for labels in (np.array(["no", "yes", "zero"]), np.array([False, True]), np.array([-3.0, 10.0, 11.0])):
        if s.y.max() >= len(labels):
            continue
        found = outputs(fitted(s, X, labels[s.y]))
        assert found["predict"].dtype.kind == labels.dtype.kind
        np.testing.assert_array_equal(found.pop("predict"), labels[wanted["predict"]])
        identical(found, {k: v for k, v in wanted.items() if k != "predict"})


@every()
def test_column_names_are_remembered_and_compared(s):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    new = pd.DataFrame(NEW, columns=["a", "b", "c"])
    model = fitted(s, frame)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert model.n_features_in_ == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outputs(model, new)
    refuses(lambda: outputs(model, new[["b", "a", "c"]]), ValueError, "order")
    refuses(lambda: outputs(model, new.rename(columns={"c": "z"})), ValueError, "z")
    with pytest.warns(UserWarning, match="feature names"):
        outputs(model, NEW)
    quietly(lambda: model.fit(X, s.y))
    assert not hasattr(model, "feature_names_in_")


# ── data that cannot be used ────────────────────────────────────────────────────────────────────────────────


def with_entry(value, dtype=float):
    rows = X.astype(dtype)
    rows[5, 1] = value
    return rows


BAD_ROWS = {
    "NaN": (with_entry(np.nan), NotFiniteError, ("NaN", "row 5, column 1")),
    "infinity": (with_entry(np.inf), NotFiniteError, ("infinity", "row 5, column 1")),
    "NaN in float32": (with_entry(np.nan, np.float32), NotFiniteError, ("NaN", "row 5, column 1")),
    "NaN in CSR": (sparse.csr_array(with_entry(np.nan)), NotFiniteError, ("NaN", "row 5, column 1")),
    "NaN in a frame": (
        pd.DataFrame(with_entry(np.nan), columns=list("abc")),
        NotFiniteError,
        ("NaN", "row 5", "'b'"),
    ),
    "complex": (X + 0j, InputError, ("Complex data not supported",)),
    "text": (X.astype(str), InputError, ("text", "row 0, column 0")),
    "one text among objects": (with_entry("high", object), InputError, ("'high'", "row 5, column 1")),
    "dates": (np.full(X.shape, np.datetime64("2020-01-01")), InputTypeError, ("dates",)),
    "masked": (np.ma.masked_less(X, 0), InputError, ("masked", "row")),
    "no rows": (np.zeros((0, 3)), ShapeError, ("0 sample",)),
    "no columns": (np.zeros((24, 0)), ShapeError, ("0 feature",)),
    "one dimension": (X[:, 0], ShapeError, ("two dimensions", "reshape")),
    "three dimensions": (X[:, :, None], ShapeError, ("two dimensions", "3")),
    "one entry 1e300": (with_entry(1e300), MagnitudeError, (r"1e\+300", "column 1", "Rescale")),
    "nothing": (None, InputError, ("two dimensions",)),
}


@every()
@pytest.mark.parametrize("bad", BAD_ROWS)
def test_bad_rows_are_refused_at_fit_and_later(s, bad):
    rows, error, words = BAD_ROWS[bad]
    refuses(lambda: s.fit(rows), error, *words)
    model = plain(s)
    for method in answer(s):
        refuses(lambda method=method: getattr(model, method)(rows), error, *words)


@every()
def test_new_rows_of_another_width_are_refused(s):
    model = plain(s)
    for rows in (NEW[:, :2], np.hstack([NEW, NEW]), sparse.csr_array(NEW[:, :2])):
        refuses(
            lambda rows=rows: outputs(model, rows), ValueError, "3", f"{rows.shape[1]}", "features|columns"
        )


@every(SUPERVISED)
def test_bad_targets_are_refused(s):
    n = len(X)
    refuses(lambda: s.fit(X, None), InputError, type(s.make()).__name__, "requires y")
    refuses(lambda: s.fit(X, s.y[:-1]), ShapeError, f"{n}", f"{n - 1}")
    refuses(lambda: s.fit(X, s.y + 0j), ValueError, "omplex|Unknown label type")
    refuses(lambda: s.fit(X, np.stack([s.y, s.y])), ValueError, "shape|rows|dimension")
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity")):
        y = s.y.astype(float)
        y[3] = value
        refuses(lambda y=y: s.fit(X, y), NotFiniteError, word, "row 3")


def _masked(y):
    return np.ma.masked_array(y, mask=np.arange(len(y)) == 3)


def _with_one(value):
    """Targets among which one thing is of another kind."""

    def change(y):
        out = y.astype(object)
        out[3] = value
        return out

    return change


DATES = np.datetime64("2020-01-01") + np.arange(len(X))
BAD_TARGETS = {  # name -> what becomes of y, the error, and the words in it
    "masked": (_masked, InputError, "masked", "row 3"),
    "masked column": (lambda y: _masked(y)[:, None], InputError, "masked", "row 3"),
    "dates": (lambda y: DATES, InputTypeError, "dates or times|label"),
    "dates in a series": (lambda y: pd.Series(DATES), InputTypeError, "dates or times|label"),
    "times": (lambda y: DATES - DATES[0], InputTypeError, "dates or times|label"),
    "dates as objects": (lambda y: DATES.astype(object), InputTypeError, "date", "row 0"),
    "a date among numbers": (_with_one(pd.Timestamp("2020-01-01")), InputTypeError, "Timestamp", "row 3"),
    "a complex among numbers": (
        _with_one(1 + 2j),
        (ValueError, InputTypeError),
        "complex|Unknown label type",
    ),
    "none among numbers": (_with_one(None), NotFiniteError, "NaN", "row 3"),
    "missing in a series": (
        lambda y: pd.Series(np.where(np.arange(len(y)) == 3, None, y.astype(object))).convert_dtypes(),
        NotFiniteError,
        "NaN",
        "row 3",
    ),
    "text among numbers": (_with_one("one"), ValueError, "text"),
    "a list among numbers": (
        _with_one([1, 2]),
        (ValueError, InputTypeError),
        "list|Unknown label type|number",
    ),
}


@every([s for s in SUPERVISED if s.target != "view"])
@pytest.mark.parametrize("bad", BAD_TARGETS)
def test_targets_are_checked_as_strictly_as_rows(s, bad):
    change, kind, *words = BAD_TARGETS[bad]
    y = change(s.y)
    refuses(lambda: s.fit(X, y), kind, *words)


@every(SUPERVISED)
def test_a_mask_without_masked_entries_is_no_matter(s):
    identical(outputs(fitted(s, X, np.ma.masked_array(s.y, mask=np.zeros(s.y.shape, bool)))), answer(s))


@every(REGRESSORS)
def test_text_is_no_number(s):
    refuses(lambda: s.fit(X, np.array(["a", "b"])[LABELS]), ValueError, "y", "number|convert|text")
    for text in (
        s.y.astype(str),
        s.y.astype(str).astype(object),
        s.y.astype(str).tolist(),
        s.y.astype("S32"),
    ):
        refuses(lambda text=text: s.fit(X, text), ValueError, "y", "text")


@every(CLASSIFIERS)
def test_one_class_is_refused_by_name(s):
    refuses(lambda: s.fit(X, np.full(len(X), 7)), InputError, "7", "class")
    refuses(lambda: s.fit(X, np.linspace(0, 1, len(X))), ValueError, "label|contin")


# ── data that can be used, though they look strange ─────────────────────────────────────────────────────────


def sound(s: Subject, model, rows=NEW):
    """Finite answers for every row."""
    found = quietly(lambda: outputs(model, rows))
    for method, value in found.items():
        assert len(value) == rows.shape[0], method
        assert not np.isnan(value.astype(float)).any(), method
        assert s.excused("finite") or np.isfinite(value.astype(float)).all(), method
    assert isinstance(model.certificate_, Certificate)
    return found


@every()
@pytest.mark.parametrize("n", [1, 2])
def test_one_and_two_rows(s, n):
    rows = np.array([[0.0, 1.0, 2.0], [3.0, 1.0, -1.0]])[:n]
    y = None
    if s.y is not None:  # one target of each kind, the larger first
        last = s.y.reshape(len(X), -1)[:, -1]
        y = s.y[[int(last.argmax()), int(last.argmin())]][:n]
    changes = {"n_clusters": 1} if takes(s, "n_clusters") and n == 1 else {}
    if (n == 1 and (s in CLASSIFIERS or s.target == "view")) or s.excused("two rows"):
        refuses(lambda: s.fit(rows, y), MercerError, "class|n_samples=1|row|at least")
        return
    found = sound(s, fitted(s, rows, y, **changes), rows)
    if s in CLASSIFIERS and not s.excused("labels of two rows"):
        np.testing.assert_array_equal(found["predict"], y)


@every()
def test_constant_rows(s):
    rows = np.full((24, 3), 0.5)
    found = sound(s, fitted(s, rows), rows[:4])
    for method, value in found.items():
        np.testing.assert_allclose(value, np.broadcast_to(value[:1], value.shape), atol=1e-9, err_msg=method)


@every()
def test_a_constant_column_does_not_matter(s):
    excuse(s, "constant column")

    def wide(A):
        return np.column_stack([A, np.full(len(A), 3.0)])

    agree(s, outputs(fitted(s, wide(X)), wide(NEW)), answer(s))


@every(REGRESSORS)
def test_a_constant_target_gives_a_constant_that_is_near(s):
    y = np.full(len(X), 2.0)
    found = sound(s, fitted(s, X, y), X)["predict"]
    assert found.min() > -0.5 and found.max() < 2.5
    zero = sound(s, fitted(s, X, 0.0 * y + (s.target == "counts")), X)["predict"]
    assert np.abs(zero - (s.target == "counts")).max() < 1e-6


@every()
def test_rows_that_come_twice(s):
    excuse(s, "twice")
    rows, y = np.vstack([X, X]), None if s.y is None else np.concatenate([s.y, s.y])
    sound(s, fitted(s, rows, y))


@every(SUPERVISED)
def test_equal_rows_with_different_targets(s):
    rows = np.vstack([X, X[:6]])
    y = np.concatenate([s.y, s.y.max() - s.y[:6] if s in CLASSIFIERS else s.y[:6] + 1])
    sound(s, fitted(s, rows, y))


@every()
@pytest.mark.parametrize("offset", [1e6, 1e9])
def test_an_offset_does_not_change_what_a_stationary_kernel_learns(s, offset):
    excuse(s, "offset")
    grid = 2.0**-20  # offset + X is exact on this grid up to 2³³
    assert np.array_equal((X + offset) - offset, X) and np.array_equal(X / grid, np.round(X / grid))
    agree(s, outputs(fitted(s, X + offset), NEW + offset), answer(s))


@every()
def test_the_default_lengthscale_follows_the_scale_of_the_data(s):
    excuse(s, "offset")
    changes = {"kernels": ("RBF()",)} if takes(s, "kernels") else {"kernel": "RBF()"}
    if s.name.startswith("GaussianProcessRegressor"):
        changes = {"kernel": "RBF() + White(0.1)"}
    if s.target == "view":
        changes["kernel_y"] = "RBF(1.0)"
    wanted = outputs(fitted(s, **changes))
    agree(s, outputs(fitted(s, X * 2.0**40, **changes), NEW * 2.0**40), wanted)


@every()
@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_a_huge_or_tiny_scale_is_answered_or_refused(s, scale):
    error = raised(lambda: s.fit(X * scale))
    if error is None:
        sound(s, fitted(s, X * scale), X * scale)
    else:
        refuses(lambda: s.fit(X * scale), MercerError, "[Rr]escale")


@every(TRANSFORMERS)
def test_fit_transform_is_fit_and_transform(s):
    together = quietly(lambda: s.make().fit_transform(X, s.y))
    apart = quietly(lambda: fitted(s).transform(X))
    np.testing.assert_allclose(together, apart, atol=1e-7)


# ── weights ─────────────────────────────────────────────────────────────────────────────────────────────────


WEIGHED = [s for s in SUBJECTS if not s.excused("weight")]


@every()
def test_who_takes_weights_is_in_the_table(s):
    assert ("sample_weight" in inspect.signature(s.build.fit).parameters) == (s.excused("weight") is None)


def weighted(s: Subject, w, rows=X, y=...):
    y = s.y if y is ... else y
    return quietly(lambda: s.make().fit(rows, y, sample_weight=w))


@every(WEIGHED)
def test_a_weight_of_one_is_no_weight(s):
    agree(s, outputs(weighted(s, np.ones(len(X)))), answer(s))
    agree(s, outputs(weighted(s, [1] * len(X))), answer(s))


@every(WEIGHED)
def test_a_weight_of_two_is_a_row_twice(s):
    excuse(s, "weight two")
    w = np.ones(len(X))
    w[::3] = 2.0
    again = np.repeat(np.arange(len(X)), w.astype(int))
    found = outputs(weighted(s, w))
    agree(s, found, outputs(fitted(s, X[again], None if s.y is None else s.y[again])), max(s.tolerance, 1e-6))


@every(WEIGHED)
def test_a_weight_of_zero_is_a_row_absent(s):
    excuse(s, "weight zero")
    w = np.ones(len(X))
    w[::4] = 0.0
    kept = w > 0
    found = outputs(weighted(s, w))
    agree(s, found, outputs(fitted(s, X[kept], None if s.y is None else s.y[kept])), max(s.tolerance, 1e-6))


@every(WEIGHED)
def test_masked_weights_are_refused(s):
    refuses(lambda: weighted(s, _masked(np.ones(len(X)))), InputError, "sample_weight", "masked")


@every(WEIGHED)
def test_bad_weights_are_refused(s):
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity"), (-1.0, "negative")):
        w = np.ones(len(X))
        w[4] = value
        refuses(
            lambda w=w: s.make().fit(X, s.y, sample_weight=w), ValueError, "sample_weight", word, "index 4"
        )
    refuses(lambda: s.make().fit(X, s.y, sample_weight=np.ones(3)), ShapeError, r"\(3,\)", r"\(24,\)")
    refuses(lambda: s.make().fit(X, s.y, sample_weight=np.ones((24, 1))), ShapeError, r"\(24, 1\)")
    refuses(lambda: s.make().fit(X, s.y, sample_weight=np.zeros(24)), InputError, "zero")
    refuses(lambda: s.make().fit(X, s.y, sample_weight=["a"] * 24), ValueError, "sample_weight", "'a'")
    refuses(
        lambda: s.make().fit(X, s.y, sample_weight=np.ones(24) + 1j), ValueError, "sample_weight", "omplex"
    )


# ── parameters ──────────────────────────────────────────────────────────────────────────────────────────────


TEXTS = ("kernel", "kernel_y")  # what cannot be read is quoted, with the place


@every()
@pytest.mark.parametrize(
    "value", [float("nan"), -7.5, "nonsense", object(), [None]], ids=["NaN", "-7.5", "text", "object", "list"]
)
def test_a_parameter_that_means_nothing_is_refused_by_name(s, value):
    for name in s.make().get_params(deep=False):
        if not s.excused(f"any {name}"):
            error = raised(lambda name=name: s.fit(**{name: value}))
            assert isinstance(error, MercerError), f"{name}={value!r} gives {error!r}"
            quoted = name in TEXTS and str(value) in str(error)
            assert name in str(error) or quoted, f"{name} is not in: {error}"


@every([s for s in SUBJECTS if takes(s, "kernel")])
def test_a_kernel_that_is_none_is_refused_with_its_place(s):
    for text, word in (("RBF(", "column"), ("Rbf(1.0)", "RBF"), ("RBF(-1.0)", "-1.0")):
        refuses(lambda text=text: s.fit(kernel=text), ValueError, word)
    refuses(lambda: s.fit(kernel=lambda a, b: 1.0), ParameterError, "kernel", "Custom")


# ── limits ──────────────────────────────────────────────────────────────────────────────────────────────────


@every([s for s in SUBJECTS if takes(s, "n_jobs")])
@pytest.mark.usefixtures("threads_for_all")
def test_threads_do_not_change_a_bit(s):
    rng = np.random.default_rng(0)
    rows, new = rng.normal(size=(90, 3)), rng.normal(size=(20, 3))
    index = np.arange(90) % 24
    y = None if s.y is None else s.y[index]
    identical(outputs(fitted(s, rows, y, n_jobs=2), new), outputs(fitted(s, rows, y, n_jobs=1), new))


@every([s for s in SUBJECTS if takes(s, "memory")])
def test_little_memory_is_enough_or_named(s):
    error = raised(lambda: s.fit(memory=500))
    if error is not None:
        refuses(lambda: s.fit(memory=500), MemoryBudgetError, "memory", "500")
        return
    excuse(s, "memory")
    agree(s, outputs(fitted(s, memory=500)), answer(s), max(s.tolerance, 1e-6))


@every()
def test_threads_may_fit_at_the_same_time(s):
    wanted, found = answer(s), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        workers = [threading.Thread(target=lambda: found.append(outputs(s.fit()))) for _ in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert len(found) == 2
    for one in found:
        identical(one, wanted)


def _stopped(x, z):
    raise KeyboardInterrupt


@every([s for s in SUBJECTS if takes(s, "kernel") or takes(s, "kernels")])
def test_ctrl_c_inside_a_kernel_ends_the_fit(s):
    """Nothing was learned yet, so there is no best model to keep: the interrupt arrives,
    and the model stays unfitted.
    """
    excuse(s, "function as kernel")
    kernel = mercer.Custom(_stopped)
    model = s.make(**({"kernels": [kernel]} if takes(s, "kernels") else {"kernel": kernel}))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, s.y)
    assert not hasattr(model, "certificate_")
