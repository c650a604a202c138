"""The table of handwritten digits: polynomial degrees 1 to 7 on USPS,
one machine against the rest for each digit.

Beside the figures of the lecture notes (support vectors, raw error in percent) stand ours for two kernels,
the homogeneous ((x·z)/256)^degree and (1 + (x·z)/256)^degree with its offset: feature dimension, mean support
vectors of a two-class machine, error on the classic test set. C = 10, on raw pixels.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import mercer
from benchmarks import data

NOTES_ERROR = (8.9, 4.7, 4.0, 4.2, 4.3, 4.5, 4.5)
NOTES_VECTORS = (282, 227, 274, 321, 374, 377, 422)


def run(options: argparse.Namespace) -> None:
    found = data.real(options.data, "usps")
    if found is None:
        print(f"usps left out: no such data in {options.data}")
        return
    keep = slice(0, 600) if options.quick else slice(None)
    X, y = found["X_train"][keep], found["y_train"][keep]
    columns = f"{'vectors':>9}{'notes':>7}{'error %':>9}{'notes %':>9}{'gap':>10}{'CPU s':>8}"
    for offset, name in ((0.0, "((x·z)/256)^degree"), (1.0, "(1 + (x·z)/256)^degree")):
        print(f"{name}\n{'degree':>6}{'dimension':>22}{columns}")
        for degree in range(1, 8):
            kernel = mercer.Polynomial(degree, offset=offset, scale=1 / 256)
            start = time.process_time()
            model = mercer.SVC(kernel, C=10.0, multiclass="ovr").fit(X, y)
            seconds = time.process_time() - start
            error = 100 * (1 - model.score(found["X_test"], found["y_test"]))
            vectors = np.mean([(row != 0).sum() for row in model.dual_coef_])
            theirs = f"{NOTES_VECTORS[degree - 1]:>7}{error:>9.2f}{NOTES_ERROR[degree - 1]:>9.1f}"
            print(
                f"{degree:>6}{kernel.feature_dimension(256):>22,}{vectors:>9.0f}{theirs}"
                f"{model.certificate_.gap:>10.1e}{seconds:>8.1f}",
                flush=True,
            )
