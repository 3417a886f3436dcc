"""Estimation of factorial hidden Markov models by EM with an exact or variational E-step, one or thousands at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.core.arrays.rows import expected_rows, log_pseudocounts
from genkern.data.objects import Packed, pack_series
from genkern.models.base import Statistics
from genkern.models.factorial import passes
from genkern.models.factorial.model import MAX_STATES, FactorialHMM
from genkern.models.factorial.start import factorial_guess
from genkern.models.factorial.variational import field_statistics, mean_field
from genkern.models.families.gaussian_estimator import COVARIANCES
from genkern.models.fit.em import Steps, expected
from genkern.models.fit.em_estimator import EMEstimator
from genkern.models.fit.restarts import First, FitProblem, Restarts, place_in
from genkern.models.fit.units import Units, refuse_unseen, standardise
from genkern.models.lds.covariance import shaped
from genkern.validation import Floats, check_int, check_number, check_option

E_STEPS = ("exact", "variational")
SWEEPS = 10  # sweeps over the chains in one variational E-step; the next continues from their result
SMALLEST = 1e-10  # relative eigenvalue of the normal equations below which a direction is not determined


class FactorialHMMEstimator(EMEstimator):
    r"""Factorial hidden Markov models by EM, one for all series or one for each.

    .. math:: \Big(\sum_t E[u_t u_t^T]\Big) W = \sum_t E[u_t x_t^T]

    are the normal equations of the M-step for the means W (K, d) of all chains' states, whose indicators are u.
    Constants can be moved between chains without changing the model; the solution of least norm is taken.

    Parameters
    ----------
    n_states : tuple of int, or int, default=(2, 2)
        Number of states of each chain; an int is that of each of ``n_chains`` chains.
    n_chains : int, optional
        Number of chains, if ``n_states`` is an int.
    e_step : {"exact", "variational"}, default="exact"
        "exact" takes the posterior over all joint states, of which there may be at most 4096. "variational" treats the
        chains as independent given the data (structured mean field), for any number of them; it maximises a lower bound
        on the likelihood.
    covariance : {"diagonal", "isotropic", "full"}, default="diagonal"
        Form of the noise covariance.
    init : FactorialHMM, optional
        A model to start from, once, whose form of the noise is kept; in ``fit_each`` also one for each series, as a
        list or a stack. Noises below the floor are raised to it. The default is random.
    n_init : int, default=5
        Restarts from different first guesses; the best is kept. There are many local maxima, more of them with more
        chains and states. A first guess has almost equal states: the mean of the data plus small random numbers.
    max_iter : int, default=1000
        Largest number of EM steps.
    tol : float, default=1e-5
        EM stops when a step gains less than this per observation, and all further steps together, extrapolated from the
        last ones, would gain less than ten times this. Zero runs all steps.
    pseudocount : float, default=0.01
        Added to every start and transition count.
    min_covar : float, default=0.0
        Smallest eigenvalue (variance) of the noise, in squared units of the data.
    relative_floor : float, default=1e-3
        Smallest variance of the noise as a share of the variance of its channel over the data that are fitted: of all
        series, or of each in ``fit_each``. The larger floor of both counts.
    fixed : tuple of str, default=()
        Parameters that EM keeps fixed at their starting values: "starts", "transitions", "means" and "cov".
    callback : callable, optional
        Called after each EM step with its number, the model (of several that are fitted together, the stack of those
        that have not converged) and the objective. If it returns True, the run ends there.
    random_state : int, RandomState instance or None, default=None
        Seed. Random numbers depend on it and, in ``fit_each``, on the content of each series, never on its index in the
        list; None is 0, so that fits are reproducible.
    n_jobs : int, optional
        Threads.
    verbose : int, default=0
        1 reports runs and their outcome, 2 every step as well.

    Attributes
    ----------
    model_ : FactorialHMM
    converged_ : bool
    n_iter_ : int
        EM steps of the run that was kept.
    history_ : list of float
        Objective after each step, starting with that of the first guess: log-likelihood, or its bound, plus log prior
        of the pseudocounts. It never falls, also where entries are missing and where the sweeps of a variational E-step
        are stopped early: each continues from the last.

    References
    ----------
    Ghahramani & Jordan (1997), Factorial hidden Markov models, Machine Learning 29, eq. 12 and appendices A, B and D.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import FactorialHMM, FactorialHMMEstimator
    >>> stay = [[0.9, 0.1], [0.1, 0.9]]
    >>> truth = FactorialHMM([[0.5, 0.5]] * 2, [stay] * 2, [[[0.0], [1.0]], [[0.0], [5.0]]], 0.01)
    >>> fitted = FactorialHMMEstimator((2, 2)).fit(truth.sample(10, length=50, rng=0)).model_
    >>> sorted(float(np.ptp(mean).round(1)) for mean in fitted.means)
    [1.0, 5.0]
    """

    kind = FactorialHMM

    def __init__(
        self,
        n_states: Any = (2, 2),
        n_chains: int | None = None,
        e_step: str = "exact",
        *,
        covariance: str = "diagonal",
        init: Any = None,
        n_init: int = 5,
        max_iter: int = 1000,
        tol: float = 1e-5,
        pseudocount: float = 0.01,
        min_covar: float = 0.0,
        relative_floor: float = 1e-3,
        fixed: Any = (),
        callback: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.n_states = n_states
        self.n_chains = n_chains
        self.e_step = e_step
        self.covariance = covariance
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.pseudocount = pseudocount
        self.min_covar = min_covar
        self.relative_floor = relative_floor
        self.fixed = fixed
        self.callback = callback
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # --- public

    def maximize(self, statistics: Statistics) -> FactorialHMM:
        """Return the model that maximises the expected log-likelihood plus log prior: the M-step.

        Statistics under one model are summed over objects; those under a stack of own models give a stack. Without the
        data there is no ``relative_floor``.
        """
        return self._maximize(statistics, np.array(self.min_covar))

    def _maximize(self, statistics: Statistics, floors: Floats) -> FactorialHMM:
        """Return the M-step's model, or the stack of own ones, with noises not below floors, () or (G, d)."""
        model: FactorialHMM = statistics.model
        if not model.shape:
            statistics = statistics.total()
        sizes = model.n_states
        starts = [
            expected_rows(start, statistics[f"starts[{c}]"], np.full(k, self.pseudocount))
            for c, (start, k) in enumerate(zip(model.starts, sizes))
        ]
        steps = [
            expected_rows(rows, statistics[f"transitions[{c}]"], np.full((k, k), self.pseudocount))
            for c, (rows, k) in enumerate(zip(model.transitions, sizes))
        ]
        change = _shortest_solution(statistics["pairs"], statistics["means"]) * ("means" not in self.fixed)
        parts = np.split(change.reshape((*model.shape, *change.shape[1:])), np.cumsum(sizes)[:-1], axis=-2)
        means = [mean + part for mean, part in zip(model.means, parts)]
        return FactorialHMM._restore(tuple(starts), tuple(steps), tuple(means), _noise(statistics, change, floors))

    def pack(self, X: Any) -> Packed:
        """Encode raw series."""
        width = None if self._example is None else self._example.means[0].shape[-1]
        return pack_series(X, "FactorialHMMEstimator", n_channels=width)

    # --- the fitting problem

    def _check_parameters(self) -> None:
        who = "FactorialHMMEstimator"
        check_option(self.e_step, E_STEPS, "e_step", who)
        check_option(self.covariance, COVARIANCES, "covariance", who)
        super()._check_parameters()
        for name in ("pseudocount", "min_covar", "relative_floor"):
            check_number(getattr(self, name), name, who)
        if self.init is not None and (self._example is None or self._example.n_states != self._sizes()):
            raise ValueError(
                f"{who}: 'init' must be None, or a FactorialHMM with chains of {self._sizes()} states. Got "
                f"{self.init!r:.80}."
            )
        states = int(np.prod([float(k) for k in self._sizes()]))
        if self.e_step == "exact" and states > MAX_STATES:
            raise ValueError(
                f"{who}: e_step='exact' works in the space of all joint states, at most {MAX_STATES}. Got chains of "
                f"{self._sizes()} states, {states} jointly; use e_step='variational'."
            )

    def _sizes(self) -> tuple[int, ...]:
        """Return the number of states of each chain."""
        who = "FactorialHMMEstimator"
        if np.ndim(self.n_states) == 0:
            k = check_int(self.n_states, "n_states", who, 1)
            if self.n_chains is None:
                raise ValueError(f"{who}: n_states={k} needs n_chains, or a tuple with one number per chain.")
            return (k,) * check_int(self.n_chains, "n_chains", who, 1)
        sizes = tuple(check_int(k, "n_states", who, 1) for k in self.n_states)
        if not sizes or self.n_chains not in (None, len(sizes)):
            raise ValueError(f"{who}: 'n_states' {sizes} must have one number for each of n_chains={self.n_chains}.")
        return sizes

    # --- EM

    def _problem(self, packed: Packed, own: bool) -> FitProblem:
        """Return the problem in standard units."""
        refuse_unseen(packed, own, "FactorialHMMEstimator")
        packed, units = standardise(packed, own, "FactorialHMMEstimator", common=self._form() == "isotropic")
        floors = units.floors(self.min_covar, self.relative_floor)
        given = None if self._given is None else self._standard(self._given_to(packed, own), units, floors, own)

        sizes, d = self._sizes(), packed.values.shape[1]

        def lows(part: Packed, each: bool) -> Floats:
            return floors[place_in(packed, part)] if each else floors

        def steps(part: Packed, each: bool) -> Steps:
            return _Climb(self, lows(part, each), each).steps()

        def guess(part: Packed, restarts: Restarts, each: bool) -> First:
            if given is not None:
                return First(given)
            return First(factorial_guess(sizes, self.covariance, lows(part, each), each, restarts.keys))

        width = int(np.prod(sizes)) if self.e_step == "exact" else sum(sizes)
        return FitProblem(
            packed,
            steps,
            guess,
            width,
            sum(sizes) ** 2 + sum(sizes) * d + d * d,
            lambda models, places: _rescaled(models, units.of(places)),
            units.shift(),
        )

    def _runs(self, own: bool) -> int:
        return self.n_init if self._given is None else 1

    def _form(self) -> str:
        return self.covariance if self._example is None else str(self._example.covariance_type)

    def _standard(self, given: FactorialHMM, units: Units, floors: Floats, own: bool) -> FactorialHMM:
        """Return models to start from in standard units, with noises raised to the floors."""
        inverse = units._replace(mean=-units.mean / units.unit, unit=1.0 / units.unit)
        stack = _rescaled(given if own else FactorialHMM.stack([given]), inverse)
        if "cov" in self.fixed:
            return stack if own else stack[0]
        form, cov = stack.covariance_type, stack.cov
        full = cov if form == "full" else np.broadcast_to(cov[..., None], floors.shape) if form == "isotropic" else cov
        full = full if form == "full" else full[..., None] * np.eye(floors.shape[1])
        raised = FactorialHMM._restore(stack.starts, stack.transitions, stack.means, shaped(full, form, floors))
        return raised if own else raised[0]

    def _log_prior(self, model: FactorialHMM) -> Floats:
        """Return the log prior (batch) of the pseudocounts."""
        prior = np.zeros(model.shape)
        for start, rows in zip(model.starts, model.transitions):
            prior += log_pseudocounts(start, self.pseudocount) + log_pseudocounts(rows, self.pseudocount, 2)
        return prior


