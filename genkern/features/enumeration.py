"""The exact Fisher information of small sample spaces, by enumeration of all objects of a length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from genkern.data.objects import Packed
from genkern.features.streaming import stream
from genkern.validation import Floats

MAX_OUTCOMES = 1 << 20  # objects that are enumerated
MASS_TOLERANCE = 1e-8  # of the probability of all objects of a length, which is one


def exact_scores(
    model: Any, packed: Packed, coordinates: str, n_jobs: int | None = None
) -> tuple[int, Iterator[Floats]]:
    r"""Return how many objects of the lengths of ``packed`` are possible, and blocks (n_b, p) of their weighted scores.

    The weights are such that the second moment of all blocks is the expectation over all objects of each length,
    averaged over the lengths:

    .. math:: I = \frac1n \sum_i \sum_{x : |x| = L_i} p(x)\, U_x U_x^T, \qquad U_x = \nabla_\theta \log p(x | \theta)
    """
    lengths, counts = np.unique(packed.lengths, return_counts=True)
    _refuse_large(model, packed, lengths * _sites(packed))
    possible: list[tuple[Packed, Floats]] = []  # objects and the roots of their weights, length by length
    for length, share in zip(lengths.tolist(), counts / counts.sum()):
        objects = _outcomes(packed, length)
        logs: Floats = model.log_prob(objects)
        _refuse_improper(model, length, float(np.exp(logs).sum()))
        places = np.flatnonzero(np.isfinite(logs))
        possible.append((objects.take(places), np.sqrt(share) * np.exp(0.5 * logs[places, None])))

    def blocks() -> Iterator[Floats]:
        width = len(model.parameter_names)
        for objects, roots in possible:
            work = stream(lambda block: model.log_prob_grad(block, coordinates), objects, width, n_jobs)
            for part, scores in work:
                yield roots[part] * scores

    return sum(len(roots) for _, roots in possible), blocks()


def _refuse_improper(model: Any, length: int, mass: float) -> None:
    """Raise where the objects of a length do not have the total probability one."""
    if abs(mass - 1.0) > MASS_TOLERANCE:
        raise ValueError(
            f"FisherScore: information='exact' needs a distribution over the objects of each length, but those of "
            f"length {length} have total probability {mass:.6g} under {type(model).__name__} (end weights, stop "
            "probabilities?). Use information='complete'."
        )


def _sites(packed: Packed) -> int:
    """Return the number of symbols of one observation."""
    return int(np.prod(packed.values.shape[1:]))


def _refuse_large(model: Any, packed: Packed, symbols: Any) -> None:
    """Raise for models that cannot be enumerated, or have too many objects."""
    if packed.alphabet is None:
        raise ValueError(
            "FisherScore: information='exact' enumerates all objects, so it needs a model of symbols. "
            f"{type(model).__name__} has no alphabet here; use information='complete' or 'empirical'."
        )
    total = sum(packed.alphabet.size ** int(n) for n in symbols)
    if total > MAX_OUTCOMES:
        raise ValueError(
            f"FisherScore: information='exact' would enumerate {float(total):.3g} objects ({packed.alphabet.size} "
            f"symbols, up to {int(symbols.max())} of them in a row); at most {MAX_OUTCOMES} are. Use "
            "information='complete', or 'empirical' if there are many objects."
        )


def _outcomes(packed: Packed, length: int) -> Packed:
    """Return all objects of one length over the alphabet, packed."""
    assert packed.alphabet is not None
    m, n = packed.alphabet.size, length * _sites(packed)
    number = np.arange(m**n, dtype=np.int64)
    codes = np.empty((m**n, n), np.int32)
    for place in range(n):
        codes[:, place] = number // m ** (n - 1 - place) % m
    values = codes.reshape((m**n * length, *packed.values.shape[1:]))
    return Packed(values, np.arange(m**n + 1, dtype=np.int64) * length, packed.alphabet)
