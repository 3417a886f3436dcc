"""Delay windows: a series as the series of descriptions of its windows."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct

from genkern.core.arrays.windows import WindowOffsets, describe_windows
from genkern.data.intake import offsets_of
from genkern.data.objects import Packed, handed_on, pack_series
from genkern.data.transformer import Transformer
from genkern.preprocess.scaling import deviations, largest
from genkern.validation import Floats, check_bool, check_int, made_once

FLOOR = 0.1  # part of a channel's standard deviation that is added to that of a window, or of what waves leave of it


class Windows(Transformer, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    r"""Describe the window around each position of a series by its mean and its slowest waves.

    .. math:: \bar x_t = \frac1w \sum_{|j| \le h} x_{t+j}, \qquad
       c_{tk} = \sqrt{\tfrac2w} \sum_{j=-h}^{h} (x_{t+j} - \bar x_t) \cos\frac{\pi k (j + h + \frac12)}{w},
       \quad k = 1, \dots, q, \quad w = 2h + 1

    for every channel: the discrete cosine transform (orthonormal, type II) of the window without its mean. With w = 3
    the first coefficient is the difference :math:`(x_{t-1} - x_{t+1}) / \sqrt2`, the "delta" of speech recognition, and
    the second is that of second order. A model of such a series uses more than one point at a time.

    Parameters
    ----------
    widths : int or sequence of ints, default=(1,)
        Odd numbers of positions. Several widths are concatenated, as channels. Width 1 is the value itself.
    n_dct : int, optional
        The number q of coefficients per channel, never more than w - 1. The default is max(2, ⌈8/d⌉) for series of d
        channels.
    normalize : bool, default=False
        Divide coefficients by the standard deviation of the window plus a tenth of that of the channel (over all
        training series): the shape of a window without its size. Means are not divided.
    circular : bool, default=False
        Whether a series is closed, as a contour is, so that windows continue at its other end. Otherwise the first and
        the last value are repeated.
    stride : int or "auto", default=1
        Windows are centred at positions 0, s, 2s, ... "auto" is the integer part of max(1, min(w/8, T/50)) for a series
        of length T and the narrowest window.
    standardize : bool, default=True
        Bring every output channel to mean zero and variance one over the windows of the training series. (Series are
        not standardised one by one: their level is information.)
    rest : bool, default=False
        Say also how much the mean and the waves leave of a window, where they are not all of it:
        :math:`\log(r + \frac1{10})` with the root mean square r of the rest, in units of the channel's standard
        deviation or, if windows are normalised, in theirs. It follows the amplitude of what is too fast for the waves.

    Attributes
    ----------
    spread_ : ndarray of shape (d,)
        Standard deviation of each channel of the training series.
    mean_, scale_ : ndarray of shape (n_channels_out,)
        The numbers subtracted, and the divisors; zeros and ones without ``standardize``. Constant channels are divided
        by the size of the series' values.

    Notes
    -----
    Missing entries (NaN) are left out, and the sums over the others are scaled up. Where fewer than half of a window's
    entries in a channel are known, its mean and coefficients are NaN, and models integrate them out.

    A coefficient of a normalised window stays the same if the window is shifted and, except for the tenth, if it is
    scaled.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import Windows
    >>> windows = Windows(widths=3, n_dct=1, standardize=False).fit([[0.0, 1.0, 4.0, 9.0]])
    >>> windows.transform([[0.0, 1.0, 4.0, 9.0]])[0].round(3)
    array([[ 0.333, -0.707],
           [ 1.667, -2.828],
           [ 4.667, -5.657],
           [ 7.333, -3.536]])
    >>> windows.get_feature_names_out()
    array(['x0_w3_mean', 'x0_w3_dct1'], dtype=object)
    """

    _fitted = "scale_"
    _inputs: ClassVar[dict[str, bool]] = {"allow_nan": True}

    def __init__(
        self,
        widths: Any = (1,),
        n_dct: int | None = None,
        normalize: bool = False,
        circular: bool = False,
        stride: int | str = 1,
        standardize: bool = True,
        rest: bool = False,
    ):
        self.widths = widths
        self.n_dct = n_dct
        self.normalize = normalize
        self.circular = circular
        self.stride = stride
        self.standardize = standardize
        self.rest = rest

    def _encode(self, X: Any) -> Packed:
        packed = pack_series(X, "Windows", n_channels=len(self.spread_))

        def make() -> Packed:
            return self._standardized(self._describe(packed))

        learned = (values.tobytes() for values in (self.spread_, self.mean_, self.scale_))
        return made_once(X, (*self._setting(), *learned), make, lambda made: int(made.values.nbytes))

    def _transform(self, windows: Packed) -> list[Floats]:
        return handed_on(windows)

    def _names_out(self, given: Any) -> Any:
        """Return names made of those of the channels of the series, as given or x0, x1, ..."""
        d = len(self.spread_)
        channels = [f"x{c}" for c in range(d)] if given is None else list(given)
        if len(channels) != d:
            raise ValueError(f"Windows: 'input_features' must name {d} channels. Got {len(channels)} names.")
        return [
            f"{channel}_w{width}_{what}"
            for width in self._widths()
            for channel in channels
            for what in ["mean", *self._waves_of(width, d), *["rest"] * self._leaves(width, d)]
        ]

    def reads(self, length: int) -> list[NDArray[np.int64]]:
        """Return the positions (S, w) of a series in each of its S windows, for every width w.

        Parameters
        ----------
        length : int
            Number of positions of the series.
        """
        widths = self._widths()
        centres = np.arange(0, length, int(self._strides(np.array([length]), min(widths))[0]))
        positions = [centres[:, None] + np.arange(width) - width // 2 for width in widths]
        return [at % length if self.circular else np.clip(at, 0, length - 1) for at in positions]

    def _setting(self) -> tuple[Any, ...]:
        """Return the parameters, checked, as a key."""
        return (*self._widths(), self.n_dct, self.stride, self.normalize, self.circular, self.standardize, self.rest)

    def _fit(self, X: Any, y: Any) -> list[Floats]:
        self._widths()
        for name in ("normalize", "circular", "standardize", "rest"):
            check_bool(getattr(self, name), name, "Windows")
        packed = pack_series(X, "Windows")

        def make() -> tuple[Floats, Floats, Floats, Packed]:
            raw = self._learn(packed)
            return self.spread_, self.mean_, self.scale_, self._standardized(raw)

        *learned, windows = made_once(X, ("fit", *self._setting()), make, lambda made: int(made[3].values.nbytes))
        self.spread_, self.mean_, self.scale_ = (values.copy() for values in learned)
        return handed_on(windows)

    def _learn(self, packed: Packed) -> Packed:
        """Set the fitted attributes; return the windows as they are."""
        sizes = largest(packed.values)
        self.spread_ = deviations(packed.values, sizes)
        raw = self._describe(packed)
        self.mean_, self.scale_ = np.zeros(raw.values.shape[1]), np.ones(raw.values.shape[1])
        if self.standardize:
            self._refuse_unseen(raw.values)
            waves = sizes / self.spread_ if self.normalize else sizes
            sizes = np.concatenate([self._sizes(width, sizes, waves) for width in self._widths()])
            self.mean_, self.scale_ = np.nanmean(raw.values, axis=0), deviations(raw.values, sizes)
        return raw

    def _describe(self, packed: Packed) -> Packed:
        """Return the windows of packed series, not standardised."""
        widths, d = self._widths(), packed.values.shape[1]
        strides = self._strides(packed.lengths, min(widths))
        windows = WindowOffsets(packed.offsets, offsets_of(-(-packed.lengths // strides)), strides, bool(self.circular))
        unit = self.spread_ if self.rest else np.ones(d)
        floors = FLOOR * self.spread_ / unit if self.normalize else None
        values, parts = packed.values / unit, []
        for width in widths:
            count, rest = self._count(width, d), FLOOR * self._leaves(width, d)
            part = describe_windows(values, windows, _waves(width, count), floors, rest)
            if self.rest:  # back into units of the series
                part[:, :, : 1 if self.normalize else 1 + count] *= unit[:, None]
            parts.append(part.reshape(len(part), -1))
        return Packed(np.concatenate(parts, axis=1), windows.starts)

    def _standardized(self, raw: Packed) -> Packed:
        """Return windows in units of those of the training series."""
        return raw._replace(values=(raw.values - self.mean_) / self.scale_)

    def _widths(self) -> list[int]:
        """Return the widths as a list, checking all parameters."""
        widths = [self.widths] if isinstance(self.widths, int) else np.atleast_1d(np.asarray(self.widths, dtype=object))
        if np.ndim(widths) != 1 or not len(widths):
            raise ValueError(f"The 'widths' parameter of Windows must be an odd int or several. Got {self.widths!r}.")
        checked = [check_int(width, "widths", "Windows", 1) for width in widths]
        even = [width for width in checked if width % 2 == 0]
        if even:
            raise ValueError(
                f"The 'widths' parameter of Windows must hold odd ints, as a window has its position in the middle. "
                f"Got {even[0]}; use {even[0] - 1} or {even[0] + 1}."
            )
        if self.n_dct is not None:
            check_int(self.n_dct, "n_dct", "Windows", 0)
        if self.stride != "auto":
            check_int(self.stride, "stride", "Windows (if not 'auto')", 1)
        return checked

    def _count(self, width: int, d: int) -> int:
        """Return the number of coefficients for a width and d channels."""
        return min(max(2, math.ceil(8 / d)) if self.n_dct is None else int(self.n_dct), width - 1)

    def _waves_of(self, width: int, d: int) -> list[str]:
        """Return the names of the coefficients for a width and d channels."""
        return [f"dct{k + 1}" for k in range(self._count(width, d))]

    def _leaves(self, width: int, d: int) -> bool:
        """Return whether the rest of windows of a width is described: they have more waves than are used."""
        return bool(self.rest) and self._count(width, d) < width - 1

    def _sizes(self, width: int, means: Floats, waves: Floats) -> Floats:
        """Return the sizes of the output channels of a width, given those of means (d,) and coefficients (d,)."""
        rest = [np.ones_like(means)] * self._leaves(width, len(means))
        return np.column_stack([means, *[waves] * self._count(width, len(means)), *rest]).ravel()

    def _strides(self, lengths: NDArray[np.int64], width: int) -> NDArray[np.int64]:
        """Return the stride (n,) for each series."""
        if self.stride == "auto":
            return np.maximum(1, np.minimum(width // 8, lengths // 50))
        return np.full(len(lengths), self.stride, np.int64)

    def _refuse_unseen(self, values: Floats) -> None:
        """Raise if an output channel has no values."""
        unseen = np.flatnonzero(np.isnan(values).all(axis=0))
        if len(unseen):
            raise ValueError(
                f"Windows: {self._names_out(None)[unseen[0]]} is missing everywhere, as no window has half of "
                "its entries. Leave the channel out, or fill the gaps of the series."
            )


@lru_cache(maxsize=64)
def _waves(width: int, count: int) -> Floats:
    """Return the orthonormal cosines (w, q) of one to ``count`` half periods."""
    return np.ascontiguousarray(dct(np.eye(width), norm="ortho", axis=1)[:, 1 : 1 + count])
