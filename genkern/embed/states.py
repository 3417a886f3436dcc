"""What embeddings by hidden states share: posteriors of one model or of one per class, streamed and named."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from genkern.embed.blocks import blas, gather
from genkern.embed.class_models import fit_models, named_models, takes_nan
from genkern.embed.maps import ElementMap, check_map
from genkern.embed.packing import pack_for
from genkern.models.factorial import FactorialHMM
from genkern.models.hmm import HMM
from genkern.models.markov import PeriodicChain
from genkern.models.mixture import Mixture
from genkern.objects import Packed, remember_width
from genkern.validation import Floats, check_option

APPLY = ("sum", "time")


class StateEmbedding(TransformerMixin, BaseEstimator):
    """Features from state posteriors; a family gives ``_names``, ``_features`` and ``_load``."""

    estimator: Any
    apply: str
    map: ElementMap | None
    per_class: bool
    n_jobs: int | None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model, or one per class, if it is not given.

        Parameters
        ----------
        X : list of n objects
        y : array-like of shape (n,), optional
            Labels, for ``per_class``; otherwise ignored.

        Returns
        -------
        self
        """
        who = type(self).__name__
        check_option(self.apply, APPLY, "apply", who)
        check_map(self.map, who)
        self._check_options()
        remember_width(self, X, reset=True)
        fitted = fit_models(self.estimator, X, y, self.per_class, who)
        packed = pack_for(fitted, X)
        self._learn(packed)
        self._names_by_model = [
            [prefix + name for name in self._names(model, packed)] for prefix, model in named_models(fitted)
        ]
        self.n_features_out_ = sum(map(len, self._names_by_model))
        self.model_ = fitted
        return self

    def transform(self, X: Any) -> Floats:
        """Return the features of each object.

        Parameters
        ----------
        X : list of n objects

        Returns
        -------
        features : ndarray of shape (n, n_features_out_)
        """
        check_is_fitted(self, "model_")
        remember_width(self, X, reset=False)
        packed = pack_for(self.model_, X)
        pairs = zip(named_models(self.model_), self._names_by_model)
        with blas().limit(limits=1, user_api="blas"):
            columns = [
                gather(partial(self._features, model), packed, len(names), self.n_jobs, self._load(model, packed))
                for (_, model), names in pairs
            ]
        return np.concatenate(columns, axis=1)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the features, those of class models with the label in front.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        names : ndarray of shape (n_features_out_,) of str
        """
        check_is_fitted(self, "model_")
        return np.array([name for names in self._names_by_model for name in names], dtype=object)

    # --- what a family gives

    def _check_options(self) -> None:
        """Check the options beyond those that all have."""

    def _learn(self, packed: Packed) -> None:
        """Learn from the objects what features need beyond the models."""

    def _names(self, model: Any, packed: Packed) -> list[str]:
        """Return the names of the features of one model, refusing models that have none."""
        raise TypeError(f"{type(self).__name__} must define _names.")

    def _features(self, model: Any, packed: Packed) -> Floats:
        """Return the features (n_objects, k) of a block under one model."""
        raise TypeError(f"{type(self).__name__} must define _features.")

    def _load(self, model: Any, packed: Packed) -> int:
        """Return how many numbers per observation ``_features`` holds."""
        raise TypeError(f"{type(self).__name__} must define _load.")

    # --- the map, and sums over time

    def _sum(self, terms: Floats, offsets: NDArray[np.int64], normalize: bool) -> Floats:
        """Return sums (n_objects, ...) of terms (P, ...) of each object, mapped before (``time``) or after."""
        inside = self.apply == "time"
        sums = sum_pieces(self._mapped(terms) if inside else terms, offsets)
        return self._finish(sums, np.diff(offsets), normalize)

    def _finish(self, sums: Floats, counts: NDArray[np.int64], normalize: bool) -> Floats:
        """Return sums over ``counts`` terms as means, if so wished, and mapped, if they have not been."""
        if normalize:
            sums = sums / np.maximum(counts, 1).reshape((-1, *[1] * (sums.ndim - 1)))
        return self._mapped(sums) if self.apply == "sum" else sums

    def _mapped(self, values: Floats) -> Floats:
        return values if self.map is None else self.map.apply(values)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = takes_nan(self.estimator)
        tags.target_tags.required = self.per_class
        return tags


def sum_pieces(terms: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Return sums (n, ...) of consecutive pieces of terms (P, ...), zero for empty pieces."""
    sums = np.zeros((len(offsets) - 1, *terms.shape[1:]))
    filled = np.flatnonzero(np.diff(offsets))
    if len(filled):
        sums[filled] = np.add.reduceat(terms, offsets[filled], axis=0)
    return sums


