"""Networks of pgmpy as networks of this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genkern.models.adapt.arrays import numbers, shares
from genkern.models.base import Model
from genkern.models.bayes_net.model import BayesNet
from genkern.models.linear_gaussian.model import LinearGaussianNet


def _observed(model: Any) -> list[Any]:
    """Return the nodes that are not latent, in the order of the model."""
    latent = set(getattr(model, "latents", ()))
    return [node for node in model.nodes() if node not in latent]


def _cpd(model: Any, node: Any) -> Any:
    found = model.get_cpds(node)
    if found is None:
        raise ValueError(f"adapt: the {type(model).__name__} has no CPD of node {node!r}: it is not fitted.")
    return found


def _tables(model: Any) -> Model:
    """Return the network; codes are positions in ``state_names``, columns are the nodes that are not latent."""
    nodes = {}
    for node in model.nodes():
        cpd = _cpd(model, node)
        nodes[node] = (list(cpd.variables[1:]), shares(np.moveaxis(np.asarray(cpd.values), 0, -1)))
    return BayesNet(nodes, _observed(model))


def _gaussians(model: Any) -> Model:
    nodes = {}
    for node in model.nodes():
        cpd = _cpd(model, node)
        bias, *weights = numbers(cpd.beta).tolist()
        nodes[node] = (list(cpd.evidence), weights, bias, float(cpd.std) ** 2)
    return LinearGaussianNet(nodes, _observed(model))


KNOWN: dict[str, Callable[..., Model]] = {
    "DiscreteBayesianNetwork": _tables,
    "LinearGaussianBayesianNetwork": _gaussians,
}
