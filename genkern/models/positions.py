"""One object position by position: its points, prefixes and segments as objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from genkern.data.objects import Packed

BATCH = 1 << 22  # numbers held at a time for the prefixes of an object


def each_point(packed: Packed) -> Packed:
    """Return the observations of all objects as objects of one observation."""
    return packed._replace(offsets=np.arange(packed.n_points + 1))


def is_window(packed: Packed) -> bool:
    """Return whether observations are windows of symbols, whose symbols are the positions."""
    return packed.alphabet is not None and packed.values.ndim == 2


def changes(work: Any, packed: Packed, size: int) -> Iterator[Any]:
    """Yield the change of a result by each further observation of one object, some observations at a time.

    ``work`` returns a dict of arrays, of ``size`` numbers per object, for a list of its prefixes.
    """
    most = max(1, BATCH // max(size, packed.n_points))
    for first in range(0, packed.n_points, most):
        lengths = np.arange(max(first, 1), min(first + most, packed.n_points) + 1)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        found = work(packed._replace(values=packed.values[rows], offsets=offsets))
        before: dict[str, Any] = {} if first else {"prepend": 0.0}
        yield {name: np.diff(block, axis=0, **before) for name, block in found.items()}


def pieces_of(packed: Packed, starts: Any, ends: Any) -> Packed:
    """Return pieces of one object as objects."""
    lengths = ends - starts
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
    return packed._replace(values=packed.values[rows], offsets=offsets)
