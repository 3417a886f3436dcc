"""Sums over positions and states of two objects, for the latent mean map kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.core.arrays import latent, products
from genkern.models.posterior import Posterior
from genkern.validation import Floats

NUMBERS = 1 << 22  # entries of a table of symbols and states that is held at a time


class Stack:
    """Posteriors under one model, concatenated: object i is ``points[offsets[i]:offsets[i + 1]]``.

    Attributes
    ----------
    points : (P,) codes or (P, d) numbers
    weights : (P, S)
    pairs : (n, S2), with S2 = 0 if there are none
    offsets : (n + 1,)
    sizes : numbers of states of the chains
    """

    def __init__(self, points: NDArray[Any], weights: Floats, pairs: Floats, offsets: Any, sizes: tuple[int, ...]):
        self.points, self.weights, self.pairs, self.offsets, self.sizes = points, weights, pairs, offsets, sizes

    @property
    def shape(self) -> tuple[int, ...]:
        """One axis, of objects."""
        return (len(self.offsets) - 1,)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Stack:
        """Return the objects of a slice."""
        first, last, _ = rows.indices(len(self))
        offsets = self.offsets[first : last + 1]
        inside = slice(offsets[0], offsets[-1])
        return Stack(self.points[inside], self.weights[inside], self.pairs[rows], offsets - offsets[0], self.sizes)

    def match(self, other: Stack) -> None:
        """Raise if the other posteriors are of another kind."""
        kinds = [(s.points.shape[1:], s.sizes, s.pairs.shape[1]) for s in (self, other)]
        if kinds[0] != kinds[1]:
            raise ValueError(f"LatentMean: X and Y must be posteriors under one model. Got {_told(self, other)}.")


def stack(X: Any) -> Stack:
    """Return a list of posteriors as a stack, refusing those that cannot be under one model."""
    for index, item in enumerate(X):
        if not isinstance(item, Posterior):
            raise TypeError(f"LatentMean compares posteriors, as Posteriors gives them. Got {item!r:.80} at {index}.")
    if len(X) == 0:
        raise ValueError("LatentMean: expected at least one posterior. Got none.")
    first = X[0]
    for index, item in enumerate(X):
        same = item.points.shape[1:] == first.points.shape[1:] and len(item.pairs) == len(first.pairs)
        if not same or item.sizes != first.sizes:
            raise ValueError(
                f"LatentMean: objects 0 and {index} are not posteriors under one model: {_told(first, item)}."
            )
    points, weights = (np.concatenate([getattr(item, name) for item in X]) for name in ("points", "weights"))
    offsets = np.cumsum([0, *(len(item.points) for item in X)])
    return Stack(points, weights, np.stack([item.pairs for item in X]), offsets, first.sizes)


def _told(*posteriors: Any) -> str:
    """Return a description of posteriors, for error messages."""
    kinds = ["symbols" if p.points.ndim == 1 else f"vectors of length {p.points.shape[1]}" for p in posteriors]
    steps = ["with" if p.pairs.shape[-1] else "without" for p in posteriors]
    return " and ".join(f"{k} with {p.sizes} states, {s} pairs" for k, p, s in zip(kinds, posteriors, steps))


def spread(values: Floats, sizes: tuple[int, ...], lam: float, axis: int = -1) -> Floats:
    """Return vectors along an axis of states whose products are sums over pairs of states, and over chains."""
    chains = np.split(values, np.cumsum(sizes)[:-1], axis=axis)
    sums = [np.sqrt(np.exp(-lam)) * chain.sum(axis=axis, keepdims=True) for chain in chains]
    return np.concatenate([np.sqrt(-np.expm1(-lam)) * values, *sums], axis=axis)


def spread_pairs(X: Stack, lam: float) -> Floats:
    """Return (n, sum of (n_c + 1) ** 2) vectors of the pairs of neighbouring states."""
    blocks = np.split(X.pairs, np.cumsum(np.square(X.sizes))[:-1], axis=1)
    squares = [block.reshape(-1, k, k) for block, k in zip(blocks, X.sizes)]
    tables = [spread(spread(s, (k,), lam), (k,), lam, axis=1) for s, k in zip(squares, X.sizes)]
    return np.concatenate([table.reshape(len(table), -1) for table in tables], axis=1)


def inner(F: Floats, G: Floats | None) -> Floats:
    """Return inner products (n, n') of rows, exactly symmetric without G."""
    return products.gram(F) if G is None else products.cross(F, G)


def norms(F: Floats, G: Floats | None) -> Floats:
    """Return the inner products (n,) of each row with itself; there is no G."""
    squares: Floats = np.einsum("ij,ij->i", F, F)
    return squares


def point_sums(X: Stack, Y: Stack | None, lam_x: float, lam_q: float, own: bool) -> Floats:
    """Return the term of vectors and states, (n, n') or the diagonal (n,)."""
    vectors = spread(X.weights, X.sizes, lam_q)
    if own:
        return latent.own_gaussian_sums(X.points, vectors, X.offsets, lam_x)
    others = None if Y is None else (Y.points, spread(Y.weights, Y.sizes, lam_q), Y.offsets)
    return latent.gaussian_sums(X.points, vectors, X.offsets, others, lam_x)


def symbol_sums(X: Stack, Y: Stack | None, lam_x: float, lam_q: float, multiply: Callable[..., Floats]) -> Floats:
    """Return the term of symbols and states, products of tables of symbols and states, of some symbols at a time."""
    sides = [X] if Y is None else [X, Y]
    vectors = [spread(side.weights, side.sizes, lam_q) for side in sides]
    sums = [np.add.reduceat(v, side.offsets[:-1], axis=0) for v, side in zip(vectors, sides)]
    total = np.exp(-lam_x) * multiply(sums[0], None if Y is None else sums[1])
    size = 1 + max(int(side.points.max()) for side in sides)
    step = max(1, NUMBERS // max(s.size for s in sums))
    for low in range(0, size, step):
        tables = [_table(side, v, low, min(low + step, size)) for v, side in zip(vectors, sides)]
        total -= np.expm1(-lam_x) * multiply(tables[0], None if Y is None else tables[1])
    return total


def _table(X: Stack, vectors: Floats, low: int, high: int) -> Floats:
    """Return sums (n, (high - low) * k) of the vectors (P, k) of each of some symbols."""
    table = np.zeros((len(X), high - low, vectors.shape[1]))
    chosen = np.flatnonzero((X.points >= low) & (X.points < high))
    owners = np.repeat(np.arange(len(X)), np.diff(X.offsets))
    np.add.at(table, (owners[chosen], X.points[chosen] - low), vectors[chosen])
    return table.reshape(len(X), -1)
