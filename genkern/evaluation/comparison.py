"""Intervals of error rates, and a paired test between two classifiers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest, norm

from genkern.data.intake import Ints
from genkern.validation import Floats, check_number

DRAWS = 9999  # of sign flips or bootstrap samples
BATCH = 2**22  # numbers drawn at a time


class PairedTest(NamedTuple):
    """What ``paired_test`` finds.

    Parameters
    ----------
    difference : float
        The first error rate minus the second.
    p_value : float
        Its two-sided p-value.
    """

    difference: float
    p_value: float


def error_interval(
    errors: ArrayLike, *, groups: ArrayLike | None = None, level: float = 0.95, rng: Any = 0
) -> tuple[float, float]:
    """Return a confidence interval of an error rate.

    Without groups it is Wilson's score interval for the mean of n independent errors. With groups, whose members are
    not independent, it is the percentile interval of the bootstrap over whole groups; where the error is the same in
    all groups, so that resampling tells nothing, it is Wilson's for the number of groups.

    Parameters
    ----------
    errors : array-like of shape (n,)
        One number in [0, 1] per object: 1 for an error, 0 for none, or its mean over repetitions.
    groups : array-like of shape (n,), optional
        The group of each object.
    level : float, default=0.95
        Probability that the interval covers the error rate.
    rng : int or Generator, default=0
        Seed of the bootstrap.

    Returns
    -------
    low, high : float
        The ends of the interval.

    References
    ----------
    Wilson (1927), Probable inference, the law of succession, and statistical inference.

    Examples
    --------
    >>> from genkern.evaluation import error_interval
    >>> low, high = error_interval([1] * 10 + [0] * 90)
    >>> round(low, 3), round(high, 3)
    (0.055, 0.174)
    """
    values = _check_errors(errors, "errors", "error_interval")
    if not 0.0 < check_number(level, "level", "error_interval") < 1.0:
        raise ValueError(f"The 'level' parameter of error_interval must lie between 0 and 1. Got {level!r} instead.")
    n = len(values)
    if groups is not None:
        codes = _codes(groups, n, "error_interval")
        rates = np.bincount(codes, values) / np.bincount(codes)
        if np.ptp(rates) > 0.0:
            return _bootstrap(values, codes, level, rng)
        n = len(rates)
    rate, z = values.mean(), norm.ppf(0.5 + level / 2)
    centre = (rate + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * np.sqrt(rate * (1 - rate) / n + z**2 / (4 * n**2))
    return max(float(centre - reach), 0.0), min(float(centre + reach), 1.0)


def paired_test(
    errors_a: ArrayLike, errors_b: ArrayLike, *, groups: ArrayLike | None = None, rng: Any = 0
) -> PairedTest:
    """Test whether two classifiers have the same error rate, from their errors on the same objects.

    If they have, the sign of each object's difference is as likely plus as minus. With one error or none per object
    this is McNemar's exact test. Otherwise (means over repetitions, or groups, whose members flip together) the signs
    are drawn 9999 times.

    Parameters
    ----------
    errors_a, errors_b : array-like of shape (n,)
        Errors of the two classifiers, one number in [0, 1] per object, as in ``error_interval``.
    groups : array-like of shape (n,), optional
        The group of each object.
    rng : int or Generator, default=0
        Seed of the signs.

    Returns
    -------
    test : PairedTest
        ``difference`` of the error rates and two-sided ``p_value``.

    References
    ----------
    McNemar (1947), Note on the sampling error of the difference between correlated proportions or percentages.

    Examples
    --------
    >>> from genkern.evaluation import paired_test
    >>> paired_test([1, 1, 1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0])
    PairedTest(difference=0.75, p_value=0.03125)
    """
    first = _check_errors(errors_a, "errors_a", "paired_test")
    second = _check_errors(errors_b, "errors_b", "paired_test")
    if len(first) != len(second):
        raise ValueError(
            f"paired_test: expected errors of two classifiers on the same objects. Got {len(first)} and {len(second)}."
        )
    gaps = first - second
    difference = float(gaps.mean())
    if groups is not None:
        gaps = np.bincount(_codes(groups, len(gaps), "paired_test"), gaps).astype(np.float64)
    gaps = gaps[np.abs(gaps) > 1e-12]
    if not len(gaps):
        return PairedTest(difference, 1.0)
    if np.ptp(np.abs(gaps)) < 1e-12:  # all of one size: the number of plus signs is binomial
        return PairedTest(difference, float(binomtest(int((gaps > 0).sum()), len(gaps)).pvalue))
    random, seen, bound = np.random.default_rng(rng), 0, np.abs(gaps.sum()) - 1e-12
    for size in _batches(DRAWS, len(gaps)):
        signs = random.integers(0, 2, (size, len(gaps))) * 2.0 - 1.0
        seen += int((np.abs(signs @ gaps) >= bound).sum())
    return PairedTest(difference, (seen + 1) / (DRAWS + 1))


def _bootstrap(values: Floats, codes: Ints, level: float, rng: Any) -> tuple[float, float]:
    """Return the percentile interval of the mean over resampled groups."""
    sums, sizes = np.bincount(codes, values), np.bincount(codes)
    random, means = np.random.default_rng(rng), []
    for size in _batches(DRAWS, len(sums)):
        drawn = random.integers(0, len(sums), (size, len(sums)))
        means.append(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))
    low, high = np.quantile(np.concatenate(means), [0.5 - level / 2, 0.5 + level / 2])
    return float(low), float(high)


def _batches(total: int, width: int) -> list[int]:
    """Return sizes of batches of rows that hold a bounded number of values."""
    size = max(1, BATCH // max(width, 1))
    return [min(size, total - start) for start in range(0, total, size)]


def _check_errors(errors: ArrayLike, name: str, who: str) -> Floats:
    values = np.asarray(errors, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"{who}: {name} must have one number per object. Got an array of shape {values.shape}.")
    wrong = np.flatnonzero(~((values >= 0.0) & (values <= 1.0)))
    if len(wrong):
        raise ValueError(f"{who}: {name} must lie between 0 and 1. Got {values[wrong[0]]} for object {wrong[0]}.")
    return values


def _codes(groups: ArrayLike, n: int, who: str) -> Ints:
    """Return the groups as numbers 0, 1, ..."""
    array = np.asarray(groups)
    if array.shape != (n,):
        raise ValueError(f"{who}: groups must have one entry per object, {n}. Got an array of shape {array.shape}.")
    codes = np.unique(array, return_inverse=True)[1]
    if codes.max() == 0:
        raise ValueError(f"{who}: all objects are of one group; two at least are needed. Leave groups out.")
    return codes
