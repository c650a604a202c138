"""What a solution of (A + shift·I) x = b will cost, told from the eigenvalues of a few hundred random rows.

The i-th eigenvalue of a random m×m part grows with m, in a straight line in the mean once m is well beyond i;
so a part and half of it tell that of the whole. From it follow, for every rank r of a Nyström preconditioner,
the part left out, the iterations of conjugate gradients, and what rank and iterations cost together. Costs
are counted in entries of A evaluated in float64, never by a clock. `choose` is the one place that decides
between Cholesky and conjugate gradients; `choose_evidence` does so for the evidence of a Gaussian process,
which is exact by the one and an estimate by the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.linalg import eigvalsh

from mercer.errors import NotFiniteError, NotPositiveDefiniteError
from mercer.memory import say_bytes
from mercer.solve.operator import ArrayOperator, Operator
from mercer.typing import Array, Seed

Method = Literal["cholesky", "cg"]
DIRECT_ROWS = 4000  # up to here Cholesky takes a second or so
MIXED_ROWS = 2000  # from here on a float32 factor, refined, may pay
MIXED_CONDITION = 5e5  # largest eigenvalue / shift up to which it does
LEAST_SHIFT = 1e-9  # of the largest eigenvalue: below it, a preconditioner needs orthonormal vectors
PRECONDITIONER_SHARE = 0.75  # of the memory
# Rows of the part that is looked at.
LEAST_ROWS = 400
MOST_ROWS = 2000
FLOPS = 48  # floating-point operations of LAPACK in float64 that cost one entry of A
SINGLE = 0.45  # float32 in place of float64, for entries and for LAPACK
STORED = 0.17  # an entry read in float32 from memory
FIRST_TOUCH = 0.5  # an entry in float32 written to memory for the first time
SPARSE = 3  # numbers stored in a sparse row that cost one entry, in a product of two rows
ROUNDS = 4  # iterations lost at restarts and for the residual
# Of an estimate of the evidence, in products: the preconditioner and α, the probes, which need fewer digits,
# and the contractions of the gradient.
PRODUCTS_FOR_WEIGHTS = 70
PRODUCTS_FOR_PROBES = 20
PRODUCTS_FOR_GRADIENT = 15
BESIDE = 0.12  # a further column in a product, beside the entry
EARNED = 3.0  # times that an estimate must be cheaper than the exact evidence, to be worth its error


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Estimates of the largest eigenvalues of an n×n matrix, falling; beyond them a power law.

    >>> s = Spectrum(100, np.array([8.0, 4.0, 2.0, 1.0]), -1.0)
    >>> s.beyond(2), s.beyond(8), s.beyond(100)
    (2.0, 0.5, 0.0)
    """

    n: int
    values: Array
    slope: float

    @property
    def largest(self) -> float:
        return float(self.values[0])

    def beyond(self, rank: int) -> float:
        """The largest eigenvalue that `rank` others leave out."""
        known = len(self.values)
        if rank >= self.n:
            return 0.0
        if rank < known:
            return float(self.values[rank])
        decay: float = (rank / known) ** self.slope
        return float(self.values[-1]) * decay


@dataclass(frozen=True)
class Plan:
    """A rank, the iterations it should need, whether to store the entries in float32, and the whole cost."""

    rank: int
    iterations: int
    store: bool
    cost: float


