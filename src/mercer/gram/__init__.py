"""Kernels on data, lazily: `gram(kernel, X)` chooses the operator that fits the memory allowed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mercer.arrays import Rows
from mercer.gram.distributed import Distributed, far_tiles, tiles
from mercer.gram.low_rank import Features, LowRank
from mercer.gram.of_kernel import Dense, Tiles, computed, stored_in_time
from mercer.gram.operators import GramOperator, Precomputed, Shifted, SumOf
from mercer.gram.weighted import Weighted
from mercer.kernels import doors
from mercer.kernels.base import Kernel, as_kernel
from mercer.memory import memory_limit
from mercer.samples import common_dtype, samples_of, second
from mercer.typing import Array, Memory, Table

__all__ = [
    "Dense",
    "Distributed",
    "Features",
    "GramOperator",
    "LowRank",
    "Precomputed",
    "Shifted",
    "SumOf",
    "Tiles",
    "Weighted",
    "evaluate",
    "gram",
    "stored_in_time",
    "tiles",
]


def gram(
    kernel: Kernel | str,
    X: Table | Rows,
    Z: Table | Rows | None = None,
    *,
    memory: Memory = "2GiB",
    dtype: npt.DTypeLike | None = None,
    n_jobs: int | None = None,
) -> GramOperator:
    """The Gram operator of `kernel` on X (and Z): `Dense` if K fits in `memory`, else `Tiles`.

    The answer is the same. Within a limit of seconds a large K is stored only if that takes at most half of
    them. Under `mercer.cluster` many rows of one sample are `Distributed` over its workers.

    >>> import numpy as np
    >>> X = np.arange(6.0).reshape(-1, 1)
    >>> gram("RBF(1.0)", X).kind, gram("RBF(1.0)", X, memory=100).kind
    ('dense', 'tiles')
    """
    k = as_kernel(kernel)
    x, z = samples_of(X, Z)
    width = np.dtype(common_dtype(x, z) if dtype is None else dtype).itemsize
    if z is None:
        spread = far_tiles(k, x, dtype=dtype, n_jobs=n_jobs, memory=memory)
        if spread is not None:
            return spread
    needed = len(x) * len(second(x, z)) * width
    if needed > memory_limit(memory):
        return Tiles(k, x, z, dtype=dtype, n_jobs=n_jobs)
    return stored_in_time(k, x, z, dtype=dtype, n_jobs=n_jobs)


def evaluate(kernel: Kernel, x: Rows, z: Rows | None) -> Array:
    """The dense block behind `kernel(X, Z)`, all of it finite."""
    K, finite = computed(kernel, x, z, common_dtype(x, z), None)
    return K if finite else kernel.require_finite(K)


doors.evaluating.open(doors.Evaluating(evaluate, gram))
