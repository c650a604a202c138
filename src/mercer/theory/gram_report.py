"""Three tests of a Gram matrix, side by side: eigenvalues, leading minors, quadratic form; symmetry first.

The tests are computed apart from each other, and they do not say the same thing:

    eigenvalues      decide, up to the rounding of the entries
    leading minors   all > 0 proves positive definite; one < 0 refutes; zeros among them prove nothing
    quadratic form   a q with qᵀKq < 0 refutes; not finding one proves nothing

All three look at K scaled to a unit diagonal by powers of two, which changes no sign: rounding is then that
of each entry and not that of the largest (`graded`). A q that refutes has a negative form beyond the rounding
of its evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
from scipy import linalg, sparse

from mercer.errors import NotFiniteError, ParameterError, ShapeError
from mercer.sparse import Matrix
from mercer.theory.graded import (
    ASYMMETRIC,
    DEFINITE,
    INDEFINITE,
    NEGATIVE,
    NOT_POSITIVE,
    REFUTED,
    SEMIDEFINITE,
    UNSURE,
    Graded,
    scaled_by,
)
from mercer.typing import Array, Integers, Table
from mercer.vectors import check_vectors, largest_at

MOST_MINORS = 100  # leading minors cost n⁴ together; beyond this only the first ones are computed
MOST_PAIRS = 1000  # duplicates listed; all are counted


@dataclass(frozen=True)
class MatrixTest:
    """What one test found: `says` is a verdict or UNSURE, `detail` the numbers behind it.

    `partial` says that not all of them were computed.
    """

    name: str
    says: str
    detail: str
    partial: bool = field(default=False, repr=False)


@dataclass(frozen=True, eq=False, repr=False)
class GramReport:
    """The findings of `gram_report`; `print` shows them, `to_dict` gives them to JSON."""

    n: int
    verdict: str
    tolerance: float
    asymmetry: float
    asymmetric_at: tuple[int, int] | None
    eigenvalues: Array
    condition: float
    minor_signs: tuple[int, ...]
    smallest_form: float
    form_vector: Array
    rank: int
    effective_rank: float
    duplicates: tuple[tuple[int, int], ...]
    duplicate_count: int
    direction: Array
    tests: tuple[MatrixTest, ...]
    differ: tuple[tuple[str, str], ...]

    @property
    def smallest_eigenvalue(self) -> float:
        """The value of the form along `direction`: the most negative one, if any is negative."""
        return float(self.eigenvalues[0])

    @property
    def largest_eigenvalue(self) -> float:
        return float(self.eigenvalues[-1])

    @property
    def minors_checked(self) -> int:
        """How many leading minors were computed: all n, or the first `MOST_MINORS`."""
        return len(self.minor_signs)

    @property
    def agree(self) -> tuple[str, ...]:
        """The tests that point the way of the verdict; `differ` says why the others do not."""
        apart = {name for name, _ in self.differ}
        return tuple(t.name for t in self.tests if t.name not in apart)

    def to_dict(self) -> dict[str, object]:
        """Everything as plain numbers, lists and text; infinity and NaN as None."""
        out = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        out["tests"] = [{"name": t.name, "says": t.says, "detail": t.detail} for t in self.tests]
        out["differ"] = [{"name": name, "why": why} for name, why in self.differ]
        out["agree"] = list(self.agree)
        out["minors_checked"] = self.minors_checked
        return out

    def __repr__(self) -> str:
        return f"<GramReport: {self.n} by {self.n}, {self.verdict}>"

    def __str__(self) -> str:
        rows = [("verdict", self.verdict), ("symmetry", self._symmetry_line())]
        rows += [(t.name, f"{t.says}: {t.detail}") for t in self.tests]
        rows.append(("agreement", self._agreement_line()))
        rows += [(f"  {name}", why) for name, why in self.differ]
        rows.append(("condition", f"{self.condition:.3g}"))
        rows.append(("rank", f"{self.rank} of {self.n} numerically, {self.effective_rank:.3g} by entropy"))
        rows.append(("duplicates", self._duplicates_line()))
        if self.smallest_eigenvalue < 0:
            word = "most negative" if self.verdict in REFUTED else "lowest"
            said = f"{_vector(self.direction)} with qᵀKq/qᵀq = {self.smallest_eigenvalue:.6g}"
            rows.append((f"{word} direction", said))
        width = max(len(name) for name, _ in rows)
        head = f"Gram matrix, {self.n} by {self.n} (relative tolerance {self.tolerance:.2g})"
        return "\n".join([head, *(f"  {name:<{width}}  {text}" for name, text in rows)])

    def _symmetry_line(self) -> str:
        if self.asymmetric_at is None:
            return "exact"
        i, j = self.asymmetric_at
        word = "broken" if self.verdict == ASYMMETRIC else "to rounding"
        note = "; the tests below see (K + Kᵀ)/2 only" if self.verdict == ASYMMETRIC else ""
        return f"{word}: |K[{i}, {j}] - K[{j}, {i}]| = {self.asymmetry:.3g}{note}"

    def _agreement_line(self) -> str:
        if not self.differ:
            same = len({t.says for t in self.tests}) == 1
            return "all three tests agree" if same else "no test contradicts another"
        apart = ", ".join(name for name, _ in self.differ)
        return f"{', '.join(self.agree) or 'none'}; apart from {apart}, because"

    def _duplicates_line(self) -> str:
        if not self.duplicate_count:
            return "none"
        shown = ", ".join(map(str, self.duplicates[:5]))
        return f"{self.duplicate_count} pair(s): {shown}{', …' if self.duplicate_count > 5 else ''}"


def gram_report(K: Table, tolerance: float | None = None) -> GramReport:
    """What the three tests of positive semi-definiteness say of a matrix, and whether they agree.

    `tolerance` is relative to the largest entry (or eigenvalue). The default is a small multiple of n times
    the rounding unit of K's own precision, relative to each entry: √(K_ii K_jj) counts for the entry (i, j).

    >>> report = gram_report([[1.0, 2.0], [2.0, 1.0]])
    >>> report.verdict, report.smallest_eigenvalue, report.direction.round(3)
    ('indefinite', -1.0, array([-0.707,  0.707]))
    >>> report = gram_report([[0.0, 0.0], [0.0, -1.0]])
    >>> report.verdict, report.agree                      # no leading minor is negative
    ('negative semi-definite to rounding', ('eigenvalues', 'quadratic form'))
    >>> gram_report([[1e20, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -0.01]]).verdict
    'indefinite'
    """
    A, rounding = _numbers(K)
    n = len(A)
    tol = 8 * max(n, 16) * rounding if tolerance is None else float(tolerance)
    if not 0 <= tol < 1:
        raise ParameterError(
            f"tolerance must be from 0 to 1, relative to the largest entry; got {tolerance!r}."
        )
    seen = Graded.of(A, tol, by_entry=tolerance is None)
    gap, where = _asymmetry(A, seen.e)
    signs = tuple(_minor_sign(seen.S[:m, :m], tol) for m in range(1, min(n, MOST_MINORS) + 1))
    q, form = seen.search()
    spectrum = seen.spectrum()
    tests = (_eigenvalue_test(seen, spectrum), _minor_test(signs, n), _form_test(seen, q, form))
    verdict = tests[0].says
    if gap > tol * float(np.abs(seen.S).max()):
        verdict = ASYMMETRIC
    pairs, count = _duplicates(seen.A, tol, trusted=verdict in (DEFINITE, SEMIDEFINITE))
    return GramReport(
        n=n,
        verdict=verdict,
        tolerance=tol,
        asymmetry=0.0 if where is None else abs(float(A[where] - A[where[::-1]])),
        asymmetric_at=where,
        eigenvalues=spectrum,
        condition=_ratio(float(np.abs(spectrum).max()), float(np.abs(spectrum).min())),
        minor_signs=signs,
        smallest_form=form,
        form_vector=q,
        rank=int((np.abs(seen.values) > seen.threshold).sum()),
        effective_rank=_entropy_rank(spectrum),
        duplicates=pairs,
        duplicate_count=count,
        direction=seen.direction,
        tests=tests,
        differ=_differences(tests),
    )


# ── the matrix ──────────────────────────────────────────────────────────────────────────────────────────────


def _numbers(K: Matrix) -> tuple[Array, float]:
    """K in float64, and the rounding unit it came in."""
    if sparse.issparse(K):
        K = K.toarray()
    A = K if isinstance(K, np.ndarray) and not isinstance(K, np.ma.MaskedArray) else None
    if A is None or A.dtype.kind != "f" or A.ndim != 2 or 0 in A.shape:
        A = _checked(K)
    if A.shape[0] != A.shape[1]:
        raise ShapeError(
            f"K has shape {A.shape}; a Gram matrix is square, with one row and one column per point. "
            "If this is data, compute the Gram matrix first: gram_report(kernel(X))."
        )
    bad = ~np.isfinite(A)
    if bad.any():
        i, j = largest_at(bad)
        raise NotFiniteError(
            f"K contains {A[i, j]} at ({i}, {j}): the kernel gave no finite number for points {i} and {j}. "
            "Look at these two points, or at parameters that make the kernel overflow."
        )
    rounding = float(np.finfo(A.dtype).eps)
    return A.astype(np.float64), max(rounding, float(np.finfo(float).eps))


def _checked(K: Matrix) -> Array:
    """Lists, integers, data frames and masks by the common rules; NaN is left to the caller's message."""
    try:
        return np.asarray(check_vectors(K, "K"))
    except NotFiniteError:
        return np.asarray(K, dtype=float)


