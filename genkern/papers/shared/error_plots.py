"""Pictures of error rates over repetitions: boxes of all methods, and one method against another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from genkern.plots.style import COLOURS

Errors = Mapping[str, Mapping[str, Sequence[float]]]  # by panel and method


def box_figure(panels: Errors) -> Any:
    """Return boxes of the error rates of all methods, a panel beside the other.

    Parameters
    ----------
    panels : dict of str to dict of str to list of float
        Error rates of repetitions, by title of the panel and name of the method.
    """
    figure, axes = _grid(len(panels), 3.3, 2.9)
    for axis, (title, methods) in zip(axes, panels.items()):
        axis.boxplot(
            [[100 * value for value in values] for values in methods.values()],
            tick_labels=list(methods),
            medianprops={"color": COLOURS[1]},
            flierprops={"marker": "+", "markersize": 4},
        )
        axis.set(title=title, ylabel="error in %")
        axis.tick_params(axis="x", labelsize=8)
        axis.grid(axis="y", alpha=0.3)
    return figure


def versus_figure(panels: Errors) -> Any:
    """Return the error rates of one method against those of another, a point for each repetition.

    Parameters
    ----------
    panels : dict of str to dict of str to list of float
        Error rates of two methods by title of the panel; points above the line are repetitions that the first wins.
    """
    figure, axes = _grid(len(panels), 2.9, 2.9)
    for axis, (title, methods) in zip(axes, panels.items()):
        (first, x), (second, y) = ((name, [100 * value for value in values]) for name, values in methods.items())
        low, high = min(*x, *y), max(*x, *y)
        margin = 0.08 * (high - low) or 1.0
        ends = [low - margin, high + margin]
        axis.plot(ends, ends, color="0.6", linewidth=0.8)
        axis.plot(x, y, "o", markersize=3.5, color=COLOURS[0])
        axis.set(title=title, xlabel=f"{first}: error in %", ylabel=f"{second}: error in %", xlim=ends, ylim=ends)
        axis.set_aspect("equal")
    return figure


def _grid(count: int, width: float, height: float) -> tuple[Any, list[Any]]:
    """Return a figure and its axes, at most three in a row."""
    from matplotlib.figure import Figure

    columns = count if count <= 3 else 2 if count == 4 else 3
    rows = -(-count // columns)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for axis in axes[count:]:
        axis.set_axis_off()
    return figure, axes
