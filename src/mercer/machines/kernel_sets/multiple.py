"""Multiple kernel learning: the weights of Σ d_m K_m learned with the machine that uses them (M14)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
from scipy.optimize import nnls
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer.errors import ParameterError, ShapeError, warn
from mercer.gram.on_rows import PRECOMPUTED, check_gram
from mercer.kernels.base import Kernel, as_kernel
from mercer.machines.kernel_sets.weights import (
    GramSet,
    Kernels,
    KernelWeights,
    check_blocks,
    check_kernels,
    gram_set,
)
from mercer.machines.shared.base import resolve
from mercer.machines.shared.hints import refuse_unknown
from mercer.machines.shared.machine import Machine
from mercer.machines.shared.parameters import (
    CheckedBy,
    Choice,
    ChoiceOrArray,
    Declarations,
    Number,
    Whole,
    constructor,
    steps_allowed,
)
from mercer.panels import panels
from mercer.progress import teller
from mercer.solve.mixture import Answer, holder_slack, learn_weights, unit
from mercer.solve.solution import Certificate
from mercer.sparse import Matrix
from mercer.typing import Array, Memory, Table


class KernelSet(Machine):
    """What the three machines share: the kernels, their weights, and the report on them."""

    kernels: Kernels
    p: float
    weights: KernelWeights
    normalize: str | None
    tol: float
    max_iter: int | None
    max_seconds: float | None
    strict: bool
    verbose: int
    memory: Memory
    n_jobs: int | None
    _notes: tuple[str, ...]
    kernel_: Kernel | str

    parameters: ClassVar[Declarations] = {
        "kernels": CheckedBy(
            by=lambda value: check_kernels(value),
            type='list of kernels or texts, or "precomputed"',
            about='As `kernel` of `SVC`, many times. With "precomputed", X is a list of Gram matrices (or an '
            "array kernels × rows × training rows), in `fit` and later; cross-validation cannot cut such a "
            "list.",
        ),
        "p": Number(
            1.0,
            closed_low=True,
            closed_high=True,
            words="a number >= 1 (1 for sparse weights, inf for equal ones)",
            about="p ≥ 1: 1 chooses few kernels, larger values spread the weight, `inf` takes the plain sum.",
        ),
        "weights": ChoiceOrArray(
            ("learn", "uniform", "alignment"),
            array="numbers, one for each kernel",
            about="Learn them; equal ones; those of the alignment to the targets, without any solve; or "
            "numbers to be used as they are.",
        ),
        "normalize": Choice(
            ("trace", "variance"),
            none=True,
            about="The mean of each diagonal becomes 1, or the mean squared distance from the mean in "
            "feature space does. Without it a kernel of large values is a cheap one.",
        ),
        "tol": Number(about="The relative duality gap to be reached."),
        "max_iter": Whole(0, none=True, about="Steps of the weights; None for no limit."),
    }

    # what MarginMachine asks for, and a set of kernels does not offer
    solver: ClassVar[str] = "working-set"
    warm_start: ClassVar[bool] = False

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """The parameters by name."""
        return dict(BaseEstimator.get_params(self, deep))

    def set_params(self, **params: object) -> Self:
        """Set parameters by the names of `get_params`."""
        kind: type = type(self)
        refuse_unknown(kind.__name__, params, constructor(kind))
        BaseEstimator.set_params(self, **params)
        return self

    @property
    def kernel(self) -> str:
        """The kernels, for messages."""
        if isinstance(self.kernels, str):
            return f"{self.kernels} Gram matrices"
        return "a combination of " + ", ".join(map(str, self.kernels))

    # ── fit ─────────────────────────────────────────────────────────────────────────────────────────────────

    def check_rows(self, X: Table, *, reset: bool) -> Matrix | list[Array]:
        """Rows as everywhere; of precomputed blocks, for a fitted model, their combination."""
        if check_kernels(self.kernels) is not None:
            return super().check_rows(X, reset=reset)
        blocks = check_blocks(X, None if reset else len(self.weights_))
        if reset:
            self.n_features_in_ = blocks[0].shape[1]
            return blocks
        if blocks[0].shape[1] != self.n_features_in_:
            raise ShapeError(
                f"X has {blocks[0].shape[1]} columns; the model was fitted on {self.n_features_in_} rows. "
                "New points come as rows, training points as columns."
            )
        return sum(K * (d / s) for K, d, s in zip(blocks, self.weights_, self.scales_, strict=True))

    def _takes_things(self) -> bool:
        """Whether all kernels can be asked of things that are no vectors."""
        kernels = check_kernels(self.kernels)
        if kernels is None:
            return False
        return all(not as_kernel(k).reads_numbers() for k in kernels)

    def _start(self, X: Table) -> tuple[Matrix | list[Array], int]:
        """The checked rows (or Gram matrices) and their number."""
        self._check_parameters()
        A = self.check_rows(X, reset=True)
        return A, A[0].shape[0] if isinstance(A, list) else A.shape[0]

    def _grams(self, A: Matrix | list[Array], w: Array) -> GramSet:
        """The operators of all kernels; one that is not positive semi-definite is announced or refused."""
        given = check_kernels(self.kernels)
        arrays = None if given is not None else [check_gram(K) for K in A]
        kernels = None if given is None else [self._resolved(k, A, w) for k in given]
        rows = None if arrays is not None else self.as_rows(A)
        grams = gram_set(
            kernels, arrays, rows, w, normalize=self.normalize, memory=self.memory, n_jobs=self.n_jobs
        )
        notes: dict[str, None] = {}
        for m, op in enumerate(grams.operators):
            kernel = None if kernels is None else kernels[m]
            said = self._verdict(kernel, op, np.flatnonzero(w > 0))
            notes.update(dict.fromkeys(said))
        self._notes = tuple(notes)
        return grams

    def _resolved(self, k: Kernel | str, A: Matrix, w: Array) -> Kernel:
        found = resolve(k, self.as_rows(A), w)
        assert found is not None
        return found

    def _learn(
        self, grams: GramSet, answer: Callable[[Array], Answer], w: Array, target: Array | None
    ) -> Answer:
        """Find the weights (or take those given), and keep them with their certificate."""
        p = float(self.p)
        count = len(grams)
        fixed = self._fixed_weights(grams, w, target)
        equal = unit(np.ones(count), p)
        learned = fixed is None and not np.isinf(p) and count > 1
        found = learn_weights(
            answer,
            equal if fixed is None else fixed,
            p=p,
            tol=self.tol,
            max_iter=steps_allowed(self.max_iter) if learned else 0,
            tell=teller(self.verbose, _say),
        )
        d, best = found.value
        certificate = found.certificate
        if fixed is not None:
            certificate = _of_fixed(
                certificate, best, d, p, str(self.weights) if isinstance(self.weights, str) else "given"
            )
        self.weights_ = d
        self.scales_ = grams.scales
        self.kernels_ = grams.names
        self.kernel_ = PRECOMPUTED if grams.kernels is None else grams.kernel(d)
        self.norm_shares_ = as_shares(d * np.maximum(best.q, 0.0))
        self.trace_shares_ = as_shares(d * grams.traces(w))
        self.certificate_ = replace(certificate, notes=(*certificate.notes, *self._notes))
        self.n_iter_ = int(certificate.iterations or 0)
        if not certificate.status.as_asked:
            warn(
                f"the kernel weights stopped before tol={self.tol:g} was met ({self.certificate_}). Raise "
                "max_iter or max_seconds, or allow a larger tol.",
                ConvergenceWarning,
            )
        return best

    def _fixed_weights(self, grams: GramSet, w: Array, target: Array | None) -> Array | None:
        given = self.weights
        count = len(grams)
        p = float(self.p)
        if isinstance(given, str):
            if given == "learn":
                return None
            if given == "uniform":
                return unit(np.ones(count), p)
            if target is None:
                raise ParameterError(
                    "weights='alignment' compares kernels with targets, and here there are none."
                )
            return unit(aligned(grams, target, w), p)
        try:
            d = np.asarray(given, dtype=float)
        except (TypeError, ValueError):
            # refused below
            d = np.empty(0)
        if d.shape != (count,) or not np.all(np.isfinite(d) & (d >= 0)) or not np.any(d > 0):
            raise ParameterError(
                f"weights must be {count} numbers >= 0, one for each kernel, and not all 0; got {given!r}."
            )
        return d

    # ── report ──────────────────────────────────────────────────────────────────────────────────────────────

    def report(self) -> str:
        """The kernels with their weights, and the share of each in the trace of K_d and in ‖f‖²."""
        check_is_fitted(self, "weights_")
        width = max(6, *(len(name) for name in self.kernels_))
        lines = [f"{'kernel':<{width}}  {'weight':>9}  {'of trace':>8}  {'of ‖f‖²':>8}"]
        for name, d, t, f in zip(
            self.kernels_, self.weights_, self.trace_shares_, self.norm_shares_, strict=True
        ):
            lines.append(f"{name:<{width}}  {d:>9.4g}  {t:>8.1%}  {f:>8.1%}")
        c = self.certificate_
        lines.append(
            f"p = {self.p:g}, {c.status} after {self.n_iter_} steps, relative gap {_relative(c):.2g}"
        )
        return "\n".join(lines)


def aligned(grams: GramSet, target: Array, w: Array) -> Array:
    """The d ≥ 0 whose centred Σ d_m K_m is best aligned with the ideal kernel TTᵀ.

    That is the choice of Cortes, Mohri and Rostamizadeh (2012).

    Up to its length it minimises ‖Σ d_m HK_mH - HTTᵀH‖, with H the centring; rows count by their weight.
    """
    share = w / w.sum()
    T = target - share @ target
    a = np.einsum("nc,mnc->m", w[:, None] * T, grams.products(w[:, None] * T))
    # of the rows of each Gram matrix
    means = grams.products(share)
    count = len(grams)
    M = np.zeros((count, count))
    for rows in panels(grams.n):
        parts = np.stack(
            [
                (op.block(rows, slice(None)) / s - r[rows, None] - r + share @ r)
                * np.sqrt(np.outer(w[rows], w))
                for op, s, r in zip(grams.operators, grams.scales, means, strict=True)
            ]
        ).reshape(count, -1)
        M += parts @ parts.T
    values, vectors = np.linalg.eigh(M)
    kept = values > 1e-13 * values[-1]
    root = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    found: Array = nnls(root, (vectors[:, kept].T @ a) / np.sqrt(values[kept]))[0]
    return found


def as_shares(parts: Array) -> Array:
    """Each part of the whole; zeros where there is nothing to share."""
    total = float(parts.sum())
    if total > 0:
        return parts / total
    return np.zeros(len(parts))


def _relative(c: Certificate) -> float:
    return float(c.gap or 0.0) / max(abs(c.primal or 0.0), np.finfo(float).tiny)


def _of_fixed(c: Certificate, best: Answer, d: Array, p: float, how: str) -> Certificate:
    """The certificate of a machine whose weights were fixed: its own gap, and what learning might gain."""
    notes: tuple[str, ...] = (
        f"the weights were fixed ({how}): the gap is that of the machine at these weights",
    )
    inside = (np.isinf(p) and d.max() <= 1 + 1e-12) or (not np.isinf(p) and float((d**p).sum()) <= 1 + 1e-9)
    if inside:
        gain = best.gap + holder_slack(best.q, d, p)
        notes = (*notes, f"learned weights could lower the primal by at most {gain:.3g}")
    return replace(c, status=best.status, gap=best.gap, dual=best.primal - best.gap, notes=notes)


def _say(steps: int, gap: float, primal: float, d: Array) -> str:
    return f"{steps} weight steps, primal {primal:.9g}, gap {gap:.3g}, {int((d > 0).sum())} kernels"