class _Climb:
    """The steps of one run, with the floors (G, d) of its models.

    A variational E-step continues from the result of the last, so that the bound never falls.
    """

    def __init__(self, estimator: FactorialHMMEstimator, floors: Floats, own: bool):
        self.estimator, self.floors, self.own = estimator, floors, own
        self.marginal: Floats | None = None
        self.lengths: NDArray[np.int64]

    def steps(self) -> Steps:
        """Return the E- and M-steps."""
        exact = self.estimator.e_step == "exact"
        return Steps(
            self._exact if exact else self._variational,
            lambda statistics: self.estimator._maximize(statistics, self.floors),
            self._log_prob if exact else self._bound,
            self.estimator._log_prior,
            self._drop,
        )

    def _exact(self, model: FactorialHMM, packed: Packed) -> Statistics:
        return expected(model, packed, n_jobs=self.estimator.n_jobs)

    def _log_prob(self, model: FactorialHMM, packed: Packed) -> Floats:
        return passes.log_prob(model, packed, self.estimator.n_jobs)

    def _sweep(self, model: FactorialHMM, packed: Packed) -> Any:
        return mean_field(model, packed, self.marginal, SWEEPS, self.estimator.tol, self.estimator.n_jobs)

    def _bound(self, model: FactorialHMM, packed: Packed) -> Floats:
        bound: Floats = self._sweep(model, packed).bound
        return bound

    def _variational(self, model: FactorialHMM, packed: Packed) -> Statistics:
        """Return statistics under the mean field, of own models or in total."""
        field = self._sweep(model, packed)
        self.marginal, self.lengths = field.marginal, packed.lengths
        totals = packed.weights is None and not model.shape
        blocks = field_statistics(model, packed, field, totals)
        found = Statistics(model, field.bound, packed.lengths, blocks).weighted(packed.weights)
        return found if totals or model.shape else found.total()

    def _drop(self, leaving: NDArray[np.bool_]) -> None:
        """Drop the objects that leave the batch."""
        if self.own:
            self.floors = self.floors[~leaving]
        if self.marginal is not None:
            self.marginal = self.marginal[np.repeat(~leaving, self.lengths)]


