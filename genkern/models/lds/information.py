"""The complete-data Fisher information of one linear dynamical system, alone or as a regime of a switching one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from genkern.models.information import InformationBlocks
from genkern.models.lds import covariance as lds_covariance
from genkern.validation import Floats


class ExpectedSums(NamedTuple):
    """Expected sums over the steps of a series, by regime (S,) or of the one there is.

    left (n, n) and seen (n, n) of s s^T over the steps that a transition leaves, and over all; seen_sum (n,) of s over
    all; the numbers of starts, transitions and observations.
    """

    left: Floats
    seen: Floats
    seen_sum: Floats
    starts: Any
    moves: Any
    looks: Any


def information_blocks(
    system: Any, expected: ExpectedSums, coordinates: str, who: str, where: str = ""
) -> InformationBlocks:
    r"""Return pairs (index, block) of one system's parameters, in their order, refusing covariances near zero.

    The rows of [C, b] are regressions on (s, 1): their block is :math:`R^{-1} \otimes \sum E[(s, 1)(s, 1)^T]`.
    """
    covs = system.matrices()
    for name, cov in zip(("state_cov", "obs_cov", "initial_cov"), covs):
        if not np.linalg.eigvalsh(cov)[0] > 0.0:
            raise ValueError(
                f"{who}.information: '{name}'{where} is singular, so an observer of the states would know its "
                'parameters for certain. Use a positive covariance, or FisherScore with information="empirical".'
            )
    Q, R, P = (np.asarray(np.linalg.inv(cov), np.float64) for cov in covs)
    n, d = system.n_states, system.n_channels
    sizes = [getattr(system, name).size for name in system._fields]
    for place in (2, 3, 5):
        sizes[place] = len(lds_covariance.names("", getattr(system, system._fields[place]).shape))
    A, C, by_Q, by_R, mean, by_P, b = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    if not all(np.isfinite(part).all() for part in (expected.left, expected.seen, expected.seen_sum)):
        raise ValueError(
            f"{who}.information: 'transition'{where} must keep the moments of states finite over all steps. Got "
            f"eigenvalues up to {np.abs(np.linalg.eigvals(system.transition)).max():g}. Shorten the series, or take a "
            "stable system."
        )
    column = expected.seen_sum[:, None]
    moment = np.block([[expected.seen, column], [column.T, np.full((1, 1), expected.looks)]])
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
        blocks = [
            (A, np.kron(Q, expected.left)),
            (np.concatenate([C.reshape(d, n), b[:, None]], axis=1).ravel(), np.kron(R, moment)),
            (by_Q, lds_covariance.information(system.state_cov, n, expected.moves, coordinates)),
            (by_R, lds_covariance.information(system.obs_cov, d, expected.looks, coordinates)),
            (mean, expected.starts * P),
            (by_P, lds_covariance.information(system.initial_cov, n, expected.starts, coordinates)),
        ]
    if not all(np.isfinite(block).all() for _, block in blocks):
        raise ValueError(
            f"{who}.information: covariances{where} must have inverses that do not overflow, squared or with the "
            f"moments of states. Got variances from {min(np.diagonal(cov).min() for cov in covs):.3g}. Take other "
            'units, in which they are nearer to one, or FisherScore with information="empirical".'
        )
    return blocks
