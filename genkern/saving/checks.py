"""Fitted attributes that compiled code believes, checked before it sees them; and those that are made anew.

A file may say anything. Python code answers what makes no sense by an exception, but C and compiled code read where
indices and sizes point to: these are checked here, one function for each class that hands some to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from genkern.core.words.mean_map import patterns
from genkern.data.coding import Alphabet
from genkern.data.serialize import UnreadableError
from genkern.features.positional import LARGEST
from genkern.validation import check_int

Check = Callable[[Any], None]

METRICS = ("euclidean", "manhattan", "chebyshev", "minkowski", "cosine")  # of neighbours


def _require(right: Any, who: Any, what: str) -> None:
    if not right:
        raise UnreadableError(f"{type(who).__name__}: {what}.")


def _is_array(value: Any, dtype: Any, shape: tuple[int, ...]) -> bool:
    return type(value) is np.ndarray and value.dtype == dtype and value.shape == shape and value.flags.c_contiguous


# --- support vector machines: libsvm reads all of these


def _check_svm(svm: Any) -> None:
    counts, support = svm._n_support, svm.support_
    _require(type(counts) is np.ndarray and counts.ndim == 1, svm, "'_n_support' must be an array")
    _require(counts.dtype == np.int32 and counts.flags.c_contiguous, svm, "'_n_support' must be an array of int32")
    classifier = svm._impl in ("c_svc", "nu_svc")
    classes = len(svm.classes_) if classifier else 2
    _require(len(counts) == classes and (counts >= 0).all(), svm, "'_n_support' does not fit 'classes_'")
    n = int(counts.sum(dtype=np.int64)) if classifier else int(counts[0])
    _require(classifier or counts[1] == n, svm, "'_n_support' must be the same number twice")
    _require(_is_array(support, np.int32, (n,)), svm, "'support_' does not fit '_n_support'")
    rows = svm.shape_fit_[0]
    _require(type(rows) is int, svm, "'shape_fit_' must be ints")
    _require(not n or 0 <= support.min() <= support.max() < rows, svm, "'support_' is out of range")
    pairs = classes * (classes - 1) // 2
    _require(_is_array(svm._intercept_, np.float64, (pairs,)), svm, "'_intercept_' has another shape")
    for name in ("_probA", "_probB"):
        value = getattr(svm, name)
        fits = _is_array(value, np.float64, (0,)) or _is_array(value, np.float64, (pairs if classifier else 1,))
        _require(fits, svm, f"{name!r} has another shape")
    _require(len(svm._probA) == len(svm._probB) or not classifier, svm, "'_probA' and '_probB' differ")
    _require(isinstance(svm._gamma, int | float | np.number), svm, "'_gamma' must be a number")
    _require(type(svm._sparse) is bool, svm, "'_sparse' must be a bool")
    precomputed = svm.kernel == "precomputed" or callable(svm.kernel)
    if svm._sparse:
        _check_sparse_svm(svm, n, classes)
        return
    _require(_is_array(svm._dual_coef_, np.float64, (classes - 1, n)), svm, "'_dual_coef_' has another shape")
    vectors = svm.support_vectors_
    if precomputed:
        _require(_is_array(vectors, np.float64, (0, 0)), svm, "there must be no 'support_vectors_'")
    else:
        _require(_is_array(vectors, np.float64, (n, svm.n_features_in_)), svm, "'support_vectors_' has another shape")


def _check_sparse_svm(svm: Any, n: int, classes: int) -> None:
    vectors, coefficients = svm.support_vectors_, svm._dual_coef_
    for part in (vectors, coefficients):
        _require(sparse.issparse(part) and part.format == "csr", svm, "sparse parts must be CSR matrices")
        _require(part.dtype == np.float64, svm, "sparse parts must hold float64")
    _require(vectors.indices.dtype == vectors.indptr.dtype == np.int32, svm, "indices must be int32")
    _require(vectors.shape == (n, svm.n_features_in_), svm, "'support_vectors_' has another shape")
    _require(len(coefficients.data) == (classes - 1) * n, svm, "'_dual_coef_' has another shape")
    weights = svm.class_weight_
    _require(type(weights) is np.ndarray and weights.dtype == np.float64 and weights.ndim == 1, svm, "wrong weights")


# --- words: indices of columns go into sparse matrices


def _check_vocabulary(vectorizer: Any) -> None:
    words = getattr(vectorizer, "vocabulary_", None)
    if words is not None:
        _require(type(words) is dict and all(type(word) is str for word in words), vectorizer, "words must be strings")
        _require(all(isinstance(i, int | np.integer) for i in words.values()), vectorizer, "columns must be ints")
        _require(
            sorted(words.values()) == list(range(len(words))), vectorizer, "words must have all columns, each once"
        )


def _check_alphabet(spectrum: Any, size: int) -> None:
    _require(type(spectrum.alphabet_) is Alphabet, spectrum, "'alphabet_' must be an alphabet")
    _require(type(spectrum.n_features_out_) is int and spectrum.n_features_out_ == size, spectrum, "wrong width")


def _check_spectrum(spectrum: Any) -> None:
    offsets = spectrum.offsets_
    _require(type(offsets) is tuple, spectrum, "'offsets_' must be a tuple")
    _require(spectrum.offsets is not None or spectrum.k == len(offsets), spectrum, "'offsets_' are not 'k'")
    _require(spectrum._check_offsets() == offsets, spectrum, "'offsets_' are not those of its parameters")
    _require(offsets[-1] < LARGEST, spectrum, "words are too long")
    _check_alphabet(spectrum, spectrum.alphabet_.size ** len(offsets))


def _check_placed(spectrum: Any) -> None:
    who, size = type(spectrum).__name__, spectrum.alphabet_.size
    placed = who == "PositionalSpectrum"
    _require(type(spectrum.ks_) is list, spectrum, "'ks_' must be a list of lengths")
    longest = max(check_int(k, "ks_", who, 1) for k in spectrum.ks_)
    given = spectrum.ks if isinstance(spectrum.ks, str) else list(np.atleast_1d(spectrum.ks))
    _require(given in ("auto", spectrum.ks_), spectrum, "'ks_' are not 'ks'")
    places = check_int(spectrum.length_ if placed else spectrum.n_regions, "places", who, longest if placed else 1)
    _require(max(longest * math.log2(size), math.log2(places)) <= math.log2(LARGEST), spectrum, "words are too many")
    _check_alphabet(spectrum, sum((places - k + 1 if placed else places) * size**k for k in spectrum.ks_))


def _check_mean_map(means: Any) -> None:
    k = check_int(means.order, "order", "EmpiricalMeanMap") + 1
    _require(means._size == k and type(means._size) is int, means, "'_size' is not that of 'order'")
    if means.alphabet_ is None:  # without compiled code
        return
    _require(type(means._sharpness) is float and means._sharpness == means.lam, means, "'_sharpness' is not 'lam'")
    size = means.alphabet_.size
    _require(means._exact_method(size, k) == means.method_, means, "'method_' is not that of its parameters")
    sizes = [len(kept) for kept in patterns(k, means._sharpness)] if means.method_ == "sparse" else [k]
    _check_alphabet(means, sum(size**count for count in sizes))


def _check_characteristic(features: Any) -> None:
    length = 1 if features.length is None else features.length
    shape = (length, features.n_components // 2, features._kind[0])
    _require(_is_array(features.frequencies_, np.float64, shape), features, "'frequencies_' has another shape")
    _require(_is_array(features.log_weights_, np.float64, shape[1:2]), features, "'log_weights_' has another shape")


def _check_neighbours(neighbours: Any) -> None:
    rows = neighbours._fit_X.shape[0]
    metric, how = neighbours.effective_metric_, neighbours.effective_metric_params_
    _require(type(metric) is str and metric in METRICS, neighbours, f"the metric must be among {', '.join(METRICS)}")
    _require(type(how) is dict and set(how) <= {"p"}, neighbours, "the metric must have no parameters but p")
    _require(neighbours.n_samples_fit_ == rows, neighbours, "'n_samples_fit_' is not the number of objects")
    labels, classes = neighbours._y, neighbours.classes_
    _require(type(labels) is np.ndarray and labels.dtype.kind in "iu", neighbours, "labels must be ints")
    several = type(classes) is list
    _require(len(labels) == rows and labels.ndim == 1 + several, neighbours, "labels do not fit objects")
    bounds = [len(part) for part in classes] if several else len(classes)
    _require((labels >= 0).all() and (labels < np.asarray(bounds)).all(), neighbours, "labels are out of range")


CHECKS: dict[str, Check] = {
    "BaseLibSVM": _check_svm,
    "CountVectorizer": _check_vocabulary,
    "Spectrum": _check_spectrum,
    "PlacedSpectrum": _check_placed,
    "EmpiricalMeanMap": _check_mean_map,
    "CharacteristicFeatures": _check_characteristic,
    "NeighborsBase": _check_neighbours,
}


# --- attributes that are not in files, as they follow from others

DERIVED: dict[str, tuple[str, ...]] = {
    "BaseSearchCV": ("scorer_", "_checked_cv_orig"),
    "CountVectorizer": ("_stop_words_id",),  # an address
    "BaseSGD": ("_loss_function_", "loss_function_"),
    "IsotonicRegression": ("f_",),
    "NeighborsBase": ("_tree",),
}


def _rebuild_scorer(search: Any) -> None:
    if hasattr(search, "multimetric_"):
        search.scorer_ = search.scoring if callable(search.scoring) else search._get_scorers()[0]


def _rebuild_loss(learner: Any) -> None:
    learner._loss_function_ = learner._get_loss_function(learner.loss)


def _rebuild_steps(regression: Any) -> None:
    X, y = regression.X_thresholds_, regression.y_thresholds_
    _require(X.ndim == y.ndim == 1 and len(X) == len(y) > 0, regression, "thresholds have another shape")
    regression._build_f(X, y)


def _rebuild_tree(neighbours: Any) -> None:
    from sklearn.neighbors import BallTree, KDTree

    kind = {"kd_tree": KDTree, "ball_tree": BallTree, "brute": None}[neighbours._fit_method]
    how = {"metric": neighbours.effective_metric_, **neighbours.effective_metric_params_}
    neighbours._tree = None if kind is None else kind(neighbours._fit_X, neighbours.leaf_size, **how)


REBUILT: dict[str, Check] = {
    "BaseSearchCV": _rebuild_scorer,
    "BaseSGD": _rebuild_loss,
    "IsotonicRegression": _rebuild_steps,
    "NeighborsBase": _rebuild_tree,
}
