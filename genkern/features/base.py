"""What embeddings share: features with parts by position, and a model, or one per class, given or fitted."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from genkern.data.objects import Packed
from genkern.data.store import Store
from genkern.data.transformer import Transformer
from genkern.features.class_models import are_given, fit_class_models, fit_models, fits_classes
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
    """Features of objects under a model, which is an ``estimator``'s, fitted to all objects, or given in its place."""

    _refuses_y = False  # unless there is no model per class, as ``fit_models`` knows
    estimator: Any
    per_class: bool
    priors: Any = None
    store: Store | None = None
    model_: Any

    def _check_options(self) -> None:
        """Check the parameters."""

    @abstractmethod
    def _learn(self, packed: Packed) -> None:
        """Learn from encoded objects what features need beyond the model."""

    def _fit_model(self, X: Any, y: Any) -> tuple[Any, Packed]:
        """Return the model, and the objects, encoded for it."""
        return fit_models(self.estimator, X, y, self.per_class, type(self).__name__, self.priors, self.store)

    def _fit(self, X: Any, y: Any) -> None:
        self._check_options()
        self.model_, packed = self._fit_model(X, y)
        self._learn(packed)

    def _encode(self, X: Any) -> Any:
        return self.model_.pack(X)

    def _needs_labels(self) -> bool:
        return bool(self.per_class) or fits_classes(self.estimator)


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
