"""What a fitted model claims, held against what its data say: the one protocol of `mercer.verify`.

A machine hands each number it publishes, and the same number recomputed, to an `Examination`; the examination
compares them all alike and keeps what does not agree, in words.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from mercer.kernels.base import Kernel
from mercer.solve.solution import Certificate, Status
from mercer.sparse import Matrix
from mercer.typing import Array

# Of what follows from other published numbers by sums and products, relative to the largest entry.
EXACT = 1e-9
# Of what follows by solving, or by sums that cancel.
SOLVED = 1e-7

# How large numbers are that are compared: one size for all of them, or one for each.
Scale: TypeAlias = float | Array


class Reached(NamedTuple):
    """Whether recomputed numbers meet the tolerance of a fit; None where they cannot tell.

    `rule` says what is not so, or why.
    """

    met: bool | None
    rule: str = ""


# Of an answer that is computed and not sought: there is nothing to converge to.
AS_DEFINED = Reached(True)


def at_most(what: str, value: float | None, bound: float) -> Reached:
    """The tolerance is met where `value` is at most `bound`."""
    if value is None:
        return Reached(None, f"{what} is not known")
    return Reached(bool(value <= bound), f"{what} is {value:.3g}, more than {bound:.3g}")


class Examination:
    """Collects claims: how many were compared, which were not true, and what could not be asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.findings: list[str] = []
        self.unchecked: list[str] = []
        self.certificates: list[Certificate] = []
        self.claimed: list[Certificate] = []

    # ── one claim ───────────────────────────────────────────────────────────────────────────────────────────

    def true(self, holds: object, otherwise: str) -> None:
        """A claim that holds or not; `otherwise` is the sentence if it does not."""
        self.asked += 1
        if not holds:
            self.findings.append(otherwise)

    def cannot(self, sentence: str) -> None:
        """Something published that no data can confirm or deny."""
        self.unchecked.append(sentence)

    def same(
        self, what: str, claimed: Any, found: Any, *, within: float = EXACT, scale: Scale | None = None
    ) -> None:
        """`claimed` is `found`: exactly for counts, names and forms of kernels, else to `within` of the size.

        `scale` is taken for the size where it is given: one number, or one for each entry.
        """
        if opaque(found):
            return
        if isinstance(found, Kernel) and isinstance(claimed, Kernel):
            self._same_kernel(what, claimed, found, within)
        elif is_dataclass(found) and not isinstance(found, type):
            self.true(type(claimed) is type(found), f"{what} is {claimed!r}, not {found!r}")
            for f in fields(found) if type(claimed) is type(found) else ():
                self.same(f"{what}.{f.name}", getattr(claimed, f.name), getattr(found, f.name), within=within)
        elif isinstance(found, dict) and isinstance(claimed, dict):
            self.true(claimed.keys() == found.keys(), f"{what} has {list(claimed)}, not {list(found)}")
            for key in found.keys() & claimed.keys():
                self.same(f"{what}[{key!r}]", claimed[key], found[key], within=within)
        elif _is_ragged(found):
            self.true(len(claimed) == len(found), f"{what} has {len(claimed)} parts, not {len(found)}")
            for k, (a, b) in enumerate(zip(claimed, found, strict=False)):
                self.same(f"{what}[{k}]", a, b, within=within)
        elif sparse.issparse(found) or sparse.issparse(claimed):
            self._same_sparse(what, claimed, found)
        elif found is None or claimed is None or isinstance(found, str):
            self.true(
                claimed is found or (isinstance(found, str) and claimed == found),
                f"{what} is {claimed!r}, not {found!r}",
            )
        else:
            self._same_numbers(what, claimed, found, within, scale)

    def _same_numbers(
        self, what: str, claimed: object, found: object, within: float, scale: Scale | None
    ) -> None:
        a = np.asarray(claimed)
        b = np.asarray(found)
        if a.shape != b.shape:
            self.true(False, f"{what} has shape {a.shape}, not {b.shape}")
            return
        if a.size == 0:
            self.true(True, "")
            return
        if b.dtype.kind != "f" or a.dtype.kind not in "fiub":
            wrong = np.ravel(a != b)
            if a.dtype.kind == "O":
                # a missing value is not equal to itself
                wrong &= ~np.ravel((a != a) & (b != b))
        else:
            known = np.abs(b[np.isfinite(b)])
            size: Scale = known.max(initial=0.0) if scale is None else scale
            with np.errstate(invalid="ignore"):
                off = np.abs(a - b)
            wrong = np.ravel(~((a == b) | (off <= within * size) | (np.isnan(a) & np.isnan(b))))
        self.asked += a.size
        if not wrong.any():
            return
        i = int(np.argmax(wrong))
        at = ""
        if a.ndim:
            at = f"[{', '.join(str(int(k)) for k in np.unravel_index(i, a.shape))}]"
        more = int(wrong.sum()) - 1
        others = f", and {more} more differ" if more else ""
        self.findings.append(f"{what}{at} is {_say(a.flat[i])}, not {_say(b.flat[i])}{others}")

    def _same_sparse(self, what: str, claimed: Matrix, found: Matrix) -> None:
        if not (sparse.issparse(found) and sparse.issparse(claimed)) or claimed.shape != found.shape:
            self.true(False, f"{what} is not the same kind of rows")
            return
        differ = abs(claimed - found)
        self.asked += int(found.nnz)
        if differ.nnz and float(differ.max()) > 0:
            self.findings.append(f"{what} differs in {differ.nnz} entries")

    def _same_kernel(self, what: str, claimed: Kernel, found: Kernel, within: float) -> None:
        self.asked += 1
        if claimed == found:
            return
        mine = claimed.get_params()
        theirs = found.get_params()
        alike = type(claimed) is type(found) and mine.keys() == theirs.keys()
        if not alike or not all(_close(mine[name], theirs[name], within) for name in theirs):
            self.findings.append(f"{what} is {claimed}, not {found}")

    # ── a certificate ───────────────────────────────────────────────────────────────────────────────────────

    def certificate(
        self,
        claimed: Certificate,
        found: Certificate,
        *,
        reached: Reached,
        of: str = "",
        scale: float | dict[str, float] = 0.0,
        unit: float = 1.0,
    ) -> None:
        """The numbers of a certificate: objectives in units of their size and `scale`, violations of `unit`.

        `scale` is one number for primal, dual and gap, or one for each by name.

        `reached` says whether these numbers are what "converged" means: a status is a claim like any other.
        """
        if claimed.status == Status.CONVERGED:
            self._converged(reached, of)
        if reached.met is False and found.status == Status.CONVERGED:
            found = replace(found, status=Status.LIMIT)
        self.certificates.append(found)
        self.claimed.append(claimed)
        objective = max(abs(claimed.primal or 0.0), abs(claimed.dual or 0.0), 1e-300)
        for name in ("primal", "dual", "gap"):
            now = getattr(found, name)
            then = getattr(claimed, name)
            size = max(objective, scale[name] if isinstance(scale, dict) else scale)
            self.same(f"{of}the {name} of the certificate", then, now, within=SOLVED, scale=size)
        for name in ("kkt", "residual"):
            now = getattr(found, name)
            then = getattr(claimed, name)
            self.same(f"{of}the {name} of the certificate", then, now, within=SOLVED, scale=unit)
        if found.residuals is not None or claimed.residuals is not None:
            named = f"{of}residuals of the certificate"
            self.same(named, claimed.residuals, found.residuals, within=SOLVED, scale=unit)
        self.same(f"{of}the added diagonal", claimed.added_diagonal or 0.0, found.added_diagonal or 0.0)

    def _converged(self, reached: Reached, of: str) -> None:
        if reached.met is None:
            self.cannot(f"{of}that the fit converged: {reached.rule}")
            return
        self.true(reached.met, f"{of}the status is converged, but {reached.rule}")

    def copies(self, what: str, claimed: Certificate, found: Certificate) -> None:
        """A certificate that only sums up others says what they say."""
        for name in ("status", "primal", "dual", "gap", "kkt", "residual", "added_diagonal"):
            self.same(f"{name} of {what}", getattr(claimed, name), getattr(found, name))


