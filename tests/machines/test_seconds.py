"""`max_seconds`: once the seconds are over, a fit makes a few more products with K at most,
and is a model that says so.

The clock is a false one that stands still and jumps past every limit at a chosen product: nothing here
depends on how fast this machine is. What is counted are products with a Gram operator, its whole matrix,
contractions of its gradient, and blocks of one that is not stored, by their share of the matrix.
"""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.estimators_under_test import LABELS, NUMBERS, SUBJECTS, Subject, X, outputs

import mercer
from mercer import (
    SVC,
    SVR,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelMachine,
    KernelRidge,
    MultipleKernelRegressor,
    NuSVC,
    clock,
)
from mercer.gram import Dense, Precomputed, Tiles
from mercer.machines.gaussian_process.search import _Task

# Products at which the clock jumps; more in a nightly run.
MOMENTS = int(os.environ.get("MERCER_MOMENTS", "2"))
FEW = 3  # products after the end: to have something at all, to measure its residual, and to certify it
ROUND = 8  # products after a search has ended, for what is published of its end
# Newton's method, in the middle of a step: the rest of it, its gap, and a certificate of two.
SMOOTH = ("squared", "huber", "poisson", "logistic", "squared_hinge")
MORE_THAN_FEW = {
    **{f"KernelMachine, {loss}": 4 for loss in SMOOTH},
    "MultipleKernelRegressor, tiles": 4,  # the two kernels are multiplied apart
    "KernelMachine, penalty": 9,  # a point on the path of prices that is certified by two more
    "KernelMachine, levels": 6,  # three levels, two each
    "GaussianProcessRegressor, cg": 4,  # the evidence is estimated, with a product for its probes
}
PRODUCTS = (
    (Tiles, "dense"),
    (Dense, "__init__"),
    *((kind, name) for kind in (Tiles, Dense, Precomputed) for name in ("_matmat",)),
)
CONTRACTIONS = ((Tiles, "contract"), (Dense, "contract"))

MORE = [
    Subject(
        "GaussianProcessRegressor, cg",
        GaussianProcessRegressor,
        {"kernel": "RBF(1.5) + White(0.1)", "solver": "cg", "random_state": 0},
        "numbers",
    ),
    Subject(
        "GaussianProcessRegressor, restarts",
        GaussianProcessRegressor,
        {"kernel": "RBF(1.5) + White(0.1)", "n_restarts": 3, "random_state": 0},
        "numbers",
    ),
    Subject(
        "KernelMachine, levels",
        KernelMachine,
        {"kernel": "RBF(0.3)", "loss": "quantile", "quantiles": (0.4, 0.5, 0.6)},
        "numbers",
    ),
    Subject(
        "KernelMachine, penalty",
        KernelMachine,
        {"kernel": "RBF(1.5)", "loss": "squared", "penalty": lambda r: r**3},
        "numbers",
    ),
    Subject(
        "MultipleKernelRegressor, tiles",
        MultipleKernelRegressor,
        {"kernels": ("RBF(1.5)", "RBF(0.5)"), "tol": 1e-8, "memory": 1},
        "numbers",
    ),
]
LIMITED = [s for s in [*SUBJECTS, *MORE] if "max_seconds" in s.make().get_params(deep=False)]


class Watch:
    """A clock that stands still until so many products were made, and is then far beyond every limit."""

    def __init__(self, moment):
        self.moment, self.products = moment, 0

    def now(self):
        return 0.0 if self.moment is None or self.products < self.moment else 1e9

    @property
    def after(self):
        return 0 if self.moment is None else max(self.products - self.moment, 0)


@contextmanager
def watched(monkeypatch, moment):
    watch = Watch(moment)

    def counting(method):
        def counted(self, *args, **options):
            found = method(self, *args, **options)
            watch.products += 1
            return found

        return counted

    def sharing(method):
        """A block counts by its share of the matrix."""

        def counted(self, *args, **options):
            found = method(self, *args, **options)
            watch.products += np.size(found) / max(self.shape[0] * self.shape[1], 1)
            return found

        return counted

    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(clock, "now", watch.now)
        for kind, name in (*PRODUCTS, *CONTRACTIONS):
            patch.setattr(kind, name, counting(getattr(kind, name)))
        # A stored matrix is only read: the work is in the blocks of one that is not.
        patch.setattr(Tiles, "block", sharing(Tiles.block))
        yield watch


