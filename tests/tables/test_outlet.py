"""Laws of `write_table`: what is written is read again, and a file is whole or not there."""

import errno
import io
import os
import stat
import sys
from datetime import date

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import places, read_table, write_table
from mercer.errors import OutputError

SUFFIXES = [".csv", ".tsv", ".parquet", ".pq", ".arrow", ".feather", ".jsonl", ".ndjson"]


def mixed():
    return polars.DataFrame(
        {
            "size": [0.1, None, -1e-300, 1e22],
            "count": [1, 2, None, -(2**40)],
            "place": ["Zürich, old town", 'the "Krone"', None, "two\nlines"],
        }
    )


@pytest.mark.parametrize("packer", ["", ".gz", ".zst", ".bz2", ".xz"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_is_read_again(tmp_path, suffix, packer):
    path = tmp_path / f"table{suffix}{packer}"
    write_table(mixed(), path)
    assert read_table(path).frame.equals(mixed())


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
@settings(max_examples=40, deadline=None)
def test_numbers_come_back_bit_for_bit_from_text(tmp_path_factory, numbers):
    path = tmp_path_factory.mktemp("numbers") / "numbers.csv"
    write_table(polars.DataFrame({"number": numbers}), path)
    back = read_table(path).frame["number"].to_numpy().astype(float)
    np.testing.assert_array_equal(back, np.array(numbers))


@pytest.mark.parametrize("make", [pd.DataFrame, polars.DataFrame, pyarrow.table])
def test_tables_of_every_make_are_written_alike(tmp_path, make):
    write_table(make({"a": [1.5, 2.0], "b": ["x", "y"]}), tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text() == "a,b\n1.5,x\n2.0,y\n"


def test_a_gap_in_the_only_column_is_a_row_all_the_same(tmp_path):
    write_table(polars.DataFrame({"a": [1.5, None, 2.0]}), tmp_path / "a.csv")
    assert read_table(tmp_path / "a.csv").frame["a"].to_list() == [1.5, None, 2.0]


def test_dates_are_written_as_year_month_day(tmp_path):
    write_table(polars.DataFrame({"day": [date(2026, 2, 3)], "n": [1]}), tmp_path / "days.csv")
    assert (tmp_path / "days.csv").read_text() == "day,n\n2026-02-03,1\n"


def test_standard_output_has_utf_8_whatever_the_terminal_says(monkeypatch):
    inner = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(inner, encoding="ascii"))
    print("before")
    write_table(polars.DataFrame({"place": ["Zürich"]}), "-")
    assert inner.getvalue() == "before\nplace\nZürich\n".encode()


def test_a_packed_file_is_the_same_whenever_it_is_written(tmp_path, monkeypatch):
    write_table(mixed(), tmp_path / "a.csv.gz")
    monkeypatch.setattr("time.time", lambda: 2e9)
    write_table(mixed(), tmp_path / "b.csv.gz")
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


# ── places ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_is_replaced_by_force_only_and_keeps_its_rights(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("mine")
    path.chmod(0o640)
    with pytest.raises(OutputError, match=r"exists\. Pass force=True \(--force\)"):
        write_table(mixed(), path)
    assert path.read_text() == "mine"
    write_table(mixed(), path, force=True)
    assert read_table(path).frame.equals(mixed())
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("out.xlsx", r"decides the format.*got \.xlsx"),
        ("out", "got no suffix"),
        (".", "is a directory. Name a file, for example"),
        ("nowhere/out.csv", "is no directory. Make it first"),
    ],
)
def test_a_place_where_nothing_can_be_written_is_told(tmp_path, monkeypatch, name, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError, match=words):
        write_table(mixed(), name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="devices as POSIX has them")
def test_a_device_is_never_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(OutputError, match="a device or a pipe"):
        write_table(mixed(), tmp_path / "pipe.csv", force=True)


def test_a_file_that_came_meanwhile_keeps_its_name(tmp_path, monkeypatch):
    path = tmp_path / "out.csv"
    monkeypatch.setattr(places, "check_place", lambda path, **_: path.write_text("theirs"))
    with pytest.raises(OutputError, match="exists"):
        write_table(mixed(), path)
    assert [p.name for p in tmp_path.iterdir()] == ["out.csv"]
    assert path.read_text() == "theirs"


def test_a_full_disk_leaves_nothing_behind_and_what_was_there_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "out.csv"
    path.write_text("old")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_table(mixed(), path, force=True)
    assert [p.name for p in tmp_path.iterdir()] == ["out.csv"]
    assert path.read_text() == "old"


def test_lists_in_cells_are_refused_for_text_and_written_elsewhere(tmp_path):
    frame = polars.DataFrame({"n": [1, 2], "words": [["a", "b"], ["c"]]})
    with pytest.raises(OutputError, match="column 'words' has lists"):
        write_table(frame, tmp_path / "out.csv")
    write_table(frame, tmp_path / "out.jsonl")
    assert read_table(tmp_path / "out.jsonl").frame.equals(frame)
