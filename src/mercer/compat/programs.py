"""`svm-train`, `svm-predict` and `svm-scale`: LIBSVM's three programs, with its flags, files and words.

The work is done by the twins of `mercer.sklearn`. What LIBSVM accepts in silence is refused: data that are
not finite, one class only, an empty file, a model that does not agree with itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy import sparse

from mercer.compat.libsvm import (
    CLASSIFIERS,
    KERNEL_TYPES,
    REGRESSORS,
    SVM_TYPES,
    TWIN_KERNELS,
    LibsvmModel,
    Twin,
    model_of,
    read_model,
)
from mercer.compat.platt import coupled, laplace_scale, sigmoid_of
from mercer.compat.scaling import ranges_of, read_ranges
from mercer.errors import InputError, ParameterError
from mercer.sklearn import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from mercer.sklearn.names import KernelName
from mercer.tables.svmlight import read_svmlight
from mercer.typing import Array

FOLDS = 5
SEED = 0
Say = Callable[[str], None]
# What a program did, as numbers and names: what JSON can hold.
Facts = dict[str, object]


# ── flags ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Flags:
    """LIBSVM's flags, `-c 10 -q file`: their values by letter, and the files behind them."""

    values: dict[str, str] = field(default_factory=dict)
    weights: dict[int, float] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)

    def number(self, flag: str, otherwise: float) -> float:
        text = self.values.get(flag)
        if text is None:
            return otherwise
        try:
            return float(text)
        except ValueError as error:
            raise ParameterError(f"-{flag} needs a number; got {text!r}.") from error

    def whole(self, flag: str, otherwise: int) -> int:
        value = self.number(flag, otherwise)
        if value != int(value):
            raise ParameterError(f"-{flag} needs a whole number; got {value}.")
        return int(value)

    def kind(self, flag: str, otherwise: int, kinds: Sequence[str]) -> str:
        value = self.whole(flag, otherwise)
        if not 0 <= value < len(kinds):
            known = ", ".join(f"{i} {name}" for i, name in enumerate(kinds))
            raise ParameterError(f"-{flag} {value} is not known; there are {known}.")
        return kinds[value]


def read_flags(arguments: Sequence[str], valued: str, plain: str = "q") -> Flags:
    """Take the command line apart: `valued` letters have a value, `plain` ones have none."""
    found = Flags()
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if len(word) < 2 or word[0] != "-" or word[1:2].isdigit():
            found.files = [word, *rest]
            return found
        letter = word[1:]
        if letter in tuple(plain):
            found.values[letter] = ""
            continue
        weight = letter[0] == "w" and letter[1:].lstrip("+-").isdigit() and "w" in valued
        if not weight and letter not in tuple(valued):
            raise ParameterError(f"there is no flag {word}.")
        if not rest:
            raise ParameterError(f"{word} needs a value.")
        value = rest.pop(0)
        if weight:
            try:
                found.weights[int(letter[1:])] = float(value)
            except ValueError as error:
                raise ParameterError(f"{word} needs a number; got {value!r}.") from error
        else:
            found.values[letter] = value
    return found


def read_rows(path: str, *, precomputed: bool) -> tuple[sparse.csr_array, Array]:
    """Rows and targets of a file; with precomputed products the first column is the number of the row."""
    place = Path(path)
    if not place.is_file():
        raise InputError(f"there is no file {path}.")
    X, y, _ = read_svmlight(path, place.read_bytes(), zero_based=True)
    if precomputed:
        return X, y
    if X[:, [0]].nnz:
        raise InputError(f"{path} has the index 0, and LIBSVM counts from 1 (but for -t 4).")
    return sparse.csr_array(X[:, 1:]), y


# ── svm-train ───────────────────────────────────────────────────────────────────────────────────────────────


