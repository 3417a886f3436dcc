"""Linear dynamical systems: the value. Its estimator is in ``lds.estimator``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.core.arrays.draws import add_dynamics
from genkern.core.kalman import passes as core
from genkern.core.kalman.paths import recount
from genkern.core.kalman.roots import LOST, ROUNDED, log_densities, loss_of
from genkern.data.objects import Packed, pack_series
from genkern.models.base import COORDINATES, Model, Statistics
from genkern.models.families.gaussian import Gaussian, check_spread
from genkern.models.information import InformationBlocks
from genkern.models.lds import covariance as lds_covariance
from genkern.models.lds.information import ExpectedSums, information_blocks
from genkern.models.lds.positions import position_derivatives
from genkern.models.positions import changes
from genkern.validation import Floats, check_array, check_int, check_option

BATCH = 1 << 12  # objects whose statistics are held at a time when only their sum is wanted


class LDS(Model):
    r"""Linear dynamical system: a hidden state moves linearly and is seen through a linear map, with Gaussian noise.

    .. math:: s_0 \sim N(m_0, P_0), \qquad x_t = C s_t + b + N(0, R), \qquad s_{t+1} = A s_t + N(0, Q)

    Parameters
    ----------
    transition : array-like of shape batch + (n, n)
        The matrix A.
    observation : array-like of shape batch + (d, n)
        The matrix C.
    state_cov : array-like of shape batch, batch + (n,) or batch + (n, n)
        Q: isotropic, diagonal or full, as the covariance of a Gaussian. Zero is legal: the state then moves without
        noise.
    obs_cov : array-like of shape batch, batch + (d,) or batch + (d, d)
        R. The covariance of an observation given its past, :math:`C P C^T + R`, must be positive definite.
    initial_mean : array-like of shape batch + (n,)
        Mean :math:`m_0` of the first state.
    initial_cov : array-like of shape batch, batch + (n,) or batch + (n, n)
        :math:`P_0`. Zero is legal.
    offset : array-like of shape batch + (d,), optional
        b, the level about which the observations move. The default is zero.

    Notes
    -----
    NaN entries of an observation are missing: they are integrated out exactly, as are steps that are missing as a
    whole. Parameters are ordered as above, matrices row by row and covariances as those of Gaussian: variances v
    (``raw``, ``ratio``), log v (``softmax``) or standard deviations (``sqrt``); the lower triangle of full ones, in all
    coordinates, off-diagonal derivatives counting both entries.

    References
    ----------
    Kalman (1960), A new approach to linear filtering and prediction problems.
    Koopman & Shephard (1992), Exact score for time series models in state space form.
    Jebara, Kondor & Howard (2004), Probability product kernels, section 4.5.

    Examples
    --------
    >>> from genkern import LDS
    >>> walk = LDS([[1.0]], [[1.0]], 0.5, 1.0, [0.0], 1.0)
    >>> walk.log_prob([[0.1, 0.3, float("nan"), 1.2]]).round(4)
    array([-4.1364])
    """

    _fields = ("transition", "observation", "state_cov", "obs_cov", "initial_mean", "initial_cov", "offset")
    transition: Floats
    observation: Floats
    state_cov: Floats
    obs_cov: Floats
    initial_mean: Floats
    initial_cov: Floats
    offset: Floats

    def __init__(
        self,
        transition: ArrayLike,
        observation: ArrayLike,
        state_cov: ArrayLike,
        obs_cov: ArrayLike,
        initial_mean: ArrayLike,
        initial_cov: ArrayLike,
        offset: ArrayLike | None = None,
    ):
        C = check_array(observation, "observation", "LDS")
        if C.ndim < 2 or 0 in C.shape:
            raise ValueError(f"LDS: 'observation' must have shape batch + (d, n). Got shape {C.shape}.")
        batch, n = C.shape[:-2], C.shape[-1]
        A = check_array(transition, "transition", "LDS", shape=(*batch, n, n))
        mean = check_array(initial_mean, "initial_mean", "LDS", shape=(*batch, n))
        _, Q = check_spread(mean, state_cov, "state_cov", "LDS")
        _, P = check_spread(mean, initial_cov, "initial_cov", "LDS")
        _, R = check_spread(C[..., 0], obs_cov, "obs_cov", "LDS")
        level = np.zeros(C.shape[:-1]) if offset is None else offset
        b = check_array(level, "offset", "LDS", shape=C.shape[:-1])
        self._freeze(transition=A, observation=C, state_cov=Q, obs_cov=R, initial_mean=mean, initial_cov=P, offset=b)

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch of the stack."""
        return self.observation.shape[:-2]

    @property
    def n_states(self) -> int:
        """Dimension n of the state."""
        return self.observation.shape[-1]

    @property
    def n_channels(self) -> int:
        """Dimension d of an observation."""
        return self.observation.shape[-2]

    # --- likelihood and posterior

    def pack(self, X: Any) -> Packed:
        """Encode raw series of d channels."""
        return pack_series(X, "LDS", n_channels=self.n_channels)

    def matrices(self) -> tuple[Floats, Floats, Floats]:
        """Return Q batch + (n, n), R batch + (d, d) and P_0 batch + (n, n) as full covariances."""
        batch, n, d = len(self.shape), self.n_states, self.n_channels
        state, initial = (lds_covariance.matrices(cov, batch, n) for cov in (self.state_cov, self.initial_cov))
        return state, lds_covariance.matrices(self.obs_cov, batch, d), initial

    def systems(self) -> core.Systems:
        """Return all parameters with one leading axis of models, covariances full: the input of the passes."""
        Q, R, P = self.matrices()
        n, d = self.n_states, self.n_channels
        # copies: for compiled code read-only arrays are another type
        return core.Systems(
            np.array(self.transition).reshape(-1, n, n),
            np.array(self.observation).reshape(-1, d, n),
            Q.reshape(-1, n, n),
            R.reshape(-1, d, d),
            np.array(self.initial_mean).reshape(-1, n),
            P.reshape(-1, n, n),
            np.array(self.offset).reshape(-1, d),
        )

    def log_prob(self, X: Any, n_jobs: int | None = None) -> Floats:
        """Return the log-likelihood of each series, shape (n_objects,) + batch."""
        packed = self.pack(X)
        if self.shape:
            columns = [self[index].log_prob(packed, n_jobs) for index in np.ndindex(self.shape)]
            return np.stack(columns, axis=-1).reshape((-1, *self.shape))
        sums = log_densities(self.systems(), packed.values, packed.offsets, n_jobs=n_jobs)
        refuse_lost(sums.growth, sums.drift)
        _refuse_singular(sums.failed)
        return sums.log_prob

    def posterior(self, X: Any, pairs: bool = False, n_jobs: int | None = None) -> list[Any]:
        """Return the smoothed states of each series given all of it: means (T, n) and covariances (T, n, n).

        With ``pairs`` also the covariances Cov(s_{t+1}, s_t) of neighbours, (T - 1, n, n). Covariances are positive and
        accurate to some 1e-15 of the filtered covariances.
        """
        self._require_single("posterior")
        packed = self.pack(X)
        systems = self.systems()
        beliefs, sums = core.posterior(systems, packed.values, packed.offsets, n_jobs=n_jobs)
        recount(sums, systems, packed.values, packed.offsets)
        refuse_lost(sums.growth, sums.drift, ROUNDED)
        _refuse_singular(sums.failed)
        means, covs, crosses = (np.split(part, packed.offsets[1:-1]) for part in beliefs)
        return list(zip(means, covs, [cross[:-1] for cross in crosses])) if pairs else list(zip(means, covs))

    def forecast(self, X: Any, steps: int) -> list[tuple[Floats, Floats]]:
        """Return means (steps, d) and covariances (steps, d, d) of the next observations of each series."""
        check_int(steps, "steps", "LDS.forecast", 1)
        last = [(means[-1], covs[-1]) for means, covs in self.posterior(X)]
        mean, cov = (np.stack(part) for part in zip(*last))
        Q, R, _ = self.matrices()
        A, C = self.transition, self.observation
        means, covs = [], []
        for _ in range(steps):
            mean, cov = mean @ A.T, A @ cov @ A.T + Q
            means.append(mean @ C.T + self.offset)
            covs.append(C @ cov @ C.T + R)
        return list(zip(np.stack(means, axis=1), np.stack(covs, axis=1)))

    # --- E-step, gradient, information

    def statistics(self, X: Any, totals: bool = False, n_jobs: int | None = None) -> Statistics:
        r"""Return posterior expected statistics per series, or summed over series (``totals``).

        Blocks with the names of the parameters hold the derivatives of the log-likelihood by A (G, n, n), C (G, d, n),
        :math:`m_0` (G, n), b (G, d), and by every entry of the covariance matrices Q, R and :math:`P_0`, without a
        division by any of them (Fisher's identity: with expected noises w, :math:`\sum E[w s^T] = Q \, \partial_A` and
        :math:`\sum E[w w^T] = Q + 2 Q \, \partial_Q Q` for each transition, and so for the others). ``left``
        and ``seen`` (G, n, n) are :math:`\sum E[s_t s_t^T]` over the steps that a transition leaves, and over those
        with at least one channel, ``seen_sum`` (G, n) :math:`\sum E[s_t]` over the latter; ``counts`` (G, 3) the
        numbers of series, transitions and such steps. A stack of batch (n_objects,) treats series i under its own model
        i.
        """
        packed = self.pack(X)
        if self.shape not in ((), (packed.n_objects,)):
            raise ValueError(
                f"LDS.statistics needs one model or one per object. Got a stack of {self.shape} for "
                f"{packed.n_objects} objects."
            )
        size = BATCH if totals else packed.n_objects
        parts = [self._e_step(packed, first, size, totals, n_jobs) for first in range(0, packed.n_objects, size)]
        blocks = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        log_prob = blocks.pop("log_prob")
        statistics = Statistics(self, log_prob, packed.lengths, blocks)
        return statistics.total() if totals else statistics

    def _e_step(self, packed: Packed, first: int, size: int, totals: bool, n_jobs: int | None) -> dict[str, Floats]:
        """Return log probabilities and blocks, or their sums, of some consecutive series."""
        some = packed if size >= packed.n_objects else packed.take(slice(first, first + size))
        systems = (self[first : first + size] if self.shape else self).systems()
        sums = core.run(systems, some.values, some.offsets, n_jobs=n_jobs)
        recount(sums, systems, some.values, some.offsets)
        refuse_lost(sums.growth, sums.drift, ROUNDED, first)
        _refuse_singular(sums.failed, first)
        seen = np.add.reduceat((~np.isnan(some.values)).any(axis=1), some.offsets[:-1], dtype=np.int64)
        counts = np.stack([np.ones(some.n_objects), some.lengths - 1.0, seen], axis=1)
        blocks = dict(zip((*self._fields, "left", "seen", "seen_sum", "counts"), (*sums[4:], counts), strict=True))
        if totals:
            blocks = {name: block.sum(axis=0, keepdims=True) for name, block in blocks.items()}
        return {"log_prob": sums.log_prob, **blocks}

    def gradient(self, statistics: Statistics, coordinates: str = "softmax") -> Floats:
        """Return derivatives (G, p) of the log-likelihood from the statistics of one model."""
        parts = []
        for name in self._fields:
            raw = statistics[name]
            if name.endswith("_cov"):
                parts.append(lds_covariance.gradient(raw, getattr(self, name), coordinates))
            else:
                parts.append(raw.reshape(len(raw), -1))
        return np.concatenate(parts, axis=1)

    def information(self, lengths: ArrayLike, coordinates: str = "softmax") -> InformationBlocks:
        r"""Return the complete-data Fisher information, averaged over series lengths, as pairs (index, block).

        It is that of the complete data, states included: :math:`Q^{-1} \otimes \sum E[s_t s_t^T]` for A,
        :math:`R^{-1} \otimes \sum E[(s_t, 1) (s_t, 1)^T]` for C and b together, one block for each other parameter. It
        is infinite, and refused, where a covariance is singular.
        """
        self._require_single("information")
        return information_blocks(self, self._expected(np.asarray(lengths)), coordinates, "LDS")

    @np.errstate(over="ignore", invalid="ignore")  # what overflows is refused with the information
    def _expected(self, lengths: NDArray[Any]) -> ExpectedSums:
        """Return expected moments and numbers of steps, averaged over lengths."""
        Q, _, second = self.matrices()
        first = np.array(self.initial_mean)
        second = second + np.outer(first, first)
        left, seen, total = np.zeros_like(second), np.zeros_like(second), np.zeros_like(first)
        for t in range(int(lengths.max())):
            here = (lengths > t).mean()
            left, seen, total = left + (lengths > t + 1).mean() * second, seen + here * second, total + here * first
            first, second = self.transition @ first, self.transition @ second @ self.transition.T + Q
        return ExpectedSums(left, seen, total, 1.0, float(lengths.mean() - 1.0), float(lengths.mean()))

    # --- parameters

    def parameters(self, coordinates: str = "softmax") -> Floats:
        """Return the parameter vector (p,)."""
        self._require_single("parameters")
        check_option(coordinates, COORDINATES, "coordinates", "LDS.parameters")
        parts = []
        for name in self._fields:
            value = getattr(self, name)
            parts.append(lds_covariance.coordinates_of(value, coordinates) if name.endswith("_cov") else value.ravel())
        return np.concatenate(parts)

    def with_parameters(self, vector: ArrayLike, coordinates: str = "softmax") -> Self:
        """Return the model at a parameter vector."""
        self._require_single("with_parameters")
        check_option(coordinates, COORDINATES, "coordinates", "LDS.with_parameters")
        given = np.asarray(vector, dtype=np.float64)
        hidden = np.isneginf(given)  # the logarithm of a variance of zero
        check_array(np.where(hidden, 0.0, given), "vector", "LDS", shape=(len(self.parameter_names),))
        sizes = [len(self._names_of(name)) for name in self._fields]
        values = []
        for name, part in zip(self._fields, np.split(given, np.cumsum(sizes)[:-1]), strict=True):
            shape = getattr(self, name).shape
            if name.endswith("_cov"):
                values.append(lds_covariance.from_coordinates(part, shape, coordinates))
            else:
                values.append(part.reshape(shape))
        return type(self)(**dict(zip(self._fields, values)))

    def _names_of(self, name: str) -> list[str]:
        shape = getattr(self, name).shape
        if name.endswith("_cov"):
            return lds_covariance.names(name, shape)
        return [f"{name}[{','.join(map(str, index))}]" for index in np.ndindex(shape)]

    @property
    def parameter_names(self) -> list[str]:
        """Names such as ``transition[0,1]``, ``observation[2,0]``, ``state_cov[1,0]``, ``initial_mean[0]``."""
        self._require_single("parameter_names")
        return [parameter for name in self._fields for parameter in self._names_of(name)]

    def position_statistics(self, packed: Packed) -> Iterator[Statistics]:
        """Yield the statistics of the positions of one series: derivatives of log p(x_t | x_0 ... x_{t-1})."""
        self.statistics(packed)  # raises where derivatives have lost their digits
        logs, blocks = position_derivatives(self.systems(), packed.values)
        if not abs(logs.sum() - self.log_prob(packed)[0]) <= LOST:  # by the more accurate filter
            found = changes(lambda beginnings: {"logs": self.log_prob(beginnings)}, packed, 1)
            logs = np.concatenate([part["logs"] for part in found])
        yield Statistics(self, logs, np.ones(packed.n_points, np.int64), blocks)

    # --- sampling and the joint law

    def sample(self, n: int, *, length: Any = None, rng: Any = None) -> list[Floats]:
        """Return n series of a length, each (length, d)."""
        self._require_single("sample")
        check_int(n, "n", "LDS.sample", 0)
        check_int(length, "length", "LDS.sample", 1)
        generator = np.random.default_rng(rng)
        move, look, begin = (lds_covariance.roots(cov) for cov in self.matrices())
        numbers = generator.standard_normal((length, n * (self.n_states + self.n_channels)))
        ours, theirs = np.split(numbers, [n * self.n_states], axis=1)
        states = np.swapaxes(ours.reshape(length, n, self.n_states), 0, 1) @ move
        states[:, 0] = self.initial_mean + ours[0].reshape(n, self.n_states) @ begin
        add_dynamics(self.transition[None], np.zeros((n, length), np.int64), states)
        noise = np.swapaxes(theirs.reshape(length, n, self.n_channels), 0, 1) @ look
        return list(states @ self.observation.T + self.offset + noise)

    def to_gaussian(self, length: int) -> Gaussian:
        r"""Return the joint distribution of ``length`` concatenated observations, in length times d dimensions.

        .. math:: E x_t = C A^t m_0 + b, \qquad \mathrm{Cov}(x_u, x_t) = C A^{u-t} \Pi_t C^T + [u = t] R, \qquad
           \Pi_{t+1} = A \Pi_t A^T + Q
        """
        check_int(length, "length", "LDS.to_gaussian", 1)
        Q, R, spread = self.matrices()
        A, C, d = self.transition, self.observation, self.n_channels
        mean, state = np.empty((*self.shape, length, d)), self.initial_mean[..., None]
        cov = np.empty((*self.shape, length, d, length, d))
        for t in range(length):
            mean[..., t, :] = (C @ state)[..., 0] + self.offset
            lagged = spread @ np.swapaxes(C, -1, -2)  # Cov(s_u, x_t), u = t, t + 1, ...
            for u in range(t, length):
                block = C @ lagged + (R if u == t else 0.0)
                cov[..., u, :, t, :], cov[..., t, :, u, :] = block, np.swapaxes(block, -1, -2)
                lagged = A @ lagged
            state, spread = A @ state, A @ spread @ np.swapaxes(A, -1, -2) + Q
        return Gaussian(mean.reshape((*self.shape, -1)), cov.reshape((*self.shape, length * d, length * d)))


