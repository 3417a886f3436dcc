"""Affinities between discrete Bayesian networks: one contraction over the tables of both."""

from __future__ import annotations

import math

import numpy as np

from genkern.affinities.how import Expected, How, Power
from genkern.affinities.registry import affinity
from genkern.models.bayes_net.model import BayesNet
from genkern.models.bayes_net.rows import DistinctRows, sweep
from genkern.models.graph.model import Graph
from genkern.models.hmm.model import HMM
from genkern.models.value import rebatch
from genkern.validation import Floats

CHUNK = 1 << 21  # parameters of pairs at a time
PRODUCT = "Jebara, Kondor & Howard (2004), section 4.3, the power inside the sum over hidden nodes"
MEAN_MAP = "Mehta & Gray (2010), section 3, with eq. 2 for every observed node"
AS_MANY = "as many observations as observed nodes"


@affinity.register(BayesNet, BayesNet, Power, reference=PRODUCT)
@affinity.register(BayesNet, BayesNet, Expected, reference=MEAN_MAP)
def one_contraction(P: BayesNet, Q: BayesNet, how: How) -> Floats:
    r"""Return the log kernel between networks of any two structures with the same observed nodes, G + (a, b).

    .. math:: \log \sum_{x_O, h, h'} \prod_v \theta_v(x_O, h)^\rho \prod_v \theta'_v(x_O, h')^\rho

    The mean map has :math:`\rho = 1`, own observations x, x' of both networks, and a factor
    :math:`(1 - e^{-\lambda}) [x_v = x'_v] + e^{-\lambda}` for every observed node.
    """
    left, right = ({g.names[v]: g.sizes[v] for v in g.observed} for g in (P.graph, Q.graph))
    if list(left.items()) != list(right.items()):
        raise ValueError(
            "affinity: both networks must observe the same nodes with the same numbers of states, in the same order. "
            f"Got {left} and {right}."
        )
    return _contracted(P, Q, how)


@affinity.register(BayesNet, HMM, Power, length="all", reference=f"{PRODUCT}; {AS_MANY}")
@affinity.register(BayesNet, HMM, Power, length="given", reference=f"{PRODUCT}; {AS_MANY}")
@affinity.register(BayesNet, HMM, Expected, length="all", reference=f"{MEAN_MAP}; {AS_MANY}")
@affinity.register(BayesNet, HMM, Expected, length="given", reference=f"{MEAN_MAP}; {AS_MANY}")
def network_and_hmm(P: BayesNet, Q: HMM, how: How, length: int | None = None) -> Floats:
    """Return the log kernel of a network and a hidden Markov model whose symbols are the observed nodes, G + (a, b)."""
    size = P.draw_size
    if length not in (None, size):
        raise ValueError(
            f"affinity: a row of the network holds {size} observations, and the hidden Markov model is compared by "
            f"sequences of as many. Got length={length}; give length={size}, or a network of {length} observed nodes."
        )
    nets = [member.to_bayes_net(size) for member in rebatch(Q, (-1,)).unstack()]
    unrolled = rebatch(BayesNet.stack(nets), Q.shape)
    sizes = [P.graph.sizes[v] for v in P.graph.observed]
    symbols = [unrolled.graph.sizes[v] for v in unrolled.graph.observed]
    if sizes != symbols:
        raise ValueError(
            f"affinity: the observed nodes of the network have {sizes} states, the hidden Markov model emits "
            f"{symbols[0]} symbols."
        )
    return _contracted(P, unrolled, how)


def _contracted(P: BayesNet, Q: BayesNet, how: How) -> Floats:
    """Return G + (a, b), a few pairs at a time."""
    *batch, a = P.shape
    b = Q.shape[-1]
    graph, own = _joined(P.graph, Q.graph, shared=isinstance(how, Power))
    extra = np.concatenate([_links(P.graph, how), np.ones(own)])
    power = how.weight_power
    left, right = (side.values.reshape(-1, side.values.shape[-1]) ** power for side in (P, Q))
    block, row, column = np.indices((math.prod(batch), a, b)).reshape(3, -1)
    first, second = block * a + row, block * b + column
    out = np.empty(len(first))
    step = max(2, CHUNK // (left.shape[1] + right.shape[1] + len(extra)))
    for low in range(0, len(out), step):
        some = slice(low, low + step)
        size = len(first[some])
        values = np.concatenate([left[first[some]], right[second[some]], np.tile(extra, (size, 1))], axis=1)
        each = np.arange(size)
        rows = DistinctRows(np.full((size, len(graph.names)), -1), each, each, each, np.arange(size + 1))
        for part in sweep(graph, values, rows, backward=False):
            out[low + part.rows] = part.log_prob
    return out.reshape(*batch, a, b)


def _links(graph: Graph, how: How) -> Floats:
    """Return the factors between both networks' observations, flat; none if the observations are one and the same."""
    if not isinstance(how, Expected):
        return np.zeros(0)
    same, other = -math.expm1(-how.lam), math.exp(-how.lam)
    return np.concatenate([(same * np.eye(graph.sizes[v]) + other).ravel() for v in graph.observed])


def _joined(left: Graph, right: Graph, shared: bool) -> tuple[Graph, int]:
    """Return a graph whose tables are those of both networks, and the number of ones that end its parameters.

    Only the shapes of tables matter for a contraction, and a table is that of a node given its parents. So the nodes of
    the left network, with their tables, are followed by one node of a single state for every table of the right one
    and for every factor between observations, and these by the right network's own nodes, with tables of ones.
    """
    families = [(*right.parents[v], v) for v in range(len(right.names))]
    links = [] if shared else list(zip(left.observed, right.observed, strict=True))
    begin = len(left.names) + len(families) + len(links)
    place = dict(zip(right.observed, left.observed, strict=True)) if shared else {}
    own = [v for v in range(len(right.names)) if v not in place]
    place |= {v: begin + k for k, v in enumerate(own)}
    parents = [
        *left.parents,
        *(tuple(place[u] for u in family) for family in families),
        *((u, place[v]) for u, v in links),
        *(() for _ in own),
    ]
    sizes = [*left.sizes, *(1 for _ in (*families, *links)), *(right.sizes[v] for v in own)]
    nodes = tuple(range(len(sizes)))
    return Graph(nodes, tuple(parents), tuple(sizes), nodes, ()), sum(right.sizes[v] for v in own)
