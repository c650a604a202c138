"""Several kernels on the same rows: their Gram operators, and the operator and kernel of any combination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mercer.arrays import Rows
from mercer.errors import InputError, NotFiniteError, ParameterError, ShapeError
from mercer.gram import GramOperator, Precomputed, stored_in_time
from mercer.gram.of_kernel import STORING
from mercer.gram.on_rows import PRECOMPUTED
from mercer.kernels.algebra import Scaled, Sum
from mercer.kernels.base import Kernel, as_kernel
from mercer.machines.shared.base import as_machine_kernel
from mercer.memory import memory_limit
from mercer.panels import largest_entry, panels
from mercer.typing import Array, Memory

Kernels: TypeAlias = Sequence[Kernel | str] | str
"""What `kernels=` takes: kernels or their texts, or "precomputed"."""
KernelWeights: TypeAlias = str | npt.ArrayLike
"""How to find the weights of the kernels, or the weights themselves."""


def combine(kernels: Sequence[Kernel | str], weights: npt.ArrayLike | None = None) -> Kernel:
    """Σ d_m k_m as one kernel; weights of 0 leave their kernel out, no weights at all mean 1 for each.

    Each weight is a hyperparameter of the sum, so a Gaussian process on `combine(kernels)` learns the
    weights by its evidence, and `weights_of` reads them back.

    >>> combine(["RBF(1.0)", "Linear()"], [0.25, 0.75])
    0.25*RBF(1.0) + 0.75*Linear()
    """
    parts = [as_kernel(k) for k in kernels]
    d = np.ones(len(parts)) if weights is None else np.asarray(weights, dtype=float)
    if not parts or d.shape != (len(parts),) or not np.all(np.isfinite(d) & (d >= 0)) or not np.any(d > 0):
        raise ParameterError(
            f"weights must be {len(parts)} numbers >= 0, one for each kernel, and not all 0; got {weights!r}."
        )
    terms = tuple(k * float(v) for k, v in zip(parts, d, strict=True) if v > 0)
    return terms[0] if len(terms) == 1 else Sum(terms)


def weights_of(kernel: Kernel) -> Array:
    """The factors in front of the terms of a sum, 1 where none is written: the way back from `combine`.

    >>> weights_of(combine(["RBF(1.0)", "Linear()"], [0.25, 0.75]))
    array([0.25, 0.75])
    """
    parts = kernel.parts if isinstance(kernel, Sum) else (kernel,)
    return np.array([k.scale if isinstance(k, Scaled) else 1.0 for k in parts])


@dataclass(frozen=True, eq=False)
class GramSet:
    """K_m / s_m for every kernel, stored where all fit in memory together with their sum, else as tiles.

    `scales` are the s_m that make the kernels comparable; `names` are for people.
    """

    operators: tuple[GramOperator, ...]
    scales: Array
    kernels: tuple[Kernel, ...] | None
    names: tuple[str, ...]
    rows: Rows | None
    memory: Memory
    n_jobs: int | None
    _buffer: list[Array] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.operators)

    @property
    def n(self) -> int:
        return int(self.operators[0].shape[0])

    @property
    def stored(self) -> bool:
        return all(op.kind in ("dense", "precomputed") for op in self.operators)

    def at(self, d: Array) -> GramOperator:
        """K_d = Σ d_m K_m / s_m: one array, which is used again, or one kernel whose tiles are not stored."""
        if not self.stored:
            assert self.rows is not None
            return self.kernel(d).gram(self.rows, memory=0, n_jobs=self.n_jobs)
        if not self._buffer:
            self._buffer.append(np.empty((self.n, self.n)))
        total = self._buffer[0]
        parts = [(op.dense(), w) for op, w in zip(self.operators, d / self.scales, strict=True) if w > 0]
        for rows in panels(self.n):
            total[rows] = 0.0
            for K, weight in parts:
                total[rows] += K[rows] * weight
        return Precomputed(total)

    def products(self, B: Array) -> Array:
        """(K_m / s_m) B for every kernel: m × n × columns."""
        return np.stack([np.asarray(op @ B) / s for op, s in zip(self.operators, self.scales, strict=True)])

    def kernel(self, d: Array) -> Kernel:
        """Σ (d_m / s_m) k_m as one expression."""
        if self.kernels is None:
            raise ParameterError("precomputed Gram matrices have no kernel.")
        return combine(self.kernels, d / self.scales)

    def traces(self, w: Array) -> Array:
        """The mean of each diagonal, rows counted by weight, after scaling."""
        means: Array = np.array([w @ op.diag() for op in self.operators]) / w.sum() / self.scales
        return means


def gram_set(
    kernels: Sequence[Kernel] | None,
    arrays: Sequence[Array] | None,
    rows: Rows | None,
    w: Array,
    *,
    normalize: str | None,
    memory: Memory,
    n_jobs: int | None,
) -> GramSet:
    """Build the operators, look at their values, and find the scale of each."""
    if arrays is not None:
        operators: tuple[GramOperator, ...] = tuple(Precomputed(K) for K in arrays)
        names = tuple(f"Gram matrix {m}" for m in range(len(arrays)))
    else:
        assert kernels is not None and rows is not None
        n = len(rows)
        fits = 8 * n * n * (len(kernels) + 2) <= memory_limit(memory)
        operators = ()
        if fits:
            operators = _all_stored(kernels, rows, n_jobs)
            fits = bool(operators)
        if not fits:
            operators = tuple(k.gram(rows, memory=0, n_jobs=n_jobs) for k in kernels)
        names = tuple(str(k) for k in kernels)
        for op, name in zip(operators, names, strict=True):
            if not np.isfinite(largest_entry(op.dense() if fits else op.diag()[None])):
                raise NotFiniteError(f"{name} gives values that are not finite. Look at its parameters.")
    scales = np.array([_scale(op, w, normalize) for op in operators])
    if not np.all(scales > 0):
        m = int(np.argmin(scales > 0))
        raise InputError(
            f"{names[m]} cannot be normalised by its {normalize}: that is {scales[m]:.6g} on these rows. "
            "Leave the kernel out, or use normalize=None."
        )
    return GramSet(
        operators, scales, None if arrays is not None else tuple(kernels or ()), names, rows, memory, n_jobs
    )


def _all_stored(kernels: Sequence[Kernel], rows: Rows, n_jobs: int | None) -> tuple[GramOperator, ...]:
    """All matrices; none where they, and their sum beside them, could not be stored in the seconds left."""
    found: list[GramOperator] = []
    for k in kernels:
        op = stored_in_time(k, rows, n_jobs=n_jobs, share=STORING / (len(kernels) + 1))
        if op.kind != "dense":
            return ()
        found.append(op)
    return tuple(found)


def _scale(op: GramOperator, w: Array, normalize: str | None) -> float:
    """1, the mean of the diagonal, or that less the mean of all entries: the variance in feature space."""
    if normalize is None:
        return 1.0
    share = w / w.sum()
    trace = float(share @ op.diag())
    if normalize == "trace":
        return trace
    spread = trace - float(share @ np.asarray(op @ share))
    return spread if spread > 1e-12 * abs(trace) else 0.0


def check_kernels(kernels: Kernels) -> list[Kernel | str] | None:
    """The kernels as a list of what `kernel=` takes; None for "precomputed"."""
    if isinstance(kernels, str) and kernels == PRECOMPUTED:
        return None
    if isinstance(kernels, (str, Kernel)) or not isinstance(kernels, Sequence):
        raise ParameterError(
            "kernels must be a list of kernels or their texts, such as ['Linear()', 'RBF()'], or "
            f"'precomputed'; got {kernels!r}."
        )
    if not kernels:
        raise ParameterError("kernels is empty; give at least one.")
    for k in kernels:
        if as_machine_kernel(k, "each of kernels") is None:
            raise ParameterError(
                "'precomputed' cannot be one of several kernels; use kernels='precomputed' and pass a list "
                "of Gram matrices as X."
            )
    return list(kernels)


def check_blocks(X: Any, count: int | None) -> list[Array]:
    """Gram matrices as a list of arrays of one shape; `count` many if that is known."""
    if isinstance(X, np.ndarray) and X.ndim != 3:
        raise ShapeError(
            "with kernels='precomputed' X is a list of Gram matrices, or an array kernels × rows × training "
            f"rows; got shape {X.shape}."
        )
    blocks = [Precomputed(K).array.astype(np.float64, copy=False) for K in X]
    if not blocks or len({K.shape for K in blocks}) != 1 or count not in (None, len(blocks)):
        raise ShapeError(
            f"X must be {'some' if count is None else count} Gram matrices of one shape; got "
            f"{[K.shape for K in blocks]}."
        )
    return blocks