def _asymmetry(K: Array, e: Integers) -> tuple[float, tuple[int, int] | None]:
    """The largest |K_ij - K_ji| in units of 2^(e_i + e_j), and where it is."""
    S = scaled_by(K, e)
    gaps = np.abs(S - S.T)
    i, j = largest_at(gaps)
    if gaps[i, j] > 0:
        return float(gaps[i, j]), (i, j)
    return float(gaps[i, j]), None


def _duplicates(A: Array, tol: float, trusted: bool) -> tuple[tuple[tuple[int, int], ...], int]:
    """Pairs with the same image: ‖φ(x_i) - φ(x_j)‖² = K_ii + K_jj - 2K_ij is 0 to rounding.

    Then rows i and j are equal too, if K is positive semi-definite (`trusted`); if not, they are compared.
    """
    d = np.diag(A)
    size = np.abs(d)[:, None] + np.abs(d)[None, :] + 2 * np.abs(A)
    near = np.abs(d[:, None] + d[None, :] - A - A.T) <= tol * size
    rows, columns = np.nonzero(np.triu(near, 1))
    if trusted:
        shown = zip(rows[:MOST_PAIRS].tolist(), columns[:MOST_PAIRS].tolist(), strict=True)
        return tuple(shown), len(rows)
    reach = 4 * np.sqrt(tol) * max(float(np.abs(A).max()), np.finfo(float).tiny)
    pairs = []
    for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
        if np.abs(A[i] - A[j]).max() <= reach:
            pairs.append((i, j))
    return tuple(pairs[:MOST_PAIRS]), len(pairs)


