"""scikit-learn's own tests of its kernel machines, run against the twins by the tool beside the checkout."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[3] / "shared" / "tools" / "peer_suite.py"

LOST = {  # and why: LIBSVM's own internals
    "test_svc_nusvc_probA_probB_deprecated[SVC]": "Platt's attributes, which scikit-learn itself removes in 1.11",
    "test_svc_nusvc_probA_probB_deprecated[NuSVC]": "the same",
    "test_libsvm_convergence_warnings[42]": "counts LIBSVM's iterations; working sets take fewer",
    "test_tweak_params": "writes the private _dual_coef_",
}

# module of scikit-learn -> its classes, and how many tests must at least be in scope
GROUPS = {
    "svm": (("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"), 200),
    "kernel_ridge": (("KernelRidge",), 10),
}


@pytest.mark.skipif(
    not TOOL.exists(), reason="the tool that runs scikit-learn's tests is not beside the checkout"
)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("group", GROUPS)
def test_every_portable_test_of_the_peer_is_kept(tmp_path, group):
    names, least = GROUPS[group]
    report = tmp_path / "report.json"
    command = [sys.executable, str(TOOL), *(f"sklearn.{group}.{n}=mercer.sklearn.{n}" for n in names)]
    subprocess.run([*command, "--json", str(report)], cwd=tmp_path, check=False, capture_output=True)
    found = json.loads(report.read_text())
    assert found["delegated"] == []
    assert found["lost_portable"] == []
    assert {name.split("::")[1] for name in found["lost_specific"]} <= set(LOST)
    assert found["in_scope"] >= least
