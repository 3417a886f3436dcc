"""Tables: long, wide, texts and nested lists, from text, Parquet, Arrow and frames; against csv and plain loops."""

from __future__ import annotations

import csv
import gzip
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_io_fuzz import same
from test_io_sequences import file, rules

from genkern import read
from genkern.io import ReadError, stream

DATA = Path(os.environ.get("GENKERN_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))
NAN = float("nan")
LONG = "id,time,label,v,w\na,1,x,0.5,NA\na,2,x,1e-3,?\nb,1,y,7,\nb,2,y,2,1\n"
TEXTS = [
    ("label,text\nx,one two three four\ny,five six seven eight\n", {}, "documents"),
    ("class,sequence\nx,ACGT\ny,ACGN\n", {}, "symbols"),
    ("class,chain\nx,0123\ny,7654\n", {"kind": "codes"}, "codes"),
    ("class,word\nx,abc\ny,dxf\n", {}, "symbols"),
    ("class,a,b\nx,abc,1\ny,dxf,2\n", {"text": "a"}, "symbols"),
]


def test_long_tables(tmp_path: Path) -> None:
    path = file(tmp_path, LONG, "a.csv")
    data = read(path)
    same(data.X, [np.array([[0.5, NAN], [1e-3, NAN]]), np.array([[7.0, NAN], [2.0, 1.0]])])
    assert (data.y.tolist(), data.ids, data.kind) == (["x", "y"], ["a", "b"], "series")
    assert rules(data) == {"missing values (NA)": 1, "missing values (?)": 1, "missing values (empty)": 1}
    assert data.meta["columns"] == {"label": "label", "id": "id", "time": "time", "channels": ["v", "w"]}
    shuffled = file(tmp_path, "id,time,label,v,w\nb,2,y,2,1\na,2,x,1e-3,?\nb,1,y,7,\na,1,x,0.5,NA\n", "b.csv")
    again = read(shuffled)
    same(again.X, [data.X[1], data.X[0]])
    assert rules(again)["objects with unsorted times, sorted"] == 2
    with pytest.raises(ReadError, match="one after the other"):
        list(stream(shuffled, batch=1))
    assert [part.ids for part in stream(path, batch=1)] == [["a"], ["b"]]
    same(read(path, channels="v").X, [data.X[0][:, :1], data.X[1][:, :1]])
    points = file(tmp_path, "id,v\na,1\na,2\nb,3\n", "c.csv")
    with pytest.raises(ReadError, match=r"kind='points' .* kind='series'"):
        read(points)
    same(read(points, kind="points").X, [np.array([[1.0], [2.0]]), np.array([[3.0]])])
    missing = read(file(tmp_path, LONG.replace("0.5", "-999"), "d.csv"), missing="-999")
    assert np.isnan(missing.X[0][0, 0])
    tokens = read(file(tmp_path, "id,t,event\na,1,up\na,2,down\nb,1,up\n", "e.csv"))
    assert (tokens.X, tokens.kind) == ([["up", "down"], ["up"]], "symbols")
    dates = file(tmp_path, "id,date,v\na,2024-01-01,1\na,2024-01-03,2\na,2024-01-04,3\n", "f.csv")
    assert rules(read(dates)) == {"objects with irregular times, taken as equal steps": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LONG.replace("b,2,y,2,1", "b,2,z,2,1"), "line 5: expected one label for all rows of an object. Got z after y"),
        (LONG.replace("b,2,y", "b,1,y"), "line 5: expected each time once"),
        (LONG.replace("b,2,y,2,1", "b,2,y,2"), "line 5: expected 5 fields. Got 4"),
        (LONG.replace("1e-3", "1,5"), "line 3: expected 5 fields. Got 6"),
        (LONG.replace("1e-3", "abc"), "line 3: expected a number. Got 'abc' in column 'v'"),
        (LONG.replace("1e-3", "inf"), "line 3: expected a finite number"),
        (LONG.replace("b,2,y,2,1", "b,2_0,y,2,1"), "line 5: expected a time. Got '2_0'"),
        (LONG.replace("b,2,y,2,1", "b,,y,2,1"), "line 5: expected a time"),
        (LONG.replace("b,2,y,2,1", "b,2,,2,1"), "line 5: expected a label.*label=False"),
        (LONG.replace("b,2,y,2,1", ",2,y,2,1"), "line 5: expected a id"),
        (LONG.replace("1e-3", '"1e-3'), "line .*expected whole fields"),
        (LONG.replace("id,", "object,"), "id="),
        (LONG.replace("w\n", "class\n", 1), "one column for the label.*'label', 'class'.*label="),
        (LONG.replace("w\n", "v\n", 1), "line 1: expected a different name for each column"),
        ("id;time,v\n", "line 1: expected one delimiter.*delimiter="),
        ("1,2\n3,4\n", "line 1: expected a header.*header=False"),
        ("a,b\n", "a header alone"),
        ("a,b\n1,2\n", "kind='series' .* kind='points'"),
        ("a,b\nx,2\n", "text="),
        ("label\nx\n", "columns with objects"),
    ],
)
def test_wrong_tables(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=message):
        read(file(tmp_path, text, "a.csv"))


