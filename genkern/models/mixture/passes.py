"""The E-step of mixtures in batches of points, so that few densities are held at a time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs

from genkern.core.mixture.posteriors import joint_terms, share_out, weigh_terms
from genkern.data.objects import Packed
from genkern.validation import Floats

PREFIX = "components."  # of the names of the components' blocks
BATCH = 1 << 19  # densities (points times components) held at a time
HELD = 1 << 23  # densities that an HMM pass keeps instead of computing them again
FAINT = 1e-150  # weights below it are too small to divide an expected count by
LARGEST = float(np.finfo(np.float64).max)
LOG_LARGEST = 709.0


class MixtureOutcome(NamedTuple):
    """Log p (N, n), and named blocks of expected statistics with a leading axis of objects, or of length one."""

    log_p: Floats
    blocks: dict[str, Floats]


class Slopes(NamedTuple):
    """Derivatives (N, n) of a log-likelihood with respect to densities p exp(-shift), and the shift (N, n)."""

    raw: Floats
    shift: Floats


class Terms(NamedTuple):
    """Weighted densities of components over the largest, (N, n, k), and their sums (N, n): see ``joint_terms``."""

    terms: Floats
    totals: Floats


class PointsPart(NamedTuple):
    """Some points: their objects and rows in the whole, and themselves."""

    objects: slice
    rows: slice
    packed: Packed


def expect(
    weights: Floats,
    components: Any,
    packed: Packed,
    point_weights: Floats | None = None,
    slopes: Slopes | None = None,
    *,
    totals: bool = False,
    summed: bool = True,
    n_jobs: int | None = None,
) -> MixtureOutcome:
    r"""Return log p of all points and, if ``summed``, statistics of each object or of all together.

    Parameters
    ----------
    weights : (n, k), or (n_objects, n, k) if each object has mixtures of its own
    components : leaf stack of batch (n * k,), or (n_objects, n * k)
    packed : Packed
    point_weights : (N, n)
        Weights v of the points under the mixtures; ones if None.
    slopes : Slopes, optional
        The factors of v, :math:`v = \mathrm{raw}\, p\, e^{-\mathrm{shift}}`, if p may be zero or out of range.

    Returns
    -------
    outcome : Outcome
        Its block ``weights`` (G, n, k) is :math:`\sum_t v_t g_k(x_t) / p(x_t)`; the others, ``components.<name>``
        (G, n, k, ...), are the components' for points of weight :math:`v_t w_k g_k / p`.
    """
    own = weights.ndim == 3
    parts = list(parts_of(packed, weights[0].size if own else weights.size, joined=not own and (totals or not summed)))
    work = partial(_expect_part, weights, components, point_weights, slopes, totals, summed)
    workers = 1 if n_jobs is None or len(parts) == 1 else min(effective_n_jobs(n_jobs), len(parts))
    if workers == 1:
        outcomes = [work(part) for part in parts]
    else:
        with ThreadPoolExecutor(workers) as pool:
            outcomes = list(pool.map(work, parts))
    blocks = {name: _merged([outcome.blocks[name] for outcome in outcomes], totals) for name in outcomes[0].blocks}
    return MixtureOutcome(_merged([outcome.log_p for outcome in outcomes], totals=False), blocks)


def _merged(blocks: list[Floats], totals: bool) -> Floats:
    """Return the blocks of all parts as one, or their sum, in the order of the parts."""
    if len(blocks) == 1:
        return blocks[0]
    return np.sum(blocks, axis=0) if totals else np.concatenate(blocks)


def parts_of(packed: Packed, width: int, joined: bool = False) -> Iterator[PointsPart]:
    """Yield parts of a bounded size: of whole objects, or (joined) of all points as if they were one object's."""
    limit = max(1, BATCH // width)
    first = 0
    if joined:
        for begin in range(0, packed.n_points, limit):
            rows = slice(begin, min(begin + limit, packed.n_points))
            one = np.array([0, rows.stop - begin])
            yield PointsPart(slice(None), rows, Packed(packed.values[rows], one, packed.alphabet))
        return
    while first < packed.n_objects:
        last = int(np.searchsorted(packed.offsets, packed.offsets[first] + limit, side="right")) - 1
        last = max(last, first + 1)
        offsets = packed.offsets[first : last + 1]
        rows = slice(int(offsets[0]), int(offsets[-1]))
        yield PointsPart(slice(first, last), rows, Packed(packed.values[rows], offsets - offsets[0], packed.alphabet))
        first = last


def _expect_part(
    weights: Floats,
    components: Any,
    point_weights: Floats | None,
    slopes: Slopes | None,
    totals: bool,
    summed: bool,
    part: PointsPart,
) -> MixtureOutcome:
    """Return the outcome of one part."""
    shares, leaf, logs = _densities(weights, components, part)
    packed = part.packed
    faint = shares < FAINT
    kept = logs.copy() if summed and faint.any() else None
    given = None if point_weights is None else point_weights[part.rows]
    log_p, counts = share_out(logs, log_weights(shares), packed.offsets, given)
    if not summed:
        return MixtureOutcome(log_p, {})
    raw = np.divide(counts, shares, out=np.zeros_like(counts), where=~faint)
    if kept is not None:
        given = np.ones(log_p.shape) if given is None else given
        slope = Slopes(given, log_p) if slopes is None else Slopes(slopes.raw[part.rows], slopes.shift[part.rows])
        raw = np.where(faint, _faint_slopes(kept, slope, packed.offsets), raw)
    return MixtureOutcome(log_p, _named(leaf, packed, logs, raw, totals))


def _densities(weights: Floats, components: Any, part: PointsPart) -> tuple[Floats, Any, Floats]:
    """Return weights (P, n, k), components, and log densities (N, n, k) of the points of a part."""
    own, packed = weights.ndim == 3, part.packed
    shares = weights[part.objects] if own else weights[None]
    leaf = components[part.objects] if own else components
    logs = leaf.own_log_density(packed) if own else leaf.log_density(packed.values)
    return shares, leaf, np.require(logs, np.float64, ["C", "W"]).reshape(packed.n_points, *shares.shape[1:])


def _named(leaf: Any, packed: Packed, posteriors: Floats, raw: Floats, totals: bool) -> dict[str, Floats]:
    """Return the block of the weights, (G, n, k), and those of the components for points of these weights (N, n, k)."""
    blocks = {"weights": raw.sum(axis=0, keepdims=True) if totals else raw}
    for name, block in leaf.weigh(packed, posteriors.reshape(len(posteriors), -1), totals).items():
        blocks[PREFIX + name] = block.reshape((len(block), *posteriors.shape[1:], *block.shape[2:]))
    return blocks


def hold_terms(weights: Floats, components: Any, packed: Packed) -> tuple[Floats, Terms] | None:
    """Return log p (N, n) of all points and the terms of its sums; None if these are too many, or weights too small."""
    if (weights < FAINT).any() or packed.n_points * weights.shape[-2] * weights.shape[-1] > HELD:
        return None
    shares, _, terms = _densities(weights, components, PointsPart(slice(None), slice(None), packed))
    log_p, totals = joint_terms(terms, log_weights(shares), packed.offsets)
    return log_p, Terms(terms, totals)


def weigh_held(
    weights: Floats, components: Any, packed: Packed, held: Terms, point_weights: Floats, totals: bool
) -> dict[str, Floats]:
    """Return the blocks of ``expect`` from stored terms."""
    own, found = weights.ndim == 3, []
    for part in parts_of(packed, weights.shape[-2] * weights.shape[-1], joined=not own and totals):
        given = (held.terms[part.rows], held.totals[part.rows], part.packed.offsets, point_weights[part.rows])
        posteriors, counts = weigh_terms(*given)
        raw = counts / (weights[part.objects] if own else weights)
        found.append(_named(components[part.objects] if own else components, part.packed, posteriors, raw, totals))
    return {name: _merged([blocks[name] for blocks in found], totals) for name in found[0]}


def _faint_slopes(logs: Floats, slopes: Slopes, offsets: Any) -> Floats:
    """Return the sums over each object of raw g exp(-shift), never above the largest number: (n_objects, n, k)."""
    there = (slopes.raw > 0) & (slopes.shift > -np.inf)
    gaps = np.where(there[..., None], logs - np.where(there, slopes.shift, 0.0)[..., None], -np.inf)
    with np.errstate(over="ignore"):
        terms = np.minimum(slopes.raw[..., None] * np.exp(np.minimum(gaps, LOG_LARGEST)), LARGEST)
        return np.minimum(np.add.reduceat(terms, offsets[:-1], axis=0), LARGEST)


def log_weights(weights: Floats) -> Floats:
    """Return the logarithms of weights, -inf where they are zero."""
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(weights)
    return logs


def component_blocks(blocks: dict[str, Floats]) -> dict[str, Floats]:
    """Return the blocks (G, n * k, ...) of the components, without their prefix."""
    return {
        name[len(PREFIX) :]: block.reshape((len(block), -1, *block.shape[3:]))
        for name, block in blocks.items()
        if name.startswith(PREFIX)
    }


def filled_points(mixture: Any, packed: Packed) -> Floats | None:
    """Return points (N, n, d), missing entries replaced by expectations under n mixtures; None if unknown."""
    gaps = np.isnan(packed.values).any(axis=1)
    alone = Packed(packed.values[gaps], np.arange(gaps.sum() + 1))
    filled = mixture.flat_components().expected_points(alone)
    if filled is None:
        return None
    points = np.repeat(packed.values[:, None, :], mixture.shape[0], axis=1)
    if gaps.any():
        blocks = mixture.weigh(alone, np.ones((alone.n_points, mixture.shape[0])), totals=False)
        shares = blocks["weights"] * mixture.weights
        points[gaps] = (shares[..., None] * filled.reshape(*shares.shape, -1)).sum(axis=-2)
    return points
