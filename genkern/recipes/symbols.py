"""Sequences of symbols of any length: pairs at all lags, gapped triples, windows of properties, odds of models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate, product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer

from genkern.data.objects import Packed, flat_symbols
from genkern.features.fisher import FisherScore
from genkern.features.model_log_odds import ModelLogOdds
from genkern.features.positional import PositionalSpectrum
from genkern.features.spectrum import Spectrum
from genkern.kernels import RBF
from genkern.learn import KernelRidgeClassifierCV
from genkern.models.families.gaussian_estimator import GaussianEstimator
from genkern.models.markov.estimator import MarkovChainEstimator, PeriodicChainEstimator
from genkern.models.mixture.estimator import MixtureEstimator
from genkern.preprocess.block_normalizer import BlockNormalizer
from genkern.preprocess.channels import Channels
from genkern.preprocess.cross_fit import CrossFit
from genkern.preprocess.maps import PowerMap
from genkern.preprocess.multi_scale import MultiScale
from genkern.preprocess.recode import Recode, reduced_alphabet
from genkern.preprocess.unit_trace import UnitTrace
from genkern.preprocess.windows import Windows
from genkern.recipes.learnt_sum import LARGE, LearntSum
from genkern.recipes.recipe import Alike, Recipe
from genkern.recipes.series import BLOCKS, STEPS
from genkern.validation import Floats, check_bool

WIDTHS = (5, 9, 17)  # of windows of properties: a turn, a strand, a helix
TURNS = (100, 170)  # degrees from one residue to the next, around a helix and along a strand
TAPER = np.hanning(13)[1:-1]  # eleven residues, three turns of a helix
LAGS = range(2, 41, 2)  # between windows of the first width: up to the next helix or strand, or the one after
ORDERS = range(5)  # of Markov models
PERIODS = {"dna": 3, "rna": 3}  # of codons
LEAST = 3  # times the length of words with their gaps that objects must have, as of windows
SHORT = 32  # symbols: in longer objects, words at the ends are few among many
EXTRAS = {"ends": ("pairs_ends", "gapped_ends"), "positions": ("positions",)}
SURE, FEWEST = 2.0, 50  # standard errors by which a further sum must gain, and objects from which that is seen
GAMMA = 0.25  # of the Gaussian kernel: squared distances between proteins are two on average


def symbols(
    alphabet: Any = None,
    *,
    n_lags: int | str = "auto",
    n_gaps: int | str = "auto",
    groups: Any = "auto",
    table: Any = "auto",
    models: Sequence[Any] | str | None = "auto",
    length: bool | str = "auto",
    random_state: Any = 0,
    n_jobs: int | None = None,
    unknown: str | None = None,
    class_weight: Any = None,
) -> Pipeline:
    r"""Return a ridge classifier on a sum of kernels between sequences of symbols that are not aligned.

    Each kernel of words has unit trace (``UnitTrace``), so that all have the same weight:

    - for each lag, that of Bhattacharyya between the frequencies of pairs of symbols so far apart;
    - the same of triples with gaps, one kernel for every two distances between their symbols, in a reduced alphabet if
      there is one; of nucleotides, which are few, also of words of four;
    - where symbols have numbers, such as the properties of amino acids: Fisher vectors of windows under a Gaussian
      mixture, one kernel per width, and the covariances of window means at many lags, of a quarter of their weight,
      together of the weight of all triples; to the properties of amino acids come the hydrophobic moments of helices
      and strands, which often have one side in water;
    - where there are models, such as Markov chains of DNA: the log-odds between the models of the classes, of training
      objects out of fold (``CrossFit``);
    - of proteins, the logarithm of the length, of the weight of all triples; that of all pairs is then the same too.

    Two further sums are tried, and used where the error of leave-one-out is lower with them (``LearntSum``):

    - of short objects, with a median of 32 symbols at most, pairs and triples in which the two ends are symbols too;
    - of objects of one length, words of up to five symbols at each position (``PositionalSpectrum``).

    The ridge uses the sum, and for proteins a Gaussian kernel of its distances: the product of the Gaussian
    kernels of all parts, so that words tell more about objects of a similar length. Of more than 5000 objects there is
    no matrix of kernel values: the ridge uses the same features by themselves, by conjugate gradients (then
    ``solver_`` of the step "ridge" is "conjugate gradients"), its penalty is chosen by a fifth that is held out, and
    the kernel is linear, for proteins too.

    Parameters
    ----------
    alphabet : str, int, sequence or Alphabet, optional
        The symbols: "dna", "rna", "protein", an explicit list or their number; the default is those of all objects
        given to ``fit``. The names choose what "auto" means below.
    n_lags : int or "auto", default="auto"
        Pairs are 1, ..., n_lags positions apart: 30 for proteins, else 15, as far as words with their gaps are no
        longer than a third of the median length.
    n_gaps : int or "auto", default="auto"
        The symbols of a triple are 1, ..., n_gaps positions apart, those of a word of four up to n_gaps - 1: 4, under
        the same bound.
    groups : "auto", None, str or sequence of sequences, default="auto"
        The reduced alphabet of words with gaps, as in ``Recode``: "murphy10" for proteins, else none.
    table : "auto", None, str, dict or array-like, default="auto"
        The numbers of symbols, as in ``Channels``: "protein" for proteins, else none. Only "protein" has moments.
    models : "auto", None or list of estimators, default="auto"
        Estimators of the models of each class: for DNA and RNA, Markov chains of orders 0 to 4, stationary ones and
        such of period three with a hidden phase; else none. Estimators must have their alphabet.
    length : bool or "auto", default="auto"
        Whether the length of an object is a feature: for proteins, else not.
    random_state : int, default=0
        Seed of the models and of the folds.
    n_jobs : int, optional
        Threads.
    unknown : {"missing", "error"}, optional
        Symbols outside the alphabet are treated as missing, with a warning, or are an error. The
        default is "missing" for an inferred alphabet and "error" for a given one.
    class_weight : None, "balanced" or dict of label to weight, default=None
        Weights of the losses of the classes' objects; "balanced" gives all classes the same weight together.

    Returns
    -------
    pipeline : Pipeline
        Steps "kernels" (a ``LearntSum`` with the parts "pairs", "gapped", "windows", "odds", "length", and those that
        are tried, "pairs_ends", "gapped_ends", "positions") and "ridge". With ``set_params(ridge__kernel="linear")``
        proteins have coefficients too, and can be explained.
        Where objects come in groups, penalty and log-odds leave out whole groups: ``fit(X, y, groups=groups)``.

    Notes
    -----
    A hydrophobic moment is :math:`|\sum_j w_j h_{t+j} e^{i \theta j}|` with the hydropathy h of eleven residues,
    weights w that fall off to both sides, and the angle :math:`\theta` from one residue to the next, seen along the
    axis: 100 degrees in a helix, 170 in a strand. It is large where one side is hydrophobic and the other is not.

    Frequencies do not depend on the length of an object; hence ``length``, where it is informative. Features are dense,
    some thirty thousand for proteins. The ridge chooses its penalty by the squared error of leave-one-out, which is a
    little steadier than the number of errors.

    The bound on lags is that of the widths of windows in ``MultiScale``. On the training part of a set of surnames (18
    languages, median length 7) leave-one-out errs in 29.3 % with all lags, 27.9 % up to two, and with ends in 27.3 and
    24.3 %. Among 700 splice junctions and 700 donor sites words by position lowered its squared error from 0.535 to
    0.194 and from 0.424 to 0.258; within exons and introns, which are cut to one length but not aligned, from 0.499 to
    0.497 at best, which is less than two standard errors, so that they are left out. With one standard error and from
    twenty objects on, which serves series, words by position were taken among eighty strings without any meaning.

    The settings for proteins were chosen by leave-one-out on domains of SCOPe, one of each family and none of those
    on which the errors between classes are measured (``benchmarks/league``). From 15 lags, 16 components, no length and
    no Gaussian kernel to 30, 32 and both, the squared error fell from 0.295 to 0.285 between classes a and b, and from
    0.61 to 0.58 and 0.62 to 0.58 between c and d (two draws). Moments, covariances and equal weights of the parts came
    next, and on three further draws it fell from 0.282 to 0.261 between a and b, and from 0.651 to 0.623 and 0.628 to
    0.617 between c and d (errors from 5.8 to 5.4 %, 23.9 to 22.4 % and 21.3 to 21.6 %). Other reduced alphabets, words
    of four in six groups, words by region, wider windows, more components, hidden Markov models of windows, pairs of
    their states at many lags, scores of local alignments and support vector machines gave little or nothing.

    References
    ----------
    Eisenberg, Weiss & Terwilliger (1984), The hydrophobic moment detects periodicity in protein hydrophobicity.
    Jebara, Kondor & Howard (2004), Probability product kernels, section 2.1 (Bhattacharyya kernel).
    Leslie & Kuang (2004), Fast string kernels using inexact matching for protein sequences.
    Tsuda et al. (2002), A new discriminative kernel from probabilistic models.
    Wold et al. (1993), DNA and peptide sequences and chemical processes multivariately modelled by principal component
    analysis and partial least-squares projections to latent structures (covariances of properties at lags).

    Examples
    --------
    >>> from genkern.recipes import symbols
    >>> X, y = ["abababab", "babababa", "abababa", "aabbaabb", "abbaabba", "bbaabba"], [0, 0, 0, 1, 1, 1]
    >>> symbols(n_lags=3, n_gaps=1).fit(X, y).predict(["bababa", "baabbaa"])
    array([0, 1])
    """
    if not _is_auto(length):
        check_bool(length, "length", "symbols, if not 'auto',")
    name = str(getattr(alphabet, "name", alphabet)).lower()
    protein, period = name == "protein", PERIODS.get(name)
    groups = ("murphy10" if protein else None) if _is_auto(groups) else groups
    table = ("protein" if protein else None) if _is_auto(table) else table
    models = _chains(alphabet, period, random_state, unknown) if _is_auto(models) else models
    lags: Any = (30 if protein else 15) if _is_auto(n_lags) else n_lags
    steps: Any = 4 if _is_auto(n_gaps) else n_gaps
    pairs = [(0, lag) for lag in range(1, lags + 1)]
    gaps = [*product(range(1, steps + 1), repeat=2), *(product(range(1, steps), repeat=3) if period else ())]
    gapped = [tuple(accumulate((0, *distances))) for distances in gaps]
    # The Gaussian kernel needs dense features.
    words = partial(_words, sparse=False if protein else "auto", unknown=unknown)
    parts: list[tuple[str, Any]] = []
    extras: list[tuple[str, Any]] = []
    for end in ("", "_ends"):
        read = partial(words, ends=bool(end))
        found = extras if end else parts
        found.append((f"pairs{end}", read(alphabet, pairs, least=LEAST * _is_auto(n_lags))))
        few = alphabet if groups is None else reduced_alphabet(groups, alphabet, unknown)
        triples: Any = read(few, gapped, least=LEAST * _is_auto(n_gaps))
        if groups is not None:
            triples = Pipeline([("recode", Recode(groups, alphabet, unknown)), ("words", triples)])
        found.append((f"gapped{end}", triples))
    extras.append(("positions", PositionalSpectrum("auto", alphabet, unknown, lengths="any")))
    if table is not None:
        parts.append(("windows", _windows(table, alphabet, random_state, n_jobs, unknown)))
    if models:
        parts.append(("odds", _odds(models, random_state)))
    if protein if _is_auto(length) else length:
        logs = OfObjects(_log_lengths, feature_names_out=_length_name)
        parts.append(("length", Pipeline([("log", logs), ("scale", UnitTrace())])))
    kernel = RBF(GAMMA) if protein else "linear"
    ridge = KernelRidgeClassifierCV(kernel=kernel, criterion="squared", class_weight=class_weight, exact=LARGE)
    alike = {"windows": steps, "length": steps} | ({"pairs": steps / lags**0.5} if protein else {})  # to be squared
    weights = {name: alike[name] for name, _ in parts if name in alike}
    kernels = SymbolSum([*parts, *extras], extras=EXTRAS, transformer_weights=weights, sure=SURE, fewest=FEWEST)
    return Recipe([("kernels", kernels), ("ridge", ridge)])


class SymbolSum(LearntSum):
    """The sum of the kernels of words and the rest, and of the ends of short objects and places in aligned ones."""

    def offered(self, X: Any) -> set[str]:
        """Return which further sums are tried: "ends" of short objects, "positions" in objects of one length.

        Parameters
        ----------
        X : list of n objects
        """
        lengths = X.lengths if isinstance(X, Packed) else np.diff(flat_symbols(X, "symbols").offsets)
        short, alike = np.median(lengths) <= SHORT, lengths.min() == lengths.max()
        return {name for name, tried in (("ends", short), ("positions", alike)) if tried}


class OfObjects(FunctionTransformer):
    """A function of lists of objects, with names of its results; objects have no columns to check."""

    def fit(self, X: Any, y: Any = None) -> OfObjects:
        """Learn the number of channels: one for symbols."""
        shape = np.shape(X[0])
        self.n_channels_ = shape[1] if len(shape) == 2 else 1
        return self

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return ``feature_names_out`` of the names of the input channels, or of x0, x1, ..."""
        names = [f"x{c}" for c in range(self.n_channels_)] if input_features is None else input_features
        return np.array(self.feature_names_out(self, names), dtype=object)


