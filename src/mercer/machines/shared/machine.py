"""What a machine with one kernel is.

It closes the kernel on its rows, judges it, learns from it and predicts by it.

A machine holds its kernel on the rows of fit as one object (`gram.on_rows`):

    on = self._kernel_on(A, w)                  # in fit; publishes `kernel_`, perhaps `approximation_`
    K = on.gram()                               # the Gram operator that the solver gets
    notes = self._judged(on, K, rows)           # an invalid kernel is announced, or refused if `strict`
    self._keep_feature_coef(on, coef)           # with an approximation: β, by which it predicts
    self._products(A, self.X_fit_, coef)        # in predict: Σ_j coef_j k(x_j, x), or φ(x)·β

So `approximation=`, a precomputed Gram matrix, names of columns, sparse rows and things that are not vectors
are the same to all of them.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from mercer.arrays import Rows
from mercer.gram.functions import ByFeatures, ByRows, Functions
from mercer.gram.on_rows import PRECOMPUTED, Approximated, Evaluated, Given, KernelOnRows
from mercer.gram.operators import GramOperator
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import Approximation, Frozen, approximate
from mercer.machines.shared.base import KernelEstimator, resolve
from mercer.sparse import Matrix
from mercer.theory.judge import judge_on_rows
from mercer.typing import Array, Integers, Memory, Numbers, Setting


class Invalid(NamedTuple):
    """What a machine loses with a kernel that is not positive semi-definite.

    `lost` is a sentence for people, `note` a line of its certificate. With `centred` only differences count,
    so that a constant may be taken from the kernel. Where nothing is lost, validity is not `needed`, and
    there is no warning.
    """

    lost: str
    note: str
    centred: bool = False
    needed: bool = True


def put_on_rows(
    kernel: Kernel | None,
    rows: Rows,
    weight: Array | None = None,
    *,
    approximation: Approximation | Frozen | None = None,
    strict: bool = False,
    symmetric: bool = True,
    memory: Memory = "2GiB",
    n_jobs: int | None = None,
) -> KernelOnRows:
    """A kernel (None: these rows are its Gram matrix) on rows, approximated if that is asked for."""
    if approximation is not None:
        fitted, phi = approximate(approximation, kernel, rows, weight=weight, strict=strict)
        return Approximated.of(kernel, rows, fitted, phi)
    if kernel is None:
        return Given.of(rows.data, symmetric=symmetric)
    return Evaluated.of(kernel, rows, memory, n_jobs)


class Machine(KernelEstimator):
    """A machine that learns from one kernel on the rows of fit.

    `approximation_` is the fitted approximation and `feature_coef_` is β, with f(x) = φ(x)·β; without
    `approximation=` there are none of them.
    """

    invalid: ClassVar[Invalid]
    symmetric: ClassVar[bool] = True
    """Whether a given Gram matrix must be symmetric."""
    approximation: Setting = None
    strict: bool = False
    memory: Memory = "2GiB"
    n_jobs: int | None = None
    approximation_: Approximation
    feature_coef_: Array

    # ── fit ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _kernel_on(self, A: Matrix, w: Array | None = None, learned: Array | None = None) -> KernelOnRows:
        """The kernel on the rows of fit: open lengthscales closed by them, approximated if that is asked for.

        Rows count by the weights w; an approximation counts them by `learned`, where that is given.
        """
        for name in ("approximation_", "feature_coef_", "witness_"):
            self.__dict__.pop(name, None)
        rows = self.as_rows(A).checked()
        kernel = resolve(self.kernel, rows, w)
        self.kernel_ = PRECOMPUTED if kernel is None else kernel
        on = put_on_rows(
            kernel,
            rows,
            w if learned is None else learned,
            approximation=self.approximation,
            strict=bool(self.strict),
            symmetric=self.symmetric,
            memory=self.memory,
            n_jobs=self.n_jobs,
        )
        if isinstance(on, Approximated):
            assert isinstance(on.approximation, Approximation)
            self.approximation_ = on.approximation
        return on

    def _judged(
        self, on: KernelOnRows, K: GramOperator | None = None, rows: Integers | None = None
    ) -> tuple[str, ...]:
        """Notes for the certificate: what is to be said of the kernel, and how it was approximated.

        A kernel that is not positive semi-definite is announced, with the witness as `witness_`, or refused
        if `strict`.
        """
        notes: tuple[str, ...] = ()
        if isinstance(on, Approximated):
            notes = self._approximation_notes()
        if on.proof is not None and on.proof.declared() == ():
            return notes
        K = on.gram() if K is None else K
        rows = np.arange(len(on)) if rows is None else rows
        return (*notes, *self._verdict(on.kernel, K, rows))

    def _verdict(self, kernel: Kernel | None, K: GramOperator, rows: Integers) -> tuple[str, ...]:
        """Notes of the one judge of kernels; its witness is published."""
        verdict = judge_on_rows(
            kernel,
            K,
            rows,
            getattr(self, "n_features_in_", None),
            strict=bool(self.strict),
            keeps=True,
            **self.invalid._asdict(),
        )
        if verdict.witness is not None:
            self.witness_ = verdict.witness
        return verdict.notes

    def _approximation_notes(self) -> tuple[str, ...]:
        """How the Gram was approximated, with the number, and what was found of the kernel, if it was."""
        if not self.is_approximated:
            return ()
        return (self.approximation_.describe(), *self.approximation_.judged_)

    def _keep_feature_coef(self, on: KernelOnRows, coef: Array) -> None:
        """β = Φᵀ coef, for coefficients of the rows of `on`."""
        if isinstance(on, Approximated):
            self.feature_coef_ = on.weights(coef)

    # ── after the fit ───────────────────────────────────────────────────────────────────────────────────────

    @property
    def is_approximated(self) -> bool:
        return "approximation_" in self.__dict__

    @property
    def _fitted_kernel(self) -> Kernel | None:
        """The kernel of the fit; None for a precomputed one."""
        return self.kernel_ if isinstance(self.kernel_, Kernel) else None

    def _fitted_on(self, rows: Matrix, index: Integers | None = None) -> KernelOnRows:
        """The kernel of the fit on rows of it; `index` are their places among all rows of fit."""
        kernel = self._fitted_kernel
        if self.is_approximated:
            mine = self.kept(rows)
            # a model that was saved without its rows has none, and needs none
            places = np.arange(rows.shape[0]) if index is None else index
            return Approximated(kernel, mine, places, self.approximation_)
        if kernel is None:
            places = np.arange(self.n_features_in_) if index is None else index
            return Given(None, places, self.n_features_in_)
        mine = self.kept(rows)
        places = np.arange(rows.shape[0]) if index is None else index
        return Evaluated(kernel, mine, places, self.memory, self.n_jobs)

    def again_on(self, A: Matrix) -> KernelOnRows:
        """The kernel of the fit on the rows of fit, passed once more: for `verify` and `theory`."""
        if self._fitted_kernel is None and not self.is_approximated:
            return Given.of(A, symmetric=self.symmetric)
        return self._fitted_on(A)

    def _products(self, A: Matrix, rows: Matrix, coef: Array, index: Integers | None = None) -> Array:
        """Σ_j coef_j k(x_j, x) for checked rows A; with an approximation φ(x)·β."""
        on = self._fitted_on(rows, index)
        if isinstance(on, Approximated):
            return on.times(A, self.feature_coef_)
        return on.products(A, coef)

    def _functions_on(
        self, rows: Matrix, coef: Array, offset: Numbers, index: Integers | None = None, **facts: Any
    ) -> Functions:
        """The functions Σ_j coef_j k(x_j, ·) + offset, or φ(·)·β + offset, one for each column of `coef`."""
        coef = np.asarray(coef, dtype=float)
        count = 1 if coef.ndim == 1 else coef.shape[1]
        given = {**facts, "offset": np.broadcast_to(np.asarray(offset, dtype=float), count).copy()}
        if self.is_approximated:
            for name in ("observed", "known_norms"):
                given.pop(name, None)
            scale = given.pop("scale", 1.0)
            weights = (self.feature_coef_.reshape(len(self.feature_coef_), -1) * scale).T
            approximation = self.approximation_
            return ByFeatures(map=lambda A: approximation.features(self.as_rows(A)), weights=weights, **given)
        coef = coef.reshape(len(coef), -1) * given.pop("scale", 1.0)
        return ByRows(on=self._fitted_on(rows, index), coefficients=coef, **given)
