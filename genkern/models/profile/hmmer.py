"""Profiles in the ASCII files of HMMER3: negative logarithms of probabilities, node by node."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from genkern.validation import Floats

if TYPE_CHECKING:
    from genkern.models.profile.model import ProfileHMM

ALPHABETS = {"amino": "protein", "dna": "dna", "rna": "rna"}
FIELDS = 7  # transitions of a node
ROUNDED = 1e-3  # by how much a row of probabilities may miss one; five decimals of logarithms miss it by less
WHO = "ProfileHMM.from_hmmer"


def read_hmmer(path: Any, name: str | None) -> dict[str, Any]:
    """Return match, insert and transition probabilities and the alphabet of a profile in a file, as arguments."""
    opened: Any = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
    starts = [at for at, line in enumerate(lines) if line.startswith("HMMER3/")]
    if not starts:
        raise ValueError(
            f"{WHO}: {str(path)!r} is no profile of HMMER3: no line begins with 'HMMER3/'. hmmconvert turns older "
            "and binary files into such."
        )
    records = [_header(lines, at) for at in starts]
    names = [header.get("NAME", "?") for header, _ in records]
    if (name is None and len(records) > 1) or (name is not None and name not in names):
        raise ValueError(
            f"{WHO}: {str(path)!r} has {len(records)} profiles: {', '.join(names[:10])}"
            f"{', ...' if len(names) > 10 else ''}. Got name={name!r}; give one of these."
        )
    header, at = records[0 if name is None else names.index(name)]
    return _read_nodes(lines, at, header, str(path))


def _header(lines: list[str], at: int) -> tuple[dict[str, str], int]:
    """Return the fields of a header, and the line after the one that begins the nodes."""
    header: dict[str, str] = {}
    for row in range(at + 1, len(lines)):
        tag, _, value = lines[row].partition(" ")
        if tag == "HMM":
            return header, row + 2
        header.setdefault(tag, value.strip())
    return header, len(lines)


def _read_nodes(lines: list[str], at: int, header: dict[str, str], path: str) -> dict[str, Any]:
    """Return what the nodes of a profile say, from the line after their captions."""
    kind, length = header.get("ALPH", "").lower(), header.get("LENG", "")
    if kind not in ALPHABETS or not length.isdecimal() or int(length) < 1:
        raise ValueError(
            f"{WHO}: {path!r}: expected lines ALPH (amino, DNA or RNA) and LENG (a number above zero). Got "
            f"ALPH {kind!r:.40} and LENG {length!r:.40}; see whether the file is whole."
        )
    m = 20 if kind == "amino" else 4
    if at < len(lines) and lines[at].split()[:1] == ["COMPO"]:
        at += 1
    nodes = iter(enumerate(lines[at:], at + 1))
    inserts, moves, matches = [], [], []
    for k in range(int(length) + 1):
        if k:
            matches.append(_row(nodes, m, k, path, str(k)))
        inserts.append(_row(nodes, m, k, path))
        moves.append(_row(nodes, FIELDS, k, path))
    transitions = np.array(moves)
    transitions[0, 5:] = transitions[-1, 5:] = 1.0, 0.0  # written as probabilities of one
    rows = {"match": np.array(matches), "insert": np.array(inserts)}
    groups = [transitions[:, :3], transitions[:, 3:5], transitions[:, 5:]]
    scaled = {name: _scaled(table, name, path) for name, table in rows.items()}
    moved = np.hstack([_scaled(group, "transitions", path) for group in groups])
    return {**scaled, "transitions": moved, "alphabet": ALPHABETS[kind]}


def _row(nodes: Iterator[tuple[int, str]], count: int, k: int, path: str, label: str | None = None) -> Floats:
    """Return the probabilities on the next line, of node k; that of match states begins with the number of the node."""
    number, line = next(nodes, (0, ""))
    words = line.split()
    if label is not None:
        if words[:1] != [label]:
            raise ValueError(f"{WHO}: {path!r}: expected node {label} at line {number}. Got {line!r:.60}.")
        words = words[1:]
    try:
        values = [np.inf if word == "*" else float(word) for word in words[:count]]
    except ValueError:
        values = []
    if len(values) < count or not min(values) >= 0.0:
        raise ValueError(
            f"{WHO}: {path!r}, line {number or 'after the last'}: expected {count} numbers, negative logarithms of "
            f"probabilities of node {k}, or '*' for zero. Got {line!r:.60}; see whether the file is whole."
        )
    return np.exp(-np.array(values))


def _scaled(table: Floats, name: str, path: str) -> Floats:
    """Return rows of probabilities whose sums missed one by rounding."""
    sums = table.sum(axis=-1, keepdims=True)
    if np.abs(sums - 1.0).max() > ROUNDED:
        k = int(np.abs(sums - 1.0).max(axis=-1).argmax())
        raise ValueError(f"{WHO}: {path!r}: {name}, row {k}: probabilities sum to {sums[k, 0]:.6g}, expected one.")
    return table / sums


def write_hmmer(path: Any, model: ProfileHMM, name: str) -> None:
    """Write a profile; see ``ProfileHMM.to_hmmer``."""
    kinds = {value: key for key, value in ALPHABETS.items()}
    kind = kinds.get(model.alphabet.name or "")
    if kind is None or not name or any(letter.isspace() for letter in name):
        raise ValueError(
            "ProfileHMM.to_hmmer: needs the alphabet 'protein', 'dna' or 'rna', and a name without spaces. Got "
            f"{model.alphabet!r} and {name!r}."
        )
    K = model.n_columns
    width = 10
    letters = "".join(f"{letter:>{width}}" for letter in map(str, model.alphabet.symbols))
    arrows = "".join(f"{arrow:>{width}}" for arrow in ("m->m", "m->i", "m->d", "i->m", "i->i", "d->m", "d->d"))
    head = ["HMMER3/f [genkern]", f"NAME  {name}", f"LENG  {K}", f"ALPH  {kind if kind == 'amino' else kind.upper()}"]
    head += ["RF    no", "MM    no", "CONS  no", "CS    no", "MAP   no"]
    lines = [*head, f"HMM     {letters}", f"        {arrows}"]
    for k in range(K + 1):
        if k:
            lines.append(f"{k:>7} {_text(model.match[k - 1], width)}      - - - - -")
        lines += [f"        {_text(model.insert[k], width)}", f"        {_text(model.transitions[k], width)}"]
    Path(path).write_text("\n".join([*lines, "//", ""]), encoding="ascii")


def _text(row: Floats, width: int) -> str:
    """Return probabilities as negative logarithms."""
    with np.errstate(divide="ignore"):
        values = -np.log(row)
    return "".join(f"{'*' if value == np.inf else f'{abs(value):.7f}':>{width}}" for value in values.tolist())
