"""Parts of the sum of ``recipes.homology``: what a profile of a family says, and similarities to landmarks."""

from __future__ import annotations

import warnings
from itertools import accumulate, pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_consistent_length, check_random_state

from genkern.data.objects import Packed
from genkern.data.transformer import SYMBOLS, Transformer
from genkern.features.base import Embedding
from genkern.features.class_models import check_labels, fit_model
from genkern.features.fisher import FisherScore
from genkern.gram.nystrom import Nystrom
from genkern.kernels.divergences import NotPositiveWarning
from genkern.preprocess.cross_fit import NEW, CrossFit, take
from genkern.validation import Floats, check_int


class ProfileFeatures(Transformer):
    """Features of sequences under a profile of positives, those of the second class; of three and more, of each class.

    Parameters
    ----------
    estimator : ProfileHMMEstimator
        A clone is fitted to the objects of each such class.
    init : list of ProfileHMM, optional
        What these fits start from.

    Attributes
    ----------
    models_ : list of ProfileHMM
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    """

    _fitted = "models_"
    _inputs: ClassVar[dict[str, bool]] = SYMBOLS
    _of_floats = True
    _refuses_y = False

    def __init__(self, estimator: Any, init: Any = None):
        self.estimator = estimator
        self.init = init

    def _fit(self, X: Any, y: Any) -> None:
        who = type(self).__name__
        labels, packed = check_labels(y, who), self.estimator.pack(X)
        check_consistent_length(X, labels)
        self.classes_ = np.unique(labels)
        of = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        starts = [None] * len(of) if self.init is None else self.init
        learners = [clone(self.estimator).set_params(init=start) for start in starts]
        self.models_: list[Any] = [
            fit_model(learner, packed.take(np.flatnonzero(labels == label)), None, who)
            for learner, label in zip(learners, of)
        ]

    def _encode(self, X: Any) -> Packed:
        packed: Packed = self.models_[0].pack(X)
        return packed

    def _needs_labels(self) -> bool:
        return True

    @property
    def model_(self) -> Any:
        """The profile of the positives, or of the first class."""
        return self.models_[0]

    def _fronts(self) -> list[str]:
        """Return what comes before the names of the features of each profile."""
        return [""] if len(self.models_) == 1 else [f"{label}." for label in self.classes_]


class ProfileOdds(ProfileFeatures):
    """The log-odds of each sequence under a profile against the background, in bits: HMMER's score of one passage."""

    def _transform(self, packed: Packed) -> Floats:
        return np.stack([model.hmmer_score(packed, hits="one") for model in self.models_], axis=1)

    def _names_out(self, given: Any) -> list[str]:
        """Return ``odds``, or ``c.odds`` for each class."""
        return [f"{front}odds" for front in self._fronts()]


class ProfileScores(ProfileFeatures, Embedding):
    """Fisher scores of the symbols in the columns of a profile, in units of their information.

    Attributes
    ----------
    blocks_ : dict of str to slice
        The scores of each profile.
    """

    def _fit(self, X: Any, y: Any) -> None:
        super()._fit(X, y)
        self.scores_ = [FisherScore(model, blocks=["match"]).fit(model.pack(X)) for model in self.models_]

    @property
    def blocks_(self) -> dict[str, slice]:
        """The scores of each profile."""
        ends = accumulate((part.n_features_out_ for part in self.scores_), initial=0)
        return {f"{front}match": slice(*pair) for front, pair in zip(self._fronts(), pairwise(ends))}

    def _transform(self, packed: Packed) -> Floats:
        return np.concatenate([part.transform(packed) for part in self.scores_], axis=1)

    def _position_features(self, packed: Packed) -> Any:
        return sparse.hstack([part.position_features(packed) for part in self.scores_], format="csr")

    def _names_out(self, given: Any) -> NDArray[np.object_]:
        """Return names such as ``match[3,A]``, or ``c.match[3,A]`` for each class."""
        parts = zip(self._fronts(), self.scores_)
        return np.concatenate([front + part.get_feature_names_out() for front, part in parts])


class CrossFitProfiles(CrossFit):
    """Out-of-fold scores under profiles that go on from those of all positives, so that columns keep their meaning."""

    def _fit_without(self, fold: int, embedding: Any, X: Any, labels: NDArray[Any]) -> Any:
        """Return normalised scores fitted without a fold, or, for ``NEW``, which comes first, to all objects."""
        if fold == NEW:
            whole = super()._fit_without(fold, embedding, X, labels)
            self._common = whole.embedding_.models_
            return whole
        return super()._fit_without(fold, clone(embedding).set_params(embedding__init=self._common), X, labels)


class Landmarks(Nystrom):
    """Nystrom features whose landmarks are the objects of the rarest class, then of the next, as far as there is room.

    Where the kernel is not positive semi-definite between landmarks, its positive part is used.

    Parameters
    ----------
    kernel, n_landmarks, random_state, n_jobs
        As in ``Nystrom``.
    """

    def __init__(self, kernel: Any, n_landmarks: int = 1000, random_state: Any = 0, n_jobs: int | None = None):
        super().__init__(kernel, n_landmarks, random_state=random_state, n_jobs=n_jobs)

    def _fit(self, X: Any, y: Any) -> None:
        most, labels = check_int(self.n_landmarks, "n_landmarks", "Landmarks", 1), check_labels(y, "Landmarks")
        check_consistent_length(X, labels)
        _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        drawn = check_random_state(self.random_state).permutation(len(labels))
        rows = np.sort(drawn[np.argsort(counts[codes[drawn]], kind="stable")][:most])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotPositiveWarning)
            super()._fit(take(X, rows), None)
        self.landmark_indices_ = rows[self.landmark_indices_]

    def _transform(self, X: Any) -> Floats:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotPositiveWarning)
            return super()._transform(X)

    def _needs_labels(self) -> bool:
        return True