def pair_offsets(packed: Packed) -> NDArray[np.int64]:
    """Return where the pairs of neighbouring positions of each object begin and end."""
    return packed.offsets - np.arange(len(packed.offsets))


def state_counts(model: Any, who: str, pairs: bool = False) -> list[int]:
    """Return the numbers of states of a model's chains, refusing models without discrete hidden states."""
    if isinstance(model, HMM):
        return [model.n_states]
    if isinstance(model, FactorialHMM):
        return list(model.n_states)
    if pairs:
        raise TypeError(
            f"{who}: transitions between hidden states need a hidden Markov model. Got {type(model).__name__}."
        )
    if isinstance(model, Mixture):
        return [model.n_components]
    if isinstance(model, PeriodicChain):
        return [model.period]
    raise TypeError(
        f"{who}: needs a model with discrete hidden states: HMM, FactorialHMM, Mixture (components) or PeriodicChain "
        f"(phases). Got {type(model).__name__}."
    )


def indices(sizes: list[int], repeat: int = 1) -> list[str]:
    """Return the indices of (pairs of) states as text, with the chain in front if there are several."""
    chains = [f"{c}," if len(sizes) > 1 else "" for c in range(len(sizes))]
    return [
        chain + ",".join(map(str, states))
        for chain, n in zip(chains, sizes)
        for states in product(range(n), repeat=repeat)
    ]


def posteriors(model: Any, packed: Packed) -> Floats:
    """Return the state posteriors (N, S) of all positions; several chains side by side."""
    pieces = model.posterior(packed)
    if not isinstance(model, FactorialHMM):
        return np.concatenate(pieces)
    return np.concatenate([np.concatenate(chain) for chain in zip(*pieces, strict=True)], axis=1)


def pair_posteriors(model: Any, packed: Packed) -> Floats:
    """Return the posteriors (N - n_objects, S) of pairs of states at neighbouring positions, flattened."""
    pieces = [xi for _, xi in model.posterior(packed, pairs=True)]
    if not isinstance(model, FactorialHMM):
        return flat_rows(np.concatenate(pieces))
    chains = [flat_rows(np.concatenate(chain)) for chain in zip(*pieces, strict=True)]
    return np.concatenate(chains, axis=1)


def flat_rows(array: Floats) -> Floats:
    """Return an array of n rows as a matrix, also where n is zero."""
    return array.reshape(len(array), int(np.prod(array.shape[1:])))


def expected_states(model: Any, packed: Packed, pairs: bool) -> tuple[Floats, Floats | None]:
    """Return expected visits (n, S) and, with ``pairs``, transitions (n, S2) of each object: sums over time."""
    if isinstance(model, HMM):
        found = model.statistics(packed)
        steps = model.transitions * found["transitions"]
        visits = model.start * found["start"] + steps.sum(axis=1)
        return visits, flat_rows(steps) if pairs else None
    if isinstance(model, Mixture):
        return model.weights * model.statistics(packed)["weights"], None
    visits = sum_pieces(posteriors(model, packed), packed.offsets)
    return visits, sum_pieces(pair_posteriors(model, packed), pair_offsets(packed)) if pairs else None
