"""Choosing: each criterion against its slow definition, gradients, and one call for every kind of machine."""

import inspect
import pydoc
from typing import ClassVar

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.model_selection import KFold, cross_val_score

import mercer
from mercer import (
    RBF,
    SVC,
    SVR,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelRidge,
    Linear,
    NuSVC,
    NuSVR,
    RelevanceVectorRegressor,
    White,
)
from mercer.choose import median_lengthscale, scales
from mercer.choose.ascent import SAME, SAME_NOISE, TRIFLE, Guess, Stage, along_gradients, box
from mercer.choose.cost import OPERATIONS, affordable_rows, operations
from mercer.choose.criteria import CRITERIA, Score, alignment, evidence, leave_one_out
from mercer.choose.ledger import Ledger
from mercer.choose.sample import Sample
from mercer.errors import InputError, MercerError, ParameterError, ShapeError
from mercer.progress import Talk


@pytest.fixture(scope="module")
def waves():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 8, 40))[:, None]
    return X, np.sin(X[:, 0]) + rng.normal(0, 0.1, 40)


# ── criteria ────────────────────────────────────────────────────────────────────────────────────────────────

KERNELS = [1.5 * RBF(0.8), RBF(0.8) + 0.3 * Linear(), (2.0 * RBF(1.0)).fix("scale") + White(0.2)]


def test_evidence_is_the_density_of_the_targets(waves):
    X, y = waves
    Y = np.column_stack([y, y**2])
    C = RBF(0.8)(X) + 0.3 * np.eye(len(y))

    def slow(height):
        return sum(multivariate_normal(np.zeros(len(y)), height * C).logpdf(t) for t in Y.T)

    found = evidence(RBF(0.8), 0.3, X, Y)
    assert found.value == pytest.approx(slow(found.height), rel=1e-10)
    assert found.value > max(slow(1.05 * found.height), slow(found.height / 1.05))


def test_evidence_is_that_of_a_gaussian_process_of_this_height_and_noise(waves):
    X, y = waves
    found = evidence(RBF(0.8), 0.3, X, y[:, None])
    kernel = found.height * RBF(0.8) + White(0.3 * found.height)
    model = GaussianProcessRegressor(kernel, optimizer=None).fit(X, y)
    assert found.value == pytest.approx(model.log_evidence_, rel=1e-10)


def test_leave_one_out_is_as_many_refits_as_rows(waves):
    X, y = waves
    missed = []
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        a = np.linalg.solve(RBF(0.8)(X[rest]) + 0.3 * np.eye(rest.sum()), y[rest])
        missed.append(y[i] - (RBF(0.8)(X[[i]], X[rest]) @ a)[0])
    assert leave_one_out(RBF(0.8), 0.3, X, y[:, None]).value == pytest.approx(-np.mean(np.square(missed)))


@pytest.mark.parametrize("criterion", [evidence, leave_one_out, alignment])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_gradients_are_those_of_finite_differences(waves, criterion, kernel):
    X, Y = waves[0], np.column_stack([waves[1], waves[1] ** 2])
    found = criterion(kernel, 0.3, X, Y)
    for j in range(len(kernel.theta)):
        e = 1e-6 * np.eye(len(kernel.theta))[j]
        up, down = (criterion(kernel.with_theta(kernel.theta + s * e), 0.3, X, Y).value for s in (1, -1))
        assert found.theta[j] == pytest.approx((up - down) / 2e-6, rel=1e-4, abs=1e-7)
    up, down = (criterion(kernel, 0.3 * np.exp(s * 1e-6), X, Y).value for s in (1, -1))
    assert found.noise == pytest.approx((up - down) / 2e-6, rel=1e-4, abs=1e-7)


# ── one call ────────────────────────────────────────────────────────────────────────────────────────────────


def test_kernel_ridge_is_tuned_by_its_leave_one_out_error(waves):
    X, y = waves
    found = mercer.choose(KernelRidge("RBF(30.0)"), X, y)
    assert found.by == "loo" and "leave-one-out" in found.why
    best = -min(
        -leave_one_out(RBF(length), alpha, X, y[:, None]).value
        for length in np.geomspace(0.2, 20, 15)
        for alpha in np.geomspace(1e-3, 10, 15)
    )
    assert found.score >= best - 1e-6
    assert found.machine.kernel_ == found.kernel and found.machine.alpha == found.parameters["alpha"]
    assert found.trials[0].score == found.score and found.certificate.converged
    assert "loo" in str(found) and "RBF" in str(found)


