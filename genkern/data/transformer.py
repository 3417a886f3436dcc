"""What all transformers share: how they fit and transform, the widths of tables, names of features, and tags."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from genkern.data.describe import Described, DescribedEstimator, Rows, parameter_rows
from genkern.progress import taken
from genkern.validation import n_objects, refuse_unused, remember_width

SYMBOLS = {"two_d_array": False, "categorical": True, "string": True}  # tags; of tables, only those of integer codes
PASSED = {"two_d_array": all, "sparse": all, "categorical": all, "string": all, "allow_nan": all, "positive_only": any}


class Transformer(DescribedEstimator, TransformerMixin, BaseEstimator, ABC):
    """A transformer of lists of objects: a class gives ``_transform`` and, where it has them, the other hooks.

    By convention, NaN may mean missing where a parameter ``estimator`` takes it, labels are required for a model
    ``per_class``, and a parameter ``embedding`` takes what the transformer takes.
    """

    _fitted: ClassVar[str] = "model_"  # the attribute that a fit sets last
    _inputs: ClassVar[dict[str, bool]] = {}  # tags of the input
    _of_floats: ClassVar[bool] = False  # whether the result is an array of floats, whatever the input
    _work: ClassVar[float] = 1.0  # how long a fit takes, for progress: those of words of a few letters take one
    _refuses_y: ClassVar[bool] = True  # whether fit, which has no use for y, refuses one that cannot be labels

    # --- what a class gives

    def _fit(self, X: Any, y: Any) -> Any:
        """Learn from the training objects; return what ``transform`` gives for them if it is known then, else None."""

    def _encode(self, X: Any) -> Any:
        """Return objects as ``_transform`` takes them, once it is fitted."""
        return X

    @abstractmethod
    def _transform(self, X: Any) -> Any:
        """Return encoded objects, transformed."""

    def _names_out(self, given: Any) -> Any:
        """Return the names of the features, which may depend on given names of channels; not there, no names."""

    def _width(self) -> int:
        """Return the number of features; for those who know it without spelling all names."""
        return len(self.get_feature_names_out())

    def _inner(self) -> list[Any] | None:
        """Return the embeddings inside, all of which take the same objects; None if it is none of embeddings."""
        return [self.embedding] if hasattr(self, "embedding") else None

    def _takes(self) -> dict[str, bool]:
        """Return tags of the input."""
        return {"allow_nan": takes_nan(self.estimator)} if hasattr(self, "estimator") else {}

    def _needs_labels(self) -> bool:
        """Say whether fit requires y, whatever the embeddings inside do."""
        return bool(getattr(self, "per_class", False))

    def _effort(self) -> float:
        """Return about how long a fit takes, beside those of others."""
        return self._work

    # --- what follows

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what is to be known for ``transform``.

        Parameters
        ----------
        X : list of n objects
        y : array-like of shape (n,), optional
            Labels, for those who use them.

        Returns
        -------
        self
        """
        with taken(self._effort(), type(self).__name__):
            self._fit(self._begin(X, y), y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and return the same objects, transformed.

        Parameters
        ----------
        X : list of n objects
        y : array-like of shape (n,), optional
            Labels, for those who use them.

        Returns
        -------
        transformed : array, sparse matrix or list
            One row or entry per object.
        """
        with taken(self._effort(), type(self).__name__):
            found = self._fit(self._begin(X, y), y)
            return self.transform(X) if found is None else self._indexed(found, X)

    def transform(self, X: Any) -> Any:
        """Return objects, transformed.

        Parameters
        ----------
        X : list of n objects

        Returns
        -------
        transformed : array, sparse matrix or list
            One row or entry per object.
        """
        return self._indexed(self._transform(self._ready(X)), X)

    @available_if(lambda self: type(self)._names_out is not Transformer._names_out)
    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the features, or of the channels of series.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of what comes in, for those who pass them on.

        Returns
        -------
        names : ndarray of shape (n_features,) of str
        """
        check_is_fitted(self, self._fitted)
        return np.asarray(self._names_out(input_features), dtype=object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Set whether features come as an array, or as a frame of pandas or polars with names; lists stay lists.

        With "pandas", a list made of a pandas object is one of pandas too, with its index.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            What ``transform`` and ``fit_transform`` return; None changes nothing.

        Returns
        -------
        self
        """
        if self._makes_frames():
            super().set_output(transform=transform)
        elif transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def _makes_frames(self) -> bool:
        """Say whether what it returns may become a frame: features with names, not series and not models."""
        return bool(self._sklearn_auto_wrap_output_keys) and hasattr(self, "get_feature_names_out")

    def _indexed(self, made: Any, X: Any) -> Any:
        """Return a list as one of pandas with the index of X, where frames are to have it, by whatever setting."""
        index = getattr(X, "index", None)
        if not isinstance(made, list) or index is None or callable(index) or self._makes_frames():
            return made
        own = getattr(self, "_sklearn_output_config", {})
        if own.get("transform", get_config()["transform_output"]) != "pandas":
            return made
        from pandas import Series

        return Series(made, index=index)

    @property
    def n_features_out_(self) -> int:
        """The number of features, or of the channels of series."""
        check_is_fitted(self, self._fitted)
        return self._width()

    def _begin(self, X: Any, y: Any) -> Any:
        """Return the checked input of a fit, which remembers the width of a table."""
        checked = self._checked(X, reset=True)
        self._n_objects = n_objects(X)
        if self._refuses_y:
            refuse_unused(y, X, type(self).__name__)
        return checked

    def _ready(self, X: Any) -> Any:
        """Return encoded objects, unless it is not fitted, or X is a table of another width."""
        if self._fitted not in vars(self):
            check_is_fitted(self, self._fitted)  # which asks for all tags first
        return self._checked(X, reset=False)

    def _checked(self, X: Any, reset: bool) -> Any:
        """Return the input of a fit (reset), or of a fitted transformer, encoded."""
        remember_width(self, X, reset)
        return X if reset else self._encode(X)

    def _heading(self) -> str:
        return f"{type(self).__name__}{', fitted' if self._is_fitted() else ''}"

    def _details(self) -> Rows:
        return [*parameter_rows(self), *(self._became() if self._is_fitted() else ())]

    def _is_fitted(self) -> bool:
        return hasattr(self, self._fitted)

    def _became(self) -> Rows:
        """Return what a description says of a fitted one: how many objects, how many features, and its model."""
        count, model = getattr(self, "_n_objects", None), getattr(self, "model_", None)
        features = [("features", self.n_features_out_)] if hasattr(self, "get_feature_names_out") else []
        rows: Rows = [("fitted to", f"{count} objects")] if count is not None else []
        return [*rows, *features, *([("model", model._heading())] if isinstance(model, Described) else [])]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self._inner()
        inside = [get_tags(part) for part in inner or ()]
        rules = {} if inner is None else PASSED
        passed = {name: rule(getattr(one.input_tags, name) for one in inside) for name, rule in rules.items()}
        for name, value in {**passed, **self._takes(), **self._inputs}.items():
            setattr(tags.input_tags, name, value)
        tags.target_tags.required = self._needs_labels() or any(one.target_tags.required for one in inside)
        if not self._of_floats:
            tags.transformer_tags.preserves_dtype = []
        return tags


class TableTransformer(Transformer):
    """A transformer of matrices of numbers, dense and, in some formats, sparse."""

    _sparse: ClassVar[tuple[str, ...]] = ()
    _refuses_y = False
    _work = 0.0

    @np.errstate(invalid="ignore")  # infinities of both signs, which scikit-learn sums before it refuses them
    def _checked(self, X: Any, reset: bool) -> Any:
        return validate_data(self, X, reset=reset, accept_sparse=self._sparse or False, dtype=np.float64)

    def _takes(self) -> dict[str, bool]:
        return {"sparse": bool(self._sparse)}


def effort(step: Any) -> float:
    """Return about how long fits of all transformers of a pipeline or union take together, to tell progress by."""
    parts = getattr(step, "transformer_list", None) or getattr(step, "steps", None)
    if parts is not None:
        return sum(effort(part) for _, part in parts)
    return step._effort() if isinstance(step, Transformer) else 0.0


def takes_nan(estimator: Any) -> bool:
    """Say whether NaN may mean missing in what an estimator, a model (always) or those of classes take."""
    if isinstance(estimator, Mapping):
        return all(map(takes_nan, estimator.values()))
    tags = getattr(estimator, "__sklearn_tags__", None)
    return tags is None or bool(tags().input_tags.allow_nan)
