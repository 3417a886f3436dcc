"""Signed element-wise maps that balance the shares of latent variables in a generative kernel."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import OneToOneFeatureMixin

from genkern.data.transformer import TableTransformer
from genkern.validation import Floats, check_number


class ElementMap(OneToOneFeatureMixin, TableTransformer):
    """An odd function of numbers, applied to each entry of a matrix; a family gives ``apply``."""

    _fitted = "n_features_in_"
    _sparse = ("csr", "csc")

    @abstractmethod
    def apply(self, values: Floats) -> Floats:
        """Return the function of every entry of an array."""

    def _fit(self, X: Any, y: Any) -> None:
        self.apply(np.zeros(0))  # which checks the parameters

    def _transform(self, table: Any) -> Any:
        if not sparse.issparse(table):
            return self.apply(table)
        mapped = table.copy()
        mapped.data = self.apply(table.data)
        return mapped


class PowerMap(ElementMap):
    r"""The signed power, :math:`f(g) = \mathrm{sgn}(g)\, |g|^\rho`.

    For :math:`\rho < 1` small entries are raised relative to large ones, which balances the contributions of latent
    variables; one half is the signed square root of Fisher vectors.

    Parameters
    ----------
    rho : float, default=0.5
        The power, > 0.

    References
    ----------
    Carli, Bicego, Baldo & Murino (2010), Nonlinear mappings for generative kernels on latent variable models, eq. 3.

    Examples
    --------
    >>> from genkern import PowerMap
    >>> PowerMap(0.5).fit_transform([[4.0, 0.0, -9.0]])
    array([[ 2.,  0., -3.]])
    """

    def __init__(self, rho: float = 0.5):
        self.rho = rho

    def apply(self, values: Floats) -> Floats:
        """Return the signed power of every entry of an array.

        Parameters
        ----------
        values : ndarray
        """
        rho = check_number(self.rho, "rho", "PowerMap", exclusive=True)
        powers: Floats = np.copysign(np.abs(values) ** rho, values)
        return powers


class LogMap(ElementMap):
    r"""The signed logarithm, :math:`f(g) = \mathrm{sgn}(g) \log(1 + |g|)`.

    Nearly the identity on entries near zero; large ones are shrunk more than by any power.

    References
    ----------
    Carli, Bicego, Baldo & Murino (2010), Nonlinear mappings for generative kernels on latent variable models, eq. 4.

    Examples
    --------
    >>> from genkern import LogMap
    >>> LogMap().fit_transform([[1.0, 0.0, -1.0]]).round(4)
    array([[ 0.6931,  0.    , -0.6931]])
    """

    def apply(self, values: Floats) -> Floats:
        """Return the signed logarithm of every entry of an array.

        Parameters
        ----------
        values : ndarray
        """
        logs: Floats = np.copysign(np.log1p(np.abs(values)), values)
        return logs


class LogisticMap(ElementMap):
    r"""The logistic function, :math:`f(g) = \tanh(\rho g / 2) = (1 - e^{-\rho g}) / (1 + e^{-\rho g})`.

    Parameters
    ----------
    rho : float, default=1.0
        Twice the slope at zero, > 0. All entries end up between -1 and 1.

    References
    ----------
    Carli, Bicego, Baldo & Murino (2010), Nonlinear mappings for generative kernels on latent variable models, eq. 5.

    Examples
    --------
    >>> from genkern import LogisticMap
    >>> LogisticMap(2.0).fit_transform([[0.5, 0.0, -100.0]]).round(4)
    array([[ 0.4621,  0.    , -1.    ]])
    """

    def __init__(self, rho: float = 1.0):
        self.rho = rho

    def apply(self, values: Floats) -> Floats:
        """Return the logistic function of every entry of an array.

        Parameters
        ----------
        values : ndarray
        """
        rho = check_number(self.rho, "rho", "LogisticMap", exclusive=True)
        return np.tanh(0.5 * rho * values)


def check_map(value: Any, who: str) -> ElementMap | None:
    """Return a map or None."""
    if value is not None and not isinstance(value, ElementMap):
        raise TypeError(
            f"{who}: 'map' must be PowerMap(...), LogMap(), LogisticMap(...) or None. Got {type(value).__name__}."
        )
    return value
