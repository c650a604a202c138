"""Faults in what the theory measures."""

from __future__ import annotations

from mutation.fault import Fault

THEORY = "src/mercer/theory/"

FAULTS: tuple[Fault, ...] = (
    Fault(
        "a p-value forgets the sample itself",
        THEORY + "permutation.py",
        "return (1 + int((null >= statistic - close).sum())) / (1 + len(null))",
        "return int((null >= statistic - close).sum()) / len(null)",
        "tests/theory/test_two_sample.py tests/theory/test_independence.py",
    ),
    Fault(
        "ties count for the rejection",
        THEORY + "permutation.py",
        "(null >= statistic - close)",
        "(null > statistic + close)",
        "tests/theory/test_two_sample.py tests/theory/test_independence.py",
    ),
    Fault(
        "the unbiased discrepancy keeps the pairs of a row with itself in one sample",
        THEORY + "two_sample.py",
        "zz = zz - (self.diag.sum() - diagonal)",
        "zz = zz * 1.0",
        "tests/theory/test_two_sample.py",
    ),
    Fault(
        "Cover's sum has a term too many",
        THEORY + "cover.py",
        "shorter = min(m + 1, n - 1 - m)",
        "shorter = min(m + 2, n - 1 - m)",
        "tests/theory/test_cover.py",
    ),
    Fault(
        "the quality of a fit is the best of its problems",
        THEORY + "verify.py",
        "        Status.worst(c.status for c in found),",
        "        found[0].status,",
        'tests/theory/test_verify.py -k "quality or limit"',
    ),
    Fault(
        "the distance of a row is not divided by the norm",
        THEORY + "margins.py",
        "    distances = signs * functions.values(A) / length",
        "    distances = signs * functions.values(A)",
        "tests/theory/test_functions.py tests/theory/test_margins.py",
    ),
    Fault(
        "rows of other classes count for the smallest distance",
        THEORY + "margins.py",
        "np.where(np.isnan(distances), np.inf, distances)",
        "np.where(np.isnan(distances), 0.0, distances)",
        "tests/theory/test_functions.py tests/theory/test_margins.py tests/theory/test_report.py",
    ),
    Fault(
        "the margin bound forgets the square",
        THEORY + "bounds.py",
        "    return (radius / delta) ** 2 / n",
        "    return (radius / delta) / n",
        "tests/theory/test_margins.py tests/theory/test_report.py",
    ),
    Fault(
        "the range of a multiplier ends at the wrong side",
        THEORY + "complementarity.py",
        "    return max(ends[0], 0.0), ends[1]",
        "    return max(ends[1], 0.0), ends[0]",
        "tests/theory/test_duality.py",
    ),
    Fault(
        "a support vector that could be spared is called essential",
        THEORY + "complementarity.py",
        "    always = problem.rows[lowest > 1e-9 * largest]",
        "    always = problem.rows[highest > 1e-9 * largest]",
        "tests/theory/test_duality.py",
    ),
    Fault(
        "the face of solutions forgets the sums that are kept",
        THEORY + "complementarity.py",
        "    if equality == 0:\n        return []",
        "    if equality >= 0:\n        return []",
        "tests/theory/test_duality.py",
    ),
    Fault(
        "slacks and room are exchanged",
        "src/mercer/solve/multipliers.py",
        "        np.maximum(-g, 0.0),\n        problem.C,\n        np.maximum(g, 0.0),",
        "        np.maximum(g, 0.0),\n        problem.C,\n        np.maximum(-g, 0.0),",
        "tests/theory/test_duality.py",
    ),
    Fault(
        "a projection keeps directions that are rounding",
        THEORY + "span.py",
        "    threshold = max(P.shape) * np.finfo(float).eps * float(values.max(initial=0.0))",
        "    threshold = 0.0",
        "tests/theory/test_functions.py",
    ),
    Fault(
        "a fitted w outside the span is in order",
        THEORY + "span.py",
        "        return fits and self.in_span and self.training_change <= NEGLIGIBLE",
        "        return fits and self.training_change <= NEGLIGIBLE",
        "tests/theory/test_functions.py",
    ),
    Fault(
        "the error of an integral is its last step alone",
        THEORY + "integral.py",
        "    return 2 * max(last, before / 4)",
        "    return 0.01 * last",
        "tests/theory/test_integral.py",
    ),
    Fault(
        "an integral refutes within its rounding",
        THEORY + "integral.py",
        "        return self.value < -self.rounding",
        "        return self.value < self.rounding",
        "tests/theory/test_integral.py",
    ),
    Fault(
        "a gram report calls what is asymmetric a kernel",
        THEORY + "gram_report.py",
        "    if gap > tol * float(np.abs(seen.S).max()):\n        verdict = ASYMMETRIC\n",
        "",
        "tests/theory/test_gram_report.py",
    ),
    Fault(
        "the sign of a minor forgets the swaps of its rows",
        THEORY + "gram_report.py",
        "    return -1 if (swaps + int((pivots < 0).sum())) % 2 else 1",
        "    return -1 if int((pivots < 0).sum()) % 2 else 1",
        "tests/theory/test_gram_report.py",
    ),
    Fault(
        "a semi-definite matrix is called definite",
        THEORY + "graded.py",
        "            return DEFINITE if self.values[0] > self.threshold else SEMIDEFINITE",
        "            return DEFINITE if self.values[0] > -self.threshold else SEMIDEFINITE",
        "tests/theory/test_gram_report.py",
    ),
    Fault(
        "any small gap is strong duality",
        THEORY + "saddle.py",
        "        return bool(abs(self.gap) <= CLOSE * self._scale)",
        "        return bool(self.gap <= CLOSE * self._scale * 1e5)",
        "tests/theory/test_saddle.py",
    ),
    Fault(
        "Slater's condition is that of the closed set",
        THEORY + "saddle.py",
        "        return self.slater > CLOSE",
        "        return self.slater > -CLOSE",
        "tests/theory/test_saddle.py",
    ),
    Fault(
        "alignment is not centred",
        THEORY + "alignment.py",
        "    Y = Y - Y.mean(axis=0)\n    Kc",
        "    Kc",
        "tests/theory/test_alignment.py tests/choose/test_choose.py -k align",
    ),
)
