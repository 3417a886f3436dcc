"""Sequences of symbols of any length: pairs at all lags, gapped triples, windows of properties, odds of models."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, product
from typing import Any

from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import StandardScaler

from genkern.embed import (
    BlockNormalizer,
    Channels,
    CrossFit,
    FisherScore,
    ModelLogOdds,
    MultiScale,
    PowerMap,
    Recode,
    Spectrum,
    UnitTrace,
)
from genkern.embed.recode import reduced_alphabet
from genkern.learn import KernelRidgeClassifierCV
from genkern.models.gaussian_estimator import GaussianEstimator
from genkern.models.markov_estimator import MarkovChainEstimator, PeriodicChainEstimator
from genkern.models.mixture_estimator import MixtureEstimator
from genkern.recipes.series import BLOCKS, STEPS

WIDTHS = (1, 5, 9, 17)  # of windows of properties: a turn, a strand, a helix
ORDERS = range(5)  # of Markov models
PERIODS = {"dna": 3, "rna": 3}  # of codons


def symbols(
    alphabet: Any = None,
    *,
    n_lags: int = 15,
    n_gaps: int = 4,
    groups: Any = "auto",
    table: Any = "auto",
    models: Sequence[Any] | str | None = "auto",
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Pipeline:
    """Return a ridge classifier on a sum of kernels between sequences of symbols that are not aligned.

    Each kernel has its own unit trace (``UnitTrace``), so that all count alike:

    - for each lag, that of Bhattacharyya between the frequencies of pairs of symbols so far apart;
    - the same of triples with gaps, one kernel for every two distances between their symbols, in a reduced alphabet if
      there is one; of nucleotides, which are few, also of words of four;
    - where symbols have numbers, such as the properties of amino acids: Fisher vectors of windows under a Gaussian
      mixture, one kernel per width;
    - where there are models, such as Markov chains of DNA: the log-odds between the models of the classes, of training
      objects out of fold (``CrossFit``).

    Parameters
    ----------
    alphabet : str, int, sequence or Alphabet, optional
        The symbols: "dna", "rna", "protein", an explicit list or their number; the default is those of all objects
        given to ``fit``. The names choose what "auto" means below.
    n_lags : int, default=15
        Pairs are 1, ..., n_lags positions apart.
    n_gaps : int, default=4
        The symbols of a triple are 1, ..., n_gaps positions apart, those of a word of four up to n_gaps - 1.
    groups : "auto", None, str or sequence of sequences, default="auto"
        The reduced alphabet of words with gaps, as in ``Recode``: "murphy10" for proteins, else none.
    table : "auto", None, str, dict or array-like, default="auto"
        The numbers of symbols, as in ``Channels``: "protein" for proteins, else none.
    models : "auto", None or list of estimators, default="auto"
        What is fitted to each class: for DNA and RNA, Markov chains of orders 0 to 4, stationary ones and such of
        period three with a hidden phase; else none. Estimators must have their alphabet.
    random_state : int, default=0
        Seed of the models and of the folds.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    pipeline : Pipeline
        Steps "kernels" (a ``FeatureUnion`` with the parts "pairs", "gapped", "windows" and "odds"), "scale", "ridge".
        Where objects come in groups, choose the penalty by leaving out whole groups:
        ``fit(X, y, ridge__groups=groups)``.

    Notes
    -----
    Frequencies do not know how long an object is; add the length as a feature where it says something. Features are
    dense, some twenty thousand for proteins. The ridge chooses its penalty by the squared error of leave-one-out, which
    is a little steadier than the number of errors.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 3 (Bhattacharyya kernel).
    Leslie & Kuang (2004), Fast string kernels using inexact matching for protein sequences.
    Tsuda et al. (2002), A new discriminative kernel from probabilistic models.

    Examples
    --------
    >>> from genkern.recipes import symbols
    >>> X, y = ["abababab", "babababa", "abababa", "aabbaabb", "abbaabba", "bbaabba"], [0, 0, 0, 1, 1, 1]
    >>> symbols(n_lags=3, n_gaps=1).fit(X, y).predict(["bababa", "baabbaa"])
    array([0, 1])
    """
    name = str(getattr(alphabet, "name", alphabet)).lower()
    protein, period = name == "protein", PERIODS.get(name)
    groups = ("murphy10" if protein else None) if _is_auto(groups) else groups
    table = ("protein" if protein else None) if _is_auto(table) else table
    models = _chains(alphabet, period, random_state) if _is_auto(models) else models
    parts: list[tuple[str, Any]] = [("pairs", _words(alphabet, [(0, lag) for lag in range(1, n_lags + 1)]))]
    gaps = [*product(range(1, n_gaps + 1), repeat=2), *(product(range(1, n_gaps), repeat=3) if period else ())]
    gapped = [tuple(accumulate((0, *steps))) for steps in gaps]
    if groups is None:
        parts.append(("gapped", _words(alphabet, gapped)))
    else:
        reduced = _words(reduced_alphabet(groups, alphabet), gapped)
        parts.append(("gapped", Pipeline([("recode", Recode(groups, alphabet)), ("words", reduced)])))
    if table is not None:
        parts.append(("windows", _windows(table, alphabet, random_state, n_jobs)))
    if models:
        parts.append(("odds", _odds(models, random_state)))
    weights = {"windows": len(WIDTHS) ** 0.5} if table is not None else None
    return Pipeline(
        [
            ("kernels", FeatureUnion(parts, transformer_weights=weights)),
            ("scale", UnitTrace()),
            ("ridge", KernelRidgeClassifierCV(kernel="linear", criterion="squared")),
        ]
    )


def _is_auto(value: Any) -> bool:
    """Return whether a setting is left to the recipe."""
    return isinstance(value, str) and value == "auto"


def _words(alphabet: Any, offsets: Sequence[tuple[int, ...]]) -> FeatureUnion:
    """Return the roots of the frequencies of words, one kernel of unit trace for each way of reading them."""
    return FeatureUnion(
        [
            (
                "-".join(map(str, reads)),
                Pipeline(
                    [
                        ("words", Spectrum(alphabet=alphabet, normalize="frequency", offsets=reads)),
                        ("root", PowerMap(0.5)),
                        ("scale", UnitTrace()),
                    ]
                ),
            )
            for reads in offsets
        ]
    )


def _windows(table: Any, alphabet: Any, random_state: Any, n_jobs: int | None) -> Pipeline:
    """Return Fisher vectors of windows of numbers, of unit trace over all widths together."""
    limits = {"max_iter": STEPS, "tol": 0, "random_state": random_state}
    mixture = MixtureEstimator(16, GaussianEstimator(min_covar=1e-2), **limits)
    scores = BlockNormalizer(FisherScore(mixture, "diagonal", length_norm="length", blocks=BLOCKS))
    return Pipeline(
        [
            ("channels", Channels(table, alphabet)),
            ("scores", MultiScale(scores, widths=WIDTHS, normalize=(False,), n_jobs=n_jobs)),
            ("scale", UnitTrace()),
        ]
    )


def _chains(alphabet: Any, period: int | None, random_state: Any) -> list[Any]:
    """Return Markov chains of all orders, stationary and periodic, for alphabets that have a period."""
    if period is None:
        return []
    smooth = {"alphabet": alphabet, "backoff": 30.0}
    stationary = [MarkovChainEstimator(order, **smooth) for order in ORDERS]
    limits = {"tol": 1e-4, "random_state": random_state}
    return stationary + [PeriodicChainEstimator(order, period, **smooth, **limits) for order in ORDERS]


def _odds(models: Sequence[Any], random_state: Any) -> Pipeline:
    """Return out-of-fold log-odds of class models, each of unit variance: a kernel of unit trace."""
    # Folds in the order of a file would part what stands together there, and models would know less than at the end.
    folds = StratifiedKFold(5, shuffle=True, random_state=random_state)
    union = FeatureUnion([(f"model{i}", ModelLogOdds(model)) for i, model in enumerate(models)])
    return Pipeline([("odds", CrossFit(union, folds)), ("scale", StandardScaler())])
