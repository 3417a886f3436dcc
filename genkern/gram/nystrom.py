"""Explicit features of any kernel, from kernel values with a few landmark objects."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.utils import _safe_indexing, check_random_state

from genkern.gram.base import KernelTransformer
from genkern.gram.blocks import VECTORS, slices
from genkern.kernels.base import Kernel
from genkern.kernels.divergences import NotPositiveWarning
from genkern.kernels.positivity import allowance, indefinite
from genkern.validation import Floats, check_int, check_option

SELECT = ("uniform", "kmeans++", "leverage", "pivots")
CUTOFF = 1e-12  # relative to the largest: smaller eigenvalues, and residuals of pivots, are rounding errors


class Nystrom(KernelTransformer):
    r"""Features whose inner products are close to a kernel: Nystrom's approximation from m landmarks.

    .. math:: Z = K_{xm}\, W^{+1/2}, \qquad Z Z^T = K_{xm} W^+ K_{mx} \approx K

    with the kernel values :math:`K_{xm}` of objects with landmarks and W of landmarks with each other. For linear
    learners on too many objects for a kernel matrix: n m kernel values instead of n². Works for every kernel, between
    models, sequences, sets or vectors. Exact if all objects are landmarks, or the kernel's rank is at most m and the
    landmarks span it.

    Parameters
    ----------
    kernel : Kernel
        The kernel between two representations.
    n_landmarks : int, default=100
        Number m of landmarks; all objects if there are fewer.
    select : {"uniform", "kmeans++", "leverage", "pivots"}, default="uniform"
        Which training objects are landmarks. "uniform": so many at random. "kmeans++": one after another, at random
        with probabilities proportional to squared distances, in feature space, from the landmarks so far. "leverage":
        at random by ridge leverage scores, which say how much of an object others do not span; they are estimated from
        m uniform landmarks. "pivots": one after another, the object with the largest residual given the landmarks so
        far (the pivots of an incomplete Cholesky factorisation). Pivots leave no object or small group out, so that the
        largest error is smaller, though not always the mean. All but "uniform" cost n m more kernel values, "kmeans++"
        and "pivots" one row at a time; these two stop early when all distances or residuals vanish.
    random_state : int, RandomState or None, default=0
        Seed of the random choice.
    n_jobs : int, optional
        Number of threads; None means 1 unless in a joblib context, -1 all.
    block_size : int, optional
        Rows and columns of one block of work, as in ``Gram``. Results do not depend on it.
    verbose : int, default=0
        Whether to tell, on standard error, how many blocks are done; from 10 on after each.

    Attributes
    ----------
    landmarks_ : list of models, stack of models or matrix
        The landmarks, one per feature.
    landmark_indices_ : array of shape (m,)
        Their indices in the training set.
    root_ : array of shape (m, m)
        The root :math:`W^{+1/2}`, of the positive part of W.
    log_scale_ : float
        The logarithm of a common factor of all kernel values, as in ``Gram``.
    n_features_in_ : int
        Number of columns of the training matrix, for kernels between vectors.

    Notes
    -----
    The root leaves out eigenvalues of W that are negative or below 1e-12 of the largest; a warning says so if they are
    more negative than by rounding, which a kernel that is not positive semi-definite causes.

    References
    ----------
    Williams & Seeger (2001), Using the Nystrom method to speed up kernel machines. Fine & Scheinberg (2001), Efficient
    SVM training using low-rank kernel representations, section 4. Arthur & Vassilvitskii (2007), k-means++: the
    advantages of careful seeding. Alaoui & Mahoney (2015), Fast randomized kernel ridge regression with statistical
    guarantees, section 3.

    Examples
    --------
    >>> from genkern import Gaussian, Nystrom, ProbabilityProduct
    >>> models = [Gaussian(mean, 1.0) for mean in (0.0, 0.1, 4.0, 4.1, 8.0)]
    >>> kernel = ProbabilityProduct(rho=0.5)
    >>> features = Nystrom(kernel, n_landmarks=3, select="pivots")
    >>> Z = features.fit_transform(models)
    >>> features.landmark_indices_
    array([0, 4, 2])
    >>> float(abs(Z @ Z.T - kernel(models)).max().round(3))
    0.002
    """

    _fitted = "root_"

    def __init__(
        self,
        kernel: Kernel,
        n_landmarks: int = 100,
        select: str = "uniform",
        random_state: Any = 0,
        n_jobs: int | None = None,
        block_size: int | None = None,
        verbose: int = 0,
    ):
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.select = select
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.block_size = block_size
        self.verbose = verbose

    def _fit(self, X: Any, y: Any) -> None:
        most = check_int(self.n_landmarks, "n_landmarks", "Nystrom", 1)
        select = check_option(self.select, SELECT, "select", "Nystrom")
        ready = self._start(X)
        n = ready.shape[0]
        rng = check_random_state(self.random_state)
        if select == "pivots":
            self.landmark_indices_ = self._pivots(ready, min(most, n))
        elif select == "kmeans++":
            self.landmark_indices_ = self._spread(ready, min(most, n), rng)
        else:
            self.landmark_indices_ = rng.permutation(n)[:most]
            if select == "leverage" and most < n:
                self.landmark_indices_ = rng.choice(n, most, replace=False, p=self._leverage(ready, X))
        self.landmarks_ = _safe_indexing(X, self.landmark_indices_)
        self.root_ = self._root(self.kernel.prepare(self.landmarks_))
        self._n_features_out = len(self.root_)

    def _transform(self, X: Any) -> Floats:
        out = self._cross(self.kernel.prepare(X), self.kernel.prepare(self.landmarks_))
        for rows in slices(len(out), VECTORS):
            out[rows] = out[rows] @ self.root_
        return out

    def _root(self, ready: Any) -> Floats:
        """Return the root (m, m) of the pseudo-inverse of the matrix of prepared landmarks."""
        W = self._square(ready)
        values, vectors = eigh(W)
        if values[0] < -allowance(W):
            words = indefinite(values[0], values[-1], self.kernel, ready)
            warnings.warn(f"Nystrom: {words} Only the positive part is used.", NotPositiveWarning, stacklevel=4)
        kept = values > CUTOFF * max(values[-1], 0.0)
        root: Floats = (vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T
        return root

    def _pivots(self, ready: Any, most: int) -> NDArray[np.intp]:
        """Return the indices of landmarks, each the object with the largest residual given those before."""
        left = self._own(ready)
        floor, factor, places = CUTOFF * left.max(), np.empty((len(left), most)), []
        for j in range(most):
            i = int(left.argmax())
            if left[i] <= floor:
                break
            places.append(i)
            row = self._cross(ready[i : i + 1], ready)[0] - factor[:, :j] @ factor[i, :j]
            factor[:, j] = row / np.sqrt(left[i])
            left = left - factor[:, j] ** 2
            left[i] = 0.0
        return np.array(places or [0])

    def _spread(self, ready: Any, most: int, rng: Any) -> NDArray[np.intp]:
        """Return the indices of landmarks, each drawn by its squared distance from the nearest of those before."""
        own = self._own(ready)
        places = [int(rng.randint(len(own)))]
        gaps = np.full(len(own), np.inf)
        while len(places) < most:
            i = places[-1]
            row = self._cross(ready[i : i + 1], ready)[0]
            gaps = np.minimum(gaps, np.maximum(own - 2.0 * row + own[i], 0.0))
            gaps[i] = 0.0
            gaps[gaps <= CUTOFF * own.max()] = 0.0
            if not gaps.any():
                break
            places.append(int(rng.choice(len(own), p=gaps / gaps.sum())))
        return np.array(places)

    def _leverage(self, ready: Any, X: Any) -> Floats:
        """Return probabilities (n,) proportional to the ridge leverage scores, in the span of the present landmarks.

        The ridge is the mean residual of the objects, which the landmarks do not span.
        """
        some = self.kernel.prepare(_safe_indexing(X, self.landmark_indices_))
        Z = self._cross(ready, some) @ self._root(some)
        own = self._own(ready)
        rest = own - (Z**2).sum(axis=1)
        rest[rest <= CUTOFF * own.max()] = 0.0
        values, vectors = eigh(Z.T @ Z)
        ridge = max(float(rest.sum()) / len(self.landmark_indices_), CUTOFF * float(values[-1]))
        spanned = ((Z @ vectors) ** 2 / (np.maximum(values, 0.0) + ridge)).sum(axis=1)
        scores = np.maximum(spanned + rest / ridge, CUTOFF)
        return np.asarray(scores / scores.sum())

    def _own(self, ready: Any) -> Floats:
        """Return the scaled values (n,) of each object with itself."""
        if self.kernel.native_logs:
            return np.asarray(np.exp(self.kernel.log_diag(ready) - self.log_scale_))
        return self.kernel.diag(ready)
