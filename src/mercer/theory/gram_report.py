"""Three tests of a Gram matrix, side by side: eigenvalues, leading minors, quadratic form; symmetry first.

The tests are computed apart from each other, and they do not say the same thing:

    eigenvalues      decide, up to rounding
    leading minors   all > 0 proves positive definite; one < 0 refutes; zeros among them prove nothing
    quadratic form   a q with qᵀKq < 0 refutes; not finding one proves nothing
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy import linalg, sparse

from mercer.arrays import check_vectors
from mercer.errors import NotFiniteError, ParameterError, ShapeError

DEFINITE = "positive definite"
SEMIDEFINITE = "positive semi-definite to rounding"
INDEFINITE = "indefinite"
ASYMMETRIC = "not symmetric"
UNSURE = "cannot say"

MOST_MINORS = 100  # leading minors cost n⁴ together; beyond this only the first ones are computed
MOST_PAIRS = 1000  # duplicates listed; all are counted


@dataclass(frozen=True)
class MatrixTest:
    """What one test found: `says` is a verdict or UNSURE, `detail` the numbers behind it."""

    name: str
    says: str
    detail: str


@dataclass(frozen=True, eq=False, repr=False)
class GramReport:
    """The findings of `gram_report`; `print` shows them, `to_dict` gives them to JSON."""

    n: int
    verdict: str
    tolerance: float
    asymmetry: float
    asymmetric_at: tuple[int, int] | None
    eigenvalues: np.ndarray
    condition: float
    minor_signs: tuple[int, ...]
    smallest_form: float
    form_vector: np.ndarray
    rank: int
    effective_rank: float
    duplicates: tuple[tuple[int, int], ...]
    duplicate_count: int
    direction: np.ndarray
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

    def to_dict(self) -> dict[str, Any]:
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
            word = "most negative" if self.verdict == INDEFINITE else "lowest"
            rows.append(
                (
                    f"{word} direction",
                    f"{_vector(self.direction)} with qᵀKq/qᵀq = {self.smallest_eigenvalue:.6g}",
                )
            )
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


def gram_report(K: Any, tolerance: float | None = None) -> GramReport:
    """What the three tests of positive semi-definiteness say of a matrix, and whether they agree.

    `tolerance` is relative to the largest entry (or eigenvalue); the default is a small multiple of n times
    the rounding unit of K's own precision.

    >>> report = gram_report([[1.0, 2.0], [2.0, 1.0]])
    >>> report.verdict, report.smallest_eigenvalue, report.direction.round(3)
    ('indefinite', -1.0, array([-0.707,  0.707]))
    >>> gram_report([[0.0, 0.0], [0.0, -1.0]]).agree      # no leading minor is negative, yet it is indefinite
    ('eigenvalues', 'quadratic form')
    """
    A, exponent, rounding = _scaled(K)
    n = len(A)
    tol = 8 * max(n, 16) * rounding if tolerance is None else float(tolerance)
    if not 0 <= tol < 1:
        raise ParameterError(
            f"tolerance must be from 0 to 1, relative to the largest entry; got {tolerance!r}."
        )
    gap, where = _asymmetry(A)
    S = 0.5 * (A + A.T)
    values, vectors = linalg.eigh(S)
    direction = _signed(vectors[:, 0])
    q, form = lowest_form(S)
    signs = tuple(_minor_sign(S[:m, :m], tol) for m in range(1, min(n, MOST_MINORS) + 1))
    top = float(np.abs(values).max())
    tests = (
        _eigenvalue_test(values, tol * top, exponent),
        _minor_test(signs, n),
        _form_test(form, tol * top, exponent),
    )
    verdict = tests[0].says if gap <= tol * np.abs(A).max() else ASYMMETRIC
    pairs, count = _duplicates(A, tol, trusted=verdict in (DEFINITE, SEMIDEFINITE))
    return GramReport(
        n=n,
        verdict=verdict,
        tolerance=tol,
        asymmetry=_unscale(gap, exponent),
        asymmetric_at=where,
        eigenvalues=np.ldexp(values, exponent),
        condition=_ratio(top, float(np.abs(values).min())),
        minor_signs=signs,
        smallest_form=_unscale(form, exponent),
        form_vector=q,
        rank=int((np.abs(values) > tol * top).sum()),
        effective_rank=_entropy_rank(values),
        duplicates=pairs,
        duplicate_count=count,
        direction=direction,
        tests=tests,
        differ=_differences(tests),
    )


# ── the matrix ──────────────────────────────────────────────────────────────────────────────────────────────


def _scaled(K: Any) -> tuple[np.ndarray, int, float]:
    """K / 2^e in float64 with entries of size about 1, the exponent e, and the rounding unit K came in."""
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
        i, j = (int(v) for v in np.unravel_index(int(np.argmax(bad)), A.shape))
        raise NotFiniteError(
            f"K contains {A[i, j]} at ({i}, {j}): the kernel gave no finite number for points {i} and {j}. "
            "Look at these two points, or at parameters that make the kernel overflow."
        )
    rounding = float(np.finfo(A.dtype).eps)
    A = A.astype(np.float64)
    top = float(np.abs(A).max())
    exponent = int(np.frexp(top)[1]) if top > 0 else 0
    return np.ldexp(A, -exponent), exponent, max(rounding, float(np.finfo(float).eps))


def _checked(K: Any) -> np.ndarray:
    """Lists, integers, data frames and masks by the common rules; NaN is left to the caller's message."""
    try:
        return np.asarray(check_vectors(K, "K"))
    except NotFiniteError:
        return np.asarray(K, dtype=float)


