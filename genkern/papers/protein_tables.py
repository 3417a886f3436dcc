"""Tables of the experiment on protein classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from genkern.evaluation import t_test, wilcoxon_test
from genkern.papers.shared.report import Table, percent, starred

METHODS = ("P", "FK", "TOP")
COLUMNS = {"paper": "as the paper", "nested": "nested"}
# Table 2 of Tsuda et al.: T and WX of the six pairs.
PAPER = {
    ("P", "FK"): (
        ("0.95", "0.14", "0.78", "0.0032**", "0.79", "0.12"),
        ("0.85", "0.041*", "0.24", "0.0040**", "0.80", "0.026*"),
    ),
    ("P", "TOP"): (
        ("0.015*", "1.7e-08**", "0.11", "3.0e-12**", "0.059", "5.3e-05**"),
        ("4.3e-04**", "6.1e-05**", "0.030*", "6.1e-05**", "0.035*", "3.1e-04**"),
    ),
    ("FK", "TOP"): (
        ("0.0093**", "2.2e-04**", "0.21", "2.6e-08**", "0.079", "0.0031**"),
        ("8.5e-04**", "6.1e-05**", "0.048*", "6.1e-05**", "0.0034**", "1.8e-04**"),
    ),
}

Splits = Sequence[Mapping[str, Any]]


def errors_table(splits: Splits, pairs: Sequence[str]) -> Table:
    """Return the errors of all methods, with the threshold set in both ways."""
    rows = []
    for how, name in COLUMNS.items():
        for method in METHODS:
            cells = [[split[pair][method][how] for split in splits] for pair in pairs]
            rows.append([name, method, *map(percent, cells), f"{100 * np.mean(cells):.1f}"])
    caption = (
        "Test errors in per cent, ± standard deviation over splits. P: plug-in hidden Markov models. The paper prints "
        "no figures of these."
    )
    return Table(caption, ["threshold", "method", *pairs, "mean"], rows)


def tests_table(splits: Splits, pairs: Sequence[str]) -> Table:
    """Return the tests of all pairs of methods beside the paper's."""
    rows: list[list[str]] = []
    for (a, b), (paper_t, paper_wx) in PAPER.items():
        rows.append([f"{a}, {b}", "T, paper", *paper_t])
        rows.append(["", "WX, paper", *paper_wx])
        for how, name in COLUMNS.items():
            x, y = ([[split[pair][method][how] for split in splits] for pair in pairs] for method in (a, b))
            rows.append(["", f"difference, {name}", *(f"{100 * (np.mean(p) - np.mean(q)):+.1f}" for p, q in zip(x, y))])
            for paired, kind in ((False, "independent"), (True, "pairs")):
                values = [starred(t_test(p, q, paired=paired).p_value) for p, q in zip(x, y)]
                rows.append(["", f"T, {kind}, {name}", *values])
            rows.append(["", f"WX, {name}", *(starred(wilcoxon_test(p, q).p_value) for p, q in zip(x, y))])
    caption = (
        "P-values; one star below 0.05, two below 0.01. T is the t-test, of two independent samples and of pairs; WX "
        "is Wilcoxon's signed rank test. Differences are those of the mean errors, in per cent. Splits share "
        "objects, so all p-values are too small."
    )
    return Table(caption, ["methods", "test", *pairs], rows)


def odds_table(splits: Splits, pairs: Sequence[str]) -> Table:
    """Return how certain and how right the posteriors are that weight the scores of the Fisher kernel."""
    names = {
        "train": "errors of the posterior, training part",
        "test": "errors of the posterior, test part",
        "decided": "posteriors beyond 1 % and 99 %, test part",
    }
    rows = [[name, *(percent([split[pair]["odds"][key] for split in splits]) for pair in pairs)]
            for key, name in names.items()]  # fmt: skip
    return Table("The posterior of the chosen models, at a threshold of 1/2, in per cent.", ["share", *pairs], rows)


