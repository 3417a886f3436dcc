"""The section on models: what a fitted classifier has learned, from the models in it to its steps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from genkern import plots
from genkern.models.base import Model
from genkern.report.parts import SHOWN, Figure, draw, short

MOST, LISTED = 4, 30  # models that are drawn, and that are named
INSIDE = 40  # members of a list that are looked into


def section(model: Any) -> dict[str, Any]:
    """Return the steps of a classifier and its models, some with pictures; what it has instead where there are none."""
    if model is None:
        return {"why": "No model was given.", "steps": [], "drawn": [], "listed": [], "count": 0}
    fitted = getattr(model, "best_estimator_", model)
    found = [(where, _named(value), value) for where, value in _unlike(walk(fitted))]
    pictured: list[dict[str, Any]] = []
    for where, what, value in found:
        figures = _figures(value) if len(pictured) < MOST else []
        if figures:
            pictured.append({"where": where, "what": what, "figures": figures})
    why = ""
    if not found:
        why = "It has no generative model: what it has learned are the features and weights of the steps above."
    elif not pictured:
        why = "There are no pictures of such models: they have neither states, nor symbols, nor curves."
    listed = [(where, what) for where, what, _ in found[:LISTED]]
    return {"why": why, "steps": list(_steps(fitted)), "drawn": pictured, "listed": listed, "count": len(found)}


def walk(part: Any, where: tuple[str, ...] = (), seen: set[int] | None = None) -> Iterator[tuple[str, Model]]:
    """Yield the models in a fitted estimator, each once, with the names of the steps that lead to it."""
    seen = set() if seen is None else seen
    if id(part) in seen:
        return
    seen.add(id(part))
    if isinstance(part, Model):
        yield " › ".join(where), part
    elif isinstance(part, BaseEstimator):
        for name, value in vars(part).items():
            if name in ("steps", "transformer_list") and isinstance(value, list):
                for step in value:
                    yield from walk(step[1], (*where, str(step[0])), seen)
            elif name.endswith("_"):
                yield from walk(value, where, seen)
    elif isinstance(part, dict):
        for key, value in part.items():
            yield from walk(value, (*where, str(key)), seen)
    elif isinstance(part, list | tuple):
        for i, value in enumerate(part[:INSIDE]):
            yield from walk(value, (*where, f"{i + 1} of {len(part)}"), seen)


def _unlike(found: Iterator[tuple[str, Model]]) -> Iterator[tuple[str, Model]]:
    """Yield models that are not equal to an earlier one."""
    known: list[Model] = []
    for where, value in found:
        if not any(type(value) is type(other) and value == other for other in known):
            known.append(value)
            yield where, value


def _named(model: Model) -> str:
    text = " ".join(repr(model).split())
    return text if len(text) <= 2 * SHOWN else type(model).__name__


def _figures(model: Model) -> list[Figure]:
    """Return the pictures that a model has; displays refuse models which they cannot draw."""
    one = model[0] if model.shape else model
    drawn = [
        draw(
            "States",
            partial(plots.StateDiagramDisplay.from_model, one),
            "Arrows are as wide as the transition is probable; rare ones are left out.",
        ),
        draw("Symbols", partial(plots.LogoDisplay.from_model, one), "Letters are as high as they are informative."),
        draw(
            "Mean values",
            partial(plots.MeanCurveDisplay.from_model, one),
            "Means of the states; the band is one standard deviation.",
        ),
    ]
    return [figure for figure in drawn if figure.svg]


def _steps(model: Any) -> Iterator[dict[str, Any]]:
    """Yield the steps of a classifier in words."""
    if isinstance(model, Pipeline):
        for name, step in model.steps:
            yield {"name": name, "what": type(step).__name__, "facts": ", ".join(_learned(step))}
    else:
        yield {"name": "classifier", "what": type(model).__name__, "facts": ", ".join(_learned(model))}


def _learned(step: Any) -> Iterator[str]:
    """Yield what is known of a fitted step."""
    inner = getattr(step, "best_estimator_", step)
    if inner is not step:
        chosen = ", ".join(f"{key} = {short(value)}" for key, value in step.best_params_.items())
        yield f"{type(inner).__name__} chosen by cross-validation" + (f": {chosen}" if chosen else "")
    if hasattr(inner, "transformer_list"):
        yield "side by side: " + ", ".join(str(name) for name, *_ in inner.transformer_list)
    if getattr(inner, "n_features_in_", None) is not None:
        yield f"{inner.n_features_in_:,} features in"
    if hasattr(inner, "alpha_"):
        yield f"penalty {float(np.ravel(inner.alpha_)[0]):g}"
    support = getattr(inner, "n_support_", None)
    if support is not None:
        yield f"{int(np.sum(support)):,} support vectors"
