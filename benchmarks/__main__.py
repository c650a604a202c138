"""`python -m benchmarks NAME [--quick] [--threads 1 2]`: run one suite, or `all`, and print its table."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from benchmarks import everything, measure, record

SUITES = (
    "approximation",
    "choose",
    "cluster",
    "conformal",
    "engine",
    "features",
    "forecast",
    "gp",
    "gp_classify",
    "graphs",
    "regression",
    "ridge",
    "small",
    "structure",
    "svm",
    "tables",
    "things",
    "unsupervised",
    "usps",
)
# `regression` is gp and ridge together; usps and cluster have no peer; the others are about accuracy.
ACCURACY = ("choose", "cluster", "conformal", "features", "forecast", "structure", "tables", "things")
MEASURED = tuple(suite for suite in SUITES if suite not in ("regression", "usps", *ACCURACY))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("suite", choices=(*SUITES, "all"))
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes: a check that the suite runs, not a measurement"
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument(
        "--repeat", type=int, default=3, help="runs per side; the best and the median are printed"
    )
    parser.add_argument("--pictures", default="", help="a folder for kernel PCA pictures (things, graphs)")
    parser.add_argument("--only", default="", help="cells whose name contains this text")
    parser.add_argument("--data", default="../shared/data", help="folder of the real data sets")
    parser.add_argument("--json", type=Path, help="write every row to this file")
    parser.add_argument(
        "--known", type=Path, help="rows of earlier runs: peers far behind there are left out"
    )
    ranks = parser.add_argument_group("with features")
    ranks.add_argument("--ranks", action="store_true", help="mean ranks over folds, beside tuned peers")
    ranks.add_argument("--folds", type=int, nargs="+", default=list(range(10)), help="which folds")
    ranks.add_argument("--rows", type=int, default=1500, help="training rows of a fold")
    ranks.add_argument("--trials", type=int, default=30, help="trials of each peer")
    ranks.add_argument(
        "--store", type=Path, help="keep every cell in this file, and do those that are missing"
    )
    sets = parser.add_argument_group("with structure")
    sets.add_argument("--first", type=int, default=0, help="the first set and split, of --repeat")
    group = parser.add_argument_group("with all")
    group.add_argument("--note", default="", help="what else the machine was doing, for the page")
    group.add_argument("--report", action="store_true", help="write docs/performance.md from the rows")
    group.add_argument("--kinds", nargs="+", choices=tuple(record.BLAS_KERNELS), help="instruction sets")
    group.add_argument("--memory", nargs="+", choices=("fresh", "reused"), default=["fresh", "reused"])
    group.add_argument("--suites", nargs="+", choices=SUITES, default=MEASURED)
    options = parser.parse_args()
    if options.suite == "all":
        everything.run(options, tuple(options.suites))
        return
    record.force_kind()
    if options.quick:
        measure.warm_bytes = 0
    measure.suite = options.suite
    if options.known is not None:
        measure.known = record.known(options.known)
    importlib.import_module(f"benchmarks.{options.suite}").run(options)
    if options.json is not None:
        threads = max(options.threads)
        done = record.Run(options.suite, "", "", threads, options.repeat, options.quick, measure.rows)
        record.save(options.json, record.machine(), [done])


if __name__ == "__main__":
    main()
