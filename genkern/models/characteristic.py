"""Characteristic functions of families, as numbers that neither overflow nor underflow."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.validation import Floats

Complexes = NDArray[np.complex128]


class Scaled(NamedTuple):
    """Complex numbers ``values``, times the exponentials of ``logs`` (of their shape) unless these are None."""

    values: Complexes
    logs: Floats | None


class Waves(NamedTuple):
    """Properties of a leaf stack that determine the frequencies of its characteristic functions.

    ``dimension`` d of the frequencies; ``damping`` (members, d) of high ones, which is a variance (the least of a full
    covariance, zero for symbols); ``load``, the largest number of doubles that a member needs per frequency.
    """

    dimension: int
    damping: Floats
    load: int


class EmittingChain(NamedTuple):
    """A stack of batch (a,) as hidden chains that emit: emissions (a, n), start (a, n), transitions and end weights."""

    emissions: Any
    start: Floats
    transitions: Floats
    final: Floats | None


def turns(angles: Floats) -> Complexes:
    """Return exp(i angle), in half the time of the exponential of complex numbers."""
    found = np.empty(angles.shape, np.complex128)
    np.cos(angles, out=found.real)
    np.sin(angles, out=found.imag)
    return found
