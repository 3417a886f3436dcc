"""Estimation of linear Gaussian networks of known structure."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from genkern.models.base import Statistics
from genkern.models.gaussian_floor import floor_eigenvalues
from genkern.models.graph import Graph, pack_rows
from genkern.models.graph_estimator import NetEstimator
from genkern.models.linear_gaussian_net import LinearGaussianNet
from genkern.models.streams import Keys, uniforms
from genkern.objects import Packed
from genkern.validation import Floats, check_int, check_number, check_option

COVARIANCES = ("full", "diagonal")


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
    min_covar : float, default=1e-3
        Smallest eigenvalue of a noise covariance, in squared units of the data. Covariances maximise the likelihood
        under this bound.
    ridge : float, default=0.0
        Precision :math:`\rho` of a normal prior :math:`N(0, Q_v / \rho)` on each column of the weights. Zero is maximum
        likelihood, with the smallest weights where parents are collinear.
    n_init : int, default=1
        Restarts from different first guesses if there are hidden nodes; the best is kept.
    max_iter : int, default=1000
        Largest number of EM steps.
    tol : float, default=1e-5
        EM stops when a step gains less than this per row. Zero runs all steps.
    random_state : int, RandomState instance or None, default=None
        Seed of the first guesses of weights that touch hidden nodes; None counts as 0.

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
    which adds nothing to the set of distributions and speeds EM up.

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

    def __init__(
        self,
        structure: Any,
        *,
        dims: Any = None,
        hidden: Any = None,
        observed: Any = None,
        covariance: str = "full",
        min_covar: float = 1e-3,
        ridge: float = 0.0,
        n_init: int = 1,
        max_iter: int = 1000,
        tol: float = 1e-5,
        random_state: Any = None,
    ):
        self.structure = structure
        self.dims = dims
        self.hidden = hidden
        self.observed = observed
        self.covariance = covariance
        self.min_covar = min_covar
        self.ridge = ridge
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_option(self.covariance, COVARIANCES, "covariance", "LinearGaussianNetEstimator")
        check_number(self.min_covar, "min_covar", "LinearGaussianNetEstimator", exclusive=True)
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

    def _guess(self, packed: Packed, keys: Keys, own: bool) -> LinearGaussianNet:
        """Return independent nodes with the data's means and variances, and random weights where hidden nodes are."""
        graph = self._full_graph()
        diagonal = tuple(self.covariance == "diagonal" or d == 1 for d in graph.sizes)
        offsets = packed.offsets[:-1] if own else packed.offsets[:1]
        mean, variance = _moments(packed, offsets)
        means = {v: np.zeros((len(keys), d)) for v, d in enumerate(graph.sizes)}
        spreads = {v: np.ones((len(keys), d)) for v, d in enumerate(graph.sizes)}
        start = 0
        for v in graph.observed:
            part = slice(start, start + graph.sizes[v])
            means[v], spreads[v] = mean[:, part], np.maximum(variance[:, part], self.min_covar)
            start = part.stop
        hidden, pieces, counter = set(graph.hidden), [], 0
        for v, d in enumerate(graph.sizes):
            q = sum(graph.sizes[p] for p in graph.parents[v])
            lines = np.zeros((len(keys), d, q + 1))
            if q and hidden & {v, *graph.parents[v]}:
                draws = uniforms(keys[:, None], np.arange(counter, counter + d * q)).reshape(len(keys), d, q)
                lines[..., :-1] = ndtri(0.5 * 2.0**-53 + draws) * np.sqrt(spreads[v] / q)[..., None]
            counter += d * q
            lines[..., -1] = means[v]
            noise = spreads[v] if diagonal[v] else spreads[v][..., None] * np.eye(d)
            pieces += [lines.reshape(len(keys), -1), noise.reshape(len(keys), -1)]
        values = np.concatenate(pieces, axis=1)
        return LinearGaussianNet._restore(graph, diagonal, values if own else values[0])

    def _maximize(self, statistics: Statistics) -> LinearGaussianNet:
        """Return the regression of every node on its parents."""
        model: LinearGaussianNet = statistics.model
        centre, _ = model.joint()
        batch = model.shape
        count = statistics["weight"].reshape(*batch, 1)
        step = statistics["mean"].reshape(centre.shape) / count
        mean = centre + step
        scatter = statistics["cov"].reshape(*centre.shape, -1) / count[..., None]
        scatter = scatter - step[..., :, None] * step[..., None, :]
        pieces = []
        for part, diagonal in zip(model.parts(), model.diagonal):
            own, above = part.own, part.above
            across = scatter[..., own[:, None], above]
            parents = scatter[..., above[:, None], above] + self.ridge / count[..., None] * np.eye(len(above))
            weights = across @ np.linalg.pinv(parents, rcond=1e-12, hermitian=True)
            noise = scatter[..., own[:, None], own] - weights @ np.swapaxes(across, -1, -2)
            bias = mean[..., own, None] - weights @ mean[..., above, None]
            if diagonal:
                noise = np.maximum(np.diagonal(noise, axis1=-2, axis2=-1), self.min_covar)
            else:
                noise = floor_eigenvalues(noise, self.min_covar)
            pieces += [np.concatenate([weights, bias], axis=-1).reshape(*batch, -1), noise.reshape(*batch, -1)]
        return LinearGaussianNet._restore(model.graph, model.diagonal, np.concatenate(pieces, axis=-1))

    def _log_prior(self, model: LinearGaussianNet) -> Floats:
        """Return the log prior of the weights."""
        prior = np.zeros(model.shape)
        if self.ridge == 0:
            return prior
        for part in model.parts():
            weights = part.coefficients[..., :-1]
            prior = prior - 0.5 * self.ridge * (weights * np.linalg.solve(part.noise_cov, weights)).sum(axis=(-1, -2))
        return prior


def _moments(packed: Packed, offsets: Any) -> tuple[Floats, Floats]:
    """Return means and variances (G, d) of the entries that are there, of groups of rows; 0 and 1 where none is."""
    seen = ~np.isnan(packed.values)
    sizes = np.diff(np.append(offsets, len(seen)))
    count = np.add.reduceat(seen, offsets, axis=0, dtype=np.float64)
    mean = np.add.reduceat(np.where(seen, packed.values, 0.0), offsets, axis=0) / np.maximum(count, 1.0)
    gaps = np.where(seen, packed.values - np.repeat(mean, sizes, axis=0), 0.0)
    variance = np.add.reduceat(gaps**2, offsets, axis=0) / np.maximum(count, 1.0)
    return mean, np.where(count > 0, variance, 1.0)
