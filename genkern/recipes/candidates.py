"""What may be tried on each kind of objects, cheap first."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

from genkern.data.alphabets import Alphabet, as_alphabet, infer_flat
from genkern.data.flatten import Flat, flatten_symbols
from genkern.data.kinds import KINDS, biological, n_directions
from genkern.data.objects import Packed
from genkern.learn import PlugInClassifier
from genkern.models.families.categorical import CategoricalEstimator
from genkern.models.families.gaussian_estimator import GaussianEstimator
from genkern.models.hmm.estimator import HMMEstimator
from genkern.models.markov.estimator import MarkovChainEstimator, PositionalChainEstimator
from genkern.models.mixture.estimator import MixtureEstimator
from genkern.preprocess.maps import PowerMap
from genkern.preprocess.scaling import ScaleSeries
from genkern.recipes.aligned import BACKOFF, aligned_symbols
from genkern.recipes.points import points
from genkern.recipes.recipe import Recipe
from genkern.recipes.series import STEPS, contours, series
from genkern.recipes.svm import fisher_svm, linear_svm, product_svm, spectrum_svm
from genkern.recipes.symbols import symbols
from genkern.recipes.text import WordCounts, text
from genkern.validation import check_option

WORDS = 1000  # contexts and symbols of a chain, at most
SPELLED = 4096  # words of a spectrum, at most: so many may an ambiguous one spell
ORDERS, LENGTHS = range(4, -1, -1), range(5, 0, -1)  # of chains and of words: the largest that is within
POSITIONS = 1 << 20  # parameters of a chain by position, at most


def candidates(kind: str, X: Any, *, random_state: Any = 0, n_jobs: int | None = None) -> dict[str, Any]:
    """Return the recipes that may be tried on objects of a kind, unfitted, by name, cheap first.

    Parameters
    ----------
    kind : {"series", "symbols", "codes", "documents", "points"}
        What the objects are, as ``genkern.data.kinds.detect_kind`` says it.
    X : list of n objects
        The training objects: their alphabet becomes that of the recipes ("dna", "rna" and "protein" are recognised),
        and where all are of one length, recipes for aligned ones are candidates too. Labels play no part.
    random_state : int, default=0
        Seed of the recipes.
    n_jobs : int, optional
        Threads or processes of the recipes.

    Returns
    -------
    recipes : dict of str to classifier

    Notes
    -----
    The first ones are simple: a model per class (``PlugInClassifier``), counts of words. They cost little, tell what
    the rest is worth, and win where their models are right.

    Examples
    --------
    >>> from genkern.recipes import candidates
    >>> list(candidates("symbols", ["ACGT", "GATA"]))
    ['plug_in', 'plug_in_aligned', 'spectrum_svm', 'symbols', 'aligned_symbols']
    >>> list(candidates("documents", ["my thesis advisor", "professor of computing"]))
    ['words_svm', 'text']
    """
    check_option(kind, KINDS, "kind", "candidates")
    shared = {"random_state": random_state, "n_jobs": n_jobs}
    if kind == "series":
        return _of_series(shared)
    if kind == "points":
        return _of_points(shared)
    if kind == "documents":
        return {"words_svm": _words_svm(random_state), "text": text(**shared)}
    flat = flatten_symbols(X.objects() if isinstance(X, Packed) else X, "candidates")
    alphabet = _alphabet(flat)
    if kind == "codes":
        count = n_directions(flat)
        named = "01234567"[:count] if isinstance(alphabet.symbols[0], str) else count
        return _simple(as_alphabet(named), random_state) | {"contours": contours(named, **shared)}
    return _of_symbols(flat, alphabet, shared)


def _alphabet(flat: Flat) -> Alphabet:
    """Return the alphabet of all objects: a named one that fits, or their symbols; others will count as missing."""
    name = biological(flat)
    if name is not None:
        return as_alphabet(name)
    if isinstance(flat.symbols, np.ndarray):  # symbols by kind=, also where they are not few and small
        return as_alphabet(np.unique(flat.symbols).tolist(), unknown="missing")
    return infer_flat(flat, None, "candidates")


def _of_symbols(flat: Flat, alphabet: Alphabet, shared: dict[str, Any]) -> dict[str, Any]:
    """Return the recipes for sequences of symbols, with those for aligned ones where all have one length."""
    lengths = np.diff(flat.offsets)
    found = _simple(alphabet, shared["random_state"])
    aligned = lengths.min() == lengths.max() > 1
    if aligned and lengths[0] * alphabet.size**2 <= POSITIONS:
        chain = PositionalChainEstimator(1, alphabet=alphabet, backoff=BACKOFF)
        found = {"plug_in": found["plug_in"], "plug_in_aligned": PlugInClassifier(chain)} | found
    if not aligned:
        found["fisher_svm"] = fisher_svm(emission=CategoricalEstimator(alphabet=alphabet), **shared)
    found["symbols"] = symbols(alphabet, **shared)
    if aligned:
        orders = [k for k in range(4) if lengths[0] * alphabet.size ** (k + 1) <= POSITIONS]
        found["aligned_symbols"] = aligned_symbols(alphabet=alphabet, orders=orders, n_jobs=shared["n_jobs"])
    return found


def _simple(alphabet: Alphabet, random_state: Any) -> dict[str, Any]:
    """Return a Markov chain per class and counts of words, as long as the alphabet allows."""
    order = next((k for k in ORDERS if alphabet.size ** (k + 1) <= WORDS), 0)
    chain = MarkovChainEstimator(order, alphabet=alphabet, backoff=BACKOFF if order else 0.0)
    k = next((k for k in LENGTHS if alphabet.size**k <= SPELLED), 1)
    return {
        "plug_in": PlugInClassifier(chain),
        "spectrum_svm": spectrum_svm(k, alphabet=alphabet, random_state=random_state),
    }


def _of_series(shared: dict[str, Any]) -> dict[str, Any]:
    """Return the recipes for series."""
    chain = HMMEstimator(5, structure="left-right", min_covar=0.01, **shared)
    return {
        "plug_in": Recipe([("scale", ScaleSeries()), ("classifier", PlugInClassifier(chain))]),
        "fisher_svm": fisher_svm(5, structure="left-right", **shared),
        "series": series(**shared),
    }


def _of_points(shared: dict[str, Any]) -> dict[str, Any]:
    """Return the recipes for sets of points: a mixture per class, a Gaussian per set, Fisher vectors of a mixture."""
    limits = {"max_iter": STEPS, "tol": 0, "random_state": shared["random_state"]}
    mixture = MixtureEstimator(4, GaussianEstimator(min_covar=1e-2), **limits)
    return {
        "plug_in": Recipe([("scale", ScaleSeries()), ("classifier", PlugInClassifier(mixture))]),
        "product_svm": product_svm(kind="points", **shared),
        "points": points(**shared),
    }


def _words_svm(random_state: Any) -> Pipeline:
    """Return a linear SVM on roots of counts of words, of unit length: the Bhattacharyya kernel of documents."""
    svm = linear_svm(1.0, random_state, None)
    return Recipe([("counts", WordCounts()), ("root", PowerMap(0.5)), ("norm", Normalizer()), ("svm", svm)])