def _is_auto(value: Any) -> bool:
    """Return whether a setting is "auto"."""
    return isinstance(value, str) and value == "auto"


def _words(
    alphabet: Any,
    offsets: Sequence[tuple[int, ...]],
    *,
    sparse: bool | str,
    unknown: str | None,
    ends: bool,
    least: float,
) -> FeatureUnion:
    """Return the roots of the frequencies of words, one kernel of unit trace for each way of reading them.

    Words without gaps count however short objects are.
    """
    how = {"alphabet": alphabet, "sparse": sparse, "normalize": "frequency", "unknown": unknown, "ends": ends}
    spectra = [Spectrum(offsets=o, **how, least=least if o[-1] >= len(o) else 0.0) for o in offsets]
    steps = [[("words", spectrum), ("root", PowerMap(0.5)), ("scale", UnitTrace())] for spectrum in spectra]
    return FeatureUnion([("-".join(map(str, o)), Pipeline(each)) for o, each in zip(offsets, steps)])


def _windows(table: Any, alphabet: Any, random_state: Any, n_jobs: int | None, unknown: str | None) -> Pipeline:
    """Return Fisher vectors of windows of numbers and covariances of their means, of unit trace together."""
    limits = {"max_iter": STEPS, "tol": 0, "random_state": random_state}
    mixture = MixtureEstimator(32, GaussianEstimator(min_covar=1e-2), **limits)
    scores = BlockNormalizer(FisherScore(mixture, "diagonal", length_norm="length", blocks=BLOCKS))
    scales = MultiScale(scores, widths=WIDTHS, normalize=(False,), n_jobs=n_jobs)
    means = Windows(WIDTHS[0], n_dct=0)
    lags = OfObjects(_covariances, feature_names_out=_covariance_names)
    kernels = [
        ("scores", Pipeline([("scores", scales), ("scale", UnitTrace())])),
        ("covariances", Pipeline([("means", means), ("lags", lags), ("scale", UnitTrace())])),
    ]
    moments = OfObjects(_moments, feature_names_out=_moment_names)
    return Pipeline(
        [
            ("channels", Channels(table, alphabet, unknown)),
            *([("moments", moments)] if isinstance(table, str) and table == "protein" else []),
            ("kernels", FeatureUnion(kernels, transformer_weights={"covariances": 0.5})),
            ("scale", UnitTrace()),
        ]
    )


