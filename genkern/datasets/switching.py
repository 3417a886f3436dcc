"""The synthetic problem of the probability product paper: series of random switching linear dynamical systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.io.dataset import Dataset
from genkern.models.lds.model import LDS
from genkern.models.switching.model import SwitchingLDS
from genkern.validation import check_int

SWITCHING_SYSTEMS = """\
Series of random switching linear dynamical systems, half of which are called "first", the others "second". A class has
no more in common than that: a series is recognised by others of its own system. Groups are systems."""


def random_switching_lds(n_regimes: int = 5, random_state: Any = 0) -> SwitchingLDS:
    r"""Return a random switching linear dynamical system with two states and two channels.

    .. math:: A_k = r_k \begin{pmatrix} \cos\phi_k & -\sin\phi_k \\ \sin\phi_k & \cos\phi_k \end{pmatrix}, \quad
       r_k \sim U(\tfrac12, 1), \ \phi_k \sim U(-\pi, \pi), \quad C_{ij} \sim N(0, 1), \quad Q = R = \tfrac1{10} I

    States begin with mean :math:`m_k \sim N(0, I)` and covariance :math:`\tfrac1{10} I`. C is the same in all regimes.
    The first regime and the next one after each have probabilities that are uniform on the simplex.

    Parameters
    ----------
    n_regimes : int, default=5
        Regimes.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    SwitchingLDS

    Notes
    -----
    The paper says that its systems were "generated at random", no more.

    References
    ----------
    .. [1] T. Jebara, R. Kondor, A. Howard (2004), Probability product kernels, section 8.3.
    """
    check_int(n_regimes, "n_regimes", "random_switching_lds", minimum=1)
    rng = np.random.default_rng(random_state)
    C, noise = rng.standard_normal((2, 2)), 0.1 * np.eye(2)
    systems = []
    for _ in range(n_regimes):
        radius, angle = rng.uniform(0.5, 1.0), rng.uniform(-np.pi, np.pi)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        systems.append(LDS(radius * turn, C, noise, noise, rng.standard_normal(2), noise))
    start, *steps = rng.dirichlet(np.ones(n_regimes), n_regimes + 1)
    return SwitchingLDS(start, steps, LDS.stack(systems))


def make_switching_systems(
    n_systems: int = 20, n_per_system: int = 5, length: int = 25, n_regimes: int = 5, random_state: Any = 0
) -> Dataset:
    """Draw the synthetic problem of the probability product paper: series of systems of :func:`random_switching_lds`.

    Parameters
    ----------
    n_systems : int, default=20
        Systems in both classes together; an even number.
    n_per_system : int, default=5
        Series of each.
    length : int, default=25
        Observations per series.
    n_regimes : int, default=5
        Regimes of each system.
    random_state : int, Generator or None
        Seed of the systems and of the draws.

    Returns
    -------
    Dataset
        ``X`` is a list of series of shape (length, 2): first those of class "first", then those of class "second";
        ``groups`` are the systems.

    References
    ----------
    .. [1] T. Jebara, R. Kondor, A. Howard (2004), Probability product kernels, section 8.3.

    Examples
    --------
    >>> from genkern.datasets import make_switching_systems
    >>> make_switching_systems(4)
    Dataset(switching systems: 20 objects, classes first 10, second 10)
    """
    who = "make_switching_systems"
    check_int(n_systems, "n_systems", who, minimum=2)
    if n_systems % 2:
        raise ValueError(f"{who}: 'n_systems' must be even, as half of them are of each class. Got {n_systems}.")
    check_int(n_per_system, "n_per_system", who, minimum=1)
    check_int(length, "length", who, minimum=1)
    rng = np.random.default_rng(random_state)
    drawn = [
        random_switching_lds(n_regimes, rng).sample(n_per_system, length=length, rng=rng) for _ in range(n_systems)
    ]
    groups = np.repeat([f"system{i + 1:02d}" for i in range(n_systems)], n_per_system)
    return Dataset(
        [series for group in drawn for series in group],
        np.repeat(["first", "second"], n_systems // 2 * n_per_system),
        [f"{name}-{i + 1}" for name in groups[::n_per_system] for i in range(n_per_system)],
        groups,
        kind="series",
        meta={"name": "switching systems", "description": SWITCHING_SYSTEMS},
    )
