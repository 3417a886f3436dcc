"""Bayesian networks of discrete and, at their ends, continuous nodes: the value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.data.describe import Rows
from genkern.data.objects import Packed
from genkern.models.base import COORDINATES, Model, Statistics
from genkern.models.bayes_net.contraction import offsets_of_tables, table_shape
from genkern.models.bayes_net.inference import marginal_table, node_posteriors
from genkern.models.bayes_net.leaves import check_continuous, flat_leaf, join_laws, log_densities, split_laws, width_of
from genkern.models.bayes_net.rows import (
    Columns,
    DistinctRows,
    RowDerivatives,
    distinct_rows,
    every_row,
    parent_states,
    sweep,
)
from genkern.models.bayes_net.sample import draw_rows
from genkern.models.graph.model import Graph, make_graph
from genkern.models.information import Information, InformationBlocks
from genkern.models.leaf import Leaf, refuse_impossible
from genkern.models.value import rebatch
from genkern.validation import Floats, check_array, check_int, check_option, check_probabilities


class BayesNet(Model):
    r"""Bayesian network of discrete nodes, some of them hidden, on any directed acyclic graph; ends may be continuous.

    .. math:: p(x_O) = \sum_{x_H} \prod_v \theta^v_{x_{pa(v)}, x_v} \prod_u f^u_{x_{pa(u)}}(x_u)

    Parameters
    ----------
    nodes : dict of node to (parents, table), or (parents, leaf)
        Names are strings or other hashables. The table of a node has shape (states of parent 1, ..., states of the
        node); its last axis sums to one. A node without children may be continuous: its leaf is a stack of any family
        of numbers (``Gaussian``, ``Poisson``, ``Gamma``, ``Mixture``, ...) of batch (states of parent 1, ...), one
        distribution f for each joint state of its parents. The order of the dict is that of the parameters.
    observed : list of nodes, optional
        The observed nodes, in the order of the columns of objects; all others are hidden. The default is all nodes.
        Continuous nodes must be observed.

    Notes
    -----
    An object is a row of one integer code per observed discrete node and of the d numbers of each continuous one, or a
    bag (m, columns) of such rows drawn independently; a 2-D array is n objects of one row each. NaN marks a missing
    entry, which is summed or integrated out.

    Rows with the same codes are computed once (unless there are continuous nodes), and all rows with the same observed
    nodes in one tensor contraction, whose order is found by ``opt_einsum``. Its reverse pass gives the derivatives by
    all tables together. Cost and memory are exponential in the width of the graph of the nodes that are not observed;
    networks that are too large are refused. Parameters of continuous nodes are those of their families.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 4.3.
    Darwiche (2003), A differential approach to inference in Bayesian networks, section 3.

    Examples
    --------
    >>> from genkern import BayesNet
    >>> net = BayesNet(
    ...     {
    ...         "rain": ([], [0.8, 0.2]),
    ...         "sprinkler": (["rain"], [[0.6, 0.4], [0.99, 0.01]]),
    ...         "wet": (["sprinkler", "rain"], [[[1.0, 0.0], [0.2, 0.8]], [[0.1, 0.9], [0.01, 0.99]]]),
    ...     },
    ...     observed=["wet"],
    ... )
    >>> np.exp(net.log_prob([[0], [1]])).round(4)
    array([0.5516, 0.4484])
    >>> net.marginal(["rain"], {"wet": 1}).round(4)
    array([0.6423, 0.3577])

    A node that is a number: heights of two kinds of trees.

    >>> from genkern import Gaussian
    >>> trees = BayesNet({"kind": ([], [0.7, 0.3]), "height": (["kind"], Gaussian([[10.0], [20.0]], [4.0, 4.0]))})
    >>> trees.log_prob([[0, 11.0], [np.nan, 15.0]]).round(4)
    array([-2.0938, -4.7371])
    >>> trees.marginal(["kind"], {"height": 15.5}).round(4)
    array([0.4007, 0.5993])
    """

    _fields = ("graph", "values", "densities")
    graph: Graph
    values: Floats
    densities: tuple[Leaf, ...]

    def __init__(self, nodes: Mapping[Any, tuple[Any, ArrayLike | Leaf]], observed: Any = None):
        who, parents, laws = "BayesNet", {}, {}
        for name, (above, law) in _check_entries(nodes):
            parents[name] = above
            laws[name] = law if isinstance(law, Leaf) else check_probabilities(law, f"table of {name!r}", who)
        sizes = {name: 0 if isinstance(law, Leaf) else law.shape[-1] for name, law in laws.items()}
        graph = make_graph(parents, sizes, observed, who)
        check_continuous(graph, who)
        for v, (name, law) in enumerate(laws.items()):
            if isinstance(law, Leaf):
                laws[name] = flat_leaf(law, graph, v, who)
            else:
                check_array(law, f"table of {name!r}", who, shape=table_shape(graph, v))
        values = [law.ravel() for law in laws.values() if not isinstance(law, Leaf)]
        leaves = tuple(law for law in laws.values() if isinstance(law, Leaf))
        self._freeze(graph=graph, values=np.concatenate([np.zeros(0), *values]), densities=leaves)

    @classmethod
    def _checked(cls, *fields: Any) -> Self:
        graph, values, leaves = fields
        if not isinstance(graph, Graph) or np.shape(values)[-1:] != offsets_of_tables(graph)[-1:]:
            raise ValueError("BayesNet: 'values' must be the tables of 'graph'.")
        check_continuous(graph, "BayesNet")
        net = cls._restore(graph, check_array(values, "values", "BayesNet"), leaves)
        wanted = [(*net.shape, parent_states(graph, v)) for v, size in enumerate(graph.sizes) if size == 0]
        if not all(isinstance(leaf, Leaf) for leaf in leaves) or [leaf.shape for leaf in leaves] != wanted:
            raise ValueError(f"BayesNet: 'densities' must be leaves of batches {wanted}, of the continuous nodes.")
        tables = [check_probabilities(table, f"table of {name!r}", "BayesNet") for name, table in net.tables.items()]
        flat = [np.zeros((*net.shape, 0)), *(table.reshape(*net.shape, -1) for table in tables)]
        return cls._restore(graph, np.concatenate(flat, axis=-1), leaves)

    def __repr__(self) -> str:
        hidden = f", {len(self.graph.hidden)} hidden" if self.graph.hidden else ""
        ends = f", {len(self.densities)} continuous" if self.densities else ""
        stack = f", stack of {self.shape}" if self.shape else ""
        inner = sum(len(leaf.parameters()) for leaf in self.densities) // max(1, math.prod(self.shape))
        count = self.values.shape[-1] + inner
        return f"BayesNet({len(self.graph.names)} nodes{hidden}{ends}, {count} parameters{stack})"

    def _heading(self) -> str:
        return repr(self)

    def _details(self) -> Rows:
        leaves = {name: [("of", leaf._kind()), *leaf._details()] for name, leaf in self.leaves.items()}
        laws = {**self.tables, **leaves}
        return [(str(name), laws[name]) for name in self.graph.names]

    @property
    def draw_size(self) -> int:
        """Number of observations in one row: one for every observed node, whatever its number of columns."""
        return len(self.graph.observed)

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch of the stack."""
        return self.values.shape[:-1]

    @property
    def observed(self) -> list[Any]:
        """Names of the observed nodes, one per column of an object."""
        return [self.graph.names[v] for v in self.graph.observed]

    @property
    def hidden(self) -> list[Any]:
        """Names of the hidden nodes."""
        return [self.graph.names[v] for v in self.graph.hidden]

    @property
    def tables(self) -> dict[Any, Floats]:
        """The table of every discrete node, batch + (states of parents, states)."""
        return {self.graph.names[v]: table for v, table in self._split(self.values).items()}

    @property
    def leaves(self) -> dict[Any, Leaf]:
        """The leaf of every continuous node, a stack of batch + (states of parents)."""
        sizes = {v: tuple(self.graph.sizes[p] for p in self.graph.parents[v]) for v in self.leaf_stacks()}
        return {self.graph.names[v]: rebatch(leaf, (*self.shape, *sizes[v])) for v, leaf in self.leaf_stacks().items()}

    def leaf_stacks(self) -> dict[int, Leaf]:
        """Return the leaves of the continuous nodes, stacks of batch + (joint states of parents)."""
        return dict(zip((v for v, size in enumerate(self.graph.sizes) if size == 0), self.densities))

    def _laws(self) -> list[Leaf]:
        """Return the families of all nodes of one network, stacks of batch (joint states of parents,)."""
        return self._once("laws", lambda: join_laws(self._split(self.values), self.leaf_stacks()))

    def _split(self, flat: Floats) -> dict[int, Floats]:
        """Return views of a flat array (..., p) as arrays (...) + table shape, one per discrete node."""
        bounds = offsets_of_tables(self.graph)
        return {
            v: flat[..., bounds[v] : bounds[v + 1]].reshape(flat.shape[:-1] + table_shape(self.graph, v))
            for v, size in enumerate(self.graph.sizes)
            if size
        }

    def _columns(self) -> Columns:
        return Columns(self.graph, {v: width_of(leaf) for v, leaf in self.leaf_stacks().items()})

    def pack(self, X: Any) -> Packed:
        """Encode rows, or bags of rows, of the codes and numbers of the observed nodes."""
        return self._columns().pack(X, {v: leaf.pack for v, leaf in self.leaf_stacks().items()}, "BayesNet")

    def sweep(self, packed: Packed, backward: bool) -> tuple[DistinctRows, Iterator[RowDerivatives]]:
        """Return the distinct rows of objects, each under its own model of a stack, and their log-probabilities."""
        columns = self._columns()
        rows = distinct_rows(packed, columns, own=bool(self.shape))
        logs = log_densities(columns, self.leaf_stacks(), packed)
        return rows, sweep(self.graph, self.values, rows, logs, backward)

    # --- likelihood and posterior

    def log_prob(self, X: Any) -> Floats:
        """Return the log-likelihood of each object, shape (n_objects,) + batch; -inf where it is impossible."""
        packed = self.pack(X)
        if self.shape:
            columns = [self[index].log_prob(packed) for index in np.ndindex(self.shape)]
            return np.stack(columns, axis=-1).reshape((-1, *self.shape))
        rows, blocks = self.sweep(packed, backward=False)
        logs = np.empty(len(rows.codes))
        for block in blocks:
            logs[block.rows] = block.log_prob
        return rows.per_object(logs, packed)

    def posterior(self, X: Any, nodes: Any = None) -> list[dict[Any, Floats]]:
        r"""Return :math:`p(x_v | x_O)` of each row of each object, by node.

        Parameters
        ----------
        X : list of objects
        nodes : list of nodes, optional
            Discrete ones; the default is all hidden nodes. An observed node has its own code for certain, unless it is
            missing.

        Returns
        -------
        posteriors : list of dict of node to ndarray of shape (m, states)
        """
        self._require_single("posterior")
        return node_posteriors(self, self.pack(X), self.hidden if nodes is None else list(nodes))

    def marginal(self, nodes: Any, evidence: Mapping[Any, Any] | None = None) -> Floats:
        """Return the joint distribution of some nodes given the states of others.

        Parameters
        ----------
        nodes : list of nodes
            Discrete ones, hidden or observed.
        evidence : dict of node to code, optional
            Hidden or observed nodes; of continuous ones the number, or vector.

        Returns
        -------
        table : ndarray with one axis per node, of sum one
        """
        self._require_single("marginal")
        return marginal_table(self, [nodes] if isinstance(nodes, str) else list(nodes), evidence or {})

    # --- E-step, gradient, information

    def statistics(self, X: Any, totals: bool = False) -> Statistics:
        """Return posterior expected statistics per object, or summed over objects (``totals``).

        Blocks: for each discrete node, under ``tables.<node>``, the raw derivative (G,) + table shape; times the table
        it is the posterior of the node and its parents, summed over the rows of an object. For each continuous node,
        under ``leaves.<node>.<name>``, (G, k, ...), the statistics of its family, with the posteriors of the k joint
        states of its parents as weights. A stack of batch (n_objects,) treats object i under its own model i.
        """
        packed = self.pack(X)
        if self.shape not in ((), (packed.n_objects,)):
            raise ValueError(
                f"BayesNet.statistics needs one model or one per object. Got a stack of {self.shape} for "
                f"{packed.n_objects} objects."
            )
        rows, found = self.sweep(packed, backward=True)
        logs = np.empty(len(rows.codes))
        out = np.zeros((1 if totals else packed.n_objects, self.values.shape[-1]))
        weights = {v: np.zeros((len(logs), leaf.shape[-1])) for v, leaf in self.leaf_stacks().items()}
        starts = offsets_of_tables(self.graph)
        for block in found:
            logs[block.rows] = block.log_prob
            counts, (local, equal) = np.diff(rows.bounds)[block.rows, None], rows.occurrences(block.rows)
            for node, places, raw in block.pieces:
                if node in weights:
                    weights[node][block.rows[:, None], places] = raw
                elif totals:
                    a, b = starts[node : node + 2]
                    out[0, a:b] += np.bincount((places - a).ravel(), (counts * raw).ravel(), b - a)
                else:
                    np.add.at(out, (packed.owners[equal][:, None], places[local]), raw[local])
        log_prob = rows.per_object(logs, packed)
        refuse_impossible(log_prob, "BayesNet")
        blocks = {f"tables.{self.graph.names[v]}": part for v, part in self._split(out).items()}
        for v, leaf in self.leaf_stacks().items():
            parts = leaf.weigh(self._columns().points(packed, v), weights[v], totals)
            blocks |= {f"leaves.{self.graph.names[v]}.{name}": part for name, part in parts.items()}
        return Statistics(self, log_prob, packed.lengths, blocks)

    def law_blocks(self, statistics: Statistics, v: int) -> dict[str, Floats]:
        """Return the statistics (G, k, ...) of the family of a node, for the k joint states of its parents."""
        name = self.graph.names[v]
        if self.graph.sizes[v]:
            raw = statistics[f"tables.{name}"]
            return {"probs": raw.reshape(len(raw), -1, self.graph.sizes[v])}
        start = f"leaves.{name}."
        others = tuple(f"leaves.{other}." for other in self.leaves if str(other).startswith(f"{name}."))
        return {
            inner.removeprefix(start): part
            for inner, part in statistics.blocks.items()
            if inner.startswith(start) and not inner.startswith(others)
        }

    def gradient(self, statistics: Statistics, coordinates: str = "softmax") -> Floats:
        """Return derivatives (G, p) of the log-likelihood from the statistics of one model."""
        parts = [law.member_gradient(self.law_blocks(statistics, v), coordinates) for v, law in enumerate(self._laws())]
        return np.concatenate(parts, axis=1)

    def information(self, lengths: ArrayLike, coordinates: str = "softmax") -> InformationBlocks:
        """Return the complete-data Fisher information, averaged over numbers of rows, as pairs (index, block).

        It is that of the complete data, all nodes observed: one block per row of a table, weighted by the probability
        of the parents' states, and the blocks of the families of continuous nodes.
        """
        self._require_single("information")
        leaves, draws = self.leaf_stacks(), float(np.mean(np.asarray(lengths)))
        blank = every_row(np.full((1, len(self.graph.names)), -1, np.int64))
        nothing = {v: np.zeros((1, len(leaf))) for v, leaf in leaves.items()}
        prior = next(sweep(self.graph, self.values, blank, nothing, backward=True))
        pieces = {piece.node: piece for piece in prior.pieces}
        blocks: list[Information] = []
        for v, law in enumerate(self._laws()):
            joint = pieces[v].raw[0] * (1.0 if v in leaves else self.values[pieces[v].places[0]])
            blocks += law.member_information(draws * joint.reshape(len(law), -1).sum(axis=1), coordinates)
        ends = np.cumsum([len(block) for block in blocks])
        return [(np.arange(end - len(block), end), block) for end, block in zip(ends, blocks)]

    @property
    def n_tied(self) -> int:
        """Number of parameters that repeat others: a covariance shared by all distributions of a node."""
        return sum(leaf.n_tied for leaf in self.densities)

    # --- parameters

    def parameters(self, coordinates: str = "softmax") -> Floats:
        """Return the parameter vector (p,): all tables, flattened row-major, and leaves, in the order of the nodes."""
        self._require_single("parameters")
        check_option(coordinates, COORDINATES, "coordinates", "BayesNet.parameters")
        return np.concatenate([law.parameters(coordinates) for law in self._laws()])

    def with_parameters(self, vector: ArrayLike, coordinates: str = "softmax") -> Self:
        """Return the model at a parameter vector; raw coordinates are not normalised."""
        self._require_single("with_parameters")
        check_option(coordinates, COORDINATES, "coordinates", "BayesNet.with_parameters")
        given = np.asarray(vector, dtype=np.float64)
        ends = np.isinf(given)  # softmax coordinates of the ends of ranges, such as a zero probability
        laws = self._laws()
        bounds = np.cumsum([0, *(len(law.parameters()) for law in laws)])
        checked = check_array(np.where(ends, 0.0, given), "vector", "BayesNet", shape=(int(bounds[-1]),))
        parts = np.split(np.where(ends, given, checked), bounds[1:-1])
        changed = [law.with_parameters(part, coordinates) for law, part in zip(laws, parts)]
        return self._restore(self.graph, *split_laws(changed))

    @property
    def parameter_names(self) -> list[str]:
        """Names such as ``wet[0,1,1]``: the states of the parents, then that of the node; ``height.mean[0,0]``."""
        leaves, names = self.leaves, []
        for v, name in enumerate(self.graph.names):
            if name in leaves:
                names += [f"{name}.{inner}" for inner in leaves[name].parameter_names]
            else:
                names += [f"{name}[{','.join(map(str, index))}]" for index in np.ndindex(table_shape(self.graph, v))]
        return names

    @property
    def blocks(self) -> list[str]:
        """The block of each parameter: its node or, of a continuous one, node and block such as ``height.means``."""
        parts = {name: [f"{name}.{block}" for block in leaf.blocks] for name, leaf in self.leaves.items()}
        parts |= {name: [str(name)] * table.size for name, table in self.tables.items()}
        return [block for name in self.graph.names for block in parts[name]]

    def sample(self, n: int, *, length: int = 1, rng: Any = None) -> list[NDArray[Any]]:
        """Return n bags of ``length`` rows, each (length, columns): of codes, or of floats with continuous nodes."""
        self._require_single("sample")
        check_int(n, "n", "BayesNet.sample", 0)
        generator = np.random.default_rng(rng)
        count = n * check_int(length, "length", "BayesNet.sample", 1)
        rows = draw_rows(self.graph, self._laws(), count, generator)
        return list(rows.reshape(n, length, rows.shape[1]))


def _check_entries(nodes: Any) -> list[tuple[Any, Any]]:
    """Return the entries (name, (parents, table or leaf)) of a network."""
    if not isinstance(nodes, Mapping):
        raise TypeError(f"BayesNet: 'nodes' must be a dict of node to (parents, table). Got {type(nodes).__name__}.")
    for name, entry in nodes.items():
        if not isinstance(entry, tuple | list) or len(entry) != 2:
            raise TypeError(f"BayesNet: node {name!r} must be given as (parents, table or leaf). Got {entry!r:.80}.")
    return list(nodes.items())
