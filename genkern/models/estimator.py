"""What estimators of models share: the contract, and the closed-form fit of leaf families."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from genkern.models.base import Statistics
from genkern.models.leaf import Leaf
from genkern.objects import Packed, remember_width
from genkern.validation import Floats


class ModelEstimator(BaseEstimator):
    """An estimator whose ``fit`` gives a model value ``model_``, and whose ``fit_each`` gives one per object."""

    model_: Any

    def fit_each(self, X: Any) -> list[Any]:
        """Return one fitted model per object."""
        raise TypeError(f"{type(self).__name__} must define fit_each.")

    def resolve(self, X: Any) -> ModelEstimator:
        """Return an estimator that fits parts of X as it would fit the whole (same alphabet)."""
        raise TypeError(f"{type(self).__name__} must define resolve.")

    def maximize(self, statistics: Statistics) -> Any:
        """Return the model that maximises the expected log-likelihood (plus log prior): the M-step."""
        raise TypeError(f"{type(self).__name__} must define maximize.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = False
        return tags


class LeafEstimator(ModelEstimator):
    """Estimator of a leaf family, alone or as the emissions of a latent model.

    A family gives ``pack``, ``reference``, ``maximize_blocks`` and, if it has a prior, ``log_prior``.
    """

    max_passes = 100  # of EM over missing entries; complete data need one
    tolerance = 1e-10  # of a parameter between passes

    def pack(self, X: Any, sequences: bool) -> Packed:
        """Encode raw objects."""
        raise TypeError(f"{type(self).__name__} must define pack.")

    def reference(self, packed: Packed, n: int, own: bool) -> Leaf:
        """Return a stack of n (per object, if own) vague members about which statistics can be taken."""
        raise TypeError(f"{type(self).__name__} must define reference.")

    def maximize_blocks(self, blocks: dict[str, Floats], leaf: Any) -> Any:
        """Return the stack maximising expected log-likelihood and prior, from blocks taken under ``leaf``."""
        raise TypeError(f"{type(self).__name__} must define maximize_blocks.")

    def log_prior(self, leaf: Any) -> Floats:
        """Return the log prior density up to a constant, summed over the last batch axis: batch[:-1]."""
        return np.zeros(leaf.shape[:-1])

    def estimate(self, packed: Packed, weights: Floats, own: bool) -> Leaf:
        """Return the stack fitted to weighted points (N, n), for each object or for all together."""
        leaf = self.reference(packed, weights.shape[1], own)
        return self.maximize_blocks(leaf.weigh(packed, weights, totals=not own), leaf)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit one model to the points of all bags.

        Parameters
        ----------
        X : list of bags of points, or 2-D array of single points
        y : None
            Ignored.

        Returns
        -------
        self
        """
        remember_width(self, X, reset=True)
        self.model_ = self._fit_packed(self.pack(X, sequences=False), own=False)[0]
        return self

    def fit_each(self, X: Any) -> list[Any]:
        """Return one model per bag."""
        stack = self._fit_packed(self.pack(X, sequences=False), own=True)
        return [stack[i, 0] for i in range(len(stack))]

    def maximize(self, statistics: Statistics) -> Any:
        """Return the model from the statistics of bags under another, summed over their leading axis."""
        one = statistics.model.stack([statistics.model])
        blocks = {name: block[:, None] for name, block in statistics.total().blocks.items()}
        return self.maximize_blocks(blocks, one)[0]

    def _fit_packed(self, packed: Packed, own: bool) -> Any:
        """Return a stack of batch (1,) or (n_objects, 1); missing entries take EM passes."""
        weights = np.ones((len(packed.values), 1))
        leaf = self.estimate(packed, weights, own)
        if not has_missing(packed):
            return leaf
        for _ in range(self.max_passes):
            following = self.maximize_blocks(leaf.weigh(packed, weights, totals=not own), leaf)
            moved = max(_distance(getattr(leaf, name), getattr(following, name)) for name in leaf._fields)
            leaf = following
            if moved < self.tolerance:
                break
        return leaf


def has_missing(packed: Packed) -> bool:
    """Say whether any entry is missing or ambiguous."""
    if packed.alphabet is None:
        return bool(np.isnan(packed.values).any())
    return bool((packed.values >= packed.alphabet.size).any())


def _distance(old: Any, new: Any) -> float:
    return float(np.abs(new - old).max()) if isinstance(old, np.ndarray) else 0.0


def one_hot(labels: NDArray[np.int64], n: int) -> Floats:
    """Return indicator weights (N, n) of labels."""
    weights = np.zeros((len(labels), n))
    weights[np.arange(len(labels)), labels] = 1.0
    return weights
