"""What embeddings and learners ask of an estimator of models."""

from __future__ import annotations

from typing import Any

from genkern.models.estimator import ModelEstimator


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
