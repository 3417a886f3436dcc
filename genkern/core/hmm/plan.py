"""How many sequences are laid out and split: choice of the layout, groups of similar length, chunks of equal cost."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from genkern.core.hmm.few_lanes import QUAD, is_few
from genkern.core.hmm.types import Ints
from genkern.core.simd.vectors import W, padded

QUADS, LANES, GROUPS, SINGLE = "quads", "lanes", "groups", "single"

# Most states of own chains for which a lane is a sequence: while their parameters fit the first-level cache. With one
# shared chain, matrix products are faster as soon as there are more than four states.
OWN_LANES = 12

LARGEST_GROUP = 1 << 25  # most doubles kept for the messages of eight sequences; longer ones are computed one by one

CHUNKS = 16  # partial sums of totals; fixed, so that totals do not depend on the number of threads
LARGEST_TOTAL = 1 << 22  # most doubles of all partial sums


class LayoutPart(NamedTuple):
    """Objects of one layout: groups of eight by ascending length (B, 8), -1 for empty lanes; chunk bounds (C + 1,)."""

    layout: str
    members: Ints
    bounds: Ints


class Plan(NamedTuple):
    """Parts by layout, and for each object the chunk (n_objects,) to whose partial sum it belongs."""

    parts: tuple[LayoutPart, ...]
    chunk_of: Ints
    n_chunks: int


def layout_of(n: int, length: int, own: bool, largest: int | None = None) -> str:
    """Choose the layout of an object from its number of states, its length and whether its chain is its own.

    Not from the number of objects or threads, so that a result never depends on the other objects.
    """
    if n * length * 2 * W > (LARGEST_GROUP if largest is None else largest):
        return SINGLE
    if n <= QUAD:
        return QUADS
    if own:
        return LANES if n <= OWN_LANES else SINGLE
    return GROUPS


def plan(offsets: Ints, n: int, own: bool, total_size: int, largest: int | None = None) -> Plan:
    """Return the plan for objects at these offsets.

    total_size: doubles of one slot of derivatives; largest: most doubles for the messages of eight sequences.
    """
    chunks = max(1, min(CHUNKS, LARGEST_TOTAL // max(total_size, 1)))
    return _plan(offsets.tobytes(), n, own, chunks, LARGEST_GROUP if largest is None else largest)


@lru_cache(maxsize=32)
def _plan(raw_offsets: bytes, n: int, own: bool, chunks: int, largest: int) -> Plan:
    """Lay out objects; kept for the next call, since iterative algorithms ask for the same plan again and again."""
    offsets: Ints = np.frombuffer(raw_offsets, np.int64)
    lengths = offsets[1:] - offsets[:-1]
    order = np.argsort(lengths, kind="stable")
    # Within one call only the length changes the layout, and at most once: the longest may be computed one by one.
    longest = largest // (n * 2 * W)
    split = int(np.searchsorted(lengths[order], longest, side="right"))
    parts: list[LayoutPart] = []
    chunk_of, first = np.zeros(len(lengths), np.int64), 0
    for objects in (order[:split], order[split:]):
        if len(objects):
            layout = layout_of(n, int(lengths[objects[0]]), own, largest)
            part = _part(layout, objects, lengths, chunks)
            for chunk in range(len(part.bounds) - 1):
                inside = part.members[part.bounds[chunk] : part.bounds[chunk + 1]]
                chunk_of[inside[inside >= 0]] = first + chunk
            first += len(part.bounds) - 1
            parts.append(part)
    return Plan(tuple(parts), chunk_of, first)


def _part(layout: str, objects: Ints, lengths: Ints, chunks: int) -> LayoutPart:
    """Cut objects of ascending length into groups of eight and these into chunks of about equal cost."""
    empty = -len(objects) % W
    members = np.concatenate([np.full(empty, -1, np.int64), objects]).reshape(-1, W)
    cost = np.cumsum(lengths[members[:, -1]])
    targets = cost[-1] * np.arange(1, chunks) / chunks
    inner = np.searchsorted(cost, targets, side="left") + 1
    bounds = np.unique(np.concatenate([[0], np.minimum(inner, len(members)), [len(members)]]))
    return LayoutPart(layout, members, bounds)


def width(plan: Plan, n: int, symbols: int) -> int:
    """Return how many columns of emission derivatives the layouts of the plan write, padding included."""
    layouts = {part.layout for part in plan.parts}
    if symbols:
        return (n if is_few(n, symbols) else QUAD) if layouts == {QUADS} else padded(n)
    return n if layouts <= {QUADS, LANES} else padded(n)


def split(part: LayoutPart, tasks: int) -> list[Ints]:
    """Cut a part's groups into at most so many runs of whole chunks."""
    chunks = len(part.bounds) - 1
    cuts = part.bounds[np.unique(np.linspace(0, chunks, min(tasks, chunks) + 1).astype(np.int64))]
    return [part.members[a:b] for a, b in pairwise(cuts)]
