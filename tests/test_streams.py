import numpy as np
from scipy import stats

from genkern.models.streams import derive, keys_of, uniforms


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
