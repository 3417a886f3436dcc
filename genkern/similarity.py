"""How similar objects are, without labels: Gram matrices of any kind of objects, maps, clusters, tests of samples."""

from __future__ import annotations

import io
import re
import warnings
from contextlib import nullcontext, redirect_stdout
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.manifold import TSNE
from sklearn.metrics import silhouette_score
from sklearn.pipeline import Pipeline

from genkern.data.intake import Ints
from genkern.data.kinds import KINDS, detect_kind
from genkern.evaluation.two_sample import TwoSampleTest, two_sample_test
from genkern.gram.gram import Gram
from genkern.kernels.base import Kernel
from genkern.kernels.components import principal_components
from genkern.kernels.vectors import Linear
from genkern.learn.kernel_classifier import ROUNDING, check_symmetric
from genkern.progress import each, listening, portion, reach
from genkern.recipes.points import points
from genkern.recipes.recipe import Recipe
from genkern.recipes.series import contours, series
from genkern.recipes.svm import fisher_svm, meanmap_svm, product_svm, spectrum_svm
from genkern.recipes.symbols import symbols
from genkern.recipes.text import WordCounts
from genkern.validation import Floats, check_array, check_int, check_option, n_objects

KERNELS = ("default", "fisher", "product", "meanmap", "spectrum")
RANK = 20  # kernel principal components in which clusters are looked for
LARGEST = 1e307  # kernel value of which distances are finite
MOST = 12  # clusters that are tried where none are given
START = 0.3  # share of the time of t-SNE and UMAP that they may take to look for neighbours
TSNE_STEPS = 1000  # its default
STEP = re.compile(r"Iteration (\d+)|(\d+)/(\d+) ")  # of t-SNE and of UMAP, in what they write
FEWEST = 3  # neighbours that t-SNE and UMAP can do with


def embedding(kind: str, *, alphabet: Any = None, random_state: Any = 0, n_jobs: int | None = None) -> Pipeline:
    """Return the features of the recipe for a kind of objects, without its learner: no label takes part in them.

    Parameters
    ----------
    kind : {"series", "symbols", "codes", "points", "documents"}
        What the objects are; see ``genkern.data.kinds``.
    alphabet : str, int, sequence or Alphabet, optional
        The symbols, as in ``symbols`` and ``contours``.
    random_state : int, default=0
        Seed of the models.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    pipeline : Pipeline
        From objects to features: those of ``series``, ``contours``, or ``symbols`` without class models; of point sets
        Fisher vectors of a Gaussian mixture; of documents words weighted by their rarity.

    Examples
    --------
    >>> from genkern.similarity import embedding
    >>> embedding("symbols").fit_transform(["aabb", "abab", "bbbb"]).shape[0]
    3
    """
    check_option(kind, KINDS, "kind", "embedding")
    shared = {"random_state": random_state, "n_jobs": n_jobs}
    if kind == "series":
        return series(**shared)[:-1]
    if kind == "codes":
        return contours(**({} if alphabet is None else {"alphabet": alphabet}), **shared)[:-1]
    if kind == "symbols":
        return symbols(alphabet, models=None, **shared)[:-1]
    if kind == "documents":
        return Recipe([("counts", WordCounts()), ("weights", TfidfTransformer(sublinear_tf=True))])
    return points(**shared)[:-1]


