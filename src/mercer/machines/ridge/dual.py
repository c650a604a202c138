"""The dual system of kernel ridge regression, handed to `solve.system` with what the kernel has to offer.

Conjugate gradients multiply in float32, by an operator that computes its entries or stores them, and take
every residual from the float64 operator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mercer.errors import MercerError
from mercer.gram import Distributed, GramOperator, stored_in_time, tiles
from mercer.gram.cluster import active
from mercer.gram.on_rows import Evaluated, Given
from mercer.machines.ridge.parts import Penalty, singular_gram, weighted
from mercer.solve.plan import SINGLE, SPARSE, Costs, Method, entry_cost, sparse_entry_cost
from mercer.solve.solution import Solution
from mercer.solve.system import SystemOptions, solve_by
from mercer.typing import Array

if TYPE_CHECKING:
    from mercer.machines.ridge.problem import RidgeProblem

# up to here K is stored also for Cholesky, which asks for each entry only twice
STORED_ROWS = 2000
# from here on products are worth a float32 operator of their own
SINGLE_ROWS = 1000
# of the largest entry: what float32 may change
SINGLE_ERROR = 1e-5
# rows on which that is looked at
SAMPLE = 64
# a relative residual that a matrix without penalty leaves only if it is singular to rounding
SINGULAR = 1e-6


def solve_dual(
    problem: RidgeProblem, asked: Method | None, B: Array, penalty: Penalty, scale: Array
) -> tuple[Method, Solution[Array], GramOperator]:
    """(W½ K W½ + α) u = B by the method asked for, or by the one that looks cheaper; its name, u and K."""
    options = problem.options
    if asked is None and options.keep_factor is not None and problem.fits:
        asked = "cholesky"
    if asked == "cholesky":
        problem.require_factor()
    alpha = penalty.alpha
    K = problem.operator(stored=False)
    op = weighted(K, scale)
    evaluated = isinstance(problem.on, Evaluated)
    columns = problem.columns
    if isinstance(columns, list):
        columns = len(columns)

    def single(store: bool) -> GramOperator | None:
        return single_precision(problem, op, scale, store)

    def stored() -> GramOperator:
        if evaluated and problem.met is None and problem.n > STORED_ROWS:
            return weighted(problem.operator(stored=True), scale)
        return op

    costs = Costs(
        entry_cost(columns), SINGLE, storable=active() is None and not isinstance(problem.on, Given)
    )
    if problem.met is not None:
        # a product reads the sparse features twice, and no entry of K
        entry = sparse_entry_cost(problem.met.matrix.nnz / problem.n)
        read = 2 * problem.met.matrix.nnz / SPARSE
        costs = Costs(entry, read / (entry * problem.n**2), storable=False)
    means = SystemOptions(
        method=asked,
        tol=options.tol,
        memory=options.memory,
        max_iter=options.max_iter,
        random_state=options.random_state,
        callback=options.callback,
        keep_factor=options.keep_factor,
        certified=True,
        costs=costs,
        single=single if problem.met is None else None,
        stored=stored,
    )
    name, found = solve_by(op, B, alpha, means)
    if name == "cholesky" and alpha == 0 and (found.certificate.residual or 0.0) > SINGULAR:
        raise singular_gram(op, found.certificate)
    return name, found, K


def single_precision(
    problem: RidgeProblem, op: GramOperator, scale: Array, store: bool
) -> GramOperator | None:
    """K in float32, or None where it does not pay or where rounding the rows would change its entries."""
    on = problem.on
    if not isinstance(on, Evaluated) or problem.n < SINGLE_ROWS or op.dtype != np.float64:
        return None
    n_jobs = problem.options.n_jobs
    try:
        lazy = tiles(on.kernel, on.rows, dtype=np.float32, n_jobs=n_jobs, memory=problem.options.memory)
    except MercerError:
        return None
    if lazy.low is None:
        return None
    sample = np.linspace(0, problem.n - 1, SAMPLE).astype(np.intp)
    each = scale[sample]
    apart = each[:, None] * lazy.block(sample, sample).astype(np.float64) * each - op.block(sample, sample)
    np.fill_diagonal(apart, 0.0)
    if not np.abs(apart).max() <= SINGLE_ERROR * float(np.abs(op.diag()).max()):
        return None
    K: GramOperator = lazy
    if store and not isinstance(lazy, Distributed):
        K = stored_in_time(on.kernel, on.rows, dtype=np.float32, n_jobs=n_jobs)
    return weighted(K if problem.noise is None else K.shifted(-problem.noise), scale)
