"""The complete-data Fisher information of switching linear dynamical systems."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.models import simplex
from genkern.models.information import Information, InformationBlocks
from genkern.models.lds.information import ExpectedSums, information_blocks
from genkern.validation import Floats


def complete_information(model: Any, lengths: NDArray[Any], coordinates: str) -> InformationBlocks:
    """Return pairs (index, block), in the order of the parameters; see ``SwitchingLDS.information``."""
    expected, departures = _expected_moments(model, lengths)
    blocks: list[Information] = [simplex.row_information(model.start, 1.0, coordinates)]
    blocks += simplex.information(model.transitions, departures, coordinates)
    ends = np.cumsum([len(block) for block in blocks])
    pairs: InformationBlocks = [(np.arange(end - len(block), end), block) for end, block in zip(ends, blocks)]
    first = int(ends[-1])
    for k in range(model.n_regimes):
        own = ExpectedSums(*(part[k] for part in expected))
        found = information_blocks(model.systems[k], own, coordinates, "SwitchingLDS", f" of regime {k}")
        pairs += [(first + index, block) for index, block in found]
        first += sum(len(block) for _, block in found)
    return pairs


@np.errstate(over="ignore", invalid="ignore")  # what overflows is refused with the information
def _expected_moments(model: Any, lengths: NDArray[Any]) -> tuple[ExpectedSums, Floats]:
    r"""Return expected moments and numbers of steps by regime, and of steps out of it (S,), averaged over lengths.

    ``left`` are moments of the states that steps into a regime leave. By regime, :math:`M_t(k) = E[s_t s_t^T; q_t = k]`
    follows :math:`M_{t+1}(l) = A_l \sum_k a_{kl} M_t(k) A_l^T + p_{t+1}(l) Q_l`.
    """
    A, mean = model.systems.transition, model.systems.initial_mean
    Q, _, P = model.systems.matrices()
    occupied = np.array(model.start)
    first = occupied[:, None] * mean
    second = occupied[:, None, None] * (P + mean[:, :, None] * mean[:, None, :])
    left, seen, total = np.zeros_like(second), np.zeros_like(second), np.zeros_like(first)
    arrivals, departures = np.zeros_like(occupied), np.zeros_like(occupied)
    for t in range(int(lengths.max())):
        here, on = (lengths > t).mean(), (lengths > t + 1).mean()
        seen, total = seen + here * second, total + here * first
        departures += on * occupied
        entering = np.einsum("kl,kij->lij", model.transitions, second)
        first = np.einsum("lij,kl,kj->li", A, model.transitions, first)
        occupied = occupied @ model.transitions
        left += on * entering
        arrivals += on * occupied
        second = A @ entering @ np.swapaxes(A, -1, -2) + occupied[:, None, None] * Q
    starts = np.array(model.start)
    return ExpectedSums(left, seen, total, starts, arrivals, arrivals + starts), departures
