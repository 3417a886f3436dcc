"""Kernels between unstable linear systems against exact arithmetic: what they have in common must not cost digits."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from genkern import LDS, Expected, Power, ProbabilityProduct, SwitchingLDS, affinity
from genkern.core.kalman import roots as kalman_roots
from tests.cases_odd import NEAR, planar, scalar
from tests.oracles_exact import DIGITS, exact_kernel, exact_law_kernel, exact_log_prob, path_law

HOWS = [Power(0.5), Power(1.0), Power(0.3), Power(2.0), Expected(0.7)]


def spiral(radius: float, R: float = 0.1) -> LDS:
    A = np.array([[2.0, 1.0], [-1.0, 2.0]]) * radius / math.sqrt(5.0)
    return LDS(A, [[1.0, 0.4], [0.2, -1.0]], 0.1, R, np.ones(2), 1.0)


def raised(p: LDS, offset: list[float]) -> LDS:
    """The same system seen from another level."""
    Q, R, P = p.matrices()
    return LDS(p.transition, p.observation, Q, R, p.initial_mean, P, offset)


def twin(p: LDS, T: Any = ((1.0, 0.3), (-0.7, 2.0))) -> LDS:
    """The same law in other coordinates of the state, up to the rounding of the parameters."""
    turn = np.array(T)
    back, (Q, R, P) = np.linalg.inv(turn), p.matrices()
    spreads = [turn @ cov @ turn.T for cov in (Q, P)]
    move, begin = (0.5 * (cov + cov.T) for cov in spreads)
    return LDS(turn @ p.transition @ back, p.observation @ back, move, R, turn @ p.initial_mean, begin)


def widened(p: LDS, weight: float) -> LDS:
    """One more state, stable, seen with a weight."""
    n, (Q, R, P) = p.n_states, p.matrices()
    A, more, begin = (np.diag([*np.zeros(n), value]) for value in (0.5, 0.1, 1.0))
    A[:n, :n], more[:n, :n], begin[:n, :n] = p.transition, Q, P
    C = np.hstack([p.observation, np.full((p.n_channels, 1), weight)])
    return LDS(A, C, more, R, np.append(p.initial_mean, 0.3), begin)


@pytest.mark.parametrize(("A", "length"), [(1.2, 100), (1.1, 200), (3.0, 100), (1.5, 2000), (-1.3, 77)])
def test_a_model_and_itself(A: float, length: int) -> None:
    p = scalar(A)
    for how in (Power(0.5), Power(2.0)):
        own = float(affinity(p, scalar(A), how, length))
        assert affinity.diag(p, how, length) == own
    assert abs(float(affinity(p, p, Power(0.5), length))) < 1e-14 * 10 * length
    # k_rho(p, p) from p's own filter: Sigma + Sigma = 2 Sigma
    S, logs = 1.0 + 0.1, 0.0
    for _ in range(length):
        logs += math.log(S)
        S = A * A * (S - 0.1) * 0.1 / S + 0.1 + 0.1
    expected = -1.5 * length * math.log(2.0 * math.pi) - 0.5 * length * math.log(4.0) - 1.5 * logs
    assert float(affinity(p, p, Power(2.0), length)) == pytest.approx(expected, rel=1e-12)


def test_a_plane_that_grows() -> None:
    p = spiral(2.24)
    for length in (12, 100):
        assert abs(float(affinity(p, p, Power(0.5), length))) < 1e-11
    assert float(affinity(p, p, Expected(0.7), 12)) == pytest.approx(exact_kernel(p, p, Expected(0.7), 12), rel=1e-12)


PAIRS = {
    "near, 30": (scalar(1.5), scalar(1.5005), 30),
    "near, 50": (scalar(1.5), scalar(1.5005), 50),
    "nearer": (scalar(1.2), scalar(1.2 * NEAR), 50),
    "nearer, with means": (scalar(1.2, mean=1.0), scalar(1.2 * NEAR, mean=1.0), 50),
    "fast and near": (scalar(3.0), scalar(3.0 * NEAR), 40),
    "fast": (scalar(3.0), scalar(3.1), 40),
    "other noise": (scalar(1.2), scalar(1.2, Q=0.2), 50),
    "other mean": (scalar(1.2), scalar(1.2, mean=4.0), 50),
    "one unstable": (scalar(1.2), scalar(0.5), 40),
    "slow": (scalar(0.999, Q=1e-4), scalar(0.998, Q=1e-4), 40),
    "twin": (spiral(1.57), twin(spiral(1.57)), 15),
    "fast twin": (spiral(2.24), twin(spiral(2.24)), 12),
    "more states": (spiral(1.57), widened(spiral(1.57), 1e-3), 12),
    "more states of another": (spiral(1.57), twin(widened(spiral(1.5), 0.1), np.eye(3) + 0.2), 12),
    "other offset": (raised(scalar(1.2), [3.0]), scalar(1.2 * NEAR), 40),
    "same offset": (raised(scalar(1.5), [-7.0]), raised(scalar(1.5005), [-7.0]), 30),
    "twin with offsets": (raised(spiral(1.57), [1.0, -2.0]), twin(spiral(1.57)), 15),
    "fitted radius": (spiral(1.57), spiral(1.5), 15),
}


@pytest.mark.parametrize("how", HOWS, ids=repr)
@pytest.mark.parametrize("case", PAIRS)
def test_pairs_have_the_digits_of_exact_arithmetic(case: str, how: Any) -> None:
    p, q, length = PAIRS[case]
    expected = exact_kernel(p, q, how, length)
    for one, other in ((p, q), (q, p)):
        assert float(affinity(one, other, how, length)) == pytest.approx(expected, rel=1e-11, abs=1e-11)


def test_a_mean_that_grows_after_the_covariances_have_settled() -> None:
    p, q = LDS([[1.7]], [[3.0]], 0.0, 0.1, [1.0 / 3.0], 0.0), LDS([[1.7]], [[1.0]], 0.0, 0.1, [1.0], 0.0)
    assert float(affinity(p, q, Power(0.5), 20)) == pytest.approx(exact_kernel(p, q, Power(0.5), 20), abs=1e-8)
    with pytest.raises(ValueError, match=r"models 0 and 0: what both systems have in common .*length=80"):
        affinity(p, q, Power(0.5), 80)


def test_the_oracle_is_exact() -> None:
    p, q = scalar(1.5), scalar(1.5005, mean=1.0)
    for how in HOWS:
        assert exact_kernel(p, q, how, 12, Fraction) == pytest.approx(exact_kernel(p, q, how, 12), rel=1e-15)
        assert exact_kernel(p, q, how, 3) == pytest.approx(float(affinity(p, q, how, 3)), rel=1e-13)


def test_pairs_do_not_notice_their_neighbours() -> None:
    models = [scalar(A) for A in (0.5, 1.2, 1.2 * NEAR, 1.5, 1.5005, 3.0)] + [scalar(1.2, mean=2.0)]
    table = affinity(models, models, Power(0.5), 40)
    assert_array_equal(table, table.T)
    for i, j in itertools.product(range(7), repeat=2):
        assert_allclose(float(affinity(models[i], models[j], Power(0.5), 40)), table[i, j], rtol=1e-12, atol=1e-12)
    cosines = ProbabilityProduct(0.7, length=40).normalized()(models)
    assert cosines.max() <= 1.0
    assert np.linalg.eigvalsh(cosines)[0] > -1e-10


def test_what_double_precision_cannot_tell_is_refused() -> None:
    p = spiral(2.24)
    with pytest.raises(ValueError, match=r"models 1 and 2: what both systems have in common .* 1e-08 .*length=60"):
        affinity([scalar_plane(), p, twin(p)], [scalar_plane(), p, twin(p)], Power(0.5), 60)
    with pytest.raises(ValueError, match=r"models 0 and 1: what both systems have in common"):
        affinity([p, widened(p, 1e-15)], [p, widened(p, 1e-15)], Expected(1.0), 600)


def scalar_plane() -> LDS:
    return LDS([[0.5]], [[1.0], [0.3]], 0.1, 0.1, [0.0], 1.0)


# --- switching systems


def switching(A: float, B: float, d: float = 0.5) -> SwitchingLDS:
    return SwitchingLDS([0.4, 0.6], [[0.9, 0.1], [0.2, 0.8]], LDS.stack([scalar(A), scalar(B, mean=d)]))


def exact_switching(p: SwitchingLDS, q: SwitchingLDS, how: Any, length: int) -> float:
    """The sum over all pairs of paths, each in exact arithmetic."""
    sides = []
    for model in (p, q):
        paths = list(itertools.product(range(2), repeat=length))
        weights = [model.start[s[0]] * math.prod(model.transitions[t] for t in itertools.pairwise(s)) for s in paths]
        with localcontext() as context:
            context.prec = DIGITS
            sides.append([(w, path_law([model.systems[k] for k in s], Decimal)) for w, s in zip(weights, paths)])
    terms = [math.log(w * v) + exact_law_kernel(a, b, how) for (w, a), (v, b) in itertools.product(*sides)]
    return float(np.logaddexp.reduce(terms))


@pytest.mark.parametrize("how", [Power(0.5), Power(2.0), Expected(0.7)], ids=repr)
def test_switching_systems(how: Any) -> None:
    p, q = switching(300.0, 40.0), switching(300.0 * NEAR, 40.02)
    for one, other in ((p, q), (p, p)):
        expected = exact_switching(one, other, how, 4)
        assert float(affinity(one, other, how, 4)) == pytest.approx(expected, rel=1e-11, abs=1e-11)


def test_one_unstable_regime_is_a_linear_system() -> None:
    p, q = (SwitchingLDS([1.0], [[1.0]], LDS.stack([scalar(A)])) for A in (1.5, 1.5005))
    for how in HOWS:
        expected = float(affinity(p.systems[0], q.systems[0], how, 40))
        for method in ("exact", "all-pairs", "paired"):
            assert float(affinity(p, q, how, 40, method)) == pytest.approx(expected, rel=1e-11)
    assert abs(float(affinity(p, p, Power(0.5), 500, "paired"))) < 1e-11
    twins = [SwitchingLDS([1.0], [[1.0]], LDS.stack([x])) for x in (spiral(2.24), twin(spiral(2.24)))]
    with pytest.raises(ValueError, match="models 0 and 0: what both systems have in common"):
        affinity(*twins, Power(0.5), 60)


# --- densities of series


@pytest.mark.parametrize("A", [1.1, 1.5, 3.0])
def test_densities_of_unstable_series(A: float) -> None:
    model = scalar(A)
    (x,) = model.sample(1, length=25, rng=0)
    # The last bits of the observations themselves are worth so much, in units of the noise.
    error = 1e-15 * np.abs(x).max() / 0.1
    assert float(model.log_prob([x])[0]) == pytest.approx(exact_log_prob(model, x), rel=1e-12, abs=error)


def hidden(radius: float, weight: float) -> LDS:
    """An unstable state that is hardly seen, in coordinates in which no entry is zero."""
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((2, 2)))[0]
    A, C = turn @ np.diag([radius, 0.5]) @ turn.T, np.array([[weight, 1.0]]) @ turn.T
    return LDS(A, C, 0.1, 0.1, np.zeros(2), 1.0)


def test_states_that_are_hardly_seen() -> None:
    model = hidden(3.0, 1e-6)
    x = np.random.default_rng(1).standard_normal((25, 1))
    gaps = x.copy()
    gaps[7] = np.nan
    assert float(model.log_prob([x])[0]) == pytest.approx(exact_log_prob(model, x), rel=1e-7)
    alone = [float(model.log_prob([y])[0]) for y in (gaps, x)]
    assert_array_equal(model.log_prob([gaps, x]), alone)
    assert float(affinity(model, model, Power(0.5), 25)) == pytest.approx(0.0, abs=1e-7)
    with pytest.raises(ValueError, match=r"object 1: states that no observation tells apart .* 1e-08"):
        hidden(3.0, 0.0).log_prob([x[:3], x])


def test_series_that_outgrow_their_own_last_bits_are_refused() -> None:
    model = LDS([[3.0]], [[1.0]], 0.1, 0.1, [0.0], 1.0, [5.0])
    short, long = (model.sample(1, length=length, rng=0)[0] for length in (25, 40))
    assert float(model.log_prob([short])[0]) == pytest.approx(exact_log_prob(model, short), abs=1e-4)
    for ask in (model.log_prob, model.statistics, model.posterior, model.log_prob_grad):
        with pytest.raises(ValueError, match=r"object 1: its observations.* grow .* 0\.0001 is allowed"):
            ask([short, long])


def test_states_that_nothing_tells_apart_are_refused_by_all_passes() -> None:
    model = LDS(np.diag([3.0, 3.0]), [[1.0, 1.0]], 0.1, 0.1, [0.0, 0.0], 1.0, [1.0])
    X = [*model.sample(1, length=5, rng=0), *model.sample(1, length=20, rng=0)]
    assert float(model.statistics(X[:1]).log_prob[0]) == pytest.approx(exact_log_prob(model, X[0]), abs=1e-8)
    for ask in (model.log_prob, model.statistics, model.posterior, lambda Y: model.forecast(Y, 2)):
        with pytest.raises(ValueError, match="object 1: states that no observation tells apart"):
            ask(X)
    with pytest.raises(ValueError, match="object 1: states that no observation tells apart"):
        model.statistics(X, totals=True)


def test_roots_equal_the_filter_of_covariances() -> None:
    model = planar(0.8, turn=0.3)
    X = np.stack(model.sample(4, length=30, rng=0))
    X[1, 4:7] = np.nan
    roots = kalman_roots.factored(model.systems())
    logs, loss = kalman_roots.densities(roots, np.zeros((4, 30), np.int64), X)
    assert_allclose(logs, model.log_prob(list(X)), rtol=1e-13)
    assert (loss < 1e-14).all()
    singular = LDS([[0.5]], [[1.0], [1.0]], 1.0, [0.0, 0.0], [0.0], 1.0).systems()
    flat = kalman_roots.densities(kalman_roots.factored(singular), np.zeros((1, 2), np.int64), np.zeros((1, 2, 2)))
    assert np.isnan(flat[0][0])
    assert flat[1][0] == 0.0
