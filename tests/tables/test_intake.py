"""Files become tables: whatever wrote them, what was assumed is said, and what cannot be read has a line."""

import bz2
import gzip
import io
import lzma
import string
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import polars
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import Layout, read_table
from mercer.errors import InputError, ParameterError
from mercer.tables import delimited

PLAIN = "size,region,price\n12.5,north,100\n8,south,90\n,north,NA\n"


def written(folder, content, name="table.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def values(path, layout=None):
    return read_table(path, layout).frame.to_dict(as_series=False)


EXPECTED = {"size": [12.5, 8.0, None], "region": ["north", "south", "north"], "price": [100, 90, None]}


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        PLAIN.encode("utf-8-sig"),
        PLAIN.encode("utf-16"),
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", "\t"),
        PLAIN.replace(",", " , "),
        PLAIN.replace(",", ";").replace("12.5", "12,5"),
        PLAIN.replace("north", '"north"'),
        PLAIN.replace("NA", "?"),
        PLAIN + "\n\n",
        gzip.compress(PLAIN.encode(), mtime=0),
        zstandard.compress(PLAIN.encode()),
        bz2.compress(PLAIN.encode()),
        lzma.compress(PLAIN.encode()),
    ],
)
def test_one_table_is_read_however_it_is_written(tmp_path, content):
    assert values(written(tmp_path, content)) == EXPECTED


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress])
def test_half_of_a_packed_table_is_refused_in_a_sentence(tmp_path, pack):
    whole = pack(PLAIN.encode())
    with pytest.raises(InputError, match=r"is packed, and cannot be unpacked: .* Is it whole\?"):
        read_table(str(written(tmp_path, whole[: len(whole) // 2])))


def test_a_name_that_begins_as_bzip2_does_is_a_name(tmp_path):
    path = written(tmp_path, PLAIN.replace("size", "BZhouse", 1).encode())
    first = next(iter(read_table(str(path)).frame.columns))
    assert first == PLAIN.replace("size", "BZhouse", 1).split(",")[0]


@pytest.mark.parametrize("name", ["table.parquet", "table.arrow", "table.jsonl"])
def test_stored_types_are_kept(tmp_path, name):
    frame = polars.DataFrame(EXPECTED)
    path = tmp_path / name
    write = {"parquet": frame.write_parquet, "arrow": frame.write_ipc, "jsonl": frame.write_ndjson}
    write[name.split(".")[1]](path)
    assert values(path) == EXPECTED


def test_standard_input_is_read(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PLAIN.encode())))
    assert values("-") == EXPECTED


TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\x00\r", exclude_categories=["Cs", "Cc"]), max_size=8
)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(TEXTS, st.floats(allow_nan=False), st.integers(-(10**9), 10**9)), min_size=2),
    st.sampled_from([",", ";", "\t", "|"]),
)
def test_what_pandas_writes_is_read_to_the_bit(tmp_path_factory, rows, delimiter):
    texts = [f"x{text.strip()}" for text, _, _ in rows]
    frame = pd.DataFrame({"a b": texts, "number": [f for _, f, _ in rows], "whole": [i for _, _, i in rows]})
    path = tmp_path_factory.mktemp("t") / "table.csv"
    frame.to_csv(path, sep=delimiter, index=False)
    layout = Layout(delimiter=delimiter, header=True, decimal=".")
    found = values(path, layout)
    # white space around a field is not kept
    assert found["a b"] == [text.strip() for text in texts]
    assert np.array_equal(np.array(found["number"], dtype=float), frame["number"].to_numpy(dtype=float))
    assert found["whole"] == frame["whole"].tolist()


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (PLAIN.replace(",", ";"), "delimiter: semicolon"),
        (PLAIN.replace(",", ";").replace("12.5", "12,5"), "decimal comma: size"),
        ("price\n" + "\n".join(['"1,200"', '"3,400.5"', '"12"']), "commas between thousands: price"),
        ("price,x\n$12,1\n$3.5,2\n", "sign of currency or percent: price"),
        ("zip,x\n00123,1\n10001,2\n", "zip: text, since it has numbers with leading zeros"),
        ("1,2\n3,4\n", "the columns are called column_1 to column_2"),
        ("a,b\nx,\n,y\n", "missing values: a 1, b 1"),
        ("name,x\nJos\xe9,1\n".encode("latin-1"), "byte 0xe9 in line 2"),
        ('ham\ta "quote\nspam\tof one\nham\tmore\nham\tx\n', "quotes are letters like any other"),
        ("yes,red\nno,blue\nyes,red\nyes,green\n", "no line of names was found"),
    ],
)
def test_what_is_assumed_is_said(tmp_path, content, note):
    assert note in str(read_table(written(tmp_path, content)))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,200\n3,400.5\n12", [1200.0, 3400.5, 12.0]),
        ("$5\n$6.5\n-$1", [5.0, 6.5, -1.0]),
        ("5 %\n7%", [5, 7]),
    ],
)
def test_written_numbers_have_their_value(tmp_path, text, numbers):
    lines = "\n".join(f'"{line}"' for line in text.split("\n"))
    assert values(written(tmp_path, f"v\n{lines}\n"), Layout(delimiter=","))["v"] == numbers


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["is empty"]),
        ("\n \n", ["is empty"]),
        ("a,b\n", ["names of columns, but no row"]),
        ("\n\na,b\n1,2\n\n3\n", ["line 6", "1 fields"]),
        ("a,b\n1,2\n3\n", ["line 3", "1 fields", "the first has 2"]),
        ("a,b\n1,2\n3,4,5\n", ["line 3", "3 fields", "double quotes"]),
        ("a,a\n1,2\n", ["name 'a' 2 times", "columns 1, 2"]),
        (b"a,b\n1,2\x00\n", ["zero bytes"]),
        ("v,w\n" + "1,2\n" * 3000 + "1,oops\n" + "2,3\n" * 50, ["line 3002", "'w'", "'oops'", "--missing"]),
        (gzip.compress(PLAIN.encode(), mtime=0)[:-12], ["cannot be unpacked", "Is it whole?"]),
    ],
)
def test_bad_text_gets_a_sentence_with_the_place(tmp_path, content, words):
    path = written(tmp_path, content)
    with pytest.raises(InputError) as caught:
        read_table(path)
    for word in (*words, "table.csv"):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.parquet", b"PAR1 is not all", ["Parquet"]),
        ("t.arrow", b"ARROW1 nothing", ["Arrow"]),
        ("t.jsonl", '{"a": 1}\n{"a": \n', ["line 2", "one object"]),
        ("t.jsonl", "[1, 2]\n", ["line 1 is no object"]),
        ("t.xlsx", b"PK\x03\x04\x00\x00", ["binary data", ".xlsx", "CSV"]),
        ("t.svm", "1 1:2 2:x\n", ["line 1", "index:value"]),
        ("t.svm", "1 1:2\n-1 2:nan\n", ["row 2", "no finite number"]),
        ("t.svm", "1 1:2\n1 3:1 2:1\n", ["line 2"]),
    ],
)
def test_bad_files_get_a_sentence(tmp_path, name, content, words):
    with pytest.raises(InputError) as caught:
        read_table(written(tmp_path, content, name))
    for word in (*words, name):
        assert word in str(caught.value)


