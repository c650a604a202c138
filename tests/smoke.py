"""A first look at an installed mercer: `python tests/smoke.py` in an environment that has only the wheel.

`make wheel` and the wheels' builder run it. It leaves with an error if anything is missing.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> None:
    import numpy as np

    import mercer

    # the name, and the compiled core beside it
    from mercer import _core
    from mercer.applications.co2 import load_co2

    home = Path(mercer.__file__).parent
    assert Path(_core.__file__).parent == home, "the core is not that of the package"
    assert (home / "py.typed").exists() and (home / "_core.pyi").exists(), "the types are missing"

    # the data that comes with it
    assert len(load_co2().ppm) > 500

    # a proof, a fit, its certificate, a file
    assert mercer.parse("RBF(2.0)*Periodic(1.0)").validity().status == "proved"
    X = np.random.default_rng(0).normal(size=(80, 2))
    y = X[:, 0] * X[:, 1] > 0
    model = mercer.SVC("RBF()", C=10.0).fit(X, y)
    assert mercer.verify(model, X, y).ok
    with tempfile.TemporaryDirectory() as folder:
        saved = mercer.save(model, Path(folder) / "model.mercer")
        assert (mercer.load(saved.path).predict(X) == model.predict(X)).all()

    # the command
    command = [sys.executable, "-m", "mercer", "check", "Linear()"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "Proof." in said, said
    files = [path for path in home.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    size = sum(path.stat().st_size for path in files)
    print(f"mercer {mercer.__version__} works: {len(files)} files, {size} bytes in {home}")


if __name__ == "__main__":
    main()