def train(arguments: Sequence[str], say: Say) -> Facts:
    """`svm-train [flags] data [model]`; what came of it, in words to `say` and as facts."""
    flags = read_flags(arguments, "stdgrcnpmehbvw")
    if not 1 <= len(flags.files) <= 2:
        raise ParameterError("svm-train [flags] training_file [model_file]: name one or two files.")
    svm_type = flags.kind("s", 0, SVM_TYPES)
    kernel = flags.kind("t", 2, KERNEL_TYPES)
    X, y = read_rows(flags.files[0], precomputed=kernel == "precomputed")
    if svm_type in CLASSIFIERS and np.any(y != np.round(y)):
        raise InputError(f"{flags.files[0]}: labels of classes are whole numbers in LIBSVM's files.")
    machine = _machine(flags, svm_type, kernel, X)
    if "v" in flags.values:
        return _cross_validate(machine, svm_type, X, y, flags.whole("v", FOLDS), say)
    machine.fit(_products(X, kernel), y)
    prob_a, prob_b = None, None
    if flags.whole("b", 0):
        prob_a, prob_b = _probabilities(machine, svm_type, X, y)
    model = model_of(machine, svm_type, X, prob_a=prob_a, prob_b=prob_b)
    if "q" not in flags.values:
        _report(machine, model, say)
    name = flags.files[1] if len(flags.files) == 2 else f"{Path(flags.files[0]).name}.model"
    _write(name, model.text())
    certificate = machine.certificate_
    return {
        "rows": len(y),
        "model": name,
        "machine": svm_type,
        "kernel": kernel,
        "status": str(certificate.status),
        "iterations": int(np.max(machine.n_iter_)),
        "objective": None if certificate.dual is None else -certificate.dual,
        "gap": certificate.gap,
        "rho": [float(value) for value in model.rho],
        "vectors": model.vectors.shape[0],
    }


def _machine(flags: Flags, svm_type: str, kernel: str, X: sparse.csr_array) -> Twin:
    gamma = flags.number("g", 0.0) or 1.0 / max(X.shape[1], 1)
    C = flags.number("c", 1.0)
    nu = flags.number("n", 0.5)
    if flags.weights and svm_type != "c_svc":
        raise ParameterError("-wi is for C-SVC, -s 0.")
    machine: Twin
    if svm_type == "c_svc":
        machine = SVC(C=C, class_weight=flags.weights or None)
    elif svm_type == "nu_svc":
        machine = NuSVC(nu=nu)
    elif svm_type == "one_class":
        machine = OneClassSVM(nu=nu)
    elif svm_type == "epsilon_svr":
        machine = SVR(C=C, epsilon=flags.number("p", 0.1))
    else:
        machine = NuSVR(nu=nu, C=C)
    # -m, the size of LIBSVM's cache, is read and decides nothing here
    machine.set_params(
        kernel=TWIN_KERNELS[kernel],
        degree=flags.whole("d", 3),
        gamma=gamma,
        coef0=flags.number("r", 0.0),
        tol=flags.number("e", 1e-3),
        shrinking=bool(flags.whole("h", 1)),
    )
    return machine


def _products(
    X: sparse.csr_array, kernel: KernelName, among: Array | None = None
) -> sparse.csr_array | Array:
    """What a twin is fitted on: the rows, or their products with the rows of fit."""
    if kernel != "precomputed":
        return X
    K = X.toarray()[:, 1:]
    return K if among is None else K[:, among]


def _held_out(machine: Twin, svm_type: str, X: sparse.csr_array, y: Array, folds: int, what: str) -> Array:
    """Predictions or decision values of every row by a machine that did not see it."""
    from sklearn.base import clone
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = StratifiedKFold if svm_type in CLASSIFIERS else KFold
    out = np.empty(len(y))
    for rest, fold in kind(folds, shuffle=True, random_state=SEED).split(X, y):
        model = clone(machine).fit(_products(X[rest], machine.kernel, rest), y[rest])
        out[fold] = getattr(model, what)(_products(X[fold], machine.kernel, rest))
    return out


