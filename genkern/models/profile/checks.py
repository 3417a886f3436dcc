"""What the constructor of a profile model takes: defaults, shapes, rows of probabilities, and names of parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.data.objects import Alphabet
from genkern.models.profile.background import background_of
from genkern.validation import Floats, check_array, check_probabilities

BLOCKS = ("match", "insert", "transitions", "entry", "exits", "flanks")
TRANSITIONS = ("MM", "MI", "MD", "IM", "II", "DM", "DD")
ROWS = {"transitions": (slice(0, 3), slice(3, 5), slice(5, 7))}  # groups of one distribution each; else whole rows
TYPICAL = (0.98, 0.01, 0.01, 0.5, 0.5, 0.5, 0.5)  # of all nodes but the last
FLANKS = ("N,stay", "N,go", "J,stay", "J,go", "C,stay", "C,go", "E,again", "E,end")
EXITS = ("leave", "stay")


def check_profile(match: Floats, given: dict[str, Any], alphabet: Alphabet) -> dict[str, Floats]:
    """Return all arrays of a profile model, checked, from what was given or by default."""
    if match.ndim < 2 or match.shape[-1] != alphabet.size:
        raise ValueError(
            f"ProfileHMM: 'match' must have shape batch + (K, {alphabet.size}), one row per column of the family and "
            f"one entry per letter of the alphabet. Got shape {match.shape}."
        )
    *batch, K, m = match.shape
    shapes = {"insert": (K + 1, m), "transitions": (K + 1, 7), "entry": (K + 1,), "exits": (K + 1, 2)}
    shapes |= {"flanks": (4, 2), "null": (m,)}
    default = default_fields(K, alphabet)
    found = {"match": match}
    for name, shape in shapes.items():
        value = default[name] if given[name] is None else given[name]
        table = check_array(value, name, "ProfileHMM")
        if given[name] is None or (name == "null" and table.ndim == 1):
            table = np.broadcast_to(table, (*batch, *shape))
        table = check_array(table, name, "ProfileHMM", shape=(*batch, *shape)).copy()
        for rows in ROWS.get(name, (slice(None),)):
            table[..., rows] = check_probabilities(table[..., rows], name, "ProfileHMM")
        found[name] = table
    if given["insert"] is None:
        found["insert"] = np.broadcast_to(found["null"][..., None, :], (*batch, K + 1, m)).copy()
    _check_ends(found)
    return {name: found[name] for name in (*BLOCKS, "null")}


def default_fields(K: int, alphabet: Alphabet) -> dict[str, Floats]:
    """Return the defaults of the arrays of a profile of K columns: full passages, one for each sequence."""
    transitions = np.tile(TYPICAL, (K + 1, 1))
    transitions[0, 5:] = transitions[K, 5:] = 1.0, 0.0
    transitions[K, :3] = 0.99, 0.01, 0.0
    background = background_of(alphabet)
    stay = K / (K + 2.0)  # K / 2 symbols on average
    return {
        "transitions": transitions,
        "entry": np.eye(1, K + 1)[0],
        "exits": np.tile([0.0, 1.0], (K + 1, 1)),
        "flanks": np.array([[stay, 1.0 - stay], [stay, 1.0 - stay], [stay, 1.0 - stay], [0.0, 1.0]]),
        "null": background,
        "insert": np.tile(background, (K + 1, 1)),
    }


def _check_ends(found: dict[str, Floats]) -> None:
    """Refuse passages that do not end, or take no symbol and may come again; paths to columns that do not exist."""
    transitions, flanks = found["transitions"], found["flanks"]
    K = transitions.shape[-2] - 1
    missing = {"the deletion of node 0 (DD)": transitions[..., 0, 6], f"MD of node {K}": transitions[..., K, 2]}
    missing |= {f"DD of node {K}": transitions[..., K, 6], "exits[0, 0]": found["exits"][..., 0, 0]}
    for name, value in missing.items():
        if (value != 0.0).any():
            raise ValueError(
                f"ProfileHMM: {name} must be zero: there is no such path. Got {value.max()}; move it to the rest."
            )
    if (transitions[..., 4] >= 1.0).any():
        at = tuple(int(i) for i in np.argwhere(transitions[..., 4] >= 1.0)[0])
        raise ValueError(
            f"ProfileHMM: 'transitions' II of node {at} is one, so that an insertion never ends. Lower it."
        )
    if (flanks[..., 0] >= 1.0).any():
        at = tuple(int(i) for i in np.argwhere(flanks[..., 0] >= 1.0)[0])
        raise ValueError(f"ProfileHMM: 'flanks' of row {at} stays with probability one, and never ends. Lower it.")
    silent = found["entry"][..., 0] * transitions[..., 0, 2] * flanks[..., 3, 0]
    if (silent > 0.0).any():
        raise ValueError(
            "ProfileHMM: passages may be repeated ('flanks' row 3) and begin with a deletion (node 0), so that one may "
            "take no symbol at all. Take local entries, entry[0] = 0, as with_flanks(..., hits='several') does."
        )


def name_parameters(fields: dict[str, Floats], alphabet: Alphabet) -> list[str]:
    """Return names such as ``match[3,A]`` (column 3), ``insert[0,C]``, ``transitions[3,MM]``, ``flanks[N,stay]``."""
    names = []
    for name in BLOCKS:
        nodes = range(fields[name].shape[0])
        if name == "match":
            names += [f"match[{k + 1},{letter}]" for k in nodes for letter in alphabet.symbols]
        elif name == "entry":
            names += [f"entry[{k}]" for k in nodes]
        elif name == "flanks":
            names += [f"flanks[{pair}]" for pair in FLANKS]
        else:
            last = {"insert": alphabet.symbols, "transitions": TRANSITIONS, "exits": EXITS}[name]
            names += [f"{name}[{k},{label}]" for k in nodes for label in last]
    return names
