"""Claims that `verify` forgets to compare."""

from __future__ import annotations

from mutation.fault import Fault

MACHINES = "src/mercer/machines/"

FAULTS: tuple[Fault, ...] = (
    Fault(
        "the weights of features are not compared",
        MACHINES + "shared/examined.py",
        '    exam.same("feature_coef_", model.feature_coef_, phi.T @ coef)\n',
        "    assert phi.shape[1] == len(phi.T @ coef)\n",
        "tests/theory/test_verify.py -k landmarks",
    ),
    Fault(
        "kept rows are not compared",
        MACHINES + "shared/examined.py",
        "    exam.same(what, kept, rows, within=0.0)\n",
        "    assert kept.shape == rows.shape\n",
        'tests/theory/test_verify.py -k "SVC or Perceptron"',
    ),
    Fault(
        "a kernel that was changed is not noticed",
        MACHINES + "shared/examined.py",
        '    exam.same("kernel_", model.kernel_, PRECOMPUTED if found is None else found)',
        "    assert found is None or model.kernel_ is not None",
        'tests/theory/test_verify.py -k "hyperparameter or SVC or another_kernel"',
    ),
    Fault(
        "sums of coefficients are not compared",
        MACHINES + "margin/examine.py",
        "        unkept <= EXACT * max(float(alpha.sum()), 1e-300),",
        "        True,",
        'tests/theory/test_verify.py -k "SVC or SVR or OneClass"',
    ),
    Fault(
        "norms are not compared",
        MACHINES + "margin/examine.py",
        "            (model.norms_[k] * scale) ** 2,",
        "            max(energy, 0.0),",
        'tests/theory/test_verify.py -k "SVC or SVR"',
    ),
    Fault(
        "the calibration is not computed again",
        MACHINES + "margin/examine.py",
        '    exam.same("calibration_.slopes", model.calibration_.slopes, found.slopes, within=1e-3)',
        "    assert found.slopes",
        "tests/theory/test_verify.py -k SVC",
    ),
    Fault(
        "the row of a cluster is not compared with its centres",
        MACHINES + "structure/examine.py",
        '        not apart.any(), f"row',
        '        True, f"row',
        "tests/theory/test_verify.py -k KMeans",
    ),
    Fault(
        "eigenvectors may point the other way",
        MACHINES + "structure/examine.py",
        '        exam.true(np.all(U[first, np.arange(U.shape[1])] > 0), "an eigenvector '
        'points the other way")',
        "        assert first is not None",
        'tests/theory/test_verify.py -k "PCA or turned_around"',
    ),
    Fault(
        "the evidence of relevance vectors is not computed again",
        MACHINES + "relevance/examine.py",
        '    exam.same("log_evidence_", vars(model)["log_evidence_"], evidence, within=1e-6, scale=size)',
        "    assert size == size",
        'tests/theory/test_verify.py -k "RelevanceVectorRegressor or history"',
    ),
    Fault(
        "the residual trace of landmarks is not compared",
        MACHINES + "landmarks/examine.py",
        '    exam.same("residual_trace_", model.residual_trace_, left, within=SOLVED, scale=abs(total))\n',
        "",
        'tests/theory/test_verify.py -k "Nystroem or landmarks"',
    ),
    Fault(
        "shares of kernels are not compared",
        MACHINES + "kernel_sets/examine.py",
        '    exam.same("trace_shares_", model.trace_shares_, as_shares(d * grams.traces(w)))',
        "    assert len(d) == len(grams)",
        "tests/theory/test_verify.py -k Multiple",
    ),
    Fault(
        "the certificate of a ridge is not computed again",
        MACHINES + "ridge/examine.py",
        "exam.certificate(claimed, found.certificate, reached=reached, scale=scale, unit=unit)",
        "exam.certificate(claimed, claimed, reached=reached, scale=scale, unit=unit)",
        "tests/theory/test_verify.py -k KernelRidge",
    ),
    Fault(
        "the intercept of a ridge in features is believed",
        MACHINES + "ridge/verify_features.py",
        '        exam.same("intercept_", intercepts[j], b.value, within=1.0, scale=b.rounding)\n',
        "",
        "tests/theory/test_verify_awkward.py",
    ),
    Fault(
        "the rounding of errors in features is forgotten",
        MACHINES + "ridge/verify_features.py",
        "errors = Within(Y - centre - inner @ beta, unit * terms)",
        "errors = Within(Y - centre - inner @ beta, 0 * terms)",
        "tests/theory/test_verify_awkward.py",
    ),
    Fault(
        "a fit whose factor is made later is accused",
        MACHINES + "gaussian_process/examine.py",
        "isinstance(inverse, Exact) and isinstance(inverse.factor, Later)",
        "False",
        "tests/machines/test_seconds.py",
    ),
    Fault(
        "a mistake of a perceptron is not looked at",
        MACHINES + "margin/examine_perceptron.py",
        "margin <= SOLVED * (1 + np.abs(twin._f).max())",
        "True",
        'tests/theory/test_verify.py -k "Perceptron or perceptron"',
    ),
    Fault(
        "numbers that differ in sign are the same",
        "src/mercer/theory/claims.py",
        "                off = np.abs(a - b)\n",
        "                off = np.abs(np.abs(a) - np.abs(b))\n",
        "tests/theory/test_verify.py",
    ),
    Fault(
        "a claim with fewer digits is true",
        "src/mercer/theory/claims.py",
        "(off <= within * size)",
        "(off <= 1e6 * within * size)",
        'tests/theory/test_verify.py -k "SVC or KernelRidge"',
    ),
    Fault(
        "a claim that is not a number is true",
        "src/mercer/theory/claims.py",
        "(np.isnan(a) & np.isnan(b))",
        "np.isnan(a)",
        "tests/theory/test_claims.py",
    ),
)
