"""Whether a kernel matrix is positive semi-definite up to rounding, and if not, why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from genkern.affinities import Power, affinity
from genkern.affinities.collection import Collection
from genkern.kernels.base import Kernel
from genkern.kernels.divergences import Diffusion, SymmetricKL
from genkern.kernels.empirical import Sequences
from genkern.kernels.local_alignment import LocalAlignment
from genkern.kernels.models import ModelKernel
from genkern.kernels.views import On
from genkern.models.sampled import Sampled
from genkern.validation import Floats

ROUNDING = 1e-10  # relative to the largest row sum, which bounds all eigenvalues: kernel values have rounding errors
CAUSES = (
    "Bounds (method='collapsed', 'mean-field'), products of Sampled models, SymmetricKL, Diffusion(kind='parametrix'), "
    "LocalAlignment(logarithm=True) and powers such as k^(1/length) are not positive semi-definite; other kernels are, "
    "but for rounding, which "
    ".normalized(), a shorter length or a lower rho makes smaller."
)
BOUND = "method={method!r} gives bounds, whose gaps grow with the length; method='exact' gives values."
SAMPLED = "Products of Sampled models err for every pair by itself; products of ProposalFeatures are positive."


def allowance(K: Floats) -> float:
    """Return how far below zero an eigenvalue of K (n, n) may lie by rounding."""
    return ROUNDING * float(np.abs(K).sum(axis=1).max())


def is_positive(K: Floats) -> bool:
    """Return whether a symmetric K (n, n) is positive semi-definite up to rounding, by a factorisation."""
    if not K.any():
        return True  # a zero matrix has no allowance for rounding
    shifted = K.copy()
    np.fill_diagonal(shifted, K.diagonal() + allowance(K))
    try:
        cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True


def indefinite(smallest: float, largest: float, kernel: Kernel | None = None, ready: Any = None) -> str:
    """Return the message for a kernel matrix with a negative eigenvalue: its size, its cause, and the remedy.

    ``ready`` are the representations as the kernel prepares them.
    """
    causes = " ".join(dict.fromkeys(_causes(kernel, ready))) if kernel is not None else ""
    return (
        f"the kernel matrix is not positive semi-definite: its smallest eigenvalue is {smallest:.3g}, its largest "
        f"{largest:.3g}. {causes or CAUSES}"
    )


def _causes(kernel: Kernel, ready: Any) -> Iterator[str]:
    """Yield the indefinite parts of an expression, with remedies."""
    if isinstance(kernel, SymmetricKL):
        yield f"{kernel!r} is not positive semi-definite in general; Hellinger(t) is."
    elif isinstance(kernel, Diffusion) and kernel.kind == "parametrix":
        yield f"{kernel!r} is not positive semi-definite in general; kind='geodesic' or 'sphere' is."
    elif isinstance(kernel, LocalAlignment) and kernel.logarithm:
        yield f"{kernel!r} is not positive semi-definite in general; logarithm=False is."
    elif isinstance(kernel, LocalAlignment) and isinstance(ready, Sequences) and not kernel.table_is_positive(ready):
        yield f"{kernel!r} is not positive semi-definite, since exp(beta * table) is not; change the table."
    elif isinstance(kernel, ModelKernel) and isinstance(ready, Collection):
        for stack, _ in ready.groups:
            how = kernel._how()
            if isinstance(how, Power) and isinstance(stack, Sampled):
                yield SAMPLED
            elif affinity.explain(stack, stack, how, kernel.length, kernel.method).kind == "bound":
                yield BOUND.format(method=kernel.method)
    for part in kernel.get_params(deep=False).values():
        if isinstance(part, Kernel):
            yield from _causes(part, ready[kernel.view] if isinstance(kernel, On) and ready is not None else ready)
