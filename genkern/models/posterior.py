"""Posteriors of the hidden states of one object, as a value that kernels compare."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.models.value import Value
from genkern.validation import Floats, check_array, check_int, check_probabilities


class Posterior(Value):
    r"""The joint distribution of an observation and its hidden state, and of neighbouring states, within one object.

    .. math:: w_{pi} = \frac1L \sum_{t : x_t = x_{(p)}} P(q_t = i | x), \qquad \Xi_{ij} = \frac1{L - 1} \sum_t
       P(q_t = i, q_{t+1} = j | x)

    Parameters
    ----------
    points : array-like of shape (P, d), or of P ints
        Observations, or codes of symbols; equal ones may be one.
    weights : array-like of shape (P, S)
        Probabilities of observation and state, which sum to one. Several chains of states are concatenated, each with
        sum one.
    pairs : array-like, optional
        Probabilities of neighbouring states, (S, S), or those of all chains flattened one after the other; zeros for
        an object of one observation, None for a model without transitions.
    sizes : sequence of int, optional
        The numbers of states of the chains; the default is one chain.

    Notes
    -----
    States are those of a model: only posteriors under the same model are comparable.

    References
    ----------
    Mehta & Gray (2010), Generative and latent mean map kernels, eq. 7 and section 4.

    Examples
    --------
    >>> from genkern import LatentMean, Posterior
    >>> first = Posterior([[0.0], [1.0]], [[0.5, 0.0], [0.1, 0.4]])
    >>> second = Posterior([[1.0]], [[0.0, 1.0]])
    >>> LatentMean(lam_x=1.0, lam_q=1.0)([first], [second]).round(4)
    array([[0.5484]])
    """

    _fields = ("points", "weights", "pairs", "sizes")
    points: NDArray[Any]
    weights: Floats
    pairs: Floats
    sizes: tuple[int, ...]

    def __init__(self, points: ArrayLike, weights: ArrayLike, pairs: ArrayLike = (), sizes: Any = None):
        seen = np.asarray(points)
        if seen.ndim == 1 and seen.dtype.kind in "iu":
            seen = seen.astype(np.int32)
            if len(seen) and seen.min() < 0:
                raise ValueError(f"Posterior: codes of symbols must not be negative. Got {seen.min()}.")
        else:
            seen = check_array(points, "points", "Posterior", ndim=2)
        table = check_array(weights, "weights", "Posterior", ndim=2)
        counts = (table.shape[1],) if sizes is None else tuple(check_int(k, "sizes", "Posterior", 1) for k in sizes)
        if len(table) != len(seen) or table.shape[1] != sum(counts):
            raise ValueError(
                f"Posterior: 'weights' must have shape {(len(seen), sum(counts))}, one row per point and one column "
                f"per state. Got {table.shape}."
            )
        chains = np.split(table, np.cumsum(counts)[:-1], axis=1)
        chains = [check_probabilities(c.ravel(), "weights", "Posterior").reshape(c.shape) for c in chains]
        steps = check_array(pairs, "pairs", "Posterior").ravel()
        if len(steps) not in (0, sum(k * k for k in counts)) or (steps < 0).any():
            raise ValueError(
                f"Posterior: 'pairs' must be {sum(k * k for k in counts)} probabilities, one for each pair of states "
                f"of a chain, or none. Got {len(steps)} numbers, the least {steps.min():.4g}."
            )
        self._freeze(points=seen, weights=np.concatenate(chains, axis=1), pairs=steps, sizes=counts)

    @property
    def shape(self) -> tuple[int, ...]:
        """Empty: there are no stacks of posteriors."""
        return ()
