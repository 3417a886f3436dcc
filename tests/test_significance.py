"""Tests of two methods against enumeration, quadrature and the paper's tables."""

import itertools

import numpy as np
import pytest
from scipy import integrate, special, stats

from genkern.evaluation import compare_methods, mcnemar_test, paired_test, t_test, wilcoxon_test


def student_tail(t, dof):
    """Return the two-sided tail of Student's law by quadrature of its density."""
    logs = special.gammaln((dof + 1) / 2) - special.gammaln(dof / 2) - 0.5 * np.log(dof * np.pi)
    density = lambda u: np.exp(logs - (dof + 1) / 2 * np.log1p(u**2 / dof))  # noqa: E731
    return 2 * integrate.quad(density, abs(t), np.inf)[0]


@pytest.mark.parametrize("seed", range(4))
def test_t_tests_are_the_tails_of_students_law(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(0.3, 0.05, 9), rng.normal(0.27, 0.05, 9)
    gaps = a - b
    statistic = gaps.mean() / (gaps.std(ddof=1) / 3)
    found = t_test(a, b)
    np.testing.assert_allclose(found.p_value, student_tail(statistic, 8), rtol=1e-7)
    np.testing.assert_allclose(found.difference, a.mean() - b.mean(), rtol=1e-12)
    b = b[:6]
    pooled = (((a - a.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum()) / 13
    statistic = (a.mean() - b.mean()) / np.sqrt(pooled * (1 / 9 + 1 / 6))
    np.testing.assert_allclose(t_test(a, b, paired=False).p_value, student_tail(statistic, 13), rtol=1e-7)


def test_results_without_variance():
    assert t_test([0.1, 0.2], [0.1, 0.2]).p_value == wilcoxon_test([0.1, 0.2], [0.1, 0.2]).p_value == 1.0
    assert t_test([0.3, 0.4], [0.1, 0.2]).p_value == 0.0
    assert t_test([0.3, 0.3], [0.3, 0.3], paired=False).p_value == 1.0
    assert t_test([0.3, 0.3], [0.2, 0.2], paired=False).p_value == 0.0


@pytest.mark.parametrize("seed", range(6))
def test_signed_ranks_count_all_signs(seed):
    rng = np.random.default_rng(seed)
    # thirds of an experiment have rounding errors where they are equal, and many ties and zeros
    a, b = rng.integers(0, 6, 10) / 3, rng.integers(0, 6, 10) / 3
    gaps = np.round((a - b) * 3)
    gaps = gaps[gaps != 0]
    ranks = [(np.abs(gaps) < abs(g)).sum() + ((np.abs(gaps) == abs(g)).sum() + 1) / 2 for g in gaps]
    seen = sum(r for r, g in zip(ranks, gaps) if g > 0)
    centre = sum(ranks) / 2
    sums = [sum(r for r, up in zip(ranks, signs) if up) for signs in itertools.product([0, 1], repeat=len(gaps))]
    expected = np.mean([abs(s - centre) >= abs(seen - centre) - 1e-9 for s in sums])
    np.testing.assert_allclose(wilcoxon_test(a, b).p_value, expected, rtol=1e-12)
    np.testing.assert_allclose(wilcoxon_test(b, a).p_value, expected, rtol=1e-12)


def test_signed_ranks_of_many_differences():
    rng = np.random.default_rng(1)
    a, b = rng.normal(0.1, 1.0, 80), np.zeros(80)
    expected = stats.wilcoxon(a, b, method="approx").pvalue
    np.testing.assert_allclose(wilcoxon_test(a, b).p_value, expected, rtol=1e-9)
    a = np.round(3 * a) / 3
    expected = stats.wilcoxon(a, b, method="approx").pvalue
    np.testing.assert_allclose(wilcoxon_test(a, b).p_value, expected, rtol=1e-9)
    a, b = a[:50] + 0.001 * np.arange(50), rng.normal(size=50)
    np.testing.assert_allclose(wilcoxon_test(a, b).p_value, stats.wilcoxon(a, b, method="exact").pvalue, rtol=1e-12)


def test_mcnemar_counts_discordant_objects():
    rng = np.random.default_rng(2)
    a, b = rng.random(40) < 0.4, rng.random(40) < 0.2
    n, k = int((a != b).sum()), int((a & ~b).sum())
    tail = sum(special.comb(n, i) for i in range(n + 1) if special.comb(n, i) <= special.comb(n, k)) / 2.0**n
    np.testing.assert_allclose(mcnemar_test(a, b).p_value, tail, rtol=1e-12)
    np.testing.assert_allclose(mcnemar_test(a, b), paired_test(a, b), rtol=1e-12)
    assert mcnemar_test([1, 0], [1, 0]) == (0.0, 1.0)
    with pytest.raises(ValueError, match=r"0 or 1. Got 0.5 for object 1; use paired_test"):
        mcnemar_test([1, 0.5], [1, 0])
    with pytest.raises(ValueError, match="'errors_b' must be finite"):
        mcnemar_test([1, 0], [1, np.nan])
    for wrong in ([["a"], ["b"]], [[10, 5], [3, 20]], ["exon", "intron"], None):
        with pytest.raises(ValueError, match=r"'errors_[ab]' must say of each object .* predicted != y"):
            mcnemar_test(wrong, [0, 1])


def test_tables_as_in_the_paper():
    rng = np.random.default_rng(3)
    repeats = rng.normal(0.3, 0.03, 15)
    methods = {"P": repeats, "FK": repeats + rng.normal(0, 0.02, 15), "TOP": repeats - rng.uniform(0.01, 0.04, 15)}
    table = compare_methods({"1-2": methods, "1|3": {name: values[::-1] for name, values in methods.items()}})
    assert table.pairs == [("P", "FK"), ("P", "TOP"), ("FK", "TOP")]
    assert table.t.shape == table.wilcoxon.shape == (3, 2)
    for i, (first, second) in enumerate(table.pairs):
        np.testing.assert_allclose(table.t[i, 0], t_test(methods[first], methods[second]).p_value, rtol=1e-12)
        np.testing.assert_allclose(
            table.wilcoxon[i], wilcoxon_test(methods[first], methods[second]).p_value, rtol=1e-12
        )
        np.testing.assert_allclose(table.differences[i, 0], (methods[first] - methods[second]).mean(), rtol=1e-9)
    assert table.wilcoxon[1, 0] == 2.0**-14  # 6.1e-5, as printed in table 2
    lines = repr(table).splitlines()
    assert lines[0].split() == ["methods", "test", "1-2", "1|3"]
    assert lines[6].split() == ["WX", "6.1e-05**", "6.1e-05**"]
    page = table.markdown().splitlines()
    assert page[0] == r"| methods | test | 1-2 | 1\|3 |"
    assert page[7] == r"|  | WX | 6.1e-05\*\* | 6.1e-05\*\* |"
    apart = compare_methods({"a": [0.1, 0.2, 0.3], "b": [0.5, 0.6]}, paired=False)
    assert apart.wilcoxon is None
    assert "WX" not in repr(apart)


def test_wrong_results_are_refused():
    with pytest.raises(ValueError, match=r"t_test: expected results .* Got 3 and 2"):
        t_test([1, 2, 3], [1, 2])
    with pytest.raises(ValueError, match="wilcoxon_test: expected at least two"):
        wilcoxon_test([1], [1])
    with pytest.raises(TypeError, match="dict of results"):
        compare_methods([[1, 2], [2, 3]])
    with pytest.raises(ValueError, match=r"same methods, at least two: a, b. Got a in 'y'"):
        compare_methods({"x": {"a": [1, 2], "b": [1, 3]}, "y": {"a": [1, 2]}})
