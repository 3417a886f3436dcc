"""One-vs-rest support vector machines on one Gram matrix, over a path of C."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.model_selection import check_cv
from sklearn.svm import SVC

from genkern.learn.kernel_classifier import Ints, KernelClassifier, decide, targets
from genkern.progress import divided
from genkern.validation import Floats, check_array, check_number, parts_of_folds

CS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


class KernelSVMClassifierCV(KernelClassifier):
    r"""One-vs-rest support vector machines, their C chosen by cross-validation on one Gram matrix.

    .. math:: \min_{\alpha, b}\; C \sum_i \max(0, 1 - y_i f(x_i)) + \tfrac12 \alpha^T K \alpha, \quad
        f(x) = \sum_i \alpha_i k(x, x_i) + b

    for each class against the rest, each by scikit-learn's ``SVC``. That class by itself decides between each pair of
    classes and lets the pairs vote, which does worse with sharp kernels and many classes. Kernel values are computed
    once, for all folds and all C.

    Parameters
    ----------
    Cs : array-like of shape (n_Cs,), default=(0.01, 0.1, 1, 10, 100, 1000)
        Weights of the losses, positive, in units of the inverse of K.
    kernel : {"precomputed", "linear"} or callable, default="precomputed"
        "precomputed": X holds kernel values with the training objects. "linear": X holds features, dense or sparse;
        ``coef_`` is then available. A kernel such as ``RBF()``, or a function of two matrices that returns kernel
        values.
    cv : int, cross-validation generator or iterable, default=5
        How objects are divided, as in ``GridSearchCV``; an int means so many stratified folds.
    tol : float, default=1e-3
        Tolerance of the solver.
    n_jobs : int, optional
        Number of threads; None means 1 unless in a joblib context, -1 all. Results do not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    C_ : float
        The chosen C: the least of those with the fewest errors.
    cv_errors_ : ndarray of shape (n_Cs,)
        Part of the held-out objects that is misclassified.
    dual_coef_ : ndarray of shape (1 or n_classes, n)
        The coefficients α, zero but for support vectors (not for the linear kernel).
    coef_ : ndarray or CSR matrix of shape (1 or n_classes, d)
        Coefficients of the features (linear kernel only); sparse if X is and has nothing in most columns.
    intercept_ : ndarray of shape (1 or n_classes,)
        The biases b.
    X_fit_ : array or list of n objects
        The training objects (kernels given as functions only).
    n_features_in_ : int
        Number of columns of X, where it is a matrix.

    Notes
    -----
    A kernel matrix with negative eigenvalues is taken as it is, as by ``SVC``: the solver then stops at a stationary
    point. A class without objects in the training part of a fold is not predicted there.

    References
    ----------
    Rifkin & Klautau (2004), In defense of one-vs-all classification, Journal of Machine Learning Research 5.

    Examples
    --------
    >>> from genkern import RBF, KernelSVMClassifierCV
    >>> X, y = [[0.0], [1.0], [2.0], [5.0], [6.0], [7.0]], [0, 0, 0, 1, 1, 1]
    >>> svm = KernelSVMClassifierCV(Cs=[1.0, 10.0], kernel=RBF(gamma=0.1), cv=3).fit(X, y)
    >>> svm.predict([[0.5], [5.5]]), svm.C_, svm.cv_errors_
    (array([0, 1]), 1.0, array([0., 0.]))
    """

    def __init__(
        self,
        Cs: ArrayLike = CS,
        kernel: Any = "precomputed",
        *,
        cv: Any = 5,
        tol: float = 1e-3,
        n_jobs: int | None = None,
    ):
        self.Cs = Cs
        self.kernel = kernel
        self.cv = cv
        self.tol = tol
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Choose C and find the coefficients.

        Parameters
        ----------
        X : array-like of shape (n, n), matrix of shape (n, d), or what the kernel compares
            Kernel values of the training objects, or the objects.
        y : array-like of shape (n,)
            Labels.
        groups : array-like of shape (n,), optional
            Groups for a ``cv`` that uses them, such as ``GroupKFold()``.

        Returns
        -------
        self
        """
        who = "KernelSVMClassifierCV"
        Cs = check_array(self.Cs, "Cs", who, ndim=1)
        if len(Cs) == 0 or (Cs <= 0).any():
            raise ValueError(f"The 'Cs' parameter of {who} must hold positive numbers. Got {self.Cs!r}.")
        tol = check_number(self.tol, "tol", who, exclusive=True)
        X, codes = self._check_training(X, y)
        K, Y = self._within(X), targets(codes, len(self.classes_))
        parts = parts_of_folds(check_cv(self.cv, codes, classifier=True), codes, groups, who)
        count = divided(_count_errors, len(Cs) * len(parts))
        wrong = Parallel(n_jobs=self.n_jobs, require="sharedmem")(
            delayed(count)(K, Y, codes, C, tol, part) for C in Cs for part in parts
        )
        tested = sum(len(test) for _, test in parts)
        self.cv_errors_ = np.reshape(wrong, (len(Cs), len(parts))).sum(axis=1) / tested
        self.C_ = float(Cs[np.lexsort((Cs, self.cv_errors_))[0]])
        dual, self.intercept_ = _fit(K, Y, self.C_, tol)
        self._keep(X, dual)
        return self


def _count_errors(K: Floats, Y: Floats, codes: Ints, C: float, tol: float, part: tuple[Ints, Ints]) -> int:
    """Return the number of objects of the second part that machines trained on the first misclassify."""
    train, test = part
    dual, bias = _fit(K[np.ix_(train, train)], Y[train], C, tol)
    values = K[np.ix_(test, train)] @ dual.T + bias
    return int(np.sum(decide(values[:, 0] if values.shape[1] == 1 else values) != codes[test]))


def _fit(K: Floats, Y: Floats, C: float, tol: float) -> tuple[Floats, Floats]:
    """Return coefficients (k, n) and biases (k,) of one machine per column of targets Y (n, k).

    A column of one sign only has the constant decision value -1 or 1.
    """
    dual, bias = np.zeros(Y.T.shape), Y[0].copy()
    for c, signs in enumerate(Y.T):
        if (signs != signs[0]).any():
            machine = SVC(C=C, kernel="precomputed", tol=tol).fit(K, signs)
            dual[c, machine.support_] = machine.dual_coef_[0]
            bias[c] = machine.intercept_[0]
    return dual, bias