# ── the three tests ─────────────────────────────────────────────────────────────────────────────────────────


def _eigenvalue_test(seen: Graded, spectrum: Array) -> MatrixTest:
    detail = f"from {spectrum[0]:.6g} to {spectrum[-1]:.6g}"
    if seen.is_graded:
        detail += f"; with a unit diagonal from {seen.values[0]:.3g} to {seen.values[-1]:.3g}"
    negative = int((seen.values < -seen.threshold).sum())
    if seen.verdict in REFUTED:
        detail += f", {max(negative, 1)} of {len(spectrum)} negative"
    return MatrixTest("eigenvalues", seen.verdict, detail)


def _minor_sign(block: Array, tol: float) -> int:
    """The sign of det(block) by LU with partial pivoting; 0 where a pivot is no more than rounding."""
    P, _, U = linalg.lu(block, p_indices=True)
    pivots = np.diag(U)
    if np.abs(pivots).min() <= tol * np.abs(block).max():
        return 0
    swaps = len(P) - _cycles(P)
    return -1 if (swaps + int((pivots < 0).sum())) % 2 else 1


def _cycles(permutation: Integers) -> int:
    seen = np.zeros(len(permutation), dtype=bool)
    count = 0
    for start in range(len(permutation)):
        if not seen[start]:
            count += 1
            at = start
            while not seen[at]:
                seen[at] = True
                at = int(permutation[at])
    return count


