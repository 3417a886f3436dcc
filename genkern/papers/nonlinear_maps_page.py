"""The tables and the picture of the experiment with nonlinear maps: settings chosen in two ways, and tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.evaluation import t_test, wilcoxon_test
from genkern.papers.shared.report import Table, percent

KERNELS = ("state space", "marginalized")
MAPS = ("power", "log", "logistic")
Setting = tuple[str, str, float | None]  # map, place, rho
Found = list[list[dict[str, Any]]]  # by repetition and fold
# Table I: original, power, log, logistic.
PAPER = {
    ("chain codes", "state space"): (0.751, 0.813, 0.753, 0.770),
    ("chain codes", "marginalized"): (0.775, 0.855, 0.829, 0.817),
    ("curvature", "state space"): (0.736, 0.807, 0.755, 0.780),
    ("curvature", "marginalized"): (0.767, 0.780, 0.776, 0.776),
    ("digits", "state space"): (0.798, 0.904, 0.838, 0.826),
    ("digits", "marginalized"): (0.533, 0.932, 0.901, 0.856),
}


def tables(found: Mapping[str, Found], settings: Sequence[Setting], costs: Sequence[float]) -> list[Table]:
    """Return Table I beside ours, the maps by place with tests, and the gain of the power at fixed C."""
    pairs = [(name, kernel) for name in found for kernel in KERNELS]
    main = [row for name, kernel in pairs for row in _main_rows(name, kernel, found[name], settings, costs)]
    tests = [row for name, kernel in pairs for row in _test_rows(name, kernel, found[name], settings)]
    fixed = [_fixed_row(name, kernel, found[name], settings, costs) for name, kernel in pairs]
    classes = [[name, percent([_mean(folds, lambda f: 1.0 - f["plug-in"]) for folds in found[name]])] for name in found]
    return [
        Table(
            "Accuracy in per cent, ± standard deviation over repetitions. The paper's figures are of the sets that "
            "ours stand in for.",
            ["set", "kernel", "map", "paper", "as the paper (best of the grid)", "nested", "setting of the best"],
            main,
        ),
        Table("Accuracy of the class models alone, the class of highest posterior.", ["set", "plug-in"], classes),
        Table(
            "Each map at each place, nested; its difference from the original in points, and p-values of paired tests.",
            ["set", "kernel", "map", "place", "nested", "difference", "t-test", "Wilcoxon"],
            tests,
        ),
        Table(
            "Original → power at its best place and ρ, as the paper, if C is not chosen.",
            ["set", "kernel", *[f"C = {C:g}" for C in costs]],
            fixed,
        ),
    ]


def chosen(settings: Sequence[Setting], name: str, place: str | None = None, rho: float | None = None) -> list[int]:
    """Return the indices of the settings of a map, of one place and one ρ if these are given."""
    return [i for i, (m, p, r) in enumerate(settings) if m == name and place in (None, p) and (rho is None or r == rho)]


def nested(repetitions: Found, kernel: str, rows: Sequence[int]) -> NDArray[np.float64]:
    """Return the accuracy of each repetition, settings and C chosen within each training part."""

    def accuracy(fold: dict[str, Any]) -> float:
        inner, test = (np.array(fold[kernel][part])[list(rows)] for part in ("inner", "test"))
        return float(1.0 - test.flat[int(inner.argmin())])

    return np.array([_mean(folds, accuracy) for folds in repetitions])


def tested(repetitions: Found, kernel: str, rows: Sequence[int]) -> NDArray[np.float64]:
    """Return accuracies (repetitions, rows, Cs) on the test parts."""
    return np.array([[1.0 - np.array(f[kernel]["test"])[list(rows)] for f in folds] for folds in repetitions]).mean(1)


def _mean(folds: Sequence[dict[str, Any]], value: Callable[[dict[str, Any]], float]) -> float:
    return float(np.mean([value(fold) for fold in folds]))


def _main_rows(
    name: str, kernel: str, repetitions: Found, settings: Sequence[Setting], costs: Sequence[float]
) -> list[list[Any]]:
    rows = []
    for column, map_ in enumerate(("original", *MAPS)):
        own = chosen(settings, map_)
        all_ = tested(repetitions, kernel, own)
        at, cost = np.unravel_index(int(all_.mean(axis=0).argmax()), all_.shape[1:])
        _, place, rho = settings[own[int(at)]]
        words = [] if map_ == "original" else [place]
        words += [] if rho is None else [f"ρ = {rho:g}"]
        printed = PAPER.get((name, kernel))
        rows.append(
            [
                name,
                kernel,
                map_,
                None if printed is None else f"{100 * printed[column]:.1f}",
                percent(all_[:, at, cost]),
                percent(nested(repetitions, kernel, own)),
                ", ".join([*words, f"C = {costs[int(cost)]:g}"]),
            ]
        )
    return rows


def _test_rows(name: str, kernel: str, repetitions: Found, settings: Sequence[Setting]) -> list[list[Any]]:
    plain = nested(repetitions, kernel, chosen(settings, "original"))
    rows = []
    for map_ in MAPS:
        for place in ("sum", "time"):
            mapped = nested(repetitions, kernel, chosen(settings, map_, place))
            t, ranks = t_test(mapped, plain), wilcoxon_test(mapped, plain)
            gain = f"{100 * t.difference:+.1f}"
            rows.append([name, kernel, map_, place, percent(mapped), gain, _p(t.p_value), _p(ranks.p_value)])
    return rows


def _fixed_row(
    name: str, kernel: str, repetitions: Found, settings: Sequence[Setting], costs: Sequence[float]
) -> list[Any]:
    plain = tested(repetitions, kernel, chosen(settings, "original")).mean(axis=0)[0]
    power = tested(repetitions, kernel, chosen(settings, "power")).mean(axis=0).max(axis=0)
    return [name, kernel, *[f"{100 * plain[c]:.1f} → {100 * power[c]:.1f}" for c in range(len(costs))]]


def _p(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"


def pictures(found: Mapping[str, Found], settings: Sequence[Setting]) -> dict[str, Any]:
    """Return accuracy over ρ, a panel for each kernel and set."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.1 * len(found), 5.6), layout="constrained")
    axes = figure.subplots(len(KERNELS), len(found), squeeze=False, sharex=True)
    styles = {("power", "sum"): "C0o--", ("power", "time"): "C0o-", ("logistic", "sum"): "C1s--"}
    styles[("logistic", "time")] = "C1s-"
    for row, kernel in zip(axes, KERNELS):
        for axis, (name, repetitions) in zip(row, found.items()):
            for (map_, place), style in styles.items():
                rhos = [settings[i][2] for i in chosen(settings, map_, place)]
                means = [100 * nested(repetitions, kernel, chosen(settings, map_, place, rho)).mean() for rho in rhos]
                fill = "full" if place == "time" else "none"
                axis.plot(rhos, means, style, markersize=4, fillstyle=fill, label=f"{map_}, {place}")
            flat = {"original": chosen(settings, "original"), "log, sum": chosen(settings, "log", "sum")}
            for (label, own), style in zip(flat.items(), ("k-", "C2:")):
                height = 100 * nested(repetitions, kernel, own).mean()
                axis.plot([0.02, 1.0], [height, height], style, linewidth=1, label=label)
            axis.set(xscale="log", title=f"{name}, {kernel}")
    for axis in axes[-1]:
        axis.set_xlabel("ρ")
    for axis in axes[:, 0]:
        axis.set_ylabel("accuracy, %")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    return {"Accuracy over ρ; C is chosen within training parts.": figure}
