"""How embeddings and learners encode raw objects for a model or an estimator, whichever they hold."""

from __future__ import annotations

from typing import Any

from genkern.models.estimator import LeafEstimator, ModelEstimator
from genkern.models.leaf import Leaf
from genkern.objects import Packed


def pack_for(target: Any, X: Any) -> Packed:
    """Encode objects as a model or estimator takes them: bags of points for leaf families, else sequences."""
    bags = isinstance(target, Leaf | LeafEstimator)
    packed: Packed = target.pack(X, sequences=False) if bags else target.pack(X)
    return packed


def check_estimator_of_models(estimator: Any, who: str) -> ModelEstimator:
    """Return the estimator if it fits models."""
    if not isinstance(estimator, ModelEstimator):
        raise TypeError(
            f"{who}: 'estimator' must be an estimator of models, such as HMMEstimator(n_states=3). "
            f"Got {type(estimator).__name__}."
        )
    return estimator


def allows_nan(target: Any) -> bool:
    """Say whether NaN may mean missing in what a model (always) or an estimator takes."""
    tags = getattr(target, "__sklearn_tags__", None)
    return tags is None or bool(tags().input_tags.allow_nan)
