"""What the studio draws is what the machines say: every number of a view has a referee."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg

import mercer
from mercer import theory
from mercer.studio.answers import VIEWS, Answers, Detail
from mercer.studio.components import components
from mercer.studio.curves import sample_paths
from mercer.studio.fitted import BOUND, Fitted
from mercer.studio.machines import OFFERS
from mercer.studio.packing import unpacked
from mercer.studio.presets import PRESETS
from mercer.studio.session import Session, written
from mercer.studio.state import State
from mercer.studio.steps import frames
from mercer.studio.surface import scorer
from mercer.studio.why import why


def state_of(preset: str, **first: object) -> State:
    offered = PRESETS[preset]
    usual = {"machine": offered.machine, "kernel": offered.kernel, "settings": dict(offered.settings)}
    return State.read({"data": {"preset": preset}, "first": {**usual, **first}})


def fitted_on(preset: str, **first: object) -> Fitted:
    state = state_of(preset, **first)
    return Fitted.of(state.points, state.first)


def seen(preset: str, view: str, look: dict | None = None, **first: object) -> dict:
    """A view as the page gets it, after the way through JSON."""
    offered = PRESETS[preset]
    usual = {"machine": offered.machine, "kernel": offered.kernel, "settings": dict(offered.settings)}
    state = {"data": {"preset": preset}, "first": {**usual, **first}, "view": look or {}}
    answer = Session().reply({"seq": 1, "state": state, "want": [view]})
    assert answer["problem"] is None, answer["problem"]
    assert "problem" not in answer["views"][view], answer["views"][view]
    written(answer)
    return answer["views"][view]


# ── the plane ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("machine", ["SVC", "Adatron", "KernelPerceptron", "OneClassSVM"])
def test_the_field_is_the_decision_function_on_the_grid(machine):
    view = seen("moons", "main", machine=machine, settings={})
    fitted = fitted_on("moons", machine=machine, settings={})
    left, right, bottom, top = view["box"]
    rows, columns = view["field"]["shape"]
    across, up = np.linspace(left, right, columns), np.linspace(bottom, top, rows)
    field = unpacked(view["field"])
    for r, c in [(0, 0), (0, columns - 1), (rows - 1, 0), (rows // 2, columns // 3)]:
        expected = fitted.model.decision_function([[across[c], up[r]]])[0]
        assert field[r, c] == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_support_vectors_have_the_alpha_of_the_machine_and_stand_free_or_at_the_bound():
    view = seen("moons", "main")
    model = fitted_on("moons").model
    alpha = np.zeros(120)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    np.testing.assert_allclose(unpacked(view["weights"]), alpha, rtol=1e-6)
    at_bound = np.flatnonzero(np.array(view["standing"]) == BOUND)
    assert at_bound.tolist() == np.flatnonzero(alpha >= model.C * (1 - 1e-9)).tolist()
    wrong = model.predict(PRESETS["moons"].make().X) != PRESETS["moons"].make().targets()
    assert view["misfits"] == np.flatnonzero(wrong).tolist()


def test_more_classes_show_the_one_that_wins():
    view = seen("blobs", "main")
    fitted = fitted_on("blobs")
    left, right, bottom, top = view["box"]
    rows, columns = view["winner"]["shape"]
    A, B = np.meshgrid(np.linspace(left, right, columns), np.linspace(bottom, top, rows))
    predicted = fitted.model.predict(np.column_stack([A.ravel(), B.ravel()])).astype(int)
    assert (unpacked(view["winner"]).ravel() == predicted).mean() > 0.999


def test_a_slice_holds_the_other_columns_where_they_stand():
    held = PRESETS["digits"].make().X[7].tolist()
    view = seen("digits", "main", {"axes": [20, 29], "held": held, "plane": "slice", "box": [0, 16, 0, 16]})
    fitted = fitted_on("digits")
    row = np.array(held)
    row[[20, 29]] = 16.0, 0.0
    winner = unpacked(view["winner"])[0, -1]
    assert fitted.points.labels[int(winner)] == fitted.model.predict([row])[0]


def test_the_line_on_the_components_is_the_hyperplane_of_the_machine():
    """Where a point lies in the plane of all its components, f there is f of the point."""
    fitted = fitted_on("xor", kernel="Polynomial(2)")
    found = components(fitted, 6)
    f = found.places @ found.slopes[0] + found.level[0]
    np.testing.assert_allclose(f, fitted.model.decision_function(fitted.points.X), atol=1e-8)
    centred = fitted.choice.kernel(fitted.points.X, fitted.points.X)
    centred = centred - centred.mean(axis=0) - centred.mean(axis=1)[:, None] + centred.mean()
    np.testing.assert_allclose(found.places @ found.places.T, centred, atol=1e-8)


# ── the curve ───────────────────────────────────────────────────────────────────────────────────────────────


def test_mean_and_band_are_those_of_the_process():
    view = seen("sinc", "main")
    model = fitted_on("sinc").model
    x = unpacked(view["x"])
    mean, std = model.predict(x[:, None], return_std=True)
    np.testing.assert_allclose(unpacked(view["mean"]), mean, atol=1e-4)
    np.testing.assert_allclose(unpacked(view["band"]), 2 * std, atol=1e-4)
    noisy = 2 * np.sqrt(std**2 + 0.01)
    np.testing.assert_allclose(unpacked(view["noisy"]), noisy, atol=1e-4)


def test_the_terms_of_a_sum_add_up_to_the_mean():
    view = seen("sinc", "main", kernel="RBF(2.0) + Linear()")
    level = fitted_on("sinc", kernel="RBF(2.0) + Linear()").points.y.mean()
    total = sum(unpacked(term["mean"]) - level for term in view["terms"]) + level
    np.testing.assert_allclose(total, unpacked(view["mean"]), atol=1e-5)


def test_sample_paths_have_the_covariance_of_the_posterior_and_move_smoothly():
    fitted = fitted_on("sinc")
    rows = np.linspace(-12, 12, 40)[:, None]
    many = sample_paths(fitted, rows, 20_000)
    mean, covariance = fitted.model.predict(rows, return_cov=True)
    assert np.abs(many.mean(axis=0) - mean).max() < 0.03
    assert np.abs(np.cov(many.T) - covariance).max() < 0.05
    # a point that is moved a little moves the paths a little
    moved = fitted.points.moved(10, fitted.points.X[10] + 1e-4)
    again = sample_paths(Fitted.of(moved, fitted.choice), rows, 3)
    assert np.abs(again - sample_paths(fitted, rows, 3)).max() < 0.01


# ── the kernel ──────────────────────────────────────────────────────────────────────────────────────────────


def test_the_profile_is_the_kernel_along_one_column():
    view = seen("moons", "kernel", {"chosen": 3})
    x = PRESETS["moons"].make().X[3]
    r = unpacked(view["profile"]["r"])
    expected = np.exp(-0.5 * (r / 0.6) ** 2)
    np.testing.assert_allclose(unpacked(view["profile"]["k"]), expected, atol=1e-5)
    assert view["profile"]["from"] == pytest.approx(x.tolist())


def test_a_proof_is_a_tree_of_rules_and_a_witness_refutes():
    proof = seen("moons", "kernel", kernel="RBF(1.0) + Linear()*Linear()")["proof"]
    printed = str(mercer.parse("RBF(1.0) + Linear()*Linear()").validity())
    assert len(proof["premises"]) == 2
    assert proof["rule"] in printed and all(p["rule"] in printed for p in proof["premises"])
    answer = Session().reply(
        {"state": {"data": {"preset": "moons"}, "first": {"kernel": "Sigmoid(1.0)"}}, "want": ["kernel"]}
    )
    witness = answer["views"]["kernel"]["witness"]
    K, q = np.array(witness["gram"]), np.array(witness["q"])
    assert q @ K @ q == pytest.approx(witness["value"]) and witness["value"] < 0 and witness["checked"]
    np.testing.assert_allclose(K, np.tanh(np.array(witness["points"]) @ np.array(witness["points"]).T))


def test_a_slider_moves_its_number_and_no_other():
    state = state_of("moons", kernel="2.0*RBF(0.5) + 0.1*Linear()", moved={"1": 0.7})
    assert str(state.first.kernel) == "2.0*RBF(0.7) + 0.1*Linear()"
    state = state_of("moons", kernel="RBF([0.5, 2.0])", moved={"1": 3.0})
    assert str(state.first.kernel) == "RBF([0.5, 3.0])"


# ── Gram, feature space, why ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("order", ["class", "cluster", "given"])
def test_the_gram_matrix_is_the_kernel_on_the_rows_it_names(order):
    view = seen("moons", "gram", {"order": order})
    X = PRESETS["moons"].make().X[view["rows"]]
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1) / 0.36)
    np.testing.assert_allclose(unpacked(view["matrix"]), K, atol=1e-6)
    assert sorted(view["rows"]) == list(range(120))
    spectrum = linalg.eigvalsh(K)[::-1]
    np.testing.assert_allclose(unpacked(view["spectrum"])[:20], spectrum[:20], rtol=1e-4)
    share = spectrum[spectrum > 0] / spectrum[spectrum > 0].sum()
    assert view["effectiveRank"] == pytest.approx(np.exp(-(share * np.log(share)).sum()), rel=1e-6)


def test_the_alignment_is_that_of_theory():
    points = PRESETS["moons"].make()
    expected = theory.alignment("RBF(0.6)", points.X, points.targets())
    assert seen("moons", "gram")["alignment"] == pytest.approx(expected, rel=1e-9)
    sinc = PRESETS["sinc"].make()
    expected = theory.alignment("RBF(2.0)", sinc.X, sinc.y)
    assert seen("sinc", "gram")["alignment"] == pytest.approx(expected, rel=1e-9)


def test_a_map_of_three_coordinates_is_drawn_whole_with_the_plane_of_the_machine():
    view = seen("xor", "space", kernel="Linear()**2")
    assert view["dimension"] == 3 and view["exact"]
    fitted = fitted_on("xor", kernel="Linear()**2")
    *slopes, level = view["plane"]
    places = unpacked(view["places"])
    np.testing.assert_allclose(places @ places.T, fitted.choice.kernel(fitted.points.X), atol=1e-4)
    f = places @ np.array(slopes) + level
    np.testing.assert_allclose(f, fitted.model.decision_function(fitted.points.X), atol=1e-4)


def test_an_infinite_map_is_drawn_by_its_components():
    view = seen("rings", "space")
    pca = mercer.KernelPCA(n_components=3, kernel="RBF(0.8)").fit(PRESETS["rings"].make().X)
    expected = pca.transform(PRESETS["rings"].make().X)
    np.testing.assert_allclose(np.abs(unpacked(view["places"])), np.abs(expected), atol=1e-4)


@pytest.mark.parametrize("preset", ["moons", "sinc", "blobs", "strings", "graphs"])
def test_the_terms_of_why_sum_to_what_the_machine_says(preset):
    state = State.read(
        {
            "data": {"preset": preset},
            "first": {"kernel": PRESETS[preset].kernel, "machine": PRESETS[preset].machine},
            "view": {"chosen": 5},
        }
    )
    fitted = Fitted.of(state.points, state.first)
    told = why(fitted, state.view)
    summed = sum(term["value"] for term in told["terms"]) + told["rest"] + told["offset"]
    assert summed == pytest.approx(told["total"], rel=1e-9)
    functions = fitted.functions
    values = functions.values(fitted.model.check_rows(state.points.part([5]).X, reset=False))[0]
    assert np.abs(values - told["total"]).min() < 1e-9 * max(1.0, abs(told["total"]))
    if len(values) == 1:
        assert told["total"] == pytest.approx(fitted.values(state.points.part([5]).X)[0], rel=1e-9)
    for term in told["terms"]:
        assert term["value"] == pytest.approx(term["coefficient"] * term["k"], rel=1e-12)


# ── steps, choice, compare ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("machine", ["SVC", "KernelPerceptron", "Adatron"])
def test_the_last_step_is_the_fitted_machine(machine):
    state = state_of("xor", machine=machine, settings={})
    fitted = Fitted.of(state.points, state.first)
    last = frames(state.points, state.first)[-1]
    K = state.first.kernel(state.points.X)
    expected = fitted.model.decision_function(state.points.X)
    np.testing.assert_allclose(K @ last.coefficients + last.offset, expected, atol=1e-6)


def test_primal_and_dual_close_around_the_optimum():
    found = frames(*_parts(state_of("moons")))
    gaps = [frame.primal - frame.dual for frame in found]
    assert all(gap > -1e-9 for gap in gaps)
    assert gaps[-1] < 1e-2 * abs(found[-1].primal)
    assert np.all(np.diff([frame.dual for frame in found]) > -1e-9)


def _parts(state: State):
    return state.points, state.first


def test_a_perceptron_step_is_one_mistake_and_descent_lowers_the_error():
    found = frames(*_parts(state_of("moons", machine="KernelPerceptron", settings={})))
    sizes = [np.abs(frame.coefficients).sum() for frame in found]
    assert sizes == sorted(sizes) and sizes[0] == 0 and sizes[1] == 1
    errors = [f.error for f in frames(*_parts(state_of("sinc", machine="KernelLeastSquares", settings={})))]
    assert errors == sorted(errors, reverse=True)


def test_the_surface_is_the_evidence_and_the_search_ends_near_its_best():
    view = seen("sinc", "choice")
    values = unpacked(view["values"])
    a, b = view["a"][2], view["b"][6]
    points = PRESETS["sinc"].make()
    model = mercer.GaussianProcessRegressor(f"RBF({a!r})", noise=b, optimizer=None, normalize_y="mean")
    assert values[6, 2] == pytest.approx(model.fit(points.X, points.y).log_evidence_, rel=1e-5)
    assert view["path"][-1][2] >= np.nanmax(values) - 1.0
    assert view["higher"] and view["criterion"] == "log evidence"


def test_ridge_is_chosen_by_leaving_one_out():
    state = state_of("sinc", machine="KernelRidge", settings={"alpha": 0.1})
    name, score = scorer(state.points, state.first)
    errors = []
    X, y = state.points.X, state.points.y
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        model = mercer.KernelRidge("RBF(2.0)", alpha=0.1, fit_intercept=True).fit(X[rest], y[rest])
        errors.append(float(model.predict(X[[i]])[0] - y[i]))
    assert name == "leave-one-out error"
    assert score(state.first) == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-6)


def test_compare_measures_how_far_two_machines_are_apart():
    view = seen("moons", "compare")
    exact = fitted_on("moons").model
    rough = fitted_on("moons", approximation="Nystroem").model
    X = PRESETS["moons"].make().X
    apart = np.abs(exact.decision_function(X) - rough.decision_function(X))
    assert view["rows"]["most"] == pytest.approx(apart.max(), rel=1e-6)
    assert view["rows"]["rms"] == pytest.approx(np.sqrt(np.mean(apart**2)), rel=1e-6)
    difference = unpacked(view["difference"])
    assert difference.max() == pytest.approx(view["grid"]["most"], rel=1e-5)


# ── all of it ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("preset", sorted(set(PRESETS) - {"moons500"}))
def test_every_preset_is_fitted_and_shown_by_every_quick_view(preset):
    state = state_of(preset)
    answers = Answers()
    quick = [view for view in VIEWS if view not in ("choice", "certificate")]
    answer = answers.answer(state, quick, Detail(24, 18, 60))
    assert answer["problem"] is None
    assert not [view for view in answer["views"].values() if "problem" in view]
    assert answer["kernel"]["status"] == "proved" and answer["fit"]["certificate"]["status"] == "converged"
    written({"seq": 1, **answer})


@pytest.mark.parametrize("machine", sorted(OFFERS))
def test_every_machine_that_is_offered_can_be_built_and_fitted(machine):
    preset = "moons" if OFFERS[machine].task == "classes" else "sinc"
    summary = fitted_on(preset, machine=machine, settings={}).summary()
    assert summary["machine"] == machine and summary["seconds"] > 0
