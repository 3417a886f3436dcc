"""One model per class, fitted or given, with class probabilities, for embeddings that use labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from genkern.data.objects import Packed, object_digests
from genkern.data.store import Store, make_key
from genkern.models.base import Model, adapt_hint
from genkern.models.class_mixture import ClassMixture
from genkern.models.estimator import ModelEstimator
from genkern.progress import each
from genkern.validation import Floats, check_bool, check_option, check_probabilities, refuse_unused

PRIORS = ("empirical", "uniform")
VERSION = 1  # version of the fits in a store; raised whenever the same settings give another model


def fit_model(estimator: Any, packed: Packed, store: Store | None, who: str, weights: Floats | None = None) -> Model:
    """Return the model of a clone that is fitted to encoded objects, or was before with the same settings."""
    given = {} if weights is None else {"sample_weight": weights}
    if store is None:
        model: Model = clone(estimator).fit(packed, **given).model_
        return model
    if not isinstance(store, Store):
        raise TypeError(f"{who}: 'store' must be a Store or None. Got {type(store).__name__}.")
    key = make_key("fit_model", VERSION, estimator, object_digests(packed), *given.values())
    (model,) = store.fetch_many([key], lambda missing: [clone(estimator).fit(packed, **given).model_])
    return model


def fit_class_models(
    estimator: Any,
    X: Any,
    y: Any,
    priors: Any,
    who: str,
    store: Store | None = None,
    weights: Floats | None = None,
) -> tuple[ClassMixture, Packed]:
    """Return one model per class with priors, labels in sorted order, and the objects, encoded for them.

    ``estimator`` is cloned and fitted to the objects of each class (which share the alphabet of all), or is a dict of
    one estimator per label, or of models that are used unchanged, or of some of both, or a ``ClassMixture``, whose
    priors are then used too. ``priors`` is "empirical", "uniform", probabilities in the order of the sorted labels, or
    a dict by label; None is "empirical" if models are fitted, else "uniform". ``weights`` say how often each object
    counts.
    """
    encoded, given = X, estimator
    if are_given(estimator):
        if priors is not None and not _empirical(priors):
            raise ValueError(f"{who}: a ClassMixture has priors of its own. Leave the parameter 'priors' out.")
        given = estimator.class_models
        priors = dict(zip(given, estimator.priors))
    if isinstance(given, Mapping):
        _check_given(given, who)
        classes = np.unique(np.array(list(given)))
    else:
        y = check_labels(y, who)
        classes = np.unique(y)
        encoded = check_estimator_of_models(estimator, who).pack(X)
        given = {_plain(c): estimator for c in classes}
    fits = fits_classes(given)
    labels = check_labels(y, who) if fits else y
    priors = ("empirical" if fits else "uniform") if priors is None else priors
    counts = _count(classes, X, labels, who, weights) if _empirical(priors) or labels is not None else None
    shares = _check_priors(priors, classes, counts, who)
    of = store, who, weights
    models = {_plain(c): _fitted(given[_plain(c)], encoded, labels == c, (c, *of)) for c in each(classes)}
    _check_alphabets(models, who)
    mixture = ClassMixture(models, shares)
    return mixture, mixture.pack(encoded)


def are_given(estimator: Any) -> bool:
    """Return whether a model that has those of the classes was given in place of an estimator."""
    return isinstance(estimator, Model) and bool(estimator.class_models)


def fits_classes(estimator: Any) -> bool:
    """Return whether this is a dict of classes with an estimator among them, which needs labelled objects."""
    return isinstance(estimator, Mapping) and any(isinstance(entry, ModelEstimator) for entry in estimator.values())


def _empirical(priors: Any) -> bool:
    return isinstance(priors, str) and priors == "empirical"


def _fitted(entry: Any, X: Any, own: Any, of: tuple[Any, Store | None, str, Floats | None]) -> Model:
    """Return the model of a class: a given one, or one fitted to X[own], of this label, store, caller and weights."""
    if isinstance(entry, Model):
        return entry
    label, store, who, weights = of
    if not own.any():
        raise ValueError(f"{who}: class {_plain(label)!r} has an estimator, but y has no object of this class.")
    rows = np.flatnonzero(own)
    return fit_model(entry, entry.pack(X).take(rows), store, who, None if weights is None else weights[rows])


def _check_given(entries: Mapping[Any, Any], who: str) -> None:
    """Refuse anything but a dict of models and estimators by labels of one kind."""
    labels = list(entries)
    if not labels:
        raise ValueError(f"{who}: the dict of class models is empty. Give one model per label.")
    if np.array(labels).tolist() != labels:
        raise TypeError(f"{who}: the labels of class models must be of one kind. Got {', '.join(map(repr, labels))}.")
    for label, entry in entries.items():
        if not isinstance(entry, Model | ModelEstimator):
            told = f"{type(entry).__name__}.{adapt_hint(entry)}"
            raise TypeError(f"{who}: class {label!r} must have a model, or an estimator of models. Got {told}")


def _check_alphabets(models: Mapping[Any, Model], who: str) -> None:
    """Refuse models of different symbols."""
    labels, alphabets = list(models), [_alphabet_of(model) for model in models.values()]
    for label, alphabet in zip(labels, alphabets):
        if alphabet != alphabets[0]:
            raise ValueError(
                f"{who}: the models of all classes must be over the same alphabet. Class {labels[0]!r} has "
                f"{alphabets[0]}, class {label!r} {alphabet}; name it when they are fitted, as in "
                "CategoricalEstimator('dna')."
            )


def _alphabet_of(model: Any) -> Any:
    """Return the alphabet of a model's emissions, None for numbers."""
    return getattr(getattr(model, "emissions", model), "alphabet", None)


