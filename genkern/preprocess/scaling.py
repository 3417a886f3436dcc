"""Series in units of their spread, and series without their level."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from genkern.data.objects import Packed, handed_on, kind_of, pack_series
from genkern.data.transformer import Transformer
from genkern.validation import Floats

CONSTANT = 1e-12  # relative spread below which a channel is constant up to rounding


class ScaleSeries(Transformer, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    r"""Scale the channels of series so that observations deviate from their mean by one, in the root mean square.

    .. math:: x_{tc} \mapsto x_{tc}\, / \, (\sigma_c \sqrt d)

    with the standard deviation of channel c over all observations given to ``fit``. One-hot symbols deviate by about
    one too, so that settings which depend on units (variance floors, the sharpness of ``MeanMap``) mean about the same
    for symbols and for series of any units and any number d of channels. Lists of symbols pass through unchanged.

    Attributes
    ----------
    scale_ : ndarray of shape (d,), or None for symbols
        Divisors of the channels. Constant channels have the size of their value instead of a deviation, and one if that
        is zero.

    Notes
    -----
    Models and kernels between them do not depend on the origin, so nothing is subtracted. Each training part of a
    cross-validation has its own scale, so that a ``Store`` after it finds the models of that part only.

    Examples
    --------
    >>> from genkern import ScaleSeries
    >>> ScaleSeries().fit_transform([[0.0, 70.0], [40.0, 100.0, -30.0]])[0].ravel()
    array([0.        , 1.49786172])
    """

    _fitted = "scale_"
    _inputs: ClassVar[dict[str, bool]] = {"allow_nan": True}

    def _fit(self, X: Any, y: Any) -> None:
        self.scale_: Floats | None = None
        if kind_of(X, "ScaleSeries", ask=False) == "series":
            values = pack_series(X, "ScaleSeries").values
            self.scale_ = np.sqrt(values.shape[1]) * deviations(values, largest(values))

    def _transform(self, X: Any) -> Any:
        if self.scale_ is None:
            return X
        packed = pack_series(X, "ScaleSeries", n_channels=len(self.scale_))
        return handed_on(packed._replace(values=packed.values / self.scale_))

    def _names_out(self, given: Any) -> Any:
        """Return the names of the channels, as given or x0, x1, ..., and "symbol" for symbols."""
        return ["symbol"] if self.scale_ is None else _names(len(self.scale_), given)


class CentreSeries(Transformer, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    r"""Subtract from every series its own mean.

    .. math:: x_{tc} \mapsto x_{tc} - \frac1T \sum_s x_{sc}

    The result does not depend on the level of a series: the offset of a sensor, the voice of a speaker, the location of
    a gesture. If the level is informative, too, sum the kernels of both: ``FeatureUnion`` of an embedding and of
    ``make_pipeline(CentreSeries(), embedding)``.

    Attributes
    ----------
    n_channels_ : int
        The number of channels.

    Notes
    -----
    Missing values (NaN) are left out of means and stay missing.

    Examples
    --------
    >>> from genkern import CentreSeries
    >>> CentreSeries().fit_transform([[1.0, 3.0], [40.0, 50.0, 60.0]])[1].ravel()
    array([-10.,   0.,  10.])
    """

    _fitted = "n_channels_"
    _inputs: ClassVar[dict[str, bool]] = {"allow_nan": True}

    def _fit(self, X: Any, y: Any) -> None:
        self.n_channels_ = pack_series(X, "CentreSeries").values.shape[1]

    def _encode(self, X: Any) -> Packed:
        return pack_series(X, "CentreSeries", n_channels=self.n_channels_)

    def _transform(self, packed: Packed) -> list[Floats]:
        seen = ~np.isnan(packed.values)
        counts = np.add.reduceat(seen, packed.offsets[:-1], dtype=np.int64)
        sums = np.add.reduceat(np.where(seen, packed.values, 0.0), packed.offsets[:-1])
        means = sums / np.maximum(counts, 1)
        return handed_on(packed._replace(values=packed.values - np.repeat(means, packed.lengths, axis=0)))

    def _names_out(self, given: Any) -> Any:
        """Return the names of the channels, as given or x0, x1, ..."""
        return _names(self.n_channels_, given)


def largest(values: Floats) -> Floats:
    """Return the largest absolute entry (d,) of each column, zero where there is none."""
    return np.fmax.reduce(np.abs(values), axis=0, initial=0.0)


def deviations(values: Floats, sizes: Floats) -> Floats:
    """Return the standard deviations (d,) of columns, whatever their unit.

    Columns whose deviation is zero up to rounding at these sizes (d,) have their size, and one if that is zero.
    """
    seen = ~np.isnan(values)
    count = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, values, 0.0).sum(axis=0) / count
    gaps = np.where(seen, values - mean, 0.0)
    unit = largest(gaps)
    unit = np.where(unit > 0, unit, 1.0)  # so that squares do not underflow
    spread = unit * np.sqrt(((gaps / unit) ** 2).sum(axis=0) / count)
    return np.where(spread > CONSTANT * sizes, spread, np.where(sizes > 0, sizes, 1.0))


def _names(d: int, given: Any) -> Any:
    """Return the names (d,) of channels, as given or x0, x1, ..."""
    return [f"x{c}" for c in range(d)] if given is None else given
