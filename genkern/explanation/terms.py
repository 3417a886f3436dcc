"""Contributions of positions to features, of which only what is asked for is formed."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from genkern.features.positions import CANCELLED
from genkern.validation import Floats

Ints = NDArray[np.int64]
FEW = 2**12  # contributions of an embedding that are kept; more are computed again when they are needed


@dataclass(frozen=True, eq=False)
class Source:
    """What an embedding says of the positions of one object.

    Attributes
    ----------
    embedding : transformer with ``position_features``
    X : list of one object
    reads : sparse array of shape (T, S), or None
        Shares of the T original positions in the contributions of the S positions of that object; None if they are the
        same.
    width : int
        The number q of its features.
    kept : sparse array of shape (S, q), or None
        The contributions, where they are few.
    """

    embedding: Any
    X: Any
    reads: Any
    width: int
    kept: Any

    def times(self, weights: Any) -> Any:
        """Return the product of the contributions (T, q) and a sparse array (q, k)."""
        found = (self.embedding.position_features(self.X) if self.kept is None else self.kept) @ weights
        return sparse.csr_array(found if self.reads is None else self.reads @ found)


@dataclass(frozen=True, eq=False)
class Terms:
    """Contributions (T, p), whose columns are scaled columns of those of several embeddings.

    All of them together may be too many to be held, so that those that are many are computed again for each product.

    Attributes
    ----------
    length : int
        The number T of positions; 0 if no contributions are known.
    sources : tuple of Source
    owner, place : ndarray of shape (p,)
        The source of each column, -1 for none, and its column there.
    scale : ndarray of shape (p,)
        What that is multiplied by.
    sizes : ndarray of shape (p,)
        Bounds on the sums of absolute contributions to each column, for what is a rounding error beside them.
    """

    length: int
    sources: tuple[Source, ...]
    owner: Ints
    place: Ints
    scale: Floats
    sizes: Floats

    @classmethod
    def unknown(cls, width: int) -> Self:
        """Return no contributions to so many features."""
        none = np.full(width, -1)
        return cls(0, (), none, none, np.zeros(width), np.zeros(width))

    @classmethod
    def of(cls, embedding: Any, X: Any, reads: Any) -> Self:
        """Return the contributions to the features of an embedding, as it is fitted now."""
        signed = sparse.csr_array(embedding.position_features(X))
        found, (count, width) = abs(signed), signed.shape
        sizes = found.sum(axis=0) if reads is None else reads.sum(axis=0) @ found
        kept = signed if signed.nnz <= FEW else None
        source = Source(copy(embedding), X, reads, width, kept)  # which another fit does not change
        everywhere = np.zeros(width, np.int64)
        length = count if reads is None else reads.shape[0]
        return cls(length, (source,), everywhere, np.arange(width), np.ones(width), np.asarray(sizes, np.float64))

    @classmethod
    def beside(cls, parts: list[Self]) -> Self:
        """Return the contributions of all parts side by side; parts without any have none."""
        starts = np.cumsum([0, *(len(part.sources) for part in parts)])
        owners = [np.where(part.owner < 0, -1, part.owner + start) for part, start in zip(parts, starts)]
        sources = tuple(source for part in parts for source in part.sources)
        joined = (np.concatenate([getattr(part, name) for part in parts]) for name in ("place", "scale", "sizes"))
        return cls(max(part.length for part in parts), sources, np.concatenate(owners), *joined)

    def scaled(self, factors: Any) -> Self:
        """Return columns times factors, (p,) or one number."""
        scales = self.scale * factors, self.sizes * np.abs(factors)
        return type(self)(self.length, self.sources, self.owner, self.place, *scales)

    def shared(self, sums: Floats, features: Floats) -> Self:
        """Return columns scaled by the ratio of features (p,) and their sums (p,), and nothing where terms cancel."""
        whole = np.abs(sums) > CANCELLED * self.sizes
        return self.scaled(np.divide(features, sums, out=np.zeros(len(sums)), where=whole))

    def select(self, kept: Any) -> Self:
        """Return some of the columns."""
        chosen = (column[kept] for column in (self.owner, self.place, self.scale, self.sizes))
        return type(self)(self.length, self.sources, *chosen)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of positions and of features."""
        return self.length, len(self.owner)

    def __matmul__(self, weights: Any) -> Any:
        """Return the product with a sparse array (p, k), a sparse array (T, k)."""
        total = sparse.csr_array((self.length, weights.shape[1]))
        for i, source in enumerate(self.sources):
            mine = np.flatnonzero(self.owner == i)
            if len(mine):
                cells = (self.place[mine], np.arange(len(mine)))
                taken = sparse.csr_array((self.scale[mine], cells), (source.width, len(mine)))
                total = total + source.times(taken @ weights[mine])
        return total

    def table(self) -> Any:
        """Return all contributions, a sparse array (T, p)."""
        return self @ sparse.eye_array(len(self.owner), format="csr")
