"""Estimation of switching linear dynamical systems by structured variational EM, one or thousands at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.core.arrays.rows import expected_rows, log_pseudocounts
from genkern.data.objects import Packed, pack_series
from genkern.models.base import Statistics
from genkern.models.families.gaussian_estimator import COVARIANCES
from genkern.models.fit.em import Steps
from genkern.models.fit.em_estimator import EMEstimator
from genkern.models.fit.restarts import First, FitProblem, Restarts, place_in
from genkern.models.fit.units import standardise, warn_unseen
from genkern.models.lds.covariance import form_of
from genkern.models.lds.estimator import LDSEstimator
from genkern.models.lds.model import LDS
from genkern.models.lds.step import BOUND, Rules, log_prior, maximize
from genkern.models.lds.units import UNSEEN, check_rules, raw_rules, refuse_low, rescaled, rules_of
from genkern.models.switching.field import SwitchingField, field_statistics, mean_field
from genkern.models.switching.model import SwitchingLDS, blocks_of
from genkern.models.switching.start import pooled_model, segments
from genkern.validation import Floats, check_bool, check_int, check_number, check_option, one_warning_each

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
        the regimes fitted to the clusters; or a model, whose forms of covariances are kept; in ``fit_each`` also
        one for each series, as a list or a stack.
    n_init : int, default=3
        Runs; those after the first cluster windows of other widths from other centres, and the best bound is kept. A
        model as first guess is run once.
    max_iter : int, default=500
        Largest number of EM steps. In ``fit_each``, models that have converged leave the batch.
    tol : float, default=1e-4
        EM stops when a step gains less than this per observation, and all further steps together, extrapolated from the
        last ones, would gain less than ten times this. Zero runs all steps.
    pseudocount : float, default=0.01
        Added to every start and transition count; what is zero in an ``init`` stays zero.
    min_covar : float, default=0.0
        Smallest eigenvalue (variance) of R, in squared units of the data.
    relative_floor : float, default=1e-4
        Smallest variance of R as a share of the variance of its channel over the data that are fitted, and of Q and
        P_0 in units of states that begin with variance one. The larger floor of R counts. It must be positive: Q(s)
        needs inverses.
    offset : bool, default=True
        Estimate the offset of every regime. False keeps them zero, or those of ``init``.
    noise_pseudocount : float, default=0.0
        Pseudo-observations of each noise of each regime: the mode under inverse Wishart priors on Q and R.
    state_variance : float, default=1.0
        Variance of the pseudo-observations of states.
    obs_variance : float, optional
        Variance of those of observations, in squared units of the data; by default that of each channel over the data
        that are fitted.
    stable : bool, default=False
        Keep the spectral radius of every A below one, as ``LDSEstimator`` does.
    fixed : tuple of str, default=()
        Parameters that EM keeps fixed at their starting values: "start", "transitions", "systems", and fields
        of all systems, such as "observation".
    callback : callable, optional
        Called after each EM step with its number, the model (of several that are fitted together, the stack of those
        that have not converged) and the objective. If it returns True, the run ends there.
    random_state : int, RandomState instance or None, default=None
        Seed of the clustering. Random numbers depend on it and, in ``fit_each``, on the content of each series, never
        on its index in the list; None is 0, so that fits are reproducible.
    n_jobs : int, optional
        Threads.
    verbose : int, default=0
        1 reports runs and their outcome, 2 every step as well.

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
    :math:`C_k A_k^t C_k^+` or the eigenvalues of :math:`A_k`, not entries. As in ``LDSEstimator``, EM runs on data
    whose channels are centred and scaled, and the model is mapped back.

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

    kind = SwitchingLDS

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
        min_covar: float = 0.0,
        relative_floor: float = 1e-4,
        offset: bool = True,
        noise_pseudocount: float = 0.0,
        state_variance: float = 1.0,
        obs_variance: float | None = None,
        stable: bool = False,
        fixed: Any = (),
        callback: Any = None,
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
        self.relative_floor = relative_floor
        self.offset = offset
        self.noise_pseudocount = noise_pseudocount
        self.state_variance = state_variance
        self.obs_variance = obs_variance
        self.stable = stable
        self.fixed = fixed
        self.callback = callback
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # --- public

    def maximize(self, statistics: Statistics) -> SwitchingLDS:
        """Return the model that maximises the expected log-likelihood plus log prior: the M-step.

        Statistics under one model are summed over objects; those under a stack of own models give a stack. Without the
        data there is no ``relative_floor`` of R; pseudo-observations of noises need ``obs_variance``.
        """
        self._check_parameters()
        rules = raw_rules(self, statistics.model.systems, self.noise_pseudocount)
        return self._maximize(statistics, rules.of(np.zeros(len(statistics), np.int64)))

    def _maximize(self, statistics: Statistics, rules: Rules) -> SwitchingLDS:
        """Return the model, or the stack of own models, of the M-step under the rules of each."""
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
        rules = rules.of(every // S)
        fields = (getattr(model.systems, name) for name in LDS._fields)
        flat = LDS._restore(*(field.reshape((-1, *field.shape[model.start.ndim :])) for field in fields))
        moments = Statistics(flat, statistics.log_prob, statistics.lengths, {**blocks, "counts": counts})
        systems = maximize(moments, rules)
        return SwitchingLDS._restore(start, steps, systems[every.reshape(model.start.shape)])

    def pack(self, X: Any) -> Packed:
        """Encode raw series."""
        width = None if self._example is None else self._example.n_channels
        return pack_series(X, "SwitchingLDSEstimator", n_channels=width)

    # --- parameters

    def _check_parameters(self) -> None:
        who = "SwitchingLDSEstimator"
        super()._check_parameters()
        for name in ("n_regimes", "n_states"):
            check_int(getattr(self, name), name, who, 1)
        check_option(self.covariance, COVARIANCES, "covariance", who)
        for name in ("stable", "offset"):
            check_bool(getattr(self, name), name, who)
        check_number(self.pseudocount, "pseudocount", who)
        check_rules(self, who, "noise_pseudocount")
        if self.relative_floor == 0.0:
            raise ValueError(
                f"{who}: 'relative_floor' must be positive, as the mean field needs inverses of covariances. Got 0; "
                "use a small number such as 1e-8."
            )
        if self._given is not None:
            self._check_start(self._given)
        else:
            check_option(self.init, ("segments",), "init", who)

    def _check_start(self, model: SwitchingLDS) -> None:
        """Raise for a model from which EM under these rules could only fall."""
        sizes = (model.n_regimes, model.n_states)
        if sizes != (self.n_regimes, self.n_states):
            raise ValueError(
                f"SwitchingLDSEstimator: 'init' must be one model with n_regimes={self.n_regimes} and "
                f"n_states={self.n_states}. Got {sizes[0]} regimes, {sizes[1]} states."
            )
        radius = float(np.abs(np.linalg.eigvals(model.systems.transition)).max())
        if self.stable and radius > BOUND:
            raise ValueError(
                f"SwitchingLDSEstimator: stable=True needs an 'init' of spectral radii <= {BOUND:g}. Got {radius:g}; "
                "shrink its transition."
            )

    # --- EM

    def _fixable(self) -> list[Any]:
        return [*SwitchingLDS._fields, *LDS._fields]

    def _keep(self, old: SwitchingLDS, new: SwitchingLDS) -> SwitchingLDS:
        """Return a new model with the fixed parameters of an old one, which may be some of all systems."""
        whole = super()._keep(old, new)
        parts = (getattr((old if name in self.fixed else whole).systems, name) for name in LDS._fields)
        return SwitchingLDS._restore(whole.start, whole.transitions, LDS._restore(*parts))

    def _runs(self, own: bool) -> int:
        return 1 if self._given is not None or self.n_regimes == 1 else self.n_init

    def _problem(self, packed: Packed, own: bool) -> FitProblem:
        """Return the problem in standard units."""
        given, example = self._given is not None, self._example
        form = form_of(example.systems.obs_cov, 1) if given else self.covariance
        packed, units = standardise(
            packed, own, "SwitchingLDSEstimator", centred=bool(self.offset), common=form == "isotropic"
        )
        rules = rules_of(self, units, self.noise_pseudocount)
        with one_warning_each():  # that one system would warn of the same channels
            warn_unseen(packed, own, "SwitchingLDSEstimator", UNSEEN)
            pooled = None if given else self._pooled(packed, own)
        if given:
            model = self._given_to(packed, own)
            model = model if own else SwitchingLDS.stack([model])
            model = _rescaled(model, 1.0 / units.unit, -units.mean / units.unit)
            refuse_low(model.systems, rules, self)
            first = model if own else model[0]

        def sweeps(part: Packed, each: bool) -> _Sweeps:
            return _Sweeps(self, rules.of(place_in(packed, part)) if each else rules, each)

        def guess(part: Packed, restarts: Restarts, each: bool) -> First:
            if pooled is None:
                return First(first)
            systems = pooled[place_in(packed, part)] if each else pooled
            gamma = segments(part, systems, self.n_regimes, restarts)
            model = pooled_model(systems, self.n_regimes, each)
            return First(sweeps(part, each).first(model, part, gamma), gamma)

        width = self.n_regimes + 2 * self.n_states * (self.n_states + 1)
        size = self.n_regimes * (self.n_regimes + (4 * self.n_states + packed.values.shape[1]) ** 2)
        return FitProblem(
            packed,
            lambda part, each: sweeps(part, each).steps(),
            guess,
            width,
            size,
            lambda models, places: _rescaled(models, units.unit[places], units.mean[places]),
            units.shift(self.n_regimes * self.noise_pseudocount),
        )

    def _pooled(self, packed: Packed, own: bool) -> LDS:
        """Return one system for all series, or a stack of one for each, in standard units, after a few steps of EM."""
        estimator = LDSEstimator(
            self.n_states,
            self.covariance,
            max_iter=POOLED_STEPS,
            tol=0.0,
            relative_floor=self.relative_floor,
            offset=self.offset,
            pseudocount=self.noise_pseudocount,
            state_variance=self.state_variance,
            stable=self.stable,
            n_jobs=self.n_jobs,
        )
        return LDS.stack(estimator.fit_each(packed)) if own else estimator.fit(packed).model_

    def _prior(self, model: SwitchingLDS, rules: Rules) -> Floats:
        """Return the log prior (batch) of the pseudocounts."""
        chain = log_pseudocounts(model.start, self.pseudocount)
        chain = chain + log_pseudocounts(model.transitions, self.pseudocount, 2)
        widened = rules._replace(obs_variance=rules.obs_variance[:, None] if model.shape else rules.obs_variance)
        return np.asarray(chain + log_prior(model.systems, widened).sum(axis=-1))


def _rescaled(models: SwitchingLDS, unit: Floats, mean: Floats) -> SwitchingLDS:
    """Return the laws of mean + unit x, with arrays (G, d)."""
    return SwitchingLDS._restore(
        models.start, models.transitions, rescaled(models.systems, unit[:, None], mean[:, None])
    )


class _Sweeps:
    """The variational E-step of one run, which goes on from where the last stopped, so that the bound never falls."""

    def __init__(self, estimator: SwitchingLDSEstimator, rules: Rules, own: bool):
        self.estimator, self.rules, self.own, self.gamma = estimator, rules, own, None
        self.tol, self.n_jobs = estimator.tol, estimator.n_jobs

    lengths: NDArray[np.int64]
    gamma: Floats | None  # where the next sweeps begin

    def steps(self) -> Steps:
        """Return the E- and M-steps."""
        return Steps(
            self.expect,
            self.maximize,
            self.log_prob,
            lambda members: self.estimator._prior(members, self.rules),
            self.drop,
            self.begin,
        )

    def begin(self, gamma: Floats) -> None:
        """Take first probabilities (N, S) of regimes."""
        self.gamma = gamma

    def first(self, model: SwitchingLDS, packed: Packed, gamma: Floats) -> SwitchingLDS:
        """Return the M-step after the states are told by a model, and the regimes are given."""
        field = mean_field(model, packed, gamma, 1, self.tol, self.n_jobs)
        return self.maximize(self._statistics(model, packed, field._replace(regimes=gamma)))

    def maximize(self, statistics: Statistics) -> SwitchingLDS:
        """Return the M-step's models; rules of one model of all objects are those of each restart."""
        rules = self.rules if self.own else self.rules.of(np.zeros(len(statistics["start"]), np.int64))
        return self.estimator._maximize(statistics, rules)

    def log_prob(self, model: SwitchingLDS, packed: Packed) -> Floats:
        """Return the bound on the log-likelihood of each object."""
        return mean_field(model, packed, self.gamma, SWEEPS, self.tol, self.n_jobs).bound

    def expect(self, model: SwitchingLDS, packed: Packed) -> Statistics:
        """Return statistics under the mean field, of own models or in total."""
        field = mean_field(model, packed, self.gamma, SWEEPS, self.tol, self.n_jobs)
        self.gamma, self.lengths = field.regimes, packed.lengths
        return self._statistics(model, packed, field)

    def _statistics(self, model: SwitchingLDS, packed: Packed, field: SwitchingField) -> Statistics:
        totals = packed.weights is None and not model.shape
        blocks = blocks_of(field_statistics(model, packed, field), totals=totals)
        found = Statistics(model, field.bound, packed.lengths, blocks).weighted(packed.weights)
        return found if totals or model.shape else found.total()

    def drop(self, leaving: NDArray[np.bool_]) -> None:
        """Drop the objects that leave the batch."""
        assert self.gamma is not None
        self.gamma = self.gamma[np.repeat(~leaving, self.lengths)]
        if self.own:
            self.rules = self.rules.of(~leaving)
