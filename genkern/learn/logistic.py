"""Kernel logistic regression."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_expit, logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, check_random_state

from genkern.kernels.vectors import Polynomial
from genkern.learn.calibration import agree
from genkern.learn.kernel_classifier import ROUNDING, KernelClassifier, check_definite, decide, dense, targets
from genkern.learn.logistic_newton import DualSpace, PrimalSpace, Solution, solve
from genkern.learn.low_rank import eigen_features, nystrom_map, quadratic_features, quadratic_size, span
from genkern.learn.weights import check_weights
from genkern.validation import Floats, check_int, check_number, check_option

BATCH = 64  # objects of which the diagonal of a kernel is computed at a time
FEWER = 2  # a quadratic kernel is solved in its features where objects are so many times more
MOST_COLUMNS = 1000  # of which the rank is looked at: more have a quadratic number of features beyond all memory
POLISHED = 1e-6  # a step more: dual coefficients have the root of the gap as error where others are sought
LARGEST = 15_000  # objects of the exact solver: its matrices then take 2 GB each, and a step minutes
PRECISION = 1e-10  # of the largest diagonal entry: eigenvalues of a kernel matrix are not known better
BIASES = ("free", "penalised")
SOLVERS = ("exact", "eigen", "nystrom")
REMEDY = (
    "The problem then has no unique solution. Choose a kernel that is positive semi-definite, or solver='eigen', which "
    "leaves out all negative eigenvalues."
)


class _Path(NamedTuple):
    """Where coefficients are sought, the map (n_support, r) from them to dual ones if they are not, and the trace."""

    space: DualSpace | PrimalSpace
    to_dual: Floats | None = None
    kept_trace: float = 1.0


class KernelLogisticRegression(KernelClassifier):
    r"""Logistic regression on kernel values, :math:`P(S | x) = \sigma(S (\sum_i \alpha_i k(x_i, x) + b))`, S = ±1.

    .. math:: \min_{\alpha, b}\; C \sum_i w_i \log(1 + e^{-S_i f(x_i)}) + \tfrac12 \alpha^T K \alpha

    which is scikit-learn's ``LogisticRegression`` on features whose inner products are K. At the optimum
    :math:`\alpha_i = C w_i S_i \lambda_i` with :math:`\lambda_i = \sigma(-S_i f(x_i))`, the probability of the wrong
    label. The solver takes damped Newton steps until the duality gap is small.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the squared norm; multiplying C and dividing K by a number changes no probability.
    kernel : {"precomputed", "linear"} or callable, default="precomputed"
        "precomputed": X holds kernel values with the training objects. "linear": X holds features, dense or sparse;
        ``coef_`` is then available. A kernel such as ``RBF()`` or ``ProbabilityProduct(length=10).normalized()``, or a
        function of two matrices that returns kernel values.
    bias : {"free", "penalised"} or None, default="free"
        A bias without penalty, as in scikit-learn; one that is the coefficient of a constant feature and penalised like
        the others, as in the paper; or none.
    bias_scale : float, default=1.0
        The constant feature of a penalised bias.
    tol : float, default=1e-10
        Stop when the duality gap is at most this part of the objective.
    max_iter : int, default=100
        Greatest number of Newton steps.
    solver : {"exact", "eigen", "nystrom"}, default="exact"
        "exact" factors a matrix of n × n per step (features of d < n columns: d × d), for at most 15,000 objects. A
        ``Polynomial(2)`` kernel of vectors of rank r is solved in its q = (r + 1)(r + 2) / 2 explicit features (a
        matrix q × q per step, any number of objects) where there are at least 2 q objects.
        "eigen" works with the ``n_components`` leading eigenvectors of K; negative eigenvalues are left out. "nystrom"
        works with kernel values with ``n_components`` landmarks drawn at random, and computes no others.
    n_components : int, optional
        Rank of an approximation; None keeps all positive eigenvalues, and is no choice for "nystrom". The exact solver
        does not look at it.
    random_state : int, RandomState or None, default=None
        Draws the landmarks.
    class_weight : None, "balanced" or dict of label to weight, default=None
        Weights of the classes, which multiply those of their objects; "balanced" gives all classes the same weight
        together. Probabilities are then those of data whose classes are as frequent as their weights say.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    dual_coef_ : ndarray of shape (1 or n_classes, n_support)
        The coefficients α, of the second of two classes or of each against the rest.
    intercept_ : ndarray of shape (1 or n_classes,)
        The biases b.
    coef_ : ndarray or CSR matrix of shape (1 or n_classes, d)
        Coefficients of the features (linear kernel only); sparse if X is and has nothing in most columns.
    gap_, objective_ : ndarray of shape (1 or n_classes,)
        Duality gap and objective at the end; the objective is within the gap of the least one. Those of the
        approximated problem, if one is.
    n_iter_ : ndarray of shape (1 or n_classes,)
        Number of Newton steps.
    support_ : ndarray of shape (n_support,)
        Indices of the training objects that have coefficients: all, or the landmarks.
    X_fit_ : array or list of n_support objects
        These objects (kernels given as functions only).
    kept_trace_ : float
        Part of the trace of K that is kept: 1 for the exact solver. For a kernel with negative eigenvalues the eigen
        solver's may exceed 1.
    n_features_in_ : int
        Number of columns of X, where it is a matrix.

    Notes
    -----
    More than two classes are decided one against the rest: this is what the paper's two-class model extends to without
    a further assumption, each class has a problem of its own, and the pairwise scheme does worse with sharp kernels.
    Probabilities are the classes' logistic probabilities divided by their sum.

    The dual is :math:`\min_{0 \le \lambda \le 1} \tfrac12 \beta^T K \beta - C \sum_i w_i H(\lambda_i)` with
    :math:`\beta_i = C w_i S_i \lambda_i`; with a free bias they sum to zero. A kernel matrix with a negative eigenvalue
    (beyond rounding: 1e-6 of its largest diagonal entry, less if C is large) is refused.

    Where C times the kernel is very large (1e8) and the kernel matrix of low rank, rounding keeps the exact solver from
    the demanded gap, of which it then warns; the eigen solver is the stabler one there.

    References
    ----------
    Jaakkola & Haussler (1999), Exploiting generative models in discriminative classifiers, eq. 2-5.

    Examples
    --------
    >>> from genkern import RBF, KernelLogisticRegression
    >>> X, y = [[0.0], [1.0], [5.0], [6.0]], ["low", "low", "high", "high"]
    >>> learner = KernelLogisticRegression(C=10.0, kernel=RBF(gamma=0.1)).fit(X, y)
    >>> learner.predict([[0.5], [5.5]]).tolist()
    ['low', 'high']
    >>> learner.predict_proba([[0.5], [3.0]]).round(3)
    array([[0.11, 0.89],
           [0.5 , 0.5 ]])
    """

    __metadata_request__fit: ClassVar = {"sample_weight": True}

    def __init__(
        self,
        C: float = 1.0,
        kernel: Any = "precomputed",
        *,
        bias: str | None = "free",
        bias_scale: float = 1.0,
        tol: float = 1e-10,
        max_iter: int = 100,
        solver: str = "exact",
        n_components: int | None = None,
        random_state: Any = None,
        class_weight: Any = None,
    ):
        self.C = C
        self.kernel = kernel
        self.bias = bias
        self.bias_scale = bias_scale
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.n_components = n_components
        self.random_state = random_state
        self.class_weight = class_weight

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find the coefficients.

        Parameters
        ----------
        X : array-like of shape (n, n), matrix of shape (n, d), or what the kernel compares
            Kernel values of the training objects, or the objects.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            Weights of the losses, not negative.

        Returns
        -------
        self
        """
        who = "KernelLogisticRegression"
        tol, max_iter = check_number(self.tol, "tol", who), check_int(self.max_iter, "max_iter", who, 1)
        C = check_number(self.C, "C", who, exclusive=True)
        scale = self._check_bias()
        X, codes = self._check_training(X, y)
        weights = C * check_weights(self.class_weight, self.classes_[codes], sample_weight, who)
        self.support_ = np.arange(len(codes))
        path = self._prepare(X, weights, scale)
        free = self.bias == "free"
        goal = tol * POLISHED if self._explicit(path) else tol
        found = [solve(path.space, s, weights, free, goal, max_iter) for s in targets(codes, len(self.classes_)).T]
        late = [solution.gap for solution in found if solution.gap > tol * solution.objective]
        if late:
            warnings.warn(
                f"KernelLogisticRegression stopped with a duality gap of {max(late):.3g} (in {len(late)} of "
                f"{len(found)} problems). Raise max_iter or tol, lower C, or use solver='eigen'.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._store(X, path, found, scale)
        self.gap_ = np.array([solution.gap for solution in found])
        self.objective_ = np.array([solution.objective for solution in found])
        self.n_iter_ = np.array([solution.n_iter for solution in found])
        self.kept_trace_ = path.kept_trace
        return self

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the log probability of each class, shape (n, n_classes).

        Parameters
        ----------
        X : array-like of shape (n, n_fit), matrix of shape (n, d), or what the kernel compares
            Kernel values with the training objects, or the objects.
        """
        return _log_shares(self.decision_function(X))

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, shape (n, n_classes).

        Parameters
        ----------
        X : array-like of shape (n, n_fit), matrix of shape (n, d), or what the kernel compares
            Kernel values with the training objects, or the objects.
        """
        values = self.decision_function(X)
        return agree(np.exp(_log_shares(values)), decide(values))

    # --- the steps of fit

    def _check_bias(self) -> float:
        """Return the constant feature, zero unless the bias is penalised."""
        if self.bias is not None:
            check_option(self.bias, BIASES, "bias", "KernelLogisticRegression")
        scale = check_number(self.bias_scale, "bias_scale", "KernelLogisticRegression", exclusive=True)
        return scale if self.bias == "penalised" else 0.0

    def _prepare(self, X: Any, weights: Floats, scale: float) -> _Path:
        """Return where to solve for checked objects; set ``support_`` if it is not all of them."""
        who, n = "KernelLogisticRegression", len(self.support_)
        solver = check_option(self.solver, SOLVERS, "solver", who)
        rank = n if self.n_components is None else check_int(self.n_components, "n_components", who, 1)
        if solver == "nystrom":
            return self._prepare_landmarks(X, rank, scale)
        if solver == "eigen":
            K = self._within(X)
            Z, to_dual = eigen_features(K, rank)
            return _Path(_with_constant(Z, scale), to_dual, _kept_part(Z, np.trace(K)))
        if self._named("linear") and X.shape[1] < n:
            return _Path(_with_constant(dense(X), scale))
        quadratic = self._quadratic(X, n)
        if quadratic is not None:
            return _Path(_with_constant(quadratic, scale))
        if n > LARGEST:
            raise ValueError(
                f"{who}: the exact solver takes at most {LARGEST} objects. Got {n}. Use solver='eigen' or 'nystrom' "
                "with n_components=1000, or explicit features with kernel='linear'."
            )
        K = self._within(X)
        # What is allowed keeps I + W^{1/2} K W^{1/2} positive definite, as the largest curvature is a quarter.
        largest = float(np.abs(K.diagonal()).max())
        allowed = max(PRECISION * largest, min(ROUNDING * largest, 2.0 / weights.max()))
        check_definite(K, allowed, who, REMEDY)
        return _Path(DualSpace(K + scale**2 if scale else K))

    def _explicit(self, path: _Path) -> bool:
        """Whether the problem is solved in features of a kernel that is not linear."""
        return isinstance(path.space, PrimalSpace) and path.to_dual is None and not self._named("linear")

    def _quadratic(self, X: Any, n: int) -> Floats | None:
        """Return the features (n, q) of a quadratic kernel where they are few beside the objects, else None."""
        if not isinstance(self.kernel, Polynomial) or self.kernel.degree != 2 or X.shape[1] > MOST_COLUMNS:
            return None
        offset = check_number(self.kernel.offset, "offset", "Polynomial")
        rows = span(dense(X))
        return quadratic_features(rows, offset) if FEWER * quadratic_size(rows.shape[1]) <= n else None

    def _prepare_landmarks(self, X: Any, rank: int, scale: float) -> _Path:
        """Return features by kernel values with landmarks."""
        if self.n_components is None:
            raise ValueError(
                "KernelLogisticRegression: solver='nystrom' needs n_components, the number of landmarks. Got None."
            )
        n = len(self.support_)
        self.support_ = np.sort(check_random_state(self.random_state).permutation(n)[:rank])
        if self._named("precomputed"):
            cross, diagonal = self._within(X)[:, self.support_], X.diagonal()
        else:
            cross = self._between(X, _safe_indexing(X, self.support_))
            pieces = (_safe_indexing(X, np.arange(i, min(i + BATCH, n))) for i in range(0, n, BATCH))
            diagonal = np.concatenate([self._between(piece, piece).diagonal() for piece in pieces])
        to_dual = nystrom_map(cross[self.support_])
        Z = cross @ to_dual
        return _Path(_with_constant(Z, scale), to_dual, _kept_part(Z, diagonal.sum()))

    def _store(self, X: Any, path: _Path, found: list[Solution], scale: float) -> None:
        """Set the coefficients and what they refer to."""
        own = np.stack([solution.coefficients for solution in found])
        biases = np.array([solution.bias for solution in found])
        if isinstance(path.space, DualSpace):
            dual = own
            self.intercept_ = biases + scale**2 * dual.sum(axis=1)
        else:
            self.intercept_ = biases
            if scale:
                own, self.intercept_ = own[:, :-1], scale * own[:, -1]
            dual = np.stack([solution.dual for solution in found]) if path.to_dual is None else own @ path.to_dual.T
        self._keep(X if self.solver != "nystrom" else _safe_indexing(X, self.support_), dual)
        self.dual_coef_ = dual
        if isinstance(path.space, PrimalSpace) and self._named("linear") and path.to_dual is None:
            self.coef_ = own  # not by way of the dual coefficients, which agree with them up to the gap only

    def _compare(self, X: Any) -> Floats:
        """Return kernel values (n, n_support) of checked new objects with the supporting ones."""
        values = super()._compare(X)
        return values if values.shape[1] == len(self.support_) else values[:, self.support_]


def _log_shares(values: Floats) -> Floats:
    """Return log probabilities (n, k) of decision values (n,) of two classes or (n, k) of more."""
    if values.ndim == 1:
        return np.stack([log_expit(-values), log_expit(values)], axis=1)
    logs: Floats = log_expit(values)
    return logs - logsumexp(logs, axis=1, keepdims=True)


def _with_constant(Z: Floats, scale: float) -> PrimalSpace:
    """Return the space of coefficients of features and, unless scale is zero, of a constant one."""
    return PrimalSpace(np.column_stack([Z, np.full(len(Z), scale)]) if scale else np.ascontiguousarray(Z))


def _kept_part(Z: Floats, trace: float) -> float:
    """Return the part of a trace that features (n, r) keep: all of it, if there is none."""
    return float((Z**2).sum() / trace) if trace else 1.0