def test_wide_tables(tmp_path: Path) -> None:
    path = file(tmp_path, "class;t1;t2;t3\nx;1;NaN;\ny;4;5;6\n", "a.csv")
    data = read(path)
    same(data.X, [np.array([[1.0], [NAN]]), np.array([[4.0], [5.0], [6.0]])])
    assert rules(data) == {"rows with empty cells at the end, cut there": 1, "missing values (NaN)": 1}
    same(
        read(file(tmp_path, "a,b\n1,2\n3,4\n", "b.csv"), kind="series").X,
        [np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]])],
    )
    ucr = read(file(tmp_path, "1\t0.5\t0.25\n2\t1\t2\n", "c.tsv"), header=False, label="1")
    same(ucr.X, [np.array([[0.5], [0.25]]), np.array([[1.0], [2.0]])])
    assert ucr.y.tolist() == ["1", "2"]
    letters = read(file(tmp_path, "class,p1,p2\nx,A,C\ny,G,T\n", "d.csv"))
    assert (letters.X, letters.kind) == (["AC", "GT"], "symbols")
    index = read(file(tmp_path, ",t1,t2\n0,1,2\n1,3,4\n", "e.csv"))
    same(index.X, [np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]])])
    assert rules(index) == {"first column without a name, which counts rows, left out": 1}
    with pytest.raises(ReadError, match="a name for each column"):
        read(file(tmp_path, ",t1,t2\n5,1,2\n7,3,4\n", "f.csv"))


@pytest.mark.parametrize(("text", "options", "kind"), TEXTS)
def test_columns_of_texts(text: str, options: dict[str, Any], kind: str, tmp_path: Path) -> None:
    path = file(tmp_path, text, "a.csv")
    data = read(path, **options)
    rows = list(csv.reader(text.splitlines()))[1:]
    assert [row[1] for row in rows] == data.X
    assert data.y.tolist() == ["x", "y"]
    assert data.kind == kind
    assert [part.X for part in stream(path, batch=1, **options)] == [[row[1]] for row in rows]


def test_texts_that_may_be_two_things_are_asked_about(tmp_path: Path) -> None:
    for text, named in [
        ("class,text\nx,0123\ny,77\n", "kind='symbols'"),
        ("class,text\nx,van Berg\ny,Li\n", "'documents'"),
    ]:
        with pytest.raises(ReadError, match=named):
            read(file(tmp_path, text, "a.csv"))
    with pytest.raises(ReadError, match="format="):
        read(file(tmp_path, "some words\n", "a.txt"))
    lines = read(file(tmp_path, "one two three four\n\nfive six seven eight nine\n", "a.txt"), format="lines")
    assert (len(lines), rules(lines)) == (2, {"empty records, left out": 1})
    empty = read(file(tmp_path, "class,sequence\nx,ACGT\ny,\nz,acgu\n", "b.csv"))
    assert (empty.X, empty.y.tolist()) == (["ACGT", "ACGT"], ["x", "z"])
    assert rules(empty)["empty records, left out"] == 1


