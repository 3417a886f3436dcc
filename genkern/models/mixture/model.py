"""Mixtures of any leaf family: the value. Its estimator is in ``mixture.estimator``."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.core.arrays.scaled_rows import scaled_rows
from genkern.core.hmm import passes as core
from genkern.core.mixture.posteriors import share_out
from genkern.data.objects import Packed
from genkern.models import simplex
from genkern.models.base import COORDINATES, Statistics
from genkern.models.characteristic import Scaled, Waves
from genkern.models.draws import draw_rows
from genkern.models.families import natural
from genkern.models.information import Information
from genkern.models.leaf import Leaf, refuse_impossible
from genkern.models.mixture import passes
from genkern.models.mixture.passes import PREFIX, MixtureOutcome, Slopes
from genkern.models.states import flat_rows
from genkern.models.value import rebatch
from genkern.validation import Floats, check_int, check_option, check_probabilities


class Mixture(Leaf):
    r"""Mixtures of leaf families, :math:`p(x) = \sum_k w_k\, g_k(x)`.

    Parameters
    ----------
    weights : array-like of shape batch + (k,)
        Probabilities of the k components.
    components : leaf stack of batch batch + (k,)
        The components, of any leaf family but mixtures.

    Notes
    -----
    A mixture is a leaf family itself: a model of bags of points, and, as a stack of batch (n,), the emissions of an
    HMM. Parameters are the weights, then those of the components. Derivatives use the posterior r of the components:
    :math:`\partial \log p / \partial w_k = g_k / p`, and :math:`r_k` times those of the components' log densities, all
    by log-sum-exp, so that zero weights are legal and no density is too small. A derivative beyond the range of
    float64 (of a zero weight whose component has a much larger density at the point) is given as the largest
    float64. Missing entries are marginalised as the components do it.

    Mixtures of isotropic Gaussians have derivatives in the ``"natural"`` coordinates of Tsuda et al., too: the weights
    but the last, and natural parameters of the components (see ``genkern.models.families.natural``).

    References
    ----------
    Tsuda, Kawanabe, Rätsch, Sonnenburg & Müller (2002), A new discriminative kernel from probabilistic models,
    eq. 5.1-5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import Gaussian, Mixture
    >>> model = Mixture([0.25, 0.75], Gaussian([[0.0], [4.0]], [1.0, 1.0]))
    >>> model.log_prob([np.array([0.0, 4.0])]).round(4)
    array([-3.5107])
    >>> model.posterior([np.array([1.0])])[0].round(4)
    array([[0.9479, 0.0521]])
    """

    _fields = ("weights", "components")
    family_name = "mixture"
    weights: Floats
    components: Any

    def __init__(self, weights: ArrayLike, components: Leaf):
        shares = check_probabilities(weights, "weights", "Mixture")
        if not isinstance(components, Leaf) or isinstance(components, Mixture):
            raise TypeError(
                "Mixture: 'components' must be a stack of a leaf family such as Gaussian or Categorical, and not of "
                f"mixtures: put all components into one. Got {type(components).__name__}."
            )
        if components.shape != shares.shape:
            raise ValueError(
                f"Mixture: 'components' must be a stack of batch {shares.shape}, one for each weight. Got batch "
                f"{components.shape}."
            )
        self._freeze(weights=shares, components=components)

    @classmethod
    def of(cls, leaf: Leaf) -> Mixture:
        """Return a leaf as a mixture of one component; a mixture is returned unchanged.

        Parameters
        ----------
        leaf : Leaf
        """
        if isinstance(leaf, Mixture):
            return leaf
        return cls(np.ones((*leaf.shape, 1)), rebatch(leaf, (*leaf.shape, 1)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch of the stack."""
        return self.weights.shape[:-1]

    @property
    def n_components(self) -> int:
        """Number of components."""
        return self.weights.shape[-1]

    @property
    def alphabet(self) -> Any:
        """The alphabet of the components, None if they have none."""
        return getattr(self.components, "alphabet", None)

    def pack(self, X: Any) -> Packed:
        """Encode bags of points."""
        packed: Packed = self.components.pack(X)
        return packed

    def pack_sequences(self, X: Any) -> Packed:
        """Encode sequences of points."""
        packed: Packed = self.components.pack_sequences(X)
        return packed

    # --- densities

    def log_density(self, points: NDArray[Any]) -> Floats:
        """Return log p of every point, shape (N,) + batch."""
        count = points.shape[0]
        bag = Packed(points, np.array([0, count]), self.alphabet)
        return rebatch(self, (-1,))._expect(bag, summed=False).log_p.reshape((count, *self.shape))

    def own_log_density(self, packed: Packed) -> Floats:
        """Return (N, n): points of object i under members [i, :]."""
        return self._expect(packed, summed=False).log_p

    def bag_log_prob(self, packed: Packed, n_jobs: int | None = None) -> Floats:
        """Return the log-likelihood (n_objects,) of each bag under one mixture, or under its own of a stack."""
        found = self._members()._expect(packed, summed=False, n_jobs=n_jobs)
        return np.add.reduceat(found.log_p[:, 0], packed.offsets[:-1])

    def posterior(self, X: Any) -> list[Floats]:
        r"""Return the responsibilities :math:`r_k = w_k g_k / p` of the components for the points of each object.

        Parameters
        ----------
        X : list of bags of points

        Returns
        -------
        responsibilities : list of ndarray of shape (m, k)
        """
        self._require_single("posterior")
        packed = self.pack(X)
        logs = np.array(self.components.log_density(packed.values), order="C")
        log_p, _ = share_out(logs[:, None], passes.log_weights(self.weights)[None, None], packed.offsets)
        refuse_impossible(np.add.reduceat(log_p[:, 0], packed.offsets[:-1]), "Mixture")
        return np.split(logs, packed.offsets[1:-1])

    # --- E-step, gradient, information

    def statistics(self, X: Any, totals: bool = False, n_jobs: int | None = None) -> Statistics:
        """Return posterior expected statistics of bags, or summed over bags (``totals``).

        Blocks: the raw derivative ``weights`` (G, k), and those of the components' family, taken with the components'
        responsibilities as weights, under ``components.<name>`` (G, k, ...). A stack of batch (n_objects,) treats
        object i under its own model i.

        Parameters
        ----------
        X : list of bags of points
        totals : bool, default=False
            Sum over bags.
        n_jobs : int, optional
            Threads.
        """
        packed = self.pack(X)
        if self.shape not in ((), (packed.n_objects,)):
            raise ValueError(
                f"Mixture.statistics needs one model or one per object. Got a stack of {self.shape} for "
                f"{packed.n_objects} objects."
            )
        outcome = self._members()._expect(packed, totals=totals, n_jobs=n_jobs)
        log_prob = np.add.reduceat(outcome.log_p[:, 0], packed.offsets[:-1])
        refuse_impossible(log_prob, "Mixture")
        blocks = {name: block[:, 0] for name, block in outcome.blocks.items()}
        return Statistics(self, log_prob, packed.lengths, blocks)

    def weigh(self, packed: Packed, weights: Floats, totals: bool) -> dict[str, Floats]:
        """Return the raw derivative ``weights`` (G, n, k) and the components' blocks (G, n, k, ...)."""
        return self._expect(packed, weights, totals=totals).blocks

    def evidence(self, packed: Packed) -> core.Evidence:
        """Return the table of emission factors, with the terms of its sums, if they are not too many."""
        found = passes.hold_terms(self.weights, self.flat_components(), packed)
        if found is None:
            return super().evidence(packed)
        logs, held = found
        table, shift, raised = scaled_rows(logs)
        return core.Evidence(table, shift, None, logs if raised else None, held)

    def emission_statistics(
        self, packed: Packed, evidence: core.Evidence, raw: Floats, totals: bool = False
    ) -> dict[str, Floats]:
        """Return blocks from the derivatives with respect to the table that a pass of ``core.hmm`` gave."""
        given = evidence.table * raw
        if evidence.held is not None:
            held = evidence.held
            return passes.weigh_held(self.weights, self.flat_components(), packed, held, given, totals)
        slopes = Slopes(raw, np.broadcast_to(evidence.shift[:, None], raw.shape))
        return self._expect(packed, given, slopes, totals=totals).blocks

    def emission_totals(self, packed: Packed, evidence: core.Evidence, raw: Floats) -> dict[str, Floats]:
        """Return ``emission_statistics`` summed over objects, with a leading axis of length one."""
        return self.emission_statistics(packed, evidence, raw, totals=True)

    def _expect(
        self, packed: Packed, weights: Floats | None = None, slopes: Slopes | None = None, **options: Any
    ) -> MixtureOutcome:
        """Return log p (N, n) and blocks of a stack of batch (n,) or (n_objects, n)."""
        return passes.expect(self.weights, self.flat_components(), packed, weights, slopes, **options)

    def flat_components(self) -> Any:
        """Return the components of batch (n * k,), or (n_objects, n * k) if each object has its own."""
        return self._once("flat", lambda: rebatch(self.components, (*self.shape[:-1], -1)))

    def _members(self) -> Mixture:
        """Return the members of a stack, or the one mixture, with a last axis of one."""
        return self._once("members", lambda: rebatch(self, (*self.shape, 1)))

    def member_gradient(self, blocks: dict[str, Floats], coordinates: str) -> Floats:
        """Return derivatives (G, p)."""
        return np.concatenate(self._slopes(blocks, coordinates), axis=1)

    def _slopes(self, blocks: dict[str, Floats], coordinates: str) -> list[Floats]:
        """Return derivatives by the weights (G, n * k) and by the components' parameters."""
        shares = simplex.gradient(blocks["weights"], self.weights, coordinates)
        rest = self.flat_components().member_gradient(passes.component_blocks(blocks), coordinates)
        return [shares.reshape(len(shares), -1), rest]

    def gradient(self, statistics: Statistics, coordinates: str = "softmax") -> Floats:
        """Return the derivatives (G, p) of the log-likelihood of bags from their statistics."""
        if coordinates != "natural":
            return super().gradient(statistics, coordinates)
        return natural.gradient(statistics.of_member(), self.components)

    def log_prob_grad(self, X: Any, coordinates: str = "softmax", n_jobs: int | None = None) -> Floats:
        """Return the derivatives of each bag's log-likelihood, shape (n_objects, p).

        Parameters
        ----------
        X : list of bags of points
        coordinates : {"softmax", "ratio", "sqrt", "raw", "natural"}, default="softmax"
            "natural" is for mixtures of isotropic Gaussians.
        n_jobs : int, optional
            Threads.
        """
        self._require_single("log_prob_grad")
        self._check_coordinates(coordinates, "log_prob_grad")
        packed = self.pack(X)
        one, log_prob = self._members(), np.empty(packed.n_objects)
        slopes = np.empty((packed.n_objects, len(self.parameters(coordinates))))
        for part in passes.parts_of(packed, self.n_components):  # derivatives are large: few objects at a time
            log_p, blocks = one._expect(part.packed, n_jobs=n_jobs)
            log_prob[part.objects] = np.add.reduceat(log_p[:, 0], part.packed.offsets[:-1])
            if coordinates == "natural":
                slopes[part.objects] = natural.gradient(blocks, self.components)
            else:
                np.concatenate(one._slopes(blocks, coordinates), axis=1, out=slopes[part.objects])
        refuse_impossible(log_prob, "Mixture")
        return slopes

    def member_information(self, draws: Floats, coordinates: str) -> list[Information]:
        """Return the complete-data information (components observed): weights of each member, then the components'."""
        shares = simplex.information(self.weights, draws, coordinates)
        visits = (np.asarray(draws)[:, None] * self.weights).ravel()
        return [*shares, *self.flat_components().member_information(visits, coordinates)]

    # --- hidden variables

    @property
    def hidden_states(self) -> list[str]:
        """The components; of a stack, with the member's index first."""
        return list(self._once("states", lambda: [",".join(map(str, at)) for at in np.ndindex(self.weights.shape)]))

    def member_visits(self, blocks: dict[str, Floats]) -> Floats:
        """Return how many points each component of each member is expected to have emitted, (G, n * k)."""
        return flat_rows(self.weights * blocks["weights"])

    @property
    def state_sizes(self) -> tuple[int, ...]:
        """The number of components, which are the states of points."""
        return (self.n_components,)

    @property
    def state_emissions(self) -> Any:
        """The components."""
        return self.components

    def expected_states(self, packed: Packed, steps: bool) -> tuple[Floats, Floats | None]:
        """Return expected visits (n, k) of each bag."""
        return self.visits(self.statistics(packed)), None

    def expected_symbols(self, packed: Packed) -> Floats:
        """Return how often each component is expected to have emitted each symbol, (n_objects, k, m)."""
        if not self.components.counts_symbols:
            return super().expected_symbols(packed)
        counts: Floats = self.components.probs * self.statistics(packed)[f"{PREFIX}probs"]
        return counts

    def moments(self) -> tuple[Floats, Floats] | None:
        """Return means and variances, if those of the components are known."""
        found = self.components.moments()
        if found is None:
            return None
        shares, (means, spreads) = self.weights[..., None], found
        mean = (shares * means).sum(axis=-2)
        return mean, (shares * (spreads + (means - mean[..., None, :]) ** 2)).sum(axis=-2)

    def expected_points(self, packed: Packed) -> Floats | None:
        """Return E[x_t | member i, observed part of x_t], (N, n, d); None if missing values cannot be imputed."""
        return passes.filled_points(self, packed)

    def beginning(self, length: int) -> Mixture:
        """Return the distribution of the first symbols of a window."""
        return self._restore(self.weights, self.components.beginning(length))

    def waves(self) -> Waves | None:
        """Return the properties of the frequencies of the components."""
        found: Waves | None = self.components.waves()
        return None if found is None else found._replace(load=self.n_components * found.load)

    def characteristic(self, waves: Floats) -> Scaled:
        """Return the weighted sum of the components' characteristic functions."""
        values, logs = self.components.characteristic(waves)
        top = None if logs is None else np.where(self.weights[..., None] > 0, logs, -np.inf).max(axis=-2)
        if top is not None:
            values = values * np.exp(np.minimum(logs - top[..., None, :], 0.0))
        return Scaled(np.einsum("...k,...ks->...s", self.weights, values), top)

    # --- parameters

    def parameters(self, coordinates: str = "softmax") -> Floats:
        """Return the weights, then the components' parameters."""
        self._check_coordinates(coordinates, "parameters")
        if coordinates == "natural":
            return natural.parameters(self.weights, self.components)
        shares = simplex.coordinates_of(self.weights, coordinates).ravel()
        return np.concatenate([shares, self.components.parameters(coordinates)])

    def with_parameters(self, vector: ArrayLike, coordinates: str = "softmax") -> Self:
        """Return the model at a parameter vector; raw weights are not normalised."""
        self._check_coordinates(coordinates, "with_parameters")
        values = np.array(vector, dtype=np.float64)
        if coordinates == "natural":
            return self._restore(*natural.from_parameters(values, self.components))
        shares, rest = np.split(values, [self.weights.size])
        return self._restore(
            simplex.from_coordinates(shares.reshape(self.weights.shape), coordinates),
            self.components.with_parameters(rest, coordinates),
        )

    @property
    def n_tied(self) -> int:
        """Number of parameters of the components that repeat others."""
        return self.components.n_tied

    @property
    def parameter_names(self) -> list[str]:
        """Names such as ``weights[state,component]`` and ``components.mean[state,component,channel]``."""
        names = [f"weights[{','.join(map(str, index))}]" for index in np.ndindex(self.weights.shape)]
        return names + [PREFIX + name for name in self.components.parameter_names]

    @property
    def blocks(self) -> list[str]:
        """The block of each parameter; components have those of their family."""
        return ["weights"] * self.weights.size + list(self.components.blocks)

    def _check_coordinates(self, coordinates: str, what: str) -> None:
        check_option(coordinates, (*COORDINATES, "natural"), "coordinates", f"Mixture.{what}")
        if coordinates == "natural":
            self._require_single(f"{what} in natural coordinates")
            natural.require_isotropic(self.components)

    # --- sampling

    def draw(self, which: NDArray[np.int64], rng: np.random.Generator) -> NDArray[Any]:
        """Return one point from each named member of a stack of batch (n,)."""
        chosen = draw_rows(self.weights, which, rng)
        points: NDArray[Any] = self.flat_components().draw(which * self.n_components + chosen, rng)
        return points

    def sample(self, n: int, *, length: int = 1, rng: Any = None) -> list[Any]:
        """Return n bags of ``length`` points."""
        self._require_single("sample")
        count = check_int(n, "n", "Mixture.sample") * check_int(length, "length", "Mixture.sample", 1)
        points = rebatch(self, (1,)).draw(np.zeros(count, np.int64), np.random.default_rng(rng))
        if self.alphabet is not None and points.ndim == 2:
            if length != 1:
                raise ValueError(f"Mixture.sample: a window is an object by itself, so length must be 1. Got {length}.")
            return [self.alphabet.decode(window) for window in points]
        bags = points.reshape((n, length, *points.shape[1:]))
        return list(bags) if self.alphabet is None else [self.alphabet.decode(bag) for bag in bags]