def test_a_gaussian_process_is_tuned_by_its_evidence_and_not_again(waves):
    X, y = waves
    found = mercer.choose(GaussianProcessRegressor("1.0*RBF() + White(0.1)"), X, y, n_trials=2)
    assert found.by == "evidence"
    assert found.machine.kernel_ == found.kernel and found.machine.optimizer is None
    assert found.score == pytest.approx(found.machine.log_evidence_, rel=1e-8)
    # an open kernel is one for standardised targets, also after it was closed
    y = (y - y.mean()) / y.std()
    slow = multivariate_normal(np.zeros(len(y)), found.kernel(X)).logpdf(y)
    assert found.score == pytest.approx(slow, rel=1e-8)
    for step in np.eye(3) * 0.05:
        for sign in (1, -1):
            near = found.kernel.with_theta(found.kernel.theta + sign * step)
            assert multivariate_normal(np.zeros(len(y)), near(X)).logpdf(y) <= slow + 1e-6
    bare = mercer.choose(GaussianProcessRegressor("RBF()"), X, y, n_trials=1)
    assert "White" in str(bare.kernel) and "White" in bare.why


def test_labels_are_cross_validated_and_c_is_tuned():
    X, y = make_moons(80, noise=0.2, random_state=0)
    bad = SVC("RBF(30.0)", C=0.1)
    found = mercer.choose(bad, X, y, n_trials=12, cv=3)
    assert found.by == "cv" and set(found.parameters) == {"C"}
    assert 1 < sum(t.by == "cv" for t in found.trials) <= 12
    again = cross_val_score(SVC(found.kernel, C=found.parameters["C"]), X, y, cv=3).mean()
    assert found.score == pytest.approx(again)
    assert found.score > cross_val_score(bad, X, y, cv=3).mean() + 0.05


def test_alignment_finds_the_kernel_that_sees_the_labels():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2)) * [1.0, 20.0]
    y = np.where(X[:, 0] > 0, "right", "left")
    found = mercer.choose(SVC(RBF([5.0, 5.0])), X, y, by="alignment")
    short, long = found.kernel.lengthscale
    assert long > 20 * short  # the second column says nothing
    assert "C of SVC stays as given" in found.why and found.parameters == {}
    assert found.score > mercer.theory.alignment(RBF([5.0, 5.0]), X, y)


def test_several_kernels_compete_and_any_regression_machine_takes_the_winner(waves):
    X, y = waves
    found = mercer.choose(SVR(), X, y, by="evidence", kernels=["Linear()", "RBF()"], n_trials=2)
    assert isinstance(found.kernel, RBF) and {type(t.kernel) for t in found.trials} == {Linear, RBF}
    assert found.machine.score(X, y) > 0.9
    few = mercer.choose(RelevanceVectorRegressor(), X, y, by="loo", n_trials=1)
    assert few.machine.score(X, y) > 0.9


def test_a_kernel_alone_gets_a_machine(waves):
    X, y = waves
    assert isinstance(mercer.choose("RBF()", X, y, n_trials=1).machine, KernelRidge)
    assert isinstance(mercer.choose(RBF(1.0), X, y > 0, n_trials=2, cv=2).machine, SVC)


def test_fixed_and_bounded_parameters_are_respected(waves):
    X, y = waves
    kernel = (2.0 * RBF(5.0)).fix("scale").bounded(lengthscale=(4.0, 6.0))
    found = mercer.choose(KernelRidge(kernel), X, y).kernel
    assert found.scale == 2.0 and 4.0 <= found.kernel.lengthscale <= 6.0


def test_named_columns_and_sparse_rows_are_taken(waves):
    pandas = pytest.importorskip("pandas")
    X, y = waves
    table = pandas.DataFrame({"noise": np.arange(40.0) % 7, "time": X[:, 0]})
    named = mercer.choose(KernelRidge(RBF(1.0).on("time")), table, y, n_trials=1)
    plain = mercer.choose(KernelRidge(RBF(1.0)), sparse.csr_array(X), y, n_trials=1)
    assert named.score == pytest.approx(plain.score, rel=1e-6)
    assert named.machine.score(table, y) > 0.9


