"""Posteriors made of logarithms of any size: they sum to one, and are those of exact arithmetic."""

from __future__ import annotations

import itertools
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Any

import numpy as np
import pytest

from genkern import HMM, KDE, ClassMixture, Dirichlet, Gaussian, Mixture, StateSpace, SwitchingLDS, TopScore
from genkern.core.arrays.scaled_rows import scaled_rows
from genkern.core.factorial import passes as factorial
from genkern.core.hmm import passes as hmm
from genkern.core.hmm import positions as hmm_positions
from genkern.data.objects import Packed
from genkern.models.lds.model import LDS

LONG = Context(prec=120, Emax=MAX_EMAX, Emin=MIN_EMIN)
SCALES = [1e3, 1e10, 1e12, 1e14, 1e16, 1e20]


def exact(start: Any, steps: Any, end: Any, logs: Any) -> tuple[float, Any, Any, tuple[int, ...]]:
    """Return log P, posteriors of states and of pairs, and the best path, over all paths in decimal arithmetic."""

    def logarithm(x: float) -> Decimal | None:
        return LONG.ln(Decimal(float(x))) if x > 0.0 else None

    first, last = [logarithm(x) for x in start], [logarithm(x) for x in end]
    moves = [[logarithm(x) for x in row] for row in steps]
    length, n = logs.shape
    weights = {}
    for path in itertools.product(range(n), repeat=length):
        terms = [first[path[0]], last[path[-1]], *(moves[i][j] for i, j in itertools.pairwise(path))]
        terms += [Decimal(float(logs[t, k])) if logs[t, k] > -np.inf else None for t, k in enumerate(path)]
        if None not in terms:
            total = Decimal(0)
            for term in terms:
                total = LONG.add(total, term)
            weights[path] = total
    top = max(weights.values())
    gaps = {path: LONG.subtract(weight, top) for path, weight in weights.items()}
    shares = {path: LONG.exp(gap) if gap > -2000 else Decimal(0) for path, gap in gaps.items()}
    mass = Decimal(0)
    for share in shares.values():
        mass = LONG.add(mass, share)
    gamma, xi = np.zeros((length, n)), np.zeros((length - 1, n, n))
    for path, share in shares.items():
        part = float(LONG.divide(share, mass))
        gamma[np.arange(length), list(path)] += part
        xi[np.arange(length - 1), list(path[:-1]), list(path[1:])] += part
    return float(LONG.add(top, LONG.ln(mass))), gamma, xi, max(shares, key=lambda path: shares[path])


def near_ties(seed: int, scale: float) -> tuple[Any, Any, Any, Any]:
    """Return a chain, with odd seeds one that cannot go back, and log factors whose large parts many paths share."""
    rng = np.random.default_rng(seed)
    n, length = 3, 5
    start, steps, end = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n), n), rng.random(n)
    if seed % 2:
        start[-1], steps = 0.0, np.triu(steps)
        start, steps = start / start.sum(), steps / steps.sum(axis=1, keepdims=True)
    logs = scale * rng.integers(-3, 4, (length, n)) / 4.0 * (rng.random((length, 1)) < 0.8)
    return start, steps, end, logs + rng.normal(0.0, 2.0, (length, n))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("scale", SCALES)
