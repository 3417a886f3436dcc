"""The section on the kernel: objects in the plane, and the Gram matrix ordered by class or by clusters."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from genkern import plots
from genkern.data.intake import Ints
from genkern.io.dataset import Dataset
from genkern.kernels.vectors import Linear
from genkern.report.left_out import LeftOut
from genkern.report.parts import draw, names_of, reason, shown_labels, spread_over_classes
from genkern.similarity import gram
from genkern.validation import Floats

MOST = 2000  # objects in the map and the matrix

OWN = (
    "The kernel is the inner product of the features on which {name} decides, normalised to one on the diagonal. These "
    "were learned from the same objects and labels, so classes may look further apart here than for new objects."
)
GIVEN = (
    "The kernel is the one on which {name} decides. It was learned from the same objects, so classes may look further "
    "apart here than for new objects."
)
DEFAULT = (
    "{why} The kernel is the default one for {kind}, which no label takes part in: inner products of features from "
    "generative models, normalised to one on the diagonal."
)


def section(data: Dataset, model: Any, left: LeftOut | None) -> dict[str, Any]:
    """Return the map and the two orders of the Gram matrix, and what the kernel is."""
    chosen = spread_over_classes(data.y, len(data), MOST)
    try:
        K, words = _kernel_values(data, model, chosen)
    except Exception as error:
        return {"why": f"No kernel between the objects could be computed: {reason(error)}"}

    names = np.array(names_of(data), dtype=object)[chosen].tolist()
    labels = None if data.y is None else shown_labels(data.y)[chosen]
    said, whose = _predictions(data, model, left, chosen)
    return {
        "why": "",
        "kernel": words,
        "left_over": f"Shown are {MOST:,} of {len(data):,} objects." if len(chosen) < len(data) else "",
        "whose": whose,
        "classes": [] if labels is None else [str(label) for label in np.unique(labels)],
        "predicted": said is not None and labels is not None,
        "map": draw(
            "Map of the objects",
            partial(plots.ObjectMapDisplay.from_gram, K, labels, names=names, predicted=said),
            width=720,
        ),
        "orders": [
            (
                order,
                draw(
                    f"Gram matrix, ordered by {order}",
                    partial(plots.GramDisplay.from_matrix, K, labels, order=order, names=names),
                ),
            )
            for order in (("class", "cluster") if labels is not None else ("cluster",))
        ],
    }


def _kernel_values(data: Dataset, model: Any, chosen: Ints) -> tuple[Floats, str]:
    """Return kernel values between the chosen objects, and what they are."""
    name = getattr(model, "best_name_", "the classifier")
    pipeline = getattr(model, "best_estimator_", model)
    why = "No model was given."
    if isinstance(pipeline, Pipeline) and len(pipeline.steps) > 1:
        pairwise = bool(get_tags(pipeline.steps[-1][1]).input_tags.pairwise)
        table = pipeline[:-1].transform(data.X if pairwise else [data.X[i] for i in chosen])
        if not pairwise and (sparse.issparse(table) or np.ndim(table) == 2):
            return Linear().normalized()(table), OWN.format(name=name)
        if pairwise and np.shape(table) == (len(data), len(data)) and np.allclose(table, np.transpose(table)):
            return _unit_diagonal(np.asarray(table, np.float64)[np.ix_(chosen, chosen)]), GIVEN.format(name=name)
        why = "The model compares these objects with others, those it was fitted to."
    elif model is not None:
        why = f"{type(pipeline).__name__} has no features or kernel values of its own."
    alphabet = data.meta.get("alphabet")
    values = gram(
        [data.X[i] for i in chosen], data.kind, alphabet=alphabet if alphabet in ("dna", "rna", "protein") else None
    )
    return values, DEFAULT.format(why=why, kind=data.kind or "such objects")


def _unit_diagonal(K: Floats) -> Floats:
    """Return a symmetric matrix with ones on the diagonal, where that is positive."""
    scale = np.sqrt(np.where(np.diag(K) > 0.0, np.diag(K), 1.0))
    K = K / np.outer(scale, scale)
    return (K + K.T) / 2


def _predictions(data: Dataset, model: Any, left: LeftOut | None, chosen: Ints) -> tuple[Any, str]:
    """Return the predicted classes of the chosen objects, and in words what they are."""
    if left is not None:
        said, known = left.first(len(data))
        if known[chosen].all():
            return shown_labels(said)[chosen], "Predictions were made when the object was left out."
    if data.y is None or model is None:
        return None, "There are no predictions."
    said = shown_labels(model.predict([data.X[i] for i in chosen]))
    return said, "Predictions are of the model about objects from which it has learned: few of them are wrong."