def test_large_data_are_tuned_on_a_sample_and_fitted_whole(waves):
    X, y = waves
    found = mercer.choose(KernelRidge("RBF(1.0)"), X, y, max_rows=15, n_trials=1)
    assert "15 of 40 rows" in found.why and len(found.machine.predict(X)) == 40
    assert len(found.machine.dual_coef_) == 40


def test_the_same_seed_gives_the_same_choice_and_progress_is_told(waves, capsys):
    X, y = waves
    a, b = (mercer.choose(SVR(), X, y, n_trials=4, cv=2, random_state=3, verbose=1) for _ in range(2))
    assert a.kernel == b.kernel and a.score == b.score
    assert "[mercer] trial 4:" in capsys.readouterr().out


def test_a_line_of_progress_is_shown_on_stderr_after_a_second(waves, capsys, monkeypatch):
    X, y = waves
    monkeypatch.setattr(Talk, "SILENCE", 1e6)
    mercer.choose(SVR(), X, y, n_trials=2, cv=2, max_seconds=1e6)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(Talk, "SILENCE", 0.0)
    mercer.choose(SVR(), X, y, n_trials=2, cv=2, max_seconds=1e6)
    out, err = capsys.readouterr()
    assert out == "" and " s: choose by cv: " in err
    last = err.splitlines()[-1]
    assert "of at most 2 trials, best " in last and " s left" in last
    mercer.choose(GaussianProcessRegressor(), X, y)
    assert " s: choose by evidence: 0 trials, no score yet" in capsys.readouterr().err
    mercer.choose(SVR(), X, y, n_trials=2, cv=2, verbose=-1)
    assert capsys.readouterr() == ("", "")


def test_time_and_the_keyboard_end_the_search_with_the_best_so_far(waves, monkeypatch):
    X, y = waves
    short = mercer.choose(KernelRidge("RBF(1.0)"), X, y, max_seconds=1e-9)
    assert short.certificate.status == "limit" and len(short.trials) == 1
    add = Ledger.add

    def stop(self, trial):
        add(self, trial)
        raise KeyboardInterrupt

    monkeypatch.setattr(Ledger, "add", stop)
    with pytest.raises(mercer.Interrupted) as pressed:
        mercer.choose(KernelRidge("RBF(1.0)"), X, y)
    found = pressed.value.model
    assert found.certificate.status == "interrupted" and len(found.trials) == 1
    assert not hasattr(found.machine, "dual_coef_")
    assert found.machine.fit(X, y).score(X, y) > 0.9


class Clocked(KernelRidge):
    """A machine whose fits write down the seconds they were given."""

    given: ClassVar[list] = []

    def fit(self, X, y, sample_weight=None):
        self.given.append((len(y), self.max_seconds))
        return super().fit(X, y, sample_weight)


def test_every_fit_inside_is_given_what_is_left_of_the_seconds(waves):
    X, y = waves
    Clocked.given.clear()
    found = mercer.choose(Clocked("RBF(1.0)", alpha=0.1), X, y, by="cv", n_trials=3, max_seconds=1000.0)
    seconds = [s for n, s in Clocked.given]
    assert len(seconds) == 3 * 5 + 1 and all(0 < s < 1000.0 for s in seconds)
    assert all(s < 1000.0 / 6 for s in seconds[:-1])
    assert found.machine.max_seconds is None


def test_a_search_whose_last_fit_would_take_all_that_is_left_begins_no_new_trial(waves, monkeypatch):
    X, y = waves
    ticks = iter(range(10**6))
    monkeypatch.setattr("mercer.clock.now", lambda: 1.0 * next(ticks))
    few = mercer.choose(KernelRidge("RBF(1.0)"), X, y, by="cv", n_trials=32, max_seconds=200.0)
    assert few.certificate.status == "limit" and 1 < len(few.trials) < 32


def test_ctrl_c_in_the_last_fit_keeps_the_choice(waves, monkeypatch):
    X, y = waves

    class Pressed(KernelRidge):
        def fit(self, X, y, sample_weight=None):
            raise KeyboardInterrupt

    with pytest.raises(mercer.Interrupted) as stop:
        mercer.choose(Pressed("RBF(1.0)"), X, y)
    assert stop.value.model.certificate.status == "interrupted" and stop.value.model.trials


