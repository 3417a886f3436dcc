"""Estimation of Bayesian networks of known structure."""

from __future__ import annotations

import copy
import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from genkern.core.arrays.rows import expected_rows, log_pseudocounts
from genkern.data.inspection import FEW, SMALL
from genkern.data.objects import Packed
from genkern.models.base import Statistics
from genkern.models.bayes_net.contraction import offsets_of_tables
from genkern.models.bayes_net.leaves import check_continuous
from genkern.models.bayes_net.model import BayesNet
from genkern.models.bayes_net.rows import Columns
from genkern.models.bayes_net.start import first_network
from genkern.models.estimator import ESTIMATES, Batch, LeafEstimator, bounds_of
from genkern.models.fit.em import Steps
from genkern.models.fit.em_estimator import EMEstimator
from genkern.models.fit.emissions import EMISSIONS
from genkern.models.fit.restarts import First, FitProblem, Restarts
from genkern.models.fit.streams import Keys
from genkern.models.graph.estimator import NetEstimator
from genkern.models.graph.model import Graph, pack_rows
from genkern.validation import Floats, check_int, check_number, check_option

CONTINUOUS = tuple(name for name in EMISSIONS if name != "categorical")


class BayesNetEstimator(NetEstimator):
    r"""Tables of a Bayesian network: counts where all nodes are observed, EM where some are hidden or missing.

    .. math:: \theta^v_{jk} \propto \sum_x p(x_{pa(v)} = j, x_v = k | x_O) + \epsilon

    Continuous nodes are fitted by the estimators of their families, with the posteriors of their parents' joint states
    as weights.

    Parameters
    ----------
    structure : dict of node to list of parents
        The graph. Its order is that of the parameters.
    leaves : dict of node to LeafEstimator or str, optional
        The continuous nodes, which have no children: the estimator of their family, such as ``GaussianEstimator()``, or
        its short name ("gaussian", "poisson", "gamma", ...). All others are discrete.
    cardinalities : dict of node to int, or int, optional
        Numbers of states of observed discrete nodes, and of columns of continuous ones, which are one by default. The
        default of discrete nodes is one more than the largest code of each in all objects, which must be few and small
        (at most 64 different ones below 256), so that measurements are not mistaken for codes.
    hidden : dict of node to int, optional
        Hidden nodes with their numbers of states.
    observed : list of nodes, optional
        The observed nodes in the order of the objects' columns; the default is that of ``structure``, without hidden
        nodes.
    pseudocount : float, default=0.01
        Added to every count of discrete nodes, so that outcomes not seen in training are improbable rather than
        impossible.
    estimate : {"map", "ml", "predictive"}, default="map"
        The mode of the posterior under a Dirichlet prior with parameters 1 + pseudocount on every row of a table;
        maximum likelihood, for which ``pseudocount`` is ignored; or the posterior predictive distribution under that
        prior, which adds 1 + pseudocount to every count and needs complete data. Continuous nodes are estimated as
        their own estimators say.
    init : BayesNet, optional
        A network for EM to start from, once; in ``fit_each`` also one for each object, as a list or a stack.
    n_init : int, default=1
        Restarts from different first guesses if there are hidden nodes; the best is kept. The states of hidden parents
        of continuous nodes are first guessed by k-means of these nodes' points.
    max_iter : int, default=1000
        Largest number of EM steps.
    tol : float, default=1e-5
        EM stops when a step gains less than this per row, and all further steps together, extrapolated from the last
        ones, would gain less than ten times this. Zero runs all steps.
    fixed : tuple of str, default=()
        Parameters that EM keeps fixed at their starting values: nodes, whose tables are kept.
    callback : callable, optional
        Called after each EM step with its number, the model (of several that are fitted together, the stack of those
        that have not converged) and the objective. If it returns True, the run ends there.
    random_state : int, RandomState instance or None, default=None
        Seed of the first guesses of tables that touch hidden nodes; None counts as 0.
    verbose : int, default=0
        1 reports runs and their outcome, 2 every step as well.

    Attributes
    ----------
    model_ : BayesNet
    converged_ : bool
    n_iter_ : int
        EM steps of the run that was kept; one if the data are complete and all nodes discrete.
    history_ : list of float
        Objective after each step, starting with that of the first guess: log-likelihood plus log prior of the
        added counts. It never falls.

    References
    ----------
    Lauritzen (1995), The EM algorithm for graphical association models with missing data, section 3.

    Examples
    --------
    >>> from genkern import BayesNetEstimator
    >>> rows = [[0, 0], [0, 0], [0, 1], [1, 1]]
    >>> estimator = BayesNetEstimator({"a": [], "b": ["a"]}, estimate="ml").fit(rows)
    >>> estimator.model_.tables["b"].round(3)
    array([[0.667, 0.333],
           [0.   , 1.   ]])

    A continuous node, one Gaussian for each state of its parent:

    >>> trees = [[0, 9.0], [0, 11.0], [1, 19.0], [1, 21.0]]
    >>> estimator = BayesNetEstimator({"kind": [], "height": ["kind"]}, leaves={"height": "gaussian"}).fit(trees)
    >>> estimator.model_.leaves["height"].mean.round(3)
    array([[10.],
           [20.]])
    """

    kind = BayesNet
    places = ("distribution",)

    def __init__(
        self,
        structure: Any,
        *,
        leaves: Any = None,
        cardinalities: Any = None,
        hidden: Any = None,
        observed: Any = None,
        pseudocount: float = 0.01,
        estimate: str = "map",
        init: Any = None,
        n_init: int = 1,
        max_iter: int = 1000,
        tol: float = 1e-5,
        fixed: Any = (),
        callback: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.structure = structure
        self.leaves = leaves
        self.cardinalities = cardinalities
        self.hidden = hidden
        self.observed = observed
        self.pseudocount = pseudocount
        self.estimate = estimate
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.fixed = fixed
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self.pseudocount, "pseudocount", "BayesNetEstimator")
        check_option(self.estimate, ESTIMATES, "estimate", "BayesNetEstimator")

    # --- columns

    def resolve(self, X: Any) -> BayesNetEstimator:
        """Return the estimator with the numbers of states of all of X."""
        known, graph = self._cardinalities(), self._graph(self._sizes(dict.fromkeys(self.structure, 1)))
        columns = self._columns(graph)
        if all(graph.names[v] in known for v in graph.observed if graph.sizes[v]):
            return self
        values = pack_rows(X, columns.total, "BayesNetEstimator").values
        for v, column in columns.starts().items():
            name = graph.names[v]
            if graph.sizes[v] and name not in known:
                codes = values[~np.isnan(values[:, column]), column]
                if len(codes) == 0:
                    raise ValueError(
                        f"BayesNetEstimator: node {name!r} (column {column}) is missing in every row, so its number of "
                        "states is not known. Give it by cardinalities=, or make the node hidden."
                    )
                if not 0 <= codes.max() < SMALL or len(np.unique(codes)) > FEW:
                    raise ValueError(
                        f"BayesNetEstimator: node {name!r} (column {column}) holds codes of states, unasked at most "
                        f"{FEW} different ones from 0 to {SMALL - 1}. Got {len(np.unique(codes))} up to "
                        f"{codes.max():g}; name their number by cardinalities=, or, if they are measurements, make the "
                        f"node continuous, leaves={{{name!r}: 'gaussian'}}, bin them, or use a "
                        "LinearGaussianNetEstimator."
                    )
                known[name] = int(codes.max()) + 1
        return clone(self).set_params(cardinalities=known)

    def pack(self, X: Any) -> Packed:
        """Encode rows, or bags of rows, of the codes and numbers of the observed nodes."""
        resolved = self.resolve(X)
        graph = resolved._full_graph()
        packers = {v: leaf.pack for v, leaf in resolved._families(graph).items()}
        return resolved._columns(graph).pack(X, packers, "BayesNetEstimator")

    def _cardinalities(self) -> dict[Any, int]:
        """Return the numbers of states, or columns, that are given."""
        given = self.cardinalities or {}
        if isinstance(given, numbers.Integral):
            given = {name: given for name in self.structure if name not in (self.leaves or {})}
        known = {name: check_int(m, f"cardinalities[{name!r}]", "BayesNetEstimator", 1) for name, m in given.items()}
        for name, m in dict(self.hidden or {}).items():
            known[name] = check_int(m, f"hidden[{name!r}]", "BayesNetEstimator", 1)
        return known

    def _sizes(self, known: dict[Any, int]) -> dict[Any, int]:
        """Return the numbers of states, zero for continuous nodes."""
        return {**known, **dict.fromkeys(self.leaves or {}, 0)}

    def _full_graph(self) -> Graph:
        """Return the graph of a resolved estimator."""
        return self._graph(self._sizes(self._cardinalities()))

    def _graph(self, sizes: dict[Any, int]) -> Graph:
        graph = super()._graph(sizes)
        check_continuous(graph, "BayesNetEstimator")
        return graph

    def _columns(self, graph: Graph) -> Columns:
        known = self._cardinalities()
        return Columns(graph, {v: known.get(graph.names[v], 1) for v in self._families(graph)})

    def _families(self, graph: Graph) -> dict[int, LeafEstimator]:
        """Return the leaf estimators of the continuous nodes."""
        found = {}
        for name, leaf in dict(self.leaves or {}).items():
            if not isinstance(leaf, LeafEstimator):
                leaf = EMISSIONS[check_option(leaf, CONTINUOUS, f"leaves[{name!r}]", "BayesNetEstimator")]()
            found[graph.find(name, "BayesNetEstimator: 'leaves'")] = leaf
        return dict(sorted(found.items()))

    # --- EM

    def _ready(self, X: Any, own: bool, sample_weight: Any = None, known: Any = None) -> tuple[EMEstimator, Packed]:
        ready, packed = super()._ready(X, own, sample_weight, known)
        return ready._each_leaf(packed, lambda leaf, points: leaf.inside_em(points)), packed

    def bounded(self, packed: Packed, own: bool) -> BayesNetEstimator:
        """Return the estimator with floors and priors of continuous nodes computed from the data, of each if own."""
        return self._each_leaf(packed, lambda leaf, points: leaf.bounded(points, own))

    def part(self, members: Any) -> BayesNetEstimator:
        """Return the estimator for some of the objects of a batch."""
        return self._each_leaf(None, lambda leaf, _: leaf.part(members))

    def _each_leaf(self, packed: Packed | None, change: Callable[[Any, Any], Any]) -> BayesNetEstimator:
        """Return the estimator with changed estimators of continuous nodes, given the points of each."""
        graph, other = self._full_graph(), copy.copy(self)
        columns = self._columns(graph)
        other.leaves = {
            graph.names[v]: change(leaf, None if packed is None else columns.points(packed, v))
            for v, leaf in self._families(graph).items()
        }
        return other

    def _problem(self, packed: Packed, own: bool) -> FitProblem:
        bounded = bounds_of(self)

        def guess(part: Packed, restarts: Restarts, each: bool) -> First:
            return First(bounded(part, each)._start(part, restarts.keys, each))

        def steps(part: Packed, each: bool) -> Steps:
            batch = Batch(bounded(part, each))
            return Steps(
                self._expect,
                lambda statistics: batch.estimator.maximize(statistics),
                None,
                lambda model: batch.estimator._log_prior(model),
                batch.drop if each else None,
                at_floor=(lambda model: batch.estimator._at_floor(model)) if self._collapsing() else None,
                counts=lambda statistics: batch.estimator._of_collapsing(statistics, "counts"),
                coincide=lambda statistics: batch.estimator._of_collapsing(statistics, "coincide"),
            )

        return FitProblem(packed, steps, guess)

    def _collapsing(self) -> dict[int, LeafEstimator]:
        """Return the families of nodes with hidden parents that only a floor keeps from collapsing onto a point."""
        graph = self._full_graph()
        families = self._families(graph).items()
        return {v: leaf for v, leaf in families if leaf.collapses and set(graph.hidden) & set(graph.parents[v])}

    def _at_floor(self, model: BayesNet) -> NDArray[np.bool_]:
        """Return in which directions these distributions are at their floor, batch + (members, directions)."""
        leaves, batch = model.leaf_stacks(), model.shape
        found = [leaf.at_floor(leaves[v]) for v, leaf in self._collapsing().items()]
        found = [part.reshape(*batch, math.prod(part.shape[len(batch) : -1]), part.shape[-1]) for part in found]
        most = max(part.shape[-1] for part in found)
        wide = [np.take(part, np.minimum(np.arange(most), part.shape[-1] - 1), axis=-1) for part in found]
        return np.concatenate(wide, axis=-2)

    def _of_collapsing(self, statistics: Statistics, what: str) -> Any:
        """Return what these estimators say of their statistics, batch + (members,)."""
        model: BayesNet = statistics.model
        leaves, batch = model.leaf_stacks(), model.shape
        found = [
            getattr(leaf, what)(model.law_blocks(statistics, v), leaves[v]) for v, leaf in self._collapsing().items()
        ]
        return np.concatenate([np.reshape(part, (*batch, -1)) for part in found], axis=-1)

    def _start(self, packed: Packed, keys: Keys, own: bool) -> BayesNet:
        graph = self._full_graph()
        if self.estimate == "predictive" and (graph.hidden or np.isnan(packed.values).any()):
            raise ValueError(
                "BayesNetEstimator: estimate='predictive' averages over the posterior, which has no closed form with "
                "hidden nodes or missing entries. Use estimate='map'."
            )
        families = self._families(graph)
        if self._given is None:
            return first_network(self._columns(graph), families, packed, keys, own)
        net: BayesNet = self._given_to(packed, own)
        leaves = []
        for v, leaf in net.leaf_stacks().items():
            if graph.names[v] in self.fixed:
                families[v].check_kept(leaf)
            # EM respects the floor; from a model below it, the objective could only fall.
            leaves.append(leaf if graph.names[v] in self.fixed else families[v].raised(leaf))
        return BayesNet._restore(graph, net.values, tuple(leaves))

    def _law_sizes(self, model: BayesNet) -> list[int]:
        return np.diff(offsets_of_tables(model.graph)).tolist()

    def _keep(self, old: BayesNet, new: BayesNet) -> BayesNet:
        """Return a new network with the tables and leaves of the fixed nodes of an old one."""
        kept = super()._keep(old, new)
        names = [new.graph.names[v] for v in new.leaf_stacks()]
        pairs = zip(names, old.densities, new.densities, strict=True)
        return BayesNet._restore(new.graph, kept.values, tuple(a if name in self.fixed else b for name, a, b in pairs))

    def _added(self) -> float:
        """Return the number added to every count."""
        return {"ml": 0.0, "map": self.pseudocount, "predictive": 1.0 + self.pseudocount}[self.estimate]

    def maximize(self, statistics: Statistics) -> BayesNet:
        """Return the M-step's network: smoothed expected frequencies; rows without any count are not changed.

        Statistics are summed over objects, or those under a stack of own models, which give a stack.
        """
        model: BayesNet = statistics.model
        statistics = statistics if model.shape else statistics.total()
        tables = [np.zeros((*model.shape, 0))]
        for name, table in model.tables.items():
            added = np.full(table.shape[len(model.shape) :], self._added())
            rows = expected_rows(table, statistics[f"tables.{name}"], added)
            tables.append(rows.reshape((*model.shape, -1)))
        families = self._families(model.graph)
        leaves = [
            families[v].maximize_blocks(model.law_blocks(statistics, v), leaf)
            for v, leaf in model.leaf_stacks().items()
        ]
        return BayesNet._restore(model.graph, np.concatenate(tables, axis=-1), tuple(leaves))

    def _log_prior(self, model: BayesNet) -> Floats:
        """Return the Dirichlet log prior of the tables plus that of the leaves."""
        families = self._families(model.graph)
        priors = [families[v].log_prior(leaf) for v, leaf in model.leaf_stacks().items()]
        return np.add.reduce([log_pseudocounts(model.values, self._added()), *priors])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # tables of integer codes only
        tags.input_tags.categorical = True
        return tags
