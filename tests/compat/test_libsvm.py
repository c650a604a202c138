"""LIBSVM's files and flags; the models and predictions beside this file were written by LIBSVM 3.24."""

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.svm import SVC as SklearnSVC
from typer.testing import CliRunner

from mercer.cli.main import app
from mercer.compat.libsvm import read_model
from mercer.compat.platt import coupled, sigmoid_of
from mercer.compat.programs import read_flags, read_rows
from mercer.compat.scaling import ranges_of, read_ranges
from mercer.errors import InputError, MercerError, ParameterError

HERE = Path(__file__).parent / "libsvm"
TRAIN, TEST = HERE / "train.svm", HERE / "test.svm"
MODELS = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr", "sigmoid", "negative_offset")
runner = CliRunner()


def compat(*arguments):
    return runner.invoke(app, ["compat", *map(str, arguments)])


def rows(path=TEST):
    return read_rows(str(path), precomputed=False)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_libsvm_predicts_as_there(name):
    found = read_model(HERE / f"{name}.model").predict(rows()[0])
    np.testing.assert_allclose(found, np.loadtxt(HERE / f"{name}.out"), rtol=1e-5)


@pytest.mark.parametrize("name", [*MODELS, "probabilities"])
def test_a_model_is_written_as_it_was_read(name, tmp_path):
    text = (HERE / f"{name}.model").read_text()
    model = read_model(HERE / f"{name}.model")
    # LIBSVM writes values with 8 digits and a space at the end of a line
    again = tmp_path / "m"
    again.write_text(model.text())
    assert model.text().split("SV\n")[0] == text.split("SV\n")[0]
    np.testing.assert_array_equal(read_model(again).decisions(rows()[0]), model.decisions(rows()[0]))


def test_probabilities_are_those_of_libsvm():
    model = read_model(HERE / "probabilities.model")
    found = coupled(model.decisions(rows()[0]), model.prob_a, model.prob_b, 3)
    stored = np.loadtxt(HERE / "probabilities.out", skiprows=1)
    # LIBSVM's iteration ends at an error of about 0.005/3
    np.testing.assert_allclose(found, stored[:, 1:], atol=2e-3)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)


def test_coupled_probabilities_minimise_what_they_should():
    rng = np.random.default_rng(0)
    pairs = list(combinations(range(4), 2))
    decisions = rng.normal(size=(5, len(pairs)))
    a, b = -rng.uniform(0.5, 2, len(pairs)), rng.normal(size=len(pairs))
    found = coupled(decisions, a, b, 4)

    def objective(p, f):
        total = 0.0
        for q, (i, j) in enumerate(pairs):
            r = 1 / (1 + np.exp(a[q] * f[q] + b[q]))
            total += ((1 - r) * p[i] - r * p[j]) ** 2
        return total

    for row, f in zip(found, decisions, strict=True):
        for _ in range(50):
            step = rng.normal(size=4) * 0.01
            assert objective(row, f) <= objective(row + step - step.mean(), f) + 1e-15


def test_the_sigmoid_is_the_one_of_greatest_likelihood():
    rng = np.random.default_rng(1)
    f = rng.normal(size=400)
    positive = rng.uniform(size=400) < 1 / (1 + np.exp(-2 * f + 0.5))
    a, b = sigmoid_of(f, positive)
    assert abs(a + 2) < 0.5 and abs(b - 0.5) < 0.4

    def loss(a, b):
        n = positive.sum()
        target = np.where(positive, (n + 1) / (n + 2), 1 / (400 - n + 2))
        p = 1 / (1 + np.exp(a * f + b))
        return -np.sum(target * np.log(p) + (1 - target) * np.log(1 - p))

    for da, db in rng.normal(size=(40, 2)) * 0.01:
        assert loss(a, b) <= loss(a + da, b + db) + 1e-9


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("-c 2 -g 0.3", r"Accuracy = 66.6667% \(20/30\)"),
        ("-s 1 -n 0.4 -g 0.3", "Accuracy"),
        ("-s 2 -n 0.2 -g 0.1", "Accuracy"),
        ("-s 3 -t 1 -d 2 -r 1 -e 1e-6", "Mean squared error"),
        ("-s 4 -g 0.2", "Squared correlation coefficient"),
    ],
)
def test_training_ends_where_libsvm_does(flags, words, tmp_path):
    name = dict(zip("01234", MODELS, strict=False))[(re.findall(r"-s (\d)", flags) or ["0"])[0]]
    trained = compat("svm-train", *flags.split(), TRAIN, tmp_path / "m")
    assert trained.exit_code == 0, trained.stderr
    assert re.search(r"Total nSV = \d+", trained.stdout)
    result = compat("svm-predict", TEST, tmp_path / "m", tmp_path / "out")
    assert re.search(words, result.stdout), result.stdout + result.stderr
    theirs = np.loadtxt(HERE / f"{name}.out")
    found = np.loadtxt(tmp_path / "out")
    if name in ("epsilon_svr", "nu_svr"):
        np.testing.assert_allclose(found, theirs, atol=5e-3)
    else:
        assert np.mean(found == theirs) >= 0.9


