"""Switching linear dynamical systems: the value. Its estimator is in ``switching.estimator``."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.core.kalman.roots import LOST, ROUNDED
from genkern.core.switching.passes import enumerate_paths
from genkern.core.switching.roots import mend
from genkern.core.switching.types import Regimes, SwitchingSums
from genkern.data.objects import Packed, pack_series
from genkern.models import simplex
from genkern.models.base import COORDINATES, Model, NotExactError, Statistics
from genkern.models.information import InformationBlocks
from genkern.models.lds.model import LDS, refuse_lost
from genkern.models.states import chain_visits, state_names
from genkern.models.switching.field import SwitchingField, mean_field
from genkern.models.switching.filter import estimate
from genkern.models.switching.information import complete_information
from genkern.models.switching.sample import simulate
from genkern.validation import Floats, check_array, check_int, check_number, check_option, check_probabilities

MAX_PATHS = 100_000  # paths of regimes up to which passes are exact: each costs a step of the filter, and more
METHODS = ("exact", "variational")
BATCH = 1 << 12  # objects whose statistics are held at a time when only their sum is wanted


class SwitchingLDS(Model):
    r"""Linear dynamical systems that take turns: a hidden Markov chain of regimes says which one governs each step.

    .. math::
        q_0 \sim \pi, \quad q_{t+1} \sim a_{q_t \cdot}, \qquad
        s_0 \sim N(m_{q_0}, P_{q_0}), \quad s_{t+1} = A_{q_{t+1}} s_t + N(0, Q_{q_{t+1}}), \qquad
        x_t = C_{q_t} s_t + b_{q_t} + N(0, R_{q_t})

    Regime :math:`q_t` governs the step that leads *to* :math:`s_t`, and what is seen at t. The state goes on through
    changes of regime, so all systems speak of it in the same basis.

    Parameters
    ----------
    start : array-like of shape batch + (S,)
        Distribution of the first regime.
    transitions : array-like of shape batch + (S, S)
        ``transitions[i, j]`` is the probability of going from regime i to regime j.
    systems : LDS of batch batch + (S,)
        One system per regime. Their ``initial_mean`` and ``initial_cov`` are those of a series that begins in the
        regime.

    Notes
    -----
    The likelihood is a sum over all :math:`S^T` paths of regimes. ``log_prob``, derivatives, statistics and the
    posterior are exact, by a walk through the tree of all paths that shares their beginnings, and refused where a
    series has more than 100000 paths (two regimes: above 16 observations; one regime: never). For longer ones
    ``estimate_log_prob`` gives an unbiased estimate of the likelihood with its standard error, ``bound`` a lower bound,
    and ``posterior(X, method="variational")`` the distribution behind it; derivatives have no such substitute.

    NaN entries of an observation are missing: they are integrated out exactly. Parameters are ordered start,
    transitions, then those of each system as in ``LDS``.

    References
    ----------
    Ghahramani & Hinton (2000), Variational learning for switching state-space models.
    Jebara, Kondor & Howard (2004), Probability product kernels, section 5.1.

    Examples
    --------
    >>> from genkern import LDS, SwitchingLDS
    >>> calm, wild = LDS([[0.9]], [[1.0]], 0.01, 0.1, [0.0], 1.0), LDS([[0.9]], [[1.0]], 4.0, 0.1, [0.0], 1.0)
    >>> model = SwitchingLDS([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], LDS.stack([calm, wild]))
    >>> x = [0.1, 0.0, 0.2, 4.0, -3.0, 2.0]
    >>> model.log_prob([x]).round(4)
    array([-18.2224])
    >>> model.posterior([x])[0][0].argmax(axis=1).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    _fields = ("start", "transitions", "systems")
    start: Floats
    transitions: Floats
    systems: LDS

    def __init__(self, start: ArrayLike, transitions: ArrayLike, systems: LDS):
        first = check_probabilities(start, "start", "SwitchingLDS")
        square = (*first.shape, first.shape[-1])
        steps = check_probabilities(transitions, "transitions", "SwitchingLDS", shape=square)
        if not isinstance(systems, LDS):
            raise TypeError(
                f"SwitchingLDS: 'systems' must be an LDS of batch {first.shape}, such as LDS.stack([...]). "
                f"Got {type(systems).__name__}."
            )
        if systems.shape != first.shape:
            raise ValueError(
                f"SwitchingLDS: 'systems' must be a stack of batch {first.shape}, one system per regime. "
                f"Got batch {systems.shape}."
            )
        self._freeze(start=first, transitions=steps, systems=systems)

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch of the stack."""
        return self.start.shape[:-1]

    @property
    def n_regimes(self) -> int:
        """Number S of regimes."""
        return self.start.shape[-1]

    @property
    def n_states(self) -> int:
        """Dimension n of the state."""
        return self.systems.n_states

    @property
    def n_channels(self) -> int:
        """Dimension d of an observation."""
        return self.systems.n_channels

    def pack(self, X: Any) -> Packed:
        """Encode raw series of d channels."""
        return pack_series(X, "SwitchingLDS", n_channels=self.n_channels)

    def regimes(self) -> Regimes:
        """Return all parameters with leading axes of models and regimes, covariances full: the input of the passes."""
        S = self.n_regimes
        parts = [part.reshape((-1, S, *part.shape[1:])) for part in self.systems.systems()]
        # copies: compiled code would take read-only arrays for another type
        return Regimes(np.array(self.start).reshape(-1, S), np.array(self.transitions).reshape(-1, S, S), *parts)

    # --- likelihood

    def log_prob(self, X: Any, n_jobs: int | None = None) -> Floats:
        """Return the log-likelihood of each series, shape (n_objects,) + batch: exact, or refused."""
        packed = self.pack(X)
        if self.shape:
            columns = [self[index].log_prob(packed, n_jobs) for index in np.ndindex(self.shape)]
            return np.stack(columns, axis=-1).reshape((-1, *self.shape))
        return self._enumerate(packed, "log_prob", n_jobs, derivatives=False).log_prob

    def estimate_log_prob(
        self, X: Any, n: int = 200, rng: Any = None, runs: int = 10, n_jobs: int | None = None
    ) -> tuple[Floats, Floats]:
        r"""Return estimates of the log-likelihoods and their standard errors, by a Rao-Blackwellised particle filter.

        .. math:: \log \hat p = \log \tfrac1r \sum_{j=1}^r \hat p_j, \qquad
           \mathrm{error} = \frac{1}{\hat p} \sqrt{\frac{1}{r (r - 1)} \sum_j (\hat p_j - \hat p)^2}

        Each of r independent runs gives an unbiased estimate :math:`\hat p_j` of the likelihood. Its particles are
        paths of regimes with the exact Kalman belief of each. Every particle is continued by all regimes; while there
        are at most n of them nothing is lost. Then those of weight above a threshold are kept as they are, and the
        others thinned by systematic resampling, such that n remain. The error is that of the logarithm, by the delta
        method: the standard error of the mean likelihood, relative to it. It is zero where nothing was thinned, and an
        estimate from few runs itself, too small where none of them kept a path that mattered later. Above about one
        half, take more particles.

        Parameters
        ----------
        X : list of series
        n : int, default=200
            Particles.
        rng : int, numpy Generator or None
            Seed. Random numbers depend on it and on the content of each series; None takes the seed from the model's
            content, so that the same question has the same answer.
        runs : int, default=10
            Independent runs r, at least two.
        n_jobs : int, optional
            Threads.

        Returns
        -------
        log_prob, error : ndarrays of shape (n_objects,)

        References
        ----------
        Doucet, de Freitas, Murphy & Russell (2000), Rao-Blackwellised particle filtering for dynamic Bayesian networks.
        Fearnhead & Clifford (2003), On-line inference for hidden Markov models via particle filters, section 3.
        """
        self._require_single("estimate_log_prob")
        check_int(n, "n", "SwitchingLDS.estimate_log_prob", 1)
        check_int(runs, "runs", "SwitchingLDS.estimate_log_prob", 2)
        seed = int(self.digest[:15], 16) if rng is None else int(np.random.default_rng(rng).integers(2**62))
        log_prob, error, failed, lost = estimate(self.regimes(), self.pack(X), n, runs, seed, n_jobs)
        refuse_lost(lost[:, 0], lost[:, 1], who="SwitchingLDS")
        _refuse_singular(failed)
        return log_prob, error

    def bound(self, X: Any, max_iter: int = 500, tol: float = 1e-9, n_jobs: int | None = None) -> Floats:
        r"""Return a lower bound on the log-likelihood of each series, by structured mean field.

        .. math:: \log p(x) \ge E_Q \log p(x, s, q) + H(Q), \qquad Q(s, q) = Q(s) \, Q(q)

        Parameters
        ----------
        X : list of series
        max_iter : int, default=500
            Most sweeps; the bound holds after any number.
        tol : float, default=1e-9
            The sweeps of a series end when one gains less than this per observation.
        n_jobs : int, optional
            Threads.

        Returns
        -------
        bound : ndarray of shape (n_objects,)
        """
        return self._field(self.pack(X), "bound", max_iter, tol, n_jobs).bound

    def _field(self, packed: Packed, what: str, max_iter: int, tol: float, n_jobs: int | None) -> SwitchingField:
        """Return the mean field of each series."""
        self._require_single(what)
        check_int(max_iter, "max_iter", f"SwitchingLDS.{what}", 1)
        check_number(tol, "tol", f"SwitchingLDS.{what}")
        return mean_field(self, packed, None, max_iter, tol, n_jobs)

    # --- posterior

    def posterior(self, X: Any, method: str = "exact", n_jobs: int | None = None) -> list[tuple[Floats, ...]]:
        r"""Return what is known about regimes and states given all of a series.

        Parameters
        ----------
        X : list of series
        method : {"exact", "variational"}
            "exact" sums over all paths and is refused where there are too many. "variational" takes the
            :math:`Q(s) Q(q)` behind ``bound``, for any length: regimes and states are then independent, and the
            spread of both is too small.
        n_jobs : int, optional
            Threads.

        Returns
        -------
        posterior : list of (regimes, means, covs)
            Per series the probabilities of regimes (T, S), and the means (T, n) and covariances (T, n, n) of states.
        """
        self._require_single("posterior")
        check_option(method, METHODS, "method", "SwitchingLDS.posterior")
        packed = self.pack(X)
        if method == "exact":
            sums = self._enumerate(packed, "posterior", n_jobs)
            covs = sums.seconds - sums.states[:, :, None] * sums.states[:, None, :]
            parts = sums.regimes, sums.states, covs
        else:
            field = self._field(packed, "posterior", 500, 1e-9, n_jobs)
            parts = field.regimes, field.beliefs.mean, field.beliefs.cov
        return list(zip(*(np.split(part, packed.offsets[1:-1]) for part in parts)))

    # --- E-step, gradient, information

    def statistics(self, X: Any, totals: bool = False, n_jobs: int | None = None) -> Statistics:
        r"""Return exact posterior expected statistics per series, or summed over series (``totals``).

        Blocks: raw derivatives ``start`` (G, S) and ``transitions`` (G, S, S), and for the systems those of
        ``LDS.statistics`` under ``systems.<name>``, each with an axis of regimes, (G, S, ...): derivatives of the
        log-likelihood, ``left`` and ``seen``, the second moments of the states that a step into the regime leaves and
        of those seen in it, ``seen_sum`` the first moments of the latter, and ``counts`` (G, S, 3), of starts, steps
        into and observations in it. A stack of batch (n_objects,) treats series i under its own model i.
        """
        packed = self.pack(X)
        if self.shape not in ((), (packed.n_objects,)):
            raise ValueError(
                f"SwitchingLDS.statistics needs one model or one per object. Got a stack of {self.shape} for "
                f"{packed.n_objects} objects."
            )
        size = BATCH if totals else packed.n_objects
        logs, parts = [], []
        for first in range(0, packed.n_objects, size):
            part = slice(first, first + size)
            model = self[part] if self.shape else self
            sums = model._enumerate(packed.take(part), "statistics", n_jobs, first=first)
            logs.append(sums.log_prob)
            parts.append(blocks_of(sums, totals))
        blocks = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        statistics = Statistics(self, np.concatenate(logs), packed.lengths, blocks)
        return statistics.total() if totals else statistics

    def _enumerate(
        self, packed: Packed, what: str, n_jobs: int | None, derivatives: bool = True, first: int = 0
    ) -> SwitchingSums:
        """Return the sums over all paths of each series, or raise for the first that has too many, or no density."""
        longest = int(packed.lengths.max())
        if self.n_regimes > 1 and longest * np.log(self.n_regimes) > np.log(MAX_PATHS) + 1e-9:
            where = first + int(packed.lengths.argmax())
            raise NotExactError(
                f"SwitchingLDS.{what} is exact, for at most {MAX_PATHS} paths of regimes. Got {self.n_regimes} regimes "
                f"and {longest} observations in object {where}. Use estimate_log_prob(X) or bound(X) for likelihoods, "
                'posterior(X, method="variational") for regimes and states; derivatives have no such substitute: cut '
                "the series into pieces."
            )
        regimes = self.regimes()
        sums = enumerate_paths(regimes, packed.values, packed.offsets, derivatives, n_jobs)
        if not derivatives:
            mend(sums, regimes, packed.values, packed.offsets)
        allowed = ROUNDED if derivatives else LOST
        refuse_lost(sums.lost[:, 0], sums.lost[:, 1], allowed, first, "SwitchingLDS")
        _refuse_singular(sums.failed, first)
        return sums

    def gradient(self, statistics: Statistics, coordinates: str = "softmax") -> Floats:
        """Return derivatives (G, p) of the log-likelihood from the statistics of one model."""
        parts = [simplex.gradient(statistics[name], getattr(self, name), coordinates) for name in self._fields[:2]]
        for k in range(self.n_regimes):
            blocks = {name: statistics[f"systems.{name}"][:, k] for name in LDS._fields}
            own = Statistics(self.systems[k], statistics.log_prob, statistics.lengths, blocks)
            parts.append(self.systems[k].gradient(own, coordinates))
        return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)

    def information(self, lengths: ArrayLike, coordinates: str = "softmax") -> InformationBlocks:
        r"""Return the complete-data Fisher information, averaged over series lengths, as pairs (index, block).

        It is that of the complete data, regimes and states included: one block per simplex row, weighted by its
        expected visits, and those of ``LDS.information`` for each regime, with the expected moments of the states at
        its steps. It is infinite, and refused, where a covariance is singular.
        """
        self._require_single("information")
        return complete_information(self, np.asarray(lengths), coordinates)

    # --- parameters

    def parameters(self, coordinates: str = "softmax") -> Floats:
        """Return the parameter vector (p,)."""
        self._require_single("parameters")
        check_option(coordinates, COORDINATES, "coordinates", "SwitchingLDS.parameters")
        chain = [simplex.coordinates_of(part.ravel(), coordinates) for part in (self.start, self.transitions)]
        return np.concatenate([*chain, *(system.parameters(coordinates) for system in self.systems.unstack())])

    def with_parameters(self, vector: ArrayLike, coordinates: str = "softmax") -> Self:
        """Return the model at a parameter vector; raw coordinates are not normalised."""
        self._require_single("with_parameters")
        check_option(coordinates, COORDINATES, "coordinates", "SwitchingLDS.with_parameters")
        given, S = np.asarray(vector, dtype=np.float64), self.n_regimes
        hidden = np.isneginf(given)  # the logarithm of a probability, or of a variance, of zero
        check_array(np.where(hidden, 0.0, given), "vector", "SwitchingLDS", shape=(len(self.parameter_names),))
        start, steps, rest = np.split(given, [S, S + S * S])
        systems = [
            system.with_parameters(part, coordinates)
            for system, part in zip(self.systems.unstack(), np.split(rest, S), strict=True)
        ]
        rows = (simplex.from_coordinates(part, coordinates) for part in (start, steps.reshape(S, S)))
        return self._restore(*rows, LDS.stack(systems))

    @property
    def parameter_names(self) -> list[str]:
        """Names such as ``start[0]``, ``transitions[0,1]``, ``systems[1].observation[2,0]``."""
        self._require_single("parameter_names")
        regimes = range(self.n_regimes)
        names = [f"start[{k}]" for k in regimes] + [f"transitions[{k},{j}]" for k in regimes for j in regimes]
        return names + [f"systems[{k}].{name}" for k in regimes for name in self.systems[k].parameter_names]

    @property
    def blocks(self) -> list[str]:
        """The block of each parameter; systems have those of theirs."""
        S = self.n_regimes
        return ["start"] * S + ["transitions"] * S * S + S * self.systems[0].blocks

    # --- hidden variables

    @property
    def hidden_states(self) -> list[str]:
        """The regimes."""
        return state_names([self.n_regimes])

    def visits(self, statistics: Statistics) -> Floats:
        """Return how often each regime is expected to be visited, (G, S)."""
        return chain_visits(self.start, self.transitions, statistics["start"], statistics["transitions"])

    # --- sampling

    def sample(self, n: int, *, length: Any = None, rng: Any = None) -> list[Floats]:
        """Return n series of a length, each (length, d)."""
        return [series for series, _, _ in self.simulate(n, length=length, rng=rng)]

    def simulate(self, n: int, *, length: int, rng: Any = None) -> list[tuple[Floats, NDArray[np.int64], Floats]]:
        """Return n series with what is behind them: observations (length, d), regimes (length,), states (length, n)."""
        self._require_single("simulate")
        check_int(n, "n", "SwitchingLDS.simulate", 0)
        check_int(length, "length", "SwitchingLDS.simulate", 1)
        return simulate(self, n, length, np.random.default_rng(rng))


def blocks_of(sums: SwitchingSums, totals: bool) -> dict[str, Floats]:
    """Return the blocks of statistics that sums over paths, or a mean field, hold, per object or summed."""
    of_systems = (*LDS._fields, "left", "seen", "seen_sum", "counts")
    named = ("start", "transitions", *(f"systems.{name}" for name in of_systems))
    blocks = dict(zip(named, sums[3:16], strict=True))
    return {name: block.sum(axis=0, keepdims=True) for name, block in blocks.items()} if totals else blocks


def _refuse_singular(failed: NDArray[np.int64], first: int = 0) -> None:
    """Raise for the first series that has no density."""
    wrong = np.flatnonzero(failed >= 0)
    if len(wrong):
        raise ValueError(
            f"SwitchingLDS: object {first + wrong[0]}, position {failed[wrong[0]]}: the covariance C P C^T + R of the "
            "observation given its past is singular under some regime, so the series has no density. Give 'obs_cov' a "
            "positive variance in all channels."
        )