def _minor_test(signs: tuple[int, ...], n: int) -> MatrixTest:
    name = "leading minors"
    some = f"the first {len(signs)} of {n}" if len(signs) < n else f"all {n}"
    if signs[1::2].count(-1):
        at = signs[1::2].index(-1) * 2 + 2
        return MatrixTest(name, INDEFINITE, f"minor {at}, of even order, is negative")
    if len(signs) == n and all(sign == (-1) ** m for m, sign in enumerate(signs, 1)):
        return MatrixTest(name, NEGATIVE, f"{some} alternate from -, which proves it")
    if -1 in signs:
        return MatrixTest(name, NOT_POSITIVE, f"minor {signs.index(-1) + 1} is negative")
    if 0 in signs:
        said = f"{some} are ≥ 0, minor {signs.index(0) + 1} is 0 to rounding; that proves nothing"
        return MatrixTest(name, UNSURE, said)
    if len(signs) < n:
        return MatrixTest(name, UNSURE, f"{some} are > 0; the others were not computed", partial=True)
    return MatrixTest(name, DEFINITE, f"{some} are > 0, which proves it")


def _form_test(seen: Graded, q: Array, form: float) -> MatrixTest:
    shown = f"smallest qᵀKq/qᵀq found is {form:.6g}"
    if seen.lowest is not None and form < 0:
        if np.diag(seen.S).max() > 0:
            return MatrixTest("quadratic form", INDEFINITE, shown)
        return MatrixTest("quadratic form", NOT_POSITIVE, shown)
    return MatrixTest("quadratic form", UNSURE, f"{shown}; no negative one was found, which proves nothing")


def _differences(tests: tuple[MatrixTest, ...]) -> tuple[tuple[str, str], ...]:
    """Tests that do not point the way of the eigenvalues, and why that can be."""
    eigen, minors, form = tests
    refuted = eigen.says in REFUTED
    out = []
    if refuted and minors.says not in REFUTED:
        why = "it sees leading blocks only, and the negative direction lies in another principal block"
        if minors.says == DEFINITE:
            why = "the smallest pivot and the smallest eigenvalue straddle the tolerance: rounding decides"
        elif minors.partial:
            why = f"only the first {MOST_MINORS} minors were computed"
        out.append((minors.name, why))
    elif not refuted and minors.says in REFUTED:
        out.append((minors.name, "so close to 0, a determinant's sign is rounding; trust the eigenvalues"))
    elif {eigen.says, minors.says} == {DEFINITE, SEMIDEFINITE}:
        out.append((minors.name, "its smallest pivot is above the tolerance, the smallest eigenvalue below"))
    if refuted and form.says not in REFUTED:
        out.append((form.name, "the search missed the negative direction; a search can refute, never prove"))
    if not refuted and form.says in REFUTED:
        out.append((form.name, "its value and the smallest eigenvalue straddle the tolerance"))
    return tuple(out)


# ── numbers ─────────────────────────────────────────────────────────────────────────────────────────────────


def _entropy_rank(values: Array) -> float:
    """e^H of the shares |λ_i| / Σ|λ|: n for the identity, 1 for a single direction, 0 for the zero matrix."""
    size = np.abs(values)
    if size.sum() == 0:
        return 0.0
    share = size / size.sum()
    share = share[share > 0]
    return float(np.exp(-(share * np.log(share)).sum()))


def _ratio(a: float, b: float) -> float:
    return a / b if b > a * np.finfo(float).tiny else float("inf")


def _vector(q: Array) -> str:
    shown = ", ".join(f"{v:.4g}" for v in q[:6])
    return f"({shown}{', …' if len(q) > 6 else ''})"


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return [_plain(v) for v in value.tolist()]
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
