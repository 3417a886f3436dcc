"""Objects packed for the passes: concatenated positions, offsets of objects, and digests of each."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.data.coding import Alphabet
from genkern.data.digests import digest_pieces
from genkern.data.intake import Ints, offsets_of
from genkern.validation import Floats


class Packed(NamedTuple):
    """A checked list of n objects, concatenated: object i is ``values[offsets[i]:offsets[i + 1]]``.

    Attributes
    ----------
    values : (N,) int32 codes, or (N, d) float64 with NaN for missing; CSR rows (N, m) for models of sparse counts
    offsets : (n + 1,) int64
    alphabet : Alphabet of the codes, None for numbers
    weights : (n,) float64, positive: the weight of each object in a fit; None: all are one
    """

    values: NDArray[Any]
    offsets: Ints
    alphabet: Alphabet | None = None
    weights: Floats | None = None

    @property
    def n_objects(self) -> int:
        """The number n of objects."""
        return len(self.offsets) - 1

    @property
    def n_points(self) -> int:
        """The number N of positions of all objects."""
        return int(self.offsets[-1])

    @property
    def lengths(self) -> Ints:
        """The (n,) lengths."""
        return self.offsets[1:] - self.offsets[:-1]

    @property
    def owners(self) -> Ints:
        """The (N,) index of the object to which each position belongs."""
        return np.repeat(np.arange(self.n_objects), self.lengths)

    def take(self, indices: Any) -> Packed:
        """Return the objects of an index array, mask or slice, in that order; those of a plain slice as views."""
        weights = None if self.weights is None else self.weights[indices]
        if isinstance(indices, slice) and indices.step in (None, 1):
            first, last, _ = indices.indices(self.n_objects)
            bounds = self.offsets[first : max(first, last) + 1]
            return Packed(self.values[bounds[0] : bounds[-1]], bounds - bounds[0], self.alphabet, weights)
        chosen = np.arange(self.n_objects)[indices]
        offsets = offsets_of(self.lengths[chosen])
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], np.diff(offsets))
        return Packed(self.values[rows], offsets, self.alphabet, weights)

    def pieces(self) -> list[NDArray[Any]]:
        """Return the objects as views of the packed values: (T,) codes or (T, d) numbers."""
        return [self.values[start:stop] for start, stop in itertools.pairwise(self.offsets.tolist())]

    def objects(self) -> list[Any]:
        """Return the objects as they may be passed in: strings or token lists, or (T, d) views."""
        pieces = self.pieces()
        return pieces if self.alphabet is None else [self.alphabet.decode(piece) for piece in pieces]


def object_digests(packed: Packed) -> list[str]:
    """Return the hex content digest of every object: its codes and alphabet, or its numbers and width."""
    values: Any = packed.values
    if not isinstance(values, np.ndarray):
        # Of sparse rows: columns and counts, with the position of the row in its object.
        rows = np.repeat(np.arange(packed.n_points), np.diff(values.indptr))
        cells = np.column_stack([rows - packed.offsets[packed.owners[rows]], values.indices, values.data])
        return digest_pieces(cells, values.indptr[packed.offsets], f"counts {values.shape[1]}")
    what = f"numbers {values.shape[1]}" if packed.alphabet is None else f"codes {packed.alphabet.digest}"
    return digest_pieces(values, packed.offsets, what)


def object_digest(packed: Packed, index: int) -> str:
    """Return the hex content digest of one object."""
    return object_digests(packed.take([index]))[0]
