"""Affinities between Bayesian networks: one contraction over the tables of both, and affinities of their leaves."""

from __future__ import annotations

import math

import numpy as np

from genkern.affinities.how import Expected, How, Mean, Power
from genkern.affinities.registry import affinity
from genkern.affinities.rules import PairError
from genkern.models.bayes_net.model import BayesNet
from genkern.models.bayes_net.rows import every_row, sweep
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
       \prod_u \psi(f_u, f'_u)

    with :math:`\psi` the affinity of the leaves of a continuous node u, for every two joint states of its parents in
    both networks. The mean map has :math:`\rho = 1`, own observations x, x' of both networks, and a factor
    :math:`(1 - e^{-\lambda}) [x_v = x'_v] + e^{-\lambda}` for every observed discrete node.
    """
    left, right = ({g.names[v]: g.sizes[v] for v in g.observed} for g in (P.graph, Q.graph))
    if list(left.items()) != list(right.items()):
        raise ValueError(
            "affinity: both networks must observe the same nodes with the same numbers of states (0: continuous), in "
            f"the same order. Got {left} and {right}."
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
        emitted = f"{symbols[0]} symbols" if symbols[0] else "points of numbers"
        raise ValueError(
            f"affinity: the observed nodes of the network have {sizes} states (0: continuous), the hidden Markov model "
            f"emits {emitted}."
        )
    return _contracted(P, unrolled, how)


def _contracted(P: BayesNet, Q: BayesNet, how: How) -> Floats:
    """Return G + (a, b), a few pairs at a time."""
    *batch, a = P.shape
    b = Q.shape[-1]
    graph, own = _joined(P.graph, Q.graph, shared=isinstance(how, Power))
    extra = np.concatenate([_links(P.graph, how), np.ones(own)])
    power = how.weight_power
    left, right = (side.values.reshape(math.prod(side.shape), side.values.shape[-1]) ** power for side in (P, Q))
    block, row, column = np.indices((math.prod(batch), a, b)).reshape(3, -1)
    first, second = block * a + row, block * b + column
    psi = _leaf_affinities(P, Q, how)
    out = np.empty(len(first))
    step = max(2, CHUNK // max(1, left.shape[1] + right.shape[1] + len(extra)))
    for low in range(0, len(out), step):
        some = slice(low, low + step)
        size = len(first[some])
        values = np.concatenate([left[first[some]], right[second[some]], np.tile(extra, (size, 1))], axis=1)
        rows = every_row(np.full((size, len(graph.names)), -1), np.arange(size))
        logs = {v: table[some] for v, table in psi.items()}
        for part in sweep(graph, values, rows, logs, backward=False):
            out[low + part.rows] = part.log_prob
    return out.reshape(*batch, a, b)


def _leaf_affinities(P: BayesNet, Q: BayesNet, how: How) -> dict[int, Floats]:
    """Return the log affinities (pairs, k k') of the leaves of every continuous node, by the node of P."""
    *batch, a = P.shape
    b, found, others = Q.shape[-1], {}, Q.leaf_stacks()
    partner = dict(zip(P.graph.observed, Q.graph.observed, strict=True))
    for v, leaf in P.leaf_stacks().items():
        other = others[partner[v]]
        k, m = leaf.shape[-1], other.shape[-1]
        try:
            logs = affinity.block(rebatch(leaf, (*batch, a * k)), rebatch(other, (*batch, b * m)), how)
        except PairError as error:
            *outer, i, j = error.index
            name = P.graph.names[v]
            raise PairError((*outer, i // k, j // m), f"in the leaves of node {name!r}, {error.text}") from None
        logs = np.moveaxis(logs.reshape(*batch, a, k, b, m), -2, -3)
        found[v] = logs.reshape(-1, k * m)
    return found


def _links(graph: Graph, how: How) -> Floats:
    """Return the factors between both networks' observations, flat; none if the observations are one and the same."""
    if not isinstance(how, Mean):
        return np.zeros(0)
    lam = 2.0 * how.scale * how.lam  # one-hot vectors of different symbols are at squared distance, and distance, two
    same, other = -math.expm1(-lam), math.exp(-lam)
    links = [(same * np.eye(graph.sizes[v]) + other).ravel() for v in graph.observed if graph.sizes[v]]
    return np.concatenate([np.zeros(0), *links])


def _joined(left: Graph, right: Graph, shared: bool) -> tuple[Graph, int]:
    """Return a graph whose tables are those of both networks, and the number of ones that end its parameters.

    Only the shapes of tables matter for a contraction, and a table is that of a node given its parents. So the nodes of
    the left network, with their tables, are followed by one node of a single state for every table of the right one
    and for every factor between observations, and these by the right network's own nodes, with tables of ones. A
    continuous node has the parents of both networks.
    """
    pairs = list(zip(left.observed, right.observed, strict=True))
    partner = {u: v for u, v in pairs if left.sizes[u] == 0}
    families = [(*right.parents[v], v) for v in range(len(right.names)) if right.sizes[v]]
    links = [] if shared else [(u, v) for u, v in pairs if u not in partner]
    begin = len(left.names) + len(families) + len(links)
    place = {v: u for u, v in pairs if shared and u not in partner}
    own = [v for v in range(len(right.names)) if v not in place and right.sizes[v]]
    place |= {v: begin + k for k, v in enumerate(own)}
    more = {u: tuple(place[p] for p in right.parents[v]) for u, v in partner.items()}
    parents = [
        *((*above, *more.get(u, ())) for u, above in enumerate(left.parents)),
        *(tuple(place[u] for u in family) for family in families),
        *((u, place[v]) for u, v in links),
        *(() for _ in own),
    ]
    sizes = [*left.sizes, *(1 for _ in (*families, *links)), *(right.sizes[v] for v in own)]
    nodes = tuple(range(len(sizes)))
    return Graph(nodes, tuple(parents), tuple(sizes), nodes, ()), sum(right.sizes[v] for v in own)
