"""Factorial hidden Markov models: the value. Its estimator is in ``factorial.estimator``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.core.factorial import passes as core
from genkern.data.objects import Packed, pack_series
from genkern.models import simplex
from genkern.models.base import COORDINATES, Model, Statistics
from genkern.models.draws import draw_paths
from genkern.models.factorial import passes
from genkern.models.factorial.evidence import chains_of, observe
from genkern.models.factorial.positions import position_blocks
from genkern.models.factorial.variational import FactorialField, mean_field
from genkern.models.families.gaussian import Gaussian
from genkern.models.hmm.model import HMM
from genkern.models.information import Information, InformationBlocks
from genkern.models.leaf import refuse_impossible
from genkern.models.states import chain_visits, flat_rows, state_names
from genkern.validation import (
    MEANS,
    Floats,
    check_array,
    check_int,
    check_number,
    check_option,
    check_probabilities,
    check_range,
)

MAX_STATES = 4096  # joint states up to which passes are exact: each costs a number per observation


class FactorialHMM(Model):
    r"""Several hidden chains, whose states add up to the mean of the observation.

    .. math::
        x_t \sim N\Big(\sum_c \mu^c_{q^c_t},\ \Sigma\Big), \qquad
        p(q) = \prod_c \pi^c_{q^c_0} \prod_t a^c_{q^c_{t-1} q^c_t}

    Parameters
    ----------
    starts : sequence of C array-likes of shape batch + (K_c,)
        Distributions of the chains' first states.
    transitions : sequence of C array-likes of shape batch + (K_c, K_c)
        ``transitions[c][i, j]`` is the probability that chain c goes from state i to state j.
    means : sequence of C array-likes of shape batch + (K_c, d)
        The term of each state of each chain in the mean.
    cov : array-like of shape batch, batch + (d,) or batch + (d, d)
        Isotropic variance, diagonal variances or full covariance of the noise, as in ``Gaussian``.

    Attributes
    ----------
    n_states : tuple of int
        The numbers K_c of states.

    Notes
    -----
    Likelihoods, derivatives, posteriors and paths are exact, in the space of all :math:`K_1 \cdots K_C` joint states,
    to which transitions are applied chain by chain. Above 4096 joint states they are refused; ``bound`` and
    ``variational_posterior`` work for any number. A constant can be moved from the means of one chain to those of
    another without effect: only differences within a chain, and the sum over chains, are determined.

    NaN entries of an observation are missing: they are integrated out exactly. Parameters are ordered starts,
    transitions, means, cov, chain after chain; those of ``cov`` are as in ``Gaussian``.

    References
    ----------
    Ghahramani & Jordan (1997), Factorial hidden Markov models, Machine Learning 29, section 2 and appendices B and D.

    Examples
    --------
    >>> from genkern import FactorialHMM
    >>> steps = [[0.9, 0.1], [0.1, 0.9]]
    >>> model = FactorialHMM([[0.5, 0.5]] * 2, [steps] * 2, [[[0.0], [1.0]], [[0.0], [5.0]]], 0.01)
    >>> model.viterbi([[0.1, 0.9, 5.1, 6.2]])[0].tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """

    _fields = ("starts", "transitions", "means", "cov")
    has_steps = True
    starts: tuple[Floats, ...]
    transitions: tuple[Floats, ...]
    means: tuple[Floats, ...]
    cov: Floats

    def __init__(
        self, starts: Sequence[ArrayLike], transitions: Sequence[ArrayLike], means: Sequence[ArrayLike], cov: ArrayLike
    ):
        counts = len(starts), len(transitions), len(means)
        if len(set(counts)) > 1 or counts[0] == 0:
            raise ValueError(
                "FactorialHMM: 'starts', 'transitions' and 'means' must have one entry per chain, at least one. "
                f"Got {counts[0]}, {counts[1]} and {counts[2]}."
            )
        firsts: list[Floats] = []
        steps: list[Floats] = []
        levels: list[Floats] = []
        for c in range(counts[0]):
            first = check_probabilities(starts[c], f"starts[{c}]", "FactorialHMM")
            square = (*first.shape, first.shape[-1])
            level = check_array(means[c], f"means[{c}]", "FactorialHMM")
            check_range(level, f"means[{c}]", "FactorialHMM", 0.0, MEANS)
            wanted = (*(firsts[0] if firsts else first).shape[:-1], first.shape[-1])
            d = (levels[0] if levels else level).shape[-1] if level.ndim > len(wanted) else 1
            if first.shape != wanted or level.shape != (*wanted, d):
                raise ValueError(
                    f"FactorialHMM: chain {c} must have a start of shape {wanted} and means of shape {(*wanted, d)}. "
                    f"Got {first.shape} and {level.shape}."
                )
            firsts.append(first)
            steps.append(check_probabilities(transitions[c], f"transitions[{c}]", "FactorialHMM", shape=square))
            levels.append(level)
        noise = Gaussian(np.zeros((*firsts[0].shape[:-1], d)), cov)
        self._freeze(starts=tuple(firsts), transitions=tuple(steps), means=tuple(levels), cov=noise.cov)

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch of the stack."""
        return self.starts[0].shape[:-1]

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return len(self.starts)

    @property
    def n_states(self) -> tuple[int, ...]:
        """Numbers of states of the chains."""
        return tuple(start.shape[-1] for start in self.starts)

    @property
    def noise(self) -> Gaussian:
        """The distribution of an observation minus its mean: N(0, cov)."""
        return Gaussian._restore(np.zeros((*self.shape, self.means[0].shape[-1])), self.cov)

    @property
    def covariance_type(self) -> str:
        """One of "isotropic", "diagonal", "full"."""
        return self.noise.covariance_type

    @property
    def variances(self) -> Floats:
        """Variances batch + (d,) of the noise."""
        return self.noise.variances

    def pack(self, X: Any) -> Packed:
        """Encode raw series of d channels."""
        return pack_series(X, "FactorialHMM", n_channels=self.means[0].shape[-1])

    # --- likelihood, posterior, paths

    def log_prob(self, X: Any, n_jobs: int | None = None) -> Floats:
        """Return the log-likelihood of each series, shape (n_objects,) + batch; -inf where it is impossible."""
        self._require_exact("log_prob")
        packed = self.pack(X)
        if self.shape:
            columns = [self[index].log_prob(packed, n_jobs) for index in np.ndindex(self.shape)]
            return np.stack(columns, axis=-1).reshape((-1, *self.shape))
        return passes.log_prob(self, packed, n_jobs)

    def bound(self, X: Any, max_iter: int = 200, tol: float = 1e-9, n_jobs: int | None = None) -> Floats:
        r"""Return a lower bound on the log-likelihood of each series, by structured mean field.

        .. math:: \log p(x) \ge E_Q \log p(x, q) + H(Q), \qquad Q(q) = \prod_c Q_c(q^c)

        Parameters
        ----------
        X : list of series
        max_iter : int, default=200
            Most sweeps over the chains; the bound holds after any number.
        tol : float, default=1e-9
            The sweeps of a series end when one gains less than this per observation.
        n_jobs : int, optional
            Threads.

        Returns
        -------
        bound : ndarray of shape (n_objects,)
        """
        return self._mean_field("bound", self.pack(X), max_iter, tol, n_jobs).bound

    def variational_posterior(self, X: Any, max_iter: int = 200, tol: float = 1e-9) -> list[tuple[Floats, ...]]:
        """Return the marginals of the Q behind ``bound``, per object a tuple of one (T, K_c) array per chain."""
        packed = self.pack(X)
        return self._by_object(self._mean_field("variational_posterior", packed, max_iter, tol).marginal, packed)

    def _mean_field(
        self, what: str, packed: Packed, max_iter: int, tol: float, n_jobs: int | None = None
    ) -> FactorialField:
        self._require_single(what)
        check_int(max_iter, "max_iter", f"FactorialHMM.{what}", 1)
        check_number(tol, "tol", f"FactorialHMM.{what}")
        return mean_field(self, packed, None, max_iter, tol, n_jobs)

    def posterior(self, X: Any, pairs: bool = False) -> list[Any]:
        r"""Return state posteriors :math:`\gamma^c_t(i)`, per object a tuple of one (T, K_c) array per chain.

        With ``pairs``, per object two tuples: these, and :math:`\xi^c_t(i, j)` of shapes (T - 1, K_c, K_c).
        """
        self._require_exact("posterior")
        self._require_single("posterior")
        packed = self.pack(X)
        chains, sight = chains_of(self), observe(self, packed)
        sums = core.gradients(chains, sight.evidence, packed.offsets, sight.segment, len(sight.segments), pairs)
        refuse_impossible(sums.log_prob, "FactorialHMM")
        states = self._by_object(sums.marginal, packed)
        if not pairs:
            return states
        cuts = np.cumsum(np.square(self.n_states))[:-1]
        both = []
        for gamma, raw in zip(states, np.split(chains.steps * sums.steps, packed.offsets[1:-1])):
            parts = np.split(raw[1:], cuts, axis=1)
            both.append((gamma, tuple(p.reshape(-1, k, k) for p, k in zip(parts, self.n_states))))
        return both

    def _by_object(self, marginal: Floats, packed: Packed) -> list[tuple[Floats, ...]]:
        """Return rows (N, K) cut into objects and chains."""
        cuts = np.cumsum(self.n_states)[:-1]
        return [tuple(np.split(piece, cuts, axis=1)) for piece in np.split(marginal, packed.offsets[1:-1])]

    def viterbi(self, X: Any) -> list[NDArray[np.int64]]:
        """Return the most probable joint path of each object, (T, C)."""
        self._require_exact("viterbi")
        self._require_single("viterbi")
        packed = self.pack(X)
        path, log_prob = core.viterbi(chains_of(self), observe(self, packed).evidence, packed.offsets)
        refuse_impossible(log_prob, "FactorialHMM")
        return np.split(path, packed.offsets[1:-1])

    # --- E-step, gradient, information

    def statistics(self, X: Any, totals: bool = False, n_jobs: int | None = None) -> Statistics:
        r"""Return posterior expected statistics per object, or summed over objects (``totals``).

        Blocks: raw derivatives ``starts[c]`` (G, K_c) and ``transitions[c]`` (G, K_c, K_c); and with u (K,) the
        indicators of all chains' states and r the residual, ``means`` :math:`\sum_t E[u r^T]` (G, K, d), ``pairs``
        :math:`\sum_t E[u u^T]` (G, K, K), ``cov`` :math:`\sum_t E[r r^T]` (G, d, d), or its diagonal (G, d) unless
        covariances are full, and ``weight`` (G,), the number of observations. A stack of batch (n_objects,) treats
        object i under its own model i.
        """
        self._require_exact("statistics")
        packed = self.pack(X)
        if self.shape not in ((), (packed.n_objects,)):
            raise ValueError(
                f"FactorialHMM.statistics needs one model or one per object. Got a stack of {self.shape} for "
                f"{packed.n_objects} objects."
            )
        log_prob, blocks = passes.statistics(self, packed, totals, n_jobs)
        refuse_impossible(log_prob, "FactorialHMM")
        return Statistics(self, log_prob, packed.lengths, blocks)

    def gradient(self, statistics: Statistics, coordinates: str = "softmax") -> Floats:
        """Return derivatives (G, p) of the log-likelihood from the statistics of one model."""
        chains = range(self.n_chains)
        parts = [simplex.gradient(statistics[f"starts[{c}]"], self.starts[c], coordinates) for c in chains]
        parts += [simplex.gradient(statistics[f"transitions[{c}]"], self.transitions[c], coordinates) for c in chains]
        if self.covariance_type == "full":
            parts.append(statistics["means"] @ np.linalg.inv(self.cov))
        else:
            parts.append(statistics["means"] / self.variances)
        d = self.means[0].shape[-1]
        centred = {"mean": np.zeros((len(parts[0]), 1, d)), "cov": statistics["cov"][:, None]}
        centred["weight"] = statistics["weight"][:, None]
        parts.append(Gaussian.stack([self.noise]).member_gradient(centred, coordinates)[:, d:])
        return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)

    def information(self, lengths: ArrayLike, coordinates: str = "softmax") -> InformationBlocks:
        r"""Return the complete-data Fisher information, averaged over lengths, as pairs (index, block).

        It is that of the complete data, states included: one block per simplex row, weighted by its expected visits,
        one of all means, :math:`\sum_t E[u u^T] \otimes \Sigma^{-1}`, which couples the chains, and one of the
        covariance.
        """
        self._require_single("information")
        sizes = np.asarray(lengths)
        pairs, departures = passes.expected_visits(self, sizes)
        blocks: list[Information] = [simplex.row_information(start, 1.0, coordinates) for start in self.starts]
        for rows, visits in zip(self.transitions, np.split(departures, np.cumsum(self.n_states)[:-1])):
            blocks += simplex.information(rows, visits, coordinates)
        mean, spread = Gaussian.stack([self.noise]).member_information(np.array([sizes.mean()]), coordinates)
        blocks += [np.kron(pairs, np.asarray(mean) / sizes.mean()), spread]
        index = np.split(np.arange(sum(map(len, blocks))), np.cumsum([len(block) for block in blocks])[:-1])
        return list(zip(index, blocks, strict=True))

    # --- parameters

    def parameters(self, coordinates: str = "softmax") -> Floats:
        """Return the parameter vector (p,)."""
        self._require_single("parameters")
        check_option(coordinates, COORDINATES, "coordinates", "FactorialHMM.parameters")
        parts = [simplex.coordinates_of(part.ravel(), coordinates) for part in (*self.starts, *self.transitions)]
        noise = self.noise.parameters(coordinates)[self.means[0].shape[-1] :]
        return np.concatenate([*parts, *(mean.ravel() for mean in self.means), noise])

    def with_parameters(self, vector: ArrayLike, coordinates: str = "softmax") -> Self:
        """Return the model at a parameter vector; raw coordinates are not normalised."""
        self._require_single("with_parameters")
        check_option(coordinates, COORDINATES, "coordinates", "FactorialHMM.with_parameters")
        given = np.asarray(vector, dtype=np.float64)
        hidden = np.isneginf(given)  # the softmax coordinate of a zero probability
        names = self.parameter_names
        values = check_array(np.where(hidden, 0.0, given), "vector", "FactorialHMM", shape=(len(names),))
        fields = [*self.starts, *self.transitions, *self.means]
        pieces = np.split(np.where(hidden, -np.inf, values), np.cumsum([field.size for field in fields]))
        shaped = [piece.reshape(field.shape) for piece, field in zip(pieces, fields)]
        n, d = self.n_chains, self.means[0].shape[-1]
        rows = [simplex.from_coordinates(part, coordinates) for part in shaped[: 2 * n]]
        noise = self.noise.with_parameters(np.concatenate([np.zeros(d), pieces[-1]]), coordinates)
        return self._restore(tuple(rows[:n]), tuple(rows[n:]), tuple(shaped[2 * n :]), noise.cov)

    @property
    def parameter_names(self) -> list[str]:
        """Names such as ``starts[0,1]`` (chain, state), ``transitions[0,1,0]``, ``means[0,1,2]``, ``variance[2]``."""
        names = []
        for field in ("starts", "transitions", "means"):
            for c, array in enumerate(getattr(self, field)):
                names += [f"{field}[{','.join(map(str, (c, *index)))}]" for index in np.ndindex(array.shape)]
        return names + self.noise.parameter_names[self.means[0].shape[-1] :]

    # --- hidden variables

    @property
    def hidden_states(self) -> list[str]:
        """The states of all chains."""
        return state_names(self.n_states)

    def visits(self, statistics: Statistics) -> Floats:
        """Return how often each state of each chain is expected to be visited, (G, S)."""
        chains = [
            chain_visits(start, rows, statistics[f"starts[{c}]"], statistics[f"transitions[{c}]"])
            for c, (start, rows) in enumerate(zip(self.starts, self.transitions))
        ]
        return np.concatenate(chains, axis=1)

    @property
    def state_sizes(self) -> tuple[int, ...]:
        """The numbers of states of the chains."""
        return self.n_states

    def state_posteriors(self, packed: Packed) -> Floats:
        """Return the posteriors (N, S) of the states of all positions, chains concatenated."""
        return np.concatenate([np.concatenate(chain) for chain in zip(*self.posterior(packed), strict=True)], axis=1)

    def pair_posteriors(self, packed: Packed) -> Floats:
        """Return the posteriors (N - n_objects, S2) of states at neighbouring positions, chain by chain."""
        pieces = [xi for _, xi in self.posterior(packed, pairs=True)]
        return np.concatenate([flat_rows(np.concatenate(chain)) for chain in zip(*pieces, strict=True)], axis=1)

    def position_statistics(self, packed: Packed) -> Iterator[Statistics]:
        """Yield the statistics of the positions of one series; a step into a state belongs to its position."""
        logs, blocks = position_blocks(self, packed)
        yield Statistics(self, logs, np.ones(packed.n_points, np.int64), blocks)

    # --- conversions, sampling

    def to_hmm(self) -> HMM:
        """Return the same distribution as an HMM over all joint states, the last chain's running fastest."""
        self._require_exact("to_hmm")
        self._require_single("to_hmm")
        start, steps, mean = np.ones(1), np.ones((1, 1)), np.zeros((1, self.means[0].shape[-1]))
        for first, rows, level in zip(self.starts, self.transitions, self.means):
            start, steps = np.asarray(np.kron(start, first)), np.asarray(np.kron(steps, rows))
            mean = (mean[:, None, :] + level[None, :, :]).reshape(-1, mean.shape[-1])
        cov = np.broadcast_to(self.cov, (len(start), *self.cov.shape))
        return HMM(start, steps, Gaussian(mean, cov))

    def sample(self, n: int, *, length: int | None = None, rng: Any = None) -> list[Floats]:
        """Return n series of ``length`` observations, each (length, d)."""
        self._require_single("sample")
        check_int(n, "n", "FactorialHMM.sample", 0)
        if length is None:
            raise ValueError("FactorialHMM.sample: give length=, in observations; the model has no law of lengths.")
        check_int(length, "length", "FactorialHMM.sample", 1)
        generator = np.random.default_rng(rng)
        noise = Gaussian.stack([self.noise]).draw(np.zeros(n * length, np.int64), generator)
        series = noise.reshape(n, length, noise.shape[-1])
        for start, rows, level in zip(self.starts, self.transitions, self.means):
            # One more than needed, so that the chains of a seed stay the same as in earlier versions.
            series += level[draw_paths(start, rows, n, length + 1, generator)[:, :length]]
        return list(series)

    # --- checks

    def _require_exact(self, what: str) -> None:
        states = int(np.prod([float(k) for k in self.n_states]))
        if states > MAX_STATES:
            raise ValueError(
                f"FactorialHMM.{what} is exact, for at most {MAX_STATES} joint states. Got chains of {self.n_states} "
                f"states, {states} jointly. Use bound(X) and variational_posterior(X), or fit with "
                "FactorialHMMEstimator(e_step='variational'); derivatives have no such substitute."
            )
