"""Kernels of finite rank that stand for others: what `Nystroem` and `RandomFeatures` share, and how machines use them.

An approximation is a transformer (`transform(X)` is Φ with ΦΦᵀ ≈ K) and a Gram operator (`operator(X)`). A machine with
`approximation=` is an `Approximable`, and needs three lines:

    K = self._approximate(kernel, A, w)              # in fit: ΦΦᵀ, or None where the kernel itself is meant
    self._keep_feature_coef(A, dual_coef)            # β = Φᵀ dual_coef
    self._in_features(A)                             # in predict: φ(x)·β
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin, clone
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from mercer.arrays import Rows
from mercer.errors import ParameterError
from mercer.gram import Features, GramOperator, LowRank, Shifted
from mercer.gram.blocks import row_blocks
from mercer.gram.functions import ByFeatures, Functions
from mercer.kernels.base import Kernel
from mercer.machines.shared.base import PRECOMPUTED, KernelEstimator, as_machine_kernel
from mercer.machines.shared.terms import has_noise, split_noise
from mercer.memory import memory_limit
from mercer.solve.solution import Certificate
from mercer.theory.judge import judge_on_rows

DEFAULT_KERNEL = "RBF()"


class Approximation(TransformerMixin, KernelEstimator):
    """Features Φ of finitely many columns with ΦΦᵀ ≈ K, and the Gram operator of them.

    Noise (`White` as a term of the kernel) is no feature of a point: it is kept apart in `noise_` and stands on the
    diagonal of `operator(X)`.
    """

    from_below = False  # whether K - K̂ is positive semi-definite
    memory: int | str
    random_state: Any
    strict: bool
    certificate_: Certificate
    kernel_: Kernel | str
    noise_: float

    # ── an approximation says ───────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def _learn(
        self, kernel: Kernel | None, rows: Rows, weight: np.ndarray, *, keep: bool, strict: bool
    ) -> np.ndarray | None:
        """Fit to checked rows and judge the kernel on them; with `keep`, also Φ of them."""

    @abstractmethod
    def features(self, rows: Rows) -> np.ndarray:
        """Φ of checked rows."""

    @abstractmethod
    def describe(self) -> str:
        """What was approximated and how well, in one sentence with the number: a note of certificates."""

    @property
    @abstractmethod
    def _n_features_out(self) -> int: ...

    # ── given ───────────────────────────────────────────────────────────────────────────────────────────────

    def transform(self, X: Any) -> np.ndarray:
        """Φ of the rows, n × features, with ΦΦᵀ ≈ K."""
        check_is_fitted(self, "certificate_")
        return self.features(self._rows(self._check_rows(X, reset=False)))

    def operator(self, X: Any, Z: Any = None) -> GramOperator:
        """K̂ of X, or between X and Z, as an operator: ΦΦᵀ, with Φ stored if it fits in `memory`, else in blocks."""
        check_is_fitted(self, "certificate_")
        x = self._rows(self._check_rows(X, reset=False))
        z = None if Z is None else self._rows(self._check_rows(Z, reset=False), "Z")
        size = 8 * self._n_features_out * (len(x) + (0 if z is None else len(z)))
        if size > memory_limit(self.memory):
            K: GramOperator = Features(_Map(self), x, z)  # type: ignore[arg-type]
        else:
            K = LowRank(self.features(x), None if z is None else self.features(z))
        return K.shifted(self.noise_) if z is None and self.noise_ else K

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The name of the class in small letters, and a number."""
        check_is_fitted(self, "certificate_")
        _check_feature_names_in(self, input_features, generate_names=False)
        name = type(self).__name__.lower()
        return np.array([f"{name}{i}" for i in range(self._n_features_out)], dtype=object)

    def _keep_kernel(self, kernel: Kernel | None) -> Kernel | None:
        """Remember the kernel, and give back what of it has features: all but the noise."""
        self.kernel_ = PRECOMPUTED if kernel is None else kernel
        smooth, self.noise_ = (None, 0.0) if kernel is None else without_noise(kernel)
        return smooth

    def _judge(self, kernel: Kernel | None, K: GramOperator, weight: np.ndarray, *, strict: bool) -> None:
        """Announce a kernel that is not positive semi-definite, or refuse it if `strict`; what was found goes into the notes."""
        self._judged = judge_on_rows(
            kernel,
            K,
            np.flatnonzero(weight > 0),
            self.n_features_in_,
            strict=strict,
            lost="Products of features are positive semi-definite, and do not come close to it.",
            note="the kernel is not positive semi-definite: no features reproduce it",
        ).notes


class _Map:
    """An approximation as the map that `Features` takes."""

    def __init__(self, of: Approximation) -> None:
        self.of, self.dimension = of, of._n_features_out

    def __call__(self, data: Any) -> np.ndarray:
        return self.of.features(self.of._rows(data))


def without_noise(kernel: Kernel) -> tuple[Kernel, float]:
    """The kernel without its `White` terms, and their sum.

    >>> from mercer import RBF, White
    >>> without_noise(RBF(1.0) + 0.5 * White(0.2))
    (RBF(1.0), 0.1)
    """
    rest, noise = split_noise(kernel)
    if rest is None:
        raise ParameterError(
            f"{kernel} is noise and nothing else: its Gram matrix is a multiple of the identity, which no features of "
            "low rank approximate."
        )
    if has_noise(rest):
        raise ParameterError(
            f"{rest} has White inside another expression, where it is no term of its own. Write it as k + White(noise)."
        )
    if noise < 0:
        raise ParameterError(f"{kernel} has noise of variance {noise:g}; a variance is not negative.")
    return (rest, noise) if noise else (kernel, 0.0)


