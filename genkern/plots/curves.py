"""Mean curves of series, and what states of vectors look like, with bands of one deviation."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.data.objects import pack_series
from genkern.plots.display import Display, check_labels, classes_of
from genkern.plots.style import COLOURS
from genkern.plots.svg import (
    Scale,
    axes,
    band,
    colour_class,
    curve,
    element,
    line_legend,
    path,
    room_for,
    shortened,
    text,
)
from genkern.validation import Floats

CHANNELS = 6  # that are shown
POINTS = 50  # of relative time


class MeanCurveDisplay(Display):
    """Mean and band of one standard deviation, per class and channel, over relative time or over states.

    Parameters
    ----------
    at : ndarray of shape (T,)
        Relative time from 0 to 1, or the numbers of the states.
    means, deviations : ndarray of shape (classes, channels, T)
        NaN where nothing is known.
    classes : list
        Classes; empty without labels.
    channels : int
        The number of channels in all, of which the first 6 are shown.
    unit : str
        "relative time" or "state".
    names : list of str, optional
        Names of the channels; the default is their numbers.

    Examples
    --------
    >>> from genkern.plots import MeanCurveDisplay
    >>> shown = MeanCurveDisplay.from_objects([[0.0, 1.0, 2.0], [2.0, 4.0]])
    >>> shown.means[0, 0, [0, -1]], shown.deviations[0, 0, [0, -1]]
    (array([1., 3.]), array([1., 1.]))
    """

    def __init__(
        self,
        at: Floats,
        means: Floats,
        deviations: Floats,
        classes: list[Any],
        channels: int,
        unit: str,
        names: list[str] | None = None,
    ) -> None:
        self.at, self.means, self.deviations = at, means, deviations
        self.classes, self.channels, self.unit, self.names = classes, channels, unit, names
        self.title = "Mean curves" if unit != "state" else "Means of the states"

    @classmethod
    def from_objects(cls, X: Any, y: ArrayLike | None = None, channels: Any = None) -> Self:
        """Average series over relative time, each interpolated between its observed values.

        Parameters
        ----------
        X : list of n series
            Arrays (T,) or (T, d), with NaN where missing.
        y : array-like of shape (n,), optional
            Classes.
        channels : sequence of str, optional
            Names of the channels; the default is their numbers.
        """
        packed = pack_series(X, cls.__name__, layout="time-first")
        classes, index = classes_of(check_labels(y, packed.n_objects, "y", cls.__name__), packed.n_objects)
        at = np.linspace(0.0, 1.0, POINTS)
        shown = min(CHANNELS, packed.values.shape[1])
        curves = np.stack(
            [_resampled(packed.values[a:b, :shown], at) for a, b in zip(packed.offsets, packed.offsets[1:])]
        )
        groups = [curves[index == i] for i in range(max(1, len(classes)))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # where nothing is observed the mean is NaN
            means, spread = (np.stack([f(g, axis=0) for g in groups]) for f in (np.nanmean, np.nanstd))
        width = packed.values.shape[1]
        if channels is not None and len(channels) != width:
            raise ValueError(f"{cls.__name__}: 'channels' must name {width} channels. Got {len(channels)} names.")
        names = None if channels is None else [str(name) for name in channels]
        return cls(at, means, spread, classes, width, "relative time", names)

    @classmethod
    def from_model(cls, model: Any) -> Self:
        """Take means and deviations of the emissions of each state.

        Parameters
        ----------
        model : Model
            With hidden states that emit vectors whose moments are known, such as an ``HMM`` with Gaussian emissions.
        """
        emissions = getattr(model, "state_emissions", None)
        moments = None if emissions is None or model.shape else emissions.moments()
        if moments is None:
            raise TypeError(
                f"{cls.__name__}: expected one model with hidden states that emit vectors of known moments, as an HMM "
                f"with Gaussian emissions. Got {type(model).__name__}."
            )
        means, variances = moments
        shown = min(CHANNELS, means.shape[1])
        states = np.arange(len(means), dtype=np.float64)
        spread = np.sqrt(variances).T[None, :shown]
        return cls(states, means.T[None, :shown], spread, [], means.shape[1], "state")

    @property
    def description(self) -> str:
        """What the picture shows."""
        shown, of = self.means.shape[1], f" of {len(self.classes)} classes" if self.classes else ""
        some = (
            f"{shown} of {self.channels} channels" if shown < self.channels else f"{shown} channel{'s' * (shown > 1)}"
        )
        return f"Mean and one standard deviation{of} by {self.unit}, {some}."

    def _name(self, channel: int) -> str:
        """Return what the axis of a channel is called."""
        if self.names is not None:
            return self.names[channel]
        return f"channel {channel}" if self.means.shape[1] > 1 else "value"

    def _figure_size(self) -> tuple[float, float]:
        return 7.0, 0.8 + 1.5 * self.means.shape[1]

    def _draw(self, ax: Any) -> None:
        shown = self.means.shape[1]
        ax.set_axis_off()
        ax.set_title(self.title)
        for c in range(shown):
            inset = ax.inset_axes((0.0, 1 - (c + 0.85) / shown, 1.0, 0.75 / shown))
            for i, (mean, spread) in enumerate(zip(self.means[:, c], self.deviations[:, c])):
                look = {"color": COLOURS[i % len(COLOURS)]}
                style = {"linestyle": ("-", "--", ":", "-.")[i // len(COLOURS) % 4], "linewidth": 1.4}
                name = str(self.classes[i]) if self.classes else None
                inset.plot(self.at, mean, label=name, marker="o" if self.unit == "state" else "", ms=3, **look, **style)
                inset.fill_between(self.at, mean - spread, mean + spread, alpha=0.15, linewidth=0, **look)
            inset.set_ylabel(self._name(c), fontsize=8)
            inset.tick_params(labelsize=7, labelbottom=c == shown - 1)
            inset.spines[["top", "right"]].set_visible(False)
            if c == 0 and self.classes:
                inset.legend(title="class", frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
        inset.set_xlabel(self.unit)

    def _body(self, width: float) -> tuple[list[str], float]:
        parts, y = line_legend([str(label) for label in self.classes], 4, 0, width - 8)
        y += 6
        shown = self.means.shape[1]
        height = 150.0 if shown == 1 else 96.0
        for c in range(shown):
            mean, spread = self.means[:, c], self.deviations[:, c]
            ys = Scale.covering([mean - spread, mean + spread], y + height, y + 6)
            label = shortened(self._name(c), height)
            xs = Scale.covering(self.at, room_for(ys, label), width - 10, 0.03 if self.unit == "state" else 0.0)
            ticks = [(s, f"{s:g}") for s in self.at[:: max(1, len(self.at) // 15)]] if self.unit == "state" else None
            parts += axes(xs, ys, self.unit if c == shown - 1 else "", label, ticks)
            for i in range(len(mean)):
                area = band(xs(self.at), ys(mean[i] - spread[i]), ys(mean[i] + spread[i]))
                look = {"fill": "currentColor", "fill_opacity": "0.14"}
                parts.append(element("path", d=area, class_=colour_class(i), **look))
                name = str(self.classes[i]) if self.classes else None
                parts.append(curve(path(xs(self.at), ys(mean[i])), i, 1.7, data_label=name, data_channel=c))
            y += height + 24
        if shown < self.channels:
            parts.append(text(4, y + 26, f"The first {shown} of {self.channels} channels.", class_="gk-text gk-small"))
        return parts, y + (32 if shown < self.channels else 18)


def _resampled(values: NDArray[Any], at: Floats) -> Floats:
    """Return the channels (d, len(at)) of a series at relative times; NaN before its first and after its last value."""
    time = np.linspace(0.0, 1.0, len(values)) if len(values) > 1 else np.full(1, 0.5)
    rows = []
    for channel in values.T:
        known = ~np.isnan(channel)
        outside = {"left": np.nan, "right": np.nan} if len(values) > 1 else {}
        rows.append(np.interp(at, time[known], channel[known], **outside) if known.any() else np.full(len(at), np.nan))
    return np.stack(rows)
