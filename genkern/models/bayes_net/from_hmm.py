"""Hidden Markov models of one length as Bayesian networks."""

from __future__ import annotations

from typing import Any

from genkern.models.bayes_net.model import BayesNet
from genkern.models.families.categorical import Categorical
from genkern.validation import check_int

__all__ = ["BayesNet", "unroll"]


def unroll(model: Any, length: int) -> BayesNet:
    """Return the network of an HMM's sequences of one length; objects are rows of their symbols' codes, or points."""
    model._require_single("to_bayes_net")
    check_int(length, "length", "HMM.to_bayes_net", 1)
    if model.final is not None:
        raise ValueError(
            "HMM.to_bayes_net needs a model without 'stop' probabilities and 'end' weights: with them, sequences of "
            "one length do not have total probability one, as the rows of a network do."
        )
    symbols = isinstance(model.emissions, Categorical)
    shown, law = ("symbol", model.emissions.probs) if symbols else ("point", model.emissions)
    nodes: dict[str, Any] = {}
    for t in range(length):
        nodes[f"state{t}"] = ([f"state{t - 1}"], model.transitions) if t else ([], model.start)
        nodes[f"{shown}{t}"] = ([f"state{t}"], law)
    return BayesNet(nodes, observed=[f"{shown}{t}" for t in range(length)])
