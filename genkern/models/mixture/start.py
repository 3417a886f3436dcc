"""First assignments of points to components: k-means of vectors, random weights of symbols."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.core.mixture.kmeans import Often, exponents_each, kmeans_each, squares_each
from genkern.data.objects import Packed
from genkern.models.fit.streams import Keys, derive, uniforms
from genkern.models.fit.weights import amounts, often
from genkern.validation import Floats

ROUNDS = {"kmeans": 50, "random": 1}


def cluster(
    values: Floats,
    groups: NDArray[np.int64],
    k: int,
    numbers: Floats,
    rounds: int = ROUNDS["kmeans"],
    often: Often | None = None,
) -> NDArray[np.int64]:
    """Return labels (N,) by k-means on the vectors of each group; missing entries are replaced by the group's mean.

    ``groups`` (P + 1,) says where groups begin and end, and uniform ``numbers`` (P, k) choose their first centres. One
    round only assigns points to random ones among them, chosen far from one another. ``often`` says how often the
    objects count that groups consist of.
    """
    return kmeans_each(filled(values, groups, often), groups, k, numbers, rounds, often)


def filled(values: Floats, groups: NDArray[np.int64], often: Often | None = None) -> Floats:
    """Return vectors (N, d) with the mean of their group in place of missing entries."""
    seen = ~np.isnan(values)
    if seen.all():
        return values
    weights = 1.0 if often is None else often.of_points[:, None]
    count = np.add.reduceat(seen * weights, groups[:-1], axis=0)
    mean = np.add.reduceat(np.where(seen, values * weights, 0.0), groups[:-1], axis=0) / np.where(count > 0, count, 1.0)
    return np.where(seen, values, np.repeat(mean, np.diff(groups), axis=0))


def soften(
    values: Floats,
    groups: NDArray[np.int64],
    labels: NDArray[np.int64],
    k: int,
    wanted: NDArray[np.bool_] | None = None,
    often: Often | None = None,
) -> Floats:
    r"""Return shares (N, k) of points in the clusters of their group, given labels; -1 is in none.

    Only of the points that are ``wanted``, all those with a label among them; others have zeros. ``often`` says how
    often the objects count that groups consist of.

    .. math:: r_{tj} \propto \exp \frac{- |x_t - c_j|^2}{2 s^2}, \qquad
       s^2 = \frac{\sum_t |x_t - c_{l_t}|^2}{n - k}

    with the mean :math:`c_j` of cluster j and n labels. The temperature :math:`s^2` is the squared distance from a
    centre over all channels, not that of one channel, so that it grows with their number. Clusters that are apart stay
    so, in any units. But where there are many channels and few points, distances to all centres are about equal, and
    clusters of one point or a few are accidents: every component then starts with a share of all points, and with a
    useful covariance. EM cannot leave a component of one point. With as many points as clusters, the temperature is the
    squared distance from their mean; a cluster without points has no share.

    The temperature was chosen by log-likelihood per point held out within the training parts of 13 sets, without labels
    (``benchmarks/starts.py``). Its mean rank among five was 2.90; 2.91 for :math:`s^2 / \sqrt d`, 3.00 for hard shares,
    3.01 for :math:`s^2 / d`, 3.19 for a mean of :math:`s^2` and :math:`s^2 / d` by points per channel and cluster. Only
    the last is told from the first by more than two standard errors. Hard shares did better by 0.6 and 2.1 nats (the
    median) on wine and digits, worse by 0.2 on breast cancer. What decides between the others is collapse: of 200 fits
    to 20 to 60 points in 20 to 200 channels, two ended with a component of one point, 78 to 82 at the other three.
    """
    starts, weights = groups[:-1], np.ones(len(labels)) if often is None else often.of_points
    sizes = np.add.reduceat(weights, starts)
    vectors = filled(values, groups, often)
    columns = np.ascontiguousarray(vectors.T)  # along which sums are faster
    counts, centres, mine = np.empty((len(sizes), k)), np.empty((len(sizes), k, len(columns))), np.empty(columns.shape)
    for j in range(k):
        inside = (labels == j) * weights
        counts[:, j] = np.add.reduceat(inside, starts)
        sums = np.add.reduceat(np.multiply(columns, inside, out=mine), starts, axis=1)
        centres[:, j] = (sums / np.where(counts[:, j] > 0, counts[:, j], 1.0)).T
    places = np.arange(len(labels)) if wanted is None else np.flatnonzero(wanted)
    within = np.searchsorted(places, groups)
    squares = squares_each(vectors if wanted is None else vectors[places], within, centres)
    known, own = labels[places], np.zeros(len(labels))
    own[places] = np.where(known >= 0, np.take_along_axis(squares, np.maximum(known, 0)[:, None], axis=1)[:, 0], 0.0)
    spare = counts.sum(axis=1) - (counts > 0).sum(axis=1)
    heat = np.add.reduceat(own * weights, starts)
    if not (spare > 0).all():
        mean = (np.add.reduceat(columns * weights, starts, axis=1) / sizes).T
        gaps = squares_each(vectors, groups, mean[:, None])[:, 0]
        heat = np.where(spare > 0, heat, np.add.reduceat(gaps * weights, starts))
    heat = heat / np.maximum(spare, 1.0)
    there = (counts > 0) | (counts.sum(axis=1, keepdims=True) == 0)  # without any label, all clusters have equal shares
    exponents_each(squares, within, there, heat)
    found = np.exp(squares, out=squares)
    found /= found.sum(axis=1, keepdims=True)
    if wanted is None:
        return found
    shares = np.zeros((len(labels), k))
    shares[places] = found
    return shares


def is_symbols(packed: Packed) -> bool:
    """Return whether points are single symbols, between which there are no distances."""
    return packed.alphabet is not None and packed.values.ndim == 1


def divide(packed: Packed, weights: Floats, own: bool, k: int, keys: Keys, init: str) -> Floats:
    """Return weights (N, n, k) that share those of points under n members (N, n) out among k components of each.

    Vectors are clustered, those of each object by themselves if own, and shared among the clusters (see ``soften``);
    clusters of a member are those of the points that weigh most under it, if there are any. A symbol is shared among
    the components with random weights, one of which dominates, the same at all its occurrences: with independent
    assignments, components would become more alike with more data. There is one key for all objects, or one per object.
    """
    n = weights.shape[1]
    if is_symbols(packed):
        codes = int(packed.values.max()) + 1
        numbers = uniforms(keys[:, None], np.arange(codes * n * k)).reshape(-1, codes, n, k)
        random = (numbers + 1e-3) ** 4  # a uniform number may be zero
        random /= random.sum(axis=-1, keepdims=True)
        shared: Floats = random[packed.owners if own else 0, packed.values] * weights[..., None]
        return shared
    vectors, shares, every = _vectors(packed), np.zeros((*weights.shape, k)), often(packed)
    groups = packed.offsets if own else packed.offsets[[0, -1]]
    largest = np.ascontiguousarray(weights.T).max(axis=0)[:, None]
    most = (weights > 0.0) & (weights == largest)
    for member in range(n):
        some = np.logical_or.reduceat(most[:, member], groups[:-1])
        mine = np.flatnonzero(np.where(np.repeat(some, np.diff(groups)), most[:, member], weights[:, member] > 0.0))
        counts = np.diff(np.searchsorted(mine, groups))
        there = counts > 0
        places = np.concatenate([[0], np.cumsum(counts[there])])
        numbers = uniforms(derive(keys, member)[there][:, None], np.arange(k))
        labels = np.full(len(vectors), -1)
        some_of_each = None if every is None else every._replace(offsets=np.searchsorted(mine, every.offsets))
        labels[mine] = cluster(vectors[mine], places, k, numbers, ROUNDS[init], some_of_each)
        share = weights[:, member]
        wanted = None if share.all() else share > 0.0
        shares[:, member] = share[:, None] * soften(vectors, groups, labels, k, wanted, every)
    return shares


def _vectors(packed: Packed) -> Floats:
    """Return points as vectors (N, d): windows of symbols by indicators of their symbols, sparse rows dense."""
    values: Any = packed.values
    if packed.alphabet is not None:
        indicators: Floats = packed.alphabet.sparse_members[values.ravel()].toarray()
        return indicators.reshape(len(values), -1)
    return np.asarray(values if isinstance(values, np.ndarray) else values.toarray(), np.float64)


def refuse_few(packed: Packed, k: int, own: bool) -> None:
    """Raise if there are fewer points than components, in an object if own, else in all together."""
    lengths = packed.lengths if own else np.maximum([packed.n_points], int(amounts(packed).sum()))
    few = np.flatnonzero(lengths < k)
    if len(few):
        what = f"object {few[0]} has" if own else "the objects have"
        raise ValueError(
            f"MixtureEstimator: {what} {lengths[few[0]]} sample(s), fewer than n_components={k}. Lower n_components, "
            "or join small bags."
        )