def test_what_is_no_file_gets_a_sentence(tmp_path):
    written(tmp_path, PLAIN, "prices.csv")
    with pytest.raises(InputError, match=r"Did you mean .*prices\.csv"):
        read_table(tmp_path / "prise.csv")
    with pytest.raises(InputError, match="is a directory"):
        read_table(tmp_path)
    with pytest.raises(InputError, match="no directory"):
        read_table(tmp_path / "nowhere" / "t.csv")


def test_a_layout_is_believed(tmp_path):
    path = written(tmp_path, "a,b\n1,-9\n2,5\n")
    assert values(path, Layout(missing=("-9",))) == {"a": [1, 2], "b": [None, 5]}
    assert values(path, Layout(header=False))["column_1"] == ["a", "1", "2"]
    with pytest.raises(InputError, match="not written in ascii: byte 0xc3 in line 1"):
        read_table(written(tmp_path, "ä,b\n1,2\n"), Layout(encoding="ascii"))
    for wrong in ({"delimiter": ";;"}, {"decimal": "'"}):
        with pytest.raises(ParameterError):
            Layout(**wrong)
    with pytest.raises(ParameterError, match="no encoding"):
        read_table(path, Layout(encoding="klingon"))


def test_sparse_rows_come_with_their_target(tmp_path):
    found = read_table(written(tmp_path, "1 1:0.5 4:2\n-1 2:1\n", "rows"))
    assert found.shape == (2, 4)
    assert found.target.tolist() == [1.0, -1.0]
    assert found.matrix.toarray().tolist() == [[0.5, 0, 0, 2], [0, 1, 0, 0]]


