"""Two profiles side by side: the mass of all pairs of paths that emit together, step by step.

States that emit are M_1, ..., M_K, I_0, ..., I_K, N, J, C; the end comes after them. A step moves each of the two on,
through its silent states, in O(K) for each state of the other.
"""

from __future__ import annotations

import numpy as np

from genkern.core.jit import kernel
from genkern.core.profile.types import (
    CC,
    CT,
    DD,
    DM,
    EC,
    EJ,
    EN,
    II,
    IM,
    JB,
    JJ,
    MD,
    MI,
    MM,
    NB,
    NN,
    XD,
    XM,
    Floats,
    Profile,
)

ENOUGH = 45.0  # in logarithms: how much smaller than the sum what is left of the mass may be
CHECK = 1000  # steps between two looks at whether the mass still falls


def n_states(size: int) -> int:
    """Return the number of states of a profile of K columns that emit."""
    return 2 * size + 4


def moved(profile: Profile, mass: Floats) -> Floats:
    """Return the mass (S + 1, X) after one step, before emissions, from that (S, X) after the last emission."""
    found, scratch = np.zeros((len(mass) + 1, mass.shape[1])), np.zeros((3, mass.shape[1]))
    _move(profile.columns, profile.around[0], np.ascontiguousarray(mass), found, scratch)
    return found


@kernel
def _move(columns, around, mass, found, scratch):
    """Set what arrives in each state, with the end in the last row."""
    size, width = (len(mass) - 4) // 2, mass.shape[1]
    n, inserts = 2 * size + 1, size
    deleted, ended, begun = scratch[0], scratch[1], scratch[2]
    for x in range(width):
        begun[x] = mass[n, x] * around[NB]
        deleted[x] = 0.0
        ended[x] = mass[inserts + size, x] * columns[IM, size]
    for k in range(1, size + 1):
        for x in range(width):
            before = begun[x] if k == 1 else mass[k - 2, x]
            deleted[x] = before * columns[MD, k - 1] + deleted[x] * columns[DD, k - 1]
            ended[x] += mass[k - 1, x] * columns[XM, k] + deleted[x] * columns[XD, k]
            if k < size:
                found[k, x] = deleted[x] * columns[DM, k]
    for x in range(width):
        joined = mass[n + 1, x] + ended[x] * around[EJ]
        closed = mass[n + 2, x] + ended[x] * around[EC]
        found[n, x], found[n + 1, x], found[n + 2, x] = (
            mass[n, x] * around[NN],
            joined * around[JJ],
            closed * around[CC],
        )
        found[n + 3, x] = closed * around[CT]
        begun[x] += joined * around[JB]
    for k in range(size + 1):
        for x in range(width):
            m, i = begun[x] if k == 0 else mass[k - 1, x], mass[inserts + k, x]
            found[inserts + k, x] = m * columns[MI, k] + i * columns[II, k]
            if k < size:
                found[k, x] += m * columns[MM, k] + i * columns[IM, k] + begun[x] * columns[EN, k + 1]


def first_mass(size: int) -> Floats:
    """Return the mass (S,) before the first symbol: all of it at N."""
    return np.eye(n_states(size))[2 * size + 1]


def log_product(left: Profile, right: Profile, psi: Floats, length: int | None) -> float:
    """Return the log of the sum over sequences of one length, or of any, of the products of both models' masses.

    ``psi`` (S, S') is the affinity of the emissions. The sum over all lengths is infinite where the mass does not fall.
    """
    mass = np.outer(first_mass(left.size), first_mass(right.size))
    scale, total, last, step = 0.0, -np.inf, np.inf, 0
    with np.errstate(divide="ignore"):
        while True:
            arrived = moved(right, moved(left, mass).T).T
            end = scale + float(np.log(arrived[-1, -1]))
            if step == length:
                return end
            total = np.logaddexp(total, end) if step and length is None else total
            mass = arrived[:-1, :-1] * psi
            size = float(mass.sum())
            if size == 0.0:
                return -np.inf if length is not None else float(total)
            scale, mass, step = scale + float(np.log(size)), mass / size, step + 1
            if length is None and scale < total - ENOUGH:
                return float(total)
            if length is None and step % CHECK == 0:
                if scale >= last or scale == np.inf:
                    return np.inf
                last = scale
