"""Faults in the machines."""

from __future__ import annotations

from mutation.fault import Fault

MACHINES = "src/mercer/machines/"

FAULTS: tuple[Fault, ...] = (
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
        "tests/laws/test_margin_parts.py tests/machines/test_svc.py",
    ),
    Fault(
        "the conformal rank is one too small",
        MACHINES + "calibrate.py",
        "return float(scores[rank - 1])",
        "return float(scores[max(rank - 2, 0)])",
        "tests/laws/test_margin_parts.py tests/machines/test_svc.py",
    ),
    Fault(
        "the conformal rank forgets the new row",
        MACHINES + "calibrate.py",
        "rank = math.ceil((n + 1) * float(coverage) - 1e-12)",
        "rank = math.ceil(n * float(coverage) - 1e-12)",
        "tests/laws/test_margin_parts.py tests/machines/test_svc.py",
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
)
