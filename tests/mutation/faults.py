"""Small deliberate bugs, by room: what each one breaks, where, and which tests should notice.

They are of the kind that a tired person writes: a sign, an off-by-one, a branch that forgets to roll back, a number that is
stated but not the right one. `run.py` puts them in one at a time; `test_faults.py` sees that each still fits the code.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """In `file`, `old` becomes `new`; the pytest arguments `tests` should then fail."""

    what: str
    file: str
    old: str
    new: str
    tests: str

    @property
    def in_core(self) -> bool:
        return self.file.startswith("core/")


GRAM = "src/mercer/gram/"
SOLVE = "src/mercer/solve/"
MACHINES = "src/mercer/machines/"
THEORY = "src/mercer/theory/"
KERNELS = "src/mercer/kernels/"

FAULTS: tuple[Fault, ...] = (
    # ── kernels ─────────────────────────────────────────────────────────────────────────────────────────────
    Fault(
        "the series of an exponential forgets one over n",
        KERNELS + "expansion.py",
        "step.get(made, Fraction(0)) + c * r / n",
        "step.get(made, Fraction(0)) + c * r",
        "tests/laws/test_proofs.py tests/test_validity.py",
    ),
    Fault(
        "a payer of exponentials keeps what it has paid",
        KERNELS + "expansion.py",
        "                purses[payer] -= paid\n",
        "",
        "tests/laws/test_proofs.py tests/test_validity.py",
    ),
    Fault(
        "the product of two intervals forgets two of its corners",
        KERNELS + "intervals.py",
        "            (self.low, other.high),\n            (self.high, other.low),\n",
        "",
        "tests/laws/test_witnesses.py",
    ),
    # ── gram ────────────────────────────────────────────────────────────────────────────────────────────────
    Fault(
        "a block of a shifted operator takes the shift of the wrong row",
        GRAM + "operators.py",
        "out[a, b] += np.broadcast_to(self.shift, n)[i[a]]",
        "out[a, b] += np.broadcast_to(self.shift, n)[a]",
        "tests/gram",
    ),
    Fault(
        "a shifted operator forgets its shift in the diagonal",
        GRAM + "operators.py",
        "return self.inner.diag() + self.shift",
        "return self.inner.diag()",
        "tests/gram",
    ),
    Fault(
        "the gradients of a sum of operators come in reverse order",
        GRAM + "operators.py",
        "return np.concatenate([p.contract(U, V, W=W) for p in self.parts])",
        "return np.concatenate([p.contract(U, V, W=W) for p in self.parts[::-1]])",
        "tests/gram",
    ),
    Fault(
        "a block of one sample puts the noise on the wrong places",
        GRAM + "operators.py",
        "out[a, b] = kernel._diag(x.rows(i[a])) if len(a) else 0.0",
        "out[a, b] = kernel._diag(x.rows(j[a])) if len(a) else 0.0",
        "tests/gram",
    ),
    Fault(
        "a weighted operator weighs only its rows",
        GRAM + "weighted.py",
        "        out *= self.scale[cols]\n",
        "",
        "tests/gram tests/machines/test_ridge.py",
    ),
    Fault(
        "the gradient of a weighted operator forgets the weights of one side",
        GRAM + "weighted.py",
        "return self.inner.contract(s * U, s * V)",
        "return self.inner.contract(s * U, V)",
        "tests/gram tests/machines/test_ridge.py",
    ),
    # ── solve ───────────────────────────────────────────────────────────────────────────────────────────────
    Fault(
        "conjugate gradients keep an answer that got worse",
        SOLVE + "cg.py",
        "            self.X[:, columns[lost]] = kept[:, lost]\n",
        "",
        "tests/solve/test_cg.py",
    ),
    Fault(
        "conjugate gradients say converged when one of several right-hand sides is not",
        SOLVE + "cg.py",
        'status = worst_status(self.status) if self.status else "converged"',
        'status = self.status[0] if self.status else "converged"',
        "tests/solve/test_cg.py",
    ),
    Fault(
        "conjugate gradients name another row as the worst",
        SOLVE + "cg.py",
        "worst_row=int(np.argmax(np.abs(self.R / self.scale).max(axis=1)))",
        "worst_row=int(np.argmin(np.abs(self.R / self.scale).max(axis=1)))",
        "tests/solve/test_cg.py",
    ),
    Fault(
        "conjugate gradients take flat directions for negative ones",
        SOLVE + "cg.py",
        "negative = curvature < -rounding",
        "negative = curvature <= 0",
        "tests/solve",
    ),
    Fault(
        "a refinement step that makes things worse is kept",
        SOLVE + "direct.py",
        "        if not relative(rest, B).max(initial=0.0) <= 0.5 * worst:\n            return X, R, step\n        X, R = better, rest",
        "        if not relative(rest, B).max(initial=0.0) <= 0.5 * worst:\n            return better, R, step\n        X, R = better, rest",
        "tests/solve/test_direct.py",
    ),
    Fault(
        "a direct solution above its tolerance is called converged",
        SOLVE + "direct.py",
        '        "converged" if worst <= tol else "stagnated",',
        '        "converged",',
        "tests/solve/test_direct.py",
    ),
    Fault(
        "a direct solution names another row as the worst",
        SOLVE + "direct.py",
        "worst_row=int(np.argmax(np.abs(R).max(axis=1))) if R.size else None",
        "worst_row=0 if R.size else None",
        "tests/solve/test_direct.py",
    ),
    Fault(
        "the matrix that was given up comes back with the factor's diagonal",
        SOLVE + "direct.py",
        "    A[np.diag_indices_from(A)] = diagonal\n",
        "    A[np.diag_indices_from(A)] = upper.diagonal()\n",
        "tests/solve/test_direct.py",
    ),
    Fault(
        "a log-determinant states no quadrature error",
        SOLVE + "estimate.py",
        "bracket = float((high - low).sum() if every else (high - low).mean()) / 2",
        "bracket = 0.0",
        "tests/solve/test_estimate.py",
    ),
    Fault(
        "the interval of an estimate is half as wide",
        SOLVE + "estimate.py",
        "return Estimate(value, error, bracket, (value - half, value + half), level, done)",
        "return Estimate(value, error, bracket, (value - half / 2, value + half / 2), level, done)",
        "tests/solve/test_estimate.py",
    ),
    Fault(
        "the path's degrees of freedom forget the intercept",
        SOLVE + "path.py",
        "            diagonal = diagonal - ones**2 / total\n",
        "",
        "tests/machines/test_ridge.py",
    ),
    Fault(
        "leave-one-out of the path divides by the weighted diagonal",
        SOLVE + "path.py",
        "divide_rows(U / s, diagonal),",
        "divide_rows(U, diagonal),",
        "tests/machines/test_ridge.py",
    ),
    Fault(
        "the intercept of ridge in features forgets the mean of the features",
        SOLVE + "primal.py",
        "return Solution((beta, centre - self.mean @ beta, R), done)",
        "return Solution((beta, centre, R), done)",
        "tests/machines/test_ridge.py",
    ),
    Fault(
        "the leverage forgets the intercept",
        SOLVE + "primal.py",
        "return out + self.weight / self.weight.sum() if self.intercept else out",
        "return out",
        "tests/machines/test_ridge.py",
    ),
    Fault(
        "singular features are not refused without a penalty",
        SOLVE + "primal.py",
        "if self.alpha == 0 and pocon(",
        "if False and pocon(",
        "tests/machines/test_ridge.py tests/solve",
    ),
    Fault(
        "the gap of kernel weights forgets the machine's own gap",
        SOLVE + "mixture.py",
        "    gap = best.gap + holder_slack(best.q, d, p)\n    certificate",
        "    gap = holder_slack(best.q, d, p)\n    certificate",
        "tests/machines/test_multiple.py",
    ),
    Fault(
        "multipliers where no variable is free come from one side only",
        SOLVE + "box.py",
        "    return sum(known) / len(known) if known else 0.0",
        "    return known[0] if known else 0.0",
        "tests/core/test_qp.py tests/machines/test_svc.py tests/solve",
    ),
    Fault(
        "a variable at its bound counts as free",
        SOLVE + "box.py",
        "        below, above = alpha < self.C, alpha > 0\n",
        "        below, above = alpha <= self.C, alpha > 0\n",
        "tests/core/test_qp.py tests/machines/test_svc.py tests/solve",
    ),
    Fault(
        "the gap forgets variables that may still grow",
        SOLVE + "box.py",
        "    gap = total(alpha * over + (C - alpha) * under)",
        "    gap = total(alpha * over)",
        "tests/core/test_qp.py tests/machines/test_svc.py tests/solve",
    ),
    Fault(
        "a polish that raises the objective is kept",
        SOLVE + "active.py",
        "        if len(moved) and _rises(problem, (best, best_f), (new, new_f)):\n            break\n",
        "",
        "tests/laws/test_margin_parts.py tests/core/test_qp.py tests/machines/test_svc.py",
    ),
    # ── machines ────────────────────────────────────────────────────────────────────────────────────────────
    Fault(
        "an empty cluster is given a row that is the last of its own",
        MACHINES + "lloyd.py",
        "if count[labels[i]] > 1:",
        "if count[labels[i]] > 0:",
        "tests/machines/test_kmeans.py",
    ),
    Fault(
        "an empty cluster is given the nearest row instead of the farthest",
        MACHINES + "lloyd.py",
        'candidates = iter(np.argsort(-far, kind="stable"))',
        'candidates = iter(np.argsort(far, kind="stable")[::1])',
        "tests/machines/test_kmeans.py",
    ),
    Fault(
        "the sums of a clustering forget where a row came from",
        MACHINES + "lloyd.py",
        "            step[np.arange(len(moved)), self.labels[moved]] -= self.w[moved]\n",
        "",
        "tests/machines/test_kmeans.py",
    ),
    Fault(
        "the lower bound of the inertia leaves the residuals of the eigenvalues out with the wrong sign",
        MACHINES + "spectral.py",
        "float((values + residuals).sum())",
        "float((values - residuals).sum())",
        "tests/machines/test_kmeans.py",
    ),
    Fault(
        "the lower bound of the inertia forgets the weights",
        MACHINES + "spectral.py",
        "bound = max(float(w @ diagonal) - ",
        "bound = max(float(diagonal.sum()) - ",
        "tests/machines/test_kmeans.py",
    ),
    Fault(
        "Platt's targets count the other class",
        MACHINES + "calibrate.py",
        "(plus + 1) / (plus + 2), 1 / (minus + 2)",
        "(minus + 1) / (minus + 2), 1 / (plus + 2)",
        "tests/machines/test_svc.py",
    ),
    Fault(
        "the conformal rank is one too small",
        MACHINES + "calibrate.py",
        "return float(scores[rank - 1])",
        "return float(scores[max(rank - 2, 0)])",
        "tests/machines/test_svc.py",
    ),
    Fault(
        "the conformal rank forgets the new row",
        MACHINES + "calibrate.py",
        "rank = math.ceil((n + 1) * float(coverage) - 1e-12)",
        "rank = math.ceil(n * float(coverage) - 1e-12)",
        "tests/machines/test_svc.py",
    ),
    Fault(
        "the deletion of a basis function is said to gain more than it does",
        MACHINES + "sparse_bayes.py",
        "0.5 * (-(mu[gone] ** 2) / variance[gone] - np.log(share))",
        "0.5 * (-(mu[gone] ** 2) * variance[gone] - np.log(share))",
        "tests/machines/test_relevance.py",
    ),
    Fault(
        "the gain of a re-estimate has the wrong sign in its logarithm",
        MACHINES + "sparse_bayes.py",
        "* step / grown - np.log(grown))",
        "* step / grown + np.log(grown))",
        "tests/machines/test_relevance.py",
    ),
    Fault(
        "a model that cannot be factored is not rolled back",
        MACHINES + "sparse_bayes.py",
        "        run.restore()\n        path.append(run.evidence)\n",
        "        path.append(run.evidence)\n",
        "tests/machines/test_relevance.py",
    ),
    Fault(
        "an open lengthscale on sparse rows forgets the entries that are not stored",
        MACHINES + "defaults.py",
        "spread = (filled + (count - float(w[row].sum())) * mean**2) / count",
        "spread = filled / count",
        "tests/gram/test_sparse_rows.py",
    ),
    Fault(
        "eigenpairs that did not converge are called converged",
        SOLVE + "eigen.py",
        '    if status == "converged" and worst > bound:\n        status = "stagnated"\n',
        "",
        "tests/solve/test_eigen.py",
    ),
    Fault(
        "the residuals of eigenpairs are taken without the eigenvalue",
        SOLVE + "eigen.py",
        "R = multiply(op, vectors) - vectors * found.values",
        "R = multiply(op, vectors) - vectors * found.values[0]",
        "tests/solve/test_eigen.py",
    ),
    Fault(
        "the log-determinant of a preconditioner forgets what it left out",
        SOLVE + "precondition.py",
        "return float(np.log(self.values + self.shift).sum() + rest)",
        "return float(np.log(self.values + self.shift).sum())",
        "tests/solve",
    ),
    Fault(
        "Cholesky takes over although the limit was the user's",
        MACHINES + "ridge_dual.py",
        'return tried.status == "limit" and ours and tried.iterations == allowed',
        'return tried.status == "limit"',
        "tests/machines/test_ridge.py tests/machines/test_budget.py",
    ),
    Fault(
        "iterations in float32 are not counted",
        MACHINES + "ridge_dual.py",
        "iterations=(first.iterations or 0) + (more.certificate.iterations or 0),",
        "iterations=more.certificate.iterations or 0,",
        "tests/machines/test_ridge.py tests/machines/test_budget.py",
    ),
    Fault(
        "leverage scores forget the share that a pilot row stands for",
        MACHINES + "landmarks.py",
        "+ np.diag(alpha / share)",
        "+ alpha * np.eye(len(J))",
        "tests/machines/test_nystroem.py",
    ),
    Fault(
        "a tolerance that was missed is called converged",
        MACHINES + "nystroem.py",
        '"converged" if met else "limit",',
        '"converged",',
        "tests/machines/test_nystroem.py",
    ),
    # ── theory ──────────────────────────────────────────────────────────────────────────────────────────────
    Fault(
        "a p-value forgets the sample itself",
        THEORY + "permutation.py",
        "return (1 + int((null >= statistic - close).sum())) / (1 + len(null))",
        "return int((null >= statistic - close).sum()) / len(null)",
        "tests/theory src/mercer/theory",
    ),
    Fault(
        "ties count for the rejection",
        THEORY + "permutation.py",
        "(null >= statistic - close)",
        "(null > statistic + close)",
        "tests/theory src/mercer/theory",
    ),
    Fault(
        "the unbiased discrepancy keeps the pairs of a row with itself in one sample",
        THEORY + "two_sample.py",
        "xx, zz = inside - own, zz - (self.diag.sum() - own)",
        "xx, zz = inside - own, zz",
        "tests/theory",
    ),
    Fault(
        "Cover's sum has a term too many",
        THEORY + "cover.py",
        "shorter = min(m + 1, n - 1 - m)",
        "shorter = min(m + 2, n - 1 - m)",
        "tests/theory/test_cover.py",
    ),
    # ── choose ──────────────────────────────────────────────────────────────────────────────────────────────
    Fault(
        "the gradient of leave-one-out forgets the number of rows",
        "src/mercer/choose/criteria.py",
        "-K.contract(W=W) / size, -noise",
        "-K.contract(W=W), -noise",
        "tests/choose",
    ),
    Fault(
        "the search keeps its last trial instead of its best",
        "src/mercer/choose/search.py",
        "return max(good, key=lambda t: t.score) if good else None",
        "return good[-1] if good else None",
        "tests/choose",
    ),
    Fault(
        "trials by evidence return the end of the search instead of its best point",
        "src/mercer/choose/search.py",
        "            if found.value > best[0]:\n",
        "            if True:\n",
        "tests/choose",
    ),
    # ── core ────────────────────────────────────────────────────────────────────────────────────────────────
    Fault(
        "squared distances of a tile's padding are not done again where they cancelled",
        "core/primitives.hpp",
        "for (int64_t j = j0; j < j0 + W; ++j) {\n                if (!bad[j - j0]) continue;",
        "for (int64_t j = j0; j < least(j0 + W, tile.cols); ++j) {\n                if (!bad[j - j0]) continue;",
        "tests/laws/test_gradients.py tests/core",
    ),
    Fault(
        "the slope of a fractional power is infinite at zero",
        "core/reverse.hpp",
        "if (singular) slope = ((x == T(0)) | (vabs(slope) == infinity)) ? V{} : slope;",
        "",
        "tests/laws/test_gradients.py tests/core",
    ),
    Fault(
        "the slope of the logistic function forgets its other half",
        "core/reverse.hpp",
        "return a * v * (T(1) - v); });",
        "return a * v; });",
        "tests/laws/test_gradients.py tests/core",
    ),
    Fault(
        "the slope of a square root at zero is not a number",
        "core/reverse.hpp",
        "return v == T(0) ? V{} : T(0.5) * a / v; });",
        "return T(0.5) * a / v; });",
        "tests/laws/test_gradients.py tests/core",
    ),
)
