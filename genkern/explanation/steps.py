"""One object through the steps of a pipeline, with the contributions of its positions to the features."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import OneToOneFeatureMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from genkern.data.objects import pack_series
from genkern.explanation.labels import Column, Features, columns_after, made_by, named, united
from genkern.explanation.terms import Terms
from genkern.features.log_odds import LogOddsWeights
from genkern.features.positions import as_vector
from genkern.preprocess.block_normalizer import BlockNormalizer
from genkern.preprocess.cross_fit import CrossFit
from genkern.preprocess.multi_scale import MultiScale
from genkern.preprocess.standardize import Standardize
from genkern.preprocess.turns import Turns
from genkern.preprocess.unit_trace import UnitTrace
from genkern.preprocess.windows import Windows

SCALERS = StandardScaler | MinMaxScaler | MaxAbsScaler | RobustScaler | UnitTrace


class Seen(NamedTuple):
    """An object before it is embedded.

    Attributes
    ----------
    X : list of one object
    reads : sparse array of shape (T, S), or None
        Shares of the T original positions in the contributions of the S positions of that object; None if they are the
        same, no rows if unknown.
    columns : list of Column, or None
        The columns of a series; None for other objects.
    """

    X: Any
    reads: Any = None
    columns: list[Column] | None = None


class Traced(NamedTuple):
    """Features of an object.

    Attributes
    ----------
    row : matrix of shape (1, p), dense or sparse
    terms : Terms
        The contributions (T, p) of positions; the rest of ``row`` belongs to none. No rows if unknown.
    features : Features
        What they are called.
    """

    row: Any
    terms: Terms
    features: Features


def follow(steps: list[Any], state: Any) -> Any:
    """Take an object or its features through the fitted steps of a pipeline."""
    for i, step in enumerate(steps):
        if step is None or (isinstance(step, str) and step == "passthrough"):
            continue
        embedded_later = any(map(embeds, steps[i + 1 :]))
        state = look(step, state) if isinstance(state, Seen) and embedded_later else advance(step, state)
    return state


def embeds(step: Any) -> bool:
    """Return whether a step is known to turn objects into features."""
    if isinstance(step, Pipeline):
        return any(embeds(inner) for _, inner in step.steps)
    if isinstance(step, FeatureUnion):
        return any(embeds(inner) for _, inner in step.transformer_list)
    if isinstance(step, BlockNormalizer | CrossFit):
        return embeds(step.embedding_)
    return isinstance(step, MultiScale) or hasattr(step, "position_features")


def look(step: Any, state: Seen) -> Seen:
    """Take an object through a step that returns another object."""
    X = step.transform(state.X)
    before, after = len(state.X[0]), len(X[0])
    columns = _columns(step, state.columns, X[0])
    if isinstance(step, Windows):
        reads = _windows_read(step, before)
    elif isinstance(step, Turns):
        reads = _turns_read(step, before)
    elif before == after:
        return Seen(X, state.reads, columns)
    else:
        reads = sparse.csr_array((0, after))
    return Seen(X, reads if state.reads is None or reads.shape[0] == 0 else state.reads @ reads, columns)


def _columns(step: Any, columns: list[Column] | None, x: Any) -> list[Column] | None:
    """Return the columns of what a step has made of an object, None if it is no series."""
    if np.ndim(x) != 2:
        return None
    if columns is None:  # numbers of symbols
        return named(_names(step, None, np.shape(x)[1]))
    return columns_after(step, columns, np.shape(x)[1])


def _windows_read(step: Windows, length: int) -> Any:
    """Return shares (T, S) of the positions of a series in its windows: equal in each width, widths equal."""
    every = step.reads(length)
    total = sparse.csr_array((length, len(every[0])))
    for places in every:
        cells = (places.ravel(), np.repeat(np.arange(len(places)), places.shape[1]))
        total = total + sparse.csr_array(
            (np.full(places.size, 1.0 / (places.shape[1] * len(every))), cells), total.shape
        )
    return total


def _turns_read(step: Turns, length: int) -> Any:
    """Return shares (T, T) of the steps of a path in its turns: equal, of those around both ends of the lag."""
    around, later = step.reads(length)
    places = np.concatenate([around, around[later]], axis=1)
    cells = (places.ravel(), np.repeat(np.arange(length), places.shape[1]))
    return sparse.csr_array((np.full(places.size, 1.0 / places.shape[1]), cells), (length, length))


@singledispatch
def advance(step: Any, state: Any) -> Any:
    """Take an object or its features through one step.

    Features that a step maps one to one keep their terms, in proportion: with :math:`u_j = f_j(v)` the terms of
    :math:`v_j` are multiplied by :math:`(f_j(v) - f_j(0)) / v_j`. After other steps no terms are known.
    """
    if isinstance(state, Seen):
        if hasattr(step, "position_features"):
            return _embed(step, state)
        row = step.transform(state.X)
        if getattr(row, "ndim", 0) != 2:
            return look(step, state)
        given = None if state.columns is None else [column.name for column in state.columns]
        made = made_by(step, _names(step, given, row.shape[1]), state.columns)
        return Traced(row, Terms.unknown(row.shape[1]), made)
    row = step.transform(state.row)
    if isinstance(step, SelectorMixin):
        kept = step.get_support(indices=True)
        return Traced(row, state.terms.select(kept), state.features.select(kept))
    if isinstance(step, OneToOneFeatureMixin | FunctionTransformer) and row.shape == state.row.shape:
        return Traced(row, _mapped(step, state, row), state.features)
    made = made_by(step, _names(step, state.features.names(), row.shape[1]))
    return Traced(row, Terms.unknown(row.shape[1]), made)


def _embed(step: Any, state: Seen) -> Traced:
    """Take an object through an embedding with ``position_features``."""
    row, terms = step.transform(state.X), Terms.of(step, state.X, state.reads)
    return Traced(row, terms, made_by(step, _names(step, None, row.shape[1]), state.columns))


def _mapped(step: Any, state: Traced, row: Any) -> Terms:
    """Return the terms after a step that maps features one to one."""
    with np.errstate(all="ignore"):
        origin = np.nan_to_num(as_vector(step.transform(0.0 * state.row)), posinf=0.0, neginf=0.0)
    if isinstance(step, SCALERS):  # linear maps: the slope is known also where v is zero
        slope = as_vector(step.transform(np.ones(state.row.shape))) - origin
        return state.terms.scaled(slope)
    return state.terms.shared(as_vector(state.row), as_vector(row) - origin)


def _names(step: Any, given: Any, width: int) -> list[str]:
    """Return the names of the features of a step, generated if it has none."""
    if hasattr(step, "get_feature_names_out"):
        return list(step.get_feature_names_out(given))
    return [f"{type(step).__name__.lower()}{j}" for j in range(width)]


@advance.register
def _(step: Pipeline, state: Any) -> Any:
    return follow([inner for _, inner in step.steps], state)


@advance.register
def _(step: FeatureUnion, state: Any) -> Traced:
    parts = {}
    weights = {name: (step.transformer_weights or {}).get(name, 1.0) for name, _ in step.transformer_list}
    weights = getattr(step, "factors_", weights)  # those that a ``LearntSum`` has chosen, of the parts that it uses
    for name, inner in step.transformer_list:
        if name not in weights or (isinstance(inner, str) and inner == "drop"):
            continue
        part, weight = follow([inner], state), weights[name]
        parts[name] = part._replace(row=part.row * weight, terms=part.terms.scaled(weight))
    return _side_by_side(parts)


@advance.register
def _(step: MultiScale, state: Any) -> Traced:
    series = state._replace(X=pack_series(state.X, "MultiScale").objects())
    return _side_by_side({kind: advance(part, series) for kind, part in step.parts_.items()})


@advance.register
def _(step: BlockNormalizer, state: Any) -> Traced:
    inner, row = advance(step.embedding_, state), step.transform(state[0])
    return inner._replace(row=row, terms=inner.terms.shared(as_vector(inner.row), as_vector(row)))


@advance.register
def _(step: CrossFit, state: Any) -> Traced:
    (embedding,) = step.embeddings_of(state[0])
    found: Traced = advance(embedding, state)
    return found


@advance.register
def _(step: Standardize, state: Any) -> Traced:
    row, kept = step.transform(state.row), step.kept_
    terms = state.terms.select(kept)
    if step.clip is None:
        terms = terms.scaled(1.0 / step.scale_)
    else:
        change = as_vector(row) - as_vector(step.transform(0.0 * state.row))
        terms = terms.shared(as_vector(state.row)[kept], change)
    return Traced(row, terms, state.features.select(kept))


@advance.register
def _(step: LogOddsWeights, state: Any) -> Traced:
    row, before = step.transform(state.row), as_vector(state.row)
    terms = [state.terms.shared(before, after) for after in as_vector(row).reshape(len(step.weights_), -1)]
    made = made_by(step, _names(step, state.features.names(), row.shape[1]))
    return Traced(row, Terms.beside(terms), made)


def _side_by_side(parts: dict[str, Traced]) -> Traced:
    """Return the concatenated features of all parts; parts without terms have none."""
    rows = [part.row for part in parts.values()]
    stacked = sparse.hstack(rows, format="csr") if any(map(sparse.issparse, rows)) else np.concatenate(rows, axis=1)
    features = united({name: part.features for name, part in parts.items()})
    return Traced(stacked, Terms.beside([part.terms for part in parts.values()]), features)