def test_bad_requests_are_refused(waves):
    X, y = waves
    for arguments, words in (
        ({"by": "luck"}, "by must be"),
        ({"n_trials": 0}, "n_trials"),
        ({"max_rows": 1}, "max_rows"),
        ({"max_seconds": 0}, "max_seconds"),
        ({"kernels": ["precomputed"]}, "precomputed"),
    ):
        with pytest.raises(ParameterError, match=words):
            mercer.choose(KernelRidge(), X, y, **arguments)
    with pytest.raises(ParameterError, match="with a kernel"):
        mercer.choose(object(), X, y)
    with pytest.raises(ShapeError, match="one target"):
        mercer.choose(KernelRidge(), X, y[:5])
    with pytest.raises(InputError, match="nothing could be chosen"):
        mercer.choose(SVR(), X, y, by="evidence", kernels=["-1.0*RBF(1.0) + White(0.1)"], n_trials=1)


# ── the machine's own numbers ───────────────────────────────────────────────────────────────────────────────


def test_the_score_is_that_of_cross_validation_by_scikit_learn(waves):
    X, y = waves
    folds = KFold(4, shuffle=True, random_state=0)
    for machine in (SVR(), NuSVR(), KernelRidge(alpha=0.5)):
        found = mercer.choose(machine, X, y, by="cv", cv=folds, scoring="neg_mean_absolute_error")
        fresh = clone(machine).set_params(kernel=found.kernel, **found.parameters)
        again = cross_val_score(fresh, X, y, cv=folds, scoring="neg_mean_absolute_error")
        assert found.score == pytest.approx(again.mean(), rel=1e-9)
        assert found.by == "cv" and "evidence of 40 rows" in found.why
        full = [t for t in found.trials if t.by == "cv" and not t.note]
        assert found.score == max(t.score for t in full)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_tube_is_found_in_units_of_the_noise(scale):
    """With noise that is nearly none, a tube of 0.1 is far too wide or far too narrow but by chance."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (120, 1))
    y = scale * (np.sin(X[:, 0]) + rng.normal(0, 0.02, 120))
    found = mercer.choose(SVR("RBF()"), X, y)
    tube = found.parameters["epsilon"]
    assert 0.02 / 16 <= tube / scale <= 0.02 * 4
    grid = [0.002, 0.01, 0.02, 0.1, 0.3]
    by_hand = [
        cross_val_score(SVR(found.kernel, C=found.parameters["C"], epsilon=scale * e), X, y, cv=5).mean()
        for e in grid
    ]
    assert found.score >= max(by_hand) - 1e-3
    assert found.score > by_hand[-1] + 1e-3


def test_nu_stays_a_share(waves):
    X, y = waves
    for machine, target in ((NuSVR(nu=0.9), y), (NuSVC(nu=0.4), y > 0)):
        found = mercer.choose(machine, X, target, cv=3)
        assert {0 < t.parameters["nu"] <= 1 for t in found.trials} == {True}
        assert "nu" in found.parameters and found.machine.nu == found.parameters["nu"]


def test_numbers_that_are_zero_or_infinite_stay_as_they_are(waves):
    X, y = waves
    found = mercer.choose(SVR(epsilon=0.0), X, y, cv=3, n_trials=4)
    assert set(found.parameters) == {"C"} and found.machine.epsilon == 0.0
    assert mercer.choose(SVC(C=np.inf), X, X[:, 0] > 4, cv=3, n_trials=4).parameters == {}


def test_hopeless_trials_are_given_up_and_never_the_best(waves):
    X, y = waves
    found = mercer.choose(SVR("RBF()"), X, y, cv=KFold(5, shuffle=True, random_state=0))
    given_up = [t for t in found.trials if t.note.startswith("given up after")]
    assert given_up and found.trials[0] not in given_up
    assert found.trials[0].score == found.score


def test_a_classifier_that_is_a_process_is_chosen_by_its_own_evidence():
    X, y = make_moons(60, noise=0.2, random_state=0)
    found = mercer.choose(
        GaussianProcessClassifier("4.0*RBF(5.0)"), X, y, kernels=["4.0*RBF(5.0)", "Linear()"]
    )
    assert found.by == "evidence"
    assert found.score == pytest.approx(found.machine.log_evidence_, rel=1e-6)
    fitted = GaussianProcessClassifier("4.0*RBF(5.0)").fit(X, y)
    assert found.score == pytest.approx(fitted.log_evidence_, rel=1e-4)


def test_a_kernel_that_cannot_be_led_by_the_evidence_is_tried_all_the_same(monkeypatch):
    X, y = make_moons(60, noise=0.2, random_state=0)

    def refused(*_):
        raise MercerError("no factor anywhere")

    monkeypatch.setitem(CRITERIA, "evidence", refused)
    found = mercer.choose(SVC("RBF(20.0)"), X, y, cv=3, n_trials=12)
    tried = [t for t in found.trials if t.by == "cv"]
    assert found.by == "cv" and 6 < len(tried) <= 12 and "began" not in found.why
    assert len({t.kernel for t in tried}) > 5 and found.score > 0.85


# ── how it is called ────────────────────────────────────────────────────────────────────────────────────────


def test_the_module_has_the_signature_and_the_words_of_the_function():
    assert inspect.signature(mercer.choose) == inspect.signature(mercer.choose.choose)
    assert "max_seconds" in inspect.signature(mercer.choose).parameters
    assert inspect.cleandoc(mercer.choose.choose.__doc__) in inspect.getdoc(mercer.choose)
    assert "max_rows" in pydoc.plain(pydoc.render_doc(mercer.choose))


# ── on how many rows ────────────────────────────────────────────────────────────────────────────────────────


def test_the_rows_are_those_that_the_predicted_cost_allows():
    for by, margin in (("cv", True), ("cv", False), ("loo", False), ("evidence", True)):
        for columns in (1, 10, 300, None):
            n = affordable_rows(by, columns, 5, None, margin=margin)
            assert operations(n, by, columns, 5, margin=margin) <= OPERATIONS
            assert operations(int(1.1 * n), by, columns, 5, margin=margin) > OPERATIONS
            short = affordable_rows(by, columns, 5, 1.0, margin=margin)
            assert 400 <= short <= n
    # what 2000 rows were too few for
    assert affordable_rows("cv", 10, 5, None, margin=True) > 3700


def test_more_rows_than_the_seconds_allow_are_not_tuned_on():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=600)
    found = mercer.choose(KernelRidge("RBF(2.0)"), X, y, max_seconds=0.2, n_trials=1)
    assert "of 600 rows, fitted on all" in found.why and len(found.machine.dual_coef_) == 600
    assert max(t.rows for t in found.trials) < 600
    with pytest.raises(ParameterError, match="max_rows"):
        mercer.choose(KernelRidge(), X, y, max_rows="some")


# ── first guesses ───────────────────────────────────────────────────────────────────────────────────────────


def test_scales_are_medians_of_distances_by_loops():
    X = np.random.default_rng(0).normal(size=(12, 3))
    pairs = [np.linalg.norm(X[i] - X[j]) for i in range(12) for j in range(i)]
    found = scales(X)
    assert found.median == pytest.approx(np.median(pairs)) == pytest.approx(median_lengthscale(X))
    assert found.widest == pytest.approx(max(pairs))
    nearest = [min(np.linalg.norm(X[i] - X[j]) for j in range(12) if j != i) for i in range(12)]
    assert found.nearest == pytest.approx(np.median(nearest))
    column = [abs(X[i, 1] - X[j, 1]) for i in range(12) for j in range(i)]
    assert found.per_column[1] == pytest.approx(np.sqrt(3) * np.median(column))


def test_scales_survive_duplicates_constants_and_single_rows():
    X = np.array([[0.0, 5.0]] * 50 + [[1.0, 5.0], [3.0, 5.0]])
    found = scales(X)
    assert found.median == 2.0 and found.nearest == 1.0
    assert found.per_column[0] == found.per_column[1] > 0
    assert scales([[1.0, 2.0]]).median == 1.0 and scales(np.ones((4, 2))).per_column == (1.0, 1.0)
    big = np.random.default_rng(0).normal(size=(3000, 2))
    assert scales(big, random_state=1) == scales(big, random_state=1)
    assert scales(big).median == pytest.approx(scales(big, max_rows=3000).median, rel=0.1)
    with pytest.raises(ParameterError, match="max_rows"):
        scales(big, max_rows=1)


@pytest.mark.parametrize("lengthscale", [1e-4, 1.0, 1e4])
def test_the_box_holds_the_first_guess_and_all_lengthscales_that_rows_can_tell_apart(lengthscale):
    x = np.random.default_rng(0).normal(size=(30, 2))
    k = RBF(lengthscale)
    low, high = box(Guess(k), x)
    known = scales(x)
    assert low[0] < 0 < high[0]
    assert k.theta[0] + low[0] <= np.log(known.nearest / 2) + 1e-12
    assert k.theta[0] + high[0] >= np.log(2 * known.widest) - 1e-12


def rising(criterion, kernel, noise, ledger, starts, seed=0):
    """The trials of a search for the top of a criterion of one's own."""
    X = np.random.default_rng(seed).normal(size=(6, 1))
    sample = Sample(X, X, X, X, X)
    stage = Stage(6, False, 1e-9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CRITERIA, "evidence", criterion)
        return along_gradients(
            "evidence",
            Guess(kernel, noise),
            sample,
            X,
            [stage],
            starts,
            lambda s, lam: {"alpha": lam},
            ledger,
            seed,
        )


