"""The benchmarks run: tiny sizes, whatever peers are installed. No time is asserted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("suite", "rows_at_least"),
    [("approximation", 8), ("engine", 8), ("ridge", 3), ("svm", 8), ("unsupervised", 8)],
)
def test_the_suite_prints_a_row_of_mercer_for_every_cell(suite, rows_at_least):
    command = [sys.executable, "-m", "benchmarks", suite, "--quick", "--threads", "1", "--repeat", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [line for line in done.stdout.splitlines() if "  mercer " in line]
    assert len(rows) >= rows_at_least
    assert "nan" not in done.stdout.split("certificate", 2)[-1]


def test_the_regression_suite_prints_its_rows():
    command = [sys.executable, "-m", "benchmarks", "regression", "--quick", "--threads", "1", "--repeat", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [line for line in done.stdout.splitlines() if "  mercer " in line]
    assert len([row for row in rows if row.startswith("GP ")]) == 4
    assert "left out" not in done.stdout


@pytest.mark.parametrize("how", [[], ["--limit"]])
def test_the_table_of_ctrl_c_has_a_row_for_a_fit(how):
    command = [sys.executable, "-m", "benchmarks.ctrl_c", "--seconds", "0.5", "--rows", "400", *how, "SVR"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [line for line in done.stdout.splitlines() if line.startswith(("| SVR |", "| NuSVR |"))]
    assert len(rows) == 2
