"""Argument checks: what passes, what raises, and what the error says."""

import numpy as np
import pytest

from genkern.validation import (
    check_array,
    check_int,
    check_lengths,
    check_number,
    check_option,
    check_probabilities,
    remember_width,
)


def test_arrays_become_float64():
    assert check_array([[1, 2]], "a", "Who").dtype == np.float64
    assert check_array(3, "a", "Who", ndim=0).shape == ()
    assert check_array([[1, 2]], "a", "Who", ndim=2, shape=(1, 2)).tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("value", "options", "error", "match"),
    [
        ("abc", {}, TypeError, "Who: 'a' must be an array of numbers. Got str"),
        ([[1], [1, 2]], {}, TypeError, "Who: 'a' must be an array of numbers. Got list"),
        ([1.0], {"ndim": 2}, ValueError, r"Who: 'a' must have 2 dimensions. Got shape \(1,\)"),
        ([1.0], {"shape": (2,)}, ValueError, r"must have shape \(2,\). Got shape \(1,\)"),
        ([[1.0, np.nan]], {}, ValueError, r"must be finite. Got nan at index \(0, 1\)"),
        ([np.inf], {}, ValueError, r"must be finite. Got inf at index \(0,\)"),
    ],
)
def test_arrays_that_raise(value, options, error, match):
    with pytest.raises(error, match=match):
        check_array(value, "a", "Who", **options)


def test_probabilities_are_kept_mended_or_refused():
    exact = np.array([[0.25, 0.75], [1.0, 0.0]])
    assert check_probabilities(exact, "p", "Who").tobytes() == exact.tobytes()
    rounded = check_probabilities([0.3, 0.7 + 1e-8], "p", "Who")
    np.testing.assert_allclose(rounded.sum(), 1.0, rtol=0, atol=1e-15)
    with pytest.raises(ValueError, match=r"Row \(1,\) sums to 1.1; divide it by its sum"):
        check_probabilities([[0.5, 0.5], [0.5, 0.6]], "p", "Who")
    with pytest.raises(ValueError, match=r"must not be negative. Got -0.5 at index \(0,\)"):
        check_probabilities([-0.5, 1.5], "p", "Who")
    for empty in (1.0, np.empty((2, 0))):
        with pytest.raises(ValueError, match="must end in an axis of probabilities"):
            check_probabilities(empty, "p", "Who")


def test_options():
    assert check_option("a", ("a", "b"), "how", "Who") == "a"
    for wrong in ("c", None, 1):
        with pytest.raises(ValueError, match=r"'how' parameter of Who must be one of 'a', 'b'. Got .* instead"):
            check_option(wrong, ("a", "b"), "how", "Who")


def test_ints():
    assert check_int(np.int64(3), "n", "Who") == 3
    assert type(check_int(np.int64(3), "n", "Who")) is int
    for wrong in (-1, 1.0, True, "1", None):
        with pytest.raises(ValueError, match=r"'n' parameter of Who must be an int >= 0. Got"):
            check_int(wrong, "n", "Who")


def test_numbers():
    assert check_number(np.float32(0.5), "x", "Who") == 0.5
    assert check_number(0, "x", "Who") == 0.0
    for wrong in (-1, np.inf, np.nan, True, "1", None):
        with pytest.raises(ValueError, match=r"'x' parameter of Who must be a finite number >= 0. Got"):
            check_number(wrong, "x", "Who")
    with pytest.raises(ValueError, match="must be a finite number > 0"):
        check_number(0.0, "x", "Who", exclusive=True)


class Estimator:
    pass


def test_width_of_tables_is_set_and_compared_that_of_lists_is_not():
    est = Estimator()
    remember_width(est, [[1], [1, 2]], reset=True)
    assert not hasattr(est, "n_features_in_")
    remember_width(est, np.zeros((2, 3)), reset=False)
    remember_width(est, np.zeros((2, 3)), reset=True)
    assert est.n_features_in_ == 3
    remember_width(est, [[1], [1, 2]], reset=False)
    remember_width(est, np.zeros((2, 4, 5)), reset=False)
    with pytest.raises(ValueError, match="X has 4 features, but Estimator is expecting 3 features as input"):
        remember_width(est, np.zeros((2, 4)), reset=False)
    remember_width(est, np.zeros((2, 4, 5)), reset=True)
    assert not hasattr(est, "n_features_in_")


def test_lengths_fill_the_whole():
    found = check_lengths(np.array([2, 1], dtype=np.uint8), 3, "Who")
    assert found.tolist() == [2, 1]
    assert found.dtype == np.int64
    for lengths, match in (
        ([2, 2], r"^Who: the lengths sum to 4, but X has 3 elements; .* Object 1 would end at 4; correct its length"),
        ([3, 1], "Object 1 would end at 4"),
        ([1], r"Add the lengths of the last 2 elements, or leave them out by X\[:1\]"),
        ([2, 0, 1], "^Who: object 1 has length 0; expected at least 1. Drop it"),
        ([[3]], "^Who: 'lengths' must be a 1-D list of ints, one per object. Got .* count the elements"),
    ):
        with pytest.raises(ValueError, match=match):
            check_lengths(lengths, 3, "Who")
