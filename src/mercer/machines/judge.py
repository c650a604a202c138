"""Whether a kernel that no rule proves is one on these rows: announced with the witness, or refused."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from mercer.errors import InvalidKernelError, InvalidKernelWarning, warn
from mercer.gram import GramOperator
from mercer.kernels.base import Kernel
from mercer.kernels.proof import Refuted

MOST_JUDGED = 200  # rows on which an unproved kernel is checked for negative eigenvalues


class Verdict(NamedTuple):
    """`notes` for the certificate, and a witness: rows and a vector q with qᵀKq < 0."""

    valid: bool
    notes: tuple[str, ...] = ()
    witness: tuple[np.ndarray, np.ndarray] | None = None


def judge_on_rows(
    kernel: Kernel | None,
    K: GramOperator,
    rows: np.ndarray,
    columns: int,
    *,
    strict: bool,
    lost: str,
    note: str,
) -> Verdict:
    """A proved kernel passes at once; another is looked at on some rows. `lost` says what an invalid one costs."""
    if kernel is not None and kernel._proof() is not None:
        return Verdict(True)
    some = rows[np.linspace(0, len(rows) - 1, min(len(rows), MOST_JUDGED)).astype(int)]
    values, vectors = np.linalg.eigh(K.block(some, some))
    lowest, rounding = float(values[0]), 1e-10 * max(float(np.abs(values).max()), 1e-300)
    whose = "the precomputed Gram matrix" if kernel is None else str(kernel)
    witness = None
    if lowest < -rounding:
        witness = (some, vectors[:, 0])
        found = (
            f"{whose} is not positive semi-definite: on {len(some)} of these rows its lowest eigenvalue is "
            f"{lowest:.6g} (rows and vector in witness_)"
        )
    else:
        refuted = None if kernel is None else refutation(kernel, K.shape[0], columns)
        if refuted is None:
            said = () if kernel is None else (f"{whose} is not proved to be a kernel; on this sample it is",)
            return Verdict(True, said)
        found = refuted
    if strict:
        raise InvalidKernelError(
            f"{found}. Use a kernel whose validity() is proved, or strict=False to use it all the same."
        )
    warn(f"{found}. {lost}", InvalidKernelWarning)
    return Verdict(False, (note,), witness)


@lru_cache(maxsize=64)
def refutation(kernel: Kernel, n: int, columns: int) -> str | None:
    """The witness against a kernel, in a sentence; None where there is none."""
    try:
        verdict = kernel.validity(columns=columns, seconds=1.0)
    except Exception:  # a kernel that only takes this data cannot be judged on other points
        return None
    return (
        f"{kernel} is not positive semi-definite, as these points show: {verdict!s}"
        if isinstance(verdict, Refuted)
        else None
    )
