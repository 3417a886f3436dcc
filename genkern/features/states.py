"""Base class of embeddings by hidden states: posteriors of one model or of one per class, streamed and named."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from genkern.data.objects import Packed
from genkern.features.base import ModelEmbedding
from genkern.features.class_models import named_models
from genkern.features.positions import share
from genkern.features.streaming import gather
from genkern.models.base import Model
from genkern.models.positions import each_point
from genkern.models.states import count_symbols, pair_offsets, sum_pieces
from genkern.preprocess.maps import ElementMap, check_map
from genkern.threads import one_blas_thread
from genkern.validation import Floats, check_option

APPLY = ("sum", "time")


class States(NamedTuple):
    """Posteriors of the hidden states of objects under a model; only the fields that were asked for.

    Attributes
    ----------
    packed : Packed
        The observations.
    gamma : (N, S)
        Posteriors of the states of all positions.
    xi : (P, S2)
        Posteriors of states at neighbouring positions, flattened.
    pair_offsets : (n_objects + 1,)
        Offsets of the pairs of each object.
    firsts : (P,)
        The first of the two positions of each pair.
    visits : (n_objects, S)
        Sums of gamma over each object.
    steps : (n_objects, S2)
        Sums of xi.
    symbols : (n_objects, S, m)
        How often each state is expected to have emitted each symbol.
    whole : bool
        Whether objects are whole; otherwise each is one position of an object, before sums are mapped.
    """

    packed: Packed
    pair_offsets: NDArray[np.int64]
    firsts: NDArray[np.int64]
    gamma: Any = None
    xi: Any = None
    visits: Any = None
    steps: Any = None
    symbols: Any = None
    whole: bool = True


def ask(model: Model, packed: Packed, needs: set[str]) -> States:
    """Return the named posteriors of objects under a model."""
    found: dict[str, Any] = {}
    if "gamma" in needs:
        found["gamma"] = model.state_posteriors(packed)
    if "xi" in needs:
        found["xi"] = model.pair_posteriors(packed)
    if needs & {"visits", "steps"}:
        found["visits"], found["steps"] = model.expected_states(packed, "steps" in needs)
    if "symbols" in needs:
        found["symbols"] = model.expected_symbols(packed)
    return States(packed, pair_offsets(packed), first_positions(packed), **found)


def ask_positions(model: Model, packed: Packed, needs: set[str]) -> States:
    """Return the named posteriors of the positions of one object; a pair of states belongs to the second position."""
    points, gamma = each_point(packed), model.state_posteriors(packed)
    found: dict[str, Any] = {"gamma": gamma, "visits": gamma}
    if needs & {"xi", "steps"}:
        found["xi"] = model.pair_posteriors(packed)
        found["steps"] = np.insert(found["xi"], 0, 0.0, axis=0)
    if "symbols" in needs:
        found["symbols"] = count_symbols(points, gamma, model.state_emissions, type(model).__name__)
    return States(points, np.insert(np.arange(len(gamma)), 0, 0), first_positions(packed), whole=False, **found)


def first_positions(packed: Packed) -> NDArray[np.int64]:
    """Return the positions that have a next one."""
    return np.delete(np.arange(packed.n_points), packed.offsets[1:] - 1)


class StateEmbedding(ModelEmbedding):
    """Features from state posteriors; a family gives ``_names``, ``_features`` and ``_load``."""

    _fitted = "_names_by_model"
    _of_floats = True

    apply: str
    map: ElementMap | None
    per_class: bool
    n_jobs: int | None

    def _check_options(self) -> None:
        check_option(self.apply, APPLY, "apply", type(self).__name__)
        check_map(self.map, type(self).__name__)

    def _learn(self, packed: Packed) -> None:
        self._names_by_model = [
            [prefix + name for name in self._names(model, packed)] for prefix, model in named_models(self.model_)
        ]

    def _transform(self, packed: Packed) -> Floats:
        pairs = zip(named_models(self.model_), self._names_by_model)
        with one_blas_thread():
            columns = [
                gather(partial(self._embed, model), packed, len(names), self.n_jobs, self._load(model, packed))
                for (_, model), names in pairs
            ]
        return np.concatenate(columns, axis=1)

    def _names_out(self, given: Any) -> Any:
        """Return the names of the features, those of class models with the label in front."""
        return [name for names in self._names_by_model for name in names]

    # --- implemented by subclasses

    @abstractmethod
    def _names(self, model: Any, packed: Packed) -> list[str]:
        """Return the names of the features of one model, refusing models that have none."""

    @abstractmethod
    def _needs(self, model: Any, packed: Packed) -> set[str]:
        """Return the fields of ``States`` that the features need."""

    @abstractmethod
    def _features(self, model: Any, states: States) -> Floats:
        """Return the features (n_objects, k) of objects with these states under one model."""

    @abstractmethod
    def _load(self, model: Any, packed: Packed) -> int:
        """Return how many numbers per observation are held during the computation of features."""

    # --- from states to features, of objects and of positions

    def _embed(self, model: Model, packed: Packed) -> Floats:
        """Return the features (n_objects, k) of a batch under one model."""
        packed = dense(packed)
        return self._features(model, ask(model, packed, self._needs(model, packed)))

    def _position_features(self, packed: Packed) -> Any:
        points = dense(packed)
        models = [model for _, model in named_models(self.model_)]
        states = [ask_positions(model, points, self._needs(model, points)) for model in models]
        table = np.concatenate([self._features(*pair) for pair in zip(models, states)], axis=1)
        return share(sparse.csr_array(table), table.sum(axis=0), self._transform(packed)[0])

    def _sum(self, terms: Floats, offsets: NDArray[np.int64], normalize: bool, whole: bool) -> Floats:
        """Return sums (n_objects, ...) of terms (P, ...) of each object, mapped before (``time``) or after."""
        inside = self.apply == "time"
        sums = sum_pieces(self._mapped(terms) if inside else terms, offsets)
        return self._finish(sums, np.diff(offsets), normalize, whole)

    def _finish(self, sums: Floats, counts: NDArray[np.int64], normalize: bool, whole: bool) -> Floats:
        """Return sums over ``counts`` terms as means (``normalize``), mapped if ``whole`` and not mapped yet."""
        if normalize:
            sums = sums / np.maximum(counts, 1).reshape((-1, *[1] * (sums.ndim - 1)))
        return self._mapped(sums) if self.apply == "sum" and whole else sums

    def _mapped(self, values: Floats) -> Floats:
        return values if self.map is None else self.map.apply(values)


def dense(packed: Packed) -> Packed:
    """Return packed numbers as dense arrays."""
    values: Any = packed.values
    return packed._replace(values=values.toarray()) if sparse.issparse(values) else packed


def state_counts(model: Any, who: str, pairs: bool = False) -> tuple[int, ...]:
    """Return the numbers of states of a model's chains, refusing models without discrete hidden states."""
    sizes: tuple[int, ...] = model.state_sizes
    if sizes and (model.has_steps or not pairs):
        return sizes
    if pairs:
        raise TypeError(
            f"{who}: transitions between hidden states need a hidden Markov model. Got {type(model).__name__}."
        )
    raise TypeError(
        f"{who}: needs a model with discrete hidden states: HMM, FactorialHMM, Mixture (components) or PeriodicChain "
        f"(phases). Got {type(model).__name__}."
    )