def check_labels(y: Any, who: str) -> NDArray[Any]:
    """Return y as an array of class labels."""
    if y is None:
        raise ValueError(f"{who} requires y to be passed, but the target y is None.")
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return labels


def named_models(fitted: Any) -> list[tuple[str, Any]]:
    """Return pairs (prefix of feature names, model): one without prefix, or one per class."""
    return [(f"{label}.", model) for label, model in fitted.class_models.items()] or [("", fitted)]


def fit_models(
    estimator: Any, X: Any, y: Any, per_class: bool, who: str, priors: Any = None, store: Store | None = None
) -> tuple[Any, Packed]:
    """Return one model of all objects or, for ``per_class`` and where there are class models, a ClassMixture.

    Also return the objects, encoded for it.
    """
    fits = fits_classes(estimator)
    if not check_bool(per_class, "per_class", who) and not fits:
        refuse_unused(y, X, who)
    if per_class or isinstance(estimator, Mapping):
        unused = isinstance(estimator, Mapping) and not fits
        return fit_class_models(estimator, X, None if unused else y, priors, who, store)
    if priors is not None:
        raise ValueError(f"{who}: 'priors' are those of classes. Give one model per class, or per_class=True.")
    if isinstance(estimator, Model):
        return estimator, estimator.pack(X)
    packed = check_estimator_of_models(estimator, who).pack(X)
    model = fit_model(estimator, packed, store, who)
    return model, model.pack(packed)


def _count(classes: NDArray[Any], X: Any, y: Any, who: str, weights: Floats | None) -> NDArray[Any]:
    """Return how many objects each of the given classes has, or their weight."""
    labels = check_labels(y, who)
    check_consistent_length(X, labels)
    unknown = sorted(set(labels.tolist()) - set(classes.tolist()))
    if unknown:
        raise ValueError(
            f"{who}: the models must have an entry for every label of y. There is none for {unknown[0]!r}, only for "
            f"{', '.join(map(repr, classes.tolist()))}."
        )
    return np.bincount(np.searchsorted(classes, labels), weights, len(classes))


def _check_priors(priors: Any, classes: NDArray[Any], counts: Any, who: str) -> Floats:
    """Return the class probabilities in the order of ``classes``."""
    if isinstance(priors, str):
        check_option(priors, PRIORS, "priors", f"{who}, if no probabilities or dict,")
        weights = counts if priors == "empirical" else np.ones(len(classes))
        return np.asarray(weights / np.sum(weights), np.float64)
    values = priors
    if isinstance(priors, Mapping):
        values = [_by_label(priors, label, "priors", who) for label in classes]
    return check_probabilities(values, "priors", who, shape=(len(classes),))


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _by_label(table: Mapping[Any, Any], label: Any, what: str, who: str) -> Any:
    """Return the entry of a label."""
    if _plain(label) not in table:
        raise ValueError(
            f"{who}: the {what} must have an entry for every label. There is none for {_plain(label)!r}, only for "
            f"{', '.join(map(repr, table))}."
        )
    return table[_plain(label)]


def check_estimator_of_models(estimator: Any, who: str) -> ModelEstimator:
    """Return the estimator if it fits models."""
    if not isinstance(estimator, ModelEstimator):
        raise TypeError(
            f"{who}: 'estimator' must be an estimator of models, such as HMMEstimator(n_states=3). "
            f"Got {type(estimator).__name__}.{adapt_hint(estimator)}"
        )
    return estimator
