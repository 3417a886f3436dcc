"""Several named representations of the same objects, for kernels on views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


class Representations:
    """Named representations (views) of the same n objects, a value that is indexed by rows like a list of objects.

    ``X["fisher"]`` is one view; ``X[rows]`` are some objects, in all views, for a slice, a mask or an array of indices,
    so that scikit-learn splits it and ``Gram`` cuts it into blocks.

    Parameters
    ----------
    views : mapping of str to list, matrix or stack of n representations
        Vectors as a dense or sparse matrix, models as a list or stack, raw objects unchanged.

    Attributes
    ----------
    names : tuple of str
    shape : tuple of int
        ``(n,)``

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import Gaussian, MeanMap, Linear, On, Representations
    >>> X = Representations({"rows": np.eye(2), "laws": [Gaussian(0.0, 1.0), Gaussian(2.0, 1.0)]})
    >>> X.names, len(X), X[:1]["rows"]
    (('rows', 'laws'), 2, array([[1., 0.]]))
    >>> (On("rows", Linear()) + On("laws", MeanMap().normalized()))(X).round(4)
    array([[2.    , 0.5134],
           [0.5134, 2.    ]])
    """

    __slots__ = ("_views", "shape")
    _views: dict[str, Any]
    shape: tuple[int]

    def __init__(self, views: Mapping[str, Any]):
        if not isinstance(views, Mapping) or not views or not all(isinstance(name, str) for name in views):
            raise TypeError(f"Representations: 'views' must be a mapping of names to views. Got {views!r:.80}.")
        counts = {name: _count(view) for name, view in views.items()}
        if len(set(counts.values())) > 1:
            told = ", ".join(f"{count} in {name!r}" for name, count in counts.items())
            raise ValueError(f"Representations: all views must be of the same objects. Got {told}.")
        self._hold(dict(views), next(iter(counts.values())))

    def _hold(self, views: dict[str, Any], count: int) -> None:
        object.__setattr__(self, "_views", views)
        object.__setattr__(self, "shape", (count,))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Representations is a value and cannot be changed: build a new one to set {name!r}.")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._views,)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the views."""
        return tuple(self._views)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"Representations({len(self)} objects, {', '.join(map(repr, self.names))})"

    def __getitem__(self, key: Any) -> Any:
        """Return a view by its name, or the objects of a slice, a mask or an array of indices."""
        if isinstance(key, str):
            if key not in self._views:
                raise KeyError(f"Representations has no view {key!r}; it has {', '.join(map(repr, self.names))}.")
            return self._views[key]
        rows = key[0] if isinstance(key, tuple) and len(key) == 2 and key[1] is ... else key  # scikit-learn's way
        if not isinstance(rows, slice):
            rows = np.asarray(rows)
            if rows.ndim != 1 or rows.dtype.kind not in "iub":
                raise TypeError(f"Representations: rows are a slice, a mask or an array of indices. Got {key!r:.80}.")
            rows = np.arange(len(self))[rows]
        return Representations({name: _take(view, rows) for name, view in self._views.items()})

    def with_view(self, name: str, view: Any) -> Representations:
        """Return the same with one view in another form.

        Parameters
        ----------
        name : str
        view : list, matrix or stack of n representations
        """
        return Representations({**self._views, name: view})


def _count(view: Any) -> int:
    """Return the number of objects of a view."""
    shape = getattr(view, "shape", None)
    return int(shape[0]) if shape else len(view)


def _take(view: Any, rows: Any) -> Any:
    """Return the objects of a slice or of an array of indices."""
    if isinstance(view, list | tuple) and not isinstance(rows, slice):
        return [view[i] for i in rows]
    return view.iloc[rows] if hasattr(view, "iloc") else view[rows]
