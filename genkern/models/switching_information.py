"""The complete-data Fisher information of switching linear dynamical systems."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.models import lds_covariance, simplex
from genkern.models.lean_information import Information, InformationBlocks
from genkern.validation import Floats


def complete_information(model: Any, lengths: NDArray[Any], coordinates: str) -> InformationBlocks:
    """Return pairs (index, block), in the order of the parameters; see ``SwitchingLDS.information``."""
    left, seen, arrivals, departures = _expected_moments(model, lengths)
    blocks: list[Information] = [simplex.row_information(model.start, 1.0, coordinates)]
    blocks += simplex.information(model.transitions, departures, coordinates)
    for k in range(model.n_regimes):
        system, (Q, R, P) = model.systems[k], model.systems[k].matrices()
        for name, cov in zip(("state_cov", "obs_cov", "initial_cov"), (Q, R, P)):
            if not np.linalg.eigvalsh(cov)[0] > 0.0:
                raise ValueError(
                    f"SwitchingLDS.information: '{name}' of regime {k} is singular, so an observer of the states would "
                    "know its parameters for certain. Use a positive covariance, or FisherScore with "
                    'information="empirical" or "identity".'
                )
        starts, n = model.start[k], model.n_states
        blocks += [
            np.kron(np.linalg.inv(Q), left[k]),
            np.kron(np.linalg.inv(R), seen[k]),
            lds_covariance.information(system.state_cov, n, arrivals[k], coordinates),
            lds_covariance.information(system.obs_cov, model.n_channels, arrivals[k] + starts, coordinates),
            starts * np.linalg.inv(P),
            lds_covariance.information(system.initial_cov, n, starts, coordinates),
        ]
    ends = np.cumsum([len(block) for block in blocks])
    return [(np.arange(end - len(block), end), block) for end, block in zip(ends, blocks)]


def _expected_moments(model: Any, lengths: NDArray[Any]) -> tuple[Floats, Floats, Floats, Floats]:
    r"""Return moments (S, n, n) and counts (S,), averaged over lengths.

    Moments of the states that steps into a regime leave, and of those in it; numbers of steps into it and out of it. By
    regime, :math:`M_t(k) = E[s_t s_t^T; q_t = k]` follows
    :math:`M_{t+1}(l) = A_l \sum_k a_{kl} M_t(k) A_l^T + p_{t+1}(l) Q_l`.
    """
    A, mean = model.systems.transition, model.systems.initial_mean
    Q, _, P = model.systems.matrices()
    occupied = np.array(model.start)
    second = occupied[:, None, None] * (P + mean[:, :, None] * mean[:, None, :])
    left, seen = np.zeros_like(second), np.zeros_like(second)
    arrivals, departures = np.zeros_like(occupied), np.zeros_like(occupied)
    for t in range(int(lengths.max())):
        here, on = (lengths > t).mean(), (lengths > t + 1).mean()
        seen += here * second
        departures += on * occupied
        entering = np.einsum("kl,kij->lij", model.transitions, second)
        occupied = occupied @ model.transitions
        left += on * entering
        arrivals += on * occupied
        second = A @ entering @ np.swapaxes(A, -1, -2) + occupied[:, None, None] * Q
    return left, seen, arrivals, departures