def _asymmetry(A: np.ndarray) -> tuple[float, tuple[int, int] | None]:
    gaps = np.abs(A - A.T)
    i, j = (int(v) for v in np.unravel_index(int(np.argmax(gaps)), A.shape))
    return float(gaps[i, j]), ((i, j) if gaps[i, j] > 0 else None)


def _duplicates(A: np.ndarray, tol: float, trusted: bool) -> tuple[tuple[tuple[int, int], ...], int]:
    """Pairs with the same image: ‖φ(x_i) - φ(x_j)‖² = K_ii + K_jj - 2K_ij is 0 to rounding.

    Then rows i and j are equal too, if K is positive semi-definite (`trusted`); if not, they are compared.
    """
    d = np.diag(A)
    size = np.abs(d)[:, None] + np.abs(d)[None, :] + 2 * np.abs(A)
    near = np.abs(d[:, None] + d[None, :] - A - A.T) <= tol * size
    rows, columns = np.nonzero(np.triu(near, 1))
    if trusted:
        return tuple(zip(rows[:MOST_PAIRS].tolist(), columns[:MOST_PAIRS].tolist(), strict=True)), len(rows)
    reach = 4 * np.sqrt(tol) * max(float(np.abs(A).max()), np.finfo(float).tiny)
    same = np.array(
        [np.abs(A[i] - A[j]).max() <= reach for i, j in zip(rows, columns, strict=True)], dtype=bool
    )
    pairs = [(int(i), int(j)) for i, j in zip(rows[same], columns[same], strict=True)]
    return tuple(pairs[:MOST_PAIRS]), len(pairs)


# ── the three tests ─────────────────────────────────────────────────────────────────────────────────────────


def _eigenvalue_test(values: np.ndarray, threshold: float, exponent: int) -> MatrixTest:
    low, high = (_unscale(float(v), exponent) for v in (values[0], values[-1]))
    detail = f"from {low:.6g} to {high:.6g}"
    if values[0] > threshold:
        return MatrixTest("eigenvalues", DEFINITE, detail)
    if values[0] >= -threshold:
        return MatrixTest("eigenvalues", SEMIDEFINITE, detail)
    negative = int((values < -threshold).sum())
    return MatrixTest("eigenvalues", INDEFINITE, f"{detail}, {negative} of {len(values)} negative")


def _minor_sign(block: np.ndarray, tol: float) -> int:
    """The sign of det(block) by LU with partial pivoting; 0 where a pivot is no more than rounding."""
    P, _, U = linalg.lu(block, p_indices=True)
    pivots = np.diag(U)
    if np.abs(pivots).min() <= tol * np.abs(block).max():
        return 0
    swaps = len(P) - _cycles(P)
    return -1 if (swaps + int((pivots < 0).sum())) % 2 else 1


def _cycles(permutation: np.ndarray) -> int:
    seen, count = np.zeros(len(permutation), dtype=bool), 0
    for start in range(len(permutation)):
        if not seen[start]:
            count += 1
            at = start
            while not seen[at]:
                seen[at], at = True, int(permutation[at])
    return count


def _minor_test(signs: tuple[int, ...], n: int) -> MatrixTest:
    name, some = "leading minors", f"the first {len(signs)} of {n}" if len(signs) < n else f"all {n}"
    if -1 in signs:
        return MatrixTest(name, INDEFINITE, f"minor {signs.index(-1) + 1} is negative")
    if 0 in signs:
        return MatrixTest(
            name,
            UNSURE,
            f"{some} are ≥ 0, minor {signs.index(0) + 1} is 0 to rounding; that proves nothing",
        )
    if len(signs) < n:
        return MatrixTest(name, UNSURE, f"{some} are > 0; the others were not computed")
    return MatrixTest(name, DEFINITE, f"{some} are > 0, which proves it")


