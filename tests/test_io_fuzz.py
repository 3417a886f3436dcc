"""Broken and hostile files: a ReadError with its remedy or a right result, never another exception or a silent drop."""

from __future__ import annotations

import errno
import gzip
import os
import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pyarrow.feather
import pyarrow.parquet
import pytest
from fuzz import examples
from hypothesis import given
from hypothesis import strategies as st

from genkern import Dataset
from genkern.io import ReadError, read, stream, write
from genkern.io.read import FORMATS

PACKED = ("gz", "bz2", "xz", "zst")
FILES = [name for name in FORMATS if name != "folder"]
SEEDS: dict[str, bytes] = {
    "fasta": b">a class=x\nACGTACGTNN\nacg\n>b class=y\nAC-GT\n>c class=x\n\n",
    "fastq": b"@a class=x\nACGT\n+\nIIII\n@b class=y\nGGN\n+b\nIII\n",
    "stockholm": b"# STOCKHOLM 1.0\n#=GF ID fam\na ACD-EF\nb ACDWEF\n\na GG\nb G.\n//\n",
    "ts": b"@problemName p\n@timeStamps false\n@classLabel true a b\n@data\n1,2,?:3,4,5:a\n1:NaN:b\n",
    "arff": b"@relation r\n@attribute a1 real\n@attribute a2 real\n@attribute y {a,'b c'}\n@data\n1,?,a\n2,3.5,'b c'\n",
    "csv": b'id,time,label,v,w\na,1,x,0.5,NA\na,2,x,1e-3,"4"\nb,1,y,7,8\nb,3,y,2,1\n',
    "tsv": b"label\tsequence\nx\tACGT\ny\tGGTA\n",
    "jsonl": b'{"id": "a", "label": 1, "series": [[1.5, null], [2, 3]]}\n{"id": "b", "label": 2, "series": [[0, 1]]}\n',
    "lines": b"hello world of many words\nanother line with four words\n",
}


@st.composite
def mutated(draw: Any) -> tuple[str, bytes]:
    """Draw a format and a small file of it, with some bytes changed, removed, doubled or put in."""
    form = draw(st.sampled_from(sorted(SEEDS)))
    data = bytearray(SEEDS[form])
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        how = draw(st.sampled_from(["change", "cut", "insert", "double", "end"]))
        if how == "change" and at < len(data):
            data[at] = draw(st.integers(0, 255))
        elif how == "cut":
            del data[at : at + draw(st.integers(1, 12))]
        elif how == "insert":
            marks = [
                b"\n",
                b",",
                b":",
                b"'",
                b'"',
                b"\t",
                b">",
                b"@",
                b"{",
                b"}",
                b"[",
                b"?",
                b"\\",
                b"\r",
                b"\x00",
                b"inf",
                b"%",
            ]
            data[at:at] = draw(st.sampled_from(marks))
        elif how == "double":
            data[at:at] = data[max(0, at - 20) : at]
        else:
            del data[at:]
    return form, bytes(data)


def check(path: Path, **options: Any) -> Dataset | None:
    """Return what is read, or None if it is refused; whole and in pieces must agree."""
    try:
        data = read(path, **options)
    except ReadError as error:
        said = error
    else:
        return check_read(data, path, options)
    assert said.expected
    assert said.came
    assert said.remedy
    assert str(path) in str(said) or said.file == "read"
    return None


def check_read(data: Dataset, path: Path, options: dict[str, Any]) -> Dataset:
    """Return what was read, after a look at it; the stream must give the same."""
    assert len(data) > 0
    assert data.kind in ("symbols", "codes", "series", "points", "documents")
    assert data.summary()
    for x in data.X:
        assert len(x) > 0
        if isinstance(x, np.ndarray):
            assert x.ndim == 2
            assert not np.isinf(x).any()
    try:
        parts = list(stream(path, batch=2, **options))
    except ReadError as error:
        parts, remedy = [], error.remedy
    if not parts:
        assert "read, not stream" in remedy or "use read" in remedy
        return data
    assert sum(map(len, parts)) == len(data)
    same([x for part in parts for x in part.X], data.X)
    if data.y is not None:
        np.testing.assert_array_equal(np.concatenate([part.y for part in parts]).astype(str), data.y.astype(str))
    if data.ids is not None:
        assert [name for part in parts for name in part.ids or ()] == data.ids
    return data


