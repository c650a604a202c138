"""Anytime: limits and Ctrl-C keep the best model so far, and say so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, SVR, verify


def overlapping(n=6000, d=5):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + 2 * rng.normal(size=n) > 0).astype(int)


def test_seconds_end_the_fit_with_a_model_and_a_word():
    X, y = overlapping()
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        model = SVC("RBF(1.0)", C=1e4, tol=1e-12, max_seconds=0.2).fit(X, y)
    assert model.certificate_.status == "limit"
    assert model.certificate_.gap > 0
    assert model.score(X, y) > 0.5
    assert verify(model, X, y)


@pytest.mark.parametrize("machine", [SVC, SVR])
def test_iterations_end_the_fit_and_a_warm_start_goes_on(machine):
    X, y = overlapping(800)
    with pytest.warns(ConvergenceWarning, match="warm_start"):
        model = machine("RBF(1.0)", C=10.0, max_iter=50, warm_start=True).fit(X, y)
    first = model.certificate_
    assert first.status == "limit"
    second = model.set_params(max_iter=None).fit(X, y).certificate_
    assert second.status == "converged"
    assert second.dual >= first.dual


@pytest.mark.skipif(os.name == "nt", reason="signals of this kind are POSIX")
def test_ctrl_c_keeps_the_best_model():
    script = textwrap.dedent("""
        import signal
        import numpy as np
        import mercer
        from mercer import SVC
        rng = np.random.default_rng(0)
        X = rng.normal(size=(15_000, 8))
        y = (X[:, 0] + 3 * rng.normal(size=15_000) > 0).astype(int)
        print("fitting", flush=True)
        try:
            model = SVC("RBF(1.0)", C=1e5, tol=1e-13, n_jobs=1).fit(X, y)
        except mercer.Interrupted as stop:
            model = stop.model
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # one that comes late has nothing left to interrupt
        print(model.certificate_.status, len(model.support_) > 0, model.predict(X[:3]).shape, flush=True)
    """)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "fitting"
        time.sleep(2.0)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert out.split()[0] in ("interrupted", "converged", "stagnated")
    assert "True (3,)" in out
