"""The matrix of a sum of kernels whose weights are learnt from labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from genkern.gram.base import KernelTransformer
from genkern.gram.gram import Gram
from genkern.kernels.alignment import alignment_weights
from genkern.kernels.base import Kernel
from genkern.kernels.composites import Constant, Sum
from genkern.validation import Floats


class AlignedGram(KernelTransformer):
    r"""Kernel values of a sum, weighted so that the terms fit the labels of the training set.

    .. math:: K_{ij} = \sum_k w_k\, k_k(x_i, x^{\mathrm{fit}}_j), \qquad \rho(K, K_Y) =
       \frac{\langle K_c, K_{Yc} \rangle_F}{\|K_c\|_F\, \|K_{Yc}\|_F} \to \max, \quad w \ge 0

    where :math:`K_c` is the matrix of centred features and :math:`K_Y` is one for objects of one class and zero for
    others. Labels are used in ``fit`` only, so that cross-validation of a pipeline is valid.

    Parameters
    ----------
    kernel : Kernel
        A sum, ``k1 + k2 + k3``, whose terms get weights; constant factors of terms have no effect.
    method : {"joint", "independent"}, default="joint"
        "joint": the weights for which the alignment of the sum is largest; a term that adds nothing gets zero.
        "independent": every term, scaled to the same norm, by its own alignment.
    n_jobs : int, optional
        Number of threads; None means 1 unless in a joblib context, -1 all.
    block_size : int, optional
        Rows and columns of one block of work, as in ``Gram``.
    verbose : int, default=0
        Whether to tell, on standard error, how many blocks are done; from 10 on after each.

    Attributes
    ----------
    weights_ : ndarray of shape (n_terms,)
        Weights of the terms, in their order, scaled so that the mean of the training matrix's diagonal is one: they sum
        to one if all terms are normalised.
    alignments_ : ndarray of shape (n_terms,)
        Centred alignment of each term alone with the labels, at most one.
    grams_ : list of Gram
        One for each term. A term that is computed in logs and not normalised has a common factor, see ``Gram``; its
        weight is that of the values without the factor.
    X_fit_ : list of models, stack of models, matrix or Representations
        The training representations, one per column of the result.

    References
    ----------
    Cortes, Mohri & Rostamizadeh (2012), Algorithms for learning kernels based on centered alignment, section 4:
    "joint" is ``alignf``, "independent" is ``align``.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import AlignedGram, On, RBF, Representations
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(40) % 2
    >>> X = Representations({"telling": y[:, None] + rng.normal(size=(40, 2)), "noise": rng.normal(size=(40, 2))})
    >>> gram = AlignedGram(On("telling", RBF()) + On("noise", RBF())).fit(X, y)
    >>> gram.weights_.round(3), gram.alignments_.round(3)
    (array([0.95, 0.05]), array([0.202, 0.063]))
    """

    _fitted = "grams_"
    _wanted = "a sum of kernels"

    def __init__(
        self,
        kernel: Kernel,
        method: str = "joint",
        n_jobs: int | None = None,
        block_size: int | None = None,
        verbose: int = 0,
    ):
        self.kernel = kernel
        self.method = method
        self.n_jobs = n_jobs
        self.block_size = block_size
        self.verbose = verbose

    def _fit(self, X: Any, y: Any) -> Floats:
        if y is None:
            raise ValueError("AlignedGram requires y to be passed, but the target y is None.")
        self.X_fit_ = X
        grams = [Gram(term, self.n_jobs, self.block_size, self.verbose) for term in _terms(self.kernel)]
        matrices = [gram.fit_transform(self.X_fit_) for gram in grams]
        check_consistent_length(matrices[0], y)
        self.weights_, self.alignments_ = alignment_weights(matrices, y, self.method)
        self.grams_, self._n_features_out = grams, len(matrices[0])
        return _weighted(self.weights_, matrices)

    def _transform(self, X: Any) -> Floats:
        kept = np.flatnonzero(self.weights_)
        return _weighted(self.weights_[kept], (self.grams_[k].transform(X) for k in kept))

    def _needs_labels(self) -> bool:
        return True


def _terms(kernel: Kernel) -> list[Kernel]:
    """Return the terms of a sum, from left to right."""
    if isinstance(kernel, Constant):
        raise ValueError("AlignedGram: a constant is not aligned with anything. Leave it out of the sum.")
    return [*_terms(kernel.left), *_terms(kernel.right)] if isinstance(kernel, Sum) else [kernel]


def _weighted(weights: Floats, matrices: Iterable[Floats]) -> Floats:
    """Return the weighted sum of matrices, entry by entry."""
    total: Floats = sum(weight * matrix for weight, matrix in zip(weights, matrices))
    return total
