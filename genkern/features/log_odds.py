"""Counts weighted by how much more frequent each word is in one class than in the others."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import _check_feature_names_in, check_non_negative

from genkern.data.transformer import TableTransformer
from genkern.features.class_models import check_labels
from genkern.validation import Floats, check_bool, check_number


class LogOddsWeights(TableTransformer):
    r"""Counts times the log-odds of their words between classes: the terms of the naive-Bayes decision.

    .. math:: \phi_d(x) = x_d \log \frac{p_{+d}}{p_{-d}}, \qquad
              p_{cd} = \frac{a + \sum_{i: y_i = c} x_{id}}{\sum_e (a + \sum_{i: y_i = c} x_{ie})}

    Under multinomial class models the posterior log-odds are :math:`v(x) = \log \frac{\alpha}{1 - \alpha} + \sum_d x_d
    \log (p_{+d} / p_{-d})`, and these features are the terms of the sum. As in ``TopScore``, which has v itself beside
    its derivatives (for multinomial models, the counts), a linear learner can take the plug-in decision, here by equal
    coefficients; a penalty then shrinks it towards that decision, not towards zero. Words without a preference for a
    class have no weight.

    Parameters
    ----------
    pseudocount : float, default=1.0
        The a that is added to the count of each word in each class, > 0.
    binary : bool, default=True
        Whether a word counts once in an object, however often it occurs: x is then 0 or 1, also in the features.

    Attributes
    ----------
    weights_ : ndarray of shape (1 or n_classes, d)
        The log-odds, of the second of two classes, or of each of more classes against the rest.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    n_features_in_, n_features_out_ : int
        The number d of words; d for two classes, else d times the number of classes.

    Notes
    -----
    More than two classes have one block of d features each, in which words are weighted by their log-odds in the class
    against all others.

    Weights depend on the labels. Choose settings of a following learner by searching over both as one pipeline, as
    ``recipes.text`` does, or use ``CrossFit``.

    References
    ----------
    Wang & Manning (2012), Baselines and bigrams: simple, good sentiment and topic classification, section 2.
    Tsuda, Kawanabe, Rätsch, Sonnenburg & Müller (2002), A new discriminative kernel from probabilistic models, eq. 4.2.

    Examples
    --------
    >>> from genkern import LogOddsWeights
    >>> counts, y = [[2, 1, 0], [1, 1, 0], [0, 1, 1], [0, 1, 3]], ["A", "A", "B", "B"]
    >>> weights = LogOddsWeights().fit(counts, y)
    >>> weights.weights_.round(3)
    array([[-1.099,  0.   ,  1.099]])
    >>> weights.transform([[1, 5, 2]]).round(3)
    array([[-1.099,  0.   ,  1.099]])
    """

    _fitted = "weights_"
    _sparse = ("csr",)
    _inputs: ClassVar[dict[str, bool]] = {"positive_only": True}

    def __init__(self, pseudocount: float = 1.0, binary: bool = True):
        self.pseudocount = pseudocount
        self.binary = binary

    def _fit(self, counts: Any, y: Any) -> None:
        pseudocount = check_number(self.pseudocount, "pseudocount", "LogOddsWeights", exclusive=True)
        check_bool(self.binary, "binary", "LogOddsWeights")
        labels = check_labels(y, "LogOddsWeights")
        check_consistent_length(counts, labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"LogOddsWeights needs at least two classes. Got one class, {self.classes_.tolist()[0]!r}."
            )
        member = codes == np.arange(len(self.classes_))[:, None]
        totals = np.stack([np.asarray(counts[own].sum(axis=0), np.float64).ravel() for own in member])
        rest = totals.sum(axis=0) - totals
        odds = _log_shares(totals + pseudocount) - _log_shares(rest + pseudocount)
        self.weights_ = odds[1:] if len(odds) == 2 else odds

    def _transform(self, counts: Any) -> Any:
        if sparse.issparse(counts):
            return sparse.hstack([counts @ sparse.diags_array(row) for row in self.weights_], format="csr")
        return np.concatenate([counts * row for row in self.weights_], axis=1)

    def _names_out(self, given: Any) -> Any:
        """Return the words, with the class in front if there are more than two."""
        words = _check_feature_names_in(self, given)
        return words if len(self.weights_) == 1 else [f"{label}.{word}" for label in self.classes_ for word in words]

    def _width(self) -> int:
        return int(self.weights_.size)

    def _checked(self, X: Any, reset: bool) -> Any:
        """Return counts (n, d), dense or CSR, as 0 and 1 if they are to be binary."""
        counts = super()._checked(X, reset)
        check_non_negative(counts, "LogOddsWeights")
        if not self.binary:
            return counts
        return counts.sign() if sparse.issparse(counts) else np.sign(counts)

    def _needs_labels(self) -> bool:
        return True


def _log_shares(counts: Floats) -> Floats:
    """Return logarithms of the shares of words in the rows of (n_classes, d) positive counts."""
    shares: Floats = np.log(counts) - np.log(counts.sum(axis=1, keepdims=True))
    return shares
