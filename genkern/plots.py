"""Pictures: a Gram matrix sorted by class, the kernel PCA map, and what a classifier saw in an object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.data.objects import kind_of
from genkern.explanation.explain import Explanation
from genkern.kernels.components import principal_components
from genkern.validation import Floats, check_array, check_int

# Paul Tol's "muted" scheme: nine colours that stay apart for colour-blind readers. Shapes repeat with
# another period, so that no class is told by colour alone.
COLOURS = (
    "#332288", "#CC6677", "#117733", "#DDCC77", "#88CCEE", "#882255", "#44AA99", "#999933", "#AA4499",
)  # fmt: skip
MARKERS = "o^sDvP*X"
GREY = "#555555"
FOR, AGAINST = "#B35806", "#542788"  # orange and purple: the ends of PuOr, which colour-blind readers tell apart
LETTERS, LINES = 80, 6  # symbols in a line, and lines, of which letters are drawn


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
    places, shares = principal_components(gram, 2)
    axes = (f"first component ({shares[0]:.0%} of the variance)", f"second component ({shares[1]:.0%})")
    return object_map(places, labels, ax, "Kernel PCA map" if title is None else title, axes)


def object_map(
    places: ArrayLike,
    y: ArrayLike | None = None,
    ax: Any = None,
    title: str | None = None,
    axes: tuple[str, str] | None = None,
) -> Any:
    """Draw objects at places in the plane, one colour and shape per class.

    Parameters
    ----------
    places : array-like of shape (n, 2)
        The places.
    y : array-like of shape (n,), optional
        Classes; without them all objects look alike.
    ax : matplotlib Axes, optional
        Where to draw; the default is a new figure.
    title : str, optional
        Title of the axes.
    axes : tuple of str, optional
        Names of the two axes.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.
    """
    points = check_array(places, "places", "object_map", ndim=2)
    labels = np.zeros(len(points), dtype=int) if y is None else np.asarray(y)
    if points.shape[1] != 2 or labels.shape != points.shape[:1]:
        raise ValueError(
            f"object_map: expected places of shape (n, 2) and n labels. Got shapes {points.shape} and {labels.shape}."
        )
    ax = _axes(ax)
    for label, style in zip(np.unique(labels), _styles()):
        mine = labels == label
        ax.scatter(*points[mine].T, s=22, linewidths=0.3, edgecolors="white", alpha=0.85, label=str(label), **style)
    if axes is not None:
        ax.set_xlabel(axes[0])
        ax.set_ylabel(axes[1])
    if y is not None:
        ax.legend(title="class", frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), handletextpad=0.2)
    ax.spines[["top", "right"]].set_visible(False)
    ax.locator_params(nbins=5)
    if title is not None:
        ax.set_title(title)
    return ax


def explanation(explanation: Explanation, ax: Any = None, n: int = 12) -> Any:
    """Draw what a classifier saw in an object: contributions of positions, and those of the largest features.

    Orange speaks for the class, purple against it. Symbols are drawn as letters on their contribution (up to 480 of
    them), series as lines or, with more than four channels, as a heat map of standardised channels, above the
    contributions of positions. Without positions, or with only one, there are features only.

    Parameters
    ----------
    explanation : Explanation
        What ``explain`` returned.
    ax : matplotlib Axes, optional
        Where to draw, in axes inset into it; it should be about three times as wide as high. The default is a new
        figure.
    n : int, default=12
        How many features are shown.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.
    """
    host = ax if ax is not None else pyplot().subplots(figsize=(12.0, 4.2), layout="constrained")[1]
    host.set_axis_off()
    places = explanation.positions
    parts = [("intercept", explanation.intercept)]
    if places is None or len(places) == 1:
        parts.append(("features", float(explanation.contributions.sum())))
        _draw_features(host.inset_axes((0.2, 0.1, 0.6, 0.85)), explanation, n)
    else:
        parts += [("positions", float(places.sum())), ("rest", explanation.rest)]
        _draw_features(host.inset_axes((0.74, 0.12, 0.26, 0.84)), explanation, n)
        _draw_positions(host, explanation.x, places)
    sums = "  ".join(f"{value:+.2f} {name}" for name, value in parts if abs(value) >= 0.005)
    host.set_title(f"class {explanation.label!r}: decision {explanation.decision:+.2f}  =  {sums}", fontsize=11)
    return host


def _draw_features(ax: Any, shown: Explanation, n: int) -> None:
    """Draw the largest contributions of features as bars, largest on top, named on the other side of zero."""
    top = shown.top(check_int(n, "n", "explanation", 1))[::-1]
    values = np.array([value for _, value in top])
    ax.barh(np.arange(len(top)), values, color=np.where(values >= 0, FOR, AGAINST), height=0.72)
    reach = float(np.abs(values).max()) or 1.0
    for row, (name, value) in enumerate(top):
        side = "right" if value >= 0 else "left"
        short = name if len(name) <= 26 else f"{name[:8]}…{name[-17:]}"
        ax.text(-0.03 * reach * np.copysign(1.0, value), row, short, ha=side, va="center", fontsize=8)
    ax.set_xlim(-1.15 * reach, 1.15 * reach)
    ax.axvline(0.0, color=GREY, linewidth=0.8)
    ax.set_yticks([])
    ax.locator_params(axis="x", nbins=5)
    ax.tick_params(labelsize=8)
    ax.set_xlabel(f"contributions of the {len(top)} largest of {len(shown.names)} features", fontsize=9)
    ax.spines[["top", "right", "left"]].set_visible(False)


def _draw_positions(host: Any, x: Any, places: Floats) -> None:
    """Draw the object and the contributions (T,) of its positions at the left of the host."""
    reach = float(np.abs(places).max()) or 1.0
    symbols = kind_of([x], "explanation", ask=False) == "symbols"
    lines = -(-len(places) // LETTERS) if symbols and len(places) <= LETTERS * LINES else 0
    share = 0.09 * lines if symbols else 0.5  # of the height, for the object
    bars = host.inset_axes((0.05, 0.12, 0.65, 0.84 - share - 0.03))
    inset = host.inset_axes((0.05, 0.96 - share, 0.65, share)) if share else None
    if len(places) <= 2 * LETTERS:
        bars.bar(np.arange(len(places)), places, color=np.where(places >= 0, FOR, AGAINST), width=0.8)
    else:
        for sign, colour in ((1.0, FOR), (-1.0, AGAINST)):
            bars.fill_between(np.arange(len(places)), sign * np.maximum(sign * places, 0.0), color=colour, step="mid")
    bars.axhline(0.0, color=GREY, linewidth=0.8)
    bars.set_xlim(-0.5, len(places) - 0.5)
    bars.set_ylim(min(1.08 * places.min(), -0.05 * reach), max(1.08 * places.max(), 0.05 * reach))
    bars.set_xlabel("position", fontsize=9)
    bars.set_ylabel("contribution", fontsize=9)
    bars.tick_params(labelsize=8)
    bars.spines[["top", "right"]].set_visible(False)
    if inset is not None:
        (_draw_letters if symbols else _draw_series)(inset, x, places, reach)


def _draw_letters(ax: Any, x: Any, places: Floats, reach: float) -> None:
    """Draw symbols on cells coloured by their contribution, in lines that begin with the position."""
    width = min(LETTERS, len(places))
    cells = np.full(-(-len(places) // width) * width, np.nan)
    cells[: len(places)] = places
    table, size = cells.reshape(-1, width), 9.0 if width <= 60 else 7.5
    ax.imshow(table, cmap="PuOr_r", vmin=-reach, vmax=reach, aspect="auto", interpolation="nearest")
    for t, symbol in enumerate(x):
        colour = "white" if abs(places[t]) > 0.6 * reach else "black"
        ax.text(t % width, t // width, str(symbol), color=colour, fontsize=size, **_LETTER)
    ax.set_xticks([])
    several = len(table) > 1
    ax.set_yticks(np.arange(len(table)) if several else [], labels=np.arange(len(table)) * width if several else [])
    ax.tick_params(length=0, labelsize=8)
    ax.spines[:].set_visible(False)


def _draw_series(ax: Any, x: Any, places: Floats, reach: float) -> None:
    """Draw a series as lines before its contributions, or as a heat map if it has many channels."""
    values = np.asarray(x, np.float64).reshape(len(x), -1)
    extent = (-0.5, len(values) - 0.5)
    if values.shape[1] <= 4:
        for channel, colour in zip(values.T, ["black", *COLOURS]):
            ax.plot(channel, color=colour, linewidth=1.0, marker="." if len(values) <= LETTERS else "", markersize=3)
        ends = ax.get_ylim()
        shades = {"cmap": "PuOr_r", "vmin": -reach, "vmax": reach, "aspect": "auto", "interpolation": "nearest"}
        ax.imshow(places[None], extent=(*extent, *ends), alpha=0.6, zorder=0, **shades)
        ax.set_ylabel("value", fontsize=9)
    else:
        spread = np.nanstd(values, axis=0)
        standard = (values - np.nanmean(values, axis=0)) / np.where(spread > 0, spread, 1.0)
        ax.imshow(standard.T, cmap="cividis", aspect="auto", interpolation="nearest")
        ax.set_ylabel("channel", fontsize=9)
        ax.locator_params(axis="y", integer=True, nbins=5)
    ax.set_xlim(*extent)
    ax.set_xticks([])
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right", "bottom"]].set_visible(False)


_LETTER = {"ha": "center", "va": "center", "family": "monospace", "clip_on": True}
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
