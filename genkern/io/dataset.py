"""A set of objects with labels, identifiers, groups and what is known about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.data.describe import Described, Rows, trimmed
from genkern.validation import check_option

MANY = 12  # classes that are listed one by one
FIRST = 3  # objects that a description shows


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(Described):
    """Objects and what belongs to each; unpacks as ``X, y = dataset``.

    Parameters
    ----------
    X : list
        The objects: strings, lists of tokens, or arrays of shape (T, d).
    y : ndarray of shape (n,), optional
        The class of each object.
    ids : list of str, optional
        One identifier per object.
    groups : ndarray of shape (n,), optional
        What must not be torn apart by folds, e.g. the speaker.
    kind : {"symbols", "codes", "series", "points", "documents"}, optional
        What the objects are: sequences of symbols, chain codes of closed contours, series, sets of points, texts.
    meta : dict, optional
        What else is known: where the set comes from, ``"rules"`` (what was done to the contents of files, how often and
        where first), ``"name"``, ``"description"``, ``"split"`` ("train" or "test" per object).

    Examples
    --------
    >>> from genkern.datasets import load_splice_junctions
    >>> X, y = load_splice_junctions()
    >>> len(X), X[0][:10], str(y[0])
    (3186, 'CTAGGCTCCA', 'N')
    """

    X: list[Any]
    y: Any = None  # an array, or None
    ids: list[str] | None = None
    groups: NDArray[Any] | None = None
    kind: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.meta is None:
            object.__setattr__(self, "meta", {})
        parts = {"X": self.X, "y": self.y, "ids": self.ids, "groups": self.groups, "split": self.split}
        sizes = {name: len(part) for name, part in parts.items() if part is not None}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"Dataset: all parts must have one entry per object. Got {sizes}.")

    def __iter__(self) -> Iterator[Any]:
        return iter((self.X, self.y))

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        called = self.name or self.kind or "objects"
        classes = "no labels" if self.y is None else f"classes {self._counts()}"
        return f"Dataset({called}: {len(self.X)} objects, {classes})"

    def _heading(self) -> str:
        return repr(self)

    def _details(self) -> Rows:
        rows: Rows = [("contents", [[line] for line in self.summary()])]
        ids, labels = self.ids or range(len(self)), [""] * len(self) if self.y is None else self.y
        first = [[str(ids[i]), str(labels[i]), _beginning(self.X[i])] for i in range(min(FIRST, len(self)))]
        return [*rows, ("first objects", first)] if first else rows

    def _counts(self) -> str:
        labels, counts = np.unique(self.y, return_counts=True)
        shown = ", ".join(f"{label} {count}" for label, count in zip(labels[:MANY], counts[:MANY]))
        return shown + (f", ... ({len(labels)} in all)" if len(labels) > MANY else "")

    @property
    def name(self) -> str:
        """What the set is called; empty if nobody said."""
        return str(self.meta.get("name", ""))

    @property
    def description(self) -> str:
        """What the objects and classes are, source, licence and whom to cite; empty if nobody said."""
        return str(self.meta.get("description", ""))

    @property
    def split(self) -> NDArray[np.str_] | None:
        """``"train"`` or ``"test"`` per object, where the set comes with an official split."""
        return self.meta.get("split")

    @property
    def channel_names(self) -> list[str] | None:
        """The names of the channels of series, or of the coordinates of points, where the file has them."""
        columns = self.meta.get("columns", {})
        names = columns.get("channels") if isinstance(columns, dict) and self.kind in ("series", "points") else None
        width = np.shape(self.X[0])[1:] or (1,) if self.X else ()
        return [str(name) for name in names] if isinstance(names, list) and (len(names),) == width else None

    @property
    def classes(self) -> NDArray[Any]:
        """The distinct labels, sorted."""
        if self.y is None:
            raise ValueError("Dataset.classes: the objects have no labels; name them by label= when the file is read.")
        return np.unique(self.y)

    def take(self, indices: ArrayLike) -> Dataset:
        """Return the set of the objects at these indices, in this order.

        Parameters
        ----------
        indices : array-like of int
            Positions in ``X``.
        """
        chosen = np.asarray(indices, dtype=np.intp)
        meta = self.meta if self.split is None else {**self.meta, "split": self.split[chosen]}
        return replace(
            self,
            X=[self.X[i] for i in chosen],
            y=None if self.y is None else self.y[chosen],
            ids=None if self.ids is None else [self.ids[i] for i in chosen],
            groups=None if self.groups is None else self.groups[chosen],
            meta=meta,
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
                f"Dataset.part: {self.name or 'this set'} has no official split; use scikit-learn's train_test_split "
                "or a cross-validator."
            )
        return self.take(np.flatnonzero(self.split == which))

    def summary(self) -> list[str]:
        """Return lines of text: what the set is, and which rules were applied to the contents of its files."""
        lines = [f"{len(self)} objects" + (f", {self.kind}" if self.kind else "")]
        if self.X:
            lengths = np.array([len(x) for x in self.X])
            span = f"{lengths[0]}" if (lengths == lengths[0]).all() else f"{lengths.min()} to {lengths.max()}"
            widths = {x.shape[1] for x in self.X if isinstance(x, np.ndarray) and x.ndim == 2}
            lines.append(f"length {span}" + "".join(f", {width} channels" for width in sorted(widths)))
        lines.append("no labels" if self.y is None else f"classes: {self._counts()}")
        if self.groups is not None:
            lines.append(f"{len(np.unique(self.groups))} groups")
        hidden = ("rules", "split", "name", "description", "kind", "objects", "lengths")
        lines += [f"{key}: {spelled(value)}" for key, value in self.meta.items() if key not in hidden]
        rules = self.meta.get("rules", {})
        lines += [f"{rule}: {entry['count']}, first in {entry['first']}" for rule, entry in rules.items()]
        return lines


def spelled(fact: Any) -> str:
    """Return what is known about files as text: roles before their columns, the first and the last of many names."""
    if isinstance(fact, dict):
        return "; ".join(f"{key} {spelled(value)}" for key, value in fact.items())
    if not isinstance(fact, list | tuple):
        return str(fact)
    return ", ".join(map(str, fact if len(fact) <= 8 else [*fact[:3], "...", fact[-1]]))


def _beginning(x: Any) -> str:
    """Return the first letters, words or numbers of an object."""
    if isinstance(x, np.ndarray):
        return f"array of shape {x.shape}"
    return trimmed(x if isinstance(x, str) else " ".join(map(str, x[:12])), 40)


def joined(parts: Sequence[Dataset], meta: dict[str, Any]) -> Dataset:
    """Return sets of one kind as one set; `meta` is that of the whole, splits are joined.

    What one part has and another lacks (labels, identifiers, groups, a split) is an error of the caller.
    """
    first = parts[0]
    if len(parts) == 1:
        return replace(first, meta={**first.meta, **meta})

    def array(name: str) -> Any:
        pieces = [getattr(part, name) for part in parts]
        return None if pieces[0] is None else np.concatenate(pieces)

    split = array("split")
    return Dataset(
        [x for part in parts for x in part.X],
        array("y"),
        None if first.ids is None else [name for part in parts for name in part.ids or ()],
        array("groups"),
        first.kind,
        meta if split is None else {**meta, "split": split},
    )