def _cross_validate(
    machine: Twin, svm_type: str, X: sparse.csr_array, y: Array, folds: int, say: Say
) -> Facts:
    if not 2 <= folds <= len(y):
        raise ParameterError(f"-v {folds}: n-fold cross validation needs 2 to {len(y)} folds.")
    found = _held_out(machine, svm_type, X, y, folds, "predict")
    measures = _measures(svm_type, found, y)
    if svm_type in REGRESSORS:
        say(f"Cross Validation Mean squared error = {measures['mean_squared_error']:g}")
        say(f"Cross Validation Squared correlation coefficient = {measures['squared_correlation']:g}")
    else:
        say(f"Cross Validation Accuracy = {100 * measures['accuracy']:g}%")
    return {"rows": len(y), "folds": folds, **_finite(measures)}


def _measures(svm_type: str, found: Array, y: Array) -> dict[str, float]:
    """How good predictions are, by LIBSVM's measures."""
    if svm_type not in REGRESSORS:
        return {"accuracy": float(np.mean(found == y))}
    error = float(np.mean((found - y) ** 2))
    return {"mean_squared_error": error, "squared_correlation": _squared_correlation(found, y)}


def _finite(measures: dict[str, float]) -> dict[str, float | None]:
    """Measures as JSON has them: null for what is not defined."""
    return {name: value if np.isfinite(value) else None for name, value in measures.items()}


def _probabilities(machine: Twin, svm_type: str, X: sparse.csr_array, y: Array) -> tuple[Array, Array | None]:
    """LIBSVM's probA and probB, from rows that were held out."""
    if svm_type == "one_class":
        raise ParameterError("-b 1 is not for one-class machines here.")
    if svm_type in REGRESSORS:
        return np.array([laplace_scale(_held_out(machine, svm_type, X, y, FOLDS, "predict") - y)]), None
    kept: list[tuple[float, float]] = []
    for first, second in combinations(machine.classes_, 2):
        rows = np.flatnonzero((y == first) | (y == second))
        fewest = int(min((y == first).sum(), (y == second).sum()))
        if fewest < 2:
            raise InputError(
                f"-b 1 holds out rows, but one of the classes {first:g} and {second:g} has one only."
            )
        pair = X[rows]
        if machine.kernel == "precomputed":
            pair = sparse.csr_array(pair[:, [0, *(rows + 1)]])
        found = _held_out(machine, svm_type, pair, y[rows], min(FOLDS, fewest), "decision_function")
        # scikit-learn's value is that of the second class, LIBSVM's that of the first
        kept.append(sigmoid_of(-found, y[rows] == first))
    return np.array([a for a, _ in kept]), np.array([b for _, b in kept])


def _report(machine: Twin, model: LibsvmModel, say: Say) -> None:
    certificate = machine.certificate_
    say(f"optimization finished, {certificate.status}, #iter = {int(np.max(machine.n_iter_))}")
    if certificate.dual is not None and certificate.gap is not None:
        say(f"obj = {-certificate.dual:.6f}, duality gap = {certificate.gap:.3g}")
    say(f"rho = {' '.join(f'{v:.6f}' for v in model.rho)}")
    say(f"Total nSV = {model.vectors.shape[0]}")


# ── svm-predict ─────────────────────────────────────────────────────────────────────────────────────────────