@pytest.mark.parametrize("noise", [None, 0.1])
@pytest.mark.parametrize("seed", range(6))
def test_every_start_ends_at_the_best_point_that_it_has_seen(seed, noise):
    """On a rugged criterion, which now and then cannot be computed,
    and out of time after some evaluations.
    """
    rng = np.random.default_rng(seed)
    seen = [[]]

    def rugged(k, lam, x, Y):
        theta = k.theta if noise is None else np.append(k.theta, np.log(lam))
        if rng.random() < 0.1:
            raise MercerError("no factor here")
        value = float(-np.sum((theta - 1.0) ** 2) + 5.0 * rng.normal())
        seen[-1].append((value, k, lam))
        slope = -2.0 * (theta - 1.0)
        return Score(value, slope[:2], float(slope[-1]))

    class Short(Ledger):
        over = False

        @property
        def spent(self):
            return len(seen[-1]) >= 7

        def add(self, trial):
            super().add(trial)
            seen.append([])

    ledger = Short("evidence", 6)
    rising(rugged, 1.5 * RBF(0.7), noise, ledger, 4, seed)
    assert len(ledger.trials) == 4
    for trial, points in zip(ledger.trials, seen, strict=False):
        if not points:
            assert trial.score == -np.inf
            continue
        value, best, lam = max(points, key=lambda point: point[0])
        assert trial.score == value
        np.testing.assert_allclose(trial.kernel.theta, best.theta)
        if noise is not None:
            assert trial.parameters["alpha"] == pytest.approx(lam)


