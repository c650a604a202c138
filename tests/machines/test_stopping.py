"""Stopping: a fit is seen whole or not at all, and Ctrl-C at any moment keeps
the best so far and then leaves `fit`.
"""

from __future__ import annotations

import copy
import inspect
import os
import sys
import threading
import warnings
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from tests.estimators_under_test import NEW, SUBJECTS, TWINS, X, outputs

import mercer
from mercer import SVC, Interrupted, KernelRidge
from mercer.gram import Dense
from mercer.machines.shared import publish
from mercer.machines.shared.kept import READ
from mercer.solve import qp
from mercer.solve.solution import Solution, Status

# Moments at which each fit is interrupted; more in a nightly run.
MOMENTS = int(os.environ.get("MERCER_MOMENTS", "6"))
ALL = [*SUBJECTS, *TWINS]
OTHER = X[::-1] * 0.75


def every(subjects=ALL):
    return pytest.mark.parametrize("s", subjects, ids=[s.name for s in subjects])


def quietly(fit, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(*args)


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[m], b[m], equal_nan=True) for m in a)


# ── one fit or the other ────────────────────────────────────────────────────────────────────────────────────


@every()
def test_who_predicts_while_another_thread_refits_sees_one_of_the_two_models(s):
    model = s.make()
    wanted = []
    for rows in (OTHER, X):
        quietly(model.fit, rows, s.y)
        wanted.append(outputs(model))
    broken, done = [], threading.Event()

    def refit():
        for k in range(6):
            model.fit((OTHER, X)[k % 2], s.y)
        done.set()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    worker = threading.Thread(target=lambda: quietly(refit))
    try:
        worker.start()
        while not done.is_set():
            for method in wanted[0]:
                seen = getattr(model, method)(NEW)
                if not any(np.array_equal(seen, w[method], equal_nan=True) for w in wanted):
                    broken.append(method)
    finally:
        done.set()
        worker.join()
        sys.setswitchinterval(interval)
    assert not broken


@every()
def test_a_fit_that_fails_leaves_the_model_as_it_was(s):
    model = s.make()
    with pytest.raises(ValueError):
        model.fit(X * np.nan, s.y)
    assert vars(model) == vars(s.make())
    quietly(model.fit, X, s.y)
    before, state = outputs(model), dict(vars(model))
    with pytest.raises(ValueError):
        model.fit(X * np.nan, s.y)
    assert vars(model).keys() == state.keys() and all(vars(model)[name] is state[name] for name in state)
    assert same(outputs(model), before)