def _noise(statistics: Statistics, change: Floats, floors: Floats) -> Floats:
    """Return the covariance, not below floors, of the residuals after a change (G, K, d) of the means."""
    model: FactorialHMM = statistics.model
    explained = np.swapaxes(change, -1, -2) @ statistics["means"]
    left = statistics["cov"]
    if model.covariance_type != "full":
        left = left[..., None] * np.eye(left.shape[-1])
    cov = shaped((left - explained) / statistics["weight"][:, None, None], model.covariance_type, floors)
    return cov.reshape(model.cov.shape)


def _rescaled(models: FactorialHMM, units: Units) -> FactorialHMM:
    """Return models of data in their own units; all chains have an equal share of the means of the channels."""
    unit, mean = units.unit, units.mean / len(models.means)
    scale = {"isotropic": unit[:, 0] ** 2, "diagonal": unit**2, "full": unit[:, :, None] * unit[:, None, :]}
    means = tuple(mean[:, None] + unit[:, None] * part for part in models.means)
    cov = scale[models.covariance_type] * models.cov
    return FactorialHMM._restore(models.starts, models.transitions, means, cov)


def _shortest_solution(pairs: Floats, right: Floats) -> Floats:
    """Return the solutions (G, K, d) of least norm of pairs (G, K, K) times them = right (G, K, d)."""
    values, vectors = np.linalg.eigh(pairs)
    kept = values > SMALLEST * values[:, -1:]
    inverse = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
    solution: Floats = vectors @ (inverse[..., None] * (np.swapaxes(vectors, -1, -2) @ right))
    return solution