def _moments(X: Any) -> list[Floats]:
    """Return series with one more channel per angle: the moments of their first channel."""
    waves = np.exp(1j * np.deg2rad(np.outer(np.arange(max(map(len, X))), TURNS)))
    ends = [(len(TAPER) // 2,) * 2, (0, 0)]
    padded = [np.pad(series[:, :1] * waves[: len(series)], ends) for series in X]
    sums = [sliding_window_view(values, len(TAPER), axis=0) @ TAPER for values in padded]
    return [np.concatenate([series, np.abs(moments)], axis=1) for series, moments in zip(X, sums)]


def _moment_names(transformer: Any, names: Any) -> list[str]:
    """Return the names of the channels, and of the moments after them."""
    return [*names, *(f"moment{turn}" for turn in TURNS)]


def _covariances(X: Any) -> Floats:
    """Return the mean products of channels at all lags, (n, lags d d), zero where a series is not so long."""
    products = [[series[:-lag].T @ series[lag:] / max(len(series) - lag, 1) for lag in LAGS] for series in X]
    return np.reshape(products, (len(products), -1))


def _covariance_names(transformer: Any, names: Any) -> list[str]:
    """Return the names of the products of channels at all lags."""
    return [f"{a}*{b}@{lag}" for lag in LAGS for a in names for b in names]


def _log_lengths(X: Any) -> Floats:
    """Return log(1 + length) of each object, (n, 1)."""
    return np.log1p([[len(x)] for x in X])


def _length_name(transformer: Any, input_features: Any) -> list[str]:
    """Return the name of the only feature."""
    return ["length"]


def _chains(alphabet: Any, period: int | None, random_state: Any, unknown: str | None) -> list[Any]:
    """Return Markov chains of all orders, stationary and periodic, for alphabets that have a period."""
    if period is None:
        return []
    smooth = {"alphabet": alphabet, "backoff": 30.0, "unknown": unknown}
    stationary = [MarkovChainEstimator(order, **smooth) for order in ORDERS]
    limits = {"tol": 1e-4, "random_state": random_state}
    return stationary + [PeriodicChainEstimator(order, period, **smooth, **limits) for order in ORDERS]


def _odds(models: Sequence[Any], random_state: Any) -> Pipeline:
    """Return out-of-fold log-odds of class models, each of unit variance: a kernel of unit trace."""
    # Folds in the order of a file would separate similar objects, so that models of folds would differ from the final
    # ones.
    folds = StratifiedKFold(5, shuffle=True, random_state=random_state)
    union = FeatureUnion([(f"model{i}", ModelLogOdds(model)) for i, model in enumerate(models)])
    return Pipeline([("odds", CrossFit(union, folds)), ("scale", Alike())])
