"""Kernels of finite rank that stand for others: what `Nystroem` and `RandomFeatures` share.

An approximation is a transformer (`transform(X)` is Φ with ΦΦᵀ ≈ K) and a Gram operator (`operator(X)`).
Machines take it as `approximation=`, and hold it as they hold any kernel on their rows (`shared.machine`).
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from sklearn.base import TransformerMixin, clone
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from mercer.arrays import Rows
from mercer.errors import ParameterError
from mercer.gram import Features, GramOperator, LowRank
from mercer.gram.far_features import far_from_here
from mercer.gram.on_rows import PRECOMPUTED
from mercer.kernels.base import Kernel
from mercer.kernels.terms import has_noise, split_noise
from mercer.machines.shared.base import KernelEstimator, as_machine_kernel
from mercer.machines.shared.kept import READ
from mercer.memory import memory_limit
from mercer.solve.solution import Certificate
from mercer.sparse import Matrix
from mercer.theory.judge import judge_on_rows
from mercer.typing import Array, Labels, Memory, Seed, Table

DEFAULT_KERNEL = "RBF()"
# Letters of a kernel that a note quotes; that of a table with texts has hundreds of thousands.
MOST_QUOTED = 200


def named(kernel: Kernel | str) -> str:
    """The kernel as a note says it: its text, unless that is longer than the note."""
    text = str(kernel)
    return text if len(text) <= MOST_QUOTED else "the kernel"


class Approximation(TransformerMixin, KernelEstimator):
    """Features Φ of finitely many columns with ΦΦᵀ ≈ K, and the Gram operator of them.

    Noise (`White` as a term of the kernel) is no feature of a point: it is kept apart in `noise_` and stands
    on the diagonal of `operator(X)`.
    """

    from_below = False
    """Whether K - K̂ is positive semi-definite."""
    on_cluster = True
    n_jobs: int | None
    memory: Memory
    random_state: Seed
    strict: bool
    certificate_: Certificate
    kernel_: Kernel | str
    noise_: float
    judged_: tuple[str, ...]

    # ── an approximation says ───────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def _learn(
        self, kernel: Kernel | None, rows: Rows, weight: Array, *, keep: bool, strict: bool
    ) -> Array | None:
        """Fit to checked rows and judge the kernel on them; with `keep`, also Φ of them."""

    @abstractmethod
    def features(self, rows: Rows) -> Array:
        """Φ of checked rows."""

    @abstractmethod
    def describe(self) -> str:
        """What was approximated and how well, in one sentence with the number: a note of certificates."""

    @property
    @abstractmethod
    def _n_features_out(self) -> int: ...

    @property
    def dimension(self) -> int:
        """The number of features."""
        return self._n_features_out

    def alone(self) -> Self:
        """A copy to be sent to the workers of a cluster: each computes on one thread."""
        out = copy.copy(self)
        out.__dict__.pop(READ, None)
        if "n_jobs" in out.__dict__:
            out.n_jobs = 1
        return out

    # ── given ───────────────────────────────────────────────────────────────────────────────────────────────

    def transform(self, X: Table) -> Array:
        """Φ of the rows, n × features, with ΦΦᵀ ≈ K."""
        check_is_fitted(self, "certificate_")
        return self.features(self.as_rows(self.check_rows(X, reset=False)))

    def operator(self, X: Table, Z: Table | None = None) -> GramOperator:
        """K̂ of X, or between X and Z, as an operator: ΦΦᵀ, with Φ stored where `memory` allows."""
        check_is_fitted(self, "certificate_")
        x = self.as_rows(self.check_rows(X, reset=False))
        if Z is None:
            K = self._operator(x, None)
            return K.shifted(self.noise_) if self.noise_ else K
        return self._operator(x, self.as_rows(self.check_rows(Z, reset=False), "Z"))

    def _operator(self, x: Rows, z: Rows | None) -> GramOperator:
        n = len(x) if z is None else len(x) + len(z)
        if 8 * self._n_features_out * n > memory_limit(self.memory):
            return Features(_Map(self), x, z)  # type: ignore[arg-type]
        return LowRank(self.features(x), None if z is None else self.features(z))

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> Labels:
        """The name of the class in small letters, and a number."""
        check_is_fitted(self, "certificate_")
        _check_feature_names_in(self, input_features, generate_names=False)
        name = type(self).__name__.lower()
        return np.array([f"{name}{i}" for i in range(self._n_features_out)], dtype=object)

    def _keep_kernel(self, kernel: Kernel | None) -> Kernel | None:
        """Remember the kernel, and give back what of it has features: all but the noise."""
        if kernel is None:
            self.kernel_ = PRECOMPUTED
            self.noise_ = 0.0
            return None
        self.kernel_ = kernel
        smooth, self.noise_ = without_noise(kernel)
        return smooth

    def _judge(self, kernel: Kernel | None, K: GramOperator, weight: Array, *, strict: bool) -> None:
        """Announce a kernel that is not positive semi-definite, or refuse it if `strict`; keep the notes."""
        self.judged_ = judge_on_rows(
            kernel,
            K,
            np.flatnonzero(weight > 0),
            getattr(self, "n_features_in_", None),
            strict=strict,
            lost="Products of features are positive semi-definite, and do not come close to it.",
            note="the kernel is not positive semi-definite: no features reproduce it",
        ).notes


class _Map:
    """An approximation as the map that `Features` takes."""

    def __init__(self, of: Approximation) -> None:
        self.of = of
        self.dimension = of.dimension

    def __call__(self, data: Matrix) -> Array:
        return self.of.features(self.of.as_rows(data))


class Frozen(NamedTuple):
    """A fitted approximation that a machine takes as it is, features and all."""

    fitted: Approximation


def without_noise(kernel: Kernel) -> tuple[Kernel, float]:
    """The kernel without its `White` terms, and their sum.

    >>> from mercer import RBF, White
    >>> without_noise(RBF(1.0) + 0.5 * White(0.2))
    (RBF(1.0), 0.1)
    """
    rest, noise = split_noise(kernel)
    if rest is None:
        raise ParameterError(
            f"{kernel} is noise and nothing else: its Gram matrix is a multiple of the identity, which no "
            "features of low rank approximate."
        )
    if has_noise(rest):
        raise ParameterError(
            f"{rest} has White inside another expression, where it is no term of its own. Write it as "
            "k + White(noise)."
        )
    if noise < 0:
        raise ParameterError(f"{kernel} has noise of variance {noise:g}; a variance is not negative.")
    return (rest, noise) if noise else (kernel, 0.0)


def approximate(
    approximation: Approximation | Frozen,
    kernel: Kernel | None,
    rows: Rows,
    *,
    weight: Array | None = None,
    strict: bool = False,
) -> tuple[Approximation, Array | None]:
    """The approximation fitted to a machine's kernel and rows, and its features of them.

    On a cluster the features are not made here: the workers sum over them. `approximation` is not changed.
    Its own `kernel` must be left at its default, or be the machine's. A `strict` machine refuses what is no
    kernel, as a strict approximation does.

    >>> from mercer import RBF, Nystroem
    >>> rows = Rows(np.arange(6.0)[:, None])
    >>> fitted, phi = approximate(Nystroem(n_components=2, landmarks="pivoted"), RBF(2.0), rows)
    >>> phi.shape, fitted.kernel_
    ((6, 2), RBF(2.0))
    """
    far = kernel is not None and far_from_here(len(rows)) is not None
    if isinstance(approximation, Frozen):
        return approximation.fitted, None if far else approximation.fitted.features(rows)
    if not isinstance(approximation, Approximation):
        raise ParameterError(
            f"approximation must be None, Nystroem(...) or RandomFeatures(...); got {approximation!r}."
        )
    mine = approximation.kernel
    if mine != DEFAULT_KERNEL and as_machine_kernel(mine) != kernel:
        raise ParameterError(
            f"the machine has the kernel {PRECOMPUTED if kernel is None else kernel} and its approximation "
            f"{mine}. Leave the kernel of the approximation out: it takes that of the machine."
        )
    fitted = clone(approximation)
    fitted.kernel = PRECOMPUTED if kernel is None else kernel
    if rows.columns is not None:
        fitted.n_features_in_ = rows.width
    if rows.names is not None:
        fitted.feature_names_in_ = np.array(rows.names, dtype=object)
    w = np.ones(len(rows)) if weight is None else np.asarray(weight, dtype=float)
    phi = fitted._learn(kernel, rows, w, keep=not far, strict=bool(strict or fitted.strict))
    return fitted, phi
