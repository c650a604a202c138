"""The benchmarks run: tiny sizes, whatever peers are installed. No time is asserted."""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from benchmarks import everything, measure, page, ratios, record

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("suite", "rows_at_least"),
    [
        ("approximation", 8),
        ("engine", 8),
        ("graphs", 3),
        ("ridge", 3),
        ("small", 20),
        ("svm", 8),
        ("things", 2),
        ("unsupervised", 8),
    ],
)
def test_the_suite_prints_a_row_of_mercer_for_every_cell(suite, rows_at_least):
    command = [sys.executable, "-m", "benchmarks", suite, "--quick", "--threads", "1", "--repeat", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [line for line in done.stdout.splitlines() if "  mercer " in line]
    assert len(rows) >= rows_at_least
    assert "nan" not in done.stdout.split("certificate", 2)[-1]


def test_the_suite_of_tables_prints_all_sides_or_says_that_there_are_no_data():
    command = [sys.executable, "-m", "benchmarks", "tables", "--quick", "--only", "penguins"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()[1:]
    if "left out" not in lines[0]:
        assert [line[29:45].strip() for line in lines] == ["mercer fit", "boosted trees", "kernel pipeline"]
        assert "GaussianProcessClassifier; it estimates accuracy" in lines[0]


def test_ranks_are_kept_in_a_file_and_only_what_is_missing_is_done(tmp_path):
    store = tmp_path / "cells.json"
    command = [sys.executable, "-m", "benchmarks", "features", "--ranks", "--quick", "--only", "abalone"]
    command += ["--folds", "0", "--store", str(store)]
    first = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert first.returncode == 0, first.stderr[-2000:]
    if "no cell has all sides" in first.stdout:
        pytest.skip("there are no data")
    assert "abalone/0/120/2/FeatureMachine" in first.stdout and "mean rank over 1 cells" in first.stdout
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert "abalone/0" not in again.stdout and "mean rank over 1 cells" in again.stdout


def test_the_suite_of_choosing_prints_both_sides_or_says_that_there_are_no_data():
    command = [sys.executable, "-m", "benchmarks", "choose", "--quick", "--only", "energy"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()[1:]
    if "left out" not in lines[0]:
        assert "  mercer " in lines[0] and "epsilon" in lines[0]
        assert "  grid " in lines[1]


def test_the_suite_of_conformal_intervals_prints_all_sides_or_says_that_there_are_no_data():
    command = [sys.executable, "-m", "benchmarks", "conformal", "--quick", "--repeat", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    if "left out: no data" not in done.stdout:
        rows = [line for line in done.stdout.splitlines() if "mercer " in line]
        assert len([row for row in rows if " splits " in row]) == 5 * 7  # methods on sets
        assert len([row for row in rows if " fits " in row]) == 3
        assert "nan" not in done.stdout


def test_the_regression_suite_prints_its_rows():
    command = [sys.executable, "-m", "benchmarks", "regression", "--quick", "--threads", "1", "--repeat", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [line for line in done.stdout.splitlines() if "  mercer " in line]
    assert len([row for row in rows if row.startswith("GP ")]) == 6
    assert "left out" not in done.stdout


def test_the_suite_of_a_cluster_prints_speed_bytes_memory_and_a_lost_worker():
    pytest.importorskip("distributed", reason="the extra mercer[dask] is not installed")
    command = [sys.executable, "-m", "benchmarks", "cluster", "--quick", "--repeat", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count(" by processors") == 4
    assert "MiB into 2 workers" in done.stdout and "memory of a worker" in done.stdout
    assert "equal bits: True" in done.stdout


def test_the_load_test_of_serving_holds_and_bad_bodies_are_refused():
    command = [
        sys.executable,
        "-m",
        "benchmarks.serving",
        "--seconds",
        "0.3",
        "--clients",
        "2",
        "--rows-fit",
        "60",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "memory after bad bodies" in done.stdout and "exit code 130" in done.stdout


@pytest.mark.parametrize("how", [[], ["--limit"]])
def test_the_table_of_ctrl_c_has_a_row_for_a_fit(how):
    command = [sys.executable, "-m", "benchmarks.ctrl_c", "--seconds", "0.5", "--rows", "400", *how, "SVR"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [line for line in done.stdout.splitlines() if line.startswith(("| SVR |", "| NuSVR |"))]
    assert len(rows) == 2


def test_all_writes_one_json_and_the_page_says_what_is_in_it(tmp_path):
    stored = tmp_path / "rows.json"
    kind = record.kinds_here()[-1]
    command = [sys.executable, "-m", "benchmarks", "all", "--quick", "--threads", "1", "--repeat", "1"]
    command += ["--suites", "ridge", "--kinds", kind, "--memory", "reused", "--json", str(stored)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    machine, (run,) = record.load(stored)
    assert (run.suite, run.kind, run.memory, run.threads) == ("ridge", kind, "reused", 1)
    assert "numpy" in machine["versions"]
    text = page.text([stored])
    ours = [row for row in run.rows if row.side.startswith("mercer")]
    assert ours
    whole = text.split("## All cells", 1)[1]
    # one line for each row, and the head of the table
    assert whole.count("\n| ") == len(ours) + 1
    for row in ours:
        assert f"| {row.cell}" in text
        if row.ratio is not None:
            assert f"| {row.ratio:.2f} |" in whole
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert "already" in again.stdout
    assert record.load(stored)[1] == [run]


def stored_run(tmp_path, cells, **changes):
    """A JSON with made-up seconds: mercer's and two peers' of each cell."""
    rows = []
    for cell, (ours, *peers) in cells.items():
        rows.append(record.Row("ridge", cell, 1, "mercer", ours, ours, None, None, 1.0, "gap 0"))
        for number, best in enumerate(peers):
            rows.append(record.Row("ridge", cell, 1, f"peer {number}", best, best, None, None, 2.0, "none"))
    run = record.Run(
        **{"suite": "ridge", "kind": "avx2", "memory": "fresh", "threads": 1, **changes}, rows=rows
    )
    place = tmp_path / "rows.json"
    record.save(place, record.machine(), [run])
    return place


CELLS = {
    "ahead": (1.0, 3.0, 2.0),
    "far ahead | by features": (1.0, 40.0),
    "a tie": (1.0, 1.1, 9.0),
    "behind <": (1.0, 0.5, 4.0),
    "no peer": (1.0,),
}


def test_the_summary_counts_what_the_cells_say_and_names_those_that_are_behind(tmp_path):
    text = page.text([stored_run(tmp_path, CELLS, repeat=3, quick=False)])
    ratios_of = {cell: min(peers) / ours for cell, (ours, *peers) in CELLS.items() if peers}
    least = min(ratios_of.values())
    middle = float(np.median(list(ratios_of.values())))
    assert f"| ridge | 4 | 2 | 1 | 1 | {middle:.2f} | {least:.2f} |" in text
    behind = text.split("## Where a peer is faster", 1)[1].split("\n## ", 1)[0]
    assert [line.split(" | ")[1] for line in behind.splitlines() if line.startswith("| ridge")] == [
        "behind <"
    ]
    whole = text.split("## All cells", 1)[1]
    assert whole.count("\n| ") == len(CELLS) + 1
    # a bar within a name does not end its cell
    assert "far ahead \\| by features" in whole
    assert record.machine()["date"] in text and "python -m benchmarks all --report" in text
    none = page.text([stored_run(tmp_path, {"ahead": CELLS["ahead"]}, repeat=3, quick=False)])
    assert "In no cell" in none


def test_the_page_says_what_a_second_thread_gave_where_both_were_measured(tmp_path):
    place = stored_run(tmp_path, CELLS, repeat=3, quick=False)
    alone = page.text([place])
    assert "## What more threads give" not in alone and "thread |" not in alone.split("## Where")[0]
    machine, [one] = record.load(place)
    halved = [replace(row, threads=2, best=row.best / 1.6) for row in one.rows if row.cell != "a tie"]
    halved[0] = replace(halved[0], best=1 / 1.2)
    record.save(place, machine, [one, replace(one, threads=2, rows=halved)])
    text = page.text([place])
    gains = text.split("## What more threads give", 1)[1].split("\n## ", 1)[0]
    assert "| ridge | 2 | 3 | 1.60 | 1.20 (ahead) | 1.60 (far ahead \\| by features) |" in gains
    summary = text.split("## In short", 1)[1].split("\n## ", 1)[0]
    assert (
        "| ridge, 1 thread | 4 | 2 | 1 | 1 |" in summary and "| ridge, 2 threads | 3 | 2 | 0 | 1 |" in summary
    )
    assert "| **all, 2 threads** | 3 | 2 | 0 | 1 |" in summary


def test_machines_of_two_kinds_are_on_one_page_and_never_mixed(tmp_path):
    first = stored_run(tmp_path, CELLS, repeat=3, quick=False)
    other = tmp_path / "other"
    other.mkdir()
    slower = {"ahead": (4.0, 2.0)}
    second = stored_run(other, slower, repeat=3, quick=False, kind="avx512")
    text = page.text([first, second])
    summaries = [part.split("\n## ", 1)[0] for part in text.split("## In short: ")[1:]]
    assert [part.splitlines()[0] for part in summaries] == ["AVX2", "AVX-512"]
    assert "| ridge | 4 | 2 | 1 | 1 |" in summaries[0] and "| ridge | 1 | 0 | 0 | 1 |" in summaries[1]
    behind = text.split("## Where a peer is faster", 1)[1].split("\n## ", 1)[0]
    assert "| ahead | 1 | AVX-512, fresh |" in behind and "| behind < | 1 | AVX2, fresh |" in behind
    assert text.count("## All cells") == 2


def test_two_machines_of_one_kind_are_told_apart_by_what_they_are_called(tmp_path):
    stored = []
    for called in ("Zen 4", "Xeon"):
        (tmp_path / called).mkdir()
        place = stored_run(tmp_path / called, CELLS, repeat=3, quick=False, kind="avx512")
        machine, runs = record.load(place)
        record.save(place, {**machine, "called": called}, runs)
        stored.append(place)
    page.write(stored, tmp_path / "performance.md")
    text = (tmp_path / "performance.md").read_text()
    titles = [part.splitlines()[0] for part in text.split("## In short: ")[1:]]
    assert titles == ["AVX-512, Zen 4", "AVX-512, Xeon"]
    assert "| behind < | 1 | AVX-512, Xeon, fresh |" in text and "## All cells: AVX-512, Zen 4\n" in text
    drawn = sorted(picture.name for picture in (tmp_path / "pictures").iterdir())
    assert drawn == ["performance-avx512-xeon.svg", "performance-avx512-zen-4.svg"]


def test_the_picture_has_a_dot_for_each_cell_with_a_peer_where_its_ratio_is(tmp_path):
    page.write([stored_run(tmp_path, CELLS, repeat=3, quick=False)], tmp_path / "performance.md")
    drawn = ElementTree.parse(tmp_path / "pictures" / "performance-avx2.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    dots = {dot.find(f"{space}title").text: dot for dot in drawn.iter(f"{space}circle")}
    wanted = {f"{c}, 1 thread: {min(p) / o:.2f}": min(p) / o for c, (o, *p) in CELLS.items() if p}
    assert set(dots) == set(wanted)
    at = np.array([float(dots[name].get("cx")) for name in wanted])
    # a straight line in the logarithm of the ratio, to the tenth of a pixel that is written
    log = np.log(list(wanted.values()))
    slope, start = np.polyfit(log, at, 1)
    assert slope > 0
    np.testing.assert_allclose(at, start + slope * log, atol=0.15)
    colours = {name: dots[name].get("fill") for name in wanted}
    assert {colour for name, colour in colours.items() if wanted[name] < 0.8} == {ratios.SLOWER}
    assert sum(colour == ratios.FASTER for colour in colours.values()) == 2


def test_seconds_go_where_they_decide_the_ratio(monkeypatch):
    ran: list[str] = []
    ticks = {"fast": 1.0, "slow": 3.5, "patient": 11.0, "mercer": 4.0}
    now = 0.0

    def side(name):
        def call():
            nonlocal now
            ran.append(name)
            now += ticks[name]

        return call

    monkeypatch.setattr(measure, "warm_bytes", 0)
    monkeypatch.setattr(measure.time, "process_time", lambda: now)
    monkeypatch.setattr(measure, "rows", [])
    monkeypatch.setattr(measure, "suite", "some")
    sides = {name: side(name) for name in ("fast", "slow", "mercer")}
    found = measure.race("cell", sides, 1, 5)
    assert ran.count("fast") == 5
    assert ran.count("slow") == 1
    # 4 + 4 + 4 seconds are more than the patience of 10.
    assert ran.count("mercer") == 3
    assert (found["fast"].best, found["slow"].best, found["mercer"].best) == (1.0, 3.5, 4.0)
    measure.report("cell", 1, found, None, lambda name, value: "")
    ran.clear()
    monkeypatch.setattr(measure.time, "perf_counter", lambda: now)
    assert set(measure.race("cell", sides, 2, 1)) == {"fast", "mercer"}
    assert set(measure.race("another cell", sides, 2, 1)) == {"fast", "slow", "mercer"}
    alone = {name: side(name) for name in ("patient", "mercer")}
    ran.clear()
    measure.race("third", alone, 1, 4)
    assert ran.count("patient") == 1


def test_all_measures_each_combination_that_says_something_new():
    options = argparse.Namespace(kinds=None, memory=["fresh", "reused"], threads=[1, 2])
    planned = list(everything._planned(options, ("engine", "graphs", "svm")))
    own = record.kinds_here()[0]
    assert len(planned) == len(set(planned))
    assert {(s, m, t) for s, kind, m, t in planned if kind == own} == {
        ("engine", "fresh", 1),
        ("engine", "fresh", 2),
        ("engine", "reused", 1),
        ("engine", "reused", 2),
        ("graphs", "fresh", 1),
        ("svm", "fresh", 1),
        ("svm", "fresh", 2),
    }
    assert all((m, t) == ("fresh", 1) and s != "graphs" for s, kind, m, t in planned if kind != own)


def test_the_page_of_performance_is_what_the_stored_rows_give(tmp_path):
    stored = sorted((ROOT / "benchmarks" / "results").glob("*.json"))
    if not stored:
        pytest.skip("no stored rows")
    assert (ROOT / "docs" / "performance.md").read_text() == page.text(stored)
    page.write(stored, tmp_path / "performance.md")
    drawn = sorted((tmp_path / "pictures").iterdir())
    assert len(drawn) == len(stored)
    for picture in drawn:
        assert (ROOT / "docs" / "pictures" / picture.name).read_text(encoding="utf-8") == picture.read_text(
            encoding="utf-8"
        )
