"""Sparse matrices of kernel values: those above a threshold, or the largest of every row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from genkern.gram.blocks import Task
from genkern.validation import Floats, check_int, check_number


class Rule(NamedTuple):
    """Which values of a row are kept.

    Parameters
    ----------
    threshold : float or None
        Values of at least this.
    top_k : int or None
        So many, the largest; of equal ones those of the first columns.
    """

    threshold: float | None
    top_k: int | None


class Kept(NamedTuple):
    """Values of some rows with their columns: flat arrays, row by row."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: Floats


def check_rule(threshold: Any, top_k: Any, who: str) -> Rule | None:
    """Return the rule, or None if all values are kept."""
    if threshold is None and top_k is None:
        return None
    return Rule(
        None if threshold is None else check_number(threshold, "threshold", who, minimum=-np.inf),
        None if top_k is None else check_int(top_k, "top_k", who, 1),
    )


def kept_block(task: Task, rule: Rule, mirrored: bool, first: Any, second: Any) -> tuple[Kept, Kept | None]:
    """Return what is kept of a block, and of its transpose where that is a block of the matrix too."""
    values = task.values(first, second)
    return _pick(values, rule), _pick(values.T, rule) if mirrored and second is not None else None


def _pick(values: Floats, rule: Rule) -> Kept:
    """Return what is kept of some rows, counted from zero, in the order of the columns."""
    kept = np.ones(values.shape, bool) if rule.threshold is None else values >= rule.threshold
    if rule.top_k is not None and rule.top_k < values.shape[1]:
        order = np.argsort(np.where(kept, -values, np.inf), axis=1, kind="stable")[:, : rule.top_k]
        largest = np.zeros(values.shape, bool)
        np.put_along_axis(largest, order, True, axis=1)
        kept &= largest
    rows, columns = np.nonzero(kept)
    return Kept(rows, columns, values[rows, columns])


def gather(shape: tuple[int, int], parts: Iterable[tuple[int, int, Kept]], rule: Rule) -> sparse.csr_array:
    """Return the sparse matrix of what was kept of blocks, each given with the first of its rows and columns."""
    collected: list[Kept] = [Kept(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    held = 0
    for row, column, kept in parts:
        collected.append(Kept(kept.rows + row, kept.columns + column, kept.values))
        held += len(kept.values)
        if rule.top_k is not None and held > 4 * shape[0] * rule.top_k + (1 << 20):
            collected = [_largest(collected, rule.top_k)]
            held = len(collected[0].values)
    rows, columns, values = _largest(collected, rule.top_k)
    ends = np.cumsum(np.bincount(rows, minlength=shape[0]))
    return sparse.csr_array((values, columns, np.concatenate([[0], ends])), shape)


def _largest(collected: list[Kept], top_k: int | None) -> Kept:
    """Return all in the order of rows and columns, or only so many of each row."""
    rows, columns, values = map(np.concatenate, zip(*collected))
    if top_k is not None:
        order = np.lexsort((columns, -values, rows))
        rows, columns, values = rows[order], columns[order], values[order]
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows))])[:-1] if len(rows) else np.empty(0, np.int64)
        kept = np.arange(len(rows)) - starts[rows] < top_k
        rows, columns, values = rows[kept], columns[kept], values[kept]
    order = np.lexsort((columns, rows))
    return Kept(rows[order], columns[order], values[order])