def variants_table(splits: Splits, pairs: Sequence[str]) -> Table:
    """Return the equal error rates of other features, on some of the splits."""
    rows = []
    for name in splits[0][pairs[0]]["variants"]:
        cells = [[split[pair]["variants"][name] for split in splits] for pair in pairs]
        separation = np.mean([[one["separation"] for one in cell] for cell in cells])
        rows.append([name, *_means([[one["paper"] for one in cell] for cell in cells]), f"{separation:.3f}"])
    caption = (
        f"Other features, on the first {len(splits)} of the splits: equal error rates on the test part in per cent, "
        "threshold as in the paper. The separation is the squared difference of the class means of a feature in "
        "standard deviations, on the test part, a mean over features."
    )
    return Table(caption, ["features", *pairs, "mean", "separation"], rows)


def models_table(splits: Splits, pairs: Sequence[str]) -> Table:
    """Return the equal error rates with other models than the chosen ones, on some of the splits."""
    rows = []
    for name in splits[0][pairs[0]]["models"]:
        for method in METHODS:
            cells = [[split[pair]["models"][name][method] for split in splits] for pair in pairs]
            rows.append([name if method == "P" else "", method, *_means(cells)])
    caption = (
        "The number of states and other runs of EM, with a pseudocount of 0.01, on the first "
        f"{len(splits)} of the splits: equal error rates on the test part in per cent."
    )
    return Table(caption, ["states", "method", *pairs, "mean"], rows)


def sets_table(found: Mapping[str, Splits], pairs: Sequence[str]) -> Table:
    """Return the equal error rates of other sets of domains and other ways to divide them."""
    rows = []
    for how, splits in found.items():
        for method in METHODS:
            cells = [[split[pair][method]["paper"] for split in splits] for pair in pairs]
            rows.append([how if method == "P" else "", method, *_means(cells)])
    caption = (
        f"Related domains: {len(next(iter(found.values())))} splits of each kind, equal error rates on the test part "
        "in per cent."
    )
    return Table(caption, ["domains", "method", *pairs, "mean"], rows)


def choices_table(splits: Splits, pairs: Sequence[str]) -> Table:
    """Return which settings were chosen how often."""
    rows: list[list[str]] = []
    for name in ("states", "pseudocount"):
        rows.append([name, *(_counts([split[pair][name] for split in splits]) for pair in pairs)])
    for method in ("FK", "TOP"):
        rows.append([f"C of {method}", *(_counts([split[pair][method]["C"] for split in splits]) for pair in pairs)])
    return Table("What was chosen, and in how many splits.", ["setting", *pairs], rows)


def steps_table(fits: Sequence[Any], first: float) -> Table:
    """Return how many steps EM took over all classes and splits, from its start and from the last pseudocount."""
    rows = []
    every = [fit for split in fits for fit in split]
    for states in sorted({fit[0] for fit in every}):
        own = [fit for fit in every if fit[0] == states]
        begun, further = ([fit[2] for fit in own if (fit[1] == first) == whole] for whole in (True, False))
        left = sum(not fit[3] for fit in own)
        rows.append([str(states), *(f"{np.median(steps):.0f} ({max(steps)})" for steps in (begun, further)), str(left)])
    caption = "Steps of EM over all classes and splits, the median and in brackets the most."
    columns = ["states", f"pseudocount {first:g}, from the start", "smaller ones, from the last", "not converged"]
    return Table(caption, columns, rows)


def _counts(values: Sequence[float]) -> str:
    counts = sorted(Counter(values).items())
    return ", ".join(f"{value:.2g}: {count}" for value, count in counts)


def _means(cells: Sequence[Sequence[float]]) -> list[str]:
    """Return the mean of each cell, and that of all, in per cent."""
    return [*(f"{100 * np.mean(cell):.1f}" for cell in cells), f"{100 * np.mean(cells):.1f}"]