def test_posteriors_of_logarithms_of_any_size(scale: float, seed: int) -> None:
    start, steps, end, logs = near_ties(seed, scale)
    table, shift, raised = scaled_rows(logs.copy())
    evidence = hmm.Evidence(table, shift, None, logs if raised else None)
    chains, offsets = hmm.Chains(start[None], steps[None], end[None]), np.array([0, len(logs)])
    _, gamma, xi, path = exact(start, steps, end, logs)
    _, found, pairs = hmm.marginals(chains, evidence, offsets, pairs=True)
    assert pairs is not None
    np.testing.assert_allclose(found, gamma, rtol=0, atol=2e-15)
    np.testing.assert_allclose(pairs, xi, rtol=0, atol=2e-15)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=2e-15)
    np.testing.assert_allclose(pairs.sum(axis=2), found[:-1], rtol=1e-14, atol=1e-300)
    np.testing.assert_allclose(pairs.sum(axis=1), found[1:], rtol=1e-14, atol=1e-300)
    slopes = hmm.gradients(chains, evidence, offsets)
    np.testing.assert_allclose(slopes.start[0] * start, gamma[0], rtol=0, atol=2e-13)
    np.testing.assert_allclose(slopes.transitions[0] * steps, xi.sum(axis=0), rtol=0, atol=2e-13)
    np.testing.assert_allclose(slopes.emissions * table, gamma, rtol=0, atol=2e-13)
    np.testing.assert_allclose(slopes.end[0] * end, gamma[-1], rtol=0, atol=2e-13)
    by_position = hmm_positions.position_gradients(chains, evidence, len(logs))
    np.testing.assert_allclose(by_position.transitions[1:] * steps, xi, rtol=0, atol=2e-13)
    np.testing.assert_array_equal(hmm.viterbi(chains, evidence, offsets)[0], path)


@pytest.mark.parametrize("scale", [1e30, 1e40, 1e200])
def test_posteriors_sum_to_one_where_even_long_logarithms_have_no_digits_left(scale: float) -> None:
    for seed in range(8):
        start, steps, end, logs = near_ties(seed, scale)
        table, shift, raised = scaled_rows(logs.copy())
        assert raised
        evidence, offsets = hmm.Evidence(table, shift, None, logs), np.array([0, len(logs)])
        chains = hmm.Chains(start[None], steps[None], end[None])
        _, gamma, xi = hmm.marginals(chains, evidence, offsets, pairs=True)
        assert xi is not None
        np.testing.assert_allclose(gamma.sum(axis=1), 1.0, rtol=1e-14)
        np.testing.assert_allclose(xi.sum(axis=1), gamma[1:], rtol=1e-14, atol=1e-300)
        slopes = hmm.gradients(chains, evidence, offsets)
        np.testing.assert_allclose((slopes.emissions * table).sum(axis=1), 1.0, rtol=1e-12)
        np.testing.assert_allclose((slopes.transitions[0] * steps).sum(), len(logs) - 1, rtol=1e-12)


@pytest.mark.parametrize("far", [1e6, 1e8])
def test_statistics_and_features_inherit_normalised_posteriors(far: float) -> None:
    """A chain that cannot go back must take points that a state it has left explains better by far squared."""
    steps = [[0.5, 0.5, 0.0], [0.0, 0.6, 0.4], [0.0, 0.0, 1.0]]
    model = HMM([0.2, 0.8, 0.0], steps, Gaussian([[0.0], [1.0], [1.5]], np.full((3, 1), 1.0)))
    x = np.array([0.0, far, -far, 1.0, 0.3 * far, 2.0])
    gamma = model.posterior([x])[0]
    np.testing.assert_allclose(gamma.sum(axis=1), 1.0, rtol=1e-14)
    found = model.statistics([x])
    np.testing.assert_allclose((found["start"] * model.start).sum(), 1.0, rtol=1e-12)
    np.testing.assert_allclose((found["transitions"] * model.transitions).sum(), len(x) - 1, rtol=1e-12)
    np.testing.assert_allclose(StateSpace(model).fit_transform([x])[0].sum(), len(x), rtol=1e-14)