def moments(count, name):
    drawn = np.random.default_rng(len(name)).integers(1, int(count) + 1, MOMENTS)
    return sorted({1, *map(int, drawn)})


@pytest.mark.parametrize("s", LIMITED, ids=[s.name for s in LIMITED])
def test_after_the_seconds_few_products_are_made_and_the_model_is_whole(s, monkeypatch):
    with watched(monkeypatch, None) as whole:
        uncut = s.fit(max_seconds=1.0)
        methods = outputs(uncut).keys()
    for moment in moments(whole.products, s.name):
        model = s.make(max_seconds=1.0)
        with watched(monkeypatch, moment) as watch:
            model.fit(X, s.y)
        made = f"{moment} of {whole.products} products in time, {watch.after} after"
        few = MORE_THAN_FEW.get(s.name, FEW)
        assert watch.after <= few, made
        assert outputs(model).keys() == methods
        found = mercer.verify(model, X, s.y)
        assert found, f"{made}\n{found}"
        if watch.products < whole.products and model.certificate_.status != "limit":
            # one that is done by its tolerance, or had ended by itself, may leave out what only polishes
            done = model.certificate_.converged and found.quality.converged
            ended = model.certificate_.status == uncut.certificate_.status
            assert done or (ended and watch.products >= whole.products - ROUND), f"{made}\n{found}"


@pytest.mark.parametrize("moment", [11, 12, 13, 22, 32, 42])
def test_a_price_that_was_cut_short_is_no_root_of_the_search(moment, monkeypatch):
    """Its f is 0, and so is the pull on it: the bracket took that for an end,
    and the fit called itself stagnated.
    """
    (s,) = (s for s in MORE if s.name == "KernelMachine, penalty")
    model = s.make(max_seconds=1.0)
    with watched(monkeypatch, moment):
        model.fit(X, s.y)
    assert model.certificate_.status == "limit", model.certificate_


def test_a_limit_around_another_is_kept_inside():
    with clock.within(5.0):
        with clock.within(100.0):
            assert clock.left() <= 5.0
        with clock.within(None):
            assert clock.left() <= 5.0
        assert clock.left(1.0) <= 1.0
    assert clock.left() is None and not clock.late()


def test_threads_of_a_search_see_the_end(monkeypatch):
    settings = {"n_restarts": 4, "n_jobs": 2, "random_state": 0, "max_seconds": 1.0}
    with watched(monkeypatch, 3) as watch:
        model = GaussianProcessRegressor("RBF(1.5) + White(0.1)", **settings).fit(X, NUMBERS)
    assert watch.after <= 2 * FEW and model.certificate_.status == "limit"


@contextmanager
def slow_products(monkeypatch):
    """A clock by which every product takes one second, and nothing else takes any."""
    with watched(monkeypatch, None) as watch, monkeypatch.context() as patch:
        patch.setattr(clock, "now", lambda: float(watch.products))
        yield watch


LEAST = 7  # products of the first answer of all, with its certificate
LEAST_OF = {"KernelMachine, penalty": 12}
OVER = 1  # product that may end after the seconds
OVER_OF = {
    "KernelMachine, penalty": 2,  # the price that it ends with is certified by more than one
    "RelevanceVectorClassifier": 2,  # a step that is cut short, and the basis that is published
    "MultipleKernelRegressor, tiles": 2,  # three kernels, each with its product
}


@pytest.mark.parametrize("s", LIMITED, ids=[s.name for s in LIMITED])
@pytest.mark.parametrize("seconds", [2.5, 8.5, 13.5])
def test_where_every_product_takes_a_second_one_at_most_ends_too_late(s, seconds, monkeypatch):
    model = s.make(max_seconds=seconds)
    with slow_products(monkeypatch) as watch:
        model.fit(X, s.y)
    allowed = max(seconds, LEAST_OF.get(s.name, LEAST)) + OVER_OF.get(s.name, OVER)
    assert watch.products <= allowed, f"{watch.products} products in {seconds} seconds: {model.certificate_}"
    assert mercer.verify(model, X, s.y)


