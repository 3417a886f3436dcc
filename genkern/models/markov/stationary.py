"""Stationary laws of Markov chains."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from genkern.validation import Floats

LARGEST_SYSTEM = 4096  # most contexts
BATCH = 1 << 24  # most numbers of the systems that are solved together


def stationary_law(steps: Floats, who: str) -> Floats:
    r"""Return the stationary law (G, C) of the contexts of chains with transitions (G, C, m).

    The solution of :math:`\pi = T^T \pi`, :math:`1^T \pi = 1`, where T leads from context to context: that of
    :math:`(I - T^T + 1 1^T) \pi = 1`, which is regular if and only if there is one.
    """
    models, contexts, m = steps.shape
    if contexts > LARGEST_SYSTEM:
        raise ValueError(
            f"{who}: the stationary law of {contexts} contexts is out of reach, for more than {LARGEST_SYSTEM}. Lower "
            "the order, or give or estimate the start distribution."
        )
    if contexts == 1:
        return np.ones((models, 1))
    onward = (np.arange(contexts)[:, None] * m + np.arange(m)) % contexts
    law = np.empty((models, contexts))
    size = max(1, BATCH // contexts**2)
    for first in range(0, models, size):
        part = steps[first : first + size]
        for i in np.flatnonzero((part == 0).any(axis=(1, 2))):
            _refuse_many_laws(part[i], onward, f"{who}: chain {first + i}" if models > 1 else f"{who}: the chain")
        systems = np.ones((len(part), contexts, contexts)) + np.eye(contexts)
        systems[:, onward, np.arange(contexts)[:, None]] -= part
        law[first : first + size] = np.linalg.solve(systems, np.ones((len(part), contexts, 1)))[:, :, 0]
    law = np.maximum(law, 0.0)  # rounding of contexts that are never seen again
    return law / law.sum(axis=1, keepdims=True)


def _refuse_many_laws(steps: Floats, onward: np.ndarray, who: str) -> None:
    """Raise if the contexts (C,) of a chain fall into several sets that are never left."""
    contexts, m = steps.shape
    possible = steps.ravel() > 0
    origins, targets = np.repeat(np.arange(contexts), m)[possible], onward.ravel()[possible]
    graph = csr_matrix((np.ones(len(origins)), (origins, targets)), shape=(contexts, contexts))
    count, labels = connected_components(graph, directed=True, connection="strong")
    leaving = labels[origins] != labels[targets]
    closed = count - len(np.unique(labels[origins[leaving]]))
    if closed > 1:
        raise ValueError(
            f"{who} has {closed} sets of contexts that are never left, hence no unique stationary law. Fit "
            "with a pseudocount > 0, or give the start distribution."
        )
