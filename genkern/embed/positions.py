"""Features position by position: what each observation of one object adds to the features of an embedding."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from genkern.embed.class_models import named_models
from genkern.embed.empirical_mean_map import EmpiricalMeanMap
from genkern.embed.fisher import LENGTH_POWER, FisherScore
from genkern.embed.marginalized import Marginalized
from genkern.embed.model_log_odds import ModelLogOdds
from genkern.embed.packing import pack_for
from genkern.embed.positional import PlacedSpectrum
from genkern.embed.score_blocks import scores_of
from genkern.embed.spectrum import Spectrum
from genkern.embed.states import StateEmbedding
from genkern.embed.top import TopScore
from genkern.models.base import Statistics
from genkern.models.class_mixture import ClassMixture
from genkern.models.factorial import FactorialHMM
from genkern.models.hmm import HMM
from genkern.models.leaf import Leaf
from genkern.models.markov import PositionalChain
from genkern.models.positions import (
    changes,
    each_point,
    has_position_statistics,
    is_window,
    position_statistics,
    table_gradients,
)
from genkern.models.switching import SwitchingLDS
from genkern.objects import Packed, check_objects, pack_symbols
from genkern.validation import Floats

CANCELLED = 1e-10  # a sum this small beside the sizes of its terms is a rounding error


@singledispatch
def position_features(embedding: Any, X: Any) -> Any:
    r"""Return what each position of one object adds to its features, a sparse array (T, p), or None if not known.

    The rows sum to the features, up to what belongs to no position. With the terms :math:`s_{tj}` of a sum
    :math:`g_j = \sum_t s_{tj}` over positions and features :math:`f_j(g_j)` of it (a map, a division by the length or
    norm) position t has

    .. math:: s_{tj}\, f_j(g_j) / g_j,

    its share of the sum, and nothing where the terms cancel to zero. Scores are sums of posterior expectations by
    Fisher's identity; log-odds are sums of what each observation adds to those of the beginning of the object; words
    are shared equally by the positions at which they are read; a pair of hidden states belongs to the second.

    Parameters
    ----------
    embedding : fitted transformer
    X : list of one object
    """
    return None


def knows_positions(embedding: Any) -> bool:
    """Say whether features by position exist for an embedding of this kind."""
    return position_features.dispatch(type(embedding)) is not position_features.dispatch(object)


def share(terms: Any, sums: Floats, features: Floats) -> Any:
    """Return terms (T, p), scaled by columns as sums (p,) of them and other things were to become features (p,)."""
    whole = np.abs(sums) > CANCELLED * abs(terms).sum(axis=0)
    return sparse.csr_array(terms * np.divide(features, sums, out=np.zeros(len(sums)), where=whole)[None])


def pinned(model: Any, **methods: Any) -> Any:
    """Return a model some of whose methods are replaced by functions."""

    def method(function: Any) -> Any:
        return lambda self, *args, **options: function(*args, **options)

    kind: Any = type(type(model).__name__, (type(model),), {name: method(f) for name, f in methods.items()})
    return kind._restore(*(getattr(model, name) for name in model._fields))


# --- scores and log-odds


@position_features.register
def _fisher(embedding: FisherScore, X: Any) -> Any:
    model, packed = embedding.model_, pack_for(embedding.model_, X)
    layout, scale = embedding._layout, packed.lengths[0] ** LENGTH_POWER[embedding.length_norm]

    def scores(stand_in: Any, objects: Packed) -> Floats:
        return scores_of(stand_in, objects, embedding.coordinates, layout.source)

    if isinstance(model, PositionalChain) and np.array_equal(layout.source, np.arange(len(model.parameter_names))):
        parts = table_gradients(model, packed, embedding.coordinates)
        return sparse.vstack([_whitened(embedding, first, part / scale) for first, part in parts], format="csr")
    blocks: Iterable[Floats] | None
    if isinstance(model, ClassMixture):
        blocks = _class_terms(model, packed, embedding.coordinates, scores)
    else:
        blocks = _model_terms(model, packed, len(layout.names), scores)
    if blocks is None:
        return None
    rows = []
    for block in blocks:
        features = np.zeros(block.shape)
        embedding.whitener_.apply(block / scale, out=features)
        rows.append(sparse.csr_array(features))
    return sparse.vstack(rows, format="csr")


def _whitened(embedding: FisherScore, first: int, scores: Floats) -> Any:
    """Return the features (n, p) of scores (n, k) of the adjacent parameters from the first on; the others are zero."""
    low, high, whitener = embedding.whitener_.around(first, first + scores.shape[1])
    wide = np.zeros((len(scores), high - low))
    wide[:, first - low : first - low + scores.shape[1]] = scores
    features = np.zeros(wide.shape)
    whitener.apply(wide, out=features)
    part = sparse.coo_array(features)
    return sparse.csr_array((part.data, (part.row, part.col + low)), (len(scores), len(embedding._layout.names)))


@position_features.register
def _top(embedding: TopScore, X: Any) -> Any:
    packed, one = pack_for(embedding.model_, X), copy.copy(embedding)

    def tangents(stand_in: Any, objects: Packed) -> Floats:
        one.model_ = stand_in
        return one._tangents(objects)

    blocks = _class_terms(embedding.model_, packed, embedding.coordinates, tangents)
    if blocks is None:
        return None
    terms = blocks[0][:, embedding._kept]
    return sparse.csr_array(terms / embedding.scale_ if embedding.standardize else terms)


@position_features.register
def _log_odds(embedding: ModelLogOdds, X: Any) -> Any:
    packed, one = pack_for(embedding.model_, X), copy.copy(embedding)

    def odds(stand_in: Any, objects: Packed) -> Floats:
        one.model_ = stand_in
        return one._odds(objects)

    blocks = _class_terms(embedding.model_, packed, "softmax", odds)
    return None if blocks is None else sparse.csr_array(blocks[0])


def _model_terms(model: Any, packed: Packed, width: int, scores: Any) -> Iterable[Floats] | None:
    """Return blocks of rows, by position, of what ``scores(model, objects)`` sums over them; None if not known."""
    if isinstance(model, Leaf) and not is_window(packed):
        return [scores(model, each_point(packed))]
    if has_position_statistics(model):
        found = position_statistics(model, packed)
        return (scores(_with_statistics(model, block), each_point(packed)) for block in found)
    if isinstance(model, SwitchingLDS):
        found = changes(lambda beginnings: {"scores": scores(model, beginnings)}, packed, width)
        return (block["scores"] for block in found)
    return None


def _with_statistics(model: Any, found: Statistics) -> Any:
    """Return a model with these statistics of whatever objects, and the derivatives that follow."""
    methods: dict[str, Any] = {"statistics": lambda *_, **__: found}
    if isinstance(model, Leaf):
        blocks = {name: block[:, None] for name, block in found.blocks.items()}
        methods["log_prob_grad"] = lambda _, coordinates: model.stack([model]).gradient(blocks, coordinates)
    return pinned(model, **methods)


def _class_terms(mixture: ClassMixture, packed: Packed, coordinates: str, features: Any) -> list[Floats] | None:
    """Return the rows, by position, of features made of the log-probabilities and derivatives of each class.

    They are linear in the derivatives, which are sums over positions. What they make of log-probabilities alone is
    split by following those from the beginning of the object to its end.
    """
    joint = mixture.joint_log_prob(packed)
    alive = np.isfinite(joint[0])
    found = [_position_grads(model, packed, coordinates) for model, here in zip(mixture.models, alive) if here]
    if any(terms is None for terms in found):
        return None
    logs = np.stack([terms[0] for terms in found if terms is not None], axis=1)
    length, slopes = len(logs), iter([terms[1] for terms in found if terms is not None])
    widths = [len(model.parameters(coordinates)) for model in mixture.models]
    grads = [next(slopes) if here else np.zeros((length, width)) for here, width in zip(alive, widths)]
    path = np.full((length + 1, len(alive)), -np.inf)
    path[:, alive] = np.log(mixture.priors[alive]) + np.cumsum(np.insert(logs, 0, 0.0, axis=0), axis=0)

    def value(joints: Floats, slopes: list[Floats]) -> Floats:
        stand_in = pinned(mixture, joint_log_prob=lambda _: joints, class_grads=lambda *_: slopes)
        rows: Floats = features(stand_in, each_point(packed))
        return rows

    held, flat = np.repeat(joint, length, axis=0), [np.zeros((length + 1, width)) for width in widths]
    linear = value(held, grads) - value(held, [zero[1:] for zero in flat])
    return [linear + np.diff(value(path, flat), axis=0)]


def _position_grads(model: Any, packed: Packed, coordinates: str) -> tuple[Floats, Floats] | None:
    """Return log-probabilities (T,) and derivatives (T, p) by position."""

    def scores(stand_in: Any, objects: Packed) -> Floats:
        slopes: Floats = stand_in.log_prob_grad(objects, coordinates)
        return slopes

    if has_position_statistics(model):
        found = list(position_statistics(model, packed))
        grads = [scores(_with_statistics(model, block), each_point(packed)) for block in found]
        return np.concatenate([block.log_prob for block in found]), np.concatenate(grads)
    blocks = _model_terms(model, packed, len(model.parameter_names), scores)
    if blocks is None:
        return None
    logs = [found["logs"] for found in changes(lambda X: {"logs": model.log_prob(X)}, packed, 1)]
    return np.concatenate(logs), np.concatenate(list(blocks))


# --- posteriors of states


@position_features.register
def _states(embedding: StateEmbedding, X: Any) -> Any:
    packed, plain = pack_for(embedding.model_, X), copy.copy(embedding)
    if embedding.apply == "sum":
        plain.map = None
    terms = [_state_terms(plain, model, packed) for _, model in named_models(embedding.model_)]
    table = np.concatenate(terms, axis=1)
    return share(sparse.csr_array(table), table.sum(axis=0), embedding.transform(X)[0])


def _state_terms(plain: StateEmbedding, model: Any, packed: Packed) -> Floats:
    """Return features (T, p) of the positions as objects whose posteriors are those of the whole."""
    points, length = each_point(packed), packed.n_points
    if isinstance(model, Leaf):
        return plain._features(model, points)
    chained = isinstance(model, HMM | FactorialHMM)
    gamma, xi = model.posterior(packed, pairs=True)[0] if chained else (model.posterior(packed)[0], None)
    methods = {"posterior": _cut(gamma, xi, np.arange(length), 1)}
    summed = isinstance(model, HMM) and plain.apply == "sum"
    if summed:
        found = next(iter(position_statistics(model, packed)))
        methods["statistics"] = lambda *_, **__: found
    terms = plain._features(pinned(model, **methods), points)
    by_pairs = isinstance(plain, Marginalized) and plain.order == 2
    if chained and length > 1 and (by_pairs or not summed):
        places = np.arange(length - 1)
        neighbours = packed.values[np.column_stack([places, places + 1]).ravel()]
        pairs = packed._replace(values=neighbours, offsets=2 * np.arange(length))
        nowhere = tuple(0.0 * g for g in gamma) if isinstance(gamma, tuple | list) else 0.0 * gamma
        steps = plain._features(pinned(model, posterior=_cut(nowhere, xi, places, 2)), pairs)
        terms = terms + np.insert(steps, 0, 0.0, axis=0)
    return terms


def _cut(gamma: Any, xi: Any, starts: Any, size: int) -> Any:
    """Return a method ``posterior`` for objects of ``size`` observations from the posteriors of the whole."""

    def piece(table: Any, start: int, count: int) -> Any:
        if isinstance(table, np.ndarray):
            return table[start : start + count]
        return tuple(chain[start : start + count] for chain in table)

    def posterior(_: Packed, pairs: bool = False) -> list[Any]:
        states = [piece(gamma, t, size) for t in starts]
        return list(zip(states, [piece(xi, t, size - 1) for t in starts])) if pairs else states

    return posterior


# --- words


@position_features.register
def _spectrum(embedding: Spectrum, X: Any) -> Any:
    packed, plain = pack_symbols(X, embedding.alphabet_, "Spectrum"), copy.copy(embedding)
    plain.normalize, plain.sparse, plain.dtype = None, True, np.float64
    counts, _ = _word_terms(plain, packed, np.array(embedding.offsets_))
    return share(counts, counts.sum(axis=0), as_vector(embedding.transform(packed)))


@position_features.register
def _mean_map(embedding: EmpiricalMeanMap, X: Any) -> Any:
    packed = check_objects(X, alphabet=embedding.alphabet_, who="EmpiricalMeanMap")
    terms, count = _word_terms(embedding, packed, np.arange(embedding.order + 1))
    return sparse.csr_array(terms / max(count, 1))


@position_features.register
def _placed(embedding: PlacedSpectrum, X: Any) -> Any:
    packed, blocks = embedding._pack(X, embedding.alphabet_), []
    length, size = packed.values.size, embedding.alphabet_.size
    for k in embedding.ks_:
        codes, offsets = embedding._read(packed, k)
        where, _ = embedding._read(packed._replace(values=np.arange(length).reshape(packed.values.shape)), k)
        ends = np.repeat(offsets[1:], np.diff(offsets))
        starts = np.flatnonzero(np.arange(len(codes)) + k <= ends)
        reads = starts[:, None] + np.arange(k)
        words = Packed(codes[reads].ravel(), k * np.arange(len(starts) + 1), packed.alphabet)
        terms = sparse.csr_array((length, (len(offsets) - 1) * size**k))
        if len(starts):
            counts = Spectrum(k, embedding.alphabet_, sparse=True).fit_transform(words).tocoo()
            places = np.searchsorted(offsets, starts, side="right") - 1
            columns = counts.col + places[counts.row] * size**k
            placed = sparse.csr_array((counts.data, (counts.row, columns)), (len(starts), terms.shape[1]))
            terms = _reading(where[reads], length) @ placed
        blocks.append(terms)
    return sparse.hstack(blocks, format="csr")


def _word_terms(embedding: Any, packed: Packed, offsets: NDArray[np.int64]) -> tuple[Any, int]:
    """Return the features of words, in equal parts (T, p) at the positions where they are read, and their number."""
    span = int(offsets[-1]) + 1
    starts = np.arange(max(packed.n_points - span + 1, 0))
    if len(starts) == 0:
        return sparse.csr_array((packed.n_points, embedding.n_features_out_)), 0
    rows = (starts[:, None] + np.arange(span)).ravel()
    words = packed._replace(values=packed.values[rows], offsets=span * np.arange(len(starts) + 1))
    reads = _reading(starts[:, None] + offsets, packed.n_points)
    return sparse.csr_array(reads @ sparse.csr_array(embedding.transform(words))), len(starts)


def _reading(places: NDArray[np.int64], length: int) -> Any:
    """Return equal shares (T, W) of positions in words that read their k symbols at ``places`` (W, k)."""
    count, k = places.shape
    cells = (places.ravel(), np.repeat(np.arange(count), k))
    return sparse.csr_array((np.full(count * k, 1.0 / k), cells), (length, count))


def as_vector(row: Any) -> Floats:
    """Return a matrix of one row, dense or sparse, as a vector."""
    vector: Floats = np.asarray(row.toarray() if sparse.issparse(row) else row, np.float64).ravel()
    return vector
