"""Out-of-fold features: features of an embedding that was fitted without the labels of the objects."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone
from sklearn.pipeline import FeatureUnion
from sklearn.utils import _safe_indexing, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from genkern.data.digests import make_key
from genkern.data.objects import (
    Packed,
    flat_symbols,
    kind_of,
    object_digests,
    pack_series,
    remember_part,
    remember_width,
)
from genkern.data.transformer import Transformer, effort
from genkern.features.class_models import check_labels
from genkern.features.model_log_odds import ModelLogOdds
from genkern.preprocess.folds import make_folds, parts_of_folds
from genkern.progress import each, taken
from genkern.validation import one_warning_each

Ints = NDArray[np.int64]
NEW = -1  # the fold of objects that are no training objects


class CrossFit(Transformer):
    r"""Features of an embedding that uses labels, of training objects out of fold.

    .. math:: \phi(x_i) = \phi_{-f(i)}(x_i) \text{ for training objects}, \qquad \phi(x) = \phi_{\text{all}}(x)
              \text{ for all others}

    where :math:`\phi_{-f}` is fitted without fold f. Class models are fitted with the labels of training objects, so
    that their features separate these better than new ones, and a learner fitted on such features gives them too much
    weight. Out-of-fold features of training objects have nearly the same distribution as those of new objects.

    Parameters
    ----------
    embedding : transformer
        The embedding, clones of which are fitted to the training parts of all folds and to all objects:
        ``TopScore(...)``, ``FisherScore(..., per_class=True)``, ``LogOddsWeights()``, or a pipeline of transformers.
    cv : int, cross-validation generator or iterable of (train, test), default=5
        How objects are divided into folds, as in ``GridSearchCV``; every object must be in one test part. An int means
        so many stratified folds. If there are groups, no two of stratified folds (an int or ``StratifiedKFold``) have
        objects of the same one.

    Attributes
    ----------
    embedding_ : transformer
        Fitted to all training objects.
    fold_embeddings_ : list of transformers
        Each fitted without the objects of one fold.
    folds_ : ndarray of shape (n,)
        The fold of each training object.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    n_features_out_ : int

    Notes
    -----
    **Features never leak.** Training objects are recognised by their content (a digest), so that
    ``transform`` gives them their out-of-fold features too: ``fit(X, y).transform(X)`` is ``fit_transform(X, y)``, and
    the training score of a pipeline is an honest one. Training objects of equal content are in one fold, that of the
    first of them; groups that share such an object are one group. An object counts as a different one if it is written
    differently (a lower-case letter, a rounded number).

    Features of all folds must have the same meaning: where their names (or, without names, their numbers) differ, as
    those of an alphabet that is inferred from each training part, or those that ``TopScore(standardize=True)`` keeps,
    ``fit`` raises. It also raises if the training part of a fold lacks a class. Class models of ``ModelLogOdds``
    (or a ``FeatureUnion`` of such) without an alphabet get that of all objects.

    References
    ----------
    Wolpert (1992), Stacked generalization, Neural Networks 5.
    Chernozhukov et al. (2018), Double/debiased machine learning for treatment and structural parameters, section 3.

    Examples
    --------
    >>> from genkern import CrossFit, MarkovChainEstimator, TopScore
    >>> X, y = ["aaab", "aabaa", "abaa", "bbab", "bbb", "babb"], [0, 0, 0, 1, 1, 1]
    >>> top = CrossFit(TopScore(MarkovChainEstimator(order=0, alphabet="ab")), cv=3)
    >>> top.fit_transform(X, y)[:3, 0].round(2)  # log-odds that class models without the object give it
    array([-3.71, -3.29, -3.71])
    >>> top.transform(["aaab", "aaba"])[:, 0].round(2)  # a training object and a new one
    array([-3.71, -3.05])
    """

    _fitted = "_count"
    __metadata_request__fit: ClassVar = {"groups": True}

    def __init__(self, embedding: Any, cv: Any = 5):
        self.embedding = embedding
        self.cv = cv

    @one_warning_each()
    def fit(self, X: Any, y: Any = None, groups: ArrayLike | None = None) -> Self:
        """Fit the embedding without each fold, and to all objects.

        Parameters
        ----------
        X : list of n objects, or matrix of n rows
        y : array-like of shape (n,)
            Labels.
        groups : array-like of shape (n,), optional
            Objects of one group (a speaker, a family) are in one fold.

        Returns
        -------
        self
        """
        labels = check_labels(y, "CrossFit")
        remember_width(self, X, reset=True)
        contents = _contents(X)
        check_consistent_length(contents, labels)
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise ValueError(
                f"CrossFit needs objects of at least two classes. Got one class, {self.classes_.tolist()[0]!r}."
            )
        self._fold_of: dict[str, int] = {}
        for content, fold in zip(contents, self._split(contents, labels, groups).tolist()):
            self._fold_of.setdefault(content, fold)
        self.folds_ = np.array([self._fold_of[content] for content in contents])
        embedding, count = _with_alphabets(clone(self.embedding), X), int(self.folds_.max()) + 1
        with taken(self._effort(), "CrossFit"):
            self.embedding_, *self.fold_embeddings_ = [
                self._fit_without(fold, embedding, X, labels) for fold in each(range(NEW, count))
            ]
        self._check_features(X)
        return self

    @one_warning_each()
    def fit_transform(self, X: Any, y: Any = None, groups: ArrayLike | None = None) -> Any:
        """Fit, and return the out-of-fold features of the training objects.

        Parameters
        ----------
        X : list of n objects, or matrix of n rows
        y : array-like of shape (n,)
            Labels.
        groups : array-like of shape (n,), optional
            Objects of one group are in one fold.

        Returns
        -------
        features : ndarray or CSR matrix of shape (n, n_features)
        """
        self.fit(X, y, groups)
        return self._embed(X, self.folds_)

    @one_warning_each()
    def _transform(self, X: Any) -> Any:
        return self._embed(X, self._folds(X))

    def embeddings_of(self, X: Any) -> list[Any]:
        """Return the embedding of each object: for a training object, one that was fitted without it.

        Parameters
        ----------
        X : list of n objects, or matrix of n rows
        """
        check_is_fitted(self, "embedding_")
        return [self._of_fold(fold) for fold in self._folds(X).tolist()]

    def _folds(self, X: Any) -> Ints:
        """Return the fold of each object, ``NEW`` for those that are no training objects."""
        return np.array([self._fold_of.get(content, NEW) for content in _contents(X)])

    def _names_out(self, given: Any) -> Any:
        return self.embedding_.get_feature_names_out(given)

    def _width(self) -> int:
        return self._count

    def _split(self, contents: list[str], labels: NDArray[Any], groups: ArrayLike | None) -> Ints:
        """Return the fold (n,) of each object; groups that share a content are one."""
        who, owners = "CrossFit", None
        if groups is not None:
            given = column_or_1d(groups)
            check_consistent_length(labels, given)
            owners = _joined(given, contents)
            who += " (in which groups that share an object are one)" if (owners != given).any() else ""
        return fold_numbers(make_folds(self.cv, labels, owners, who), labels, owners, who)

    def _fit_without(self, fold: int, embedding: Any, X: Any, labels: NDArray[Any]) -> Any:
        """Return the embedding fitted without a fold, or, for ``NEW``, to all objects."""
        if fold == NEW:
            return clone(embedding).fit(X, labels)
        rows = np.flatnonzero(self.folds_ != fold)
        lost = np.setdiff1d(self.classes_, labels[rows])
        if len(lost):
            raise ValueError(
                f"CrossFit: there are no objects of class {lost.tolist()[0]!r} outside of fold {fold}, and "
                f"{np.sum(labels == lost[0])} in all. Expected at least 2 that differ, one to learn from and one to "
                "leave out, in stratified folds: give more objects of it, or leave the class out."
            )
        return clone(embedding).fit(take(X, rows), labels[rows])

    def _check_features(self, X: Any) -> None:
        """Refuse folds whose features are not those of the full fit, and count these."""
        first = take(X, np.arange(1))
        named = hasattr(self.embedding_, "get_feature_names_out")
        features = [
            embedding.get_feature_names_out().tolist() if named else embedding.transform(first).shape[1]
            for embedding in (self.embedding_, *self.fold_embeddings_)
        ]
        for fold, own in enumerate(features[1:]):
            if own != features[0]:
                got = f"{len(own)} and {len(features[0])} features" if named else f"{own} and {features[0]} features"
                raise ValueError(
                    f"CrossFit: the features of fold {fold} and those of all objects differ ({got}). Fix what is "
                    "inferred from the training objects, e.g. give the alphabet=, and keep all features."
                )
        self._count = len(features[0]) if named else features[0]

    def _embed(self, X: Any, folds: Ints) -> Any:
        """Return the features (n, n_features_out_) of objects by the embedding of their fold."""
        present = np.unique(folds)
        if len(present) <= 1:
            return self._of_fold(present[0] if len(present) else NEW).transform(X)
        rows = [np.flatnonzero(folds == fold) for fold in present]
        parts = [self._of_fold(fold).transform(take(X, own)) for fold, own in zip(present, rows)]
        back = np.argsort(np.concatenate(rows))
        return (sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts))[back]

    def _of_fold(self, fold: int) -> Any:
        """Return the embedding fitted without a fold, or that for new objects."""
        return self.embedding_ if fold == NEW else self.fold_embeddings_[fold]

    def _needs_labels(self) -> bool:
        return True

    def _effort(self) -> float:
        folds = self.cv if isinstance(self.cv, int) else getattr(self.cv, "n_splits", 5)
        return (folds + 1) * max(effort(self.embedding), 1.0)


def _with_alphabets(embedding: Any, X: Any) -> Any:
    """Return an embedding whose class models, if it is (a union of) log-odds, have the alphabet of all objects."""
    if isinstance(embedding, FeatureUnion):
        parts = [(name, _with_alphabets(part, X)) for name, part in embedding.transformer_list]
        return embedding.set_params(transformer_list=parts)
    if isinstance(embedding, ModelLogOdds) and getattr(embedding.estimator, "alphabet", X) is None:
        return embedding.set_params(estimator=embedding.estimator.resolve(X))
    return embedding


def fold_numbers(splitter: Any, labels: NDArray[Any], groups: Any, who: str) -> Ints:
    """Return the fold (n,) of each object, raising unless each is in one test part."""
    count = len(labels)
    folds, times = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for fold, (_, test) in enumerate(parts_of_folds(splitter, labels, groups, who)):
        folds[test] = fold
        times[test] += 1
    wrong = np.flatnonzero(times != 1)
    if len(wrong):
        raise ValueError(
            f"{who}: every object must be in exactly one test part of 'cv'. Object {wrong[0]} is in "
            f"{times[wrong[0]]}; use folds, such as StratifiedKFold or GroupKFold."
        )
    return np.unique(folds, return_inverse=True)[1]


def _joined(groups: NDArray[Any], contents: list[str]) -> NDArray[Any]:
    """Return the group (n,) of each object, the first one of all that are linked by objects of equal content."""
    names, owners = np.unique(groups, return_inverse=True)
    kinds = np.unique(contents, return_inverse=True)[1]
    size = len(names) + len(groups)
    links = sparse.coo_matrix((np.ones(len(groups)), (owners, len(names) + kinds)), shape=(size, size))
    parts = connected_components(links, directed=False)[1][: len(names)]
    _, first, part = np.unique(parts, return_index=True, return_inverse=True)
    joined: NDArray[Any] = names[first[part]][owners]
    return joined


def _contents(X: Any) -> list[str]:
    """Return a digest of the content of every object, independent of the others."""
    if sparse.issparse(X):
        table = sparse.csr_matrix(X, dtype=np.float64, copy=True)
        table.sum_duplicates()
        table.eliminate_zeros()
        return object_digests(Packed(table, np.arange(table.shape[0] + 1)))
    if kind_of(X, "CrossFit", ask=False) == "series":
        return object_digests(pack_series(X, "CrossFit"))
    if isinstance(X, Packed):
        return object_digests(X)
    symbols, offsets = flat_symbols(X, "CrossFit")
    return [make_key(symbols[start:stop]) for start, stop in itertools.pairwise(offsets.tolist())]


def take(X: Any, rows: Ints) -> Any:
    """Return some objects of a list, rows of a matrix or a data frame, or packed objects; see ``remember_part``."""
    if isinstance(X, Packed):
        return X.take(rows)
    part = _safe_indexing(X if hasattr(X, "__getitem__") else np.asarray(X), rows)
    remember_part(X, part, rows)
    return part