def approximate(
    approximation: Any,
    kernel: Kernel | None,
    rows: Rows,
    *,
    weight: np.ndarray | None = None,
    strict: bool = False,
) -> tuple[Approximation, GramOperator]:
    """The approximation fitted to a machine's kernel and rows, and its Gram operator on them.

    `approximation` is not changed. Its own `kernel` must be left at its default, or be the machine's. A `strict` machine
    refuses what is no kernel, as a strict approximation does.

    >>> from mercer import RBF, Nystroem
    >>> rows = Rows(np.arange(6.0)[:, None])
    >>> fitted, K = approximate(Nystroem(n_components=2, landmarks="pivoted"), RBF(2.0), rows)
    >>> K.kind, K.F.shape, fitted.kernel_
    ('low rank', (6, 2), RBF(2.0))
    """
    if not isinstance(approximation, Approximation):
        raise ParameterError(
            f"approximation must be None, Nystroem(...) or RandomFeatures(...); got {approximation!r}."
        )
    mine = approximation.kernel
    if mine != DEFAULT_KERNEL and as_machine_kernel(mine) != kernel:
        raise ParameterError(
            f"the machine has the kernel {PRECOMPUTED if kernel is None else kernel} and its approximation {mine}. Leave "
            "the kernel of the approximation out: it takes that of the machine."
        )
    fitted = clone(approximation)
    fitted.kernel = PRECOMPUTED if kernel is None else kernel
    fitted.n_features_in_ = rows.width
    if rows.names is not None:
        fitted.feature_names_in_ = np.array(rows.names, dtype=object)
    w = np.ones(len(rows)) if weight is None else np.asarray(weight, dtype=float)
    phi = fitted._learn(kernel, rows, w, keep=True, strict=bool(strict or fitted.strict))
    assert phi is not None
    K: GramOperator = LowRank(phi)
    return fitted, K.shifted(fitted.noise_) if fitted.noise_ else K


def factor_of(K: GramOperator) -> np.ndarray:
    """Φ of an operator that `approximate` made, with or without noise on its diagonal."""
    inner = K.inner if isinstance(K, Shifted) else K
    assert isinstance(inner, LowRank)
    return inner.F


class Approximable(KernelEstimator):
    """A machine with `approximation=`: it learns from ΦΦᵀ in place of K, and predicts by φ(x)·β.

    `approximation_` is the fitted approximation and `feature_coef_` is β; without `approximation` there are none of them.
    """

    approximation: Any = None
    strict: bool = False
    approximation_: Approximation
    feature_coef_: np.ndarray

    def _approximate(
        self, kernel: Kernel | None, A: Any, weight: np.ndarray | None = None
    ) -> GramOperator | None:
        """K̂ of checked rows; None without an approximation."""
        for name in ("approximation_", "feature_coef_"):
            self.__dict__.pop(name, None)
        if self.approximation is None:
            return None
        self.approximation_, K = approximate(
            self.approximation, kernel, self._rows(A), weight=weight, strict=self.strict
        )
        return K

    @property
    def _approximated(self) -> bool:
        return "approximation_" in self.__dict__

    def _approximation_notes(self) -> tuple[str, ...]:
        """How the Gram was approximated, with the number, and what was found of the kernel, for the certificate."""
        if not self._approximated:
            return ()
        return (self.approximation_.describe(), *self.approximation_._judged)

    def _keep_feature_coef(self, A: Any, coef: np.ndarray) -> None:
        """β = Φᵀ coef for the coefficients of the rows A."""
        if not self._approximated:
            return
        beta = np.zeros((self.approximation_._n_features_out, *coef.shape[1:]))
        for part in row_blocks(A.shape[0], max(len(beta), 1)):
            beta += self.approximation_.features(self._rows(A[part])).T @ coef[part]
        self.feature_coef_ = beta

    def _in_features(self, A: Any, coef: np.ndarray | None = None) -> np.ndarray:
        """φ(x)·β for checked rows, in blocks."""
        beta = self.feature_coef_ if coef is None else coef
        out = np.empty((A.shape[0], *beta.shape[1:]))
        for part in row_blocks(A.shape[0], max(len(beta), 1)):
            out[part] = self.approximation_.features(self._rows(A[part])) @ beta
        return out

    def _own_in_features(self, A: Any) -> np.ndarray:
        """k̂(x, x) = ‖φ(x)‖² and the noise."""
        out = np.empty(A.shape[0])
        for part in row_blocks(A.shape[0], max(self.approximation_._n_features_out, 1)):
            phi = self.approximation_.features(self._rows(A[part]))
            out[part] = np.einsum("ij,ij->i", phi, phi)
        return out + self.approximation_.noise_

    def _by_features(self, offset: Any, scale: Any = 1.0, **more: Any) -> Functions:
        """The functions φ(x)·β + b of a machine that learned from ΦΦᵀ."""
        weights = (self.feature_coef_.reshape(len(self.feature_coef_), -1) * scale).T
        return ByFeatures(
            map=lambda A: self.approximation_.features(self._rows(A)),
            weights=weights,
            offset=np.broadcast_to(np.asarray(offset, dtype=float), len(weights)).copy(),
            **more,
        )

    def _approximate_again(self, A: Any) -> GramOperator:
        """K̂ of checked rows by the fitted approximation."""
        K: GramOperator = LowRank(self.approximation_.features(self._rows(A)))
        return K.shifted(self.approximation_.noise_) if self.approximation_.noise_ else K
