"""Whether results of repeated experiments differ: tests of two methods, and tables of tests of all pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm, rankdata, ttest_ind, ttest_rel

from genkern.evaluation.comparison import PairedTest, paired_test
from genkern.validation import Floats, check_array, check_bool

EXACT = 50  # differences up to which all signs are counted
STARS = ((0.01, "**"), (0.05, "*"))


def t_test(first: ArrayLike, second: ArrayLike, *, paired: bool = True) -> PairedTest:
    """Test whether two methods have the same mean, assuming normal laws.

    Parameters
    ----------
    first, second : array-like of shape (n,) and (m,)
        Results, such as error rates, of both; of the same n repetitions if ``paired``.
    paired : bool, default=True
        Whether entry i of both is of the same repetition. Otherwise they are independent samples of equal variance.

    Returns
    -------
    test : PairedTest
        ``difference`` of the means and two-sided ``p_value``.

    Examples
    --------
    >>> from genkern.evaluation import t_test
    >>> first, second = [0.30, 0.28, 0.35, 0.31], [0.25, 0.26, 0.29, 0.24]
    >>> round(t_test(first, second).p_value, 4), round(t_test(first, second, paired=False).p_value, 4)
    (0.019, 0.0338)
    """
    a, b = _check(first, second, check_bool(paired, "paired", "t_test"), "t_test")
    spread = np.ptp(a - b) if paired else max(np.ptp(a), np.ptp(b))
    difference = float(a.mean() - b.mean())
    if spread <= 1e-12 * max(np.abs(a).max(), np.abs(b).max()):  # no variance: the same, or different for certain
        same = np.isclose(a[0], b[0], rtol=1e-12, atol=0.0)
        return PairedTest(difference, float(same))
    return PairedTest(difference, float((ttest_rel if paired else ttest_ind)(a, b).pvalue))


def wilcoxon_test(first: ArrayLike, second: ArrayLike) -> PairedTest:
    """Test by signed ranks whether the differences of two methods on the same repetitions are symmetric around zero.

    Differences of zero are left out. Up to 50 others all signs are counted, ties included; for more the sum of ranks
    is taken as normal, with a correction for ties.

    Parameters
    ----------
    first, second : array-like of shape (n,)
        Results, such as error rates, of both on the same repetitions.

    Returns
    -------
    test : PairedTest
        ``difference`` of the means and two-sided ``p_value``.

    References
    ----------
    Wilcoxon (1945), Individual comparisons by ranking methods.

    Examples
    --------
    >>> from genkern.evaluation import wilcoxon_test
    >>> wilcoxon_test(range(1, 16), [0] * 15)
    PairedTest(difference=8.0, p_value=6.103515625e-05)
    """
    a, b = _check(first, second, True, "wilcoxon_test")
    difference, gaps = float(a.mean() - b.mean()), a - b
    gaps = gaps[np.abs(gaps) > 1e-12 * np.maximum(np.abs(a), np.abs(b))]
    n = len(gaps)
    if not n:
        return PairedTest(difference, 1.0)
    ranks = rankdata(np.round(np.abs(gaps) / np.abs(gaps).max(), 12))  # equal up to rounding is equal
    least = min(ranks[gaps > 0].sum(), ranks[gaps < 0].sum())
    if n > EXACT:
        ties = np.unique(ranks, return_counts=True)[1]
        variance = n * (n + 1) * (2 * n + 1) / 24 - (ties**3 - ties).sum() / 48
        return PairedTest(difference, float(min(1.0, 2 * norm.cdf((least - n * (n + 1) / 4) / np.sqrt(variance)))))
    doubled = np.rint(2 * ranks).astype(int)  # tied ranks are halves
    ways = np.zeros(doubled.sum() + 1)
    ways[0] = 1.0
    for rank in doubled:
        ways[rank:] += ways[: len(ways) - rank].copy()
    return PairedTest(difference, float(min(1.0, 2 * ways[: round(2 * least) + 1].sum() / 2.0**n)))


def mcnemar_test(errors_a: ArrayLike, errors_b: ArrayLike) -> PairedTest:
    """Test whether two classifiers have the same error rate, by the objects on which one is right and one is wrong.

    The exact test: if they have, each of these objects is as likely the error of the one as of the other. For means
    over repetitions and for groups of objects there is ``paired_test``.

    Parameters
    ----------
    errors_a, errors_b : array-like of shape (n,)
        1 (or True) for an error and 0 for none, of the same objects: ``predicted != y`` of each classifier.

    Returns
    -------
    test : PairedTest
        ``difference`` of the error rates and two-sided ``p_value``.

    References
    ----------
    McNemar (1947), Note on the sampling error of the difference between correlated proportions or percentages.

    Examples
    --------
    >>> from genkern.evaluation import mcnemar_test
    >>> mcnemar_test([1, 1, 1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0])
    PairedTest(difference=0.75, p_value=0.03125)
    """
    for name, errors in (("errors_a", errors_a), ("errors_b", errors_b)):
        found = np.asarray(errors)
        if found.ndim != 1 or found.dtype.kind in "US":
            raise ValueError(
                f"mcnemar_test: {name!r} must say of each object whether the classifier is wrong, as predicted != y "
                f"does. Got {'text' if found.dtype.kind in 'US' else f'shape {found.shape}'}."
            )
    a, b = _check(errors_a, errors_b, True, "mcnemar_test", ("errors_a", "errors_b"))
    for values in (a, b):
        wrong = np.flatnonzero((values != 0) & (values != 1))
        if len(wrong):
            raise ValueError(
                f"mcnemar_test: errors must be 0 or 1. Got {values[wrong[0]]:g} for object {wrong[0]}; use paired_test "
                "for means over repetitions."
            )
    return paired_test(a, b)


@dataclass(frozen=True, repr=False)
class Comparisons:
    """Tests of all pairs of methods; prints as a table with stars for p < 0.05 (*) and p < 0.01 (**).

    Parameters
    ----------
    pairs : list of tuple of str
        Names of the two methods.
    settings : list of str
        The settings in which they are compared; one without a name if there is no choice.
    differences : ndarray of shape (pairs, settings)
        Mean of the first minus that of the second.
    t, wilcoxon : ndarray of shape (pairs, settings)
        Two-sided p-values of the t-test and of Wilcoxon's signed ranks; None in place of these for results that are not
        paired.
    """

    pairs: list[tuple[str, str]]
    settings: list[str]
    differences: Floats
    t: Floats
    wilcoxon: Floats | None

    def rows(self) -> list[list[str]]:
        """Return the cells: a head, and for each pair a row of each test, with the difference of means first."""
        table = [["methods", "test", *(name or "p-value" for name in self.settings)]]
        for i, (first, second) in enumerate(self.pairs):
            table.append([f"{first}, {second}", "difference", *(f"{value:+.4g}" for value in self.differences[i])])
            table.append(["", "T", *map(starred, self.t[i])])
            if self.wilcoxon is not None:
                table.append(["", "WX", *map(starred, self.wilcoxon[i])])
        return table

    def markdown(self) -> str:
        """Return the table in Markdown."""
        head, *body = [[cell.replace("|", r"\|").replace("*", r"\*") for cell in row] for row in self.rows()]
        return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *body])

    def __repr__(self) -> str:
        table = self.rows()
        widths = [max(map(len, column)) for column in zip(*table)]
        return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in table)


def compare_methods(results: Mapping[str, Any], *, paired: bool = True) -> Comparisons:
    """Compare the results of all pairs of methods by t-tests and, if they are paired, signed ranks.

    Parameters
    ----------
    results : dict of str to array-like of shape (n,), or dict of str to such dicts
        Results, such as error rates of n repetitions, of each method; or those in each of several settings, which
        become the columns of the table and have the same methods.
    paired : bool, default=True
        Whether entry i of all methods is of the same repetition (of training and test data).

    Returns
    -------
    table : Comparisons
        Prints as a table; ``markdown()`` for pages.

    Notes
    -----
    P-values are those of each test alone: of many pairs, some have stars by chance. Repetitions that draw training sets
    from the same objects overlap, which makes t-tests too sure of themselves.

    References
    ----------
    Tsuda et al. (2002), A new discriminative kernel from probabilistic models, tables 1 and 2.

    Examples
    --------
    >>> from genkern.evaluation import compare_methods
    >>> compare_methods({"FK": [0.31, 0.28, 0.35, 0.30, 0.33, 0.36], "TOP": [0.26, 0.27, 0.28, 0.27, 0.24, 0.30]})
    methods  test        p-value
    FK, TOP  difference  +0.05167
             T           0.0068**
             WX          0.031*
    """
    if not isinstance(results, Mapping) or not results:
        raise TypeError(
            f"compare_methods: 'results' must be a dict of results by method. Got {type(results).__name__}."
        )
    nested = all(isinstance(value, Mapping) for value in results.values())
    settings: dict[str, Any] = {str(k): v for k, v in results.items()} if nested else {"": results}
    names = list(next(iter(settings.values())))
    for setting, methods in settings.items():
        if len(names) < 2 or set(methods) != set(names):
            raise ValueError(
                f"compare_methods: every setting must have the same methods, at least two: "
                f"{', '.join(map(str, names))}. Got {', '.join(map(str, methods))}"
                f"{f' in {setting!r}' if setting else ''}."
            )
    pairs = list(combinations(names, 2))
    tests = [[t_test(m[a], m[b], paired=paired) for m in settings.values()] for a, b in pairs]
    ranks = [[wilcoxon_test(m[a], m[b]).p_value for m in settings.values()] for a, b in pairs] if paired else None
    differences, p_values = np.moveaxis(np.array(tests), 2, 0)
    named = [(str(a), str(b)) for a, b in pairs]
    return Comparisons(named, list(settings), differences, p_values, None if ranks is None else np.array(ranks))


def starred(p_value: float) -> str:
    """Return a p-value with ** below 0.01 and * below 0.05.

    >>> starred(0.0031), starred(0.026), starred(0.12)
    ('0.0031**', '0.026*', '0.12')
    """
    return f"{p_value:.2g}" + next((stars for bound, stars in STARS if p_value < bound), "")


def _check(
    first: ArrayLike, second: ArrayLike, paired: bool, who: str, names: tuple[str, str] = ("first", "second")
) -> tuple[Floats, Floats]:
    """Return two lists of results, of one length if they are paired."""
    a, b = (check_array(values, name, who, ndim=1) for values, name in zip((first, second), names))
    if paired and len(a) != len(b):
        raise ValueError(f"{who}: expected results of two methods in the same order. Got {len(a)} and {len(b)}.")
    if min(len(a), len(b)) < 2:
        raise ValueError(f"{who}: expected at least two results of each method. Got {len(a)} and {len(b)}.")
    return a, b
