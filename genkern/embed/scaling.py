"""Series in units of their own spread."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from genkern.objects import kind_of, pack_series, remember_width
from genkern.validation import Floats


class ScaleSeries(TransformerMixin, BaseEstimator):
    r"""Scale the channels of series so that observations deviate from their mean by about one.

    .. math:: x_{tc} \mapsto x_{tc}\, / \, 2^{[\log_2 (\sigma_c \sqrt d)]}

    with the standard deviation of channel c over all observations given to ``fit``, and brackets for rounding. One-hot
    symbols deviate by about one too, so that settings which depend on units (variance floors, the sharpness of
    ``MeanMap``) mean about the same for symbols and for series of any number d of channels. Lists of symbols pass
    through unchanged.

    Attributes
    ----------
    scale_ : ndarray of shape (d,), or None for symbols
        The powers of two that channels are divided by; one for channels that never change.

    Notes
    -----
    Dividing by a power of two loses no digit, and slightly different training lists, such as the folds of a
    cross-validation, mostly have the same powers: a ``Store`` behind it then finds the models of all folds. Models and
    kernels between them do not care where the origin is, so nothing is subtracted.

    Examples
    --------
    >>> from genkern.embed import ScaleSeries
    >>> ScaleSeries().fit_transform([[0.0, 70.0], [40.0, 100.0, -30.0]])[0].ravel()
    array([0.    , 1.09375])
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the spread of each channel.

        Parameters
        ----------
        X : list of n objects
        y : None
            Ignored.

        Returns
        -------
        self
        """
        remember_width(self, X, reset=True)
        self.scale_: Floats | None = None
        if kind_of(X, "ScaleSeries") == "series":
            values = pack_series(X, "ScaleSeries").values
            seen = ~np.isnan(values)
            count = np.maximum(seen.sum(axis=0), 1)
            mean = np.where(seen, values, 0.0).sum(axis=0) / count
            variance = (np.where(seen, values - mean, 0.0) ** 2).sum(axis=0) / count
            total = np.where(variance > 0, variance * values.shape[1], 1.0)
            self.scale_ = 2.0 ** np.round(0.5 * np.log2(total))
        return self

    def transform(self, X: Any) -> Any:
        """Return the scaled series, or symbols as they are.

        Parameters
        ----------
        X : list of n objects

        Returns
        -------
        scaled : list of n ndarrays of shape (T, d), or X
        """
        check_is_fitted(self, "scale_")
        remember_width(self, X, reset=False)
        if self.scale_ is None:
            return X
        packed = pack_series(X, "ScaleSeries", n_channels=len(self.scale_))
        return packed._replace(values=packed.values / self.scale_).objects()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags
