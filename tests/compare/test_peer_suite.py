"""scikit-learn's own tests of its support vector machines, run against the twins by the tool beside the checkout."""

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


@pytest.mark.skipif(
    not TOOL.exists(), reason="the tool that runs scikit-learn's tests is not beside the checkout"
)
@pytest.mark.timeout(900)
def test_every_portable_test_of_the_peer_is_kept(tmp_path):
    report = tmp_path / "report.json"
    names = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
    command = [sys.executable, str(TOOL), *(f"sklearn.svm.{n}=mercer.sklearn.{n}" for n in names)]
    subprocess.run([*command, "--json", str(report)], cwd=tmp_path, check=False, capture_output=True)
    found = json.loads(report.read_text())
    assert found["delegated"] == []
    assert found["lost_portable"] == []
    assert {name.split("::")[1] for name in found["lost_specific"]} <= set(LOST)
    assert found["in_scope"] > 200
