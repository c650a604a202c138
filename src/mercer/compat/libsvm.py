"""LIBSVM's models: the text that `svm-train` writes and `svm-predict` reads.

    f_ij(x) = Σ_v c_v k(x_v, x) - rho_ij        for each pair i < j of classes, and one f otherwise

Support vectors are grouped by class. Row m of `coef` has the coefficient of a vector of class i in its pair
with the m-th of the other classes. A file is data: every number in it is checked before it is used, since
LIBSVM itself reads beyond its arrays where a count lies.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
from scipy import sparse

from mercer.errors import InputError, ShapeError
from mercer.kernels import Kernel
from mercer.sklearn import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from mercer.sklearn.names import kernel_named
from mercer.typing import Array

SVM_TYPES = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")
# LIBSVM's names of kernels, and the twins'.
TWIN_KERNELS = {
    "linear": "linear",
    "polynomial": "poly",
    "rbf": "rbf",
    "sigmoid": "sigmoid",
    "precomputed": "precomputed",
}
KERNEL_TYPES = tuple(TWIN_KERNELS)
CLASSIFIERS = ("c_svc", "nu_svc")
REGRESSORS = ("epsilon_svr", "nu_svr")
Twin = SVC | NuSVC | OneClassSVM | SVR | NuSVR
# Rows whose products with all support vectors are held at once.
BLOCK = 4096


@dataclass(frozen=True)
class LibsvmModel:
    """What a model file of LIBSVM says.

    With a precomputed kernel, `vectors` has one column, the numbers of the training rows from 1.
    """

    svm_type: str
    kernel_type: str
    degree: int
    gamma: float
    coef0: float
    rho: Array
    labels: tuple[int, ...]
    counts: tuple[int, ...]
    coef: Array
    vectors: sparse.csr_array
    prob_a: Array | None = None
    prob_b: Array | None = None

    @property
    def classes(self) -> int:
        """How many classes there are; 2 for what has none, as LIBSVM counts."""
        return max(len(self.labels), 2)

    def decisions(self, X: sparse.csr_array) -> Array:
        """f of every pair of classes, or f alone: rows × pairs."""
        parts = [self._decided(X[start : start + BLOCK]) for start in range(0, X.shape[0], BLOCK)]
        return np.concatenate(parts)

    def _decided(self, X: sparse.csr_array) -> Array:
        K = self._products(X)
        if self.svm_type not in CLASSIFIERS:
            return K @ self.coef.T - self.rho
        ends = np.cumsum([0, *self.counts])
        out = np.empty((X.shape[0], len(self.rho)))
        for p, (i, j) in enumerate(combinations(range(self.classes), 2)):
            of_i = slice(ends[i], ends[i + 1])
            of_j = slice(ends[j], ends[j + 1])
            out[:, p] = K[:, of_i] @ self.coef[j - 1, of_i] + K[:, of_j] @ self.coef[i, of_j] - self.rho[p]
        return out

    def _products(self, X: sparse.csr_array) -> Array:
        """k between rows and support vectors."""
        if self.kernel_type == "precomputed":
            numbers = self.vectors.toarray()[:, 0].astype(int)
            if X.shape[1] <= numbers.max():
                raise ShapeError(
                    f"row {numbers.max()} of the training data is a support vector, but the rows have "
                    f"products with {X.shape[1] - 1} training rows only."
                )
            return np.asarray(X.toarray()[:, numbers])
        width = max(X.shape[1], self.vectors.shape[1])
        x = _widened(X, width)
        v = _widened(self.vectors, width)
        kernel = self._kernel()
        if kernel is not None:
            return np.asarray(kernel(x, v))
        # what is no kernel of mercer: negative offsets, degrees and widths
        products = np.asarray((x @ v.T).toarray())
        if self.kernel_type == "polynomial":
            return np.asarray((self.gamma * products + self.coef0) ** self.degree)
        if self.kernel_type == "sigmoid":
            return np.tanh(self.gamma * products + self.coef0)
        squares = np.asarray(x.multiply(x).sum(axis=1))[:, None] + np.asarray(v.multiply(v).sum(axis=1))
        return np.asarray(np.exp(-self.gamma * (squares - 2 * products)))

    def _kernel(self) -> Kernel | None:
        return kernel_named(
            TWIN_KERNELS[self.kernel_type], gamma=self.gamma, coef0=self.coef0, degree=self.degree
        )

    def predict(self, X: sparse.csr_array) -> Array:
        """Labels by the votes of all pairs, ±1 of one class, or numbers."""
        found = self.decisions(X)
        if self.svm_type == "one_class":
            return np.where(found[:, 0] > 0, 1.0, -1.0)
        if self.svm_type in REGRESSORS:
            return found[:, 0]
        votes = np.zeros((len(found), self.classes), dtype=int)
        for p, (i, j) in enumerate(combinations(range(self.classes), 2)):
            votes[:, i] += found[:, p] > 0
            votes[:, j] += found[:, p] <= 0
        return np.asarray(np.array(self.labels, dtype=float)[votes.argmax(axis=1)])

    def text(self) -> str:
        """The model as `svm-train` writes it, with 17 digits."""
        out = io.StringIO()
        out.write(f"svm_type {self.svm_type}\nkernel_type {self.kernel_type}\n")
        if self.kernel_type == "polynomial":
            out.write(f"degree {self.degree}\n")
        if self.kernel_type in ("polynomial", "rbf", "sigmoid"):
            out.write(f"gamma {self.gamma:.17g}\n")
        if self.kernel_type in ("polynomial", "sigmoid"):
            out.write(f"coef0 {self.coef0:.17g}\n")
        out.write(f"nr_class {self.classes}\ntotal_sv {self.vectors.shape[0]}\nrho {_numbers(self.rho)}\n")
        if self.labels:
            out.write(f"label {' '.join(map(str, self.labels))}\n")
        if self.prob_a is not None:
            out.write(f"probA {_numbers(self.prob_a)}\n")
        if self.prob_b is not None:
            out.write(f"probB {_numbers(self.prob_b)}\n")
        if self.labels:
            out.write(f"nr_sv {' '.join(map(str, self.counts))}\n")
        out.write("SV\n")
        for v in range(self.vectors.shape[0]):
            out.write(f"{_numbers(self.coef[:, v])} {self._vector(v)}\n")
        return out.getvalue()

    def _vector(self, v: int) -> str:
        if self.kernel_type == "precomputed":
            return f"0:{int(self.vectors[v, 0])}"
        place = slice(self.vectors.indptr[v], self.vectors.indptr[v + 1])
        pairs = zip(self.vectors.indices[place], self.vectors.data[place], strict=True)
        return " ".join(f"{int(j) + 1}:{value:.17g}" for j, value in sorted(pairs))


def _numbers(values: Array) -> str:
    return " ".join(f"{float(v):.17g}" for v in values)


def _widened(X: sparse.csr_array, width: int) -> sparse.csr_array:
    if X.shape[1] == width:
        return X
    return sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))


# ── from a twin ─────────────────────────────────────────────────────────────────────────────────────────────


def model_of(
    twin: Twin,
    svm_type: str,
    X: sparse.csr_array,
    *,
    prob_a: Array | None = None,
    prob_b: Array | None = None,
) -> LibsvmModel:
    """A fitted twin of `mercer.sklearn` as a model of LIBSVM; X is what it was fitted on."""
    kernel_type = next(name for name, ours in TWIN_KERNELS.items() if ours == twin.kernel)
    gamma = 0.0
    if kernel_type in ("polynomial", "rbf", "sigmoid"):
        gamma = float(twin.gamma)
    coef = np.asarray(sparse.csr_array(twin.dual_coef_).toarray())
    rho = -np.atleast_1d(np.asarray(twin.intercept_, dtype=float))
    labels: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()
    if svm_type in CLASSIFIERS:
        labels = tuple(int(label) for label in twin.classes_)
        counts = tuple(int(count) for count in twin.n_support_)
        if len(labels) == 2:
            # scikit-learn counts for the second class, LIBSVM for the first
            coef = -coef
            rho = -rho
    if kernel_type == "precomputed":
        vectors = sparse.csr_array(np.asarray(twin.support_, dtype=float)[:, None] + 1)
    else:
        vectors = sparse.csr_array(X[twin.support_])
    vectors.sort_indices()
    return LibsvmModel(
        svm_type,
        kernel_type,
        int(twin.degree),
        gamma,
        float(twin.coef0),
        rho,
        labels,
        counts,
        coef,
        vectors,
        prob_a,
        prob_b,
    )


# ── from a file ─────────────────────────────────────────────────────────────────────────────────────────────

_WORDS = {"svm_type": SVM_TYPES, "kernel_type": KERNEL_TYPES}
_WHOLE = ("degree", "nr_class", "total_sv", "label", "nr_sv")
_REAL = ("gamma", "coef0", "rho", "probA", "probB")


def read_model(path: str | Path) -> LibsvmModel:
    """The model of a file; what cannot be true is refused with its line."""
    try:
        lines = Path(path).read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as a model of LIBSVM: {error}.") from error
    head, start = _head(str(path), lines)
    for needed in ("svm_type", "kernel_type", "nr_class", "total_sv", "rho"):
        if needed not in head:
            raise InputError(f"{path} is no model of LIBSVM: it does not say {needed}.")
    svm_type = str(head["svm_type"][0])
    classes = int(head["nr_class"][0])
    total = int(head["total_sv"][0])
    pairs = classes * (classes - 1) // 2 if svm_type in CLASSIFIERS else 1
    labels = tuple(int(v) for v in head.get("label", ()))
    counts = tuple(int(v) for v in head.get("nr_sv", ()))
    if svm_type in CLASSIFIERS:
        _agree(path, "label", len(labels), classes)
        _agree(path, "nr_sv", len(counts), classes)
        _agree(path, "nr_sv summed", sum(counts), total)
        if len(set(labels)) != classes or min(counts) < 0:
            raise InputError(f"{path}: labels must differ, and counts of support vectors cannot be negative.")
    elif labels or counts or classes != 2:
        raise InputError(f"{path}: {svm_type} has no classes, but the file names some.")
    _agree(path, "rho", len(head["rho"]), pairs)
    for name in ("probA", "probB"):
        if name in head:
            _agree(path, name, len(head[name]), pairs)
    _agree(path, "total_sv", total, len(lines) - start)
    coef, vectors = _support(str(path), lines, start, max(classes - 1, 1), head["kernel_type"][0])
    return LibsvmModel(
        svm_type,
        str(head["kernel_type"][0]),
        int(head.get("degree", (3,))[0]),
        float(head.get("gamma", (0.0,))[0]),
        float(head.get("coef0", (0.0,))[0]),
        np.array(head["rho"], dtype=float),
        labels,
        counts,
        coef,
        vectors,
        np.array(head["probA"], dtype=float) if "probA" in head else None,
        np.array(head["probB"], dtype=float) if "probB" in head else None,
    )


def _head(path: str, lines: list[str]) -> tuple[dict[str, tuple[str | int | float, ...]], int]:
    """What is said above the support vectors, and the line on which those begin."""
    found: dict[str, tuple[str | int | float, ...]] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if words == ["SV"]:
            return found, number
        if not words:
            continue
        name, values = words[0], words[1:]
        if name in found or not values:
            raise InputError(f"{path}, line {number}: {name} is said twice, or without a value.")
        found[name] = _values(path, number, name, values)
    raise InputError(f"{path} is no model of LIBSVM, or was cut off: it has no line SV.")


def _values(path: str, number: int, name: str, values: list[str]) -> tuple[str | int | float, ...]:
    if name in _WORDS:
        if len(values) != 1 or values[0] not in _WORDS[name]:
            known = ", ".join(_WORDS[name])
            raise InputError(f"{path}, line {number}: {name} is {' '.join(values)}; known are {known}.")
        return tuple(values)
    try:
        if name in _WHOLE:
            return tuple(int(v) for v in values)
        if name in _REAL:
            numbers = tuple(float(v) for v in values)
            if all(np.isfinite(v) for v in numbers):
                return numbers
    except ValueError:
        pass
    if name in _WHOLE or name in _REAL:
        raise InputError(f"{path}, line {number}: {name} needs finite numbers; got {' '.join(values)[:60]}.")
    raise InputError(f"{path}, line {number}: {name!r} is nothing that a model of LIBSVM says.")


def _agree(path: str | Path, what: str, found: int, wanted: int) -> None:
    if found != wanted:
        raise InputError(
            f"{path} does not agree with itself: {what} gives {found} where {wanted} are needed. Was the "
            "file cut off, or changed?"
        )


def _support(
    path: str, lines: list[str], start: int, height: int, kernel_type: str | int | float
) -> tuple[Array, sparse.csr_array]:
    """Coefficients and support vectors."""
    coef = np.empty((height, len(lines) - start))
    data: list[float] = []
    columns: list[int] = []
    ends = [0]
    for v, (number, words) in enumerate(_vector_lines(lines, start)):
        try:
            coef[:, v] = [float(word) for word in words[:height]]
            pairs = [word.split(":") for word in words[height:]]
            places = [int(place) for place, _ in pairs]
            values = [float(value) for _, value in pairs]
        except ValueError as error:
            raise InputError(
                f"{path}, line {number}: a support vector is {height} numbers and then index:value."
            ) from error
        lowest = 0 if kernel_type == "precomputed" else 1
        rising = all(a < b for a, b in pairwise(places))
        if not rising or (places and (places[0] < lowest or places[-1] >= 2**31)):
            raise InputError(f"{path}, line {number}: indices must rise from {lowest} on.")
        if not (np.isfinite(coef[:, v]).all() and np.isfinite(values).all()):
            raise InputError(f"{path}, line {number}: not all numbers are finite.")
        data += values
        columns += [place - lowest for place in places]
        ends.append(len(data))
    if kernel_type == "precomputed" and (len(data) != len(ends) - 1 or any(columns) or min(data) < 1):
        raise InputError(f"{path}: with a precomputed kernel every support vector is 0:number, from 1 on.")
    width = max(columns, default=0) + 1
    return coef, sparse.csr_array((np.array(data), columns, ends), shape=(len(ends) - 1, width))


def _vector_lines(lines: list[str], start: int) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines[start:], start + 1):
        yield number, line.split()