def test_json_lines(tmp_path: Path) -> None:
    rows = [{"id": "a", "label": 1, "series": [[0.1, None], [2, 3]]}, {"id": "b", "label": 2, "series": [[1, 2]]}]
    data = read(file(tmp_path, "\n".join(map(json.dumps, rows)), "a.jsonl"))
    same(data.X, [np.array([[0.1, NAN], [2, 3]]), np.array([[1.0, 2.0]])])
    assert data.y.tolist() == [1, 2]
    other = file(tmp_path, '{"v": [[1, 2, 3], [4, 5, 6]]}\n', "b.jsonl")
    with pytest.raises(ReadError, match="kind="):
        read(other)
    with pytest.raises(ReadError, match=r"line 1: .*layout="):
        read(other, kind="series")
    same(read(other, kind="series", layout="channels-first").X, [np.array([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]])])
    assert read(file(tmp_path, '{"symbols": ["up", "down"]}\n', "c.jsonl")).X == [["up", "down"]]
    for text, message in [
        ("[1]\n", "line 1: expected a JSON object"),
        ('{"a": 1}\n{"a": }\n', "line 2: expected a JSON object"),
        ('{"a": 1, "a": 2}\n', "twice"),
        ('{"series": [[1], [2, 3]]}\n', "line 1: expected a list of numbers, or of lists of one length"),
        ('{"series": [["x"]]}\n', "line 1: expected a list of numbers"),
        ('{"series": [[1]]}\n{"series": [[1, 2]]}\n', "line 2: expected 1 channels"),
        ('{"series": [[1e999]]}\n', "line 1: .*infinite"),
        ("[" * 100_000, "line 1"),
        ('{"label": 1, "text": "a"}\n{"label": "1", "text": "b"}\n', "line 2: expected labels of one type"),
    ]:
        with pytest.raises(ReadError, match=message):
            read(file(tmp_path, text, "d.jsonl"))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_parquet_and_arrow(library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = pytest.importorskip(library)
    columns = {"id": ["a", "a", "b"], "time": [1, 2, 1], "label": ["x", "x", "y"], "v": [0.1, NAN, 3.0]}
    frame = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    expected = [np.array([[0.1], [NAN]]), np.array([[3.0]])]
    same(read(frame).X, expected)
    monkeypatch.setattr("genkern.io.columns.BACKENDS", (library,))
    if library == "pyarrow":
        from pyarrow import feather, parquet

        parquet.write_table(frame, tmp_path / "a.parquet")
        feather.write_feather(frame, str(tmp_path / "a.arrow"))
    elif library == "polars":
        frame.write_parquet(tmp_path / "a.parquet")
        frame.write_ipc(tmp_path / "a.arrow")
    else:
        frame.to_parquet(tmp_path / "a.parquet")
        frame.to_feather(tmp_path / "a.arrow")
    for name in ("a.parquet", "a.arrow"):
        data = read(tmp_path / name)
        same(data.X, expected)
        assert (data.ids, data.y.tolist()) == (["a", "b"], ["x", "y"])
        assert [part.ids for part in stream(tmp_path / name, batch=1)] == [["a"], ["b"]]


def test_awkward_arrays() -> None:
    ak = pytest.importorskip("awkward")
    ragged = ak.Array([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]])
    same(
        read(ragged, kind="series", layout="time-first").X, [np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0, 6.0]])]
    )
    records = ak.Array([{"label": "a", "series": [[1.0]]}, {"label": "b", "series": [[2.0], [3.0]]}])
    data = read(records)
    assert data.y.tolist() == ["a", "b"]
    same(data.X, [np.array([[1.0]]), np.array([[2.0], [3.0]])])
    with pytest.raises(ReadError, match="kind="):
        read(ragged)


def test_folders_of_texts(tmp_path: Path) -> None:
    for label, name, text in [("spam", "1.txt", "buy this\nnow\n"), ("ham", "2", "hello"), ("ham", "3.txt", "")]:
        (tmp_path / label).mkdir(exist_ok=True)
        (tmp_path / label / name).write_text(text)
    (tmp_path / "ham" / ".DS_Store").write_bytes(b"\xff\x00")
    data = read(tmp_path)
    assert (data.X, data.y.tolist(), data.ids) == (["hello", "buy this\nnow"], ["ham", "spam"], ["ham/2", "spam/1.txt"])
    assert rules(data) == {"hidden files, left out": 1, "empty records, left out": 1}
    assert sum(len(part) for part in stream(tmp_path, batch=1)) == 2
    (tmp_path / "here.txt").write_text("x")
    with pytest.raises(ReadError, match="Move the files"):
        read(tmp_path)


def test_options_that_say_nothing_are_refused(tmp_path: Path) -> None:
    path = file(tmp_path, ">a\nACGT\n")
    for option in ("time", "text", "layout", "delimiter", "channels"):
        with pytest.raises(ValueError, match=f"{option}="):
            read(path, **{option: "time-first" if option == "layout" else "x"})
    with pytest.raises(ValueError, match="holds symbols or codes"):
        read(path, kind="series")
    with pytest.raises(ValueError, match="'format'"):
        read(path, format="fastb")
    with pytest.raises(TypeError, match="unknown option 'lable'"):
        stream(path, lable="x")
    with pytest.raises(ReadError, match="a column 'z', as label= says"):
        read(file(tmp_path, LONG, "a.csv"), label="z")


