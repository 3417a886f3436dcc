"""What a fitted pipeline makes of objects, without scikit-learn's work around every step.

``Pipeline`` asks for the tags of all of its steps, and ``FeatureUnion`` sets up joblib, before the first object is
looked at. For one short series that is a fifth of the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn import get_config
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.svm import SVC

from genkern.gram.gram import Gram
from genkern.learn.svm_path import KernelSVMClassifierCV
from genkern.recipes.learnt_sum import LearntSum


def input_of(learner: Any, steps: list[tuple[str, Any]], X: Any) -> Any:
    """Return what a fitted learner at the end gets: of a kernel matrix, only the columns of its support vectors."""
    needed = _support(learner)
    if needed is None or not steps or type(steps[-1][1]) is not Gram:
        return features_of(steps, X)
    return steps[-1][1].transform_with(features_of(steps[:-1], X), needed)


def features_of(steps: list[tuple[str, Any]], X: Any) -> Any:
    """Return what steps, one after the other, make of objects: bit for bit what ``Pipeline`` does."""
    for _, step in steps:
        if step not in (None, "passthrough"):
            X = _transformed(step, X)
    return X


def is_plain() -> bool:
    """Say whether arrays go from step to step, and nothing else: no frames, no metadata."""
    config = get_config()
    return config["transform_output"] == "default" and not config["enable_metadata_routing"]


def _support(learner: Any) -> Any:
    """Return the training objects that decisions of a machine on a kernel matrix depend on; None if all may matter."""
    machines = getattr(learner, "estimators_", [learner])  # one against the rest
    learned = [machine for machine in machines if not hasattr(machine, "y_")]  # of classes that are all or none
    if not all(isinstance(machine, SVC | KernelSVMClassifierCV) for machine in learned):
        return None
    if not all(isinstance(machine.kernel, str) and machine.kernel == "precomputed" for machine in learned):
        return None
    return np.unique(np.concatenate([machine.support_ for machine in learned])) if learned else None


def _transformed(step: Any, X: Any) -> Any:
    if hasattr(step, "_sklearn_output_config"):  # by ``set_output``
        return step.transform(X)
    if type(step) is Pipeline:
        return features_of(step.steps, X)
    if type(step) is FeatureUnion and step.n_jobs in (None, 1) and not _has_words(step):
        return _side_by_side(step, X)
    if isinstance(step, LearntSum) and not step.is_large(X):
        return _side_by_side(step, X)
    return step.transform(X)


def _has_words(union: FeatureUnion) -> bool:
    return any(isinstance(part, str) for _, part in union.transformer_list)  # "drop", "passthrough"


def _side_by_side(union: FeatureUnion, X: Any) -> Any:
    weights, every = union.transformer_weights or {}, dict(union.transformer_list)
    weights = getattr(union, "factors_", {name: weights.get(name) for name in every})
    found = [(_transformed(every[name], X), weight) for name, weight in weights.items()]
    parts = [part if weight is None else part * weight for part, weight in found]
    if any(sparse.issparse(part) for part in parts):
        return sparse.hstack(parts).tocsr()
    return np.hstack(parts)
