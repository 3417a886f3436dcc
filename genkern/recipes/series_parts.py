"""Parts of the sum of ``recipes.series`` beside windows: each series in its own units, and series as a whole."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.pipeline import Pipeline

from genkern.data.objects import Packed, handed_on, pack_series
from genkern.data.transformer import Transformer
from genkern.gram.nystrom import Nystrom
from genkern.kernels import RBF
from genkern.preprocess.scaling import CentreSeries, deviations, largest
from genkern.preprocess.unit_trace import UnitTrace
from genkern.recipes.learnt_sum import LearntSum
from genkern.validation import Floats, check_int

FLOOR = 1e-3  # part of a channel's deviation over all series that is added to that of a series
GAMMA = 0.5  # of the Gaussian kernel of outlines: squared distances are two on average
POINTS = 24  # of an outline
LANDMARKS = 500  # of its kernel, which is exact for as many objects
EXTRAS = {"own": ("own",), "whole": ("whole",)}
MANY = 2000  # objects from which features are made in blocks, and the ridge takes the linear path
ALIKE = 0.05  # deviation of log deviations of series below which they are in the same units already


class OwnUnits(CentreSeries, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    r"""Subtract from every series its own mean, and divide it by its own standard deviation.

    .. math:: x_{tc} \mapsto \frac{x_{tc} - \bar x_c}{s_c + \epsilon \sigma_c}

    with the deviation :math:`s_c` of a channel in the series, and that over all training series, :math:`\sigma_c`.

    Attributes
    ----------
    n_channels_ : int
        The number of channels.
    spread_ : ndarray of shape (d,)
        Standard deviation of each channel of the training series.
    """

    _fitted = "spread_"

    def _fit(self, X: Any, y: Any) -> None:
        super()._fit(X, y)
        values = pack_series(X, "OwnUnits").values
        self.spread_ = deviations(values, largest(values))

    def _transform(self, packed: Packed) -> list[Floats]:
        centred = np.concatenate(super()._transform(packed))
        scales = own_deviations(packed._replace(values=centred)) + FLOOR * self.spread_
        return handed_on(packed._replace(values=centred / np.repeat(scales, packed.lengths, axis=0)))


class Outline(Transformer):
    r"""Series as a whole: their values at evenly spaced times, from the first to the last, by linear interpolation.

    Parameters
    ----------
    n_points : int, default=24

    Attributes
    ----------
    mean_, spread_ : ndarray of shape (d,)
        Mean and standard deviation of each channel of the training series, in whose units values are.

    Notes
    -----
    Missing values (NaN) are interpolated; a channel without any value has the mean.
    """

    _fitted = "spread_"
    _inputs: ClassVar[dict[str, bool]] = {"allow_nan": True}
    _of_floats = True

    def __init__(self, n_points: int = POINTS):
        self.n_points = n_points

    def _fit(self, X: Any, y: Any) -> None:
        check_int(self.n_points, "n_points", "Outline", 1)
        values = pack_series(X, "Outline").values
        seen = ~np.isnan(values)
        self.mean_ = np.where(seen, values, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        self.spread_ = deviations(values, largest(values))

    def _encode(self, X: Any) -> Packed:
        return pack_series(X, "Outline", n_channels=len(self.spread_))

    def _transform(self, packed: Packed) -> Floats:
        table = np.zeros((packed.n_objects, self.n_points, len(self.spread_)))
        for row, series in zip(table, packed.pieces()):
            at = np.linspace(0, len(series) - 1, self.n_points)
            for c, channel in enumerate(((series - self.mean_) / self.spread_).T):
                known = np.flatnonzero(~np.isnan(channel))
                if len(known):
                    row[:, c] = np.interp(at, known, channel[known])
        return table.reshape(len(table), -1)

    def _names_out(self, given: Any) -> Any:
        """Return the names of the channels, as given or x0, x1, ..., with the number of the point."""
        channels = [f"x{c}" for c in range(len(self.spread_))] if given is None else list(given)
        return [f"{channel}_{point}" for point in range(self.n_points) for channel in channels]


class SeriesSum(LearntSum):
    """The sum of the kernels of windows, of windows of series in their own units, and of series as a whole."""

    def offered(self, X: Any) -> set[str]:
        """Return which further sums are tried: "whole", and "own" unless all series have the same deviation.

        Parameters
        ----------
        X : list of n objects
        """
        packed = pack_series(X, "series")
        scales = own_deviations(packed)
        sizes = np.log(scales + FLOOR * deviations(packed.values, largest(packed.values)))
        return {"whole"} | ({"own"} if sizes.std(axis=0).max() > ALIKE else set())


def outlines(random_state: Any) -> Pipeline:
    """Return features of a Gaussian kernel of series as a whole."""
    kernel = Nystrom(RBF(GAMMA), n_landmarks=LANDMARKS, random_state=random_state)
    return Pipeline([("outline", Outline()), ("scale", UnitTrace()), ("kernel", kernel)])


def own_deviations(packed: Packed) -> Floats:
    """Return the standard deviations (n, d) of the channels of each series, zero where nothing is seen."""
    seen = ~np.isnan(packed.values)
    counts = np.maximum(np.add.reduceat(seen, packed.offsets[:-1], dtype=np.int64), 1)
    unit = np.maximum(largest(packed.values), np.finfo(np.float64).tiny)  # so that squares do not underflow
    values = np.where(seen, packed.values / unit, 0.0)
    means = np.add.reduceat(values, packed.offsets[:-1]) / counts
    gaps = np.where(seen, values - np.repeat(means, packed.lengths, axis=0), 0.0)
    return np.asarray(unit * np.sqrt(np.add.reduceat(gaps**2, packed.offsets[:-1]) / counts))
