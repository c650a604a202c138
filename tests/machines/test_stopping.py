"""Stopping: a fit is seen whole or not at all, and Ctrl-C at any moment keeps the best so far and then leaves `fit`."""

from __future__ import annotations

import copy
import os
import sys
import threading
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from tests.estimators_under_test import NEW, SUBJECTS, X, outputs

import mercer
from mercer import SVC, Interrupted, KernelRidge
from mercer.machines import publish

MOMENTS = int(
    os.environ.get("MERCER_MOMENTS", "6")
)  # at which each fit is interrupted; more in a nightly run
NAMES = [s.name for s in SUBJECTS]
OTHER = X[::-1] * 0.75


def every(subjects=SUBJECTS):
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
    before = copy.deepcopy(vars(model))

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
    """Ctrl-C on entry of the `moment`-th function of mercer; the count of those entered is what is yielded."""
    calls = [0]

    def watch(frame, event, argument):
        if event != "call" or not frame.f_globals.get("__name__", "").startswith("mercer."):
            return
        if frame.f_code.co_filename == publish.__file__:
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
