"""Posteriors of discrete hidden states: their names, their sums over time, and the symbols that states emitted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.data.intake import locate
from genkern.data.objects import Alphabet, Packed
from genkern.validation import Floats


def state_names(sizes: Sequence[int], repeat: int = 1) -> list[str]:
    """Return the indices of (pairs of) states as text, with the chain in front if there are several."""
    chains = [f"{c}," if len(sizes) > 1 else "" for c in range(len(sizes))]
    return [
        chain + ",".join(map(str, states))
        for chain, n in zip(chains, sizes)
        for states in product(range(n), repeat=repeat)
    ]


def flat_rows(array: Floats) -> Floats:
    """Return an array of n rows as a matrix, also where n is zero."""
    return array.reshape(len(array), int(np.prod(array.shape[1:])))


def sum_pieces(terms: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Return sums (n, ...) of consecutive pieces of terms (P, ...), zero for empty pieces."""
    sums = np.zeros((len(offsets) - 1, *terms.shape[1:]))
    filled = np.flatnonzero(np.diff(offsets))
    if len(filled):
        sums[filled] = np.add.reduceat(terms, offsets[filled], axis=0)
    return sums


def pair_offsets(packed: Packed) -> NDArray[np.int64]:
    """Return the offsets of the pairs of neighbouring positions of each object."""
    return packed.offsets - np.arange(len(packed.offsets))


def chain_visits(start: Floats, transitions: Floats, by_start: Floats, by_transitions: Floats) -> Floats:
    """Return expected visits (G, n) of a chain's states, from raw derivatives by its start and transitions."""
    visits: Floats = start * by_start + (transitions * by_transitions).sum(axis=1)
    return visits


def symbol_probs(leaf: Any, alphabet: Alphabet) -> Floats:
    """Return P(symbol a | state i) as (n, m)."""
    probs: Floats = np.exp(leaf.log_density(np.arange(alphabet.size, dtype=np.int32))).T
    return probs


def count_symbols(packed: Packed, gamma: Floats, leaf: Any, who: str) -> Floats:
    """Return how often each state is expected to have emitted each symbol, (n_objects, S, m), from posteriors (N, S).

    An ambiguous symbol counts for its members by their posterior probability under ``leaf``, the emissions of the
    states; without these (None) it is refused.
    """
    alphabet, codes = packed.alphabet, packed.values
    assert alphabet is not None
    if leaf is None and (unknown := np.flatnonzero(codes >= alphabet.size)).size:
        index, position = locate(packed.offsets, int(unknown[0]))
        symbol = alphabet.decode(codes[unknown[:1]])[0]
        raise ValueError(
            f"{who}: object {index}, position {position} is the ambiguous symbol {symbol!r}, which this model does not "
            "share out among its members. Use its to_hmm()."
        )
    rows, width = packed.n_objects, alphabet.n_codes
    cells = packed.owners * width + codes
    by_code: Floats = np.stack([np.bincount(cells, g, rows * width).reshape(rows, width) for g in gamma.T], axis=1)
    counts = by_code[..., : alphabet.size]
    if codes.max() >= alphabet.size:
        probs = symbol_probs(leaf, alphabet)
        totals = probs @ alphabet.extras.T
        for code, members in enumerate(alphabet.extras):
            joint, total = members * probs, totals[:, code, None]
            share = np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)
            counts = counts + by_code[..., alphabet.size + code, None] * share
    return counts
