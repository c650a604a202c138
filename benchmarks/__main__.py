"""`python -m benchmarks NAME [--quick] [--threads 1 2]`: run one suite and print its table."""

from __future__ import annotations

import argparse
import importlib

from benchmarks import measure

SUITES = (
    "approximation",
    "engine",
    "gp",
    "gp_classify",
    "regression",
    "ridge",
    "svm",
    "unsupervised",
    "usps",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes: a check that the suite runs, not a measurement"
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument(
        "--repeat", type=int, default=3, help="runs per side; the best and the median are printed"
    )
    parser.add_argument("--only", default="", help="cells whose name contains this text")
    parser.add_argument("--data", default="../shared/data", help="folder of the real data sets")
    options = parser.parse_args()
    if options.quick:
        measure.warm_bytes = 0
    importlib.import_module(f"benchmarks.{options.suite}").run(options)


if __name__ == "__main__":
    main()
