"""Estimation of profile models from unaligned sequences, by EM from a sequence as a seed."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from genkern.data.objects import Packed, as_alphabet, object_digests, pack_symbols
from genkern.models.base import Statistics
from genkern.models.estimator import with_alphabet_of
from genkern.models.fit.em import Run, Steps, expected
from genkern.models.fit.em_estimator import EMEstimator
from genkern.models.fit.streams import Keys, uniforms
from genkern.models.profile.alignment import effective_number
from genkern.models.profile.background import background_of
from genkern.models.profile.flanks import HITS, KINDS
from genkern.models.profile.model import ProfileHMM
from genkern.models.profile.priors import Priors, priors_of
from genkern.validation import Floats, check_int, check_option

STAYS = 1.0, 1.0  # pseudocounts of flanks, to emit and to go on
FITTED = ("match", "insert", "transitions", "flanks")


class ProfileHMMEstimator(EMEstimator):
    r"""Profile models from unaligned sequences of a family, by EM, one for all sequences or one for each.

    A sequence is the seed: its symbols are the columns, whose distributions are posterior means under the prior. EM
    then aligns all sequences to the columns, in all ways at once, and estimates columns and gaps again.

    Parameters
    ----------
    n_columns : int, optional
        Number of columns: the seed is a sequence of about this length, cut or continued by columns of the prior. The
        default is the length of the seed, which is near the median.
    flanks : {"glocal", "local", "global"}, default="glocal"
        How sequences pass through the columns; see ``ProfileHMM.with_flanks``.
    hits : {"one", "several"}, default="one"
        Whether a sequence may pass several times.
    alphabet : str, int, sequence or Alphabet, optional
        The symbols. The default is inferred from all objects given to ``fit``; for proteins, "protein" brings
        their frequencies and priors.
    prior : {"auto", "dirichlet", "blosum"} or float, default="auto"
        As of ``ProfileHMM.from_alignment``.
    effective : {"all", "entropy"} or float, default="all"
        How many independent sequences those given are worth. Other than "all", the counts of the last step are scaled
        to it, and probabilities are posterior means, as in ``ProfileHMM.from_alignment``: for relatives more distant
        than those seen.
    init : ProfileHMM, optional
        A profile to start from, such as one of an alignment; its flanks are taken over.
    n_init : int, default=3
        Seeds; the best model is kept.
    max_iter : int, default=100
        Largest number of EM steps.
    tol : float, default=1e-4
        EM stops when a step gains less than this per symbol, and all further steps together, extrapolated from the
        last ones, would gain less than ten times this. Zero runs all steps.
    missing : symbol, optional
        The symbol of a missing observation. Named alphabets have their own.
    unknown : {"missing", "error"}, optional
        Symbols outside the alphabet are treated as missing, with one warning, or are an error. The
        default is "missing" for an inferred alphabet and "error" for a given one.
    fixed : tuple of str, default=()
        Parameters that EM keeps fixed at their starting values: "match", "insert", "transitions" and "flanks". Entries
        and exits are never fitted.
    callback : callable, optional
        Called after each EM step with its number, the model (in ``fit_each``, a stack of one) and the objective. If it
        returns True, the run ends there.
    random_state : int, RandomState instance or None, default=None
        Seed of random numbers, which choose the sequences to begin with; None is 0, so that fits are reproducible.
    verbose : int, default=0
        1 reports runs and their outcome, 2 every step as well.

    Attributes
    ----------
    model_ : ProfileHMM
    converged_ : bool
    n_iter_ : int
        EM steps of the run that was kept.
    history_ : list of float
        Objective after each step, starting with that of the first guess: log-likelihood plus log density of the prior.
        It never falls.

    References
    ----------
    Krogh et al. (1994), Hidden Markov models in computational biology. Karplus, Barrett & Hughey (1998), Hidden
    Markov models for detecting remote protein homologies.

    Examples
    --------
    >>> from genkern import ProfileHMMEstimator
    >>> X = ["GGVLSEKAG", "VLTEKA", "AVLSDKAGG", "VLSKA"]
    >>> model = ProfileHMMEstimator(n_columns=6, alphabet="protein").fit(X).model_
    >>> [passages[0].text for passages in model.align(X)]
    ['VLSEKA', 'VLTEKA', 'VLSDKA', 'VLS-KA']
    """

    kind = ProfileHMM
    batched = False
    smaller = "n_columns"

    def __init__(
        self,
        n_columns: int | None = None,
        flanks: str = "glocal",
        *,
        hits: str = "one",
        alphabet: Any = None,
        prior: Any = "auto",
        effective: Any = "all",
        init: Any = None,
        n_init: int = 3,
        max_iter: int = 100,
        tol: float = 1e-4,
        missing: Any = None,
        unknown: str | None = None,
        fixed: Any = (),
        callback: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.n_columns = n_columns
        self.flanks = flanks
        self.hits = hits
        self.alphabet = alphabet
        self.prior = prior
        self.effective = effective
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.missing = missing
        self.unknown = unknown
        self.fixed = fixed
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose

    def pack(self, X: Any) -> Packed:
        """Encode symbols with the given or the inferred alphabet."""
        alphabet = self.alphabet if self.alphabet is not None or self._example is None else self._example.alphabet
        return pack_symbols(X, alphabet, type(self).__name__, self.missing, self.unknown)

    def resolve(self, X: Any) -> Self:
        """Return the estimator with the alphabet of all of X."""
        found: Self = with_alphabet_of(self, X)
        return found

    def maximize(self, statistics: Statistics) -> ProfileHMM:
        """Return the model that raises the expected log-likelihood plus log prior most: the M-step."""
        old, summed = statistics.model, statistics.total()
        counts = {name: getattr(old, name) * summed[name][0] for name in FITTED}
        priors = self._priors(old)
        flanks = counts["flanks"] + np.where(old.flanks > 0.0, STAYS, 0.0)
        new = {
            "match": priors.match.mode(counts["match"], old.match),
            "insert": priors.insert.mode(counts["insert"], old.insert),
            "transitions": priors.transitions(counts["transitions"], old.transitions),
            "flanks": flanks / flanks.sum(axis=1, keepdims=True),
        }
        return ProfileHMM._restore(*({name: getattr(old, name) for name in old._fields} | new).values())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # tables of integer codes only
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    # --- EM

    def _check_parameters(self) -> None:
        super()._check_parameters()
        who = type(self).__name__
        check_option(self.flanks, KINDS, "flanks", who)
        check_option(self.hits, HITS, "hits", who)
        if self.n_columns is not None:
            check_int(self.n_columns, "n_columns", who, 1)
        if self.init is not None and self._given is None:
            raise TypeError(f"{who}: 'init' must be a ProfileHMM, or None for a seed. Got {self.init!r:.80}.")

    def _best(self, packed: Packed, keys: Keys, own: bool) -> Run:
        """Return the best run, its model made as general as ``effective`` says."""
        run = super()._best(packed, keys, own)
        if isinstance(self.effective, str) and self.effective == "all":
            return run
        return run._replace(models=[self._keep(model, self._general(model, packed)) for model in run.models])

    def _general(self, model: ProfileHMM, packed: Packed) -> ProfileHMM:
        """Return posterior means given the counts of so many effective sequences."""
        summed, priors, who = expected(model, packed), self._priors(model), type(self).__name__
        match, insert, moves = (getattr(model, name) * summed[name][0] for name in FITTED[:3])
        n = float(packed.n_objects if packed.weights is None else packed.weights.sum())
        factor = effective_number(match, priors.match, model.null, self.effective, n, who) / n
        new = {
            "match": priors.match.mean(factor * match),
            "insert": priors.insert.mean(factor * insert),
            "transitions": priors.transitions(factor * moves, model.transitions),
        }
        return ProfileHMM._restore(*({name: getattr(model, name) for name in model._fields} | new).values())

    def _alone(self, packed: Packed, index: int) -> EMEstimator:
        """Return the estimator as it fits one of the objects, whose callback hears of a stack of one."""
        one, tell = super()._alone(packed, index), self.callback
        if tell is not None:
            one.callback = lambda step, model, objective: tell(step, model.stack([model]), np.array([objective]))
        return one

    def _fixable(self) -> list[Any]:
        return list(FITTED)

    def _runs(self, own: bool) -> int:
        return 1 if own or self._given is not None else self.n_init  # a sequence is its own seed

    def _steps(self, packed: Packed, own: bool) -> Steps:
        return Steps(self._expect, self.maximize, lambda model, part: model.log_prob(part), self._log_prior)

    def _expect(self, model: Any, packed: Packed) -> Statistics:
        return expected(model, packed)

    def _log_prior(self, model: Any) -> Floats:
        flanks = float(np.log(model.flanks[model.flanks > 0.0]).sum())
        return np.array(self._priors(model).log_prior(model.match, model.insert, model.transitions) + flanks)

    def _priors(self, model: ProfileHMM) -> Priors:
        return priors_of(self.prior, model.alphabet, model.null, type(self).__name__)

    def _start(self, packed: Packed, keys: Keys, own: bool) -> Any:
        if self._given is not None:
            return self._given_to(packed, False)
        letters = as_alphabet(packed.alphabet)
        null = background_of(letters)
        priors = priors_of(self.prior, letters, null, type(self).__name__)
        members = letters.members / letters.members.sum(axis=1, keepdims=True)
        members[letters.members.sum(axis=1) == letters.size] = 0.0  # a symbol that may be any says nothing
        counts = members[self._seed(packed, keys)]
        if self.n_columns is not None:
            begin = max(0, (len(counts) - self.n_columns) // 2)
            counts = counts[begin : begin + self.n_columns]
            counts = np.concatenate([counts, np.zeros((self.n_columns - len(counts), letters.size))])
        match = priors.match.mean(counts)
        K = len(match)
        transitions = np.tile(np.array([1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0]), (K + 1, 1))
        insert = priors.insert.mean(np.zeros((K + 1, letters.size)))
        transitions = priors.transitions(np.zeros((K + 1, 7)), transitions)
        model = ProfileHMM(match, insert, transitions, null=null, alphabet=letters)
        mean = max(1.0, (float(np.average(packed.lengths, weights=packed.weights)) - K) / 2.0)
        return model.with_flanks(self.flanks, self.hits, None if self.flanks == "global" else mean)

    def _seed(self, packed: Packed, keys: Keys) -> NDArray[np.int64]:
        """Return the codes of a sequence, one of a few whose lengths are nearest to what is wanted."""
        counts = np.ones(packed.n_objects) if packed.weights is None else packed.weights
        wanted = float(_median(packed.lengths, counts)) if self.n_columns is None else float(self.n_columns)
        far, contents = np.abs(packed.lengths - wanted).tolist(), object_digests(packed)
        order = np.array(sorted(range(packed.n_objects), key=lambda i: (far[i], contents[i])))
        ends = np.cumsum(counts[order])
        near = min(max(3.0, ends[-1] / 5.0), ends[-1])  # so many, by their weights, are near enough
        place = int(np.searchsorted(ends, uniforms(keys, np.zeros(1, np.int64))[0] * near, side="right"))
        chosen = int(order[min(place, len(order) - 1)])
        return packed.values[packed.offsets[chosen] : packed.offsets[chosen + 1]].astype(np.int64)


def _median(lengths: NDArray[np.int64], counts: Floats) -> int:
    """Return the lower median of lengths that count so often."""
    order = np.argsort(lengths, kind="stable")
    ends = np.cumsum(counts[order])
    return int(lengths[order[np.searchsorted(ends, ends[-1] / 2.0)]])