def gram(
    X: Any,
    kind: str | None = None,
    *,
    kernel: str = "default",
    alphabet: Any = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    **matrix: Any,
) -> Any:
    r"""Return the kernel values between all objects, normalised: :math:`k(x, y) / \sqrt{k(x, x)\, k(y, y)}`.

    Parameters
    ----------
    X : list
        The objects.
    kind : str, optional
        What they are; the default is found by ``genkern.data.kinds.detect_kind``.
    kernel : {"default", "fisher", "product", "meanmap", "spectrum"}, default="default"
        "default" is the inner product of the features of ``embedding``; the others are the kernels of ``fisher_svm``,
        ``product_svm``, ``meanmap_svm`` and ``spectrum_svm`` with their default settings.
    alphabet : str, int, sequence or Alphabet, optional
        The symbols, where objects are of such.
    random_state : int, default=0
        Seed of the models.
    n_jobs : int, optional
        Threads.
    **matrix
        ``out``, ``memory_limit``, ``block_size``, ``threshold`` and ``top_k`` of ``Gram``: for a matrix on disk, or a
        sparse one.

    Returns
    -------
    K : ndarray of shape (n, n), or what ``Gram`` returns with these
        Kernel values, one on the diagonal. An object without any feature (an empty document) has zeros, off the
        diagonal.

    Examples
    --------
    >>> from genkern.similarity import gram
    >>> gram(["aabb", "abab", "bbbb"], kernel="spectrum").shape
    (3, 3)
    """
    objects = list(X)
    kind = detect_kind(objects, "gram") if kind is None else check_option(kind, KINDS, "kind", "gram")
    check_option(kernel, KERNELS, "kernel", "gram")
    shared = {"random_state": random_state, "n_jobs": n_jobs}
    if kernel in ("product", "meanmap"):
        models = product_svm(**shared) if kernel == "product" else meanmap_svm(**shared)
        models.set_params(**{f"gram__{name}": value for name, value in matrix.items()})
        K = models[:-1].fit_transform(objects)
        return K if matrix else np.asarray(K)
    if kernel == "default":
        features = embedding(kind, alphabet=alphabet, **shared)
    elif kernel == "fisher":
        features = fisher_svm(**shared)[:-1]
    else:
        features = spectrum_svm(alphabet=alphabet)[:-1]
    with portion(0.9):
        table = features.fit_transform(objects)
    K = Gram(Linear().normalized(), n_jobs=n_jobs, **matrix).fit_transform(table)
    return K if matrix else np.asarray(K)


def distances(K: Any) -> Floats:
    r"""Return the distances that a kernel defines, :math:`D(x, x') = \sqrt{K(x, x) - 2 K(x, x') + K(x', x')}`.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Gram matrix. Distances that are small beside the diagonal, below some 1e-8 of its root, are lost in rounding;
        those of features come without this loss from ``sklearn.metrics.pairwise_distances``.

    Returns
    -------
    D : ndarray of shape (n, n)
        Symmetric, with a diagonal of zeros.

    References
    ----------
    Jaakkola & Haussler (1999), Exploiting generative models in discriminative classifiers, section 3.

    Examples
    --------
    >>> from genkern.similarity import distances
    >>> distances([[1.0, 0.5], [0.5, 1.0]])
    array([[0., 1.],
           [1., 0.]])
    """
    try:
        matrix = check_array(K, "K", "distances", ndim=2)
    except TypeError as error:
        remedy = "Give the whole Gram matrix of objects, distances(gram(X))."
        raise TypeError(f"{str(error).rstrip('.')}. {remedy}") from None
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"distances: 'K' must be square, a Gram matrix such as gram(X). Got shape {matrix.shape}; distances of "
            "features are those of sklearn.metrics.pairwise_distances."
        )
    if np.abs(matrix).max(initial=0.0) > LARGEST:
        raise ValueError(f"distances: 'K' must hold numbers up to {LARGEST:g}. Got a larger one; divide K by it.")
    matrix = check_symmetric(matrix, "distances")
    diagonal = matrix.diagonal()
    if diagonal.min() < 0.0:
        i, wrong = int(diagonal.argmin()), "so the matrix is not positive semi-definite. Choose a kernel that is."
        raise ValueError(f"distances: object {i} has the kernel value {diagonal[i]:.4g} with itself, {wrong}")
    squares = diagonal[:, None] + diagonal - 2.0 * matrix
    lost = squares < -ROUNDING * np.abs(diagonal).max(initial=0.0)
    if lost.any():
        i, j = np.argwhere(lost)[0].tolist()
        raise ValueError(
            f"distances: objects {i} and {j} have a squared distance of {squares[i, j]:.4g}, so the matrix is not "
            "positive semi-definite. Choose a kernel that is."
        )
    roots: Floats = np.sqrt(np.maximum(squares, 0.0))
    return roots


