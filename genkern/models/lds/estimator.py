"""Maximum likelihood and maximum a posteriori estimation of linear dynamical systems, one or thousands at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.data.objects import Packed, pack_series
from genkern.models.base import Statistics
from genkern.models.families.gaussian_estimator import COVARIANCES
from genkern.models.fit.em import Steps, expected
from genkern.models.fit.em_estimator import EMEstimator
from genkern.models.fit.restarts import First, FitProblem, Restarts, numbers_in, place_in
from genkern.models.fit.units import Units, standardise, warn_unseen
from genkern.models.lds.covariance import form_of
from genkern.models.lds.model import LDS
from genkern.models.lds.start import first_guess, perturbed
from genkern.models.lds.step import BOUND, Rules, log_prior, maximize
from genkern.models.lds.units import UNSEEN, check_rules, raw_rules, refuse_low, rescaled, rules_of
from genkern.validation import check_bool, check_int, check_option

INITS = ("subspace", "pca")


class LDSEstimator(EMEstimator):
    r"""Linear dynamical systems by EM, one for all series or one for each.

    .. math:: A = \sum E[s_{t+1} s_t^T] \left(\sum E[s_t s_t^T]\right)^{-1}, \qquad
       Q = \frac{\sum E[w_t w_t^T] + \nu q I}{\sum 1 + \nu}

    and so on for C, b and R, with expectations given the series under the last system (Shumway & Stoffer 1982). Series
    may have any lengths and miss any values (NaN), which are integrated out.

    Parameters
    ----------
    n_states : int, default=2
        Dimension of the state.
    covariance : {"diagonal", "isotropic", "full"}, default="diagonal"
        Form of the observation noise R. The others are full.
    init : {"subspace", "pca"} or LDS, default="subspace"
        First guess: from the block Hankel matrix of autocovariances, from principal components (n_states not above the
        number of channels), or a system, whose forms of covariances are kept; in ``fit_each`` also one for each
        series, as a list or a stack.
    n_init : int, default=1
        Runs; those after the first start from random changes of the first guess, and the best is kept.
    max_iter : int, default=500
        Largest number of EM steps. In ``fit_each``, models that have converged leave the batch.
    tol : float, default=1e-5
        EM stops when a step gains less than this per observation, and all further steps together, extrapolated from the
        last ones, would gain less than ten times this. Zero runs all steps.
    min_covar : float, default=0.0
        Smallest eigenvalue (variance) allowed of R, in squared units of the data.
    relative_floor : float, default=1e-6
        Smallest variance of R as a share of the variance of its channel over the data that are fitted, and of Q and
        P_0 in units of states that begin with variance one. The larger floor of R counts; both zero are plain maximum
        likelihood.
    offset : bool, default=True
        Estimate the offset b. False keeps it zero, or that of ``init``.
    pseudocount : float, default=0.0
        Pseudo-observations :math:`\nu` of each noise: the mode under inverse Wishart priors on Q and R.
    state_variance : float, default=1.0
        Variance q of the pseudo-observations of states.
    obs_variance : float, optional
        Variance r of the pseudo-observations, in squared units of the data; by default that of each channel over the
        data that are fitted.
    stable : bool, default=False
        Keep the spectral radius of A below one. Where the M-step would leave the stable systems, it stops at their
        boundary, or at the shrunk target if that is better, so that the objective still does not fall.
    fixed : tuple of str, default=()
        Parameters that EM keeps fixed at their starting values: fields of the system, such as "transition"
        or "obs_cov".
    callback : callable, optional
        Called after each EM step with its number, the model (of several that are fitted together, the stack of those
        that have not converged) and the objective. If it returns True, the run ends there.
    random_state : int, RandomState instance or None, default=None
        Seed of restarts. Random numbers depend on it and, in ``fit_each``, on the content of each series, never on its
        index in the list; None is 0, so that fits are reproducible.
    n_jobs : int, optional
        Threads.
    verbose : int, default=0
        1 reports runs and their outcome, 2 every step as well.

    Attributes
    ----------
    model_ : LDS
    converged_ : bool
    n_iter_ : int
        EM steps of the run that was kept.
    history_ : list of float
        Objective after each step, starting with that of the first guess: log-likelihood plus log prior of the
        pseudo-observations. It never falls.

    Notes
    -----
    A system is known up to a change of basis of its states; compare autocovariances (``LDS.to_gaussian``), not entries.
    EM runs on data whose channels are centred and scaled, those of all series or, in ``fit_each``, of each, and the
    system is mapped back: data in other units, or with another offset, give the same system in these.

    References
    ----------
    Shumway & Stoffer (1982), An approach to time series smoothing and forecasting using the EM algorithm.
    Ghahramani & Hinton (1996), Parameter estimation for linear dynamical systems.
    Van Overschee & De Moor (1996), Subspace identification for linear systems, chapter 3.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import LDSEstimator
    >>> X = [np.sin(0.5 * np.arange(40) + phase) for phase in range(4)]
    >>> model = LDSEstimator(n_states=2).fit(X).model_
    >>> np.abs(np.angle(np.linalg.eigvals(model.transition))).round(2)
    array([0.5, 0.5])
    """

    kind = LDS

    def __init__(
        self,
        n_states: int = 2,
        covariance: str = "diagonal",
        *,
        init: Any = "subspace",
        n_init: int = 1,
        max_iter: int = 500,
        tol: float = 1e-5,
        min_covar: float = 0.0,
        relative_floor: float = 1e-6,
        offset: bool = True,
        pseudocount: float = 0.0,
        state_variance: float = 1.0,
        obs_variance: float | None = None,
        stable: bool = False,
        fixed: Any = (),
        callback: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.n_states = n_states
        self.covariance = covariance
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.min_covar = min_covar
        self.relative_floor = relative_floor
        self.offset = offset
        self.pseudocount = pseudocount
        self.state_variance = state_variance
        self.obs_variance = obs_variance
        self.stable = stable
        self.fixed = fixed
        self.callback = callback
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def pack(self, X: Any) -> Packed:
        """Encode raw series."""
        width = None if self._example is None else self._example.n_channels
        return pack_series(X, "LDSEstimator", n_channels=width)

    def maximize(self, statistics: Statistics) -> LDS:
        """Return the M-step's system from statistics of a single system, summed over their leading axis.

        Without the data there is no ``relative_floor`` of R; pseudo-observations need ``obs_variance``.
        """
        self._check_parameters()
        return maximize(statistics.total(), raw_rules(self, statistics.model, self.pseudocount))

    # --- parameters

    def _check_parameters(self) -> None:
        check_int(self.n_states, "n_states", "LDSEstimator", 1)
        check_option(self.covariance, COVARIANCES, "covariance", "LDSEstimator")
        super()._check_parameters()
        for name in ("stable", "offset"):
            check_bool(getattr(self, name), name, "LDSEstimator")
        check_rules(self, "LDSEstimator")
        if self._given is not None:
            self._check_start(self._given)
        else:
            check_option(self.init, INITS, "init", "LDSEstimator")

    def _check_start(self, model: LDS) -> None:
        """Raise for a starting system that violates these constraints, from which the objective could only fall."""
        if model.n_states != self.n_states:
            raise ValueError(
                f"LDSEstimator: 'init' must be one system with n_states={self.n_states} states. Got {model.n_states}."
            )
        radius = float(np.abs(np.linalg.eigvals(model.transition)).max())
        if self.stable and radius > BOUND * (1.0 + 1e-9):
            raise ValueError(
                f"LDSEstimator: stable=True needs an 'init' of spectral radius <= {BOUND:g}. Got {radius:g}; shrink "
                "its transition."
            )

    # --- EM

    def _problem(self, packed: Packed, own: bool) -> FitProblem:
        """Return the problem in standard units."""
        form = self.covariance if self._example is None else form_of(self._example.obs_cov, 0)
        packed, units = standardise(packed, own, "LDSEstimator", centred=bool(self.offset), common=form == "isotropic")
        warn_unseen(packed, own, "LDSEstimator", UNSEEN)
        rules = rules_of(self, units, self.pseudocount)
        first = self._guess(packed, units, rules, own)

        def steps(part: Packed, each: bool) -> Steps:
            return self._ruled_steps(rules.of(place_in(packed, part)) if each else rules, each)

        def guess(part: Packed, restarts: Restarts, each: bool) -> First:
            here = first[place_in(packed, part)] if each else first
            return First(self._keep(here, perturbed(here, restarts)))

        return FitProblem(
            packed,
            steps,
            guess,
            packed.values.shape[1],
            numbers_in(first[0] if own else first),
            lambda models, places: rescaled(models, units.unit[places], units.mean[places]),
            units.shift(self.pseudocount),
        )

    def _ruled_steps(self, rules: Rules, own: bool) -> Steps:
        """Return the E- and M-steps of one run; rules of own systems leave with them."""
        kept = [rules]

        def drop(leaving: Any) -> None:
            kept[0] = kept[0].of(~leaving)

        def expect(model: LDS, part: Packed) -> Statistics:
            return expected(model, part, n_jobs=self.n_jobs)

        return Steps(
            expect,
            lambda statistics: maximize(statistics, kept[0]),
            None,
            lambda model: log_prior(model, kept[0]),
            drop if own else None,
        )

    def _guess(self, packed: Packed, units: Units, rules: Rules, own: bool) -> LDS:
        """Return the first guess in standard units."""
        if self._given is None:
            return first_guess(packed, self.n_states, self.init, self.covariance, rules, own)
        given = self._given_to(packed, own)
        guess = given if own else LDS.stack([given])
        guess = rescaled(guess, 1.0 / units.unit, -units.mean / units.unit)
        refuse_low(guess, rules, self)
        return guess if own else guess[0]
