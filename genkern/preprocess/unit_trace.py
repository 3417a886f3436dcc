"""Features in units of their own kernel's trace."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import OneToOneFeatureMixin

from genkern.data.transformer import TableTransformer
from genkern.validation import check_bool, check_sizes

CONSTANT = 1e-12  # relative spread below which features are constant up to rounding


class UnitTrace(OneToOneFeatureMixin, TableTransformer):
    r"""Divide all features by one number, so that the kernel of the training objects has a mean diagonal of one.

    .. math:: \phi(x) \mapsto \phi(x) / s, \qquad s^2 = \frac{1}{n} \sum_i \|\phi(x_i)\|^2
              \quad \text{or, centred,} \quad \frac{1}{n} \sum_i \|\phi(x_i) - \bar\phi\|^2

    The inner product of concatenated features (scikit-learn's ``FeatureUnion``) is the sum of their kernels;
    with this step at the end of each part, all of them have the same weight.

    Parameters
    ----------
    center : bool, default=True
        Measure from the training mean, as a learner with a free bias does. Nothing is subtracted from features, so that
        sparse features remain sparse.

    Attributes
    ----------
    scale_ : float
        The number s; one where it would be zero up to rounding.

    References
    ----------
    Cortes, Mohri & Rostamizadeh (2012), Algorithms for learning kernels based on centered alignment, section 2.

    Examples
    --------
    >>> from genkern import UnitTrace
    >>> UnitTrace().fit_transform([[1.0, 0.0], [1.0, 4.0]])
    array([[0.5, 0. ],
           [0.5, 2. ]])
    """

    _fitted = "scale_"
    _sparse = ("csr", "csc")

    def __init__(self, center: bool = True):
        self.center = center

    def _fit(self, X: Any, y: Any) -> None:
        check_bool(self.center, "center", "UnitTrace")
        table: Any = check_sizes(X, "UnitTrace")
        if sparse.issparse(table) and not table.has_canonical_format:
            table = table.copy()
            table.sum_duplicates()
        entries = table.data if sparse.issparse(table) else table
        size = float(np.sqrt((entries**2).sum() / table.shape[0]))
        spread = float(np.sqrt(_centred_squares(table) / table.shape[0])) if self.center else size
        self.scale_ = spread if spread > CONSTANT * size else 1.0

    def _transform(self, table: Any) -> Any:
        return table / self.scale_


def _centred_squares(table: Any) -> float:
    """Return the sum of squared differences from the columns' means; empty columns are skipped."""
    n = table.shape[0]
    if not sparse.issparse(table):
        return float(((table - table.mean(axis=0)) ** 2).sum())
    rows = table.tocsr()
    _, column, counts = np.unique(rows.indices, return_inverse=True, return_counts=True)
    means = np.bincount(column, rows.data) / n
    # Zero entries differ from the mean by the mean.
    return float(((rows.data - means[column]) ** 2).sum() + ((n - counts) * means**2).sum())
