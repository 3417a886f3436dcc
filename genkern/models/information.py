"""The complete-data Fisher information of any model, in one form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.models.leaf import Leaf
from genkern.models.lean_information import InformationBlocks


def complete_information(model: Any, lengths: NDArray[np.int64], coordinates: str) -> InformationBlocks:
    """Return pairs (index, block) of the complete-data information, averaged over lengths."""
    if not isinstance(model, Leaf):
        pairs: InformationBlocks = model.information(lengths, coordinates)
        return pairs
    blocks = model.stack([model]).information(np.array([lengths.mean()]), coordinates)
    ends = np.cumsum([len(block) for block in blocks])
    return [(np.arange(end - len(block), end), block) for end, block in zip(ends, blocks)]