def test_training_without_a_model_name_writes_beside_us(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert compat("svm-train", "-q", TRAIN).stdout == ""
    assert (tmp_path / "train.svm.model").exists()


def test_precomputed_products_are_as_good_as_the_kernel(tmp_path):
    def written(name, X, y, base):
        K = (X @ base.T).toarray()
        lines = [
            f"{int(t)} 0:{i + 1} " + " ".join(f"{j + 1}:{v:.17g}" for j, v in enumerate(row))
            for i, (t, row) in enumerate(zip(y, K, strict=True))
        ]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return tmp_path / name

    (X, y), (Z, z) = rows(TRAIN), rows(TEST)
    train, test = written("k", X, y, X), written("kt", Z, z, X)
    assert compat("svm-train", "-q", "-t", 4, train, tmp_path / "m").exit_code == 0
    assert compat("svm-train", "-q", "-t", 0, TRAIN, tmp_path / "l").exit_code == 0
    by_products = read_model(tmp_path / "m").decisions(read_rows(str(test), precomputed=True)[0])
    np.testing.assert_allclose(by_products, read_model(tmp_path / "l").decisions(Z), atol=1e-3)


def test_probabilities_are_trained_and_predicted(tmp_path):
    assert compat("svm-train", "-q", "-b", 1, "-g", 0.3, TRAIN, tmp_path / "m").exit_code == 0
    assert compat("svm-predict", "-b", 1, TEST, tmp_path / "m", tmp_path / "out").exit_code == 0
    ours = np.loadtxt(tmp_path / "out", skiprows=1)[:, 1:]
    theirs = np.loadtxt(HERE / "probabilities.out", skiprows=1)[:, 1:]
    # other folds are held out
    assert np.abs(ours - theirs).mean() < 0.05
    assert compat("svm-train", "-q", "-s", 3, "-b", 1, TRAIN, tmp_path / "r").exit_code == 0
    assert "sigma=" in compat("svm-predict", "-b", 1, TEST, tmp_path / "r", tmp_path / "out").stdout
    plain = compat("svm-predict", "-b", 1, TEST, HERE / "c_svc.model", tmp_path / "out")
    assert plain.exit_code == 1 and "-b 1" in plain.stderr


@pytest.mark.parametrize(
    ("flags", "words"), [("", "Cross Validation Accuracy"), ("-s 3", "Mean squared error")]
)
def test_cross_validation_says_what_libsvm_says(flags, words):
    assert words in compat("svm-train", *flags.split(), "-v", 5, TRAIN).stdout


def test_scaling_is_linear_between_the_ends_and_restores(tmp_path):
    X, y = rows(TRAIN)
    result = compat("svm-scale", "-l", 0, "-u", 2, "-s", tmp_path / "range", TRAIN)
    (tmp_path / "scaled").write_text(result.stdout)
    found, target = rows(tmp_path / "scaled")
    dense = X.toarray()
    least, largest = dense.min(axis=0), dense.max(axis=0)
    np.testing.assert_allclose(found.toarray(), 2 * (dense - least) / (largest - least), atol=1e-5)
    assert target.tolist() == y.tolist()
    again = compat("svm-scale", "-r", tmp_path / "range", TRAIN)
    assert again.stdout == result.stdout
    ranges = read_ranges(tmp_path / "range")
    wide = sparse.csr_array(np.ones((1, 9)))
    assert ranges.scaled(wide).shape == (1, 3)
    scaled = ranges_of(X, y, -1, 1, (0.0, 1.0)).scaled_target(y)
    assert (scaled.min(), scaled.max()) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["svm-train"], "one or two files"),
        (["svm-train", "-t", "9", TRAIN], "-t 9 is not known"),
        (["svm-train", "-z", "9", TRAIN], "there is no flag -z"),
        (["svm-train", "-c", "x", TRAIN], "-c needs a number"),
        (["svm-train", "-c"], "-c needs a value"),
        (["svm-train", "-s", "3", "-w1", "2", TRAIN], "-wi is for C-SVC"),
        (["svm-train", "-v", "1", TRAIN], "2 to 60 folds"),
        (["svm-train", "nowhere"], "there is no file nowhere"),
        (["svm-predict", TEST, TRAIN, "out"], "nothing that a model of LIBSVM says"),
        (["svm-predict", TEST], "name three files"),
        (["svm-scale", "-l", "2", "-u", "1", TRAIN], "must be below"),
        (["svm-scale", "-y", "2", TRAIN], "-y needs two numbers"),
    ],
)
def test_wrong_flags_and_files_get_a_sentence(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = compat(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert words in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "words"), [("", "no data"), ("1 1:2\n1 1:3\n", "class"), ("1 1:nan\n2 1:1\n", "finite")]
)
def test_what_libsvm_trains_in_silence_is_refused(content, words, tmp_path):
    (tmp_path / "d").write_text(content)
    result = compat("svm-train", tmp_path / "d", tmp_path / "m")
    assert result.exit_code == 1 and words in result.stderr
    assert not (tmp_path / "m").exists()


