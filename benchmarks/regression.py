"""Regression: Gaussian processes, and ridge where that suite is there."""

from __future__ import annotations

import argparse
import importlib
from importlib.util import find_spec

from benchmarks import gp


def run(options: argparse.Namespace) -> None:
    gp.run(options)
    if find_spec("benchmarks.ridge") is not None:
        importlib.import_module("benchmarks.ridge").run(options)
