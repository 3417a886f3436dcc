"""Discrete Bayesian networks: the value. Its estimator is in ``bayes_net.estimator``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.data.describe import Rows
from genkern.data.objects import Packed
from genkern.models import simplex
from genkern.models.base import COORDINATES, Model, Statistics
from genkern.models.bayes_net.contraction import GIVEN, HIDDEN, make_plan, offsets_of_tables, table_shape
from genkern.models.bayes_net.rows import DistinctRows, RowTask, check_size, distinct_rows, pack_codes, sweep
from genkern.models.draws import draw_rows
from genkern.models.graph.model import Graph, make_graph
from genkern.models.information import InformationBlocks
from genkern.models.leaf import refuse_impossible
from genkern.validation import Floats, check_array, check_int, check_option, check_probabilities


class BayesNet(Model):
    r"""Bayesian network of discrete nodes, some of them hidden, on any directed acyclic graph.

    .. math:: p(x_O) = \sum_{x_H} \prod_v \theta^v_{x_{pa(v)}, x_v}

    Parameters
    ----------
    nodes : dict of node to (parents, table)
        Names are strings or other hashables. The table of a node has shape (states of parent 1, ..., states of the
        node); its last axis sums to one. The order of the dict is that of the parameters.
    observed : list of nodes, optional
        The observed nodes, in the order of the columns of objects; all others are hidden. The default is all nodes.

    Notes
    -----
    An object is a row of integer codes, one per observed node, or a bag (m, n_observed) of such rows drawn
    independently; a 2-D array is n objects of one row each. NaN marks a missing entry, which is summed out.

    Rows with the same evidence are computed once, and all rows with the same observed nodes in one tensor contraction,
    whose order is found by ``opt_einsum``. Its reverse pass gives the derivatives by all tables together. Cost and
    memory are exponential in the width of the graph of the nodes that are not observed; networks that are too large are
    refused.

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
    """

    _fields = ("graph", "values")
    graph: Graph
    values: Floats

    def __init__(self, nodes: Mapping[Any, tuple[Any, ArrayLike]], observed: Any = None):
        parents, tables = {}, {}
        for name, entry in _check_entries(nodes):
            parents[name] = entry[0]
            tables[name] = check_probabilities(entry[1], f"table of {name!r}", "BayesNet")
        graph = make_graph(parents, {name: table.shape[-1] for name, table in tables.items()}, observed, "BayesNet")
        for v, name in enumerate(graph.names):
            check_array(tables[name], f"table of {name!r}", "BayesNet", shape=table_shape(graph, v))
        self._freeze(graph=graph, values=np.concatenate([table.ravel() for table in tables.values()]))

    @classmethod
    def _checked(cls, *fields: Any) -> Self:
        graph, values = fields
        if not isinstance(graph, Graph) or np.shape(values)[-1:] != offsets_of_tables(graph)[-1:]:
            raise ValueError("BayesNet: 'values' must be the tables of 'graph'.")
        net = cls._restore(graph, check_array(values, "values", "BayesNet"))
        tables = [check_probabilities(table, f"table of {name!r}", "BayesNet") for name, table in net.tables.items()]
        flat = [table.reshape(*net.shape, -1) for table in tables]
        return cls._restore(graph, np.concatenate(flat, axis=-1))

    def __repr__(self) -> str:
        hidden = f", {len(self.graph.hidden)} hidden" if self.graph.hidden else ""
        stack = f", stack of {self.shape}" if self.shape else ""
        return f"BayesNet({len(self.graph.names)} nodes{hidden}, {self.values.shape[-1]} parameters{stack})"

    def _heading(self) -> str:
        return repr(self)

    def _details(self) -> Rows:
        return [(str(name), table) for name, table in self.tables.items()]

    @property
    def draw_size(self) -> int:
        """Number of observations in one row: one for every observed node."""
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
        """The table of every node, batch + (states of parents, states)."""
        return dict(zip(self.graph.names, self._split(self.values)))

    def _split(self, flat: Floats) -> list[Floats]:
        """Return views of a flat array (..., p) as arrays (...) + table shape, one per node."""
        bounds = offsets_of_tables(self.graph)
        shapes = [table_shape(self.graph, v) for v in range(len(self.graph.names))]
        return [
            flat[..., a:b].reshape(flat.shape[:-1] + shape)
            for a, b, shape in zip(bounds[:-1], bounds[1:], shapes, strict=True)
        ]

    def pack(self, X: Any) -> Packed:
        """Encode rows, or bags of rows, of the codes of the observed nodes."""
        return pack_codes(X, self.graph, "BayesNet")

    # --- likelihood and posterior

    def log_prob(self, X: Any) -> Floats:
        """Return the log-likelihood of each object, shape (n_objects,) + batch; -inf where it is impossible."""
        packed = self.pack(X)
        if self.shape:
            columns = [self[index].log_prob(packed) for index in np.ndindex(self.shape)]
            return np.stack(columns, axis=-1).reshape((-1, *self.shape))
        rows = distinct_rows(packed, self.graph, own=False)
        logs = np.empty(len(rows.codes))
        for block in sweep(self.graph, self.values, rows, backward=False):
            logs[block.rows] = block.log_prob
        return _per_object(logs, rows, packed)

    def posterior(self, X: Any, nodes: Any = None) -> list[dict[Any, Floats]]:
        r"""Return :math:`p(x_v | x_O)` of each row of each object, by node.

        Parameters
        ----------
        X : list of objects
        nodes : list of nodes, optional
            The default is all hidden nodes. An observed node has its own code for certain, unless it is missing.

        Returns
        -------
        posteriors : list of dict of node to ndarray of shape (m, states)
        """
        self._require_single("posterior")
        packed = self.pack(X)
        rows = distinct_rows(packed, self.graph, own=False)
        names = self.hidden if nodes is None else list(nodes)
        chosen = {self.graph.find(name, "BayesNet.posterior"): name for name in names}
        tables = {v: np.zeros((len(rows.codes), self.graph.sizes[v])) for v in chosen}
        logs = np.empty(len(rows.codes))
        starts = offsets_of_tables(self.graph)
        for block in sweep(self.graph, self.values, rows, backward=True):
            logs[block.rows] = block.log_prob
            for piece in block.pieces:
                if piece.node in chosen:
                    state = (piece.places - starts[piece.node]) % self.graph.sizes[piece.node]
                    joint = self.values[piece.places] * piece.raw
                    np.add.at(tables[piece.node], (block.rows[:, None], state), joint)
        refuse_impossible(_per_object(logs, rows, packed), "BayesNet")
        split = {v: np.split(table[rows.inverse], packed.offsets[1:-1]) for v, table in tables.items()}
        return [{chosen[v]: split[v][i] for v in split} for i in range(packed.n_objects)]

    def marginal(self, nodes: Any, evidence: Mapping[Any, int] | None = None) -> Floats:
        """Return the joint distribution of some nodes given the states of others.

        Parameters
        ----------
        nodes : list of nodes
            Hidden or observed.
        evidence : dict of node to code, optional
            Hidden or observed nodes.

        Returns
        -------
        table : ndarray with one axis per node, of sum one
        """
        self._require_single("marginal")
        who, graph = "BayesNet.marginal", self.graph
        codes = np.full((1, len(graph.names)), -1, np.int64)
        for name, code in (evidence or {}).items():
            v = graph.find(name, who)
            if not 0 <= check_int(code, f"evidence[{name!r}]", who) < graph.sizes[v]:
                raise ValueError(f"{who}: node {name!r} has the codes 0, ..., {graph.sizes[v] - 1}. Got {code}.")
            codes[0, v] = code
        keep = tuple(graph.find(name, who) for name in ([nodes] if isinstance(nodes, str) else nodes))
        if not keep or len(set(keep)) < len(keep) or (codes[0, list(keep)] >= 0).any():
            raise ValueError(f"{who}: 'nodes' must be different nodes without evidence, at least one. Got {nodes!r}.")
        status = tuple(np.where(codes[0] >= 0, GIVEN, HIDDEN).tolist())
        plan = check_size(make_plan(graph, status, True, keep), graph)
        outcome = RowTask(plan, graph, self.values, None, codes).run(backward=False)
        possible = all(self.values[factor.place(codes)[0, 0]] > 0 for factor in plan.scalars)
        if not possible or np.isneginf(outcome.log_prob[0]):
            raise ValueError(f"{who}: the evidence {dict(evidence or {})!r} has probability zero.")
        table: Floats = outcome.result[0] / outcome.result[0].sum()
        return table

    # --- E-step, gradient, information

    def statistics(self, X: Any, totals: bool = False) -> Statistics:
        """Return posterior expected statistics per object, or summed over objects (``totals``).

        Blocks: for each node, under ``tables.<node>``, the raw derivative (G,) + table shape; times the table it is the
        posterior of the node and its parents, summed over the rows of an object. A stack of batch (n_objects,) treats
        object i under its own model i.
        """
        packed = self.pack(X)
        if self.shape not in ((), (packed.n_objects,)):
            raise ValueError(
                f"BayesNet.statistics needs one model or one per object. Got a stack of {self.shape} for "
                f"{packed.n_objects} objects."
            )
        rows = distinct_rows(packed, self.graph, own=bool(self.shape))
        logs = np.empty(len(rows.codes))
        out = np.zeros((1 if totals else packed.n_objects, self.values.shape[-1]))
        starts = offsets_of_tables(self.graph)
        for block in sweep(self.graph, self.values, rows, backward=True):
            logs[block.rows] = block.log_prob
            if totals:
                counts = np.diff(rows.bounds)[block.rows, None]
                for node, places, raw in block.pieces:
                    a, b = starts[node : node + 2]
                    out[0, a:b] += np.bincount((places - a).ravel(), (counts * raw).ravel(), b - a)
                continue
            local, equal = rows.occurrences(block.rows)
            for _, places, raw in block.pieces:
                np.add.at(out, (packed.owners[equal][:, None], places[local]), raw[local])
        log_prob = _per_object(logs, rows, packed)
        refuse_impossible(log_prob, "BayesNet")
        blocks = {f"tables.{name}": part for name, part in zip(self.graph.names, self._split(out))}
        return Statistics(self, log_prob, packed.lengths, blocks)

    def gradient(self, statistics: Statistics, coordinates: str = "softmax") -> Floats:
        """Return derivatives (G, p) of the log-likelihood from the statistics of one model."""
        parts = [
            simplex.gradient(statistics[f"tables.{name}"], table, coordinates) for name, table in self.tables.items()
        ]
        return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)

    def information(self, lengths: ArrayLike, coordinates: str = "softmax") -> InformationBlocks:
        """Return the complete-data Fisher information, averaged over numbers of rows, as pairs (index, block).

        It is that of the complete data, all nodes observed: one block per row of a table, weighted by the probability
        of the parents' states.
        """
        self._require_single("information")
        codes = np.full((1, len(self.graph.names)), -1, np.int64)
        one = np.zeros(1, np.int64)
        blank = DistinctRows(codes, None, one, one, np.array([0, 1]))
        block = next(sweep(self.graph, self.values, blank, backward=True))
        prior = np.zeros(self.values.shape)
        for piece in block.pieces:
            prior[piece.places[0]] = self.values[piece.places[0]] * piece.raw[0]
        draws = float(np.mean(np.asarray(lengths)))
        pairs: InformationBlocks = []
        starts = offsets_of_tables(self.graph)
        for start, table, joint in zip(starts, self._split(self.values), self._split(prior)):
            width = table.shape[-1]
            blocks = simplex.information(table, draws * joint.sum(axis=-1), coordinates)
            pairs += [(np.arange(width) + start + width * k, matrix) for k, matrix in enumerate(blocks)]
        return pairs

    # --- parameters

    def parameters(self, coordinates: str = "softmax") -> Floats:
        """Return the parameter vector (p,): all tables, flattened row-major."""
        self._require_single("parameters")
        check_option(coordinates, COORDINATES, "coordinates", "BayesNet.parameters")
        return simplex.coordinates_of(self.values, coordinates)

    def with_parameters(self, vector: ArrayLike, coordinates: str = "softmax") -> Self:
        """Return the model at a parameter vector; raw coordinates are not normalised."""
        self._require_single("with_parameters")
        check_option(coordinates, COORDINATES, "coordinates", "BayesNet.with_parameters")
        given = np.asarray(vector, dtype=np.float64)
        zero = np.isneginf(given)  # the softmax coordinate of a zero probability
        checked = check_array(np.where(zero, 0.0, given), "vector", "BayesNet", shape=self.values.shape)
        parts = self._split(np.where(zero, -np.inf, checked))
        tables = [simplex.from_coordinates(part, coordinates).ravel() for part in parts]
        return self._restore(self.graph, np.concatenate(tables))

    @property
    def parameter_names(self) -> list[str]:
        """Names such as ``wet[0,1,1]``: the states of the parents, then that of the node."""
        shapes = [table_shape(self.graph, v) for v in range(len(self.graph.names))]
        return [
            f"{name}[{','.join(map(str, index))}]"
            for name, shape in zip(self.graph.names, shapes)
            for index in np.ndindex(shape)
        ]

    @property
    def blocks(self) -> list[str]:
        """The block of each parameter: its node, whose name may have any characters."""
        return [name.rpartition("[")[0] for name in self.parameter_names]

    def sample(self, n: int, *, length: int = 1, rng: Any = None) -> list[NDArray[np.int64]]:
        """Return n bags of ``length`` rows of codes, each (length, n_observed)."""
        self._require_single("sample")
        check_int(n, "n", "BayesNet.sample", 0)
        generator = np.random.default_rng(rng)
        count = n * check_int(length, "length", "BayesNet.sample", 1)
        states = np.zeros((count, len(self.graph.names)), np.int64)
        tables = self._split(self.values)
        for v in self.graph.order:
            table = tables[v].reshape(-1, self.graph.sizes[v])
            which = np.zeros(count, np.int64)
            for p in self.graph.parents[v]:
                which = which * self.graph.sizes[p] + states[:, p]
            states[:, v] = draw_rows(table, which, generator)
        return list(states[:, self.graph.observed].reshape(n, length, len(self.graph.observed)))


def _check_entries(nodes: Any) -> list[tuple[Any, Any]]:
    """Return the entries (name, (parents, table)) of a network."""
    if not isinstance(nodes, Mapping):
        raise TypeError(f"BayesNet: 'nodes' must be a dict of node to (parents, table). Got {type(nodes).__name__}.")
    for name, entry in nodes.items():
        if not isinstance(entry, tuple | list) or len(entry) != 2:
            raise TypeError(f"BayesNet: node {name!r} must be given as (parents, table). Got {entry!r:.80}.")
    return list(nodes.items())


def _per_object(logs: Floats, rows: DistinctRows, packed: Packed) -> Floats:
    """Return the sums (n_objects,) of the log-probabilities (U,) of the objects' rows."""
    sums: Floats = np.add.reduceat(logs[rows.inverse], packed.offsets[:-1])
    return sums