def test_real_texts_are_what_csv_reads() -> None:
    path = DATA / "webkb" / "webkb4.csv.gz"
    if not path.exists():
        pytest.skip("needs the folder webkb of the data, see GENKERN_DATA")
    before = csv.field_size_limit(10**9)
    with gzip.open(path, "rt", encoding="utf-8", newline=None) as lines:
        rows = list(csv.DictReader(lines))
    csv.field_size_limit(before)
    data = read(path)
    kept = [row for row in rows if row["text"].strip()]
    assert [row["text"] for row in kept] == data.X
    assert data.y.tolist() == [row["class"] for row in kept]
    assert data.meta["rules"].get("empty records, left out", {"count": 0})["count"] == len(rows) - len(kept)


COMMAS = "id;time;v;w;class\n" + "".join(f"r{i};{t};{t},5;-{i},25e1;{'xy'[i]}\n" for i in range(2) for t in range(3))


def test_decimal_commas_are_asked_about_and_read(tmp_path: Path) -> None:
    path = file(tmp_path, COMMAS, "a.csv")
    for kind in (None, "series", "points"):
        with pytest.raises(ReadError, match=r"line 2: expected numbers with a decimal point. Got '0,5'.*decimal=','"):
            read(path, kind=kind)
    data = read(path, decimal=",")
    same(data.X, [np.array([[0.5, -2.5 - 10 * i], [1.5, -2.5 - 10 * i], [2.5, -2.5 - 10 * i]]) for i in range(2)])
    data = read(file(tmp_path, COMMAS.replace("0,5", "NA").replace(";1,25", ";7"), "b.csv"), decimal=",")
    assert data.kind == "series"
    assert np.isnan(data.X[0][0, 0])
    with pytest.raises(ReadError, match=r"line 3: expected numbers with a decimal point. Got '1,5'"):
        read(file(tmp_path, COMMAS.replace("0,5", "NA"), "c.csv"))  # first cells may be missing
    times = "id;time;v\n" + "".join(f"r{i};0,{t};{t}\n" for i in range(2) for t in range(3))
    with pytest.raises(ReadError, match="Got '0,0' in column 'time'"):
        read(file(tmp_path, times, "d.csv"))
    with pytest.raises(ValueError, match="'decimal'"):
        read(path, decimal=";")


def test_commas_in_texts_are_not_asked_about(tmp_path: Path) -> None:
    path = file(tmp_path, "label;text\nx;1,5\ny;2,5\n", "a.csv")
    assert read(path, text="text", kind="documents").X == ["1,5", "2,5"]
    mixed = file(tmp_path, "label;body\nx;1,5\ny;two, or more words\n", "b.csv")
    assert read(mixed, kind="documents").X == ["1,5", "two, or more words"]


def zipped(folder: Path, *names: str) -> Path:
    with zipfile.ZipFile(folder / "a.bin", "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return folder / "a.bin"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("[Content_Types].xml", "xl/workbook.xml"), "an Excel workbook. Save the sheet as CSV"),
        (("word/document.xml",), "a Word document"),
        (("mimetype", "content.xml"), "a document of LibreOffice"),
        (("a.fa", "b.fa"), "a zip archive of a.fa, b.fa. Unpack it"),
    ],
)
def test_documents_of_offices_are_named(names: tuple[str, ...], message: str, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=message):
        read(zipped(tmp_path, *names))


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"%PDF-1.7\n", "Got a PDF"),
        (b"\x89PNG\r\n\x1a\n", r"Got a picture \(PNG\)"),
        (b"RIFF\x24\x08\x00\x00WAVE", "Got a recording of sound"),
        (b"\x80\x04\x95", "never loaded"),
        (b"\x93NUMPY\x01\x00", "one array"),
        (b"\x01\x02\x00\x00", "binary data of an unknown kind"),
        ("words and more\n".encode("utf-16"), "the ending '.bin'"),  # a text, as its byte order mark says
        (b"words", "the ending '.bin' and 'words'"),
    ],
)
def test_other_files_are_named(head: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(head)
    with pytest.raises(ReadError, match=message):
        read(path)
