"""Estimation of switching linear dynamical systems by structured variational EM, one or thousands at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from genkern.core.rows import expected_rows
from genkern.models.base import Statistics
from genkern.models.em import Run, Steps, best_of, climb
from genkern.models.em_estimator import EMEstimator
from genkern.models.gaussian_estimator import COVARIANCES
from genkern.models.lds import LDS
from genkern.models.lds_estimator import LDSEstimator
from genkern.models.lds_step import BOUND, Rules, log_prior, maximize
from genkern.models.streams import Keys, derive
from genkern.models.switching import SwitchingLDS, blocks_of
from genkern.models.switching_field import field_statistics, mean_field
from genkern.models.switching_start import pooled_model, segments
from genkern.objects import Packed, pack_series
from genkern.validation import Floats, check_bool, check_int, check_number, check_option

SWEEPS = 2  # in one E-step; the next goes on from where they stop
POOLED_STEPS = 20  # of EM for the one system from which regimes are told apart


class SwitchingLDSEstimator(EMEstimator):
    r"""Switching linear dynamical systems by structured variational EM, one for all series or one for each.

    .. math:: \log p(x) \ge E_Q \log \frac{p(x, s, q)}{Q(s) \, Q(q)}, \qquad
       A_k = \sum_t \gamma_t(k) E[s_t s_{t-1}^T] \Big( \sum_t \gamma_t(k) E[s_{t-1} s_{t-1}^T] \Big)^{-1}

    and so on for the other parameters of regime k. The exact posterior is a mixture of :math:`S^T` Gaussians. It is
    replaced by the closest :math:`Q(s) Q(q)`, in which regimes and states are independent of each other but keep their
    dynamics: states by a smoother with averaged precisions, regimes :math:`\gamma` by forward-backward over expected
    log densities. It is preferred to smoothers that merge Gaussians because it maximises something: a lower bound on
    the likelihood, which never falls, so that steps can be stopped and starts compared. It takes regimes for more
    certain than they are.

    Parameters
    ----------
    n_regimes : int, default=2
        Number S of regimes.
    n_states : int, default=2
        Dimension of the state.
    covariance : {"diagonal", "isotropic", "full"}, default="diagonal"
        Form of the observation noise R. The others are full.
    init : "segments" or SwitchingLDS, default="segments"
        First guess: one system is fitted to everything, its smoothed states are clustered by their local dynamics, and
        the regimes fitted to the clusters; or a model, whose forms of covariances are kept.
    n_init : int, default=3
        Runs; those after the first cluster windows of other widths from other centres, and the best bound is kept. A
        model as first guess is run once.
    max_iter : int, default=500
        Largest number of EM steps. In ``fit_each`` those models that are done leave the batch.
    tol : float, default=1e-4
        EM stops when a step gains less than this per observation. Zero runs all steps.
    pseudocount : float, default=0.01
        Added to every start and transition count.
    min_covar : float, default=1e-4
        Smallest eigenvalue (variance) of R, in squared units of the data, and of Q and P_0, in those of states that
        begin with variance one. It must be positive: Q(s) needs inverses.
    noise_pseudocount : float, default=0.0
        Pseudo-observations of each noise of each regime: the mode under inverse Wishart priors on Q and R.
    state_variance, obs_variance : float, default=1.0
        Variances of the pseudo-observations.
    stable : bool, default=False
        Keep the spectral radius of every A below one, as ``LDSEstimator`` does.
    random_state : int, RandomState instance or None, default=None
        Seed of the clustering. Random numbers depend on it and, in ``fit_each``, on the content of each series, never
        on its place in the list; None counts as 0, so that fits are reproducible.
    n_jobs : int, optional
        Threads.
    verbose : int, default=0
        Report EM steps.

    Attributes
    ----------
    model_ : SwitchingLDS
    converged_ : bool
    n_iter_ : int
        EM steps of the run that was kept.
    history_ : list of float
        Objective after each step, starting with that of the first guess: the bound plus log prior of the pseudocounts.
        It never falls.

    Notes
    -----
    Regimes are known up to their order, and states up to a change of basis that all regimes share; compare
    :math:`C_k A_k^t C_k^+` or the eigenvalues of :math:`A_k`, not entries.

    References
    ----------
    Ghahramani & Hinton (2000), Variational learning for switching state-space models, section 4.
    Pavlovic, Rehg & MacCormick (2000), Learning switching linear models of human motion, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import SwitchingLDSEstimator
    >>> t = np.arange(60)
    >>> X = [np.where(t < 30, np.sin(0.3 * t), np.sin(1.5 * t + phase)) for phase in range(6)]
    >>> model = SwitchingLDSEstimator(2, 2, random_state=0).fit(X).model_
    >>> sorted(np.abs(np.angle(np.linalg.eigvals(model.systems.transition)))[:, 0].round(1).tolist())
    [0.3, 1.5]
    """

    def __init__(
        self,
        n_regimes: int = 2,
        n_states: int = 2,
        covariance: str = "diagonal",
        *,
        init: Any = "segments",
        n_init: int = 3,
        max_iter: int = 500,
        tol: float = 1e-4,
        pseudocount: float = 0.01,
        min_covar: float = 1e-4,
        noise_pseudocount: float = 0.0,
        state_variance: float = 1.0,
        obs_variance: float = 1.0,
        stable: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.n_regimes = n_regimes
        self.n_states = n_states
        self.covariance = covariance
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.pseudocount = pseudocount
        self.min_covar = min_covar
        self.noise_pseudocount = noise_pseudocount
        self.state_variance = state_variance
        self.obs_variance = obs_variance
        self.stable = stable
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # --- public

    def maximize(self, statistics: Statistics) -> SwitchingLDS:
        """Return the model that maximises the expected log-likelihood plus log prior: the M-step.

        Statistics under one model are summed over objects; those under a stack of own models give a stack.
        """
        model: SwitchingLDS = statistics.model
        if not model.shape:
            statistics = statistics.total()
        S, groups = model.n_regimes, len(statistics["start"])
        start = expected_rows(model.start, statistics["start"], np.full(S, self.pseudocount))
        steps = expected_rows(model.transitions, statistics["transitions"], np.full((S, S), self.pseudocount))
        prefix = "systems."
        blocks = {
            name.removeprefix(prefix): block.reshape((groups * S, *block.shape[2:]))
            for name, block in statistics.blocks.items()
            if name.startswith(prefix)
        }
        counts = blocks["counts"].copy()
        counts[counts[:, 0] == 0.0, 0] = 1.0  # where no series begins, the law of first states stays as it is
        every = np.arange(groups * S)
        flat = LDS._restore(*(_flattened(getattr(model.systems, name), model.start.ndim) for name in LDS._fields))
        moments = Statistics(flat, statistics.log_prob, statistics.lengths, {**blocks, "counts": counts})
        systems = maximize(moments, self._rules())
        return SwitchingLDS._restore(start, steps, systems[every.reshape(model.start.shape)])

    def pack(self, X: Any) -> Packed:
        """Encode raw series."""
        width = self.init.n_channels if isinstance(self.init, SwitchingLDS) else None
        return pack_series(X, "SwitchingLDSEstimator", n_channels=width)

    # --- parameters

    def _check_parameters(self) -> None:
        who = "SwitchingLDSEstimator"
        for name in ("n_regimes", "n_states", "n_init"):
            check_int(getattr(self, name), name, who, 1)
        check_int(self.max_iter, "max_iter", who, 0)
        check_option(self.covariance, COVARIANCES, "covariance", who)
        check_bool(self.stable, "stable", who)
        for name in ("tol", "pseudocount", "noise_pseudocount"):
            check_number(getattr(self, name), name, who)
        for name in ("min_covar", "state_variance", "obs_variance"):
            check_number(getattr(self, name), name, who, exclusive=True)
        if isinstance(self.init, SwitchingLDS):
            self._check_start(self.init)
        else:
            check_option(self.init, ("segments",), "init", who)

    def _check_start(self, model: SwitchingLDS) -> None:
        """Raise for a model from which EM under these rules could only fall."""
        sizes = (model.n_regimes, model.n_states)
        if model.shape or sizes != (self.n_regimes, self.n_states):
            raise ValueError(
                f"SwitchingLDSEstimator: 'init' must be one model with n_regimes={self.n_regimes} and "
                f"n_states={self.n_states}. Got batch {model.shape}, {sizes[0]} regimes, {sizes[1]} states."
            )
        lowest = min(float(np.linalg.eigvalsh(cov)[..., 0].min()) for cov in model.systems.matrices())
        if lowest < self.min_covar * (1.0 - 1e-9):
            raise ValueError(
                f"SwitchingLDSEstimator: the covariances of 'init' must not be below min_covar={self.min_covar:g}. Got "
                f"an eigenvalue of {lowest:g}; lower min_covar, or raise the covariance."
            )
        radius = float(np.abs(np.linalg.eigvals(model.systems.transition)).max())
        if self.stable and radius > BOUND:
            raise ValueError(
                f"SwitchingLDSEstimator: stable=True needs an 'init' of spectral radii <= {BOUND:g}. Got {radius:g}; "
                "shrink its transition."
            )

    def _rules(self) -> Rules:
        return Rules(self.min_covar, self.noise_pseudocount, self.state_variance, self.obs_variance, bool(self.stable))

    # --- EM

    def _best(self, packed: Packed, keys: Keys, own: bool) -> Run:
        """Return the best of ``n_init`` runs of EM, chosen for each model by its objective."""
        given = isinstance(self.init, SwitchingLDS)
        systems = None if given else self._pooled(packed, own)

        def run(restart: int) -> Run:
            if systems is None:
                model = SwitchingLDS.stack([self.init] * packed.n_objects) if own else self.init
                sweeps = _Sweeps(None, self)
            else:
                gamma = segments(packed, systems, self.n_regimes, derive(keys, restart), restart)
                model = pooled_model(systems, self.n_regimes, own)
                sweeps = _Sweeps(gamma, self)
                model = self.maximize(sweeps.expect(model, packed, start=True))
            steps = Steps(sweeps.expect, self.maximize, sweeps.log_prob, self._log_prior, sweeps.drop)
            return climb(steps, self._limits(), model, packed, own)

        return best_of(1 if given or self.n_regimes == 1 else self.n_init, run, self._limits())

    def _pooled(self, packed: Packed, own: bool) -> LDS:
        """Return one system for all series, or a stack of one for each, after a few steps of EM."""
        estimator = LDSEstimator(
            self.n_states,
            self.covariance,
            max_iter=POOLED_STEPS,
            tol=0.0,
            min_covar=self.min_covar,
            pseudocount=self.noise_pseudocount,
            state_variance=self.state_variance,
            obs_variance=self.obs_variance,
            stable=self.stable,
            n_jobs=self.n_jobs,
        )
        return LDS.stack(estimator.fit_each(packed)) if own else estimator.fit(packed).model_

    def _log_prior(self, model: SwitchingLDS) -> Floats:
        """Return the log prior (batch) of the pseudocounts."""
        chain = xlogy(self.pseudocount, model.start).sum(axis=-1)
        chain = chain + xlogy(self.pseudocount, model.transitions).sum(axis=(-1, -2))
        return np.asarray(chain + log_prior(model.systems, self._rules()).sum(axis=-1))


class _Sweeps:
    """The variational E-step of one run, which goes on from where the last stopped, so that the bound never falls."""

    def __init__(self, gamma: Floats | None, estimator: SwitchingLDSEstimator):
        self.gamma, self.tol, self.n_jobs = gamma, estimator.tol, estimator.n_jobs
        self.lengths: NDArray[np.int64]

    def log_prob(self, model: SwitchingLDS, packed: Packed) -> Floats:
        """Return the bound on the log-likelihood of each object."""
        return mean_field(model, packed, self.gamma, SWEEPS, self.tol, self.n_jobs).bound

    def expect(self, model: SwitchingLDS, packed: Packed, start: bool = False) -> Statistics:
        """Return statistics under the mean field, of own models or in total; at the start under given regimes."""
        field = mean_field(model, packed, self.gamma, 1 if start else SWEEPS, self.tol, self.n_jobs)
        if start:
            assert self.gamma is not None
            field = field._replace(regimes=self.gamma)
        self.gamma, self.lengths = field.regimes, packed.lengths
        blocks = blocks_of(field_statistics(model, packed, field), totals=not model.shape)
        return Statistics(model, field.bound, packed.lengths, blocks)

    def drop(self, leaving: NDArray[np.bool_]) -> None:
        """Forget the objects that leave the batch."""
        assert self.gamma is not None
        self.gamma = self.gamma[np.repeat(~leaving, self.lengths)]


def _flattened(field: Floats, batch: int) -> Floats:
    """Return a field of a stack with its batch axes made one."""
    return field.reshape((-1, *field.shape[batch:]))
