"""What is written is read again bit for bit: drawn sets, and the real ones, through every format."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_io_fuzz import same

from genkern import Dataset
from genkern.datasets import load_japanese_vowels, load_splice_junctions
from genkern.io import ReadError, read, stream, write
from genkern.io.errors import Notes
from genkern.io.files import EXPANSION, SUFFIXES, Source

DATA = Path(os.environ.get("GENKERN_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))
HERE = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
NUMBERS = st.floats(allow_infinity=False, width=64) | st.just(-0.0) | st.just(5e-324) | st.just(0.1 + 0.2)
WORDS = st.text(alphabet="abcXYZ019_+-", min_size=1, max_size=5)
ANY_TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)


@st.composite
def series_sets(draw: Any, width: int | None = None) -> Dataset:
    """Draw series of unequal lengths with missing values, labels, identifiers, groups and a split."""
    n, d = draw(st.integers(1, 4)), width or draw(st.integers(1, 3))
    X = [np.array(draw(st.lists(st.lists(NUMBERS, min_size=d, max_size=d), min_size=1, max_size=4))) for _ in range(n)]
    return Dataset(X, *beside(draw, n), kind="series", meta=split_of(draw, n))


def beside(draw: Any, n: int) -> tuple[Any, Any, Any]:
    """Draw labels, identifiers and groups, or none."""
    words = st.lists(WORDS, min_size=n, max_size=n)
    y = np.array(draw(words)) if draw(st.booleans()) else None
    ids = draw(st.lists(WORDS, min_size=n, max_size=n, unique=True))
    return y, ids, np.array(draw(words)) if draw(st.booleans()) else None


def split_of(draw: Any, n: int) -> dict[str, Any]:
    if not draw(st.booleans()):
        return {}
    return {"split": np.array(draw(st.lists(st.sampled_from(["train", "test"]), min_size=n, max_size=n)))}


def equal(found: Dataset, given: Dataset, lost: tuple[str, ...] = ()) -> None:
    """Assert that a set came back, but for what its format has no place for."""
    same(found.X, given.X)
    assert found.kind == given.kind
    assert (found.ids == given.ids) or "ids" in lost
    for name in ("y", "groups", "split"):
        if name not in lost:
            left, right = getattr(found, name), getattr(given, name)
            assert (left is None) == (right is None), name
            assert left is None or left.tolist() == right.tolist(), name


@HERE
@given(data=series_sets(), suffix=st.sampled_from(["csv", "tsv.gz", "jsonl", "jsonl.zst", "parquet", "npz", "csv.xz"]))
def test_series_come_back(data: Dataset, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"file.{suffix}"
    write(data, path)
    equal(read(path), data)
    equal(whole(stream(path, batch=2)), data)


@HERE
@given(data=series_sets())
def test_series_come_back_from_ts(data: Dataset, tmp_path: Path) -> None:
    bare = Dataset(data.X, data.y, kind="series")
    write(bare, tmp_path / "file.ts")
    equal(read(tmp_path / "file.ts"), bare)
    equal(whole(stream(tmp_path / "file.ts", batch=1)), bare)


@HERE
@given(data=series_sets(width=1))
def test_series_come_back_from_wide_tables(data: Dataset, tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    write(data, path, format="wide")
    equal(read(path, kind="series"), data)
    equal(whole(stream(path, batch=1, kind="series")), data)


@HERE
@given(data=series_sets(), suffix=st.sampled_from(["csv", "jsonl", "parquet", "npz"]))
def test_points_come_back(data: Dataset, suffix: str, tmp_path: Path) -> None:
    points = Dataset(data.X, data.y, data.ids, data.groups, "points", data.meta)
    path = tmp_path / f"file.{suffix}"
    write(points, path)
    equal(read(path, kind="points" if suffix == "csv" else None), points)


@HERE
@given(
    X=st.lists(st.text(alphabet="ACGT", min_size=1, max_size=30), min_size=1, max_size=5),
    draws=st.data(),
    suffix=st.sampled_from(["fa", "fa.gz", "fasta.bz2", "csv", "tsv", "jsonl", "parquet", "npz"]),
)
def test_sequences_come_back(X: list[str], draws: Any, suffix: str, tmp_path: Path) -> None:
    data = Dataset(X, *beside(draws.draw, len(X)), kind="symbols")
    path = tmp_path / f"file.{suffix}"
    write(data, path)
    told = {"group": "group"} if "fa" in suffix and data.groups is not None else {}
    equal(read(path, **told), data)
    equal(whole(stream(path, batch=2, **told)), data)


@HERE
@given(
    X=st.lists(ANY_TEXT, min_size=1, max_size=5),
    draws=st.data(),
    suffix=st.sampled_from(["csv", "jsonl", "parquet", "npz"]),
)
@pytest.mark.parametrize("kind", ["documents", "symbols"])
def test_any_text_comes_back_or_is_refused(kind: str, X: list[str], draws: Any, suffix: str, tmp_path: Path) -> None:
    data = Dataset(X, *beside(draws.draw, len(X)), kind=kind)
    path = tmp_path / f"file.{suffix}"
    try:
        write(data, path)
    except ValueError as error:
        said = str(error)
    else:
        blank = [not x.strip() for x in X] if kind == "documents" and suffix != "npz" else [False] * len(X)
        kept = data.take([k for k in range(len(X)) if not blank[k]])
        if len(kept) and not (kind == "symbols" and suffix != "npz" and is_dna(X)):
            equal(read(path), kept)
        return
    assert "jsonl" in said
    assert suffix == "csv"


def is_dna(X: list[str]) -> bool:
    """Say whether strings may be nucleotides, whose case and such is read by rule."""
    return set("".join(X).upper()) <= set("ACGTUNRYSWKMBDHVX-.~ \n\t\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u2028\u2029") | {
        c for c in "".join(X) if c.isspace()
    }


def whole(parts: Any) -> Dataset:
    """Return the sets of a stream as one."""
    parts = list(parts)
    together: dict[str, Any] = {}
    for name in ("y", "groups", "split"):
        pieces = [getattr(part, name) for part in parts]
        together[name] = None if pieces[0] is None else np.concatenate(pieces)
    ids = None if parts[0].ids is None else [name for part in parts for name in part.ids]
    meta = {} if together["split"] is None else {"split": together["split"]}
    return Dataset([x for part in parts for x in part.X], together["y"], ids, together["groups"], parts[0].kind, meta)


@pytest.mark.parametrize("suffix", ["fa", "fa.gz", "csv", "tsv.bz2", "jsonl.xz", "parquet", "npz"])
def test_splice_junctions_come_back(suffix: str, tmp_path: Path) -> None:
    data = load_splice_junctions()
    write(data, tmp_path / f"file.{suffix}")
    equal(read(tmp_path / f"file.{suffix}"), data)


@pytest.mark.parametrize("suffix", ["csv", "jsonl.zst", "parquet", "npz", "ts.gz"])
def test_vowels_come_back(suffix: str, tmp_path: Path) -> None:
    data = load_japanese_vowels()
    lost: tuple[str, ...] = ()
    if "ts" in suffix:
        lost = ("ids", "groups", "split")
        with pytest.warns(UserWarning, match="ids and split"):
            write(data, tmp_path / f"file.{suffix}")
    else:
        write(data, tmp_path / f"file.{suffix}")
    equal(read(tmp_path / f"file.{suffix}"), data, lost)


def test_embedded_sets_are_what_their_files_hold() -> None:
    folder = Path(__file__).parents[1] / "genkern" / "datasets"
    equal(read(folder / "splice_junctions.fasta.gz"), load_splice_junctions())
    equal(read(folder / "japanese_vowels.npz"), load_japanese_vowels(), ("ids",))


REAL: dict[str, dict[str, Any]] = {
    "celegans_5ss/celegans_5ss_25mer.fasta.gz": {"group": "offset"},
    "scope40/scope40.fasta.gz": {"label": r"^\S+ (\w\.\d+)\."},
    "exon_intron/human.fasta.gz": {},
    "hs3d_ei_true/hs3d_ei_true.fasta.gz": {"label": r"\|(\w+)$"},
    "hmmer_tutorial/globins45.fa": {},
    "webkb/webkb4.csv.gz": {"group": "university", "id": "file"},
    "mpeg7_shapes/mpeg7_chaincodes_96px.csv.gz": {"kind": "codes"},
    "uci_splice/splice.csv.gz": {},
    "unseen/surnames.csv.gz": {"kind": "symbols"},
    "bach_chorales/chorales.csv.gz": {"id": "chorale", "time": "st", "channels": ["pitch", "dur"]},
    "disdat/NSWtrain_po.csv.gz": {
        "id": "spid",
        "label": "group",
        "group": False,
        "kind": "points",
        "channels": ["x", "y"],
    },
    "ts_sets/BasicMotions.npz": {},
    "unseen/PLAID.npz": {},
    "unseen/ASLWords.npz": {"group": "speaker"},
    "fsdd/fsdd_mfcc13.npz": {"group": "speaker"},
}


@pytest.mark.parametrize("name", REAL)
def test_real_files_come_back(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (DATA / name).exists():
        pytest.skip(f"needs {name} of the data, see GENKERN_DATA")
    monkeypatch.setattr("genkern.io.files.FREE", 0)  # that small files are small excuses nothing
    data = read(DATA / name, **REAL[name])
    equal(whole(stream(DATA / name, batch=100, **REAL[name])), data)
    path = tmp_path / "file.jsonl.gz"
    write(data, path)
    equal(read(path), data)


def test_real_files_expand_far_less_than_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = [path for path in DATA.rglob("*") if path.suffix == ".npz" or (path.suffix in SUFFIXES and path.is_file())]
    if not packed:
        pytest.skip("needs compressed files of the data, see GENKERN_DATA")
    monkeypatch.setattr("genkern.io.files.FREE", 0)
    monkeypatch.setattr("genkern.io.files.EXPANSION", EXPANSION / 4)
    for path in packed:
        source = Source(path, Notes())
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as file:
                source.allow(sum(entry.file_size for entry in file.infolist()))
        else:
            assert sum(map(len, source.line_blocks())) > 0


def test_writing_is_whole_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.fa"
    path.write_text(">old\nACGT\n")
    bad = Dataset(["ACGT", "AC GT"], kind="symbols")
    with pytest.raises(ValueError, match="object 1"):
        write(bad, path)
    assert path.read_text() == ">old\nACGT\n"
    assert os.listdir(tmp_path) == ["a.fa"]
    for wrong, named in [
        (Dataset(["ACGT"], np.array(["a b"]), kind="symbols"), "without spaces"),
        (Dataset(["ACGT"], ids=["a b"], kind="symbols"), "identifier"),
        (Dataset([np.eye(2)], kind="series"), "holds symbols"),
        (Dataset(["ACGT"]), "known kind"),
    ]:
        with pytest.raises(ValueError, match=named):
            write(wrong, path)
    with pytest.raises(ValueError, match="format="):
        write(bad, tmp_path / "a.xyz")
    with pytest.raises(ValueError, match="one channel"):
        write(Dataset([np.eye(2)], kind="series"), path, format="wide")
    with pytest.raises(ReadError):
        read(tmp_path / "a.xyz")
