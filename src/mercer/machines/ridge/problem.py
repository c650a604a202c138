"""The problem of kernel ridge regression on given rows, and its solvers.

        min  Σ_i w_i (y_i - f(x_i) - b)² + α‖f‖²,      f = Σ_j c_j k(x_j, ·)
        (K + α W⁻¹) c = y - b,   and Σ c = 0 where there is an intercept b

White noise in the kernel is a penalty: K + σ²I + αI says that α + σ² is paid. So the noise is taken out of K
and put where α is; then a row of weight 2 is a row twice with noise, too, and every solver sees a kernel
without it.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np

from mercer import lapack
from mercer.errors import MemoryBudgetError, MercerError, ParameterError
from mercer.gram import GramOperator, Precomputed, Tiles, tiles
from mercer.gram.blocks import row_blocks
from mercer.gram.far_features import FarFeatures, LandmarkMap, far_from_here
from mercer.gram.met_features import latent_map_on, map_on
from mercer.gram.on_rows import Approximated, Evaluated, KernelOnRows
from mercer.kernels.terms import noise_of
from mercer.kernels.things.sparse_map import SparseMap
from mercer.machines.ridge.dual import STORED_ROWS, solve_dual
from mercer.machines.ridge.far import FarRidge
from mercer.machines.ridge.parts import (
    FeatureBlocks,
    Features,
    Options,
    Penalty,
    RidgeFit,
    inverse_diagonal,
    least_norm,
    objective,
    weighted,
)
from mercer.machines.shared.base import generator
from mercer.memory import memory_limit, say_bytes
from mercer.solve.direct import factor
from mercer.solve.operator import relative
from mercer.solve.path import divide_rows
from mercer.solve.plan import Method
from mercer.solve.precondition import rank_cap
from mercer.solve.primal import FeatureRidge
from mercer.solve.solution import Certificate, Solution, Status
from mercer.typing import Array, Integers

if TYPE_CHECKING:
    from mercer.kernels.maps.explicit import FeatureMap

# Of D sparse features the normal equations cost n·D² operations, and conjugate gradients, which multiply by
# the sparse rows, up to about so many for each entry that is stored.
MANY_PRODUCTS = 20_000

SOLVERS = ("auto", "primal", "cholesky", "cg", "nystrom")


@dataclass(frozen=True, eq=False)
class RidgeProblem:
    """Rows of positive weight, their kernel and Gram operator, and whether there is an intercept."""

    on: KernelOnRows
    weight: Array
    intercept: bool
    options: Options
    separable: bool = True
    """Whether the noise of the kernel may be told apart."""
    known_landmarks: Integers | None = None
    """The landmarks that a fit has drawn, as places among these rows; None to draw them."""

    @property
    def n(self) -> int:
        return len(self.weight)

    @property
    def approximated(self) -> Approximated | None:
        """The features that stand for the kernel without its noise, if there are any."""
        return self.on if isinstance(self.on, Approximated) else None

    # ── the operator ────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def noise(self) -> Array | None:
        """What k(x_i, x_i) has for the same observation beyond two equal ones; None without `White`."""
        if isinstance(self.on, Approximated):
            level = self.on.approximation.noise_
            return np.full(self.n, level) if level else None
        if not isinstance(self.on, Evaluated) or not self.separable:
            return None
        return noise_of(self.on.kernel, self.on.rows)

    def operator(self, *, stored: bool) -> GramOperator:
        """K without noise, stored if it is asked for and fits."""
        if self.approximated is not None:
            return self.approximated.without_noise()
        if not isinstance(self.on, Evaluated):
            return self.on.gram()
        K: GramOperator | None = None
        if not stored and self.n > STORED_ROWS:
            lazy = tiles(self.on.kernel, self.on.rows, n_jobs=self.options.n_jobs, memory=self.options.memory)
            K = lazy if lazy.low is not None or lazy.met is not None else None
        if K is None:
            K = self.on.gram(self.options.memory)
        return K if self.noise is None else K.shifted(-self.noise)

    def penalty(self, alpha: float) -> Penalty:
        if self.noise is None:
            return Penalty(alpha, self.weight)
        total = alpha + self.noise
        level = float(total[0]) if np.ptp(total) == 0 else float(total.mean())
        return Penalty(level, self.weight * (level / total))

    # ── the choice ──────────────────────────────────────────────────────────────────────────────────────────

    @property
    def fits(self) -> bool:
        return 8 * self.n * self.n <= memory_limit(self.options.memory)

    def dimension(self) -> float:
        """How many features the kernel has on these columns; infinity where none are known."""
        if self.approximated is not None:
            return float(self.approximated.approximation.dimension)
        columns = self.columns
        if not isinstance(self.on, Evaluated):
            return np.inf
        if self.met is not None:
            return float(self.met.dimension)
        if columns is None:
            return np.inf
        try:
            return float(self.on.kernel.feature_dimension(columns))
        except MercerError:
            return np.inf

    @cached_property
    def met(self) -> SparseMap | None:
        """The sparse features that things have, where the kernel without its noise is their product."""
        if not isinstance(self.on, Evaluated):
            return None
        if self.separable:
            return latent_map_on(self.on.kernel, self.on.rows)
        return map_on(self.on.kernel, self.on.rows)

    @property
    def columns(self) -> list[str] | int | None:
        """The names of the columns, or their number; None where the rows have none."""
        return self.on.rows.columns if isinstance(self.on, Evaluated) else None

    def choose(self) -> tuple[str, str]:
        """The solver and why: primal where φ is smaller than the data, else "dual", by the cheaper method."""
        asked = self.options.solver
        if asked != "auto":
            return asked, ""
        count = self.dimension()
        if self.met is not None and count**2 * self.n > MANY_PRODUCTS * self.met.matrix.nnz:
            return "dual", ""
        if count < self.n and 4 * 8 * count * count <= memory_limit(self.options.memory):
            whose = "The kernel has" if self.approximated is None else "There are"
            return "primal", f"{whose} {int(count)} features, fewer than the {self.n} rows."
        return "dual", ""

    # ── solving ─────────────────────────────────────────────────────────────────────────────────────────────

    def solve(self, Y: Array, alpha: float) -> tuple[str, RidgeFit]:
        """The name of the solver and what it found, for targets that share one α."""
        start = time.perf_counter()
        name, why = self.choose()
        penalty = self.penalty(alpha)
        if name == "primal":
            fit = self._in_features(self.explicit(), Y, penalty, start)
        elif name == "nystrom":
            fit = self._by_landmarks(Y, penalty, start)
        else:
            scale = np.sqrt(penalty.weight)
            B = scale[:, None] * (np.column_stack([Y, np.ones(self.n)]) if self.intercept else Y)
            asked = None if name == "dual" else cast(Method, name)
            name, found, K = solve_dual(self, asked, B, penalty, scale)
            fit = self._finish(K, found, B, Y, penalty, start)
        notes = [why] if why else []
        if self.noise is not None:
            notes.append(f"White noise in the kernel counts as penalty: alpha acts as {penalty.alpha:.6g}.")
        if notes:
            done = dataclasses.replace(fit.certificate, notes=(*notes, *fit.certificate.notes))
            fit = fit._replace(certificate=done)
        return name, fit

    def require_factor(self) -> None:
        if not self.fits:
            raise MemoryBudgetError(
                f"Cholesky of {self.n} rows needs {say_bytes(8 * self.n * self.n)}; the limit is "
                f"{say_bytes(memory_limit(self.options.memory))}. Raise memory=, or use solver='cg' or "
                "'nystrom'."
            )

    def _finish(
        self,
        K: GramOperator,
        found: Solution[Array],
        B: Array,
        Y: Array,
        penalty: Penalty,
        start: float,
    ) -> RidgeFit:
        """c and b from the solution, and the certificate recomputed from them."""
        scale = np.sqrt(penalty.weight)
        t = Y.shape[1]
        U = found.value
        b = np.zeros(t)
        if self.intercept:
            ones = U[:, t]
            b = (scale @ U[:, :t]) / (scale @ ones)
            U = U[:, :t] - ones[:, None] * b
        c = scale[:, None] * U
        products = np.asarray(K @ c)
        done = self._certify(found.certificate, products, c, b, Y, penalty, start)
        return RidgeFit(c, b, done)

    def _certify(
        self,
        given: Certificate,
        products: Array,
        c: Array,
        b: Array,
        Y: Array,
        penalty: Penalty,
        start: float,
    ) -> Certificate:
        """Residual of the whole system, primal and dual value and their gap, from c, b and K c alone."""
        scale = np.sqrt(penalty.weight)[:, None]
        spread = penalty.alpha / penalty.weight[:, None]
        rest = scale * (Y - b - products - spread * c)
        each = relative(rest, scale * Y)
        worst = float(each.max(initial=0.0))
        status: Status = given.status
        if status == Status.CONVERGED and worst > 10 * self.options.tol:
            status = Status.STAGNATED
        energy = float(np.einsum("ij,ij->", c, products))
        primal, dual = objective(Y - b, products, c, energy, penalty)
        return dataclasses.replace(
            given,
            status=status,
            residual=worst,
            residuals=tuple(each.tolist()),
            worst_row=int(np.argmax(np.abs(rest).max(axis=1))),
            primal=primal,
            dual=dual,
            gap=None if primal is None or dual is None else max(primal - dual, 0.0),
            seconds=time.perf_counter() - start,
        )

    # ── explicit features ───────────────────────────────────────────────────────────────────────────────────

    def explicit(self) -> Features:
        """The features of the kernel itself, or those that stand for it."""
        if self.approximated is not None:
            far = self.approximated.far
            if far is not None:
                return Features(far.blocks, far.dimension, far)
            whole = self.approximated.phi
            return Features(lambda: iter([(slice(0, self.n), whole)]), whole.shape[1])
        phi = self.map()
        rows = self.on.rows if isinstance(self.on, Evaluated) else None

        def make() -> Iterator[tuple[slice, Array]]:
            for part in row_blocks(self.n, phi.dimension):
                if isinstance(phi, SparseMap):
                    yield part, phi.matrix[part].toarray()
                elif rows is not None:
                    yield part, phi(rows.rows(np.arange(self.n)[part]))

        return Features(self._kept(make, phi.dimension), phi.dimension)

    def map(self) -> FeatureMap | SparseMap:
        """The explicit map of the kernel, by columns or by what things have."""
        if self.met is not None:
            return self.met
        columns = self.columns
        if not isinstance(self.on, Evaluated) or columns is None:
            raise ParameterError(
                "solver='primal' needs a kernel with a finite feature map, on columns of numbers or by what "
                "it counts in things; not 'precomputed'."
            )
        return self.on.kernel.features(columns, memory=self.options.memory)

    @cached_property
    def chosen_landmarks(self) -> Integers:
        """The rows that a Nyström approximation is built on, drawn once."""
        if self.known_landmarks is not None:
            return self.known_landmarks
        asked = self.options.n_landmarks
        m = rank_cap(self.n) if asked is None else min(int(asked), self.n)
        return np.sort(generator(self.options.random_state).permutation(self.n)[:m])

    def landmarks(self) -> tuple[Array, Features]:
        """The map from k(x, landmarks) to features, and the features of all rows."""
        chosen = self.chosen_landmarks
        m = len(chosen)
        if isinstance(self.on, Evaluated):
            rows = self.on.rows
            K: GramOperator = Tiles(self.on.kernel, rows, rows.rows(chosen), n_jobs=self.options.n_jobs)
        else:
            K = Precomputed(self.on.gram().dense()[:, chosen])
        core = K.block(chosen, slice(None))
        values, vectors = lapack.eigh(0.5 * (core + core.T))
        keep = values > m * np.finfo(float).eps * float(np.abs(values).max())
        change = vectors[:, keep] / np.sqrt(values[keep])
        cluster = far_from_here(self.n)
        if cluster is not None and isinstance(self.on, Evaluated):
            map = LandmarkMap(self.on.kernel, self.on.rows.rows(chosen), change)
            far = FarFeatures(map, self.on.rows, cluster)
            return change, Features(far.blocks, far.dimension, far)

        def make() -> Iterator[tuple[slice, Array]]:
            for part in row_blocks(self.n, m):
                yield part, K.block(part, slice(None)) @ change

        return change, Features(self._kept(make, change.shape[1]), change.shape[1])

    def _kept(self, make: FeatureBlocks, dimension: int) -> FeatureBlocks:
        """The features stored as one block where they fit, else made again each time."""
        if 4 * 8 * self.n * dimension > memory_limit(self.options.memory):
            return make
        whole = np.vstack([P for _, P in make()])
        return lambda: iter([(slice(0, self.n), whole)])

    def _in_features(self, features: Features, Y: Array, penalty: Penalty, start: float) -> RidgeFit:
        """Primal: β by the normal equations, c = W (y - f - b) / α from the errors."""
        problem = self.feature_ridge(features, penalty)
        found = problem.solve(Y, self.options.tol)
        beta, b, errors = found.value
        notes = list(found.certificate.notes)
        if penalty.alpha > 0:
            c = penalty.weight[:, None] * errors / penalty.alpha
        else:
            notes.append(
                f"alpha = 0: least squares in the {features.dimension} features. K is singular, so of all "
                "coefficients that give this function dual_coef_ are those of least norm."
            )
            c = least_norm(problem, beta)
        done = dataclasses.replace(
            found.certificate,
            method=f"primal, {found.certificate.method}",
            notes=tuple(notes),
            seconds=time.perf_counter() - start,
        )
        return RidgeFit(c, b, done, beta)

    def feature_ridge(self, features: Features, penalty: Penalty) -> FeatureRidge:
        given = (features.blocks, features.dimension, penalty.weight, penalty.alpha, self.intercept)
        if features.far is not None:
            return FarRidge(*given, far=features.far)
        return FeatureRidge(*given)

    def _by_landmarks(self, Y: Array, penalty: Penalty, start: float) -> RidgeFit:
        """Nyström: the best function over the landmarks, and how far it is from the best of all."""
        if penalty.alpha <= 0:
            raise ParameterError(
                "solver='nystrom' needs alpha > 0: its error is measured on the penalised problem."
            )
        change, features = self.landmarks()
        problem = self.feature_ridge(features, penalty)
        found = problem.solve(Y, self.options.tol)
        beta, b, errors = found.value
        c = penalty.weight[:, None] * errors / penalty.alpha
        K = self.operator(stored=False)
        primal = float(penalty.weight @ (errors**2).sum(axis=1)) + penalty.alpha * float((beta**2).sum())
        done = self._certify(found.certificate, np.asarray(K @ c), c, b, Y, penalty, start)
        held = problem.held()
        total = float(K.diag().sum())
        assert done.dual is not None and done.residual is not None
        note = (
            f"Nyström with {len(self.chosen_landmarks)} landmarks (rank {features.dimension}): "
            f"{max(1 - held / total, 0.0):.2e} of the trace of K is left out, the residual of the full "
            f"system is {done.residual:.2e}, and the objective is at most "
            f"{max(primal - done.dual, 0.0) / max(primal, 1e-300):.2e} of itself above the best."
        )
        done = dataclasses.replace(
            done,
            status=Status.CONVERGED if found.certificate.converged else Status.STAGNATED,
            method=f"Nyström, {found.certificate.method}",
            primal=primal,
            gap=max(primal - done.dual, 0.0),
            notes=(*found.certificate.notes, note),
        )
        return RidgeFit(c, b, done, change @ beta)

    # ── what the fitted values owe to their own targets ─────────────────────────────────────────────────────

    def leave_one_out(self, solver: str, fit: RidgeFit, Y: Array, alpha: float) -> tuple[Array, float]:
        """Errors y_i - f₋ᵢ(x_i) of the models without row i, and the effective degrees of freedom tr H."""
        penalty = self.penalty(alpha)
        if solver in ("primal", "nystrom"):
            features = self.explicit() if solver == "primal" else self.landmarks()[1]
            problem = self.feature_ridge(features, penalty)
            h = problem.leverages()
            errors = problem.solve(Y, self.options.tol).value[2]
            return divide_rows(errors, 1.0 - h), float(h.sum())
        self.require_factor()
        scale = np.sqrt(penalty.weight)
        F = factor(weighted(self.operator(stored=False), scale), penalty.alpha)
        inverse = penalty.weight * inverse_diagonal(F, scale if self.intercept else None)
        return divide_rows(fit.c, inverse), self.n - float((penalty.alpha / penalty.weight) @ inverse)
