"""Estimation of linear Gaussian networks of known structure."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from genkern.data.objects import Packed
from genkern.models.base import Statistics
from genkern.models.fit.em import Steps, expected
from genkern.models.fit.restarts import First, FitProblem, Restarts
from genkern.models.fit.streams import Keys, uniforms
from genkern.models.fit.units import Units, standardise
from genkern.models.graph.estimator import NetEstimator
from genkern.models.graph.model import Graph, pack_rows
from genkern.models.lds.covariance import shaped
from genkern.models.linear_gaussian.model import LinearGaussianNet
from genkern.validation import Floats, check_int, check_number, check_option

COVARIANCES = ("full", "diagonal")


class Scales(NamedTuple):
    """Floors of noises and ridges of weights, (G, D), of all numbers of the joint vector of one network or of each."""

    floors: Floats
    ridges: Floats


class LinearGaussianNetEstimator(NetEstimator):
    r"""Regressions where all nodes are observed, EM where some are hidden or missing.

    .. math:: W_v = S_{v,pa} (S_{pa,pa} + \rho I)^{-1}, \qquad n Q_v = S_{vv} - W_v S_{pa,v}

    with S the (expected) scatter matrix of n rows about their mean.

    Parameters
    ----------
    structure : dict of node to list of parents
        The graph. Its order is that of the parameters.
    dims : dict of node to int, optional
        Dimensions of observed nodes; the default is one.
    hidden : dict of node to int, optional
        Hidden nodes with their dimensions.
    observed : list of nodes, optional
        The observed nodes in the order of the objects' columns; the default is that of ``structure``, without hidden
        nodes.
    covariance : {"full", "diagonal"}, default="full"
        Form of the noise of nodes of more than one dimension.
    min_covar : float, default=0.0
        Smallest eigenvalue of a noise covariance of observed nodes, in squared units of the data. Covariances maximise
        the likelihood under this bound.
    relative_floor : float, default=1e-3
        Smallest variance of a noise as a share of the variance of its column over the data that are fitted (of all
        rows, or of each object's in ``fit_each``); of hidden nodes, which begin with variance one, of that. The larger
        floor of both counts, and one must be positive.
    ridge : float, default=0.0
        Precision :math:`\rho` of a normal prior :math:`N(0, Q_v / \rho)` on each column of the weights. Zero is maximum
        likelihood, with the smallest weights where parents are collinear.
    init : LinearGaussianNet, optional
        A network for EM to start from, once, whose forms of covariances are kept; in ``fit_each`` also one for each
        object, as a list or a stack.
    n_init : int, default=1
        Restarts from different first guesses if there are hidden nodes; the best is kept.
    max_iter : int, default=1000
        Largest number of EM steps.
    tol : float, default=1e-5
        EM stops when a step gains less than this per row, and all further steps together, extrapolated from the last
        ones, would gain less than ten times this. Zero runs all steps.
    fixed : tuple of str, default=()
        Parameters that EM keeps fixed at their starting values: nodes, whose regressions on their parents
        are kept.
    callback : callable, optional
        Called after each EM step with its number, the model (of several that are fitted together, the stack of those
        that have not converged) and the objective. If it returns True, the run ends there.
    random_state : int, RandomState instance or None, default=None
        Seed of the first guesses of weights that touch hidden nodes; None counts as 0.
    verbose : int, default=0
        1 reports runs and their outcome, 2 every step as well.

    Attributes
    ----------
    model_ : LinearGaussianNet
    converged_ : bool
    n_iter_ : int
        EM steps of the run that was kept; one if the data are complete.
    history_ : list of float
        Objective after each step, starting with that of the first guess: log-likelihood plus log prior of the weights.
        It never falls.

    Notes
    -----
    Factor analysis is a hidden root with scalar children; a hidden node's own mean and covariance are estimated too,
    which adds nothing to the set of distributions and speeds EM up. Columns are centred and scaled for the fit, and the
    network is mapped back.

    References
    ----------
    Rubin & Thayer (1982), EM algorithms for ML factor analysis, section 2.
    Liu, Rubin & Wu (1998), Parameter expansion to accelerate EM, section 4.

    Examples
    --------
    >>> from genkern import LinearGaussianNetEstimator
    >>> rows = [[0.0, 1.0], [1.0, 3.1], [2.0, 4.9]]
    >>> net = LinearGaussianNetEstimator({"x": [], "y": ["x"]}).fit(rows).model_
    >>> net.parameters("raw")[2:4].round(3)
    array([1.95, 1.05])
    """

    kind = LinearGaussianNet

    def __init__(
        self,
        structure: Any,
        *,
        dims: Any = None,
        hidden: Any = None,
        observed: Any = None,
        covariance: str = "full",
        min_covar: float = 0.0,
        relative_floor: float = 1e-3,
        ridge: float = 0.0,
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
        self.dims = dims
        self.hidden = hidden
        self.observed = observed
        self.covariance = covariance
        self.min_covar = min_covar
        self.relative_floor = relative_floor
        self.ridge = ridge
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
        check_option(self.covariance, COVARIANCES, "covariance", "LinearGaussianNetEstimator")
        for name in ("min_covar", "relative_floor"):
            check_number(getattr(self, name), name, "LinearGaussianNetEstimator")
        if max(self.min_covar, self.relative_floor) == 0.0:
            raise ValueError(
                "LinearGaussianNetEstimator: 'min_covar' and 'relative_floor' are both zero, so that rows may have no "
                "density. Make one of them positive."
            )
        check_number(self.ridge, "ridge", "LinearGaussianNetEstimator")

    def resolve(self, X: Any) -> LinearGaussianNetEstimator:
        """Return the estimator itself: numbers need no alphabet."""
        return self

    def pack(self, X: Any) -> Packed:
        """Encode rows, or bags of rows, of the numbers of the observed nodes."""
        graph = self._full_graph()
        return pack_rows(X, sum(graph.sizes[v] for v in graph.observed), "LinearGaussianNetEstimator")

    def _full_graph(self) -> Graph:
        """Return the graph with the dimensions of all nodes."""
        sizes = dict.fromkeys(self.structure, 1)
        for what in ("dims", "hidden"):
            for name, d in dict(getattr(self, what) or {}).items():
                sizes[name] = check_int(d, f"{what}[{name!r}]", "LinearGaussianNetEstimator", 1)
        return self._graph(sizes)

    # --- EM in standard units

    def _problem(self, packed: Packed, own: bool) -> FitProblem:
        """Return the problem in standard units."""
        packed, units = standardise(packed, own, "LinearGaussianNetEstimator")
        scales = self._scales(units)

        given = None if self._given is None else self._standard(self._given_to(packed, own), units, scales.floors, own)

        def guess(part: Packed, restarts: Restarts, each: bool) -> First:
            if given is not None:
                return First(given)
            stack = self._first(restarts.keys, scales.floors)
            return First(stack if each else stack[0])

        return FitProblem(
            packed,
            lambda part, each: self._scaled_steps(scales),
            guess,
            restore=lambda models, places: _rescaled(models, units.of(places)),
            shift=units.shift(),
        )

    def _standard(self, given: LinearGaussianNet, units: Units, floors: Floats, own: bool) -> LinearGaussianNet:
        """Return networks to start from in standard units, with noises raised to the floors."""
        inverse = units._replace(mean=-units.mean / units.unit, unit=1.0 / units.unit)
        stack = _rescaled(given if own else LinearGaussianNet.stack([given]), inverse)
        pieces = []
        for name, part, diagonal in zip(stack.graph.names, stack.parts(), stack.diagonal):
            low = np.zeros_like(floors) if name in self.fixed else floors
            noise = shaped(part.noise_cov, "diagonal" if diagonal else "full", low[:, part.own])
            pieces += [part.coefficients.reshape(len(stack), -1), noise.reshape(len(stack), -1)]
        raised = LinearGaussianNet._restore(stack.graph, stack.diagonal, np.concatenate(pieces, axis=1))
        return raised if own else raised[0]

    def _scaled_steps(self, scales: Scales) -> Steps:
        """Return the steps of one run; floors and ridges of own networks leave with them."""
        kept = [scales]

        def drop(leaving: Any) -> None:
            kept[0] = Scales(*(part[~leaving] for part in kept[0]))

        return Steps(
            expected,
            lambda statistics: _regressions(statistics, kept[0]),
            None,
            lambda model: _log_prior(model, kept[0].ridges),
            drop,
        )

    def _law_sizes(self, model: LinearGaussianNet) -> list[int]:
        sizes = []
        for part, diagonal in zip(model.parts(), model.diagonal):
            d = len(part.own)
            sizes.append(d * (len(part.above) + 1) + (d if diagonal else d * d))
        return sizes

    def _scales(self, units: Units) -> Scales:
        """Return floors and ridges of all numbers of the joint vector, in standard units."""
        graph = self._full_graph()
        ends = np.cumsum([0, *graph.sizes])
        columns = np.concatenate([np.arange(ends[v], ends[v + 1]) for v in graph.observed])
        shape = (len(units.unit), ends[-1])
        floors, ridges = np.full(shape, float(self.relative_floor)), np.full(shape, float(self.ridge))
        floors[:, columns] = units.floors(self.min_covar, self.relative_floor)
        ridges[:, columns] = (np.sqrt(self.ridge) / units.unit) ** 2
        return Scales(floors, ridges)

    def _first(self, keys: Keys, floors: Floats) -> LinearGaussianNet:
        """Return stacks of independent nodes of mean zero and variance one, with random weights about hidden nodes."""
        graph = self._full_graph()
        diagonal = tuple(self.covariance == "diagonal" or d == 1 for d in graph.sizes)
        spreads = np.split(np.maximum(floors, 1.0), np.cumsum(graph.sizes)[:-1], axis=1)
        hidden, pieces, counter = set(graph.hidden), [], 0
        for v, d in enumerate(graph.sizes):
            q = sum(graph.sizes[p] for p in graph.parents[v])
            lines = np.zeros((len(keys), d, q + 1))
            if q and hidden & {v, *graph.parents[v]}:
                draws = uniforms(keys[:, None], np.arange(counter, counter + d * q)).reshape(len(keys), d, q)
                lines[..., :-1] = ndtri(0.5 * 2.0**-53 + draws) * np.sqrt(spreads[v] / q)[..., None]
            counter += d * q
            noise = spreads[v] if diagonal[v] else spreads[v][..., None] * np.eye(d)
            pieces += [lines.reshape(len(keys), -1), noise.reshape(len(keys), -1)]
        return LinearGaussianNet._restore(graph, diagonal, np.concatenate(pieces, axis=1))

    def maximize(self, statistics: Statistics) -> LinearGaussianNet:
        """Return the M-step's network in the units of the data; its only floor is ``min_covar``.

        Statistics are summed over objects, or those under a stack of own models, which give a stack.
        """
        statistics = statistics if statistics.model.shape else statistics.total()
        shape = statistics["mean"].shape
        return _regressions(statistics, Scales(np.full(shape, self.min_covar), np.full(shape, float(self.ridge))))


def _regressions(statistics: Statistics, scales: Scales) -> LinearGaussianNet:
    """Return the regression of every node on its parents."""
    model: LinearGaussianNet = statistics.model
    centre, _ = model.joint()
    batch = model.shape
    floors, ridges = (part.reshape(centre.shape) for part in scales)
    count = statistics["weight"].reshape(*batch, 1)
    step = statistics["mean"].reshape(centre.shape) / count
    mean = centre + step
    scatter = statistics["cov"].reshape(*centre.shape, -1) / count[..., None]
    scatter = scatter - step[..., :, None] * step[..., None, :]
    pieces = []
    for part, diagonal in zip(model.parts(), model.diagonal):
        own, above = part.own, part.above
        across = scatter[..., own[:, None], above]
        penalty = (ridges[..., above] / count)[..., None] * np.eye(len(above))
        weights = across @ np.linalg.pinv(scatter[..., above[:, None], above] + penalty, rcond=1e-12, hermitian=True)
        noise = scatter[..., own[:, None], own] - weights @ np.swapaxes(across, -1, -2)
        bias = mean[..., own, None] - weights @ mean[..., above, None]
        noise = shaped(noise, "diagonal" if diagonal else "full", floors[..., own])
        pieces += [np.concatenate([weights, bias], axis=-1).reshape(*batch, -1), noise.reshape(*batch, -1)]
    return LinearGaussianNet._restore(model.graph, model.diagonal, np.concatenate(pieces, axis=-1))


def _log_prior(model: LinearGaussianNet, ridges: Floats) -> Floats:
    """Return the log prior of the weights."""
    prior = np.zeros(model.shape)
    if not ridges.any():
        return prior
    for part in model.parts():
        weights = part.coefficients[..., :-1]
        terms = (
            weights * np.linalg.solve(part.noise_cov, weights) * ridges[..., part.above].reshape(*model.shape, 1, -1)
        )
        prior = prior - 0.5 * terms.sum(axis=(-1, -2))
    return prior


def _rescaled(models: LinearGaussianNet, units: Units) -> LinearGaussianNet:
    """Return networks of data in their own units; hidden nodes are not changed."""
    size = sum(models.graph.sizes)
    unit, mean = np.ones((len(models), size)), np.zeros((len(models), size))
    unit[:, models.columns], mean[:, models.columns] = units.unit, units.mean
    pieces = []
    for part, diagonal in zip(models.parts(), models.diagonal):
        u, m = unit[:, part.own], mean[:, part.own]
        weights = u[..., None] * part.coefficients[..., :-1] / unit[:, None, part.above]
        bias = m + u * part.coefficients[..., -1] - (weights @ mean[:, part.above, None])[..., 0]
        cov = part.noise.cov * (u**2 if diagonal else u[:, :, None] * u[:, None, :])
        pieces += [np.concatenate([weights, bias[..., None]], axis=-1), cov]
    values = [piece.reshape(len(models), -1) for piece in pieces]
    return LinearGaussianNet._restore(models.graph, models.diagonal, np.concatenate(values, axis=1))
