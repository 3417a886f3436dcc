"""Maximum likelihood and maximum a posteriori estimation of hidden Markov models, one or thousands at once."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from genkern.data.objects import Packed, kind_of
from genkern.models.base import Statistics
from genkern.models.estimator import Batch, LeafEstimator, bounds_of
from genkern.models.families.categorical import CategoricalEstimator
from genkern.models.families.gaussian_estimator import GaussianEstimator
from genkern.models.fit.chosen import check_size
from genkern.models.fit.em import Run, Steps, finished, replaced
from genkern.models.fit.em_estimator import EMEstimator
from genkern.models.fit.emissions import EMISSIONS
from genkern.models.fit.restarts import First, FitProblem, Restarts, numbers_in
from genkern.models.fit.streams import Keys
from genkern.models.fit.weights import median_length, weighted
from genkern.models.hmm.labels import Labels, check_states, expect, log_prob, read_states
from genkern.models.hmm.model import HMM, emission_blocks
from genkern.models.hmm.names import NamesOfHmmlearn
from genkern.models.hmm.start import (
    StartPlan,
    check_choices,
    check_start,
    first_guess,
    pack_for_start,
    states_by_length,
)
from genkern.models.hmm.step import log_prior, maximize
from genkern.models.mixture.estimator import MixtureEstimator
from genkern.progress import report
from genkern.validation import check_int, check_number, check_option

FAMILIES: dict[str, type[LeafEstimator]] = {**EMISSIONS, "mixture": MixtureEstimator}
INITS = ("auto", "random", "segmental", "kmeans", "viterbi", "gmm")
FLOORS = ("min_covar", "relative_floor")


class HMMEstimator(NamesOfHmmlearn, EMEstimator):
    r"""Hidden Markov models by EM (Baum-Welch), one for all sequences or one for each.

    Parameters
    ----------
    n_states : int, "auto", "aic" or "bic", default="auto"
        Number of states. "aic" and "bic" fit 1, 2, ... states and keep the model with the lowest criterion; the search
        stops after two in a row that are no better. "auto" is the rule of Jebara, Kondor & Howard (2004), sec. 8.2: the
        largest n with about ``zeta`` times as many parameters as observations, of each sequence in ``fit_each`` and of
        the sequence of median length in ``fit``.
    emission : str or leaf estimator, default="auto"
        Family of the observations: "categorical", "gaussian", "bernoulli", "poisson", "geometric", "exponential",
        "gamma", "dirichlet", "multinomial" or "vonmises"; "auto" is categorical for symbols, else gaussian. A leaf
        estimator such as ``GaussianEstimator("full")`` has its own floors and priors.
    n_init : int, default=1
        Restarts from different first guesses; the best is kept. A run with a state at its floor that is fitted to one
        observation, or to few that coincide, loses against one without. Restarts of little data are run together.
    max_iter : int, default=1000
        Largest number of EM steps. Few models need many; in ``fit_each``, models that have converged leave the batch.
    tol : float, default=1e-5
        EM stops when a step gains less than this per observation, and all further steps together, extrapolated from the
        last ones, would gain less than ten times this. Zero runs all steps.
    pseudocount : float, default=0.01
        Added to every allowed start, transition and stop count, and to symbol counts if ``emission`` is a name.
        Transitions that the structure or the zeros of an ``init`` forbid stay forbidden, whatever the pseudocount.
    init : {"auto", "random", "segmental", "kmeans", "viterbi", "gmm"} or HMM, default="auto"
        First guess. "segmental" cuts every sequence into n equal parts, "kmeans" clusters vectors, "random" assigns at
        random. "viterbi" alternates, from random emissions (left-right: from equal parts), best paths and models fitted
        to them; as its first transitions are equal, m symbols occupy at most m states. "gmm" takes the components of a
        Gaussian mixture as states. "auto" is segmental for left-right models, kmeans for vectors and random for
        symbols. An HMM also determines the number of states, the emissions and the ending; other parameters must agree;
        in ``fit_each`` there may be one for each sequence, as a list or a stack.
    structure : {"ergodic", "left-right"}, default="ergodic"
        Left-right models start in state 0 and stay or move to the next state.
    ending : {None, "stop", "end"}, default=None
        Whether to estimate stop probabilities (a distribution over all lengths) or end weights.
    min_covar : float, optional
        Variance floor of Gaussian emissions given by name, in squared units of the data; none by default.
    relative_floor : float, optional
        Their floor in units of the variance of each channel: over all sequences in ``fit``, over each one in
        ``fit_each``. The default is 1e-4.
    zeta : float, default=0.1
        Parameters per observation in the "auto" rule.
    max_states : int, default=20
        Largest number of states that "aic" and "bic" try.
    fixed : tuple of str, default=()
        Parameters that EM keeps at their starting values: "start", "transitions" (and stop), "emissions", "end".
    callback : callable, optional
        Called after each EM step with its number, the model (of several that are fitted together, the stack of those
        that have not converged) and the objective; True ends the run.
    accelerate : bool, default=False
        Whether every third step of EM leaps along the last two (Varadhan & Roland 2008) unless that is worse: far fewer
        steps for models that creep. Restarts and own models are then fitted one by one.
    random_state : int, RandomState instance or None, default=None
        Seed. Random numbers depend on it and, in ``fit_each``, on the content of each sequence, never on its index in
        the list; None is 0, so that fits are reproducible.
    n_jobs : int, optional
        Threads.
    verbose : int, default=0
        1 reports runs and their outcome, 2 every step as well.

    Attributes
    ----------
    model_ : HMM
    converged_ : bool
    n_iter_ : int
        EM steps of the run that was kept.
    history_ : list of float
        Objective after each step, starting with that of the first guess: log-likelihood plus log prior of the
        pseudocounts. It never falls.
    criterion_ : list of float
        The criterion for 1, 2, ... states, if ``n_states`` names one.

    Examples
    --------
    >>> from genkern import HMMEstimator
    >>> X = ["aaabbb", "aabbbb", "aaaabb"]
    >>> HMMEstimator(n_states=2, structure="left-right").fit(X).model_.viterbi(["aaab"])[0]
    array([0, 0, 0, 1], dtype=int32)
    """

    kind = HMM
    chosen, _path = ("n_states", "max_states"), "model_."
    _labels: Labels = None  # known states of the objects in a fit

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
        max_states: int = 20,
        fixed: Any = (),
        callback: Any = None,
        accelerate: bool = False,
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
        self.max_states = max_states
        self.fixed = fixed
        self.callback = callback
        self.accelerate = accelerate
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # --- public

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, states: Any = None) -> Self:
        """Fit one model to all sequences.

        Parameters
        ----------
        X : list of sequences, or 2-D array of univariate series
        y : None
            Ignored.
        sample_weight : array of shape (n_objects,), optional
            Weight of each object: two is the same as giving it twice, zero as leaving it out.
        states : list of integer arrays (T,), optional
            Known states, -1 where unknown: EM sums over the paths that agree with them; if all are known, they are
            counted. They replace an ``init`` given by name, and "auto" then takes the number of states from them.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, states)

    def fit_each(self, X: Any, states: Any = None) -> list[HMM]:
        """Return one model per sequence, of it and its ``states`` (as in ``fit``) alone, and the alphabet of all."""
        return self._fit_each(X, states)

    def check_each(self, packed: Packed) -> None:
        """Raise if the emissions cannot be fitted to a single object; not needed with a given starting model."""
        if self._example is None:
            self._begin(packed)[0].check_each(packed)

    def maximize(self, statistics: Statistics) -> HMM:
        """Return the model that maximises the expected log-likelihood plus log prior: the M-step.

        Statistics under one model are summed over objects; those under a stack of own models give a stack. The relative
        floor of Gaussians is a share of the channels' variances in the statistics, outliers included, while ``fit``
        excludes outliers: ``estimator.bounded(estimator.pack(X), own=False).maximize`` is the M-step of ``fit``.
        """
        summed = statistics if statistics.model.shape else statistics.total()
        return maximize(summed, self._emission_of(statistics.model), self.pseudocount)

    def resolve(self, X: Any) -> HMMEstimator:
        """Return an estimator that fits parts of X as it would fit the whole (same alphabet)."""
        if self._example is not None:
            return clone(self)
        emission, packed = self._begin(X)
        return clone(self).set_params(emission=emission.resolve(packed), **dict.fromkeys(FLOORS))

    def bounded(self, packed: Packed, own: bool) -> HMMEstimator:
        """Return the estimator with floors and priors computed from the data, of each object if own."""
        emission = self._emission_for(packed).bounded(packed, own)
        return clone(self).set_params(emission=emission, **dict.fromkeys(FLOORS))

    def pack(self, X: Any) -> Packed:
        """Encode raw sequences as ``fit`` does."""
        return self._pack(self._emission_for(X), X)

    # --- the fitting problem

    def _check_parameters(self) -> None:
        who = "HMMEstimator"
        if self.n_states != "auto":
            check_size(self.n_states, "n_states", who, ("auto",))
        super()._check_parameters()
        check_int(self.max_states, "max_states", who, 1)
        check_number(self.pseudocount, "pseudocount", who)
        check_number(self.zeta, "zeta", who, exclusive=True)
        check_option(self.structure, ("ergodic", "left-right"), "structure", who)
        if self.ending is not None:
            check_option(self.ending, ("stop", "end"), "ending", who)
        if self._example is None:
            check_option(self.init, INITS, "init", who)
        check_choices(self._example, self.n_states, self.ending, self.fixed)

    def _begin(self, X: Any) -> tuple[LeafEstimator, Packed]:
        """Return the leaf estimator for EM, and the encoded objects."""
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
        if name == "auto" and self._example is not None:
            return self._emission_of(self._example)
        if name == "auto":
            name = "categorical" if kind_of(X, "HMMEstimator") == "symbols" else "gaussian"
        emission = self._named_emission(name)
        return emission.shaped(self._example.emissions) if self._example is not None else emission

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
        if self._example is None:
            return emission.pack_sequences(X)
        given, example = self._given, self._example
        for model in given.unstack() if given.shape else [given]:
            check_start(model, self.structure, self.ending)
        family = example.emissions.family_name
        if family is not None and not isinstance(emission, FAMILIES[family]):
            raise ValueError(
                f"HMMEstimator: 'init' has emissions {example.emissions!r}, and 'emission' is {self.emission!r}. "
                "Make them agree, or leave emission='auto'."
            )
        named = not isinstance(self.emission, LeafEstimator)
        return example.pack(X) if named else pack_for_start(example, emission, X)

    def _states(self, packed: Packed, length: float) -> int:
        if self._example is not None:
            if self.n_states not in ("auto", self._example.n_states):
                raise ValueError(
                    f"HMMEstimator: 'init' has {self._example.n_states} states and n_states is {self.n_states}; make "
                    "them agree, or leave n_states='auto'."
                )
            return int(self._example.n_states)
        if self.n_states == "auto":
            known = 0 if self._labels is None else int(self._labels.max()) + 1
            return known or states_by_length(length, self.emission.n_free(packed), self.zeta)
        return check_int(self.n_states, "n_states", "HMMEstimator with known states", 1)

    # --- EM

    def _keys(self, packed: Packed) -> Keys:
        """Return the keys of the objects' random numbers; none are drawn for a model to start from."""
        if self._example is not None:
            return np.zeros(packed.n_objects, np.uint64)
        return super()._keys(packed)

    def _ready(self, X: Any, own: bool, sample_weight: Any = None, known: Any = None) -> tuple[EMEstimator, Packed]:
        family = self._emission_for(X)
        packed = weighted(lambda Y: self._pack(family, Y), X, sample_weight, "HMMEstimator")
        if own:
            self.check_each(packed)
        inner = copy.copy(self)
        inner.__dict__.update(emission=family.inside_em(packed), **dict.fromkeys(FLOORS))
        if known is not None:
            whole = self._pack(family, X)
            labels, counts = read_states(known, whole, sample_weight)
            inner._labels = labels[counts]
            check_states(labels, whole, inner._states(packed, median_length(packed)))
        return inner, packed

    def _alone(self, packed: Packed, index: int) -> HMMEstimator:
        one = copy.copy(self)
        one._labels = None if self._labels is None else self._labels[slice(*packed.offsets[index : index + 2])]
        return one

    def _runs(self, own: bool) -> int:
        return 1 if self._example is not None else self.n_init

    def _best(self, packed: Packed, keys: Keys, own: bool) -> Run:
        """Return the best of ``n_init`` runs of EM, chosen for each model; own models of one size are run together."""
        if not own:
            return super()._best(packed, keys, own)
        lengths, which = np.unique(packed.lengths, return_inverse=True)
        sizes = np.array([self._states(packed, length) for length in lengths])[which]
        run = finished([None] * packed.n_objects)
        for n in np.unique(sizes):
            group = np.flatnonzero(sizes == n)
            if self.verbose:
                report(f"HMMEstimator: fitting {len(group)} models of {n} states")
            run = replaced(run, group, super()._best(packed.take(group), keys[group], own))
        return run

    def _problem(self, packed: Packed, own: bool) -> FitProblem:
        emission: LeafEstimator = self.emission
        n, labels, bounded = self._states(packed, median_length(packed)), self._labels, bounds_of(emission)

        def guess(part: Packed, some: Restarts, each: bool) -> First:
            plan = StartPlan(part, n, self.structure, each, some.keys, labels)
            return First(self._guess(plan, bounded(part, each)))

        def steps(part: Packed, each: bool) -> Steps:
            batch = Batch(bounded(part, each))
            return Steps(
                lambda model, part: expect(model, part, labels, self.n_jobs),
                lambda statistics: maximize(statistics, batch.estimator, self.pseudocount),
                lambda model, part: log_prob(model, part, labels, self.n_jobs),
                lambda model: log_prior(model, batch.estimator, self.pseudocount),
                batch.drop if each else None,
                at_floor=(lambda model: batch.estimator.at_floor(model.emissions)) if emission.collapses else None,
                counts=lambda statistics: emission.counts(emission_blocks(statistics), statistics.model.emissions),
                coincide=lambda statistics: batch.estimator.coincide(
                    emission_blocks(statistics), statistics.model.emissions
                ),
            )

        return FitProblem(packed, steps, guess, n, n * n + numbers_in(emission.reference(packed, n, own=False)))

    def _fixable(self) -> list[Any]:
        return ["start", "transitions", "emissions", "end"]

    def _keep(self, old: HMM, new: HMM) -> HMM:
        """Return a new model with the fixed parameters of an old one; stop probabilities are part of transitions."""
        fixed = {*self.fixed, *(("stop",) if "transitions" in self.fixed else ())}
        return HMM._restore(*(getattr(old if name in fixed else new, name) for name in HMM._fields))

    def _guess(self, plan: StartPlan, emission: LeafEstimator) -> HMM:
        if self._example is not None:
            model: HMM = self._given_to(plan.packed, plan.own)
            if "emissions" in self.fixed:
                emission.check_kept(model.emissions)
                return model
            fields = {name: getattr(model, name) for name in model._fields}
            # EM respects the floor; from a model below it, the objective could only fall.
            return HMM._restore(*{**fields, "emissions": emission.raised(model.emissions)}.values())
        return first_guess(plan, emission, self.init, self.ending)