def mmd_test(
    X: Any,
    Y: Any,
    kernel: Any = "default",
    *,
    kind: str | None = None,
    alphabet: Any = None,
    n_permutations: int = 999,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> TwoSampleTest:
    """Test whether two lists of objects come from the same law, by the maximum mean discrepancy of a kernel.

    The p-value is by permutation, see ``two_sample_test``, which does the same for given kernel values. The models of
    the kernel are fitted to both lists together, not knowing which is which, so that the test holds.

    Parameters
    ----------
    X, Y : list
        The objects of two samples, two in each at least; or matrices, for kernels between vectors.
    kernel : {"default", "fisher", "product", "meanmap", "spectrum"}, Kernel or transformer, default="default"
        How objects are compared: as in ``gram``; or by a kernel between objects like these (models, vectors,
        sequences); or by what a transformer such as ``make_pipeline(FitEach(...), Gram(...))`` makes of them, which are
        their kernel values with each other.
    kind : {"series", "symbols", "codes", "points", "documents"}, optional
        What the objects are, for kernels given by name; by default it is looked at.
    alphabet : str, int, sequence or Alphabet, optional
        The symbols, for kernels given by name.
    n_permutations : int, default=999
        Number of random divisions.
    random_state : int, default=0
        Seed of the divisions, and of models behind kernels given by name.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    test : TwoSampleTest
        ``statistic``, ``p_value`` and ``n_permutations``.

    References
    ----------
    Gretton et al. (2012), A kernel two-sample test, Journal of Machine Learning Research 13.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import RBF, mmd_test
    >>> rng = np.random.default_rng(0)
    >>> mmd_test(rng.normal(size=(30, 2)), rng.normal(1.0, size=(30, 2)), RBF(0.5)).p_value
    0.001
    >>> mmd_test(["abab", "baba", "ababa"] * 5, ["aabb", "bbaa", "aaabb"] * 5).p_value
    0.001
    """
    for name, sample in (("X", X), ("Y", Y)):
        count = None if isinstance(sample, str) else n_objects(sample)
        if count is None or count < 2:
            got = type(sample).__name__ if count is None else f"{count} objects"
            raise ValueError(f"mmd_test: '{name}' must be a list of two objects at least. Got {got}.")
    both: Any = sparse.vstack([X, Y]) if sparse.issparse(X) else [*_listed(X), *_listed(Y)]
    with portion(0.5, "kernel values"):
        if isinstance(kernel, str):
            K = gram(both, kind, kernel=kernel, alphabet=alphabet, random_state=random_state, n_jobs=n_jobs)
        elif kind is not None or alphabet is not None:
            raise ValueError(f"mmd_test: 'kind' and 'alphabet' are for kernels given by name. Got {kernel!r}.")
        elif isinstance(kernel, Kernel):
            K = Gram(kernel, n_jobs=n_jobs).fit_transform(both)
        elif hasattr(kernel, "fit_transform"):
            K = clone(kernel).fit_transform(both)
        else:
            raise TypeError(
                f"mmd_test: 'kernel' must be one of {', '.join(map(repr, KERNELS))}, a Kernel such as RBF(), or a "
                f"transformer that ends in Gram. Got {kernel!r}."
            )
    with portion(1.0, "permutations"):
        return two_sample_test(K, int(n_objects(X) or 0), n_permutations=n_permutations, rng=random_state)


def plane(K: Any, method: str = "pca", *, random_state: Any = 0) -> tuple[Floats, tuple[str, str]]:
    """Return objects as points in the plane, from their kernel values.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Kernel values.
    method : {"pca", "tsne", "umap"}, default="pca"
        Kernel principal components; or t-SNE or UMAP (``pip install "genkern[maps]"``) on the distances of the kernel.
    random_state : int, default=0
        Seed of t-SNE and UMAP.

    Returns
    -------
    places : ndarray of shape (n, 2)
        The points.
    axes : tuple of str
        Names of the axes.
    """
    gram = check_array(K, "K", "plane", ndim=2)
    if len(gram) < 2:
        raise ValueError(f"plane: two objects are needed at least. Got {len(gram)}.")
    check_option(method, ("pca", "tsne", "umap"), "method", "plane")
    if method == "pca":
        places, shares = principal_components(gram, 2)
        return places, (f"first component ({shares[0]:.0%} of the variance)", f"second component ({shares[1]:.0%})")
    if len(gram) <= FEWEST:
        raise ValueError(f"plane: {method} needs more than {FEWEST} objects. Got {len(gram)}; use 'pca'.")
    diagonal = np.diag(gram)
    distances = np.sqrt(np.maximum(diagonal[:, None] + diagonal - 2 * gram, 0.0))
    np.fill_diagonal(distances, 0.0)
    if method == "tsne":
        perplexity = min(30.0, (len(gram) - 1) / 3)
        learner = TSNE(metric="precomputed", init="random", perplexity=perplexity, random_state=random_state)
        learner.set_params(verbose=2 if listening() else 0)
    else:
        learner = _umap(min(15, len(gram) - 1), random_state)
    name = {"tsne": "t-SNE", "umap": "UMAP"}[method]
    heard = redirect_stdout(_Heard()) if listening() else nullcontext()
    with warnings.catch_warnings(), heard:
        warnings.filterwarnings("ignore", "using precomputed metric")  # of UMAP: new objects are not asked about
        places = np.asarray(learner.fit_transform(distances), np.float64)
    return places, (f"{name} 1", f"{name} 2")


def cluster(K: Any, n_clusters: int | None = None, *, random_state: Any = 0) -> tuple[Ints, float]:
    """Group objects by k-means in the first twenty kernel principal components.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Kernel values.
    n_clusters : int, optional
        Number of clusters. The default is the number from 2 to 12 with the largest mean silhouette.
    random_state : int, default=0
        Seed of k-means.

    Returns
    -------
    clusters : ndarray of shape (n,)
        The cluster of each object, the largest first: 0, 1, ...
    silhouette : float
        The mean silhouette, between -1 and 1.

    References
    ----------
    Rousseeuw (1987), Silhouettes: a graphical aid to the interpretation and validation of cluster analysis.
    """
    gram = check_array(K, "K", "cluster", ndim=2)
    if len(gram) < 3:
        raise ValueError(f"cluster: three objects are needed at least. Got {len(gram)}.")
    if n_clusters is not None and check_int(n_clusters, "n_clusters", "cluster", 2) >= len(gram):
        raise ValueError(
            f"cluster: there must be fewer clusters than objects. Got {n_clusters} for {len(gram)} objects."
        )
    with portion(0.1, "components"):
        places = principal_components(gram, min(RANK, len(gram) - 1))[0]
    sizes = range(2, min(MOST, len(gram) - 1) + 1) if n_clusters is None else [n_clusters]
    trials, values = [], []
    for size in each(sizes):
        trials.append(KMeans(size, n_init=10, random_state=random_state).fit_predict(places))
        values.append(float(silhouette_score(places, trials[-1])))
    best = int(np.argmax(values))
    order = np.argsort(-np.bincount(trials[best]), kind="stable")
    return np.argsort(order)[trials[best]], values[best]


def _listed(X: Any) -> list[Any]:
    """Return objects as a list; those of a frame are its rows."""
    return list(X.to_numpy() if hasattr(X, "columns") else X)


def _umap(neighbours: int, random_state: Any) -> Any:
    """Return the learner of umap-learn, or say how to get it."""
    try:
        from umap import UMAP
    except ImportError:
        raise ImportError('UMAP needs umap-learn: pip install "genkern[maps]", or use t-SNE.') from None
    told = {"verbose": True, "tqdm_kwds": {"file": _Heard(), "disable": False}} if listening() else {}
    return UMAP(metric="precomputed", n_neighbors=neighbours, random_state=random_state, n_jobs=1, **told)


class _Heard(io.TextIOBase):
    """A stream that takes what t-SNE and UMAP write about themselves, and tells progress by it."""

    def __init__(self) -> None:
        self._stages = 0

    def write(self, text: str) -> int:
        """Take a text, which names a stage before the steps, or counts steps."""
        step = STEP.search(text)
        if step is not None:
            reach(START + (1.0 - START) * int(step[1] or step[2]) / int(step[3] or TSNE_STEPS))
        elif text.strip():
            self._stages += 1
            with portion(0.0, text.strip()[:60]):
                pass
            reach(min(0.05 * self._stages, START))
        return len(text)
