"""Margin machines that weigh their kernels: a classifier and a novelty detector (M14)."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Self

import numpy as np

from mercer.gram import GramOperator
from mercer.gram.on_rows import PRECOMPUTED
from mercer.machines.kernel_sets.multiple import KernelSet
from mercer.machines.kernel_sets.weights import GramSet, Kernels, KernelWeights
from mercer.machines.margin.classify import ClassWeight, MarginClassifier
from mercer.machines.margin.one_class import OneClassSVM
from mercer.machines.margin.problems import NU_OF_OUTLIERS, MarginMachine, Solved
from mercer.machines.margin.svc import SVC
from mercer.machines.shared.base import check_weights
from mercer.machines.shared.parameters import Declarations, Switch
from mercer.solve.box import BoxProblem
from mercer.solve.mixture import Answer
from mercer.solve.solution import Status
from mercer.sparse import Matrix
from mercer.typing import Array, Integers, Memory, Seed, Table, Targets, Weights

MOST_FREE = 2000
"""Free variables up to which the curvature of J is computed: that takes their number cubed."""


class MarginSet(KernelSet, MarginMachine):
    """A margin machine on a set of kernels."""

    on_cluster = False

    def _machine(self) -> MarginMachine:
        """The machine that solves for given weights, ten times as closely as the weights are wanted."""
        raise NotImplementedError

    def _solve_boxes(self, K: GramOperator, problems: list[BoxProblem], starts: list[Array]) -> list[Solved]:
        machine = self._machine()
        machine._notes = self._notes
        return machine._solve_boxes(K, problems, starts)

    def _answers(self, grams: GramSet, problems: list[BoxProblem]) -> Callable[[Array], Answer]:
        """The machine's answer as a function of the weights; each starts where the last one ended."""
        starts = [q.start for q in problems]

        def answer(d: Array) -> Answer:
            solved = self._solve_boxes(grams.at(d), problems, starts)
            starts[:] = [s.alpha for s in solved]
            B = np.column_stack([q.beta(s.alpha, grams.n) for q, s in zip(problems, solved, strict=True)])
            F = grams.products(B)
            worst = Status.worst(s.certificate.status for s in solved)
            return Answer(
                primal=float(sum(s.certificate.primal or 0.0 for s in solved)),
                gap=float(sum(s.certificate.gap or 0.0 for s in solved)),
                q=np.einsum("mnc,nc->m", F, B),
                curvature=lambda: np.sum(
                    [
                        curvature(grams, d, q, s.alpha, F[:, :, k])
                        for k, (q, s) in enumerate(zip(problems, solved, strict=True))
                    ],
                    axis=0,
                ),
                status=worst,
                kept=solved,
            )

        return answer

    def _fit_set(
        self,
        A: Matrix | list[Array],
        grams: GramSet,
        problems: list[BoxProblem],
        w: Array,
        order: Array | Integers,
        target: Array | None,
    ) -> None:
        best = self._learn(grams, self._answers(grams, problems), w, target)
        certificate = self.certificate_
        steps = self.n_iter_
        rows = np.empty((grams.n, 0)) if isinstance(A, list) else A
        on = self._fitted_on(rows)
        self._keep(on, rows, problems, best.kept, order=order)
        self.certificate_ = certificate
        self.n_iter_ = steps

    def _report(self) -> None:
        """`_learn` has said what there is to say."""


def curvature(grams: GramSet, d: Array, q: BoxProblem, alpha: Array, F: Array) -> Array:
    """∂²J/∂d², by how the free variables move with d while the bounded ones stay: GᵀM⁻¹G on them."""
    free = np.flatnonzero((alpha > 0) & (alpha < q.C))
    count = len(grams)
    if not 0 < len(free) <= MOST_FREE:
        return np.zeros((count, count))
    s = q.signs[free]
    r = q.rows[free]
    Q = sum(op.block(r, r) * v for op, v in zip(grams.operators, d / grams.scales, strict=True) if v > 0)
    k = len(free)
    c = int(q.equality > 0)
    M = np.zeros((k + c, k + c))
    M[:k, :k] = s[:, None] * Q * s
    if c:
        M[:k, k] = s
        M[k, :k] = s
    G = np.vstack([(s * F[:, r]).T, np.zeros((c, count))])
    if k <= 300:
        X = np.linalg.lstsq(M, G, rcond=1e-12)[0]
    else:
        X = np.linalg.solve(M + 1e-12 * np.trace(M) / k * np.eye(k + c), G)
    H: Array = G.T @ X
    return 0.5 * (H + H.T)