def test_flags_are_read_as_libsvm_reads_them():
    flags = read_flags(["-c", "-5", "-w-1", "2", "-q", "data", "-c"], "cw")
    assert flags.values == {"c": "-5", "q": ""}
    assert flags.weights == {-1: 2.0}
    assert flags.files == ["data", "-c"]
    with pytest.raises(ParameterError):
        read_flags(["-wx", "2"], "w")


def test_decisions_are_those_of_scikit_learn_on_the_same_model(tmp_path):
    X, y = rows(TRAIN)
    assert compat("svm-train", "-q", "-e", 1e-8, "-g", 0.3, TRAIN, tmp_path / "m").exit_code == 0
    peer = SklearnSVC(gamma=0.3, tol=1e-8, decision_function_shape="ovo").fit(X.toarray(), y)
    found = read_model(tmp_path / "m").decisions(rows()[0])
    np.testing.assert_allclose(found, peer.decision_function(rows()[0].toarray()), atol=1e-5)


LINES = (HERE / "c_svc.model").read_text().splitlines()
ODD = st.sampled_from(["nan", "inf", "-1", "0", "1e9", "99999999999", "x", "", "1:2", "c_svc", "SV", "rbf"])


@settings(deadline=None, max_examples=200)
@given(
    st.integers(0, len(LINES) - 1), st.integers(0, 4), ODD, st.sampled_from(["word", "line", "cut", "twice"])
)
def test_a_changed_model_is_refused_or_predicts(tmp_path_factory, at, word, odd, how):
    lines = list(LINES)
    if how == "word":
        words = lines[at].split()
        words[min(word, len(words) - 1)] = odd
        lines[at] = " ".join(words)
    elif how == "line":
        lines[at] = odd
    elif how == "cut":
        lines = lines[:at]
    else:
        lines.insert(at, lines[at])
    path = tmp_path_factory.mktemp("m") / "m"
    path.write_text("\n".join(lines) + "\n")
    found = None
    try:
        found = read_model(path)
    except InputError as error:
        assert str(path) in str(error)  # noqa: PT017
    if found is not None:
        try:
            predicted = found.predict(rows()[0])
        except MercerError:
            return
        assert predicted.shape == (30,) and np.isfinite(predicted).all()
