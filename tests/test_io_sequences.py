"""FASTA, FASTQ and Stockholm files: every rule for what real files contain, against plain loops."""

from __future__ import annotations

import gzip
import os
import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from genkern import io, read
from genkern.io import ReadError, stream

DATA = Path(os.environ.get("GENKERN_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))
HERE = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def file(tmp_path: Path, text: str | bytes, name: str = "a.fa") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def rules(data: Any) -> dict[str, int]:
    return {rule: entry["count"] for rule, entry in data.meta["rules"].items()}


def plain(text: str) -> tuple[list[str], list[str]]:
    """Return headers and letters of a FASTA file by a plain loop."""
    headers: list[str] = []
    bodies: list[str] = []
    for line in text.splitlines():
        if line.startswith(">"):
            headers.append(line[1:])
            bodies.append("")
        elif line.strip():
            bodies[-1] += line.strip()
    return headers, bodies


@HERE
@given(
    records=st.lists(
        st.tuples(st.text("abcdef019.>_", min_size=1, max_size=8), st.lists(st.text("ACGT", max_size=9), max_size=4)),
        min_size=1,
        max_size=12,
    ),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    block=st.integers(1, 40),
)
def test_any_wrapping_reads_as_a_plain_loop(records: Any, end: str, block: int, tmp_path: Path) -> None:
    text = end.join(f">{name}{end}{end.join(rows)}" for name, rows in records) + end
    headers, bodies = plain(text.replace("\r\n", "\n").replace("\r", "\n"))
    path = file(tmp_path, text)
    kept = [k for k, body in enumerate(bodies) if body]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("genkern.io.files.BLOCK", block)
        if not kept:
            with pytest.raises(ReadError):
                read(path)
            return
        data = read(path)
        assert [bodies[k] for k in kept] == data.X
        assert [headers[k].split()[0] for k in kept] == data.ids
        assert rules(data).get("empty records, left out", 0) == len(bodies) - len(kept)
        parts = list(stream(path, batch=3))
        assert [x for part in parts for x in part.X] == data.X
        assert all(len(part) == 3 for part in parts[:-1])


def test_case_u_iupac_and_spaces_are_read_by_rule(tmp_path: Path) -> None:
    letters = "ACGTACGTACGTACGTACGTACGTACGTACGT"
    data = read(file(tmp_path, f">a\nacgu{letters}\n>b\nACGTR{letters}\n>c\nAC GT\t{letters}\n"))
    assert [f"ACGT{letters}", f"ACGTR{letters}", f"ACGT{letters}"] == data.X
    assert data.meta["alphabet"] == "dna"
    assert rules(data) == {
        "records with white space among letters, removed": 1,
        "records with U in DNA, read as T": 1,
        "records with lower case, read as upper case": 1,
        "records with letters that are ambiguous or unknown, kept": 1,
    }
    assert "line 1 (a)" in data.meta["rules"]["records with U in DNA, read as T"]["first"]
    assert any("U in DNA" in line for line in data.summary())
    rna = read(file(tmp_path, ">a\nACGU\n>b\nggua\n"))
    assert (rna.X, rna.meta["alphabet"]) == (["ACGU", "GGUA"], "rna")
    assert read(file(tmp_path, ">a\nACGU\n"), alphabet="dna").X == ["ACGT"]
    assert read(file(tmp_path, ">a\nACGT\n"), alphabet="rna").X == ["ACGU"]


def test_stops_of_proteins_are_removed_at_the_end(tmp_path: Path) -> None:
    data = read(file(tmp_path, ">a\nMEFLIPQ*\n>b\nMEF*LIPQ\n"))
    assert data.X == ["MEFLIPQ", "MEF*LIPQ"]
    assert data.meta["alphabet"] == "protein"
    assert rules(data) == {"'*' at the end of a protein, removed": 1, "records with '*' inside, kept as unknown": 1}
    with pytest.raises(ReadError, match=r"line 1.*'\*'"):
        read(file(tmp_path, ">a\nACGT*\n"))


def test_gaps_are_kept_in_alignments_and_asked_about_elsewhere(tmp_path: Path) -> None:
    aligned = read(file(tmp_path, ">a\nAC-GT\n>b\nACCG.\n"))
    assert aligned.X == ["AC-GT", "ACCG-"]
    assert rules(aligned) == {"records with gaps, kept as '-'": 2}
    mixed = file(tmp_path, ">a\nAC-GT\n>b\nACC\n")
    with pytest.raises(ReadError, match=r"line 1: .*gap '-'.*gaps='remove'.*gaps='keep'"):
        read(mixed)
    assert read(mixed, gaps="remove").X == ["ACGT", "ACC"]
    assert read(mixed, gaps="keep").X == ["AC-GT", "ACC"]
    assert read(file(tmp_path, ">a\nAC-GT\n>b\nACCG.\n"), gaps="remove").X == ["ACGT", "ACCG"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ACGT\n", "line 1: expected a header that begins with '>'. Got 'ACGT'"),
        ("\n\nACGT\n>a\nACGT\n", "line 3"),
        (
            ">a\nACGT\n>b\nAC1T\n",
            "line 3: expected letters of DNA, RNA or proteins. Got the symbol '1' \\(record 'b'\\)",
        ),
        (">a\n" + "ACGT" * 30 + "\n>b\nACGTE\n", "line 3: .*'E', where .* alphabet='dna'"),
        (">a\nRYKMSW\n", "line 1: .*could be nucleotides .* alphabet='dna', 'rna' or 'protein'"),
        (
            ">a\n" + "ACGT" * 10 + "\n>b\n" + "MEFLIPQHKDS" * 20 + "\n",
            "line 1: expected one alphabet. Got nucleotides in 'a'",
        ),
        (">a\n---\n", "expected letters"),
        (">a\nACGT\n>b\nAC\u00e9T\n", "line 3: .*\u00e9"),
    ],
)
def test_what_is_wrong_or_unclear_is_said(text: str, message: str, tmp_path: Path) -> None:
    path = file(tmp_path, text)
    with pytest.raises(ReadError, match=message):
        read(path)
    with pytest.raises(ReadError, match=message):
        list(stream(path))


def test_other_symbols_need_their_alphabet(tmp_path: Path) -> None:
    path = file(tmp_path, ">a\n0110\n>b\n10\n")
    assert read(path, alphabet="01").X == ["0110", "10"]
    assert read(path, kind="codes").kind == "codes"
    with pytest.raises(ReadError, match=r"line 1: .*symbols of 'ab'"):
        read(path, alphabet="ab")
    assert read(file(tmp_path, ">a\nacGT\n"), alphabet="acGT").X == ["acGT"]


def test_labels_come_from_headers(tmp_path: Path) -> None:
    path = file(tmp_path, ">a|x1 class=u pos=3\nACGT\n>b|x2 subclass=q class=v;z\nACG\n")
    assert read(path).y.tolist() == ["u", "v"]
    assert read(path, label=r"\|(x\d)").y.tolist() == ["x1", "x2"]
    assert read(path, label=re.compile(r"class=(\w)"), group=r"^(\w)").groups.tolist() == ["a", "b"]  # type: ignore[union-attr]
    assert read(path, label=False).y is None
    with pytest.raises(ReadError, match=r"line 3: expected a label, .*pos=.*label=False"):
        read(path, label="pos")
    with pytest.raises(ReadError, match=r"line 3: .*in all headers or in none"):
        read(file(tmp_path, ">a class=x\nACGT\n>b\nACGT\n"))
    for wrong in ("(", "(a)(b)"):
        with pytest.raises(ValueError, match="label="):
            read(path, label=wrong)


@HERE
@given(st.lists(st.text(" \t=|;,classx1", max_size=14).map(lambda text: "i " + text), min_size=1, max_size=5))
def test_quick_labels_are_those_of_the_regular_expression(headers: list[str]) -> None:
    from genkern.io.labels import CLASS, _plain_keys

    quick = _plain_keys(headers)
    if quick is not None:
        slow = [match and match.group(1) for match in map(CLASS.search, headers)]
        assert [label or None for label in quick] == slow


def test_labels_come_from_tables_and_from_files(tmp_path: Path) -> None:
    path = file(tmp_path, ">a\nACGT\n>b\nACG\n")
    table = file(tmp_path, "name,other,class\na,1,u\nb,2,v\nc,3,w\n", "labels.csv")
    data = read(path, labels=table)
    assert data.y.tolist() == ["u", "v"]
    assert rules(data) == {"labels of records that did not come": 1}
    assert read(path, labels=table, label="other", id="name").y.tolist() == ["1", "2"]
    assert read(path, labels={"a": 0, "b": 1}).y.tolist() == [0, 1]
    with pytest.raises(ReadError, match=r"line 3: .*none for 'b'"):
        read(path, labels={"a": 0})
    with pytest.raises(ReadError, match=r"line 3: .*'v' for 'a', after 'u'"):
        read(path, labels=file(tmp_path, "id,class\na,u\na,v\n", "twice.csv"))
    other = file(tmp_path, ">c class=zzz\nGGG\n", "b.fa")
    both = read({"exon": path, "intron": other})
    assert both.y.tolist() == ["exon", "exon", "intron"]
    assert both.ids == ["a", "b", "c"]
    assert [part.y.tolist() for part in stream({"exon": path, "intron": other}, batch=2)] == [
        ["exon", "exon"],
        ["intron"],
    ]
    assert read([path, path]).X == ["ACGT", "ACG"] * 2
    assert rules(read([path, path])) == {"identifiers that come again, kept": 2}
    protein = file(tmp_path, ">p\nMEFLIPQ\n", "p.fa")
    for call in (read, lambda paths: list(stream(paths))):
        with pytest.raises(ReadError, match="one alphabet in all files"):
            call([path, protein])
    with pytest.raises(ReadError, match="y in one, none in another"):
        read([path, other])


def test_long_lines_and_comments(tmp_path: Path) -> None:
    long = "ACGT" * 300_000
    data = read(file(tmp_path, f";comment\n>a\n{long}\n;inside\nGG\n>b\nAC\n"))
    assert [long + "GG", "AC"] == data.X
    assert rules(data) == {"comment lines, left out": 2}


def test_fastq_is_read_and_checked(tmp_path: Path) -> None:
    path = file(tmp_path, "@a class=x\nACGT\n+\n@III\n@b class=y\nGGN\n+b\nIII\n\n", "a.fq")
    data = read(path)
    assert (data.X, data.ids, data.y.tolist()) == (["ACGT", "GGN"], ["a", "b"], ["x", "y"])
    assert read(file(tmp_path, path.read_bytes(), "unknown")).meta["format"] == "fastq"
    for text, message in [
        ("@a\nACGT\n+\nIII\n", "line 4: expected one quality per letter. Got 3 qualities for 4 letters"),
        ("@a\nACGT\nIIII\n@b\n", "line 3: expected a line that begins with '\\+'"),
        ("@a\nACGT\n+\nIIII\n>b\nAC\n+\nII\n", "line 5: expected a header that begins with '@'"),
        ("@a\nACGT\n+\nIIII\n@b\nAC\n", "line 5: expected four lines"),
    ]:
        with pytest.raises(ReadError, match=message):
            read(file(tmp_path, text, "a.fq"))


def test_stockholm_alignments(tmp_path: Path) -> None:
    text = "# STOCKHOLM 1.0\n#=GF ID fam\n#=GF AC X1.2\n\na  MEF-L\nb  MEFwL\n#=GC SS  HHHHH\n\na  IP\nb  I.\n//\n"
    data = read(file(tmp_path, text, "a.sto"))
    assert data.X == ["MEF-LIP", "MEFWLI-"]
    assert (
        read(file(tmp_path, text + text.replace("fam", "sec"), "b.sto"), label="ID").y.tolist()
        == ["fam"] * 2 + ["sec"] * 2
    )
    assert read(file(tmp_path, text, "c.sto"), gaps="remove").X == ["MEFLIP", "MEFWLI"]
    for wrong, message in [
        (text.replace("b  I.", "b  I"), "line 6: expected rows of one length"),
        (text.replace("//\n", ""), "cut off"),
        (text.replace("//\n", "") + text, "line 11: expected '//' after the alignment of line 1"),
        (text.replace("a  IP", "a"), "line 9: expected a name and a row"),
        (text.removeprefix("# STOCKHOLM 1.0\n"), "line 1: expected the line '# STOCKHOLM"),
    ]:
        with pytest.raises(ReadError, match=message):
            read(file(tmp_path, wrong, "d.sto"))


@pytest.mark.parametrize(
    "name", ["scope40/scope40.fasta.gz", "exon_intron/human.fasta.gz", "hmmer_tutorial/globins45.fa"]
)
def test_real_files_read_as_by_a_plain_loop(name: str) -> None:
    if not (DATA / name).exists():
        pytest.skip(f"needs {name} of the data, see GENKERN_DATA")
    content = (DATA / name).read_bytes()
    headers, bodies = plain((gzip.decompress(content) if name.endswith("gz") else content).decode())
    data = read(DATA / name)
    assert [body.upper() for body in bodies] == data.X
    assert data.ids == [header.split()[0] for header in headers]


def test_streams_take_constant_memory(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    letters = "".join(rng.choice(list("ACGT"), 100_000))
    peaks = []
    for n in (40_000, 160_000):
        path = tmp_path / f"{n}.fa"
        with open(path, "w") as out:
            out.writelines(f">r{k} class=a\n{letters[k % 99_000 : k % 99_000 + 100]}\n" for k in range(n))
        tracemalloc.start()
        assert sum(len(part) for part in io.stream(path, batch=1000)) == n
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] < 40e6
