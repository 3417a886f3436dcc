"""What a loader returns: objects, labels and where they come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.validation import check_option


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Labelled objects with their description; unpacks as ``X, y = dataset``.

    Parameters
    ----------
    X : list
        The objects: strings, or arrays of shape (T, d).
    y : ndarray of shape (n,)
        The class of each object.
    name : str
        What the set is called.
    names : list of str
        One identifier per object.
    description : str
        What the objects and classes are, source, licence and whom to cite.
    split : ndarray of shape (n,), optional
        ``"train"`` or ``"test"`` per object, where the set comes with an official split.

    Examples
    --------
    >>> from genkern.datasets import load_splice_junctions
    >>> X, y = load_splice_junctions()
    >>> len(X), X[0][:10], str(y[0])
    (3186, 'CTAGGCTCCA', 'N')
    """

    X: list[Any]
    y: NDArray[Any]
    name: str
    names: list[str]
    description: str
    split: NDArray[np.str_] | None = None

    def __post_init__(self) -> None:
        sizes = {"X": len(self.X), "y": len(self.y), "names": len(self.names)}
        if self.split is not None:
            sizes["split"] = len(self.split)
        if len(set(sizes.values())) > 1:
            raise ValueError(f"Dataset: all parts must have one entry per object. Got {sizes}.")

    def __iter__(self) -> Iterator[Any]:
        return iter((self.X, self.y))

    def __repr__(self) -> str:
        counts = ", ".join(f"{label} {count}" for label, count in zip(*np.unique(self.y, return_counts=True)))
        return f"Dataset({self.name}: {len(self.X)} objects, classes {counts})"

    @property
    def classes(self) -> NDArray[Any]:
        """The distinct labels, sorted."""
        return np.unique(self.y)

    def take(self, indices: ArrayLike) -> Dataset:
        """Return the set of the objects at these indices, in this order.

        Parameters
        ----------
        indices : array-like of int
            Positions in ``X``.
        """
        chosen = np.asarray(indices, dtype=np.intp)
        return Dataset(
            [self.X[i] for i in chosen],
            self.y[chosen],
            self.name,
            [self.names[i] for i in chosen],
            self.description,
            None if self.split is None else self.split[chosen],
        )

    def part(self, which: str) -> Dataset:
        """Return the ``"train"`` or ``"test"`` part of the official split.

        Parameters
        ----------
        which : {"train", "test"}
            The part.
        """
        check_option(which, ("train", "test"), "which", "Dataset.part")
        if self.split is None:
            raise ValueError(
                f"Dataset.part: {self.name} has no official split; use scikit-learn's train_test_split or a "
                "cross-validator."
            )
        return self.take(np.flatnonzero(self.split == which))
