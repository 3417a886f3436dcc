"""Random numbers for many objects at once, each object's a function of its own key."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from genkern.data.digests import digest_pieces
from genkern.data.objects import Packed, object_digests
from genkern.validation import Floats

Keys = NDArray[np.uint64]

LARGEST_SEED = 2**32 - 1  # as in scikit-learn

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def uniforms(keys: Keys, counters: NDArray[np.integer]) -> Floats:
    """Return uniform numbers in [0, 1), one for each pair of a key and a counter (they broadcast).

    SplitMix64: a counter-based generator, so that the numbers of an object need no state and no loop.
    """
    with np.errstate(over="ignore"):
        mixed = _mix(_mix(keys) + counters.astype(np.uint64) * _GOLDEN)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def seed_of(random_state: Any) -> int:
    """Return the seed given by ``random_state``; None is 0, so that fits are reproducible."""
    if random_state is None or isinstance(random_state, int | np.integer):
        seed = int(random_state or 0)
        if not 0 <= seed <= LARGEST_SEED:
            raise ValueError(
                f"The 'random_state' parameter must be an int from 0 to {LARGEST_SEED}, a RandomState or None. Got "
                f"{seed} instead; take e.g. {seed % (LARGEST_SEED + 1)}."
            )
        return seed
    return int(check_random_state(random_state).randint(2**31 - 1))


def derive(keys: Keys, salt: int) -> Keys:
    """Return keys of independent streams, e.g. one for every restart."""
    with np.errstate(over="ignore"):
        return _mix(keys ^ _mix(np.array([salt], np.uint64) * _GOLDEN))


def keys_of(seed: int, digests: list[str]) -> Keys:
    """Return one key per object from a seed and the objects' content digests."""
    content = np.array([int(digest[:16], 16) for digest in digests], np.uint64)
    return derive(content, seed)


def unit_free_digests(packed: Packed) -> list[str]:
    """Return a hex digest of every object that units do not change: for numbers, of their ranks in each channel.

    Equal numbers have equal ranks and missing ones have none, so that a x + b, with a > 0 of each channel, has the
    digest of x. Symbols and sparse counts have no units: theirs are those of `object_digests`.
    """
    if packed.alphabet is not None or not isinstance(packed.values, np.ndarray):
        return object_digests(packed)
    ranks, owners = np.zeros_like(packed.values, np.int64), packed.owners
    first = np.zeros(packed.n_points, bool)
    first[packed.offsets[:-1]] = True
    for channel, values in enumerate(packed.values.T):
        order = np.lexsort((values, owners))
        sorted_values = values[order]
        steps = np.cumsum(np.append(True, sorted_values[1:] != sorted_values[:-1]) & ~first)
        ranks[order, channel] = steps - np.repeat(steps[packed.offsets[:-1]], packed.lengths)
    ranks[np.isnan(packed.values)] = -1
    return digest_pieces(ranks, packed.offsets, f"ranks {ranks.shape[1]}")


def _mix(z: Keys) -> Keys:
    """Return the finaliser of SplitMix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
