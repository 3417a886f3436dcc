"""k-means and the first shares of points in clusters, against plain loops, to the last bit."""

import itertools

import numpy as np
import pytest

from genkern.core.mixture.kmeans import exponents_each, kmeans_each, squares_each
from genkern.core.mixture.posteriors import joint_terms, share_out, weigh_terms
from genkern.models.families.gaussian import Gaussian
from genkern.models.hmm.model import HMM
from genkern.models.mixture import passes as mixture_passes
from genkern.models.mixture.model import Mixture


def kmeans_plainly(points, k, numbers, rounds):
    """k-means++ and Lloyd's iterations on Python floats."""
    rows = points.tolist()

    def square(x, c):
        total = 0.0
        for a, b in zip(x, c):
            total += (a - b) * (a - b)
        return total

    chosen, gaps, centres = min(int(numbers[0] * len(rows)), len(rows) - 1), [np.inf] * len(rows), []
    for c in range(k):
        if c:
            total = 0.0
            for gap in gaps:
                total += gap
            if total <= 0.0:
                break
            chosen, run = 0, gaps[0]
            while run <= numbers[c] * total and chosen < len(rows) - 1:
                chosen += 1
                run += gaps[chosen]
        centres.append(rows[chosen])
        gaps = [min(gap, square(x, rows[chosen])) for gap, x in zip(gaps, rows)]
    labels = [0] * len(rows)
    for _ in range(rounds):
        new = []
        for x in rows:
            squares = [square(x, c) for c in centres]
            new.append(squares.index(min(squares)))
        if new == labels:
            break
        labels = new
        for c in range(len(centres)):
            own = [x for x, label in zip(rows, labels) if label == c]
            if own:
                sums = [0.0] * len(own[0])
                for x in own:
                    sums = [a + b for a, b in zip(sums, x)]
                centres[c] = [a / len(own) for a in sums]
    return labels


@pytest.mark.parametrize(
    ("sizes", "d", "k"), [((1, 7, 40), 1, 4), ((150, 33), 3, 5), ((300,), 9, 17), ((129, 2), 12, 3)]
)
@pytest.mark.parametrize("rounds", [1, 50])
def test_kmeans_is_that_of_plain_loops(sizes, d, k, rounds):
    rng = np.random.default_rng(d)
    values, offsets = rng.normal(size=(sum(sizes), d)).round(1), np.concatenate([[0], np.cumsum(sizes)])
    numbers = rng.random((len(sizes), k))
    labels = kmeans_each(values, offsets, k, numbers, rounds)
    for i, (first, last) in enumerate(itertools.pairwise(offsets)):
        assert labels[first:last].tolist() == kmeans_plainly(values[first:last], k, numbers[i], rounds)


@pytest.mark.parametrize("d", [1, 2, 7, 8, 9, 15, 16, 40, 127, 128, 129, 300])
def test_squared_distances_are_those_of_numpy_to_the_last_bit(d):
    rng = np.random.default_rng(d)
    offsets = np.array([0, 5, 150, 151])
    values, centres = rng.normal(size=(151, d)), rng.normal(size=(3, 4, d))
    own = np.repeat(centres, np.diff(offsets), axis=0)
    expected = np.stack([((values - own[:, j]) ** 2).sum(axis=1) for j in range(4)], axis=1)
    np.testing.assert_array_equal(squares_each(values, offsets, centres), expected)


def test_exponents_are_gaps_to_the_nearest_cluster_that_is_there():
    rng = np.random.default_rng(0)
    squares, offsets, heat = rng.random((140, 9)), np.array([0, 3, 140]), np.array([0.0, 0.7])
    squares[1] = squares[1, 0]
    there = rng.random((2, 9)) < 0.7
    own, by = np.repeat(there, [3, 137], axis=0), np.repeat(heat, [3, 137])[:, None]
    gaps = np.where(own, squares, np.inf) - np.where(own, squares, np.inf).min(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = -np.where(gaps == 0.0, 0.0, gaps / (2.0 * by))
    exponents_each(squares, offsets, there, heat)
    np.testing.assert_array_equal(squares, expected)


@pytest.mark.parametrize("own", [False, True])
def test_terms_that_are_weighed_later_give_the_same_posteriors(own):
    rng = np.random.default_rng(1)
    offsets, logs = np.array([0, 130, 133, 300]), -30.0 * rng.random((300, 3, 5))
    logs[7, 1] = -np.inf
    weights = rng.random((300, 3))
    log_weights = np.log(rng.dirichlet(np.ones(5), size=(3 if own else 1, 3)))
    at_once, terms = logs.copy(), logs.copy()
    log_p, sums = share_out(at_once, log_weights, offsets, weights)
    later, totals = joint_terms(terms, log_weights, offsets)
    posteriors, counts = weigh_terms(terms, totals, offsets, weights)
    for found, expected in ((later, log_p), (posteriors, at_once), (counts, sums)):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(
        totals * np.exp((logs + np.repeat(log_weights, np.diff(offsets) if own else 300, axis=0)).max(axis=2)),
        np.exp(log_p),
        rtol=1e-13,
    )


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("totals", [False, True])
def test_statistics_do_not_depend_on_what_a_pass_can_hold(monkeypatch, own, totals):
    rng = np.random.default_rng(2)
    X = [rng.normal(size=(length, 2)) for length in (40, 3, 170)]
    batch = (3,) if own else ()
    mixtures = Mixture(
        rng.dirichlet(np.ones(4), size=(*batch, 2)),
        Gaussian(rng.normal(size=(*batch, 2, 4, 2)), np.ones((*batch, 2, 4, 2))),
    )
    model = HMM(np.full((*batch, 2), 0.5), np.full((*batch, 2, 2), 0.5), mixtures)
    asked = {} if own else {"totals": totals}
    monkeypatch.setattr(mixture_passes, "BATCH", 1 << 9)
    held = model.statistics(X, **asked)
    monkeypatch.setattr(mixture_passes, "HELD", 0)
    fresh = model.statistics(X, **asked)
    np.testing.assert_array_equal(held.log_prob, fresh.log_prob)
    for name, block in fresh.blocks.items():
        np.testing.assert_array_equal(held[name], block)
