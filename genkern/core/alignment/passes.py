"""Log sums over the local alignments of many pairs: all of two lists, all of one, or each sequence with itself.

Of two sequences the shorter one is a lane and the longer one has the rows; of two as long, the order of their codes
decides. So a value depends on its pair only, also not on which of them is called x. Lanes are sorted, so that eight are
about as long, and are compared with all sequences that come later.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from genkern.core.alignment import lanes
from genkern.core.alignment.logs import pair_logs
from genkern.core.alignment.types import Costs, Floats, Ints, Sequences
from genkern.core.simd.vectors import W, padded

__all__ = ["Costs", "Sequences", "log_sums", "own_log_sums"]


def log_sums(x: Sequences, y: Sequences | None, costs: Costs) -> Floats:
    """Return log sums (n, n') between sequences of x and y; (n, n), symmetric, of x with itself for None."""
    n = len(x.offsets) - 1
    ranks = _ranks(x, y)
    if y is None:
        found = np.empty((n, n))
        for place, values in _later(x, ranks, x, ranks, costs):
            found[place] = found[place[::-1]] = values
        return found
    found = np.empty((n, len(y.offsets) - 1))
    for place, values in _later(x, ranks[:n], y, ranks[n:], costs):
        found[place] = values
    for place, values in _later(y, ranks[n:], x, ranks[:n], costs):
        found[place[::-1]] = values
    return found


def own_log_sums(x: Sequences, costs: Costs) -> Floats:
    """Return log sums (n,) of sequences with themselves."""
    found, ranks = np.empty(len(x.offsets) - 1), _ranks(x, None)
    for (i, j), values in _later(x, ranks, x, ranks, costs, near=True):
        found[i[i == j]] = values[i == j]
    return found


def _ranks(x: Sequences, y: Sequences | None) -> Ints:
    """Return the places of all sequences in the order of lengths and codes; equal ones have the same."""
    keys = [
        (stop - start, part.codes[start:stop].tobytes())
        for part in (x, y)
        if part is not None
        for start, stop in zip(part.offsets[:-1].tolist(), part.offsets[1:].tolist())
    ]
    places = {key: place for place, key in enumerate(sorted(set(keys)))}
    return np.array([places[key] for key in keys], np.int64)


def _later(
    x: Sequences, x_ranks: Ints, y: Sequences, y_ranks: Ints, costs: Costs, near: bool = False
) -> Iterator[tuple[tuple[Ints, Ints], Floats]]:
    """Yield places (i, j) and log sums of all pairs in which the sequence of y does not come before that of x.

    With ``near``, where y is x, only of some, each sequence with itself among them.
    """
    tile = lanes.tile_size(costs)
    x_order, y_order = np.argsort(x_ranks, kind="stable"), np.argsort(y_ranks, kind="stable")
    if not tile:
        for i in x_order:
            j = np.array([i]) if near else y_order[np.searchsorted(y_ranks[y_order], x_ranks[i]) :]
            i = np.full(len(j), i)
            yield (i, j), pair_logs(y, x, np.column_stack([j, i]), costs)
        return
    used, place = np.unique(np.concatenate([x.codes, y.codes]), return_inverse=True)
    columns, rows = place[: len(x.codes)], _padded(place[len(x.codes) :], y.offsets, tile, len(used))
    table = np.zeros((len(used) + 1, len(used) + 1))
    table[:-1, :-1] = np.exp(costs.scores[np.ix_(used, used)])
    groups = np.full(padded(len(x_order)), -1)
    groups[: len(x_order)] = x_order
    longest = int(np.diff(rows.offsets).max(initial=0)), int(np.diff(x.offsets).max(initial=0))
    plan, buffer, weights = lanes.workspace(costs, tile, len(used) + 1, longest)
    for group in groups.reshape(-1, W):
        own = group[group >= 0]
        j = own if near else y_order[np.searchsorted(y_ranks[y_order], x_ranks[own[0]]) :]
        if len(j):
            strips = lanes.fill(plan, table, columns, x.offsets, group, weights)
            values = np.empty((len(j), W))
            lanes.run(plan, weights, strips, rows.codes, rows.offsets, j, buffer, values)
            later, lane = np.nonzero(y_ranks[j][:, None] >= x_ranks[own])
            yield (own[lane], j[later]), values[later, lane]


def _padded(codes: Ints, offsets: Ints, tile: int, null: int) -> Sequences:
    """Return sequences whose lengths are multiples of a tile, with a code without weight at their ends."""
    lengths = np.diff(offsets)
    ends = np.concatenate([[0], np.cumsum((lengths + tile - 1) // tile * tile)])
    whole = np.full(ends[-1], null)
    whole[np.arange(len(codes)) + np.repeat(ends[:-1] - offsets[:-1], lengths)] = codes
    return Sequences(whole, ends)
