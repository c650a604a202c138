"""Every estimator pickles after its fit, by every solver and with little memory:
what comes back says the same bits.
"""

from __future__ import annotations

import inspect
import pickle
import warnings

import numpy as np
import pytest

from estimators_under_test import NEW, SUBJECTS, Subject, X, outputs
from mercer import RBF, GaussianProcessRegressor, White
from mercer.errors import MercerError
from mercer.gram import Dense, Tiles
from mercer.machines.shared.parameters import Choice, declared


def quietly(act):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return act()


def solvers(s: Subject) -> tuple[str, ...]:
    """The solvers that the machine declares."""
    choice = declared(s.build)["solver"]
    assert isinstance(choice, Choice)
    return choice.values


def variants(s: Subject) -> list[dict]:
    """The machine as it is, with every solver, and with memory for nothing."""
    takes = s.make().get_params(deep=False)
    out: list[dict] = [{}]
    if "solver" in takes:
        out += [{"solver": name} for name in solvers(s)]
    if "memory" in takes:
        out.append({"memory": 500})
    return out


def fitted(s: Subject, changes: dict):
    """The model, or None and why the data or other parameters do not go with these changes."""
    try:
        return quietly(lambda: s.fit(**changes)), ""
    except MercerError as error:
        return None, str(error)


def answers(model) -> dict[str, np.ndarray]:
    """All that a model says of new rows, with its band if it has one."""
    out = outputs(model)
    predict = getattr(model, "predict", None)
    if predict is not None and "return_std" in inspect.signature(predict).parameters:
        out["std"] = np.asarray(predict(NEW, return_std=True)[1])
    return out


@pytest.mark.parametrize("s", SUBJECTS, ids=lambda s: s.name)
def test_a_model_from_a_pickle_says_the_same_bits(s):
    for changes in variants(s):
        model, refusal = fitted(s, changes)
        if model is None:
            assert changes, f"the machine as it is must fit: {refusal}"
            assert "solver must be" not in refusal, f"{changes} was offered, and refused"
            continue
        again = pickle.loads(pickle.dumps(model))
        wanted = quietly(lambda model=model: answers(model))
        found = quietly(lambda again=again: answers(again))
        assert found.keys() == wanted.keys()
        for method, value in wanted.items():
            np.testing.assert_array_equal(found[method], value, err_msg=f"{method} with {changes}")
        assert again.certificate_ == model.certificate_


def test_the_solvers_that_are_tried_are_those_of_the_machines():
    """The law above reads them from declarations: one without names would make it empty."""
    named = {s.name: solvers(s) for s in SUBJECTS if "solver" in s.make().get_params(deep=False)}
    assert len(named) > 5
    # An equality constraint leaves working sets alone; all others have a choice.
    only_one = {name for name, found in named.items() if len(found) == 1}
    assert only_one == {"NuSVC", "NuSVR", "OneClassSVM", "SVDD"}
    assert all(named.values())
    assert set(named["GaussianProcessRegressor"]) == {"auto", "cholesky", "cg"}
    assert {"auto", "cholesky", "cg"} <= set(named["KernelRidge"])


@pytest.mark.parametrize("kind", [Tiles, Dense])
def test_a_gram_operator_from_a_pickle_gives_the_same_products_and_gradients(kind):
    K = kind(0.5 * RBF([1.0, 2.0, 0.5]) + White(0.1), X)
    v = np.random.default_rng(0).normal(size=(len(X), 2))
    K.contract(v)
    again = pickle.loads(pickle.dumps(K))
    np.testing.assert_array_equal(again @ v, K @ v)
    np.testing.assert_array_equal(again.dense(), K.dense())
    np.testing.assert_array_equal(again.contract(v), K.contract(v))
    np.testing.assert_array_equal(again.contract_inputs(v)[0], K.contract_inputs(v)[0])
    assert again.notes == K.notes


def test_a_pickled_process_by_conjugate_gradients_still_has_its_bands_and_slopes():
    y = np.sin(X[:, 0])
    model = GaussianProcessRegressor(
        "RBF(1.0) + White(0.1)", solver="cg", optimizer=None, random_state=0
    ).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    for a, b in zip(again.predict(NEW, return_cov=True), model.predict(NEW, return_cov=True), strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(again.decompose(NEW), model.decompose(NEW), strict=True):
        np.testing.assert_array_equal(a[1], b[1])
