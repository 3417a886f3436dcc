"""Maximum likelihood and maximum a posteriori estimation of hidden Markov models, one or thousands at once."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from genkern.core import hmm as core
from genkern.core.rows import expected_rows, log_pseudocounts
from genkern.models.base import Statistics
from genkern.models.categorical_estimator import CategoricalEstimator
from genkern.models.em import Limits, Run, Steps, warn_unconverged
from genkern.models.emissions import EMISSIONS
from genkern.models.estimator import Batch, LeafEstimator, ModelEstimator, bounds_of
from genkern.models.gaussian_estimator import GaussianEstimator
from genkern.models.hmm import HMM, emission_blocks
from genkern.models.hmm_start import Plan, check_start, first_guess, pack_for_start
from genkern.models.mixture_estimator import MixtureEstimator
from genkern.models.restarts import First, Problem, Restarts, best_start, numbers_in, warn_lone
from genkern.models.streams import Keys, keys_of, seed_of, unit_free_digests
from genkern.objects import Packed, kind_of
from genkern.progress import report
from genkern.validation import Floats, begin_fit, check_int, check_number, check_option

FAMILIES: dict[str, type[LeafEstimator]] = {**EMISSIONS, "mixture": MixtureEstimator}
INITS = ("auto", "random", "segmental", "kmeans")
FLOORS = ("min_covar", "relative_floor")


class HMMEstimator(ModelEstimator):
    r"""Hidden Markov models by EM (Baum-Welch), one for all sequences or one for each.

    Parameters
    ----------
    n_states : int or "auto", default="auto"
        Number of states. "auto" is the rule of Jebara, Kondor & Howard (2004), sec. 8.2: the largest n with
        about ``zeta`` times as many parameters as observations, of each sequence in ``fit_each`` and of the sequence
        of median length in ``fit``.
    emission : str or leaf estimator, default="auto"
        Family of the observations: "categorical", "gaussian", "bernoulli", "poisson", "geometric", "exponential",
        "gamma", "dirichlet", "multinomial" or "vonmises"; "auto" is categorical for symbols, else gaussian. A leaf
        estimator such as ``GaussianEstimator("full")`` owns its floors and priors.
    n_init : int, default=1
        Restarts from different first guesses; the best is kept. A run with a state at its floor that rests on one
        observation, or on few that coincide, loses against one without. Restarts of little data are run together.
    max_iter : int, default=1000
        Largest number of EM steps. Few models need many, and in ``fit_each`` those that are done leave the batch.
    tol : float, default=1e-5
        EM stops when a step gains less than this per observation, and all further ones together, by the pace of the
        last, would gain less than ten times this. Zero runs all steps.
    pseudocount : float, default=0.01
        Added to every allowed start, transition and stop count, and to symbol counts if ``emission`` is a name. What
        the structure or the zeros of an ``init`` forbid stays forbidden, whatever the pseudocount.
    init : {"auto", "random", "segmental", "kmeans"} or HMM, default="auto"
        First guess. "segmental" cuts every sequence into n equal parts, "kmeans" clusters vectors, "random" assigns
        at random. "auto" is segmental for left-right models, kmeans for vectors and random for symbols. An HMM also
        says how many states there are, what they emit and whether sequences end; other parameters must not disagree.
    structure : {"ergodic", "left-right"}, default="ergodic"
        Left-right models start in state 0 and stay or go on by one.
    ending : {None, "stop", "end"}, default=None
        Whether to estimate stop probabilities (a distribution over all lengths) or end weights.
    min_covar : float, optional
        Variance floor of Gaussian emissions given by name, in squared units of the data; the default is theirs, none.
    relative_floor : float, optional
        Their floor in units of the variance of each channel: over all sequences in ``fit``, over each one in
        ``fit_each``. The default is theirs, 1e-3.
    zeta : float, default=0.1
        Parameters per observation in the "auto" rule.
    random_state : int, RandomState instance or None, default=None
        Seed. Random numbers depend on it and, in ``fit_each``, on the content of each sequence, never on its place in
        the list; None counts as 0, so that fits are reproducible.
    n_jobs : int, optional
        Threads.
    verbose : int, default=0
        Report EM steps.

    Attributes
    ----------
    model_ : HMM
    converged_ : bool
    n_iter_ : int
        EM steps of the run that was kept.
    history_ : list of float
        Objective after each step, starting with that of the first guess: log-likelihood plus log prior of the
        pseudocounts. It never falls.

    Examples
    --------
    >>> from genkern import HMMEstimator
    >>> X = ["aaabbb", "aabbbb", "aaaabb"]
    >>> HMMEstimator(n_states=2, structure="left-right").fit(X).model_.viterbi(["aaab"])[0]
    array([0, 0, 0, 1], dtype=int32)
    """

    def __init__(
        self,
        n_states: int | str = "auto",
        emission: Any = "auto",
        *,
        n_init: int = 1,
        max_iter: int = 1000,
        tol: float = 1e-5,
        pseudocount: float = 0.01,
        init: Any = "auto",
        structure: str = "ergodic",
        ending: str | None = None,
        min_covar: float | None = None,
        relative_floor: float | None = None,
        zeta: float = 0.1,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.n_states = n_states
        self.emission = emission
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.pseudocount = pseudocount
        self.init = init
        self.structure = structure
        self.ending = ending
        self.min_covar = min_covar
        self.relative_floor = relative_floor
        self.zeta = zeta
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # --- public

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit one model to all sequences.

        Parameters
        ----------
        X : list of sequences, or 2-D array of univariate series
        y : None
            Ignored.

        Returns
        -------
        self
        """
        self._check_parameters()
        begin_fit(self, X, y)
        emission, packed = self._begin(X)
        n = self._states(emission, packed, float(np.median(packed.lengths)))
        run = self._best(emission, packed, n, np.array([seed_of(self.random_state)], np.uint64), own=False)
        self.model_, self.history_ = run.models[0], run.history
        self.converged_, self.n_iter_ = bool(run.converged[0]), int(run.n_iter[0])
        warn_unconverged(run.converged, run.lost, self._limits(), "n_states")
        warn_lone(run, ("state", "component"), self._limits())
        return self

    def fit_each(self, X: Any) -> list[HMM]:
        """Return one model per sequence; each depends on its sequence alone (and the alphabet of all).

        Emissions with ``estimate="map"`` whose prior is not given take it from all sequences, on which every model then
        depends; give ``prior_mean`` and ``prior_scale`` for models that do not.
        """
        self._check_parameters()
        emission, packed = self._begin(X)
        self.check_each(packed)
        lengths, which = np.unique(packed.lengths, return_inverse=True)
        sizes = np.array([self._states(emission, packed, length) for length in lengths])[which]
        keys = self._keys(packed)
        models: list[Any] = [None] * packed.n_objects
        converged, lost = np.ones(packed.n_objects, bool), np.zeros(packed.n_objects)
        for n in np.unique(sizes):
            group = np.flatnonzero(sizes == n)
            if self.verbose:
                report(f"HMMEstimator: fitting {len(group)} models of {n} states")
            run = self._best(emission, packed.take(group), int(n), keys[group], own=True)
            converged[group], lost[group] = run.converged, run.lost
            warn_lone(run, ("state", "component"), self._limits(), group)
            for i, model in zip(group, run.models, strict=True):
                models[i] = model
        warn_unconverged(converged, lost, self._limits(), "n_states")
        return models

    def check_each(self, packed: Packed) -> None:
        """Raise where the emissions cannot be fitted to an object alone; a given first guess needs none."""
        if not isinstance(self.init, HMM):
            self._begin(packed)[0].check_each(packed)

    def maximize(self, statistics: Statistics) -> HMM:
        """Return the model that maximises the expected log-likelihood plus log prior: the M-step.

        Statistics under one model are summed over objects; those under a stack of own models give a stack. The relative
        floor of Gaussians is a share of the channels' variances in the statistics, outliers included, that of ``fit``
        leaves these aside: ``estimator.bounded(estimator.pack(X), own=False).maximize`` is its very step.
        """
        summed = statistics if statistics.model.shape else statistics.total()
        return self._maximize(self._emission_of(statistics.model), summed)

    def resolve(self, X: Any) -> HMMEstimator:
        """Return an estimator that fits parts of X as it would fit the whole (same alphabet)."""
        if isinstance(self.init, HMM):
            return clone(self)
        emission, packed = self._begin(X)
        return clone(self).set_params(emission=emission.resolve(packed), **dict.fromkeys(FLOORS))

    def bounded(self, packed: Packed, own: bool) -> HMMEstimator:
        """Return the estimator with the floors and priors that EM takes from the data: from each object's, if own."""
        emission = self._emission_for(packed).bounded(packed, own)
        return clone(self).set_params(emission=emission, **dict.fromkeys(FLOORS))

    def pack(self, X: Any) -> Packed:
        """Encode raw sequences as ``fit`` does."""
        return self._pack(self._emission_for(X), X)

    # --- what is to be fitted

    def _check_parameters(self) -> None:
        who = "HMMEstimator"
        if self.n_states != "auto":
            check_int(self.n_states, "n_states", who, 1)
        for name, minimum in (("n_init", 1), ("max_iter", 0)):
            check_int(getattr(self, name), name, who, minimum)
        for name in ("tol", "pseudocount"):
            check_number(getattr(self, name), name, who)
        check_number(self.zeta, "zeta", who, exclusive=True)
        check_option(self.structure, ("ergodic", "left-right"), "structure", who)
        if self.ending is not None:
            check_option(self.ending, ("stop", "end"), "ending", who)
        if not isinstance(self.init, HMM):
            check_option(self.init, INITS, "init", who)

    def _begin(self, X: Any) -> tuple[LeafEstimator, Packed]:
        """Return the leaf estimator as EM uses it, and the encoded objects."""
        emission = self._emission_for(X)
        packed = self._pack(emission, X)
        return emission.inside_em(packed), packed

    def _emission_for(self, X: Any) -> LeafEstimator:
        """Return the leaf estimator for the objects."""
        if isinstance(self.emission, LeafEstimator):
            for name in self._floors():
                raise ValueError(f"HMMEstimator: '{name}' belongs to the emission estimator; set it there.")
            return self.emission
        name = check_option(self.emission, ("auto", *FAMILIES), "emission", "HMMEstimator")
        if name == "auto" and isinstance(self.init, HMM):
            return self._emission_of(self.init)
        if name == "auto":
            name = "categorical" if kind_of(X, "HMMEstimator") == "symbols" else "gaussian"
        emission = self._named_emission(name)
        return emission.shaped(self.init.emissions) if isinstance(self.init, HMM) else emission

    def _named_emission(self, name: str) -> LeafEstimator:
        if name == "categorical":
            return CategoricalEstimator(pseudocount=self.pseudocount)
        return GaussianEstimator(**self._floors()) if name == "gaussian" else FAMILIES[name]()

    def _floors(self) -> dict[str, Any]:
        """Return the floors of Gaussian emissions that are given."""
        return {name: getattr(self, name) for name in FLOORS if getattr(self, name) is not None}

    def _emission_of(self, model: HMM) -> LeafEstimator:
        """Return the leaf estimator for a model's emissions."""
        if isinstance(self.emission, LeafEstimator):
            return self.emission
        name = model.emissions.family_name
        if name is None:
            raise ValueError(f"HMMEstimator: give 'emission', an estimator of {type(model.emissions).__name__}.")
        return self._named_emission(name).shaped(model.emissions)

    def _pack(self, emission: LeafEstimator, X: Any) -> Packed:
        """Encode X, with the alphabet of the model to start from if there is one."""
        if not isinstance(self.init, HMM):
            return emission.pack_sequences(X)
        check_start(self.init, self.structure, self.ending)
        family = self.init.emissions.family_name
        if family is not None and not isinstance(emission, FAMILIES[family]):
            raise ValueError(
                f"HMMEstimator: 'init' has emissions {self.init.emissions!r}, and 'emission' is {self.emission!r}. "
                "Make them agree, or leave emission='auto'."
            )
        given = isinstance(self.emission, LeafEstimator)
        return pack_for_start(self.init, emission, X) if given else self.init.pack(X)

    def _states(self, emission: Any, packed: Packed, length: float) -> int:
        if isinstance(self.init, HMM):
            if self.n_states not in ("auto", self.init.n_states):
                raise ValueError(
                    f"HMMEstimator: 'init' has {self.init.n_states} states and n_states is {self.n_states}; make them "
                    "agree, or leave n_states='auto'."
                )
            return self.init.n_states
        if self.n_states == "auto":
            return states_by_length(length, emission.n_free(packed), self.zeta)
        return int(self.n_states)

    # --- EM

    def _keys(self, packed: Packed) -> Keys:
        """Return the keys of the objects' random numbers; none are drawn for a model to start from."""
        if isinstance(self.init, HMM):
            return np.zeros(packed.n_objects, np.uint64)
        return keys_of(seed_of(self.random_state), unit_free_digests(packed))

    def _limits(self) -> Limits:
        return Limits("HMMEstimator", self.max_iter, self.tol, self.verbose)

    def _best(self, emission: LeafEstimator, packed: Packed, n: int, keys: Keys, own: bool) -> Run:
        """Return the best of ``n_init`` runs of EM, chosen for each model by its objective."""
        bounded = bounds_of(emission)

        def guess(part: Packed, some: Restarts, each: bool) -> First:
            return First(self._guess(Plan(part, n, self.structure, each, some.keys), bounded(part, each)))

        def steps(part: Packed, each: bool) -> Steps:
            batch = Batch(bounded(part, each))
            return Steps(
                lambda model, part: model.statistics(part, totals=not model.shape, n_jobs=self.n_jobs),
                lambda statistics: self._maximize(batch.estimator, statistics),
                self._log_prob,
                lambda model: self._log_prior(batch.estimator, model),
                batch.drop if each else None,
                at_floor=(lambda model: batch.estimator.at_floor(model.emissions)) if emission.collapses else None,
                counts=lambda statistics: emission.counts(emission_blocks(statistics), statistics.model.emissions),
                coincide=lambda statistics: batch.estimator.coincide(
                    emission_blocks(statistics), statistics.model.emissions
                ),
            )

        problem = Problem(steps, guess, n, n * n + numbers_in(emission.reference(packed, n, own=False)))
        once = isinstance(self.init, HMM)
        return best_start(problem, self._limits(), 1 if once else self.n_init, packed, keys, own)

    def _guess(self, plan: Plan, emission: LeafEstimator) -> HMM:
        if isinstance(self.init, HMM):
            # One model taken as often as there are objects: the same as a stack of so many, but faster.
            model = HMM.stack([self.init])[np.zeros(plan.packed.n_objects, np.int64)] if plan.own else self.init
            fields = {name: getattr(model, name) for name in model._fields}
            # EM keeps to the floor, and could only fall from a model below it.
            return HMM._restore(*{**fields, "emissions": emission.raised(model.emissions)}.values())
        init = self.init
        numeric = plan.packed.alphabet is None
        if init == "kmeans" and not numeric:
            raise ValueError("HMMEstimator: init='kmeans' needs vectors. Got symbols; use 'segmental' or 'random'.")
        if init == "auto":
            init = "segmental" if self.structure == "left-right" else "kmeans" if numeric else "random"
        return first_guess(plan, emission, init, self.ending)

    def _log_prob(self, model: HMM, packed: Packed) -> Floats:
        """Return the log-likelihood of each object under the model, or under its own."""
        evidence = model.emissions.evidence(packed)
        return core.log_prob(model.chains(), evidence, packed.offsets, n_jobs=self.n_jobs, own=bool(model.shape))

    def _log_prior(self, emission: LeafEstimator, model: HMM) -> Floats:
        """Return the log prior (batch) of pseudocounts on allowed start, transition, stop and emission parameters."""
        prior = emission.log_prior(model.emissions) + log_pseudocounts(model.start, self.pseudocount)
        prior = prior + log_pseudocounts(model.transitions, self.pseudocount, 2)
        return prior if model.final is None else prior + log_pseudocounts(model.final, self.pseudocount)

    def _maximize(self, emission: LeafEstimator, statistics: Statistics) -> HMM:
        """Return the M-step's model, of the batch of the model that the statistics were taken under."""
        model: HMM = statistics.model
        added = np.full(model.n_states, float(self.pseudocount))  # the structure's zeros are the model's own
        start = expected_rows(model.start, statistics["start"], added)
        end = stop = None
        if model.stop is None:
            steps = expected_rows(model.transitions, statistics["transitions"], added)
        else:
            joint = np.concatenate([model.transitions, model.stop[..., None]], axis=-1)
            raw = np.concatenate([statistics["transitions"], statistics["stop"][..., None]], axis=-1)
            rows = expected_rows(joint, raw, np.append(added, self.pseudocount))
            steps, stop = rows[..., :-1], rows[..., -1]
        if model.end is not None:
            end = expected_rows(model.end, statistics["end"], added)
        emissions = emission.maximize_blocks(emission_blocks(statistics), model.emissions)
        return HMM._restore(start, steps, emissions, end, stop)


def states_by_length(length: float, symbols: int, zeta: float = 0.1) -> int:
    r"""Return the number of states for a sequence of given length.

    .. math:: n = \left\lfloor \tfrac12 \left(\sqrt{m^2 + 4(L\zeta + m + 1)} - m\right) \right\rfloor + 1

    The root of :math:`(n - 1)(n + m + 1) = L \zeta` (Jebara, Kondor & Howard 2004, sec. 8.2), at least two.
    """
    return int((math.sqrt(symbols**2 + 4.0 * (length * zeta + symbols + 1)) - symbols) / 2.0) + 1
