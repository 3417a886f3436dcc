"""Support vector machines on one kernel matrix, over C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC


def machines(K: NDArray[np.float64], y: Any, Cs: Sequence[float], **settings: Any) -> list[SVC]:
    """Return the machine of each C; those whose bound C stops no weight are one and the same.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel values of the training objects.
    y : array of shape (n,)
        Classes.
    Cs : sequence of float
        Weights of the losses, ascending.
    **settings
        Others of ``SVC``.
    """
    known = np.ascontiguousarray(K)
    found: list[SVC] = []
    for C in Cs:
        if not found or _bounded(found[-1]):
            found.append(SVC(C=C, kernel="precomputed", **settings).fit(known, y))
        else:
            found.append(found[-1])
    return found


def _bounded(machine: SVC) -> bool:
    """Return whether a larger C could change a machine: a weight is at the bound, or it has not converged."""
    return machine.fit_status_ != 0 or bool((np.abs(machine.dual_coef_) >= machine.C).any())