@pytest.mark.parametrize("seconds", [0.5, 2.5, 4.5, 7.5, 13.5])
def test_no_evaluation_begins_that_would_end_too_late(seconds, monkeypatch):
    """An evaluation is a matrix, and the contraction of its gradient if there is time; a last product
    measures the residual.
    """
    with slow_products(monkeypatch) as watch:
        model = GaussianProcessRegressor("RBF(1.5) + White(0.1)", max_seconds=seconds).fit(X, NUMBERS)
    one, last = 1, 1
    assert watch.products <= max(seconds, one) + last
    assert model.certificate_.status == "limit"
    assert mercer.verify(model, X, NUMBERS)


@pytest.mark.parametrize("seconds, kind", [(None, "dense"), (9.0, "dense"), (1.5, "tiles")])
def test_a_large_matrix_is_stored_if_that_takes_half_of_the_seconds_at_most(seconds, kind, monkeypatch):
    """Its first rows tell what it will take: here they are all of it, a second."""
    monkeypatch.setattr("mercer.gram.of_kernel.LARGE", 0)
    with slow_products(monkeypatch), clock.within(seconds):
        K = mercer.gram.gram("RBF(1.0)", X)
    assert K.kind == kind
    np.testing.assert_array_equal(K.dense(), mercer.RBF(1.0)(X))


def test_memory_that_comes_too_slowly_is_given_back(monkeypatch):
    """The clock goes on a second with every look at it, and the memory of the matrix comes in many parts."""
    monkeypatch.setattr("mercer.gram.of_kernel.LARGE", 0)
    monkeypatch.setattr("mercer.gram.of_kernel.PART", 4096)
    ticks = iter(range(10**6))
    with clock.within(1000.0), monkeypatch.context() as patch:
        patch.setattr(clock, "now", lambda: float(next(ticks)))
        patch.setattr(clock, "until", lambda seconds=None: 20.0)
        K = mercer.gram.gram("RBF(1.0)", np.arange(200.0)[:, None])
        assert K.kind == "tiles" and next(ticks) < 20


def test_a_factor_that_would_not_be_ready_gives_way_to_conjugate_gradients(monkeypatch):
    direct = sys.modules["mercer.solve.direct"]
    monkeypatch.setattr(direct, "TIMED_ROWS", 10)
    monkeypatch.setattr(direct, "seconds_of_factor", lambda n, dtype: 60.0)
    settings = {"kernel": "RBF(1.5)", "alpha": 0.1, "solver": "cholesky", "tol": 1e-8}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KernelRidge(**settings, max_seconds=30.0).fit(X, NUMBERS)
        patient = KernelRidge(**settings, max_seconds=3000.0).fit(X, NUMBERS)
    said = " ".join(model.certificate_.notes)
    assert "would take some 60.0 s" in said and "conjugate gradients took its place" in said
    assert "conjugate gradients" in model.certificate_.method and "Cholesky" in patient.certificate_.method
    assert mercer.verify(model, X, NUMBERS)
    np.testing.assert_allclose(model.predict(X), patient.predict(X), atol=1e-6)


def test_sums_over_landmarks_that_would_take_too_long_give_way_to_conjugate_gradients(monkeypatch):
    """Every tile takes a second, and the seconds end before all of them are summed."""
    monkeypatch.setattr("mercer.machines.landmarks.selection.BLOCK_BYTES", 8 * 256 * 10)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 2))
    for machine, y in (
        (mercer.FalkonRegressor("RBF(1.0)", 20, max_seconds=5.5), rows[:, 0]),
        (mercer.FalkonClassifier("RBF(1.0)", 20, max_seconds=5.5), (rows[:, 0] > 0).astype(int)),
    ):
        with slow_products(monkeypatch):
            machine.fit(rows, y)
        said = " ".join(machine.certificate_.notes)
        assert "conjugate gradients took their place" in said, said
        assert machine.certificate_.status == "limit" and mercer.verify(machine, rows, y)