@pytest.mark.parametrize("tops", [[1.0], [-2.0, 2.5]])
def test_a_start_that_comes_to_where_another_ended_is_ended_there(tops):
    """One hill or two, of the same height: no search but the first of each hill walks to its top."""
    evaluations = []

    def hills(k, lam, x, Y):
        theta = np.append(k.theta, np.log(lam))
        heights = [-float(np.sum((theta - top) ** 2)) for top in tops]
        top = tops[int(np.argmax(heights))]
        evaluations.append(theta)
        slope = -2.0 * (theta - top)
        return Score(max(heights), slope[:1], float(slope[1]))

    ledger = Ledger("evidence", 6)
    best = rising(hills, RBF(1.0), 1.0, ledger, 8)
    assert best.score == pytest.approx(0.0, abs=1e-6)
    walked = [t for t in ledger.trials if not t.note]
    met = [t for t in ledger.trials if t.note.startswith("met start")]
    assert len(walked) == len(tops) and len(walked) + len(met) == 8
    for trial in met:
        other = ledger.trials[int(trial.note.split()[-1]) - 1]
        assert not other.note and other.score >= trial.score - TRIFLE * 6
        assert abs(trial.kernel.theta - other.kernel.theta) <= SAME
        assert abs(np.log(trial.parameters["alpha"] / other.parameters["alpha"])) <= SAME_NOISE
