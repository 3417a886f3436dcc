import numpy as np
import pytest
from scipy import stats

from genkern import CategoricalEstimator, HMMEstimator
from genkern.models.fit.streams import derive, keys_of, seed_of, uniforms


def test_numbers_are_uniform_and_uncorrelated_across_keys_and_counters():
    table = uniforms(np.arange(300, dtype=np.uint64)[:, None], np.arange(300))
    assert stats.kstest(table.ravel(), "uniform").pvalue > 1e-3
    for shifted in (table[1:], table[:, 1:]):
        whole = table[: shifted.shape[0], : shifted.shape[1]]
        assert abs(np.corrcoef(whole.ravel(), shifted.ravel())[0, 1]) < 0.02


def test_numbers_depend_on_key_counter_and_salt_alone():
    keys = keys_of(0, ["0" * 32, "f" * 32])
    table = uniforms(keys[:, None], np.arange(4))
    np.testing.assert_array_equal(uniforms(keys[1:, None], np.arange(4)), table[1:])
    assert (uniforms(derive(keys, 1)[:, None], np.arange(4)) != table).all()
    assert (uniforms(keys_of(1, ["0" * 32, "f" * 32])[:, None], np.arange(4)) != table).all()


def test_seeds_are_those_of_scikit_learn():
    assert [seed_of(state) for state in (None, 0, np.int64(7), 2**32 - 1)] == [0, 0, 7, 2**32 - 1]
    assert seed_of(np.random.RandomState(0)) == seed_of(np.random.RandomState(0)) >= 0
    HMMEstimator(2, CategoricalEstimator(), random_state=2**32 - 1, max_iter=1, tol=0).fit(["abab"])


@pytest.mark.parametrize("state", [-1, np.int64(-1), 2**32, 2**70])
def test_other_seeds_are_refused(state):
    match = f"'random_state' parameter must be an int from 0 to 4294967295, .* Got {state} instead; take e.g. [0-9]+"
    with pytest.raises(ValueError, match=match):
        seed_of(state)
    with pytest.raises(ValueError, match=match):
        HMMEstimator(2, CategoricalEstimator(), random_state=state).fit(["abab"])