def _refuse_singular(failed: NDArray[np.int64], first: int = 0) -> None:
    """Raise for the first series that has no density."""
    wrong = np.flatnonzero(failed >= 0)
    if len(wrong):
        raise ValueError(
            f"LDS: object {first + wrong[0]}, position {failed[wrong[0]]}: the covariance C P C^T + R of the "
            "observation given its past is singular, so the series has no density. Give 'obs_cov' a positive variance "
            "in all channels."
        )


def refuse_lost(growth: Floats, drift: Floats, allowed: float = LOST, first: int = 0, who: str = "LDS") -> None:
    """Raise for the first series whose density has lost its digits in the filter."""
    loss, rounding = loss_of(growth), loss_of(np.zeros_like(drift), drift)
    wrong = np.flatnonzero(~((loss <= allowed) & (rounding <= ROUNDED)))
    if not len(wrong):
        return
    i = wrong[0]
    if loss[i] <= allowed:
        raise ValueError(
            f"{who}: object {first + i}: its observations, or what the model expects of them, grow beyond the noise so "
            f"much that their last bits change the log density by some {rounding[i]:.1g}, and {ROUNDED:g} is allowed. "
            "Take shorter series, subtract their level ('offset'), or leave unstable states out of the model."
        )
    raise ValueError(
        f"{who}: object {first + i}: states that no observation tells apart (or that only rounding moves) grow "
        f"beyond the noise so much that the log density would be off by some {loss[i]:.1g}, and {allowed:g} is "
        "allowed. Take shorter series, or leave unstable states that are hardly seen, or never moved, out of the model."
    )