def test_a_search_that_saw_only_some_rows_does_not_call_itself_converged(monkeypatch):
    """The wrong moment lies between the end of the few rows and the beginning of all."""
    monkeypatch.setattr("mercer.machines.gaussian_process.starts.CHEAP", 12)
    run, began = _Task.run, []

    def noted(*args, **options):
        began.append(int(whole.products))
        return run(*args, **options)

    with watched(monkeypatch, None) as whole, monkeypatch.context() as patch:
        patch.setattr(_Task, "run", noted)
        GaussianProcessRegressor(max_seconds=1.0).fit(X, NUMBERS)
    assert len(began) > 1
    for moment in range(began[-1] - 3, began[-1] + 3):
        model = GaussianProcessRegressor(max_seconds=1.0)
        with watched(monkeypatch, moment) as watch:
            model.fit(X, NUMBERS)
        assert watch.after <= FEW
        if model.certificate_.status != "limit":
            found = mercer.verify(model, X, NUMBERS)
            assert found and found.quality.converged, f"{moment} of {whole.products}: {found}"


# ── choose ──────────────────────────────────────────────────────────────────────────────────────────────────


def behind(machine):
    """A machine behind a transformer."""
    return make_pipeline(StandardScaler(), machine)


CHOICES = {
    "leave-one-out": (KernelRidge("RBF(1.0)"), NUMBERS, "loo"),
    "evidence": (GaussianProcessRegressor("RBF(1.0)"), NUMBERS, "evidence"),
    "alignment": (SVC("RBF(1.0)"), LABELS, "alignment"),
    "cross-validation, ridge": (KernelRidge("RBF(1.0)"), NUMBERS, "cv"),
    "cross-validation, process": (GaussianProcessRegressor("RBF(1.0)"), NUMBERS, "cv"),
    "cross-validation, SVC": (SVC("RBF(1.0)"), LABELS, "cv"),
    "cross-validation, SVR": (SVR("RBF(1.0)"), NUMBERS, "cv"),
    "cross-validation, NuSVC": (NuSVC("RBF(1.0)", nu=0.3), LABELS, "cv"),
    "evidence, SVR": (SVR("RBF(1.0)"), NUMBERS, "evidence"),
    "evidence, classes": (GaussianProcessClassifier("RBF(1.0)"), LABELS, "evidence"),
    "pipeline, leave-one-out": (behind(KernelRidge("RBF(1.0)")), NUMBERS, "loo"),
    "pipeline, evidence": (behind(GaussianProcessRegressor("RBF(1.0)")), NUMBERS, "evidence"),
    "pipeline, alignment": (behind(SVC("RBF(1.0)")), LABELS, "alignment"),
    "pipeline, cross-validation": (behind(SVR("RBF(1.0)")), NUMBERS, "cv"),
}


@pytest.mark.parametrize("name", CHOICES)
def test_choose_ends_with_the_best_so_far_and_one_last_fit(name, monkeypatch):
    machine, y, by = CHOICES[name]
    for moment in (1, 3, 12):
        with watched(monkeypatch, moment) as watch:
            found = mercer.choose(machine, X, y, by=by, n_trials=8, max_seconds=1.0)
        assert watch.after <= 2 * FEW, f"{watch.after} products after the seconds"
        assert found.certificate.status == "limit"
        assert outputs(found.machine)


@pytest.mark.parametrize("name", ["leave-one-out", "evidence"])
def test_a_choice_without_time_for_a_gradient_is_by_the_score_alone(name, monkeypatch):
    """A contraction that would end too late is not begun, and the choice says that it was cut.

    A process certifies its own search, by one more product.
    """
    machine, y, by = CHOICES[name]
    own = 1 if by == "evidence" else 0
    with slow_products(monkeypatch) as watch:
        found = mercer.choose(machine, X, y, by=by, n_trials=8, max_seconds=2.0)
    assert found.certificate.status == "limit"
    assert np.isfinite(found.score) and outputs(found.machine)
    assert watch.products <= 2 + 2 * OVER + own


def test_probabilities_that_were_cut_short_say_on_how_many_folds(monkeypatch):
    ends = iter([False, False, True])
    monkeypatch.setattr("mercer.machines.margin.classify.clock.late", lambda: next(ends, True))
    with pytest.warns(ConvergenceWarning, match="folds only"):
        model = SVC("RBF(1.5)", probability=True, random_state=0).fit(X, LABELS)
    assert model.certificate_.status == "limit"
    assert "calibrated on" in " ".join(model.certificate_.notes)
    p = model.predict_proba(X)
    assert np.array_equal(p.argmax(axis=1), (model.decision_function(X) > 0).astype(int))
