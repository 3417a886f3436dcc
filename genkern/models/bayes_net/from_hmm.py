"""Hidden Markov models of one length as Bayesian networks."""

from __future__ import annotations

from typing import Any

from genkern.models.bayes_net.model import BayesNet
from genkern.models.families.categorical import Categorical
from genkern.validation import check_int

__all__ = ["BayesNet", "unroll"]


def unroll(model: Any, length: int) -> BayesNet:
    """Return the network of an HMM's sequences of one length; objects are rows of the codes of their symbols."""
    model._require_single("to_bayes_net")
    check_int(length, "length", "HMM.to_bayes_net", 1)
    if not isinstance(model.emissions, Categorical):
        raise TypeError(
            f"HMM.to_bayes_net needs categorical emissions. Got {type(model.emissions).__name__}, whose observations "
            "are not symbols of an alphabet."
        )
    if model.final is not None:
        raise ValueError(
            "HMM.to_bayes_net needs a model without 'stop' probabilities and 'end' weights: with them, sequences of "
            "one length do not have total probability one, as the rows of a network do."
        )
    nodes: dict[str, Any] = {}
    for t in range(length):
        nodes[f"state{t}"] = ([f"state{t - 1}"], model.transitions) if t else ([], model.start)
        nodes[f"symbol{t}"] = ([f"state{t}"], model.emissions.probs)
    return BayesNet(nodes, observed=[f"symbol{t}" for t in range(length)])
