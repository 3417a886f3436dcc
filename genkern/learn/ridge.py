"""Kernel ridge classification with closed-form cross-validation."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d

from genkern.learn.calibration import Calibrated, Calibrator
from genkern.learn.kernel_classifier import Ints, KernelClassifier, decide, dense, targets
from genkern.learn.ridge_large import Path, biases, held_out, tried
from genkern.learn.ridge_path import coefficients, feature_spectrum, gram_spectrum, left_out
from genkern.learn.weights import REQUESTED, check_weights
from genkern.validation import Floats, check_array, check_int, check_option

ALPHAS = (1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
CRITERIA = ("error", "squared")
SOLVERS = ("eigenvalues", "conjugate gradients")
UNSEEN = 1e-16  # of the largest weight: below rounding in a fit, but enough to tell what is decided about an object


class KernelRidgeClassifierCV(Calibrated, KernelClassifier):
    r"""One-vs-rest least squares with targets ±1, its penalty chosen by closed-form leave-one-out.

    .. math:: \min_{a, b}\; \sum_i w_i (y_i - f(x_i))^2 + \alpha\, a^T K a, \quad f(x) = \sum_i a_i k(x, x_i) + b

    One eigendecomposition gives, for every penalty α, the decision values that a fit without an object, or without all
    objects of its group, has for it: exactly those of refitting, n times (or once per group) and for every α.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), default=(0.001, 0.003, 0.01, ..., 1000)
        The penalties, positive, in the units of K: for a kernel matrix with another diagonal than one, multiply them by
        its mean diagonal entry.
    kernel : {"precomputed", "linear"} or callable, default="precomputed"
        "precomputed": X holds kernel values with the training objects. "linear": X holds features, dense or sparse;
        the thin singular value decomposition is used if there are fewer columns than rows, else the inner products;
        ``coef_`` is then available. A kernel such as ``RBF()``, or a function of two matrices that returns kernel
        values.
    bias : {"free"} or None, default="free"
        A bias without penalty, or none.
    criterion : {"error", "squared"}, default="error"
        The criterion that the chosen penalty minimises: the part of objects that is misclassified when left out, and in
        case of a tie their squared error; or the squared error alone.
    class_weight : None, "balanced" or dict of label to weight, default=None
        Weights of the classes, which multiply those of their objects: "balanced" gives all classes the same weight
        together. An object of weight two counts as two objects, which are left out together.
    exact : int, optional
        Of more objects than these, features in X (not "precomputed") are used by themselves, with the linear kernel
        whatever ``kernel`` is, and not by a matrix of n² kernel values: coefficients come from conjugate gradients, and
        the penalty is chosen by one object in five, or whole groups, held out. By default never.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    alpha_ : float
        The chosen penalty.
    cv_errors_ : ndarray of shape (n_alphas,)
        Part of the objects, by weight, that is misclassified when left out.
    cv_squared_ : ndarray of shape (n_alphas,)
        Mean squared difference of their decision values from ±1.
    cv_decision_ : ndarray of shape (n,) or (n, n_classes)
        Decision values of the objects when left out, at the chosen penalty, for the choice of a threshold.
    cv_index_ : ndarray of shape (n,)
        The objects that these values are of: all, but above ``exact`` those held out.
    solver_ : {"eigenvalues", "conjugate gradients"}
        How the penalty and the coefficients were found: the latter above ``exact``.
    calibrator_ : Calibrator
        What makes probabilities of decision values, fitted to ``cv_decision_`` with the weights of the objects.
    dual_coef_ : ndarray of shape (1 or n_classes, n)
        The coefficients a, of the second of two classes or of each against the rest (not for the linear kernel).
    coef_ : ndarray or CSR matrix of shape (1 or n_classes, d)
        Coefficients of the features (linear kernel only); sparse if X is and most columns are empty.
    intercept_ : ndarray of shape (1 or n_classes,)
        The biases b.
    X_fit_ : array or list of n objects
        The training objects (kernels given as functions only).
    n_features_in_ : int
        Number of columns of X, where it is a matrix.

    References
    ----------
    Rifkin & Lippert (2007), Notes on regularized least squares, section 5.
    An, Liu & Venkatesh (2007), Fast cross-validation algorithms for least squares support vector machine and kernel
    ridge regression, Pattern Recognition 40.

    Examples
    --------
    >>> from genkern import RBF, KernelRidgeClassifierCV
    >>> X, y = [[0.0], [1.0], [2.0], [5.0], [6.0], [7.0]], [0, 0, 0, 1, 1, 1]
    >>> ridge = KernelRidgeClassifierCV(alphas=[0.1, 1.0], kernel=RBF(gamma=0.1)).fit(X, y)
    >>> ridge.predict([[0.5], [5.5]]), ridge.alpha_, ridge.cv_errors_
    (array([0, 1]), 0.1, array([0., 0.]))
    """

    __metadata_request__fit: ClassVar = REQUESTED

    def __init__(
        self,
        alphas: ArrayLike = ALPHAS,
        kernel: Any = "precomputed",
        *,
        bias: str | None = "free",
        criterion: str = "error",
        class_weight: Any = None,
        exact: int | None = None,
    ):
        self.alphas = alphas
        self.kernel = kernel
        self.bias = bias
        self.criterion = criterion
        self.class_weight = class_weight
        self.exact = exact

    def fit(
        self, X: Any, y: ArrayLike, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Choose the penalty and find the coefficients.

        Parameters
        ----------
        X : array-like of shape (n, n), matrix of shape (n, d), or what the kernel compares
            Kernel values of the training objects, or the objects.
        y : array-like of shape (n,)
            Labels.
        groups : array-like of shape (n,), optional
            All objects of a group (a speaker, a family) are left out together. By
            default each object is its own group.
        sample_weight : array-like of shape (n,), optional
            Weights of the objects, not negative.

        Returns
        -------
        self
        """
        who = "KernelRidgeClassifierCV"
        alphas = self._check_alphas()
        check_option(self.criterion, CRITERIA, "criterion", who)
        if self.bias is not None:
            check_option(self.bias, ("free",), "bias", who)
        X, codes = self._check_training(X, y)
        members = _check_groups(groups, codes)
        weights = check_weights(self.class_weight, self.classes_[codes], sample_weight, who)
        Y = targets(codes, len(self.classes_))
        linear, free = self._named("linear"), self.bias == "free"
        if self._is_large(X):
            return self._fit_large(X, Y, codes, weights, alphas, members)
        if getattr(X, "dtype", None) == np.float32:
            X = X.astype(np.float64)
        thin = linear and X.shape[1] < len(Y) - 1
        featured = thin or (linear and not sparse.issparse(X))  # then K is not needed beside its eigenvectors
        roots = np.sqrt(np.maximum(weights, UNSEEN * weights.max()))
        if thin:
            spectrum = feature_spectrum(dense(X), roots, free)
        else:
            K = self._within(X)
            spectrum = gram_spectrum(K if featured else np.array(K, order="C"), roots, free, who)
        decisions = left_out(spectrum, Y, alphas, members, who)
        self.cv_squared_ = np.average(((decisions - Y) ** 2).mean(axis=2), axis=1, weights=weights)
        decisions = decisions[:, :, 0] if Y.shape[1] == 1 else decisions
        self.cv_errors_ = np.array([np.average(decide(values) != codes, weights=weights) for values in decisions])
        self._conclude(alphas, decisions, np.arange(len(Y)), codes, weights)
        self.solver_ = SOLVERS[0]
        dual = coefficients(spectrum, Y, self.alpha_)
        self._keep(X, dual.T)
        fitted = X @ self.coef_.T if featured else K @ dual
        self.intercept_ = free * np.average(Y - fitted, axis=0, weights=weights)
        return self

    def _conclude(self, alphas: Floats, decisions: Floats, held: Ints, codes: Ints, weights: Floats) -> None:
        """Choose the penalty, and fit the calibration, by decisions about objects that were left out."""
        first = self.cv_errors_ if self.criterion == "error" else self.cv_squared_
        best = int(np.lexsort((self.cv_squared_, first))[0])
        self.alpha_ = float(alphas[best])
        self.cv_decision_, self.cv_index_ = decisions[best], held
        self.calibrator_ = Calibrator().fit(self.cv_decision_, codes[held], weights[held])

    def _fit_large(
        self, X: Any, Y: Floats, codes: Ints, weights: Floats, alphas: Floats, members: list[Ints] | None
    ) -> Self:
        """Choose the penalty by objects held out, and find the coefficients, by conjugate gradients."""
        free, held = self.bias == "free", held_out(codes, members)
        self.cv_squared_, self.cv_errors_ = np.full((2, len(alphas)), np.inf)
        decisions = np.zeros((len(alphas), *np.shape(Y[held])))
        shares = weights[held]
        for i, values in tried(X, Y, weights, alphas, held, free):
            decisions[i] = values
            self.cv_squared_[i] = np.average(((values - Y[held]) ** 2).mean(axis=1), weights=shares)
            decided = decide(values[:, 0] if Y.shape[1] == 1 else values)
            self.cv_errors_[i] = np.average(decided != codes[held], weights=shares)
        self._conclude(alphas, decisions[:, :, 0] if Y.shape[1] == 1 else decisions, held, codes, weights)
        path = Path(X, Y, np.sqrt(weights), free)
        for alpha in np.unique(alphas[alphas >= self.alpha_])[::-1]:
            coefficients = path.solve(float(alpha))
        for name in ("dual_coef_", "X_fit_"):
            self.__dict__.pop(name, None)
        self.coef_, self.intercept_ = coefficients.T, biases(X, coefficients, Y, weights, free)
        self.solver_ = SOLVERS[1]
        return self

    def _is_large(self, X: Any) -> bool:
        """Return whether there are too many objects for kernel values between all of them."""
        if self.exact is None or self._named("precomputed"):
            return False
        return X.shape[0] > check_int(self.exact, "exact", "KernelRidgeClassifierCV", 1)

    def _check_alphas(self) -> Floats:
        """Return the penalties (n_alphas,)."""
        alphas = check_array(self.alphas, "alphas", "KernelRidgeClassifierCV", ndim=1)
        if len(alphas) == 0 or (alphas <= 0).any():
            raise ValueError(
                f"The 'alphas' parameter of KernelRidgeClassifierCV must hold positive numbers. Got {self.alphas!r}."
            )
        return alphas


def _check_groups(groups: ArrayLike | None, codes: Ints) -> list[Ints] | None:
    """Return the objects of each group."""
    if groups is None:
        return None
    names = column_or_1d(groups)
    assert_all_finite(names, input_name="groups")
    check_consistent_length(codes, names)
    members, owner = np.unique(names, return_inverse=True)
    if len(members) < 2:
        raise ValueError(
            "KernelRidgeClassifierCV: groups must name at least 2 groups, as each is left out in turn. Got "
            f"{members[0]!r} only."
        )
    return [np.flatnonzero(owner == i) for i in range(len(members))]
