"""How steps in the plane turn: contours and paths, however they are rotated."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from genkern.data.objects import Packed, pack_series
from genkern.data.transformer import Transformer
from genkern.validation import Floats, check_bool, check_int


class Turns(Transformer, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    r"""Describe by how much the direction of a path in the plane changes from each position to a later one.

    .. math:: s_t = \frac1w \sum_{|j| \le h} z_{t+j}, \qquad u_t = s_{t + l}\, \bar s_t, \qquad w = 2h + 1

    with steps as complex numbers, :math:`z_t = x_{t1} + i x_{t2}`. The angle of u is that by which the smoothed steps
    turn, and its size is less than that of the steps where the path bends within the window. A path that is rotated has
    the same turns; one that is mirrored has their complex conjugates.

    Parameters
    ----------
    lag : int, default=9
        The distance l between the two positions.
    width : int, default=9
        The odd number w of steps of which means are taken, so that a grid of pixels does not matter.
    circular : bool, default=False
        Whether paths are closed, as contours are. Otherwise the first and the last step are repeated.

    Attributes
    ----------
    n_channels_ : int
        Two.

    Notes
    -----
    Steps come from ``Channels("angles")`` for chain codes, or from the differences of coordinates. Missing steps (NaN)
    are left out of means; a mean of fewer than half of its steps is missing.

    References
    ----------
    Freeman (1974), Computer processing of line-drawing images (differences of chain codes).

    Examples
    --------
    >>> from genkern import Channels, Turns
    >>> square, tilted = "00224466", "11335577"
    >>> steps = Channels("angles", alphabet="01234567").fit_transform([square, tilted])
    >>> turns = Turns(lag=2, width=1, circular=True).fit_transform(steps)
    >>> turns[0][0].round(6) + 0.0
    array([0., 1.])
    >>> bool(abs(turns[0] - turns[1]).max() < 1e-9)
    True
    """

    _fitted = "n_channels_"
    _inputs: ClassVar[dict[str, bool]] = {"allow_nan": True, "two_d_array": False}  # paths have two channels

    def __init__(self, lag: int = 9, width: int = 9, circular: bool = False):
        self.lag = lag
        self.width = width
        self.circular = circular

    def _fit(self, X: Any, y: Any) -> None:
        check_int(self.lag, "lag", "Turns", 1)
        check_bool(self.circular, "circular", "Turns")
        if check_int(self.width, "width", "Turns", 1) % 2 == 0:
            raise ValueError(f"The 'width' parameter of Turns must be odd. Got {self.width} instead.")
        self.n_channels_ = self._encode(X).values.shape[1]

    def _encode(self, X: Any) -> Packed:
        return pack_series(X, "Turns", n_channels=2)

    def _transform(self, packed: Packed) -> list[Floats]:
        return [self._turns(steps) for steps in packed.objects()]

    def _names_out(self, given: Any) -> Any:
        return ["turn_real", "turn_imag"]

    def _turns(self, steps: Floats) -> Floats:
        """Return the real and imaginary parts (T, 2) of the turns of one path."""
        around, later = self.reads(len(steps))
        windows = (steps[:, 0] + 1j * steps[:, 1])[around]
        seen = ~np.isnan(windows)
        counts = seen.sum(axis=1)
        sums = np.where(seen, windows, 0.0).sum(axis=1)
        smooth = np.where(2 * counts >= self.width, sums / np.maximum(counts, 1), np.nan)
        turns = smooth[later] * smooth.conj()
        return np.column_stack([turns.real, turns.imag])

    def reads(self, length: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return for each position of a path those of which means are taken, (T, w), and the later one, (T,).

        Parameters
        ----------
        length : int
            Number T of steps.
        """
        positions = np.arange(length)
        places = np.column_stack([positions[:, None] + np.arange(self.width) - self.width // 2, positions + self.lag])
        places = places % length if self.circular else np.clip(places, 0, length - 1)
        return places[:, :-1], places[:, -1]
