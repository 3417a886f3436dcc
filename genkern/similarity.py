"""How similar objects are, without labels: Gram matrices of any kind of objects, maps and clusters."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.manifold import TSNE
from sklearn.metrics import silhouette_score
from sklearn.pipeline import Pipeline

from genkern.data.intake import Ints
from genkern.data.kinds import KINDS, detect_kind
from genkern.kernels.components import principal_components
from genkern.recipes.points import points
from genkern.recipes.recipe import Recipe
from genkern.recipes.series import contours, series
from genkern.recipes.svm import fisher_svm, meanmap_svm, product_svm, spectrum_svm
from genkern.recipes.symbols import symbols
from genkern.recipes.text import WordCounts
from genkern.validation import Floats, check_array, check_int, check_option

KERNELS = ("default", "fisher", "product", "meanmap", "spectrum")
RANK = 20  # kernel principal components in which clusters are looked for
MOST = 12  # clusters that are tried where none are given
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
) -> Floats:
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

    Returns
    -------
    K : ndarray of shape (n, n)
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
        return np.asarray(models[:-1].fit_transform(objects))
    if kernel == "default":
        features = embedding(kind, alphabet=alphabet, **shared)
    elif kernel == "fisher":
        features = fisher_svm(**shared)[:-1]
    else:
        features = spectrum_svm(alphabet=alphabet)[:-1]
    table = features.fit_transform(objects)
    return normalized(table)


def normalized(table: Any) -> Floats:
    r"""Return the cosines :math:`\langle x, y \rangle / (|x| |y|)` between rows, one on the diagonal.

    Parameters
    ----------
    table : array or sparse array of shape (n, p)
        Features. A row of zeros has the cosine zero with the others.

    Returns
    -------
    K : ndarray of shape (n, n)
    """
    product = table @ table.T
    K = np.asarray(product.todense() if hasattr(product, "todense") else product, dtype=np.float64)
    scale = np.sqrt(np.diag(K))
    scale[scale == 0.0] = 1.0
    K = K / np.outer(scale, scale)
    K = (K + K.T) / 2
    np.fill_diagonal(K, 1.0)
    return K


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
    else:
        learner = _umap(min(15, len(gram) - 1), random_state)
    name = {"tsne": "t-SNE", "umap": "UMAP"}[method]
    with warnings.catch_warnings():
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
    places = principal_components(gram, min(RANK, len(gram) - 1))[0]
    sizes = range(2, min(MOST, len(gram) - 1) + 1) if n_clusters is None else [n_clusters]
    trials = [KMeans(size, n_init=10, random_state=random_state).fit_predict(places) for size in sizes]
    values = [float(silhouette_score(places, found)) for found in trials]
    best = int(np.argmax(values))
    order = np.argsort(-np.bincount(trials[best]), kind="stable")
    return np.argsort(order)[trials[best]], values[best]


def _umap(neighbours: int, random_state: Any) -> Any:
    """Return the learner of umap-learn, or say how to get it."""
    try:
        from umap import UMAP
    except ImportError:
        raise ImportError('UMAP needs umap-learn: pip install "genkern[maps]", or use t-SNE.') from None
    return UMAP(metric="precomputed", n_neighbors=neighbours, random_state=random_state, n_jobs=1)
