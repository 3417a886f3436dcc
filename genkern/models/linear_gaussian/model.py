"""Linear Gaussian networks: the value. Its estimator is in ``linear_gaussian.estimator``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.core.gaussian import passes as core
from genkern.data.objects import Packed
from genkern.models.base import COMMON, COORDINATES, Model, Statistics
from genkern.models.families.gaussian import Gaussian
from genkern.models.graph.model import Graph, make_graph, pack_rows, unique_patterns
from genkern.models.information import Information, InformationBlocks
from genkern.validation import MEANS, SPREADS, Floats, check_array, check_int, check_option, check_range

ROWS_PER_PATTERN = 16  # with fewer rows per pattern of missing entries, rows are computed one by one


class NodeParameters(NamedTuple):
    """The parameters of one node, and the indices of it and its parents in the joint vector (D,).

    coefficients : batch + (d, q + 1), weights of the q numbers of the parents, and the bias in the last column
    noise : Gaussian stack of the batch and mean zero
    own, above : indices (d,) and (q,)
    """

    coefficients: Floats
    noise: Gaussian
    own: NDArray[np.int64]
    above: NDArray[np.int64]

    @property
    def noise_cov(self) -> Floats:
        """The covariances of the noise, batch + (d, d)."""
        cov = self.noise.cov
        return cov if self.noise.covariance_type == "full" else cov[..., None] * np.eye(cov.shape[-1])


class LinearGaussianNet(Model):
    r"""Network of Gaussian vectors, each a linear function of its parents plus noise.

    .. math:: x_v = \sum_{p \in pa(v)} W_{vp} x_p + b_v + \epsilon_v, \quad \epsilon_v \sim N(0, Q_v),
       \qquad x = (I - W)^{-1} (b + \epsilon)

    Parameters
    ----------
    nodes : dict of node to (parents, weights, bias, cov)
        Names are strings or other hashables. ``weights`` holds one matrix (d, d of the parent) for each parent, or a
        number if both have dimension one. ``bias`` is a vector (d,), or a number if d = 1. ``cov`` is the covariance
        (d, d) of the noise, its variances (d,), or one number if d = 1. The order of the dict is that of the
        parameters.
    observed : list of nodes, optional
        The observed nodes, in the order of the columns of objects; all others are hidden. The default is all nodes.

    Notes
    -----
    An object is a row of numbers, the vectors of the observed nodes one after the other, or a bag (m, d) of such rows
    drawn independently; a 2-D array is n objects of one row each. NaN marks a missing entry, which is integrated out.
    Parameters of a node are the rows of [weights, bias], then variances or the lower triangle of the covariance.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 4.4. Shachter & Kenley (1989), Gaussian
    influence diagrams, section 3.

    Examples
    --------
    >>> from genkern import LinearGaussianNet
    >>> net = LinearGaussianNet({"z": ([], [], 0.0, 1.0), "x": (["z"], [2.0], 1.0, 0.5)}, observed=["x"])
    >>> net.to_gaussian()
    Gaussian(mean=[1], cov=[[4.5]])
    >>> net.posterior([[3.0]])[0]["z"].mean.round(4)
    array([[0.8889]])
    """

    _fields = ("graph", "diagonal", "values")
    graph: Graph
    diagonal: tuple[bool, ...]
    values: Floats

    def __init__(self, nodes: Mapping[Any, tuple[Any, Any, ArrayLike, ArrayLike]], observed: Any = None):
        who = "LinearGaussianNet"
        if not isinstance(nodes, Mapping):
            raise TypeError(
                f"{who}: 'nodes' must be a dict of node to (parents, weights, bias, cov). Got {nodes!r:.80}."
            )
        for name, entry in nodes.items():
            if not isinstance(entry, tuple | list) or len(entry) != 4:
                raise TypeError(
                    f"{who}: node {name!r} must be given as (parents, weights, bias, cov). Got {entry!r:.80}."
                )
        biases = {name: np.atleast_1d(check_array(entry[2], f"bias of {name!r}", who)) for name, entry in nodes.items()}
        for name, bias in biases.items():
            check_array(bias, f"bias of {name!r}", who, ndim=1)
        sizes = {name: len(bias) for name, bias in biases.items()}
        graph = make_graph({name: entry[0] for name, entry in nodes.items()}, sizes, observed, who)
        pieces, diagonal = [], []
        for v, (name, (_, weights, _, cov)) in enumerate(nodes.items()):
            coefficients = _check_weights(weights, biases[name], graph, v)
            spread = check_array(cov, f"cov of {name!r}", who)
            spread = np.full(1, spread) if spread.ndim == 0 and sizes[name] == 1 else spread
            noise = Gaussian(np.zeros(sizes[name]), spread[0] if spread.shape == (1, 1) else spread)
            if noise.covariance_type == "isotropic":
                raise ValueError(
                    f"{who}: 'cov' of {name!r} must be (d,) or (d, d) for a bias of {sizes[name]} numbers."
                )
            diagonal.append(noise.covariance_type == "diagonal")
            pieces += [coefficients.ravel(), noise.cov.ravel()]
        self._freeze(graph=graph, diagonal=tuple(diagonal), values=np.concatenate(pieces))

    @classmethod
    def _checked(cls, *fields: Any) -> Self:
        graph, diagonal, values = fields
        net = cls._restore(graph, diagonal, check_array(values, "values", "LinearGaussianNet"))
        both = [(part.coefficients, Gaussian(part.noise.mean, part.noise.cov).cov) for part in net.parts()]
        flat = np.concatenate([array.reshape(*net.shape, -1) for pair in both for array in pair], axis=-1)
        return cls._restore(graph, tuple(map(bool, diagonal)), flat)

    def __repr__(self) -> str:
        hidden = f", {len(self.graph.hidden)} hidden" if self.graph.hidden else ""
        stack = f", stack of {self.shape}" if self.shape else ""
        return f"LinearGaussianNet({len(self.graph.names)} nodes{hidden}, dimension {sum(self.graph.sizes)}{stack})"

    def _heading(self) -> str:
        return repr(self)

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch of the stack."""
        return self.values.shape[:-1]

    @property
    def observed(self) -> list[Any]:
        """Names of the observed nodes, in the order of the columns of an object."""
        return [self.graph.names[v] for v in self.graph.observed]

    @property
    def hidden(self) -> list[Any]:
        """Names of the hidden nodes."""
        return [self.graph.names[v] for v in self.graph.hidden]

    @property
    def columns(self) -> NDArray[np.int64]:
        """Indices of the columns of an object in the joint vector of all nodes."""
        return np.concatenate([_places(self.graph)[v] for v in self.graph.observed])

    def parts(self) -> list[NodeParameters]:
        """Return the parameters of every node."""
        places = _places(self.graph)
        parts, start = [], 0
        for v, d in enumerate(self.graph.sizes):
            above = np.concatenate([np.zeros(0, np.int64), *(places[p] for p in self.graph.parents[v])])
            middle = start + d * (len(above) + 1)
            end = middle + (d if self.diagonal[v] else d * d)
            spread = self.values[..., middle:end].reshape(*self.shape, *((d,) if self.diagonal[v] else (d, d)))
            noise = Gaussian._restore(np.zeros((*self.shape, d)), spread)
            parts.append(
                NodeParameters(self.values[..., start:middle].reshape(*self.shape, d, -1), noise, places[v], above)
            )
            start = end
        return parts

    def pack(self, X: Any) -> Packed:
        """Encode rows, or bags of rows, of the numbers of the observed nodes."""
        return pack_rows(X, len(self.columns), "LinearGaussianNet")

    # --- the joint distribution, likelihood and posterior

    def joint(self) -> tuple[Floats, Floats]:
        """Return mean batch + (D,) and covariance batch + (D, D) of all nodes, in the order of their names."""
        size = sum(self.graph.sizes)
        weights, cov = np.zeros((*self.shape, size, size)), np.zeros((*self.shape, size, size))
        bias = np.zeros((*self.shape, size))
        for part in self.parts():
            weights[..., part.own[:, None], part.above] = part.coefficients[..., :-1]
            bias[..., part.own] = part.coefficients[..., -1]
            cov[..., part.own[:, None], part.own] = part.noise_cov
        with np.errstate(over="ignore", invalid="ignore"):
            spread = np.linalg.inv(np.eye(size) - weights)
            joint = spread @ cov @ np.swapaxes(spread, -1, -2)
            mean = (spread @ bias[..., None])[..., 0]
        who = "LinearGaussianNet"
        check_range(check_array(mean, "means of the nodes", who), "means of the nodes", who, 0.0, MEANS)
        check_array(joint, "covariances of the nodes", who)
        variances = np.diagonal(joint, axis1=-2, axis2=-1)
        check_range(variances, "variances of the nodes", who, *SPREADS)
        return mean, 0.5 * (joint + np.swapaxes(joint, -1, -2))

    def to_gaussian(self) -> Gaussian:
        """Return the distribution of the observed nodes, of the batch of the net."""
        mean, cov = self.joint()
        return Gaussian._restore(mean[..., self.columns], cov[..., self.columns[:, None], self.columns])

    def log_prob(self, X: Any) -> Floats:
        """Return the log-likelihood of each object, shape (n_objects,) + batch."""
        packed = self.pack(X)
        sums: Floats = np.add.reduceat(self.to_gaussian().log_density(packed.values), packed.offsets[:-1], axis=0)
        return sums

    def posterior(self, X: Any, nodes: Any = None) -> list[dict[Any, Gaussian]]:
        r"""Return :math:`p(x_v | x_O)` of each row of each object, by node.

        Parameters
        ----------
        X : list of objects
        nodes : list of nodes, optional
            The default is all hidden nodes. Observed nodes have zero covariance.

        Returns
        -------
        posteriors : list of dict of node to Gaussian
            Stacks of batch (m,), with full covariances.
        """
        self._require_single("posterior")
        packed = self.pack(X)
        self.to_gaussian()._refuse_singular()
        mean, cov = self.joint()
        means, covs = np.empty((packed.n_points, len(mean))), np.empty((packed.n_points, *cov.shape))
        for mask, rows in unique_patterns(~np.isnan(packed.values)):
            seen = self.columns[mask]
            gain, covs[rows] = _regress(cov, seen)
            means[rows] = mean + (packed.values[np.ix_(rows, mask)] - mean[seen]) @ gain
        names = self.hidden if nodes is None else list(nodes)
        places = {name: _places(self.graph)[self.graph.find(name, "LinearGaussianNet.posterior")] for name in names}
        return [
            {name: Gaussian._restore(means[a:b, at], covs[a:b, at[:, None], at]) for name, at in places.items()}
            for a, b in pairwise(packed.offsets.tolist())
        ]

    # --- E-step, gradient, information

    def statistics(self, X: Any, totals: bool = False) -> Statistics:
        """Return posterior expected moments per object, or summed over objects (``totals``).

        Blocks: ``weight`` (G,), the number of rows; ``mean`` (G, D) and ``cov`` (G, D, D), the sums over rows of the
        posterior expectations of x - m and (x - m)(x - m)^T of all nodes, m being the mean of the model. A stack of
        batch (n_objects,) treats object i under its own model i.
        """
        packed = self.pack(X)
        if self.shape not in ((), (packed.n_objects,)):
            raise ValueError(
                f"LinearGaussianNet.statistics needs one model or one per object. Got a stack of {self.shape} for "
                f"{packed.n_objects} objects."
            )
        visible = self.to_gaussian()
        logs = visible[:, None].own_log_density(packed)[:, 0] if self.shape else visible.log_density(packed.values)
        blocks = self._moments(packed, totals)
        return Statistics(self, np.add.reduceat(logs, packed.offsets[:-1]), packed.lengths, blocks)

    def _moments(self, packed: Packed, totals: bool) -> dict[str, Floats]:
        """Return the blocks of statistics."""
        mean, cov = self.joint()
        patterns = unique_patterns(~np.isnan(packed.values)) if totals and not self.shape else []
        if 0 < len(patterns) <= packed.n_points / ROWS_PER_PATTERN:  # products of matrices are faster than rows
            first, second = np.zeros((1, len(mean))), np.zeros((1, *cov.shape))
            for mask, rows in patterns:
                seen = self.columns[mask]
                gaps = packed.values[np.ix_(rows, mask)] - mean[seen]
                gain, spread = _regress(cov, seen)
                first += gaps.sum(axis=0) @ gain
                second += gain.T @ (gaps.T @ gaps) @ gain + len(rows) * spread
            return {"weight": np.array([float(packed.n_points)]), "mean": first, "cov": second}
        d = mean.shape[-1]
        points = np.full((packed.n_points, d), np.nan)
        points[:, self.columns] = packed.values
        normals = core.Normals(mean.reshape(-1, 1, d), cov.reshape(-1, 1, d, d))
        sums = core.moments(normals, points, packed.offsets, np.ones((len(points), 1)), totals)
        return {"weight": sums.weight[:, 0], "mean": sums.first[:, 0], "cov": sums.second[:, 0]}

    def gradient(self, statistics: Statistics, coordinates: str = "softmax") -> Floats:
        r"""Return derivatives (G, p) of the log-likelihood from the statistics of one model.

        With the residual e of a node and :math:`z = (x_{pa}, 1)`: :math:`Q^{-1} \sum e z^T` for [weights, bias], and
        :math:`\frac12 (Q^{-1} \sum ee^T Q^{-1} - n Q^{-1})` for the covariance.
        """
        mean, _ = self.joint()
        weight, first, second = (statistics[name] for name in ("weight", "mean", "cov"))
        derivatives = []
        for part in self.parts():
            part.noise._refuse_singular()
            both = np.concatenate([part.own, part.above])
            residual = np.concatenate([np.eye(len(part.own)), -part.coefficients[:, :-1]], axis=1)
            error = first[:, both] @ residual.T
            squares = residual @ second[:, both[:, None], both] @ residual.T
            cross = residual @ second[:, both[:, None], part.above] + error[:, :, None] * mean[part.above]
            cross = np.concatenate([cross, error[:, :, None]], axis=2)
            lines = np.linalg.solve(part.noise_cov, cross)
            if part.noise.covariance_type == "diagonal":
                squares = np.diagonal(squares, axis1=1, axis2=2)
            blocks = {"weight": weight[:, None], "mean": error[:, None], "cov": squares[:, None]}
            spread = part.noise.stack([part.noise]).member_gradient(blocks, coordinates)[:, len(part.own) :]
            derivatives += [lines.reshape(len(weight), -1), spread]
        return np.concatenate(derivatives, axis=1)

    def information(self, lengths: ArrayLike, coordinates: str = "softmax") -> InformationBlocks:
        r"""Return the complete-data Fisher information, averaged over numbers of rows, as pairs (index, block).

        It is that of the complete data, all nodes observed: for each node a block :math:`Q^{-1} \otimes E[z z^T]` of
        [weights, bias] and one of the covariance.
        """
        self._require_single("information")
        mean, cov = self.joint()
        draws = float(np.mean(np.asarray(lengths)))
        blocks: list[Information] = []
        for part in self.parts():
            part.noise._refuse_singular()
            design = np.append(mean[part.above], 1.0)
            moment = np.outer(design, design)
            moment[:-1, :-1] += cov[np.ix_(part.above, part.above)]
            blocks.append(draws * np.kron(np.linalg.inv(part.noise_cov), moment))
            blocks.append(part.noise.stack([part.noise]).member_information(np.array([draws]), coordinates)[1])
        ends = np.cumsum([len(block) for block in blocks])
        return [(np.arange(end - len(block), end), block) for end, block in zip(ends, blocks)]

    # --- parameters

    def parameters(self, coordinates: str = "softmax") -> Floats:
        """Return the parameter vector (p,), node by node."""
        self._require_single("parameters")
        check_option(coordinates, COORDINATES, "coordinates", "LinearGaussianNet.parameters")
        pieces = []
        for part in self.parts():
            pieces += [part.coefficients.ravel(), part.noise.parameters(coordinates)[len(part.own) :]]
        return np.concatenate(pieces)

    def with_parameters(self, vector: ArrayLike, coordinates: str = "softmax") -> Self:
        """Return the model at these coordinates."""
        self._require_single("with_parameters")
        check_option(coordinates, COORDINATES, "coordinates", "LinearGaussianNet.with_parameters")
        shape = (len(self.parameter_names),)
        rest = check_array(vector, "vector", "LinearGaussianNet", shape=shape)
        pieces = []
        for part in self.parts():
            d = len(part.own)
            free = len(part.noise.parameters("raw")) - d
            lines, spread, rest = np.split(rest, [part.coefficients.size, part.coefficients.size + free])
            noise = part.noise.with_parameters(np.concatenate([np.zeros(d), spread]), coordinates)
            pieces += [lines, noise.cov.ravel()]
        return self._restore(self.graph, self.diagonal, np.concatenate(pieces))

    @property
    def parameter_names(self) -> list[str]:
        """Names such as ``x.weights[0,1]``, ``x.bias[0]``, ``x.variance[0]`` or ``x.cov[1,0]``."""
        names = []
        for name, part in zip(self.graph.names, self.parts()):
            for a in range(len(part.own)):
                names += [f"{name}.weights[{a},{j}]" for j in range(len(part.above))] + [f"{name}.bias[{a}]"]
            names += [f"{name}.{spread}" for spread in part.noise.parameter_names[len(part.own) :]]
        return names

    @property
    def blocks(self) -> list[str]:
        """The block of each parameter: weights, bias or variances, of whatever node."""
        kinds = [name.rpartition(".")[2].split("[", 1)[0] for name in self.parameter_names]
        return [COMMON.get(kind, kind) for kind in kinds]

    def sample(self, n: int, *, length: int = 1, rng: Any = None) -> list[Floats]:
        """Return n bags of ``length`` rows, each (length, d)."""
        self._require_single("sample")
        check_int(n, "n", "LinearGaussianNet.sample", 0)
        count = n * check_int(length, "length", "LinearGaussianNet.sample", 1)
        visible = self.to_gaussian()
        values, vectors = np.linalg.eigh(visible.cov)  # a Cholesky factor would refuse nodes without noise
        noise = np.random.default_rng(rng).standard_normal((count, len(values)))
        rows = visible.mean + (noise * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        return list(rows.reshape(n, length, rows.shape[-1]))


@lru_cache(maxsize=256)
def _places(graph: Graph) -> list[NDArray[np.int64]]:
    """Return the indices of each node in the joint vector."""
    return [np.arange(a, b) for a, b in pairwise(accumulate(graph.sizes, initial=0))]


def _regress(cov: Floats, seen: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the coefficients (k, D) of all numbers on k seen ones, and the covariance (D, D) given these."""
    gain: Floats = np.asarray(np.linalg.solve(cov[np.ix_(seen, seen)], cov[seen]), np.float64)
    gain[:, seen] = np.eye(len(seen))
    spread = cov - gain.T @ cov[seen]
    spread[seen], spread[:, seen] = 0.0, 0.0
    return gain, 0.5 * (spread + spread.T)


def _check_weights(weights: Any, bias: Floats, graph: Graph, v: int) -> Floats:
    """Return [weights, bias] of a node, (d, q + 1)."""
    who, name = "LinearGaussianNet", graph.names[v]
    parents = graph.parents[v]
    if not hasattr(weights, "__len__") or len(weights) != len(parents):
        raise ValueError(f"{who}: 'weights' of {name!r} must be a list of {len(parents)}, one for each parent.")
    columns = []
    for p, weight in zip(parents, weights):
        what, shape = f"weights of {name!r} for {graph.names[p]!r}", (len(bias), graph.sizes[p])
        matrix = check_array(weight, what, who)
        columns.append(check_array(matrix.reshape(1, 1) if matrix.size == 1 else matrix, what, who, shape=shape))
    return np.concatenate([*columns, bias[:, None]], axis=1)
