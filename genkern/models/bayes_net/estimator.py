"""Estimation of discrete Bayesian networks of known structure."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.base import clone

from genkern.core.arrays.rows import expected_rows, log_pseudocounts
from genkern.data.inspection import FEW, SMALL
from genkern.data.objects import Packed
from genkern.models.base import Statistics
from genkern.models.bayes_net.contraction import offsets_of_tables, table_shape
from genkern.models.bayes_net.model import BayesNet
from genkern.models.bayes_net.rows import pack_codes
from genkern.models.estimator import ESTIMATES
from genkern.models.fit.streams import Keys, uniforms
from genkern.models.graph.estimator import NetEstimator
from genkern.models.graph.model import Graph, pack_rows
from genkern.validation import Floats, check_int, check_number, check_option


class BayesNetEstimator(NetEstimator):
    r"""Tables of a Bayesian network: counts where all nodes are observed, EM where some are hidden or missing.

    .. math:: \theta^v_{jk} \propto \sum_x p(x_{pa(v)} = j, x_v = k | x_O) + \epsilon

    Parameters
    ----------
    structure : dict of node to list of parents
        The graph. Its order is that of the parameters.
    cardinalities : dict of node to int, or int, optional
        Numbers of states of observed nodes. The default is one more than the largest code of each in all objects, which
        must be few and small (at most 64 different ones below 256), so that measurements are not mistaken for codes.
    hidden : dict of node to int, optional
        Hidden nodes with their numbers of states.
    observed : list of nodes, optional
        The observed nodes in the order of the objects' columns; the default is that of ``structure``, without hidden
        nodes.
    pseudocount : float, default=0.01
        Added to every count, so that outcomes not seen in training are improbable rather than impossible.
    estimate : {"map", "ml", "predictive"}, default="map"
        The mode of the posterior under a Dirichlet prior with parameters 1 + pseudocount on every row of a table;
        maximum likelihood, for which ``pseudocount`` is ignored; or the posterior predictive distribution under that
        prior, which adds 1 + pseudocount to every count and needs complete data.
    init : BayesNet, optional
        A network for EM to start from, once; in ``fit_each`` also one for each object, as a list or a stack.
    n_init : int, default=1
        Restarts from different first guesses if there are hidden nodes; the best is kept.
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
        EM steps of the run that was kept; one if the data are complete.
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
    """

    kind = BayesNet

    def __init__(
        self,
        structure: Any,
        *,
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

    def resolve(self, X: Any) -> BayesNetEstimator:
        """Return the estimator with the numbers of states of all of X."""
        known = self._cardinalities()
        graph = self._graph(dict.fromkeys(self.structure, 1))
        names = [graph.names[v] for v in graph.observed]
        if all(name in known for name in names):
            return self
        values = pack_rows(X, len(names), "BayesNetEstimator").values
        for column, name in enumerate(names):
            if name not in known:
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
                        f"{codes.max():g}; name their number by cardinalities=, or, if they are measurements, bin them "
                        "or use a LinearGaussianNetEstimator."
                    )
                known[name] = int(codes.max()) + 1
        return clone(self).set_params(cardinalities=known)

    def pack(self, X: Any) -> Packed:
        """Encode rows, or bags of rows, of the codes of the observed nodes."""
        resolved = self.resolve(X)
        return pack_codes(X, resolved._full_graph(), "BayesNetEstimator")

    def _cardinalities(self) -> dict[Any, int]:
        """Return the numbers of states that are given."""
        given = self.cardinalities or {}
        if isinstance(given, numbers.Integral):
            given = dict.fromkeys(self.structure, given)
        known = {name: check_int(m, f"cardinalities[{name!r}]", "BayesNetEstimator", 1) for name, m in given.items()}
        for name, m in dict(self.hidden or {}).items():
            known[name] = check_int(m, f"hidden[{name!r}]", "BayesNetEstimator", 1)
        return known

    def _full_graph(self) -> Graph:
        """Return the graph of a resolved estimator."""
        return self._graph(self._cardinalities())

    def _start(self, packed: Packed, keys: Keys, own: bool) -> BayesNet:
        """Return random rows (from a flat Dirichlet law) where hidden nodes take part, uniform ones elsewhere."""
        graph = self._full_graph()
        if self.estimate == "predictive" and (graph.hidden or np.isnan(packed.values).any()):
            raise ValueError(
                "BayesNetEstimator: estimate='predictive' averages over the posterior, which has no closed form with "
                "hidden nodes or missing entries. Use estimate='map'."
            )
        if self._given is not None:
            return self._given_to(packed, own)
        starts = offsets_of_tables(graph)
        weights = np.ones((len(keys), starts[-1]))
        hidden = set(graph.hidden)
        for v in range(len(graph.names)):
            part = weights[:, starts[v] : starts[v + 1]]
            if hidden & {v, *graph.parents[v]}:
                part[:] = -np.log1p(-uniforms(keys[:, None], np.arange(starts[v], starts[v + 1]))) + 1e-3
            rows = part.reshape(len(keys), -1, graph.sizes[v])
            part[:] = (rows / rows.sum(axis=-1, keepdims=True)).reshape(part.shape)
        return BayesNet._restore(graph, weights if own else weights[0])

    def _law_sizes(self, model: BayesNet) -> list[int]:
        return np.diff(offsets_of_tables(model.graph)).tolist()

    def _added(self) -> float:
        """Return the number added to every count."""
        return {"ml": 0.0, "map": self.pseudocount, "predictive": 1.0 + self.pseudocount}[self.estimate]

    def maximize(self, statistics: Statistics) -> BayesNet:
        """Return the M-step's network: smoothed expected frequencies; rows without any count are not changed.

        Statistics are summed over objects, or those under a stack of own models, which give a stack.
        """
        model: BayesNet = statistics.model
        statistics = statistics if model.shape else statistics.total()
        tables = []
        for v, (name, table) in enumerate(model.tables.items()):
            added = np.full(table_shape(model.graph, v), self._added())
            rows = expected_rows(table, statistics[f"tables.{name}"], added)
            tables.append(rows.reshape((*model.shape, -1)))
        return BayesNet._restore(model.graph, np.concatenate(tables, axis=-1))

    def _log_prior(self, model: BayesNet) -> Floats:
        """Return the Dirichlet log prior."""
        return log_pseudocounts(model.values, self._added())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # tables of integer codes only
        tags.input_tags.categorical = True
        return tags
