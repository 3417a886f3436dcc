"""Models and distributions of pomegranate (from version 1 on) as models of this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genkern.models.adapt.arrays import ROUNDED, attribute, numbers, refuse, shares
from genkern.models.base import Model
from genkern.models.bayes_net.model import BayesNet
from genkern.models.families.bernoulli import Bernoulli
from genkern.models.families.categorical import Categorical
from genkern.models.families.exponential import Exponential
from genkern.models.families.gamma import Gamma
from genkern.models.families.gaussian import Gaussian
from genkern.models.families.poisson import Poisson
from genkern.models.hmm.model import HMM
from genkern.models.leaf import Leaf
from genkern.models.markov.model import MarkovChain
from genkern.models.mixture.model import Mixture
from genkern.validation import Floats

# --- distributions


def _normal(law: Any) -> Leaf:
    means, covs = numbers(attribute(law, "means")), numbers(law.covs)
    if law.covariance_type == "sphere":
        covs = np.broadcast_to(covs, means.shape)
    return Gaussian(means, covs)


def _row(law: Any) -> Floats:
    """Return the probabilities of a categorical distribution of one dimension."""
    probs = shares(attribute(law, "probs"))
    if len(probs) != 1:
        refuse(law, f"{len(probs)} dimensions (only one has)")
    row: Floats = probs[0]
    return row


def _gamma(law: Any) -> Leaf:
    return Gamma(numbers(attribute(law, "shapes")), 1.0 / numbers(law.rates))


LAWS: dict[str, Callable[[Any], Leaf]] = {
    "Bernoulli": lambda law: Bernoulli(numbers(attribute(law, "probs"))),
    "Categorical": lambda law: Categorical(_row(law)),
    "Exponential": lambda law: Exponential(numbers(attribute(law, "scales"))),
    "Gamma": _gamma,
    "Normal": _normal,
    "Poisson": lambda law: Poisson(numbers(attribute(law, "lambdas"))),
}


def _stack(model: Any, mixtures: bool = False) -> Leaf:
    """Return the distributions of a model as one stack."""
    found: list[Any] = []
    for i, law in enumerate(model.distributions):
        name = type(law).__name__
        if name not in LAWS and not (mixtures and name == "GeneralMixtureModel"):
            raise TypeError(
                f"adapt: distribution {i} of the {type(model).__name__} must be one of {', '.join(LAWS)}"
                f"{', GeneralMixtureModel' * mixtures}. Got {name}."
            )
        found.append(LAWS[name](law) if name in LAWS else _mixture(law))
    if len({type(law) for law in found}) > 1:
        refuse(model, "distributions of different families")
    return type(found[0]).stack(found)


def _mixture(model: Any) -> Mixture:
    return Mixture(shares(attribute(model, "priors")), _stack(model))


# --- hidden Markov models


def _edges(model: Any) -> Floats:
    """Return the matrix of transitions."""
    logs = numbers(attribute(model, "edges"))
    if logs.ndim == 2:
        return np.exp(logs)
    edges = np.zeros((len(model.distributions),) * 2)
    edges[numbers(model._edge_idx_starts).astype(int), numbers(model._edge_idx_ends).astype(int)] = np.exp(logs)
    return edges


def _hidden(model: Any) -> Model:
    """Return the model: of all lengths, with stop probabilities, or with end weights where transitions sum to one.

    Where every end weight is one, sequences are of given lengths.
    """
    start, edges = np.exp(numbers(attribute(model, "starts"))), _edges(model)
    ends = np.ones(len(edges)) if model.ends is None else np.exp(numbers(model.ends))
    emissions = _stack(model, mixtures=True)
    start /= _near_one(start.sum(), model, "start probabilities")
    whole = edges.sum(axis=1) + ends
    if np.abs(whole - 1.0).max() < ROUNDED:
        return HMM(start, edges / whole[:, None], emissions, stop=ends / whole)
    edges /= _near_one(edges.sum(axis=1), model, "transitions, with or without those to the end,")[:, None]
    if np.abs(ends - 1.0).max() < ROUNDED:
        return HMM(start, edges, emissions)
    return HMM(start, edges, emissions, end=ends / _near_one(ends.sum(), model, "end weights"))


def _near_one(total: Any, model: Any, what: str) -> Any:
    """Return sums that miss one by rounding alone."""
    if np.abs(total - 1.0).max() > ROUNDED:
        refuse(model, f"{what} that do not sum to one")
    return total


# --- chains and networks


def _conditional(law: Any) -> Floats:
    tables = attribute(law, "probs")
    if type(law).__name__ == "Categorical":
        return _row(law)
    if len(tables) != 1:
        refuse(law, f"{len(tables)} dimensions (only one has)")
    return shares(tables[0])


def _chain(model: Any) -> Model:
    """Return the chain, with the joint law of its first k symbols."""
    tables = [_conditional(law) for law in attribute(model, "distributions")]
    start = np.ones(())
    for table in tables[:-1]:
        start = start[..., None] * table
    return MarkovChain(start, tables[-1])


def _network(model: Any) -> Model:
    """Return the network; its nodes are numbers, one for each column."""
    nodes = {}
    for i, law in enumerate(attribute(model, "distributions")):
        if type(law).__name__ not in ("Categorical", "ConditionalCategorical"):
            refuse(model, f"a {type(law).__name__} at node {i} (only categorical ones have)")
        nodes[i] = (list(model._parents[i]), _conditional(law))
    return BayesNet(nodes)


KNOWN: dict[str, Callable[..., Model]] = {
    **LAWS,
    "GeneralMixtureModel": _mixture,
    "DenseHMM": _hidden,
    "SparseHMM": _hidden,
    "MarkovChain": _chain,
    "BayesianNetwork": _network,
}