def test_a_partial_fit_that_fails_leaves_the_model_as_it_was(monkeypatch):
    """What grows row by row must not have grown in the model that is left."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 2))
    labels = np.where(rows[:, 0] * rows[:, 1] > 0, 1, -1)
    model = mercer.KernelPerceptron("RBF(1.0)").partial_fit(rows[:20], labels[:20])
    # what was read of the rows is no part of what was learned
    before = {name: copy.deepcopy(value) for name, value in vars(model).items() if name != READ}

    def broken(self):
        raise RuntimeError("at the very end")

    monkeypatch.setattr(mercer.KernelPerceptron, "_finish", broken)
    with pytest.raises(RuntimeError, match="very end"):
        model.partial_fit(rows[20:], labels[20:])
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(model, name), value, err_msg=name)


def test_a_subclass_whose_fit_calls_that_of_its_base_is_published_once():
    class Mine(KernelRidge):
        def fit(self, X, y, sample_weight=None):
            super().fit(X, y, sample_weight)
            assert not hasattr(outer, "dual_coef_")
            self.mine_ = 1
            return self

    outer = Mine("RBF(1.0)")
    assert outer.fit(X, X[:, 0]) is outer
    assert outer.mine_ == 1 and outer.predict(NEW).shape == (7,)


def test_a_warning_names_the_line_that_called_fit():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        SVC("RBF(1.0)", max_iter=1).fit(X, X[:, 0] > 0)
    assert [w.filename for w in seen] == [__file__]


# ── Ctrl-C ──────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def interrupted_at(moment):
    """Ctrl-C on entry of the `moment`-th function of mercer;
    the count of those entered is what is yielded.
    """
    calls = [0]

    def watch(frame, event, argument):
        if event != "call" or not frame.f_globals.get("__name__", "").startswith("mercer."):
            return
        # What is raised while Python closes a generator is lost, whoever raised it.
        if frame.f_code.co_filename == publish.__file__ or frame.f_code.co_flags & inspect.CO_GENERATOR:
            return
        calls[0] += 1
        if calls[0] == moment:
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(watch)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def moments(s):
    """Moments of a fit to be interrupted at: the first, the last, and some between, the same in every run."""
    quietly(s.fit)
    with interrupted_at(0) as calls:
        quietly(s.fit)
    last = calls[0]
    drawn = np.random.default_rng(len(s.name)).integers(1, last, MOMENTS)
    return sorted({1, last, *map(int, drawn)})


def interrupt(model, y, moment):
    """What leaves the fit; None where it was over before that moment."""
    with interrupted_at(moment) as calls:
        try:
            quietly(model.fit, X, y)
        except KeyboardInterrupt as stop:
            return stop
    assert calls[0] < moment, f"the interrupt at call {moment} was swallowed"
    return None


@every()
def test_ctrl_c_at_any_moment_leaves_fit_and_keeps_the_best_or_nothing(s):
    methods = outputs(quietly(s.fit)).keys()
    for moment in moments(s):
        model = s.make()
        stop = interrupt(model, s.y, moment)
        if isinstance(stop, Interrupted):
            assert stop.model is model
            assert model.certificate_.status == "interrupted"
            assert outputs(model).keys() == methods
        elif stop is not None:
            assert vars(model) == vars(s.make()), f"call {moment}"
            if not s.excused("unfitted"):
                with pytest.raises(NotFittedError):
                    outputs(model)


@every()
def test_ctrl_c_during_a_second_fit_leaves_the_first_or_a_whole_interrupted_one(s):
    wanted = outputs(quietly(s.fit, OTHER))
    for moment in moments(s):
        model = quietly(s.fit, OTHER)
        stop = interrupt(model, s.y, moment)
        if isinstance(stop, Interrupted):
            assert model.certificate_.status == "interrupted"
        elif stop is not None:
            assert same(outputs(model), wanted), f"call {moment}"


KEEP_BY_PASSES = {
    "SVC, probabilities": {},
    "SVC, projected gradient": {},
    "KernelPerceptron": {},
    "KernelPerceptron, voted": {},
    "Perceptron": {},
    "Adatron": {},
    "MultipleKernelClassifier": {"tol": 1e-12},
    "MultipleKernelOneClass": {"tol": 1e-12},
    "MultipleKernelRegressor": {"tol": 1e-12},
    "KernelRidge, conjugate gradients": {"tol": 1e-14},
    "KernelLeastSquares": {},
    "KernelMachine, squared": {"tol": 1e-14},
    "KernelMachine, huber": {},
    "KernelMachine, poisson": {},
    "KernelMachine, logistic": {},
    "KernelMachine, squared_hinge": {},
    "GaussianProcessRegressor, tuned": {},
    "RelevanceVectorRegressor": {},
    "RelevanceVectorClassifier": {},
    "FalkonRegressor": {},
    "FalkonRegressor, few landmarks": {},
    "FalkonClassifier": {},
    "FeatureMachineRegressor": {},
    "FeatureMachineClassifier": {},
    "KernelKMeans": {"n_init": 6},
    "twin of SVC, probabilities": {},
    "twin of GaussianProcessRegressor": {},
}
"""Machines that go round in Python, with settings that make them go round often enough."""
KEEP_BY_CORE = (
    "SVC",
    "SVC, one against the rest",
    "NuSVC",
    "SVR",
    "NuSVR",
    "OneClassSVM",
    "SVDD",
    "KernelMachine, epsilon_insensitive",
    "KernelMachine, quantile",
    "KernelMachine, hinge",
    "MultipleKernelClassifier",
    "MultipleKernelOneClass",
    "SVC, probabilities",
    "twin of SVC",
    "twin of SVC, probabilities",
    "twin of NuSVC",
    "twin of SVR",
    "twin of NuSVR",
    "twin of OneClassSVM",
)
KEEP_NOTHING = {
    "KernelRidge": "one factorisation",
    "KernelRidgeCV": "one decomposition",
    "GaussianProcessRegressor": "one factorisation",
    "GaussianProcessClassifier": "half a mode is no approximation of anything",
    "NadarayaWatson": "nothing is solved",
    "KernelMeanEmbedding": "nothing is solved",
    "KernelPCA": "one decomposition, at this size",
    "KernelCCA": "two factorisations",
    "MercerMap": "one decomposition",
    "Nystroem": "features of some rows only are none",
    "RandomFeatures": "nothing is solved",
    "twin of KernelRidge": "one factorisation",
    "twin of KernelPCA": "one decomposition, at this size",
    "twin of GaussianProcessClassifier": "the machine inside it is kept, but it is not yet the twin's",
    "twin of GaussianProcessClassifier, three": "some of its two-class machines are missing",
}
"""Machines that have nothing before they have all, and why."""


def test_ctrl_c_in_a_run_of_kmeans_that_is_not_the_best_is_not_swallowed():
    s = next(s for s in ALL if s.name == "KernelKMeans")
    several = {"n_init": 3, "random_state": 0}
    # What is remembered from the first fit is not asked for again: it would count more calls.
    quietly(s.make(**several).fit, X)
    # It is made before the count, as it is before every interrupt.
    model = s.make(**several)
    with interrupted_at(0) as calls:
        quietly(model.fit, X)
    for moment in range(1, calls[0], 3):
        assert interrupt(s.make(**several), None, moment) is not None


def test_of_every_machine_it_is_known_what_ctrl_c_leaves():
    assert {*KEEP_BY_PASSES, *KEEP_BY_CORE, *KEEP_NOTHING} == {s.name for s in ALL}
    assert not ({*KEEP_BY_PASSES, *KEEP_BY_CORE} & KEEP_NOTHING.keys())


@every([s for s in ALL if s.name in KEEP_BY_PASSES])
def test_once_there_is_something_to_keep_ctrl_c_keeps_it(s):
    """Moments all over a fit: from the first one that keeps a model,
    those of the passes that follow all do.
    """
    changes = KEEP_BY_PASSES[s.name]
    quietly(s.make(**changes).fit, X, s.y)
    with interrupted_at(0) as calls:
        quietly(s.make(**changes).fit, X, s.y)
    kept = []
    for moment in np.unique(np.linspace(1, calls[0] - 1, 12).astype(int)):
        stop = interrupt(s.make(**changes), s.y, moment)
        kept.append(isinstance(stop, Interrupted))
    shown = "".join("kept " if k else "lost " for k in kept)
    assert any(kept), shown
    first = kept.index(True)
    # The end of a fit is no pass any more: it writes down what was found, and takes no time.
    assert all(kept[first : first + int(np.ceil(0.5 * (len(kept) - first)))]), shown


@every([s for s in ALL if s.name in KEEP_BY_CORE])
def test_ctrl_c_inside_the_core_keeps_the_best_so_far_in_place(s, monkeypatch):
    methods = outputs(quietly(s.fit)).keys()
    solve = qp.core.solve_qps

    def pressed(*args, **options):
        """What the core answers to Ctrl-C after two steps."""
        found = solve(*args, **{**options, "max_iter": 2})
        return [{**each, "status": "interrupted"} for each in found]

    monkeypatch.setattr(qp.core, "solve_qps", pressed)
    model = s.make()
    with pytest.raises(Interrupted) as stop:
        quietly(model.fit, X, s.y)
    assert stop.value.model is model and model.certificate_.status == "interrupted"
    assert outputs(model).keys() == methods


def test_a_machine_whose_inner_machine_was_interrupted_stays_as_it_was(monkeypatch):
    """What there is of a part is not the whole: it is not published, and the interrupt is not swallowed."""
    solve = qp.core.solve_qps
    monkeypatch.setattr(
        qp.core,
        "solve_qps",
        lambda *args, **options: [{**each, "status": "interrupted"} for each in solve(*args, **options)],
    )

    class Outer(KernelRidge):
        def fit(self, X, y, sample_weight=None):
            self.inner_ = SVC("RBF(1.0)").fit(X, np.asarray(y) > 0)
            return super().fit(X, y, sample_weight)

    outer = Outer("RBF(1.0)")
    before = dict(vars(outer))
    with pytest.raises(KeyboardInterrupt) as stop:
        quietly(outer.fit, X, X[:, 0])
    assert not isinstance(stop.value, Interrupted) and isinstance(stop.value.__cause__, Interrupted)
    assert vars(outer) == before


def test_interrupted_is_a_keyboard_interrupt_that_carries_the_model_and_travels():
    import pickle

    model = KernelRidge("RBF(1.0)").fit(X, X[:, 0])
    stop = pickle.loads(pickle.dumps(Interrupted(model)))
    assert isinstance(stop, KeyboardInterrupt) and not isinstance(stop, Exception)
    assert isinstance(stop.model, KernelRidge) and "KernelRidge" in str(stop)
    assert mercer.errors.Interrupted is Interrupted


def test_a_callback_that_says_stop_ends_the_fit_quietly():
    seen = []
    model = SVC("RBF(1.0)", tol=1e-12, callback=lambda *state: seen.append(state) or True)
    assert model.fit(X, X[:, 0] > 0) is model
    assert model.certificate_.status in ("stopped", "converged")


PASSING = [s for s in SUBJECTS if s.name in ("KernelPerceptron", "Perceptron", "Adatron")]


@every(PASSING)
def test_ctrl_c_in_the_third_pass_keeps_the_second(s, monkeypatch):
    wanted = quietly(s.make(max_iter=2).fit, X, s.y)
    assert wanted.n_iter_ == 2
    passes, own = [], s.build._pass

    def pressed(self, *args):
        passes.append(1)
        # The key comes when the pass has changed everything that it changes.
        own(self, *args)
        if len(passes) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(s.build, "_pass", pressed)
    model = s.make(max_iter=50)
    with pytest.raises(Interrupted) as stop:
        quietly(model.fit, X, s.y)
    assert stop.value.model is model and model.certificate_.status == "interrupted"
    assert model.n_iter_ == 2 and same(outputs(model), outputs(wanted))


@pytest.mark.parametrize("loss", ["hinge", "quantile", "epsilon_insensitive"])
def test_after_ctrl_c_in_the_solver_nothing_is_multiplied_and_the_certificate_is_true(loss, monkeypatch):
    """The solver made the product that certifies its end: with many rows another one takes too long."""
    y = X[:, 0] > 0 if loss == "hinge" else X[:, 0]
    whole, products = qp.working_sets, []

    def pressed(*args, **options):
        found = whole(*args, **options)
        cut = [replace(each.certificate, status=Status.INTERRUPTED) for each in found]
        monkeypatch.setattr(Dense, "_matmat", lambda self, V: products.append(1) or self.array @ V)
        return [Solution(each.value, c) for each, c in zip(found, cut, strict=True)]

    monkeypatch.setattr("mercer.solve.active.working_sets", pressed)
    model = mercer.KernelMachine("RBF(1.5)", loss)
    with pytest.raises(Interrupted):
        quietly(model.fit, X, y)
    assert not products
    assert model.certificate_.status == "interrupted" and mercer.verify(model, X, y)
