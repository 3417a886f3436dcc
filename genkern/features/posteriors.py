"""Objects as posteriors of their hidden states, for the exact latent mean map kernel."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import numpy as np
from scipy.sparse import issparse

from genkern.data.objects import Packed
from genkern.data.store import Store
from genkern.data.transformer import Transformer
from genkern.features.base import fit_one_class
from genkern.features.class_models import fit_models
from genkern.features.marginalized_points import refuse_missing, refuse_windows
from genkern.features.states import dense, state_counts
from genkern.features.streaming import stream
from genkern.models.posterior import Posterior


class Posteriors(Transformer):
    r"""Represent each object by its observations with the posteriors of their hidden states under one model.

    .. math:: x \mapsto \big(x_t,\ \tfrac1L P(q_t = i | x)\big)_t, \quad
       \tfrac1{L - 1} \sum_t P(q_t = i, q_{t+1} = j | x)

    These are compared by ``LatentMean``, the latent mean map kernel. Symbols are summed up: each symbol that occurs is
    one point, with its expected share of each state; ambiguous ones are divided among their members by posterior
    probability.

    Parameters
    ----------
    estimator : estimator or model
        An estimator, a clone of which is fitted to all objects given to ``fit``, or a model that is used unchanged: a
        hidden Markov model with any emissions, a mixture (components are the states), a factorial model
        (chains concatenated), a periodic chain (phases).
    n_jobs : int, optional
        Threads, over batches of objects.
    fit_on : label, optional
        Fit the model to the objects of this class only, which needs y, as the paper does.
    store : Store, optional
        Memo of fitted models, shared by all clones: a grid over the kernel fits each model once.

    Attributes
    ----------
    model_ : Model

    Notes
    -----
    A missing entry of a series is refused by object and position, as there is no observation to compare.

    References
    ----------
    Mehta & Gray (2010), Generative and latent mean map kernels, section 4.

    Examples
    --------
    >>> from genkern import HMM, Categorical, LatentMean, Posteriors
    >>> emissions = Categorical([[0.9, 0.1], [0.2, 0.8]], alphabet="ab")
    >>> model = HMM([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], emissions)
    >>> X = Posteriors(model).fit_transform(["aab", "b"])
    >>> X[0].weights.round(3)
    array([[0.558, 0.109],
           [0.094, 0.239]])
    >>> LatentMean(lam_x=2.0, lam_q=1.0).exp(0.5)(X).round(3)
    array([[1.   , 0.518],
           [0.518, 1.   ]])
    """

    _inputs: ClassVar[dict[str, bool]] = {"allow_nan": False}

    def __init__(self, estimator: Any, n_jobs: int | None = None, fit_on: Any = None, store: Store | None = None):
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.fit_on = fit_on
        self.store = store

    def _fit(self, X: Any, y: Any) -> None:
        if self.fit_on is None:
            model, packed = fit_models(self.estimator, X, None, False, "Posteriors", store=self.store)
        else:
            model, packed = fit_one_class(self.estimator, X, y, self.fit_on, self.store, "Posteriors")
        state_counts(model, "Posteriors")
        if packed.alphabet is not None:
            refuse_windows(model, packed, "Posteriors")
        elif not issparse(packed.values):
            refuse_missing(packed, "Posteriors", "the latent mean map")
        self.model_ = model

    def _encode(self, X: Any) -> Any:
        return self.model_.pack(X)

    def _needs_labels(self) -> bool:
        return self.fit_on is not None

    def _transform(self, packed: Packed) -> list[Posterior]:
        states = sum(state_counts(self.model_, "Posteriors"))
        width = states * (packed.alphabet.size if packed.alphabet is not None else 1)
        blocks = stream(cast(Any, self._posteriors), packed, width, self.n_jobs, states)
        return [posterior for _, block in blocks for posterior in cast(Any, block)]

    def _posteriors(self, packed: Packed) -> list[Posterior]:
        """Return the posteriors of a batch of objects."""
        model = self.model_
        sizes, lengths = tuple(state_counts(model, "Posteriors")), packed.lengths
        if packed.alphabet is not None:
            shares = model.expected_symbols(packed) / lengths[:, None, None]
            points = [np.flatnonzero(share.any(axis=0)).astype(np.int32) for share in shares]
            weights = [share[:, seen].T for share, seen in zip(shares, points)]
        else:
            packed = dense(packed)
            refuse_missing(packed, "Posteriors", "the latent mean map")
            points = packed.pieces()
            gamma = model.state_posteriors(packed)
            weights = [piece / len(piece) for piece in np.split(gamma, packed.offsets[1:-1])]
        pairs = np.zeros((packed.n_objects, 0))
        if model.has_steps:
            _, steps = model.expected_states(packed, steps=True)
            pairs = cast(Any, steps) / np.maximum(lengths - 1, 1)[:, None]
        return [Posterior._restore(*parts, sizes) for parts in zip(points, weights, pairs)]
