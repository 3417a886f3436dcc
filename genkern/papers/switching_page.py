"""The tables and the picture of the experiment with switching systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from genkern.evaluation import mcnemar_test, t_test, wilcoxon_test
from genkern.papers.shared.held_out import Division, HeldOut, choose_held_out
from genkern.papers.shared.report import Table, percent, starred

METHODS = ("RBF", "ML-LDS", "ML-SLDS", "LDS kernel", "SLDS kernel", "LDS kernel, plain")
KERNELS = METHODS[3:]
PAPER = {"RBF": 34, "ML-LDS": 35, "ML-SLDS": 30, "LDS kernel": 28, "SLDS kernel": 25}  # errors in per cent
PAIRS = (
    ("SLDS kernel", "LDS kernel"),
    ("SLDS kernel", "ML-SLDS"),
    ("SLDS kernel", "RBF"),
    ("LDS kernel", "ML-LDS"),
    ("LDS kernel", "RBF"),
    ("ML-SLDS", "ML-LDS"),
    ("LDS kernel", "LDS kernel, plain"),
)
Curves = dict[str, dict[tuple[int, float], list[float]]]  # by kernel, (T, ρ) and data set


def errors_table(chosen: Mapping[str, Sequence[HeldOut]]) -> Table:
    """Return the paper's errors beside ours, chosen in two ways."""
    rows = []
    for name, choices in chosen.items():
        best, nested = (
            [float(np.mean(part)) for part in parts] for parts in zip(*((c.best, c.nested) for c in choices))
        )
        settings = "; ".join(dict.fromkeys(_spelled(c.setting) for c in choices))
        rows.append([name, PAPER.get(name), percent(best), percent(nested), settings])
    return Table(
        "Leave-one-out errors in per cent, ± standard deviation over data sets. Last: the settings that are best on "
        "the data sets.",
        ["method", "paper", "as the paper (best of the grid)", "nested", "settings of the best"],
        rows,
    )


def _spelled(setting: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {value:.3g}" for name, value in setting.items())


def tests_table(chosen: Mapping[str, Sequence[HeldOut]]) -> Table:
    """Return tests of nested errors: paired over data sets, and over all series."""
    rows = []
    for first, second in PAIRS:
        a, b = ([float(c.missed.mean()) for c in chosen[name]] for name in (first, second))
        t, ranks = t_test(a, b), wilcoxon_test(a, b)
        series = mcnemar_test(*(np.concatenate([c.missed for c in chosen[name]]) for name in (first, second)))
        ours = f"{100 * t.difference:+.1f}"
        p_values = [starred(test.p_value) for test in (t, ranks, series)]
        paper = f"{PAPER[first] - PAPER[second]:+d}" if first in PAPER and second in PAPER else None
        rows.append([f"{first} − {second}", paper, ours, *p_values])
    return Table(
        "Differences of errors in per cent, nested, and p-values; one star below 0.05, two below 0.01. The t-test and "
        "Wilcoxon's are paired over data sets, McNemar's over all series as if they were independent.",
        ["methods", "paper", "ours", "t-test", "Wilcoxon", "McNemar"],
        rows,
    )


def curves(results: Sequence[Mapping[str, Any]], division: Division) -> Curves:
    """Return the errors of each T and ρ, C chosen within training parts."""
    found: Curves = {name: {} for name in KERNELS}
    for name in KERNELS:
        for row in (row for result in results for part in result[name] for row in part["rows"]):
            setting = row["settings"][0]
            error = float(choose_held_out([row], division).missed.mean())
            found[name].setdefault((setting["T"], setting["ρ"]), []).append(error)
    return found


def figure(found: Curves) -> Any:
    """Return errors over T for some ρ, and over ρ for some T."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(9.0, 4.8), layout="constrained")
    for axis, (along, other, name, label) in zip(
        drawn.subplots(1, 2, sharey=True), ((0, 1, "ρ", "steps T"), (1, 0, "T", "power ρ"))
    ):
        for kernel, style in zip(KERNELS[:2], ("--", "-")):
            points = found[kernel]
            lines: dict[Any, list[Any]] = {}
            for setting in sorted(points):
                lines.setdefault(setting[other], []).append((setting[along], 100 * np.mean(points[setting])))
            most = max(len(line) for line in lines.values())
            full = {value: line for value, line in lines.items() if len(line) == most}
            for color, (value, line) in enumerate(sorted(full.items())):
                x, y = zip(*line)
                axis.plot(x, y, f"C{color}o{style}", markersize=4, label=f"{kernel[:-7]}, {name} = {value:g}")
        axis.set_xlabel(label)
        axis.legend(frameon=False, fontsize="small", ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.14))
    drawn.axes[0].set_ylabel("error, per cent")
    drawn.axes[1].set_xscale("log")
    drawn.axes[0].set_xticks(sorted({T for points in found.values() for T, _ in points}))
    ticks = sorted({rho for points in found.values() for _, rho in points})
    drawn.axes[1].set_xticks(ticks, [f"{rho:g}" for rho in ticks], minor=False)
    drawn.axes[1].minorticks_off()
    return drawn
