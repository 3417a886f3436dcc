"""Profiles from alignments: which columns are the family's, how much each sequence counts, and counts of paths."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.data.objects import Alphabet, as_alphabet
from genkern.models.profile.background import background_of
from genkern.models.profile.priors import Mixture, priors_of
from genkern.validation import Floats, check_number

GAPS = "-._~ "
WHO = "ProfileHMM.from_alignment"
BITS, TOTAL = 0.59, 45.0  # of relative entropy of a column, and of all columns of short profiles, as hmmbuild aims at
SPAN = 0.5  # share of the alignment below which a sequence is a fragment, whose ends are not deletions


class Counts(NamedTuple):
    """Weighted counts of a profile: match (K, m), insert (K + 1, m) and transitions (K + 1, 7)."""

    match: Floats
    insert: Floats
    transitions: Floats


def fields_of(alignment: Any, alphabet: Any, columns: float, prior: Any, effective: Any) -> dict[str, Any]:
    """Return the arguments of the profile of an alignment; see ``ProfileHMM.from_alignment``."""
    rows, letters = as_rows(alignment), as_alphabet(alphabet)
    check_number(columns, "columns", WHO)
    table = _encoded(rows, letters)
    null = background_of(letters)
    priors = priors_of(prior, letters, null, WHO)
    weights = _weights(table, letters)
    there = np.where(_inside(table), weights[:, None], 0.0).sum(axis=0)
    share = np.where(table >= 0, weights[:, None], 0.0).sum(axis=0) / np.maximum(there, 1e-300)
    chosen = share >= columns if columns > 0 else share > 0.0
    if not chosen.any():
        raise ValueError(f"{WHO}: no column has symbols in {columns:g} of the sequences. Lower 'columns'.")
    counts = _count(table, chosen, weights, letters)
    factor = effective_number(counts.match, priors.match, null, effective, float(len(rows))) / len(rows)
    match, insert, moves = (factor * part for part in counts)
    transitions = np.tile(np.array([1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0]), (len(insert), 1))
    return {
        "match": priors.match.mean(match),
        "insert": priors.insert.mean(insert),
        "transitions": priors.transitions(moves, transitions),
        "null": null,
        "alphabet": letters,
    }


def as_rows(alignment: Any) -> list[str]:
    """Return the rows of an alignment: strings of one length, or those of a file in Stockholm or FASTA format."""
    if isinstance(alignment, str | os.PathLike):
        alignment = _read_rows(Path(alignment))
    rows = list(alignment)
    if not rows or not all(isinstance(row, str) and row for row in rows):
        raise TypeError(f"{WHO}: expected the path of a file, or a list of strings. Got {alignment!r:.80}.")
    lengths = np.array([len(row) for row in rows])
    if (lengths != lengths[0]).any():
        i = int(np.argmax(lengths != lengths[0]))
        raise ValueError(
            f"{WHO}: rows of an alignment have one length. Row 0 has {lengths[0]} letters, row {i} {lengths[i]}; align "
            "them, or fit unaligned sequences by ProfileHMMEstimator."
        )
    return rows


def _read_rows(path: Path) -> list[str]:
    """Return the rows of the first alignment in a file."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    rows: dict[str, list[str]] = {}
    if lines and lines[0].startswith("# STOCKHOLM"):
        for line in lines[1:]:
            if line.startswith("//"):
                break
            words = line.split()
            if len(words) == 2 and not line.startswith("#"):
                rows.setdefault(words[0], []).append(words[1])
        return ["".join(parts) for parts in rows.values()]
    last: list[str] = []
    for number, line in enumerate(lines, 1):
        if line.startswith(">"):
            last = rows.setdefault(f"{number}", [])
        elif line.strip() and not rows:
            raise ValueError(f"{WHO}: {str(path)!r} is neither Stockholm nor FASTA: line {number} is {line!r:.60}.")
        else:
            last.append(line.strip())
    return ["".join(parts) for parts in rows.values()]


def _encoded(rows: list[str], alphabet: Alphabet) -> NDArray[np.int64]:
    """Return the codes of an alignment (n, columns), -1 for gaps."""
    table = np.full((len(rows), len(rows[0])), -1, np.int64)
    for i, row in enumerate(rows):
        filled = np.array([letter not in GAPS for letter in row])
        if not filled.any():
            raise ValueError(f"{WHO}: row {i} has gaps only. Leave it out.")
        text = "".join(letter for letter in row if letter not in GAPS)
        table[i, filled] = alphabet.encode(text, i, WHO)
    return table