@settings(deadline=None, max_examples=150)
@given(st.binary(max_size=200) | st.text(string.printable, max_size=200).map(str.encode))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content):
    for name in ("t.csv", "t.jsonl", "t.svm", "t.parquet", "t"):
        path = tmp_path_factory.mktemp("t") / name
        path.write_bytes(content)
        said = ""
        try:
            shape = read_table(path).shape
        except InputError as error:
            said = str(error)
        assert name in said or min(shape) >= 1


# ── packed files and arrays ─────────────────────────────────────────────────────────────────────────────────


def test_bzip2_is_unpacked_by_its_bytes(tmp_path):
    """LIBSVM's own data sets are packed like this, and were called binary data."""
    file = tmp_path / "rows.bz2"
    file.write_bytes(bz2.compress(b"+1 1:0.5 3:1\n-1 2:2\n"))
    found = read_table(file)
    assert found.format == "LIBSVM's text"
    assert found.matrix.toarray().tolist() == [[0.5, 0.0, 1.0], [0.0, 2.0, 0.0]]
    plain = tmp_path / "names.csv"
    plain.write_text("BZh,b\n1,2\n3,4\n")
    assert read_table(plain).frame.columns == ["BZh", "b"]
    file.write_bytes(bz2.compress(b"a,b\n1,2\n")[:-8])
    with pytest.raises(InputError, match="cannot be unpacked"):
        read_table(file)


def test_arrays_of_numpy_are_a_table(tmp_path):
    X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    file = tmp_path / "houses.npz"
    np.savez(file, X=X, y=[7.0, 8.0, 9.0], columns=["rooms", "age"], mask=np.zeros((5, 1), dtype=np.uint8))
    found = read_table(file)
    assert found.frame.to_dict(as_series=False) == {
        "rooms": [1.0, 3.0, 5.0],
        "age": [2.0, 4.0, 6.0],
        "y": [7.0, 8.0, 9.0],
    }
    assert found.notes == ("rows are those of the array 'X'", "not part of the table: 'mask'")
    np.savez(file, X_train=X, y_train=[0, 1, 0], X_test=X[:2], y_test=[1, 1])
    found = read_table(file)
    assert found.frame.columns == ["X_train_1", "X_train_2", "y_train"]
    assert found.notes[1] == "not part of the table: 'X_test', 'y_test'"


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"y": np.ones(3)}, r"no array with rows and columns. It has y \(3,\)"),
        ({"X": np.array([[{}], [[]]], dtype=object)}, "Arrays of objects are not read"),
        ({"X": np.ones((0, 2))}, "no data"),
    ],
)
def test_arrays_that_are_no_table_are_refused_by_name(tmp_path, arrays, reason):
    file = tmp_path / "strange.npz"
    np.savez(file, allow_pickle=True, **arrays)
    with pytest.raises(InputError, match=reason) as refused:
        read_table(file)
    assert "strange.npz" in str(refused.value)


def test_a_damaged_file_of_arrays_is_refused(tmp_path):
    file = tmp_path / "cut.npz"
    np.savez(file, X=np.ones((50, 2)))
    whole = file.read_bytes()
    for length in (4, 40, len(whole) // 2, len(whole) - 10):
        file.write_bytes(whole[:length])
        with pytest.raises(InputError, match="cannot be read as arrays"):
            read_table(file)


@given(
    rows=st.lists(st.lists(st.text(alphabet="a1 é", max_size=3), min_size=1, max_size=4), min_size=1),
    ends=st.integers(0, 2),
    delimiter=st.sampled_from([",", ";", "\t"]),
    piece=st.integers(1, 20),
)
@settings(max_examples=200)
def test_a_text_is_regular_exactly_where_the_records_are(rows, ends, delimiter, piece):
    text = "\n".join(delimiter.join(fields) for fields in rows) + "\n" * ends
    lines = delimited.Lines("t", text, delimiter)
    records = [fields for _, fields in lines.records()]
    width = len(records[0]) if records else 2
    every_line = len(records) == text.rstrip("\n").count("\n") + 1
    wanted = width > 1 and every_line and all(len(fields) == width for fields in records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "PIECE", piece)
        assert delimited._is_regular(lines, width) == wanted
    if wanted:
        names = [f"c{j}" for j in range(width)]
        fast = delimited._split_once(replace(lines, regular=True), names, has_header=False)
        assert fast.equals(delimited._split_once(lines, names, has_header=False))
        assert delimited._height(replace(lines, regular=True), width, False) == len(records)


def test_a_quote_is_never_regular():
    assert not delimited._is_regular(delimited.Lines("t", 'a,b\n"1",2\n', ","), 2)
    assert delimited._is_regular(delimited.Lines("t", "a,b\n1,2\n", ","), 2)