def spectrum(op: Operator, random_state: Seed = 0, *, memory: float = np.inf) -> Spectrum:
    """The eigenvalues of `op`, estimated from n / 20 random rows and columns, at least 400, at most 2000.

    Fewer where four arrays of that size would not fit in `memory`, in bytes.
    Raises `NotPositiveDefiniteError` where they show that `op` is indefinite.
    """
    n = op.shape[0]
    held = max(np.sqrt(memory / (4 * 8)), 16.0)
    m = int(min(n, max(LEAST_ROWS, min(n // 20, MOST_ROWS)), held))
    chosen = np.random.default_rng(random_state).permutation(n)[:m]
    part = np.asarray(op.block(chosen, chosen), dtype=np.float64)
    if not np.isfinite(part).all():
        raise NotFiniteError(
            "The matrix contains NaN or infinity. Look for missing values, or for a kernel that overflows."
        )
    part = 0.5 * (part + part.T)
    whole = eigvalsh(part, check_finite=False)[::-1]
    size = float(np.abs(whole).max())
    low = float(whole[-1])
    if low < -1e4 * m * float(np.finfo(op.dtype).eps) * size:
        raise NotPositiveDefiniteError(
            f"The matrix is not positive semi-definite: {m} of its rows and columns have an eigenvalue of "
            f"{low:.3g}. Use a valid kernel, or add a diagonal.",
            smallest_eigenvalue=low,
        )
    if m == n:
        return Spectrum(n, np.maximum(whole, 0.0), -1.0)
    half = m // 2
    before = eigvalsh(part[:half, :half], check_finite=False)[::-1]
    grown = whole[:half] + (n - m) / (m - half) * np.maximum(whole[:half] - before, 0.0)
    values = np.minimum.accumulate(np.maximum(grown, 0.0))
    first = float(values[half // 2])
    last = float(values[-1])
    slope = np.log2(last / first) if last > 0 else 0.0
    return Spectrum(n, values, float(slope))


def cost_of_entries(op: Operator) -> float:
    """One entry of an operator that says nothing of its columns."""
    return entry_cost(None if isinstance(op, ArrayOperator) else 0)


def entry_cost(columns: int | None) -> float:
    """One entry k(x, z) of rows with that many columns; None where A is an array already."""
    return STORED / SINGLE if columns is None else 1.0 + 2 * columns / FLOPS


def sparse_entry_cost(stored: float) -> float:
    """One entry k(x, z) of sparse rows that store so many numbers each."""
    return 1.0 + stored / SPARSE


def iterations(tail: float, shift: float, tol: float) -> int:
    """½ √κ ln(2 / tol) with κ = 1 + tail / shift; 0, that is unknown, without a shift.

    >>> iterations(3.0, 1.0, 2e-10), iterations(3.0, 0.0, 1e-10)
    (24, 0)
    """
    if shift == 0 or tol == 0:
        return 0
    return int(np.ceil(0.5 * np.sqrt(1.0 + tail / shift) * np.log(2 / tol)))


@dataclass(frozen=True)
class Costs:
    """What is known of an operator before it is asked for anything.

    `entry` is one entry in float64 and `products` the part of it that conjugate gradients pay for one, which
    is `SINGLE` where they multiply in float32; `storable` says that entries computed in float32 could be
    stored, if they fit in memory.
    """

    entry: float = 1.0
    products: float = 1.0
    storable: bool = False


def plan(
    known: Spectrum,
    shift: float,
    tol: float,
    *,
    entry: float,
    most: int,
    storable: int = 0,
    products: float = SINGLE,
) -> Plan:
    """The rank up to `most` at which preconditioner and iterations together cost least.

    `storable` is the largest rank beside which the entries of A in float32 would fit in memory; 0 for none.
    `products` is the part of an entry's cost that a product pays for it.

    >>> easy = plan(Spectrum(10_000, 100 * 0.5 ** np.arange(200.0), -5.0), 1.0, 1e-10, entry=1.0, most=1000)
    >>> easy.rank, easy.iterations
    (16, 16)
    """
    n = known.n
    cap = max(1, min(most, n // 2))
    ranks = sorted({min(cap, int(16 * 1.25**k)) for k in range(60)})
    priced = (_priced(known, r, shift, tol, entry, storable, products) for r in ranks)
    return min(priced, key=lambda p: p.cost)


def _priced(
    known: Spectrum, rank: int, shift: float, tol: float, entry: float, storable: int, products: float
) -> Plan:
    n = float(known.n)
    r = float(rank)
    need = iterations(known.beyond(rank), shift, tol) + ROUNDS
    # Columns, triangular solves and their Gram matrix.
    made = n * r * entry + (2 * n * r * r + r**3) / FLOPS
    again = products * entry * n * n
    stored = need * STORED * n * n + again + FIRST_TOUCH * n * n
    store = rank <= storable and stored < need * again
    multiplied = stored if store else need * again
    return Plan(rank, need, store, made + multiplied + need * 4 * n * r / FLOPS)


def cholesky_cost(n: int, entry: float, *, single: bool) -> float:
    """A factor of n rows and the entries for it and for the residuals."""
    if single:
        return SINGLE * n**3 / (3 * FLOPS) + 4 * entry * n * n
    return 1.0 * n**3 / (3 * FLOPS) + 2 * entry * n * n


# ── margins ─────────────────────────────────────────────────────────────────────────────────────────────────

# Rows up to which working sets take no time worth saving, and polish what they find.
FEW_ROWS = 1000
# What coordinate ascent and Newton's steps cost for each number of the features, more where a row stores
# many, and what working sets cost for each entry of K besides computing it once; both in entries.
ASCENT = 250.0
LONG_ROW = 200
WORKING_SETS = 20.0
# Of what was predicted: after this, working sets go on from where coordinate ascent is.
ASCENT_LIMIT = 10
FEATURE_SHARE = 0.5  # of the memory


def too_few_for_features(rows: int) -> bool:
    """Whether explicit features cannot pay, whatever they are: nobody need look for them.

    >>> too_few_for_features(1000), too_few_for_features(1001)
    (True, False)
    """
    return rows <= FEW_ROWS


def in_features(rows: int, features: int, numbers: int, *, entry: float, memory: int) -> bool:
    """Whether explicit features promise to solve the problems of a margin machine, or of a loss, cheaper.

    `numbers` is how many numbers the features of all rows store, `entry` what one entry of K costs, and
    `memory` is in bytes.

    >>> in_features(20_000, 50_000, 2_000_000, entry=sparse_entry_cost(100), memory=2**31)
    True
    >>> in_features(2000, 50_000, 100_000_000, entry=entry_cost(50_000), memory=2**31)
    False
    """
    if too_few_for_features(rows) or 8 * (numbers + 4 * features) > FEATURE_SHARE * memory:
        return False
    ascent = ASCENT * numbers * (1 + numbers / rows / LONG_ROW)
    return ascent < (WORKING_SETS + entry) * rows * rows


def numbers_allowed(numbers: int) -> int:
    """How many numbers of the features coordinate ascent may read before working sets go on."""
    return int(ASCENT_LIMIT * ASCENT * numbers)


# ── the choice ──────────────────────────────────────────────────────────────────────────────────────────────


class Outlook(NamedTuple):
    """What the spectrum told: the plan of conjugate gradients, if any, and the condition of A + shift."""

    plan: Plan | None
    condition: float


@dataclass(frozen=True)
class Choice:
    """The method; for Cholesky whether in mixed precision, for conjugate gradients their plan, if any.

    After `allowed` iterations, or when they get stuck, Cholesky takes over; None where it does not.
    """

    method: Method
    mixed: bool = False
    plan: Plan | None = None
    allowed: int | None = None
    note: str = ""


def choose(
    op: Operator,
    shift: float,
    tol: float,
    *,
    asked: Method | None = None,
    memory: int,
    costs: Costs,
    random_state: Seed = 0,
) -> Choice:
    """Cholesky or conjugate gradients, whichever promises to be cheaper, unless one is `asked` for.

    `memory` is in bytes.
    """
    n = op.shape[0]
    fits = 8 * n * n <= memory
    method = asked
    if asked is None and fits and n <= DIRECT_ROWS:
        method = "cholesky"
    if method == "cholesky" and n <= MIXED_ROWS:
        return Choice("cholesky")
    try:
        outlook = look(op, shift, tol, memory=memory, costs=costs, random_state=random_state)
    except NotPositiveDefiniteError:
        # Indefinite, yet A + shift may be positive: Cholesky will tell.
        if method == "cg" or not fits:
            raise
        said = "K is indefinite, so conjugate gradients were not tried." if method is None else ""
        return Choice("cholesky", note=said)
    mixed = n > MIXED_ROWS and outlook.condition <= MIXED_CONDITION
    if method == "cholesky":
        return Choice("cholesky", mixed)
    if not fits:
        said = f"The n×n factor ({say_bytes(8 * n * n)}) does not fit in the memory allowed."
        return Choice("cg", mixed, outlook.plan, note=said)
    if method == "cg":
        return Choice("cg", mixed, outlook.plan)
    return _cheaper(n, shift, outlook, mixed, costs)


def _cheaper(n: int, shift: float, outlook: Outlook, mixed: bool, costs: Costs) -> Choice:
    """The choice where both are possible."""
    limit = cholesky_cost(n, costs.entry, single=outlook.condition <= MIXED_CONDITION)
    if shift == 0:
        # Nothing bounds the spectrum from below, so nothing is promised: as many products as Cholesky costs.
        return Choice("cg", mixed, allowed=max(int(limit / (costs.products * costs.entry * n * n)), 1))
    promised = outlook.plan
    if promised is None or promised.cost > limit:
        need = "too many" if promised is None else f"some {promised.iterations}"
        said = f"Conjugate gradients would need {need} iterations; Cholesky is cheaper."
        return Choice("cholesky", mixed, note=said)
    # Twice what was promised at that price, then Cholesky.
    return Choice("cg", mixed, promised, int(2 * promised.iterations * limit / promised.cost))


def evidence_cost(n: int, entry: float) -> float:
    """The evidence and its gradient from a factor: n³ operations for it and the inverse, and the entries."""
    return 1.0 * n**3 / FLOPS + 4 * entry * n * n


def estimate_cost(n: int, entry: float, columns: int) -> float:
    """The same as an estimate from products, with so many probes and targets side by side.

    How many products there are depends on the matrix; here they are what a matrix with some noise takes.
    """
    each = PRODUCTS_FOR_WEIGHTS + PRODUCTS_FOR_GRADIENT
    return (each * entry + PRODUCTS_FOR_PROBES * BESIDE * columns) * n * n


def choose_evidence(n: int, *, entry: float, columns: int, memory: int) -> Choice:
    """How the evidence of a Gaussian process on n rows is found: exactly, where that fits and is affordable.

    It depends on sizes alone, so that all hyperparameters of a search are judged by one method.

    >>> choose_evidence(16_000, entry=1.2, columns=17, memory=2 << 30).method
    'cholesky'
    >>> choose_evidence(20_000, entry=1.2, columns=17, memory=2 << 30).method
    'cg'
    """
    if 8 * n * n > memory:
        said = f"The n×n factor ({say_bytes(8 * n * n)}) does not fit in the memory allowed"
        return Choice("cg", note=f"{said} ({say_bytes(memory)}): the evidence is estimated.")
    exact = evidence_cost(n, entry)
    estimated = estimate_cost(n, entry, columns)
    if exact <= EARNED * estimated:
        return Choice("cholesky")
    said = f"A factor of {n} rows would cost some {exact / estimated:.1f} times as much as an estimate"
    return Choice("cg", note=f"{said}: the evidence is estimated.")


def look(
    op: Operator, shift: float, tol: float, *, memory: int, costs: Costs, random_state: Seed = 0
) -> Outlook:
    """The plan of conjugate gradients and the condition, from a few hundred rows."""
    known = spectrum(op, random_state, memory=memory)
    if shift <= LEAST_SHIFT * known.largest:
        return Outlook(None, np.inf)
    n = known.n
    storable = 0
    if costs.storable:
        storable = max(memory - 4 * n * n, 0) // (8 * n)
    made = plan(
        known,
        shift,
        tol,
        entry=costs.entry,
        most=max(int(PRECONDITIONER_SHARE * memory) // (8 * n), 16),
        storable=storable,
        products=costs.products,
    )
    return Outlook(made, known.largest / shift + 1.0)
