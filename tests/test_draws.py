"""Draws of chains: the compiled walks against plain loops over the same numbers, and their cost for long sequences."""

import time

import numpy as np
import pytest

from genkern import HMM, LDS, Categorical, FactorialHMM, MarkovChain, SiteModel, SwitchingLDS
from genkern.models.draws import NUMBERS, draw_paths, draw_rows, draw_stopping
from tests.cases_zoo import ZOO


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def rows(rng, *shape):
    values = rng.random(shape) * (rng.random(shape) < 0.8) + 1e-3
    return values / values.sum(axis=-1, keepdims=True)


def chosen(row, number):
    """The first index whose cumulative sum exceeds the number times the sum of all."""
    sums = [sum(row[: j + 1]) for j in range(len(row))]
    return next((j for j, total in enumerate(sums) if total > number * sums[-1]), len(row) - 1)


def test_rows_are_drawn_by_their_cumulative_sums(rng):
    table, which = rows(rng, 4, 7), rng.integers(0, 4, 500)
    drawn = draw_rows(table, which, np.random.default_rng(3))
    numbers = np.random.default_rng(3).random(500)
    assert drawn.tolist() == [chosen(table[i].tolist(), u) for i, u in zip(which, numbers)]


@pytest.mark.parametrize(("n", "length"), [(1, 200), (5, 40), (3, 1)])
def test_paths_are_those_of_a_plain_loop(rng, n, length):
    start, steps, ahead = rows(rng, 3), rows(rng, 3, 3), rng.random((length, 3))
    paths = draw_paths(start, steps, n, length, np.random.default_rng(4), ahead)
    numbers = np.random.default_rng(4).random((length, n))  # row after row, whatever the chunks
    for i in range(n):
        expected = [chosen((start * ahead[0]).tolist(), numbers[0, i])]
        for t in range(1, length):
            expected.append(chosen((steps[expected[-1]] * ahead[t]).tolist(), numbers[t, i]))
        assert paths[i].tolist() == expected


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937, np.random.Philox])
def test_stopping_paths_take_the_numbers_that_they_need_and_no_others(rng, bits):
    start, joint = rows(rng, 2), rows(rng, 2, 3)
    joint = 0.98 * joint + 0.02 * np.eye(3)[2]
    generator, plain = np.random.Generator(bits(5)), np.random.Generator(bits(5))
    paths = draw_stopping(start, joint, 6, generator)
    states = [chosen(start.tolist(), u) for u in plain.random(6)]
    expected, alive = [[] for _ in range(6)], list(range(6))
    while alive:
        for i in alive:
            expected[i].append(states[i])
        for i, u in zip(list(alive), plain.random(len(alive))):
            states[i] = chosen(joint[states[i]].tolist(), u)
        alive = [i for i in alive if states[i] < 2]
    assert [path.tolist() for path in paths] == expected
    assert generator.random() == plain.random()


def test_a_stopping_path_may_be_longer_than_the_numbers_held_at_a_time():
    rare = 1.0 / (2 * NUMBERS)
    model = HMM([1.0], [[1.0 - rare]], Categorical([[0.5, 0.5]], "ab"), stop=[rare])
    lengths = [len(x) for x in model.sample(40, rng=0)]
    assert max(lengths) > 2 * NUMBERS
    # The mean of forty geometric lengths has a relative deviation of 1/sqrt(40).
    assert abs(np.mean(lengths) * rare - 1.0) < 4.0 / np.sqrt(40)


def models(rng):
    system = LDS(0.5 * np.eye(2), np.eye(2), np.eye(2), np.ones(2), np.zeros(2), np.eye(2))
    return {
        "hmm": HMM(rows(rng, 3), rows(rng, 3, 3), Categorical(rows(rng, 3, 4), "acgt")),
        "ending hmm": HMM(rows(rng, 3), rows(rng, 3, 3), Categorical(rows(rng, 3, 4), "acgt"), end=rows(rng, 3)),
        "chain": MarkovChain(rows(rng, 4), rows(rng, 4, 4), "acgt"),
        "factorial": FactorialHMM((rows(rng, 2),), (rows(rng, 2, 2),), (rng.normal(size=(2, 1)),), np.ones(1)),
        "lds": system,
        "switching": SwitchingLDS(rows(rng, 2), rows(rng, 2, 2), LDS.stack([system, system])),
    }


@pytest.mark.parametrize("name", ["hmm", "ending hmm", "chain", "factorial", "lds", "switching"])
def test_one_long_sequence_costs_about_what_many_short_ones_do(rng, name):
    model = models(rng)[name]

    def seconds(n, length):
        begin = time.process_time()
        model.sample(n, length=length, rng=0)
        return time.process_time() - begin

    seconds(2, 3)  # compiles
    many = min(seconds(1000, 100) for _ in range(3))
    one = min(seconds(1, 100_000) for _ in range(3))
    assert one < 6.0 * many + 0.02


@pytest.mark.parametrize("name", ZOO)
def test_none_can_be_drawn_and_fewer_are_refused(name):
    model = ZOO[name]
    length = {} if isinstance(model, SiteModel) else {"length": 3}
    assert list(model.sample(0, **length)) == []
    with pytest.raises(ValueError, match=r"'n' parameter of .*\.s\w+ must be an int >= 0\. Got -1 instead"):
        model.sample(-1, **length)
