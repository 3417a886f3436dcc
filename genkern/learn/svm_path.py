"""One-vs-rest support vector machines on one Gram matrix, over a path of C."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.svm import SVC
from sklearn.utils import _safe_indexing

from genkern.learn.calibration import Calibrated, Calibrator
from genkern.learn.kernel_classifier import Ints, KernelClassifier, decide, targets
from genkern.learn.weights import REQUESTED, check_weights
from genkern.preprocess.folds import make_folds, parts_of_folds
from genkern.progress import divided
from genkern.validation import Floats, check_array, check_number

CS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


class KernelSVMClassifierCV(Calibrated, KernelClassifier):
    r"""One-vs-rest support vector machines, their C chosen by cross-validation on one Gram matrix.

    .. math:: \min_{\alpha, b}\; C \sum_i w_i \max(0, 1 - y_i f(x_i)) + \tfrac12 \alpha^T K \alpha, \quad
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
        How objects are divided, as in ``GridSearchCV``; an int means so many stratified folds, which keep groups whole.
    tol : float, default=1e-3
        Tolerance of the solver.
    n_jobs : int, optional
        Number of threads; None means 1 unless in a joblib context, -1 all. Results do not depend on it.
    class_weight : None, "balanced" or dict of label to weight, default=None
        Weights of the classes, which multiply those of their objects: "balanced" gives all classes the same weight
        together. An object of weight two counts as two objects, which are held out together.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    C_ : float
        The chosen C: the least of those with the fewest errors.
    cv_errors_ : ndarray of shape (n_Cs,)
        Part of the held-out objects, by weight, that is misclassified.
    calibrator_ : Calibrator
        What makes probabilities of decision values, fitted to those of held-out objects at the chosen C.
    support_ : ndarray of shape (n_support,) of int
        The support vectors, training objects with a coefficient of any class that is not zero.
    dual_coef_ : ndarray of shape (1 or n_classes, n), or (1 or n_classes, n_support) for kernels given as functions
        The coefficients α, zero but for support vectors (not for the linear kernel).
    coef_ : ndarray or CSR matrix of shape (1 or n_classes, d)
        Coefficients of the features (linear kernel only); sparse if X is and has nothing in most columns.
    intercept_ : ndarray of shape (1 or n_classes,)
        The biases b.
    X_fit_ : array or list of n_support objects
        The support vectors, with which alone new objects are compared (kernels given as functions only).
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

    __metadata_request__fit: ClassVar = REQUESTED

    def __init__(
        self,
        Cs: ArrayLike = CS,
        kernel: Any = "precomputed",
        *,
        cv: Any = 5,
        tol: float = 1e-3,
        n_jobs: int | None = None,
        class_weight: Any = None,
    ):
        self.Cs = Cs
        self.kernel = kernel
        self.cv = cv
        self.tol = tol
        self.n_jobs = n_jobs
        self.class_weight = class_weight

    def fit(
        self, X: Any, y: ArrayLike, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Choose C and find the coefficients.

        Parameters
        ----------
        X : array-like of shape (n, n), matrix of shape (n, d), or what the kernel compares
            Kernel values of the training objects, or the objects.
        y : array-like of shape (n,)
            Labels.
        groups : array-like of shape (n,), optional
            Groups for a ``cv`` that uses them, such as an int or ``GroupKFold()``.
        sample_weight : array-like of shape (n,), optional
            Weights of the objects, not negative.

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
        labels = self.classes_[codes]
        weights = check_weights(self.class_weight, labels, sample_weight, who)
        K, Y = self._within(X), targets(codes, len(self.classes_))
        parts = parts_of_folds(make_folds(self.cv, labels, groups, who), labels, groups, who)
        tested = np.concatenate([test for _, test in parts])
        held = divided(_decide_held_out, len(Cs) * len(parts))
        held_out = Parallel(n_jobs=self.n_jobs, require="sharedmem")(
            delayed(held)(K, Y, weights, C, tol, part) for C in Cs for part in parts
        )
        decisions = [np.concatenate(held_out[i : i + len(parts)]) for i in range(0, len(held_out), len(parts))]
        own, counts = codes[tested], weights[tested]
        self.cv_errors_ = np.array([np.average(decide(values) != own, weights=counts) for values in decisions])
        best = np.lexsort((Cs, self.cv_errors_))[0]
        self.C_ = float(Cs[best])
        self.calibrator_ = Calibrator().fit(decisions[best], own, counts)
        dual, self.intercept_ = _fit(K, Y, weights, self.C_, tol)
        self._keep(X, dual)
        return self

    def _keep(self, X: Any, dual: Floats) -> None:
        self.support_ = np.flatnonzero(dual.any(axis=0))
        if not isinstance(self.kernel, str):
            X, dual = _safe_indexing(X, self.support_), dual[:, self.support_]
        super()._keep(X, dual)


def _decide_held_out(K: Floats, Y: Floats, weights: Floats, C: float, tol: float, part: tuple[Ints, Ints]) -> Floats:
    """Return the decision values (n,) or (n, k) about the second part by machines trained on the first."""
    train, test = part
    dual, bias = _fit(K[np.ix_(train, train)], Y[train], weights[train], C, tol)
    values = K[np.ix_(test, train)] @ dual.T + bias
    return values[:, 0] if values.shape[1] == 1 else values


def _fit(K: Floats, Y: Floats, weights: Floats, C: float, tol: float) -> tuple[Floats, Floats]:
    """Return coefficients (k, n) and biases (k,) of one machine per column of targets Y (n, k).

    A column of one sign only has the constant decision value -1 or 1.
    """
    dual, bias = np.zeros(Y.T.shape), Y[0].copy()
    for c, signs in enumerate(Y.T):
        if (signs != signs[0]).any():
            machine = _machine(K, signs, weights, C, tol)
            dual[c, machine.support_] = machine.dual_coef_[0]
            bias[c] = machine.intercept_[0]
    return dual, bias


def _machine(K: Floats, signs: Floats, weights: Floats, C: float, tol: float) -> SVC:
    """Return a machine of two classes; one whose coefficients overflow is refused."""
    try:
        return SVC(C=C, kernel="precomputed", tol=tol).fit(K, signs, weights)
    except ValueError as error:
        if "not finite" not in str(error):
            raise
        raise ValueError(
            f"KernelSVMClassifierCV: with C={C:g} and kernel values up to {np.abs(K).max():g}, coefficients are not "
            "finite. Divide the kernel by its largest value, standardize the features, or take smaller 'Cs'."
        ) from None