@pytest.mark.parametrize("scale", [1e3, 1e10, 1e14])
def test_factorial_posteriors_of_logarithms_of_any_size(scale: float) -> None:
    """Evidence is given for each chain apart, so that the chains are independent and each has an exact answer."""
    for seed in range(6):
        parts = [near_ties(seed, scale), near_ties(seed + 1, scale)]
        chains = factorial.JointChains(
            np.array([3, 3]),
            np.concatenate([part[0] for part in parts])[None],
            np.concatenate([part[1].ravel() for part in parts])[None],
        )
        length = len(parts[0][3])
        evidence = factorial.QuadraticForms(
            linear=np.concatenate([part[3] for part in parts], axis=1),
            quadratic=np.zeros((1, 6, 6)),
            pattern=np.zeros(length, np.int64),
            constant=np.zeros(length),
        )
        found = factorial.gradients(chains, evidence, np.array([0, length]), np.zeros(length, np.int64), 1)
        for c, (start, steps, _, logs) in enumerate(parts):
            _, gamma, xi, _ = exact(start, steps, np.ones(3), logs)
            # Numbers at the scale of the evidence have so many digits; sums to one do not suffer from it.
            atol = max(1e-12, 16 * np.spacing(scale))
            mine = found.marginal[:, 3 * c : 3 * c + 3]
            np.testing.assert_allclose(mine, gamma, rtol=0, atol=atol)
            np.testing.assert_allclose(mine.sum(axis=1), 1.0, rtol=1e-13)
            counts = found.steps[0, 9 * c : 9 * c + 9].reshape(3, 3) * steps
            np.testing.assert_allclose(counts, xi.sum(axis=0), rtol=0, atol=4 * atol)
            np.testing.assert_allclose(counts.sum(), length - 1, rtol=1e-12)
            np.testing.assert_allclose((found.start[0, 3 * c : 3 * c + 3] * start).sum(), 1.0, rtol=1e-12)


def test_other_posteriors_of_large_logarithms_sum_to_one() -> None:
    far = np.array([[1e7], [-3e7]])
    models = [Gaussian([0.0], 1.0), Gaussian([1e-8], 1.0), Gaussian([-1e-8], 1.0)]
    mixture = ClassMixture({"a": models[0], "b": models[1], "c": models[2]}, priors=[0.2, 0.3, 0.5])
    np.testing.assert_allclose(mixture.posterior(far).sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(mixture.log_prob_grad(far, "softmax")[:, :3].sum(axis=1), 0.0, atol=1e-14)
    kde = KDE([[0.0], [1e-8], [-1e-8]], 1.0)
    slopes = kde.log_prob_grad(far, "raw")[:, :3]
    np.testing.assert_allclose(slopes.sum(axis=1), (far - 0.0)[:, 0], rtol=1e-12)
    system = LDS([[0.5]], [[1.0]], [[1.0]], [[1.0]], [0.0], [[1.0]])
    switching = SwitchingLDS([0.3, 0.7], [[0.5, 0.5], [0.2, 0.8]], LDS.stack([system, system]))
    found = switching.statistics([np.array([1e8, -1e8, 3e8])])
    np.testing.assert_allclose((found["start"] * switching.start).sum(), 1.0, rtol=1e-13)
    np.testing.assert_allclose((found["transitions"] * switching.transitions).sum(), 2.0, rtol=1e-13)
    drawn = np.array(Dirichlet(np.full(6, 1e-13)).sample(50, rng=0)).reshape(50, 6)
    np.testing.assert_allclose(drawn.sum(axis=1), 1.0, rtol=1e-14)
    top = TopScore(mixture).fit(far, ["a", "b"]).transform(far)
    assert np.isfinite(top).all()


@pytest.mark.parametrize("mixed", [False, True])
def test_factors_that_vanish_keep_logarithms_that_are_computed_once(mixed: bool, monkeypatch: Any) -> None:
    leaf: Any = Gaussian(np.array([[0.0], [1e4]]), np.ones((2, 1)))
    family: Any = Mixture(np.full((2, 1), 1.0), Gaussian(leaf.mean[:, None], leaf.cov[:, None])) if mixed else leaf
    points = np.array([[0.5], [3.0], [1e4]])
    asked: list[int] = []
    density = Gaussian.log_density
    monkeypatch.setattr(Gaussian, "log_density", lambda self, given: asked.append(1) or density(self, given))
    evidence = family.evidence(Packed(points, np.array([0, 3])))
    assert len(asked) == 1
    expected = -0.5 * (np.log(2.0 * np.pi) + (points - [[0.0, 1e4]]) ** 2)
    np.testing.assert_allclose(evidence.logs, expected, rtol=1e-15)
