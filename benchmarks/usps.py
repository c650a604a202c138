"""The table of handwritten digits: polynomial degrees 1 to 7 on USPS,
one machine against the rest for each digit.

Beside the figures of the lecture notes (raw error in percent) stand ours: feature dimension, mean support
vectors of a two-class machine, error on the classic test set. The kernel is ((x·z)/256)^degree and C = 10, on
raw pixels.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import mercer
from benchmarks import data

NOTES = (8.9, 4.7, 4.0, 4.2, 4.3, 4.5, 4.5)


def run(options: argparse.Namespace) -> None:
    found = data.real(options.data, "usps")
    if found is None:
        print(f"usps left out: no such data in {options.data}")
        return
    keep = slice(0, 600) if options.quick else slice(None)
    X, y = found["X_train"][keep], found["y_train"][keep]
    print(
        f"{'degree':>6}{'dimension':>22}{'vectors':>9}{'error %':>9}{'notes %':>9}{'gap':>10}{'seconds':>9}"
    )
    for degree, theirs in enumerate(NOTES, 1):
        kernel = mercer.Polynomial(degree, offset=0.0, scale=1 / 256)
        start = time.perf_counter()
        model = mercer.SVC(kernel, C=10.0, multiclass="ovr").fit(X, y)
        seconds = time.perf_counter() - start
        error = 100 * (1 - model.score(found["X_test"], found["y_test"]))
        vectors = np.mean([(row != 0).sum() for row in model.dual_coef_])
        dimension = kernel.feature_dimension(256)
        gap = model.certificate_.gap
        print(
            f"{degree:>6}{dimension:>22,}{vectors:>9.0f}{error:>9.2f}{theirs:>9.1f}{gap:>10.1e}{seconds:>9.1f}",
            flush=True,
        )