def predict(arguments: Sequence[str], say: Say) -> Facts:
    """`svm-predict [flags] data model output`; how good it is, in words to `say` and as facts."""
    flags = read_flags(arguments, "b")
    if len(flags.files) != 3:
        raise ParameterError("svm-predict [flags] test_file model_file output_file: name three files.")
    data, name, output = flags.files
    model = read_model(name)
    X, y = read_rows(data, precomputed=model.kernel_type == "precomputed")
    lines: list[str] = []
    if not flags.whole("b", 0):
        found = model.predict(X)
    elif model.svm_type in CLASSIFIERS and model.prob_a is not None and model.prob_b is not None:
        share = coupled(model.decisions(X), model.prob_a, model.prob_b, model.classes)
        found = np.array(model.labels, dtype=float)[share.argmax(axis=1)]
        lines = [f"labels {' '.join(map(str, model.labels))}"]
        lines += [f"{f:g} {' '.join(f'{p:g}' for p in row)}" for f, row in zip(found, share, strict=True)]
    elif model.svm_type in REGRESSORS and model.prob_a is not None:
        found = model.predict(X)
        say(
            "Prob. model for test data: target value = predicted value + z,\n"
            f"z: Laplace distribution e^(-|z|/sigma)/(2sigma), sigma={model.prob_a[0]:g}"
        )
    else:
        raise InputError(f"{name} has no probabilities: train it with -b 1.")
    _write(output, "\n".join(lines or [f"{v:.17g}" for v in found]) + "\n")
    measures = _measures(model.svm_type, found, y)
    if "q" not in flags.values:
        _score(measures, int(np.sum(found == y)), len(y), say)
    return {"rows": len(y), "model": name, "file": output, **_finite(measures)}


def _score(measures: dict[str, float], right: int, n: int, say: Say) -> None:
    if "accuracy" in measures:
        say(f"Accuracy = {100 * right / n:g}% ({right}/{n}) (classification)")
        return
    say(f"Mean squared error = {measures['mean_squared_error']:g} (regression)")
    say(f"Squared correlation coefficient = {measures['squared_correlation']:g} (regression)")


def _squared_correlation(a: Array, b: Array) -> float:
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1] ** 2)


# ── svm-scale ───────────────────────────────────────────────────────────────────────────────────────────────


def scale(arguments: Sequence[str], say: Say) -> Facts:
    """`svm-scale [flags] data`: the scaled data, line by line to `say` and as facts."""
    pair = None
    rest = list(arguments)
    if "-y" in rest:
        at = rest.index("-y")
        try:
            pair = (float(rest[at + 1]), float(rest[at + 2]))
        except (IndexError, ValueError) as error:
            raise ParameterError("-y needs two numbers: y_lower y_upper.") from error
        del rest[at : at + 3]
    flags = read_flags(rest, "lusr")
    if len(flags.files) != 1:
        raise ParameterError("svm-scale [flags] data_file: name one file.")
    if "s" in flags.values and "r" in flags.values:
        raise ParameterError("give -s to save ranges or -r to restore them, not both.")
    X, y = read_rows(flags.files[0], precomputed=False)
    if "r" in flags.values:
        ranges = read_ranges(flags.values["r"])
    else:
        lower, upper = flags.number("l", -1.0), flags.number("u", 1.0)
        if not lower < upper:
            raise ParameterError(f"-l {lower:g} must be below -u {upper:g}.")
        ranges = ranges_of(X, y, lower, upper, pair)
    if "s" in flags.values:
        _write(flags.values["s"], ranges.text())
    scaled = ranges.scaled(X)
    lines = []
    for target, start, end in zip(
        ranges.scaled_target(y), scaled.indptr[:-1], scaled.indptr[1:], strict=True
    ):
        pairs = zip(scaled.indices[start:end], scaled.data[start:end], strict=True)
        lines.append(" ".join([f"{target:g}", *(f"{j + 1}:{value:g}" for j, value in pairs)]))
        say(lines[-1])
    return {"rows": len(lines), "ranges": flags.values.get("s"), "lines": lines}


def _write(name: str, text: str) -> None:
    """A file whole, or not at all; LIBSVM's programs replace what is there, and so do these."""
    place = Path(name)
    half = place.with_name(f".{place.name}.part")
    try:
        half.write_text(text, encoding="ascii")
        half.replace(place)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise InputError(f"{name} cannot be written: {error.strerror}.") from error
