"""Base classes of transformers of objects: fitted state, widths of tables, names of features, and tags."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from genkern.data.objects import remember_width
from genkern.features.class_models import takes_nan

SYMBOLS = {"two_d_array": False, "categorical": True, "string": True}  # tags; of tables, only those of integer codes


class ObjectTransformer(TransformerMixin, BaseEstimator):
    """A transformer of lists of objects, whose class attributes define its scikit-learn tags.

    By default, NaN is allowed if the ``estimator`` allows it, and labels are required with ``per_class``.
    """

    _fitted: ClassVar[str] = "model_"  # the attribute that a fit sets last
    _inputs: ClassVar[dict[str, bool]] = {}  # tags of the input
    _of_floats: ClassVar[bool] = False  # whether the result is an array of floats, whatever the input

    def _ready(self, X: Any) -> None:
        """Raise if it is not fitted, or if X is a table of another width."""
        check_is_fitted(self, self._fitted)
        remember_width(self, X, reset=False)

    def _needs_labels(self) -> bool:
        """Return whether fit requires y."""
        return bool(getattr(self, "per_class", False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self, "estimator"):
            tags.input_tags.allow_nan = takes_nan(self.estimator)
        for name, value in self._inputs.items():
            setattr(tags.input_tags, name, value)
        tags.target_tags.required = self._needs_labels()
        if not self._of_floats:
            tags.transformer_tags.preserves_dtype = []
        return tags


class Embedding(ObjectTransformer, ABC):
    """A transformer of objects to features that have names, ``_names_out``."""

    @abstractmethod
    def _names_out(self) -> Any:
        """Return the names of the features."""

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the features.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        names : ndarray of shape (n_features_out_,) of str
        """
        check_is_fitted(self, self._fitted)
        return np.asarray(self._names_out(), dtype=object)
