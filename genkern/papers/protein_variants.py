"""The experiment on protein classes: other features, and other numbers of states, to find what makes the difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.model_selection import StratifiedKFold

from genkern import ClassMixture, FisherScore, Standardize, TopScore, equal_error_rate
from genkern.papers.shared.machines import machines

TEMPERATURES = (3.0, 10.0, 100.0)


class Parts(NamedTuple):
    """Training, validation and test objects of a pair, with labels 0 and 1, and the values of C."""

    objects: list[list[str]]
    labels: list[Any]
    costs: Sequence[float]


def features(embedding: Any, known: Parts) -> list[Any]:
    """Return the features of all three parts."""
    embedding.fit(known.objects[0])
    return [embedding.transform(part) for part in known.objects]


def scaled(raw: Sequence[Any]) -> list[Any]:
    """Return features with mean 0 and variance 1 over the training part."""
    scaler = Standardize().fit(raw[0])
    return [scaler.transform(part) for part in raw]


def errors(odds: Sequence[Any], labels: Sequence[Any]) -> dict[str, float]:
    """Return both errors from decision values of validation and test objects."""
    threshold = equal_error_rate(labels[1], odds[0]).threshold
    wrong = (odds[1] > threshold) != (labels[2] == 1)
    nested = [float(wrong[labels[2] == c].mean()) for c in (0, 1)]
    return {"paper": equal_error_rate(labels[2], odds[1]).rate, "nested": sum(nested) / 2}


def svm(parts: Sequence[Any], known: Parts) -> dict[str, float]:
    """Return the errors of the support vector machine that is best on the validation part."""
    labels = known.labels
    K, *others = (part @ parts[0].T for part in parts)
    best: tuple[float, dict[str, float]] = (np.inf, {})
    for C, machine in zip(known.costs, machines(K, labels[0], known.costs), strict=True):
        odds = [machine.decision_function(part) for part in others]
        rate = equal_error_rate(labels[1], odds[0]).rate
        if rate < best[0]:
            best = rate, {**errors(odds, labels), "C": float(C)}
    return best[1]


def variants(model: ClassMixture, known: Parts) -> dict[str, dict[str, float]]:
    """Return the equal error rate and the separation of classes of other features, by name."""
    embedding = FisherScore(model, "identity", "ratio")
    fisher, top = features(embedding, known), features(TopScore(model, coordinates="ratio"), known)
    lengths = [np.array([len(one) for one in part])[:, None] for part in known.objects]
    inner = np.char.find(embedding.get_feature_names_out().astype(str), ".end[") < 0
    inside = scaled([part[:, inner] for part in fisher])
    whole, odds = scaled(fisher), scaled([part[:, :1] for part in top])
    tried = {
        "FK": whole,
        "FK, softmax coordinates": scaled(features(FisherScore(model, "identity"), known)),
        "FK, complete information": features(FisherScore(model), known),
        "FK, scores by length": scaled([part / length for part, length in zip(fisher, lengths)]),
        "FK without end weights": inside,
        "FK without end weights, heavy posterior": _with(inside, [part[:, :1] for part in inside]),
        "FK with heavy log-odds": _with(whole, odds),
        **{f"FK, temperature {t:g}": scaled([_gated(part, t) for part in top]) for t in TEMPERATURES},
        "TOP": scaled(top),
        "TOP without log-odds": scaled([part[:, 1:] for part in top]),
        "TOP with heavy log-odds": _with(scaled(top), odds),
        "TOP, scores by length": scaled(features(TopScore(model, coordinates="ratio", length_norm="length"), known)),
    }
    found = {
        name: {"paper": svm(parts, known)["paper"], "separation": _separation(parts[2], known.labels[2])}
        for name, parts in tried.items()
    }
    for name in ("FK", "TOP"):
        rate = _svm_of_others(tried[name], known)
        found[f"{name}, machine of other objects"] = {**found[name], "paper": rate}
    return found


def over_models(models: Mapping[str, ClassMixture], known: Parts) -> dict[str, dict[str, float]]:
    """Return equal error rates of all methods with other models, by the models' names."""
    found = {}
    for name, model in models.items():
        top = features(TopScore(model, coordinates="ratio"), known)
        fisher = features(FisherScore(model, "identity", "ratio"), known)
        found[name] = {
            "P": equal_error_rate(known.labels[2], top[2][:, 0]).rate,
            "FK": svm(scaled(fisher), known)["paper"],
            "TOP": svm(scaled(top), known)["paper"],
        }
    return found


def _with(parts: Sequence[Any], column: Sequence[Any]) -> list[Any]:
    """Return features and one more, with as much variance as all of them together."""
    weight = np.sqrt(parts[0].shape[1])
    return [np.concatenate([part, weight * one], axis=1) for part, one in zip(parts, column)]


def _gated(top: Any, temperature: float) -> Any:
    """Return the Fisher scores that follow from TOP features if the log-odds are divided by a temperature."""
    odds, count = top[:, :1] / temperature, (top.shape[1] - 1) // 2
    return np.concatenate([expit(odds) * top[:, 1 : 1 + count], expit(-odds) * top[:, 1 + count :]], axis=1)


def _separation(part: Any, labels: Any) -> float:
    """Return the squared difference of the class means in standard deviations, a mean over features."""
    difference = part[labels == 1].mean(axis=0) - part[labels == 0].mean(axis=0)
    spread = part.std(axis=0)
    varying = spread > 0
    return float(np.mean((difference[varying] / spread[varying]) ** 2))


def _svm_of_others(parts: Sequence[Any], known: Parts) -> float:
    """Return the equal error rate of a machine trained on the validation part, to which no model was fitted."""
    _, labels, test_labels = known.labels
    K, K_test = (part @ parts[1].T for part in parts[1:])
    odds = np.empty((len(known.costs), len(labels)))
    for fit, held in StratifiedKFold(3).split(K, labels):
        inside = machines(K[np.ix_(fit, fit)], labels[fit], known.costs)
        odds[:, held] = [machine.decision_function(K[np.ix_(held, fit)]) for machine in inside]
    rates = [equal_error_rate(labels, row).rate for row in odds]
    (machine,) = machines(K, labels, [known.costs[int(np.argmin(rates))]])
    return float(equal_error_rate(test_labels, machine.decision_function(K_test)).rate)
