"""Pictures of Gram matrices: a heat map sorted by class, and the kernel PCA map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh

from genkern.validation import Floats, check_array

# Paul Tol's "muted" scheme: nine colours that stay apart for colour-blind readers. Shapes repeat with
# another period, so that no class is told by colour alone.
COLOURS = (
    "#332288", "#CC6677", "#117733", "#DDCC77", "#88CCEE", "#882255", "#44AA99", "#999933", "#AA4499",
)  # fmt: skip
MARKERS = "o^sDvP*X"
GREY = "#555555"


def gram_heatmap(K: ArrayLike, y: ArrayLike, ax: Any = None, title: str | None = None) -> Any:
    """Draw a Gram matrix as a heat map, objects sorted by class, lines between classes.

    Values that are all non-negative are coloured from dark (0) to light, signed ones from purple through
    white (0) to orange. The scale ends at the 99th percentile of the absolute off-diagonal values, so that
    a heavy diagonal does not wash out the rest; values beyond it have the end colour, which the colour bar
    shows by a tip.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Kernel values.
    y : array-like of shape (n,)
        Classes.
    ax : matplotlib Axes, optional
        Where to draw; the default is a new figure.
    title : str, optional
        Title of the axes.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.
    """
    gram, labels = _check_gram(K, y, "gram_heatmap")
    ax = _axes(ax)
    order = np.argsort(labels, kind="stable")
    classes, counts = np.unique(labels, return_counts=True)
    low, high = _limits(gram)
    image = ax.imshow(
        gram[np.ix_(order, order)],
        cmap="cividis" if low == 0.0 else "PuOr_r",
        vmin=low,
        vmax=high,
        interpolation="nearest",
        rasterized=True,
    )
    edges = np.concatenate([[0], np.cumsum(counts)])
    for edge in edges[1:-1] - 0.5:
        ax.axhline(edge, color="white" if low == 0.0 else GREY, linewidth=0.8)
        ax.axvline(edge, color="white" if low == 0.0 else GREY, linewidth=0.8)
    middles = (edges[:-1] + edges[1:] - 1) / 2
    ax.set_xticks(middles, labels=[str(name) for name in classes])
    ax.set_yticks(middles, labels=[str(name) for name in classes])
    ax.tick_params(length=0)
    ax.set_xlabel("class")
    ax.set_ylabel("class")
    below, above = bool((gram < low).any()), bool((gram > high).any())
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03, extend=_EXTEND[below, above])
    bar.set_label("kernel value")
    bar.outline.set_visible(False)
    ax.set_title("Gram matrix" if title is None else title)
    return ax


def kernel_pca_map(K: ArrayLike, y: ArrayLike, ax: Any = None, title: str | None = None) -> Any:
    r"""Draw objects on the first two kernel principal components, one colour and shape per class.

    With the centred Gram matrix :math:`HKH = \sum_k \mu_k u_k u_k^\top`, object i is drawn at
    :math:`(\sqrt{\mu_1} u_{1i}, \sqrt{\mu_2} u_{2i})`; the axes are labelled with :math:`\mu_k /
    \mathrm{tr}(HKH)`.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Kernel values, not centred.
    y : array-like of shape (n,)
        Classes.
    ax : matplotlib Axes, optional
        Where to draw; the default is a new figure.
    title : str, optional
        Title of the axes.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    References ---------- .. [1] B. Schölkopf, A. Smola, K.-R. Müller (1998), Nonlinear component analysis
    as a kernel eigenvalue problem.
    """
    gram, labels = _check_gram(K, y, "kernel_pca_map")
    ax = _axes(ax)
    places, shares = _principal_components(gram)
    for label, style in zip(np.unique(labels), _styles()):
        mine = labels == label
        ax.scatter(*places[mine].T, s=22, linewidths=0.3, edgecolors="white", alpha=0.85, label=str(label), **style)
    ax.set_xlabel(f"first component ({shares[0]:.0%} of the variance)")
    ax.set_ylabel(f"second component ({shares[1]:.0%})")
    ax.legend(title="class", frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), handletextpad=0.2)
    ax.spines[["top", "right"]].set_visible(False)
    ax.locator_params(nbins=5)
    ax.set_title("Kernel PCA map" if title is None else title)
    return ax


_EXTEND = {
    (False, False): "neither",
    (True, False): "min",
    (False, True): "max",
    (True, True): "both",
}


def _check_gram(K: ArrayLike, y: ArrayLike, who: str) -> tuple[Floats, NDArray[Any]]:
    """Return a symmetric matrix of at least 3 objects and as many labels."""
    gram = check_array(K, "K", who, ndim=2)
    labels = np.asarray(y)
    if gram.shape[0] != gram.shape[1] or labels.shape != gram.shape[:1] or len(gram) < 3:
        raise ValueError(
            f"{who}: 'K' must be square, of at least 3 objects, with one label in 'y' per row. Got K of "
            f"shape {gram.shape} and y of shape {labels.shape}."
        )
    if not np.allclose(gram, gram.T, rtol=1e-8, atol=1e-10 * float(np.abs(gram).max())):
        raise ValueError(f"{who}: 'K' must be symmetric. For the values between two sets of objects, draw each alone.")
    return gram, labels


def _limits(gram: Floats) -> tuple[float, float]:
    """Return the ends of the colour scale."""
    off_diagonal = np.abs(gram[~np.eye(len(gram), dtype=bool)])
    high = float(np.percentile(off_diagonal, 99)) or float(np.abs(gram).max()) or 1.0
    return (0.0 if gram.min() >= 0 else -high), high


def _principal_components(gram: Floats) -> tuple[Floats, Floats]:
    """Return coordinates (n, 2) on the first two components and their shares of the variance."""
    centred = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None] + gram.mean()
    n = len(gram)
    values, vectors = eigh(centred, subset_by_index=(n - 2, n - 1))
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    # An eigenvector's sign is arbitrary: fix it, so that the same matrix always gives the same picture.
    vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), [0, 1]])
    total = float(np.trace(centred))
    shares = values / total if total > 0 else np.zeros(2)
    return vectors * np.sqrt(values), shares


def _styles() -> Iterator[dict[str, str]]:
    """Yield a colour and a shape per class, without end."""
    i = 0
    while True:
        yield {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}
        i += 1


def _axes(ax: Any) -> Any:
    """Return the given axes or new ones."""
    if ax is not None:
        return ax
    return pyplot().subplots(figsize=(6.0, 4.8), layout="constrained")[1]


def pyplot() -> Any:
    """Return ``matplotlib.pyplot``, or say how to get it."""
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError("genkern.plots needs matplotlib: pip install 'genkern[plots]'") from error
    return matplotlib.pyplot
