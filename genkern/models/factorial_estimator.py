"""Estimation of factorial hidden Markov models by EM with an exact or variational E-step, one or thousands at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.core.rows import expected_rows, log_pseudocounts
from genkern.models import factorial_passes as passes
from genkern.models.base import Statistics
from genkern.models.em import Run, Steps, best_of, climb
from genkern.models.em_estimator import EMEstimator
from genkern.models.factorial import MAX_STATES, FactorialHMM
from genkern.models.factorial_start import factorial_guess
from genkern.models.factorial_variational import field_statistics, mean_field
from genkern.models.gaussian import Gaussian
from genkern.models.gaussian_estimator import COVARIANCES, GaussianEstimator
from genkern.models.streams import Keys, derive
from genkern.objects import Packed, pack_series
from genkern.validation import Floats, check_int, check_number, check_option

E_STEPS = ("exact", "variational")
SWEEPS = 10  # over the chains in one variational E-step; the next goes on from where they stop
SMALLEST = 1e-10  # relative eigenvalue of the normal equations below which a direction is not determined


class FactorialHMMEstimator(EMEstimator):
    r"""Factorial hidden Markov models by EM, one for all series or one for each.

    .. math:: \Big(\sum_t E[u_t u_t^T]\Big) W = \sum_t E[u_t x_t^T]

    are the normal equations of the M-step for the means W (K, d) of all chains' states, whose indicators are u. They
    leave a constant that moves from one chain to another free; the step taken is the shortest that solves them.

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
    n_init : int, default=5
        Restarts from different first guesses; the best is kept. There are many local maxima, more of them with more
        chains and states. A first guess has almost equal states: the mean of the data plus small random numbers.
    max_iter : int, default=1000
        Largest number of EM steps.
    tol : float, default=1e-5
        EM stops when a step gains less than this per observation. Zero runs all steps.
    pseudocount : float, default=0.01
        Added to every start and transition count.
    min_covar : float, default=1e-3
        Smallest eigenvalue (variance) of the noise, in squared units of the data.
    random_state : int, RandomState instance or None, default=None
        Seed. Random numbers depend on it and, in ``fit_each``, on the content of each series, never on its place in
        the list; None counts as 0, so that fits are reproducible.
    n_jobs : int, optional
        Threads.
    verbose : int, default=0
        Report EM steps.

    Attributes
    ----------
    model_ : FactorialHMM
    converged_ : bool
    n_iter_ : int
        EM steps of the run that was kept.
    history_ : list of float
        Objective after each step, starting with that of the first guess: log-likelihood, or its bound, plus log prior
        of the pseudocounts. It never falls, also where entries are missing and where the sweeps of a variational E-step
        are stopped early: each goes on from the last.

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

    def __init__(
        self,
        n_states: Any = (2, 2),
        n_chains: int | None = None,
        e_step: str = "exact",
        *,
        covariance: str = "diagonal",
        n_init: int = 5,
        max_iter: int = 1000,
        tol: float = 1e-5,
        pseudocount: float = 0.01,
        min_covar: float = 1e-3,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.n_states = n_states
        self.n_chains = n_chains
        self.e_step = e_step
        self.covariance = covariance
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.pseudocount = pseudocount
        self.min_covar = min_covar
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # --- public

    def maximize(self, statistics: Statistics) -> FactorialHMM:
        """Return the model that maximises the expected log-likelihood plus log prior: the M-step.

        Statistics under one model are summed over objects; those under a stack of own models give a stack.
        """
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
        change = _shortest_solution(statistics["pairs"], statistics["means"])
        parts = np.split(change.reshape((*model.shape, *change.shape[1:])), np.cumsum(sizes)[:-1], axis=-2)
        means = [mean + part for mean, part in zip(model.means, parts)]
        return FactorialHMM._restore(tuple(starts), tuple(steps), tuple(means), self._noise(statistics, change))

    def pack(self, X: Any) -> Packed:
        """Encode raw series."""
        return pack_series(X, "FactorialHMMEstimator")

    # --- what is to be fitted

    def _check_parameters(self) -> None:
        who = "FactorialHMMEstimator"
        check_option(self.e_step, E_STEPS, "e_step", who)
        check_option(self.covariance, COVARIANCES, "covariance", who)
        for name, minimum in (("n_init", 1), ("max_iter", 0)):
            check_int(getattr(self, name), name, who, minimum)
        for name in ("tol", "pseudocount", "min_covar"):
            check_number(getattr(self, name), name, who)
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

    def _best(self, packed: Packed, keys: Keys, own: bool) -> Run:
        """Return the best of ``n_init`` runs of EM, chosen for each model by its objective."""
        noise = GaussianEstimator(self.covariance, min_covar=self.min_covar)

        def run(restart: int) -> Run:
            guess = factorial_guess(packed, self._sizes(), own, derive(keys, restart), noise)
            return climb(self._steps(own), self._limits(), guess, packed, own)

        return best_of(self.n_init, run, self._limits())

    def _steps(self, own: bool) -> Steps:
        """Return the E- and M-steps of one run."""
        if self.e_step == "variational":
            field = _Sweeps(self.tol, self.n_jobs)
            return Steps(field.expect, self.maximize, field.log_prob, self._log_prior, field.drop)
        return Steps(
            lambda model, part: model.statistics(part, totals=not own, n_jobs=self.n_jobs),
            self.maximize,
            lambda model, part: passes.log_prob(model, part, self.n_jobs),
            self._log_prior,
        )

    def _log_prior(self, model: FactorialHMM) -> Floats:
        """Return the log prior (batch) of the pseudocounts."""
        prior = np.zeros(model.shape)
        for start, rows in zip(model.starts, model.transitions):
            prior += log_pseudocounts(start, self.pseudocount) + log_pseudocounts(rows, self.pseudocount, 2)
        return prior

    def _noise(self, statistics: Statistics, change: Floats) -> Floats:
        """Return the covariance, floored, of what the new means leave; change (G, K, d) is that of the means."""
        model: FactorialHMM = statistics.model
        if model.covariance_type == "full":
            explained = np.swapaxes(change, -1, -2) @ statistics["means"]
            explained = 0.5 * (explained + np.swapaxes(explained, -1, -2))
        else:
            explained = (change * statistics["means"]).sum(axis=1)
        blocks = {
            "weight": statistics["weight"][:, None],
            "mean": np.zeros((len(change), 1, change.shape[-1])),
            "cov": (statistics["cov"] - explained)[:, None],
        }
        one = Gaussian._restore(blocks["mean"], model.cov.reshape(len(change), 1, *model.cov.shape[len(model.shape) :]))
        leaf = GaussianEstimator(model.covariance_type, min_covar=self.min_covar).maximize_blocks(blocks, one)
        return leaf.cov.reshape(model.cov.shape)


class _Sweeps:
    """The variational E-step of one run, which goes on from where the last stopped, so that the bound never falls."""

    def __init__(self, tol: float, n_jobs: int | None):
        self.tol, self.n_jobs = tol, n_jobs
        self.marginal: Floats | None = None
        self.lengths: NDArray[np.int64]

    def log_prob(self, model: FactorialHMM, packed: Packed) -> Floats:
        """Return the bound on the log-likelihood of each object."""
        return mean_field(model, packed, self.marginal, SWEEPS, self.tol, self.n_jobs).bound

    def expect(self, model: FactorialHMM, packed: Packed) -> Statistics:
        """Return statistics under the mean field, of own models or in total."""
        field = mean_field(model, packed, self.marginal, SWEEPS, self.tol, self.n_jobs)
        self.marginal, self.lengths = field.marginal, packed.lengths
        blocks = field_statistics(model, packed, field, totals=not model.shape)
        return Statistics(model, field.bound, packed.lengths, blocks)

    def drop(self, leaving: NDArray[np.bool_]) -> None:
        """Forget the objects that leave the batch."""
        assert self.marginal is not None
        self.marginal = self.marginal[np.repeat(~leaving, self.lengths)]


def _shortest_solution(pairs: Floats, right: Floats) -> Floats:
    """Return the solutions (G, K, d) of least norm of pairs (G, K, K) times them = right (G, K, d)."""
    values, vectors = np.linalg.eigh(pairs)
    kept = values > SMALLEST * values[:, -1:]
    inverse = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
    solution: Floats = vectors @ (inverse[..., None] * (np.swapaxes(vectors, -1, -2) @ right))
    return solution