def same(left: list[Any], right: list[Any]) -> None:
    """Assert that objects are the same, bit for bit."""
    assert len(left) == len(right)
    for a, b in zip(left, right):
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype
            assert a.shape == b.shape
            assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
            assert a.dtype.kind != "f" or (np.signbit(a) == np.signbit(b))[~np.isnan(a)].all()
        else:
            assert a == b


@examples(few=300)
@given(case=mutated(), kind=st.sampled_from([None, None, "series", "symbols"]))
def test_mutated_files_are_read_or_refused(case: tuple[str, bytes], kind: str | None, tmp_path: Path) -> None:
    form, data = case
    path = tmp_path / f"file.{form}"
    path.write_bytes(data)
    try:
        check(path, format=form, kind=kind)
    except ValueError as error:
        if kind is None or "kind" not in str(error):  # a kind that the format cannot hold is a mistake of the caller
            raise


@examples(few=200)
@given(data=st.binary(max_size=200), form=st.sampled_from([None, *FILES]))
def test_random_bytes_are_read_or_refused(data: bytes, form: str | None, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    check(path, format=form)


@examples(few=100)
@given(
    text=st.text(alphabet=st.sampled_from(list("ab12.,:;'\"{}[]()?@%# \t\n\\>+-|=eNA")), max_size=120),
    form=st.sampled_from([name for name in FILES if name not in ("npz", "parquet", "arrow")]),
)
def test_random_text_is_read_or_refused(text: str, form: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    heads = {
        "ts": "@classLabel true a b\n@data\n",
        "arff": "@relation r\n@attribute a numeric\n@attribute b string\n@data\n",
    }
    path.write_text(heads.get(form, "") + text)
    check(path, format=form)


@pytest.mark.parametrize("form", ["npz", "parquet", "arrow", "arrow.zst", *(f"jsonl.{end}" for end in PACKED)])
@examples(few=60)
@given(data=st.data())
def test_damaged_binary_files_are_read_or_refused(form: str, data: Any, tmp_path: Path) -> None:
    whole = tmp_path / f"whole.{form}"
    if not whole.exists():
        data_set = Dataset([np.eye(3), np.ones((2, 3))], np.array(["a", "b"]), kind="series")
        if form.startswith("arrow"):
            write(data_set, tmp_path / "a.parquet")
            packed = "zstd" if form.endswith("zst") else "uncompressed"
            pyarrow.feather.write_feather(pyarrow.parquet.read_table(tmp_path / "a.parquet"), whole, compression=packed)
        else:
            write(data_set, whole)
    content = bytearray(whole.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content))) :]
    path = tmp_path / f"file.{form}"
    path.write_bytes(bytes(content))
    check(path, format="arrow" if form.startswith("arrow") else None)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("ts", "@classLabel true a b\n@data\n:a\n"),
        ("arff", "@relation x\n@data\n1\n"),
        ("jsonl", '{"series": []}\n'),
        ("fasta", ">a\n>b\n"),
        ("tsv", "label\tsequence\nx\t\n"),
    ],
)
def test_files_of_empty_records_are_refused(form: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{form}"
    path.write_text(text)
    assert check(path) is None
    with pytest.raises(ReadError):
        list(stream(path))


@examples(few=60)
@given(contents=st.lists(st.binary(max_size=40), min_size=1, max_size=4), split=st.booleans())
def test_folders_of_any_files_are_read_or_refused(contents: list[bytes], split: bool, tmp_path: Path) -> None:
    folder = Path(mkdtemp(dir=tmp_path))
    for k, content in enumerate(contents):
        place = folder / f"class{k % 2}" if split else folder
        place.mkdir(exist_ok=True)
        (place / f"{k}.txt").write_bytes(content)
    check(folder)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_compressed_files_that_are_cut_off_are_refused_everywhere(suffix: str, tmp_path: Path) -> None:
    whole = tmp_path / f"a.fa{suffix}"
    rng = np.random.default_rng(0)
    letters = "".join(rng.choice(list("ACGT"), 600_000))
    X = [letters[k : k + 200] for k in range(0, len(letters), 200)]  # more than a block of each format
    write(Dataset(X, kind="symbols"), whole)
    assert read(whole).X == X
    content = whole.read_bytes()
    path = tmp_path / f"cut.fa{suffix}"
    for size in [1, 5, 20, len(content) // 2, len(content) - 9, len(content) - 1]:
        path.write_bytes(content[:size])
        said = "damaged or cut off" if size >= 20 else None
        with pytest.raises(ReadError, match=said):
            read(path)
        with pytest.raises(ReadError, match=said):
            list(stream(path, batch=1))


def test_several_compressed_members_are_read_to_the_end(tmp_path: Path) -> None:
    import zstandard

    for suffix, pack in ((".gz", gzip.compress), (".zst", zstandard.compress)):
        path = tmp_path / f"two.fa{suffix}"
        path.write_bytes(pack(b">a\nACGT\n") + pack(b">b\nGGTT\n"))
        assert read(path).X == ["ACGT", "GGTT"]


@pytest.mark.parametrize("form", FILES)
def test_empty_files_are_refused(form: str, tmp_path: Path) -> None:
    path = tmp_path / "empty"
    for content in (b"", b"\n\n", b"\xef\xbb\xbf"):
        path.write_bytes(content)
        assert check(path, format=form) is None or (form == "lines" and content)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="No such file"):
        read(tmp_path / "none.fa")
    with pytest.raises(ReadError, match="empty folder"):
        read(tmp_path)
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    with pytest.raises(ReadError, match=r"a\.csv"):
        read(tmp_path)
    with pytest.raises(ReadError, match="a folder"):
        read(tmp_path, format="csv")
    with pytest.raises(ReadError, match="Dataset"):
        read(3)
    with pytest.raises(TypeError, match="expected paths"):
        read([])


def test_files_without_permission_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.fa"
    path.write_text(">a\nACGT\n")

    def refuse(*args: Any) -> None:  # permissions do not bind every user
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr("genkern.io.files.open", refuse, raising=False)
    with pytest.raises(ReadError, match="Permission denied"):
        read(path)


def test_wrong_encodings_name_the_line_and_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("label,text\na,one two three four\nb,five s\u00e9ven eight nine\n".encode("latin-1"))
    with pytest.raises(ReadError, match="encoding=") as caught:
        read(path)
    assert caught.value.line == 3
    assert read(path, encoding="latin-1").X[1] == "five s\u00e9ven eight nine"
    path.write_bytes("label,text\na,one two three four\n".encode("utf-16-le"))
    with pytest.raises(ReadError, match="utf-16"):
        read(path)
    for encoding in ("utf-16", "utf-8-sig", "utf-32"):
        path.write_bytes("label,text\na,one two thr\u00e9e four\n".encode(encoding))
        data = read(path)
        assert data.X == ["one two thr\u00e9e four"]
        assert any("byte order mark" in rule for rule in data.meta["rules"])
    with pytest.raises(ValueError, match="encoding='klingon'"):
        read(path, encoding="klingon")


def test_binary_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.fa"
    path.write_bytes(bytes(range(256)) * 20)
    with pytest.raises(ReadError):
        read(path)
    path.write_bytes(b">a\n" + bytes(1000))
    with pytest.raises(ReadError, match="binary"):
        read(path)


@pytest.mark.parametrize(
    ("missing", "name", "extra"), [("zstandard", "a.fa.zst", "bio"), ("narwhals", "a.parquet", "tables")]
)
def test_missing_packages_are_named_with_their_extra(
    missing: str, name: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(Dataset(["ACGT"], kind="symbols"), tmp_path / name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=rf'pip install "genkern\[{extra}\]"'):
        read(tmp_path / name)


def test_gzip_reads_the_same_without_the_faster_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(Dataset(["ACGT", "GG"], kind="symbols"), tmp_path / "a.fa.gz")
    monkeypatch.setitem(sys.modules, "isal", None)
    assert read(tmp_path / "a.fa.gz").X == ["ACGT", "GG"]
    (tmp_path / "b.fa.gz").write_bytes((tmp_path / "a.fa.gz").read_bytes()[:-9])
    with pytest.raises(ReadError, match="cut off"):
        read(tmp_path / "b.fa.gz")


def test_files_that_are_not_compressed_as_named_are_read_and_noted(tmp_path: Path) -> None:
    (tmp_path / "a.fa.gz").write_text(">a\nACGT\n")
    data = read(tmp_path / "a.fa.gz")
    assert data.X == ["ACGT"]
    assert list(data.meta["rules"]) == ["not compressed, although its name ends in .gz"]