def lowest_form(S: np.ndarray, random_state: int = 0, steps: int = 100) -> tuple[np.ndarray, float]:
    """The unit q with the smallest qᵀSq found by search: units, best pair, random vectors, then descent.

    The descent is the locally optimal one: each step minimises the form over q, gradient and last step.
    It does not use the eigenvalues of S, so that it can referee them.
    """
    n = len(S)
    rng = np.random.default_rng(random_state)
    starts = np.column_stack([_best_pair(S), rng.standard_normal((n, 32)), rng.choice([-1.0, 1.0], (n, 32))])
    starts /= np.linalg.norm(starts, axis=0)
    forms = np.einsum("ij,ij->j", starts, S @ starts)
    q, last = starts[:, int(np.argmin(forms))], np.zeros(n)
    rho = float(q @ S @ q)
    for _ in range(steps):
        basis = linalg.orth(np.column_stack([q, S @ q - rho * q, last]))
        _, vectors = linalg.eigh(basis.T @ S @ basis)
        new = basis @ vectors[:, 0]
        new /= np.linalg.norm(new)
        last, value = new - (new @ q) * q, float(new @ S @ new)
        if not value < rho:
            break
        q, rho = new, value
    return _signed(q), rho


def _best_pair(S: np.ndarray) -> np.ndarray:
    """The lowest vector with at most two entries, from the worst 2-by-2 principal block."""
    n, d = len(S), np.diag(S)
    if n == 1:
        return np.ones(1)
    low = 0.5 * (d[:, None] + d[None, :]) - np.hypot(0.5 * (d[:, None] - d[None, :]), S)
    np.fill_diagonal(low, np.inf)
    i, j = np.unravel_index(int(np.argmin(low)), S.shape)
    q = np.zeros(n)
    q[[i, j]] = linalg.eigh(S[np.ix_([i, j], [i, j])])[1][:, 0]
    return q


def _form_test(form: float, threshold: float, exponent: int) -> MatrixTest:
    shown = f"smallest qᵀKq/qᵀq found is {_unscale(form, exponent):.6g}"
    if form < -threshold:
        return MatrixTest("quadratic form", INDEFINITE, shown)
    return MatrixTest("quadratic form", UNSURE, f"{shown}; no negative one was found, which proves nothing")


def _differences(tests: tuple[MatrixTest, ...]) -> tuple[tuple[str, str], ...]:
    """Tests that do not point the way of the eigenvalues, and why that can be."""
    eigen, minors, form = tests
    out = []
    if eigen.says == INDEFINITE and minors.says != INDEFINITE:
        why = "it sees leading blocks only, and the negative direction lies in another principal block"
        if minors.says == DEFINITE:
            why = "the smallest pivot and the smallest eigenvalue straddle the tolerance: rounding decides"
        elif "not computed" in minors.detail:
            why = f"only the first {MOST_MINORS} minors were computed"
        out.append((minors.name, why))
    elif eigen.says != INDEFINITE and minors.says == INDEFINITE:
        out.append((minors.name, "so close to 0, a determinant's sign is rounding; trust the eigenvalues"))
    elif {eigen.says, minors.says} == {DEFINITE, SEMIDEFINITE}:
        out.append((minors.name, "its smallest pivot is above the tolerance, the smallest eigenvalue below"))
    if eigen.says == INDEFINITE and form.says != INDEFINITE:
        out.append((form.name, "the search missed the negative direction; a search can refute, never prove"))
    if eigen.says != INDEFINITE and form.says == INDEFINITE:
        out.append((form.name, "its value and the smallest eigenvalue straddle the tolerance"))
    return tuple(out)


# ── numbers ─────────────────────────────────────────────────────────────────────────────────────────────────


def _entropy_rank(values: np.ndarray) -> float:
    """e^H of the shares |λ_i| / Σ|λ|: n for the identity, 1 for a single direction, 0 for the zero matrix."""
    size = np.abs(values)
    if size.sum() == 0:
        return 0.0
    share = size / size.sum()
    share = share[share > 0]
    return float(np.exp(-(share * np.log(share)).sum()))


def _ratio(a: float, b: float) -> float:
    return a / b if b > a * np.finfo(float).tiny else float("inf")


def _unscale(value: float, exponent: int) -> float:
    return float(np.ldexp(value, exponent))


def _signed(q: np.ndarray) -> np.ndarray:
    """The same direction with a last entry that counts made positive, so that runs and platforms agree."""
    return (-q if q[np.nonzero(np.abs(q) > 1e-8)[0][-1]] < 0 else q) + 0.0


def _vector(q: np.ndarray) -> str:
    shown = ", ".join(f"{v:.4g}" for v in q[:6])
    return f"({shown}{', …' if len(q) > 6 else ''})"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [_plain(v) for v in value.tolist()]
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
