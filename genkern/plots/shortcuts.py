"""Pictures in one call, which returns the axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from genkern.explanation.explain import Explanation
from genkern.plots.contributions import ContributionsDisplay
from genkern.plots.display import pyplot
from genkern.plots.gram import GramDisplay
from genkern.plots.maps import ObjectMapDisplay
from genkern.plots.strips import HeatStripDisplay, draw_positions


def gram_heatmap(
    K: ArrayLike,
    y: ArrayLike | None = None,
    ax: Any = None,
    title: str | None = None,
    names: ArrayLike | None = None,
    order: str | None = "class",
) -> Any:
    """Draw a Gram matrix as a heat map, objects sorted by class, lines between classes; see ``GramDisplay``.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Kernel values.
    y : array-like of shape (n,), optional
        Classes.
    ax : matplotlib Axes, optional
        Where to draw; the default is a new figure.
    title : str, optional
        Title of the axes.
    names : array-like of shape (n,), optional
        Names of the objects, written where there are at most 40.
    order : {"class", "cluster"} or None, default="class"
        By class, by a clustering, or as given.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.
    """
    return _drawn(GramDisplay.from_matrix(K, y, order, names), ax, title)


def kernel_pca_map(
    K: ArrayLike,
    y: ArrayLike | None = None,
    ax: Any = None,
    title: str | None = None,
    names: ArrayLike | None = None,
    components: tuple[int, int] = (0, 1),
) -> Any:
    r"""Draw objects on two kernel principal components, one colour and shape per class; see ``ObjectMapDisplay``.

    With the centred Gram matrix :math:`HKH = \sum_k \mu_k u_k u_k^\top`, object i is drawn at
    :math:`(\sqrt{\mu_a} u_{ai}, \sqrt{\mu_b} u_{bi})`; the axes are labelled with :math:`\mu_k / \mathrm{tr}(HKH)`.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Kernel values, not centred.
    y : array-like of shape (n,), optional
        Classes; without them all objects look alike.
    ax : matplotlib Axes, optional
        Where to draw; the default is a new figure.
    title : str, optional
        Title of the axes.
    names : array-like of shape (n,), optional
        Names of the objects, written where there are at most 40.
    components : tuple of two int, default=(0, 1)
        Which components, from 0 on.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    References
    ----------
    .. [1] B. Schölkopf, A. Smola, K.-R. Müller (1998), Nonlinear component analysis as a kernel eigenvalue problem.
    """
    return _drawn(ObjectMapDisplay.from_gram(K, y, names, components=components), ax, title)


def object_map(
    places: ArrayLike,
    y: ArrayLike | None = None,
    ax: Any = None,
    title: str | None = None,
    axes: tuple[str, str] | None = None,
    names: ArrayLike | None = None,
) -> Any:
    """Draw objects at places in the plane, one colour and shape per class; see ``ObjectMapDisplay``.

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
    names : array-like of shape (n,), optional
        Names of the objects, written where there are at most 40.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.
    """
    display = ObjectMapDisplay.from_places(places, y, names, axes=axes)
    return _drawn(display, ax, "" if title is None else title)


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
    features = ContributionsDisplay.from_explanation(explanation, n)
    host = ax if ax is not None else pyplot().subplots(figsize=(12.0, 4.2), layout="constrained")[1]
    host.set_axis_off()
    places = explanation.positions
    parts = [("intercept", explanation.intercept)]
    if places is None or len(places) == 1:
        parts.append(("features", float(np.sum(explanation.contributions))))
        features.plot(host.inset_axes((0.2, 0.1, 0.6, 0.85)))
    else:
        parts += [("positions", float(places.sum())), ("rest", explanation.rest)]
        features.plot(host.inset_axes((0.74, 0.12, 0.26, 0.84)))
        draw_positions(host, HeatStripDisplay.from_explanation(explanation), (0.05, 0.12, 0.65, 0.84))
    sums = "  ".join(f"{value:+.2f} {name}" for name, value in parts if abs(value) >= 0.005)
    title = f"class {explanation.label!r}: decision {explanation.decision:+.2f}  =  {sums}"
    host.set_title(title, fontsize=11, parse_math=False)
    return host


def _drawn(display: Any, ax: Any, title: str | None) -> Any:
    """Return the axes of a display that is drawn under a title."""
    if title is not None:
        display.title = title
    return display.plot(ax).ax_
