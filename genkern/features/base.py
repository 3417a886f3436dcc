"""What embeddings share: features with parts by position, and a model, or one per class, given or fitted."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length

from genkern.data.objects import Packed
from genkern.data.store import Store
from genkern.data.transformer import Transformer
from genkern.features.class_models import (
    are_given,
    check_estimator_of_models,
    check_labels,
    fit_class_models,
    fit_model,
    fit_models,
    fits_classes,
)
from genkern.models.base import Model
from genkern.models.class_mixture import ClassMixture, refuse_impossible
from genkern.validation import Floats, check_number


class Embedding(Transformer):
    """A transformer of objects to features, of which each position of an object adds a part."""

    @abstractmethod
    def _position_features(self, packed: Any) -> Any:
        """Return what each position of one encoded object adds to its features, a sparse array (T, p)."""

    def position_features(self, X: Any) -> Any:
        """Return what each position of one object adds to its features, a sparse array (T, p).

        Parameters
        ----------
        X : list of one object
        """
        return self._position_features(self._ready(X))


class ModelEmbedding(Embedding):
    """Features of objects under a model, given or fitted by an ``estimator``: to all objects, or to those of one class.

    A class that has the parameter ``fit_on`` takes a label for the latter.
    """

    _refuses_y = False  # unless there is no model per class, as ``fit_models`` knows
    estimator: Any
    per_class: bool
    priors: Any = None
    store: Store | None = None
    fit_on: Any = None
    model_: Any

    def _check_options(self) -> None:
        """Check the parameters."""

    @abstractmethod
    def _learn(self, packed: Packed) -> None:
        """Learn from encoded objects what features need beyond the model."""

    def _fit_model(self, X: Any, y: Any) -> tuple[Any, Packed]:
        """Return the model, and the objects, encoded for it."""
        who = type(self).__name__
        if self.fit_on is None:
            return fit_models(self.estimator, X, y, self.per_class, who, self.priors, self.store)
        if self.per_class:
            raise ValueError(f"{who}: fit_on={self.fit_on!r} is for one model, per_class=True for one of each class.")
        return fit_one_class(self.estimator, X, y, self.fit_on, self.store, who)

    def _fit(self, X: Any, y: Any) -> None:
        self._check_options()
        self.model_, packed = self._fit_model(X, y)
        self._learn(packed)

    def _encode(self, X: Any) -> Any:
        return self.model_.pack(X)

    def _needs_labels(self) -> bool:
        return bool(self.per_class) or self.fit_on is not None or fits_classes(self.estimator)


def fit_one_class(estimator: Any, X: Any, y: Any, label: Any, store: Store | None, who: str) -> tuple[Any, Packed]:
    """Return a model fitted to the objects of one class, and all objects, whose alphabet it has, encoded for it."""
    if isinstance(estimator, Model | Mapping):
        raise ValueError(f"{who}: fit_on={label!r} is for an estimator: a model that is given is not fitted.")
    labels = check_labels(y, who)
    packed = check_estimator_of_models(estimator, who).pack(X)
    check_consistent_length(X, labels)
    members = np.flatnonzero(labels == label)
    if not len(members):
        known = ", ".join(map(repr, np.unique(labels).tolist()))
        raise ValueError(f"{who}: fit_on must be a label of y, one of {known}. Got {label!r}.")
    model = fit_model(estimator, packed.take(members), store, who)
    return model, model.pack(packed)


class ClassEmbedding(ModelEmbedding):
    """Features of objects under a ``ClassMixture``, of at least two class models with ``priors``."""

    v_max: float

    def _check_options(self) -> None:
        check_number(self.v_max, "v_max", type(self).__name__, exclusive=True)

    def _fit_model(self, X: Any, y: Any) -> tuple[ClassMixture, Packed]:
        who = type(self).__name__
        mixture, packed = fit_class_models(self.estimator, X, y, self.priors, who, self.store)
        if len(mixture.labels) < 2:
            raise ValueError(f"{who} needs at least two classes. Got one class, {mixture.labels[0]!r}.")
        self.classes_ = np.array(mixture.labels)
        return mixture, packed

    def _joint(self, packed: Packed) -> Floats:
        """Return joint log-probabilities (n_objects, n_classes), refusing objects that no class can have."""
        joint: Floats = self.model_.joint_log_prob(packed)
        refuse_impossible(joint, self.model_.labels, type(self).__name__)
        return joint

    def _needs_labels(self) -> bool:
        return not are_given(self.estimator)