def _weights(table: NDArray[np.int64], alphabet: Alphabet) -> Floats:
    """Return position-based weights (n,) that sum to n (Henikoff & Henikoff 1994): rare symbols weigh more."""
    known = (table >= 0) & (table < alphabet.size)
    weights = np.zeros(len(table))
    for column in np.flatnonzero(known.any(axis=0)):
        rows = np.flatnonzero(known[:, column])
        sizes = np.bincount(table[rows, column], minlength=alphabet.size)
        weights[rows] += 1.0 / (np.count_nonzero(sizes) * sizes[table[rows, column]])
    lengths = known.sum(axis=1)
    weights /= np.maximum(lengths, 1)
    total = weights.sum()
    return weights * (len(table) / total) if total > 0 else np.ones(len(table))


def _count(table: NDArray[np.int64], chosen: NDArray[np.bool_], weights: Floats, alphabet: Alphabet) -> Counts:
    """Return weighted counts of the paths of all rows; ambiguous symbols count for their members equally."""
    K, m = int(chosen.sum()), alphabet.size
    found = Counts(np.zeros((K, m)), np.zeros((K + 1, m)), np.zeros((K + 1, 7)))
    members = alphabet.members / alphabet.members.sum(axis=1, keepdims=True)
    for row, weight in zip(table, weights):
        path = _path(row, chosen)
        for kind, k, code in path[1:]:
            if code >= 0:
                (found.match[k - 1] if kind == "M" else found.insert[k])[:] += weight * members[code]
        last = len(path) - 1
        for i, (kind, k, _) in enumerate(path):
            after = path[i + 1][0] if i < last else "M" if k == K else ""
            place = {"MM": 0, "MI": 1, "MD": 2, "IM": 3, "II": 4, "DM": 5, "DD": 6}.get(kind + after)
            if place is not None:
                found.transitions[k, place] += weight
    return found


def _inside(table: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return where an alignment says something of a sequence: not before and after a fragment."""
    width = table.shape[1]
    first = np.argmax(table >= 0, axis=1)
    last = width - 1 - np.argmax(table[:, ::-1] >= 0, axis=1)
    places = np.arange(width)
    within = (places >= first[:, None]) & (places <= last[:, None])
    whole: NDArray[np.bool_] = within | (last - first + 1 >= SPAN * width)[:, None]
    return whole


def _path(row: NDArray[np.int64], chosen: NDArray[np.bool_]) -> list[tuple[str, int, int]]:
    """Return the states of a row, (kind, node, code): an insertion beside a deletion becomes a match."""
    inside, path, k = _inside(row[None])[0], [("M", 0, -1)], 0
    for column, code in enumerate(row.tolist()):
        if chosen[column]:
            k += 1
            if not inside[column]:
                continue
            kind = "M" if code >= 0 else "D"
            if kind == "D" and path[-1][0] == "I":  # an insertion before a deletion is in its column
                _, _, inserted = path.pop()
                path.append(("M", k, inserted))
            else:
                path.append((kind, k, code))
        elif code >= 0:
            if path[-1][0] == "D" and path[-1][1] == k:  # an insertion after a deletion likewise
                path[-1] = ("M", k, code)
            else:
                path.append(("I", k, code))
    return path if inside[0] else path[1:]


def effective_number(counts: Floats, mixture: Mixture, null: Floats, effective: Any, n: float, who: str = WHO) -> float:
    """Return how many independent sequences n sequences with match counts (K, m) are worth."""
    if isinstance(effective, str) and effective == "all":
        return n
    if isinstance(effective, str) and effective != "entropy":
        raise ValueError(f"{who}: 'effective' must be 'entropy', 'all' or a number. Got {effective!r}.")
    if effective != "entropy":
        return float(check_number(effective, "effective", who, exclusive=True))
    K = len(counts)
    wanted = max(BITS, (TOTAL - np.log2(2.0 / (K * (K + 1.0)))) / K)

    def bits(size: float) -> float:
        rows = mixture.mean(counts * (size / n))
        return float((rows * np.log2(rows / np.maximum(null, 1e-300))).sum() / K)

    if bits(n) <= wanted:
        return n
    low, high = 0.0, n
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (low, middle) if bits(middle) > wanted else (middle, high)
    return high