class MultipleKernelClassifier(MarginSet, MarginClassifier):
    """A support vector classifier that weighs its kernels.

        min ½ Σ_m ‖w_m‖²/d_m + Σ C_i max(0, 1 - y_i(Σ_m w_m·φ_m(x_i) + b))      over w, b and d ≥ 0, ‖d‖_p ≤ 1
        dual     Σα - ½ ‖(βᵀK_mβ)_m‖_p*,   β = yα,   1/p + 1/p* = 1

    With several classes all problems share the weights, and their terms are added.

    Parameters
    ----------
    {shared parameters}

    Attributes
    ----------
    weights_ : d; scales_ : by what each kernel was divided; kernel_ : Σ d_m k_m / scale_m, an ordinary
    kernel. trace_shares_, norm_shares_ : what each kernel has of the trace of K_d and of ‖f‖²; `report()`
    prints them.
    certificate_ : primal, dual and gap of the problem above; `certificates_` those of the machine at these
        weights, which `mercer.verify` recomputes. All else as in `SVC`.

    >>> from mercer import MultipleKernelClassifier
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> y = X[:, 0] > 0
    >>> kernels = ["Linear().on(0)", "Linear().on(1)", "Linear().on(2)"]
    >>> model = MultipleKernelClassifier(kernels, C=0.1).fit(X, y)
    >>> model.weights_.round(3).tolist(), bool(model.certificate_.gap <= 1e-4 * model.certificate_.primal)
    ([1.0, 0.0, 0.0], True)
    """

    parameters: ClassVar[Declarations] = {
        "fit_intercept": Switch(about="Learn b. Without it the dual has no equality constraint.")
    }

    def __init__(
        self,
        kernels: Kernels = ("Linear()", "RBF()"),
        C: float = 1.0,
        *,
        p: float = 1.0,
        weights: KernelWeights = "learn",
        normalize: str | None = "trace",
        fit_intercept: bool = True,
        multiclass: str = "ovo",
        class_weight: ClassWeight = None,
        probability: bool = False,
        tol: float = 1e-4,
        max_iter: int | None = 100,
        max_seconds: float | None = None,
        strict: bool = False,
        verbose: int = 0,
        memory: Memory = "2GiB",
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.kernels = kernels
        self.C = C
        self.p = p
        self.weights = weights
        self.normalize = normalize
        self.fit_intercept = fit_intercept
        self.multiclass = multiclass
        self.class_weight = class_weight
        self.probability = probability
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.strict = strict
        self.verbose = verbose
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Table, y: Targets, sample_weight: Weights = None) -> Self:
        """Learn weights and machine from rows X and labels y."""
        A, n = self._start(X)
        codes = self._check_labels(y, n)
        given = check_weights(sample_weight, n)
        w = self._weights(codes, given)
        grams = self._grams(A, given)
        problems = self._problems(codes, w)
        self._fit_set(A, grams, problems, given, codes, np.eye(len(self.classes_))[codes])
        self.n_support_ = np.bincount(codes[self.support_], minlength=len(self.classes_)).astype(np.int32)
        if self.probability:
            self.calibration_ = self._calibrate(grams.at(self.weights_), codes, w)
        return self

    def _machine(self) -> SVC:
        return SVC(
            PRECOMPUTED,
            self.C,
            fit_intercept=self.fit_intercept,
            tol=0.1 * self.tol,
            memory=self.memory,
            n_jobs=self.n_jobs,
        )

    def _problem(self, rows: Integers, signs: Array, w: Array) -> BoxProblem:
        return BoxProblem(rows, signs, np.full(len(rows), -1.0), self.C * w, equality=int(self.fit_intercept))


class MultipleKernelOneClass(MarginSet, OneClassSVM):
    """Novelty detection that weighs its kernels; at most a share ν of the rows are outliers.

        min ½ Σ_m ‖w_m‖²/d_m - ρ ν n + Σ max(0, ρ - Σ_m w_m·φ_m(x_i))      over w, ρ and d ≥ 0, ‖d‖_p ≤ 1
        dual     -½ ‖(αᵀK_mα)_m‖_p*,      0 ≤ α ≤ 1,  Σα = ν n

    The weights go where the rows are most alike, so `normalize` decides what is compared: with "trace", a
    kernel under which all rows are nearly the same wins. Attributes as in `MultipleKernelClassifier` and
    `OneClassSVM`.

    Parameters
    ----------
    {shared parameters}

    >>> from mercer import MultipleKernelOneClass
    >>> model = MultipleKernelOneClass(["RBF(1.0)", "RBF(3.0)"], nu=0.5, p=2.0)
    >>> model.fit([[0.0], [0.1], [0.2], [0.3]]).predict([[0.15], [5.0]]).tolist()
    [1, -1]
    >>> bool(model.certificate_.gap <= 1e-4 * abs(model.certificate_.primal))
    True
    """

    parameters: ClassVar[Declarations] = {
        "nu": NU_OF_OUTLIERS,
    }

    def __init__(
        self,
        kernels: Kernels = ("Linear()", "RBF()"),
        nu: float = 0.5,
        *,
        p: float = 2.0,
        weights: KernelWeights = "learn",
        normalize: str | None = "trace",
        tol: float = 1e-4,
        max_iter: int | None = 100,
        max_seconds: float | None = None,
        strict: bool = False,
        verbose: int = 0,
        memory: Memory = "2GiB",
        n_jobs: int | None = None,
    ) -> None:
        self.kernels = kernels
        self.nu = nu
        self.p = p
        self.weights = weights
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.strict = strict
        self.verbose = verbose
        self.memory = memory
        self.n_jobs = n_jobs

    def fit(self, X: Table, y: Targets | None = None, sample_weight: Weights = None) -> Self:
        """Learn weights and region from rows X; y is ignored."""
        A, n = self._start(X)
        w = check_weights(sample_weight, n)
        self._fit_set(A, self._grams(A, w), self._problems(None, w), w, np.zeros(n), None)
        self.n_support_ = np.array([len(self.support_)], dtype=np.int32)
        self.offset_ = -self.intercept_
        return self

    def _machine(self) -> OneClassSVM:
        return OneClassSVM(PRECOMPUTED, self.nu, tol=0.1 * self.tol, memory=self.memory, n_jobs=self.n_jobs)
