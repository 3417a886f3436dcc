"""Hidden paths given observations, against enumeration of all of them."""

import itertools

import numpy as np
import pytest

from genkern import HMM, Categorical, Gaussian
from tests.cases import path_weights, point_density, random_hmm, random_sequence

FAMILIES = ("categorical", "diagonal", "full")
ENDINGS = (None, "end", "stop")


@pytest.fixture(params=list(itertools.product(FAMILIES, ENDINGS)), ids=lambda pair: f"{pair[0]}-{pair[1]}")
def case(request):
    family, ending = request.param
    rng = np.random.default_rng(0)
    model = random_hmm(rng, family, 3, ending)
    return model, [random_sequence(rng, family, length, missing=0.2) for length in (1, 4, 2)]


def test_the_log_probability_of_the_best_path(case):
    model, X = case
    expected = [np.log(path_weights(model, x)[1].max()) for x in X]
    np.testing.assert_allclose(model.viterbi_log_prob(X), expected, rtol=1e-12)


def test_filtering_sums_over_the_paths_of_the_past(case):
    model, X = case
    for x, found in zip(X, model.filter(X), strict=True):
        for t in range(len(x)):
            share = np.zeros(3)
            for path in itertools.product(range(3), repeat=t + 1):
                weight = model.start[path[0]] * point_density(model.emissions, path[0], x[0])
                for s in range(1, t + 1):
                    step = model.transitions[path[s - 1], path[s]]
                    weight *= step * point_density(model.emissions, path[s], x[s])
                share[path[-1]] += weight
            np.testing.assert_allclose(found[t], share / share.sum(), rtol=1e-11)


def test_without_an_end_the_last_filtered_state_is_smoothed():
    rng = np.random.default_rng(1)
    model = random_hmm(rng, "full", 3)
    x = random_sequence(rng, "full", 50)
    np.testing.assert_allclose(model.filter([x])[0][-1], model.posterior([x])[0][-1], rtol=1e-10)


def test_paths_are_drawn_as_often_as_they_are_probable(case):
    model, X = case
    count = 20_000
    for x, drawn in zip(X, model.sample_paths(X, count, rng=2), strict=True):
        assert drawn.shape == (count, len(x))
        paths, weights = path_weights(model, x)
        share = weights / weights.sum()
        place = {path: k for k, path in enumerate(paths)}
        seen = np.bincount([place[tuple(path)] for path in drawn.tolist()], minlength=len(paths)) / count
        z = (seen - share) / np.sqrt(np.maximum(share * (1 - share), 1e-12) / count)
        assert np.abs(z[share > 1e-4]).max() < 5.0
        assert seen[share < 1e-9].sum() == 0


def test_neighbouring_states_of_drawn_paths_belong_together():
    rng = np.random.default_rng(3)
    model = random_hmm(rng, "categorical", 2)
    x = random_sequence(rng, "categorical", 6)
    (drawn,), ((_, xi),) = model.sample_paths([x], 40_000, rng=0), model.posterior([x], pairs=True)
    for t in range(5):
        seen = np.zeros((2, 2))
        np.add.at(seen, (drawn[:, t], drawn[:, t + 1]), 1 / 40_000)
        np.testing.assert_allclose(seen, xi[t], rtol=0, atol=5 * 0.5 / 200)


def test_numbers_beyond_the_range_of_doubles():
    # The state that explains the future has a share of e^-1250 of the past: scaled messages lose it.
    means = np.array([[0.0], [50.0]])
    model = HMM([0.5, 0.5], np.eye(2), Gaussian(means, np.ones((2, 1))))
    x = np.array([[0.0], [0.0], [50.0], [50.0], [50.0]])
    logs = -0.5 * (x - means.T) ** 2
    for t, row in enumerate(model.filter([x])[0]):
        past = logs[: t + 1].sum(axis=0)
        np.testing.assert_allclose(row, np.exp(past - np.logaddexp.reduce(past)), rtol=1e-12)
    assert (model.sample_paths([x], 20, rng=0)[0] == 1).all()
    even = np.array([[0.0], [0.0], [50.0], [50.0]])
    first = model.sample_paths([even], 4000, rng=0)[0]
    assert (first == first[:, :1]).all()
    assert abs(first[:, 0].mean() - 0.5) < 5 * 0.5 / np.sqrt(4000)


def test_impossible_objects_are_refused_with_their_position():
    model = HMM([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], Categorical([[1.0, 0.0], [0.0, 1.0]], alphabet="ab"))
    for ask in (model.filter, lambda X: model.sample_paths(X, 2)):
        with pytest.raises(ValueError, match=r"object 1 .* position 2 .*'b'"):
            ask(["aa", "aab"])
    np.testing.assert_array_equal(model.viterbi_log_prob(["aa", "aab"]), [0.0, -np.inf])
    only_b = HMM([0.5, 0.5], [[1.0, 0.0], [0.0, 1.0]], model.emissions, end=[0.0, 1.0])
    np.testing.assert_array_equal(only_b.filter(["aa"])[0], [[1.0, 0.0]] * 2)  # the end is not seen
    with pytest.raises(ValueError, match="at its end"):
        only_b.sample_paths(["aa"], 1)


def test_simulated_states_emit_what_is_seen():
    model = HMM([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], Categorical([[1.0, 0.0], [0.0, 1.0]], alphabet="ab"))
    drawn = model.simulate(200, length=7, rng=0)
    assert [x for x, _ in drawn] == model.sample(200, length=7, rng=0)
    assert all("".join("ab"[k] for k in states) == "".join(x) for x, states in drawn)
    states = np.array([q for _, q in drawn])
    stays = (states[:, 1:] == 0)[states[:, :-1] == 0]
    assert abs(stays.mean() - 0.9) < 5 * np.sqrt(0.09 / stays.size)
    stopping = HMM([1.0], [[0.5]], Categorical([[0.5, 0.5]], alphabet="ab"), stop=[0.5])
    assert all(len(x) == len(q) for x, q in stopping.simulate(50, rng=0))
    assert model.simulate(0, length=3) == []


def test_neighbours_do_not_change_filters():
    rng = np.random.default_rng(4)
    model = random_hmm(rng, "diagonal", 3)
    X = [random_sequence(rng, "diagonal", length) for length in (5, 9, 3)]
    np.testing.assert_array_equal(model.filter(X)[1], model.filter(X[1:2])[0])
