r"""Structured mean field for switching linear dynamical systems: sweeps over Q(s) and Q(q), and what EM needs of them.

.. math:: \log p(x) \ge E_Q \log p(x, s, q) + H(Q(s)) + H(Q(q))

One sweep takes the best Q(s) given Q(q), a Gaussian with the dynamics of averaged precisions, and the best Q(q) given
Q(s), an HMM whose evidence are expected log densities. Each maximises the bound over its part, so the bound never
falls, wherever the sweeps start and whenever they stop. After a sweep it is the log-likelihood of that HMM
plus H(Q(s)).

References
----------
Ghahramani & Hinton (2000), Variational learning for switching state-space models, section 4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from genkern.core.hmm import passes as hmm
from genkern.core.switching.collapse import collapsed_regimes
from genkern.core.switching.densities import Precisions, precisions_of
from genkern.core.switching.field import StateField, field_sums, states_of
from genkern.core.switching.types import Regimes, SwitchingSums, empty_sums
from genkern.data.objects import Packed
from genkern.validation import Floats

FAINTEST = 700.0  # logarithm of the ratio of factors of one position within the range of float64
NOTHING = 1e-100  # probability of a regime that counts as zero: sums lose nothing, and subnormal numbers are slow


class SwitchingField(NamedTuple):
    """Mean field: bounds (n,), Q(q) as marginals (N, S) and raw derivatives (n, S) and (n, S, S), and Q(s)."""

    bound: Floats
    regimes: Floats
    start: Floats
    transitions: Floats
    beliefs: StateField


def mean_field(
    model: Any, packed: Packed, gamma: Floats | None, max_sweeps: int, tol: float, n_jobs: int | None = None
) -> SwitchingField:
    """Sweep until an object's bound gains less than ``tol`` per observation; others go on.

    ``gamma`` (N, S) is where to start, by default at those of a filter that
    merges beliefs. The model is one, or a stack of own ones.
    """
    refuse_singular(model)
    regimes, own = model.regimes(), bool(model.shape)
    S, n, objects, positions = model.n_regimes, model.n_states, packed.n_objects, packed.n_points
    if gamma is None:
        gamma = collapsed_regimes(regimes, packed.values, packed.offsets, n_jobs)
    beliefs = StateField(
        *(np.zeros(shape) for shape in ((positions, n), (positions, n, n), (positions, n, n), objects))
    )
    out = SwitchingField(
        np.full(objects, -np.inf), gamma.copy(), np.zeros((objects, S)), np.zeros((objects, S, S)), beliefs
    )
    active, places, precisions = np.arange(objects), np.arange(positions), precisions_of(regimes)
    for _ in range(max_sweeps):
        field = _sweep(regimes, precisions, packed, gamma, own, n_jobs)
        _refuse_rounding(field.beliefs.entropy, active)
        going = field.bound - out.bound[active] >= tol * packed.lengths
        out.bound[active], out.start[active], out.transitions[active] = field.bound, field.start, field.transitions
        out.regimes[places] = gamma = field.regimes
        for target, part in zip(beliefs[:3], field.beliefs[:3]):
            target[places] = part
        beliefs.entropy[active] = field.beliefs.entropy
        if not going.any():
            break
        if not going.all():
            rows = np.repeat(going, packed.lengths)
            gamma, places, active, packed = gamma[rows], places[rows], active[going], packed.take(going)
            if own:
                regimes = Regimes(*(part[going] for part in regimes))
                precisions = Precisions(*(part[going] for part in precisions))
    return out


def field_statistics(model: Any, packed: Packed, field: SwitchingField) -> SwitchingSums:
    """Return the sums of each object under a mean field: derivatives of the expected log-likelihood, and moments."""
    regimes = model.regimes()
    sums = empty_sums(regimes, packed.offsets, derivatives=True)
    sums = sums._replace(start=field.start, transitions=field.transitions)
    field_sums(regimes, precisions_of(regimes), (packed.values, packed.offsets), field.regimes, field.beliefs, sums)
    return sums


def _sweep(
    regimes: Regimes, precisions: Precisions, packed: Packed, gamma: Floats, own: bool, n_jobs: int | None
) -> SwitchingField:
    """Return the field after one update of Q(s) and one of Q(q)."""
    beliefs, expected = states_of(regimes, precisions, packed.values, packed.offsets, gamma, n_jobs)
    top = expected.max(axis=1)
    # Where float64 would call a regime impossible, Q takes it as barely possible. The bound holds for any Q.
    potential = np.maximum(expected, top[:, None] - FAINTEST)
    table = hmm.Evidence(np.exp(potential - top[:, None]), top, None)
    chains = hmm.Chains(regimes.start, regimes.transitions, np.ones_like(regimes.start))
    sums = hmm.gradients(chains, table, packed.offsets, n_jobs=n_jobs, own=own)
    marginal = table.table * sums.emissions
    marginal[marginal < NOTHING] = 0.0
    change = (marginal * (expected - potential)).sum(axis=1)
    bound = sums.log_prob + beliefs.entropy + np.add.reduceat(change, packed.offsets[:-1])
    return SwitchingField(bound, marginal, sums.start, sums.transitions, beliefs)


def refuse_singular(model: Any) -> None:
    """Raise for covariances that have no inverse."""
    for name, covs in zip(("state_cov", "obs_cov", "initial_cov"), model.systems.matrices()):
        lowest = np.linalg.eigvalsh(covs)[..., 0]
        if not (lowest > 0.0).all():
            where = tuple(int(i) for i in np.argwhere(~(lowest > 0.0))[0])
            raise ValueError(
                f"SwitchingLDS: '{name}' of system {where} is singular, and the mean field needs its inverse. Give it "
                "a small positive variance."
            )


def _refuse_rounding(entropy: Floats, active: Any) -> None:
    """Raise for the first object whose precision matrix is singular up to rounding."""
    lost = np.flatnonzero(np.isnan(entropy))
    if len(lost):
        raise ValueError(
            f"SwitchingLDS: object {active[lost[0]]}: covariances differ by so many orders of magnitude, or states "
            "that no observation tells apart grow so much, that the mean field is lost in rounding errors. Raise the "
            "smallest variances (an estimator's min_covar), take shorter series, or leave unstable states out."
        )