def _is_ragged(value: object) -> bool:
    """A sequence whose members are not plain numbers, such as series in an array of objects."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "O" and value.ndim == 1:
        return any(isinstance(v, np.ndarray | list | tuple) for v in value)
    if not isinstance(value, list | tuple):
        return False
    return any(isinstance(v, np.ndarray | list | tuple | str | Kernel) or is_dataclass(v) for v in value)


def _close(a: object, b: object, within: float) -> bool:
    if isinstance(a, Kernel) or isinstance(b, Kernel):
        return type(a) is type(b)
    try:
        x = np.asarray(a, dtype=float)
        y = np.asarray(b, dtype=float)
    except (TypeError, ValueError):
        return bool(a is b or a == b)
    return x.shape == y.shape and bool(np.all(np.abs(x - y) <= within * np.abs(y).max(initial=0.0)))


def _say(value: object) -> str:
    return f"{value:.9g}" if isinstance(value, float | np.floating) else str(value)


def opaque(value: object) -> bool:
    """Things that are no numbers: functions, generators, Gram operators, rows, fitted machines."""
    plain = (bool, int, float, complex, str, tuple, list, dict, np.ndarray, np.generic)
    known = value is None or isinstance(value, plain) or sparse.issparse(value)
    return not (known or isinstance(value, Kernel) or is_dataclass(value))
