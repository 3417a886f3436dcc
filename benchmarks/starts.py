"""``python -m benchmarks.starts``: how warm first guesses of mixtures should be, by held-out likelihood, not by labels.

Training parts of public sets (whole sets, where there is no test part) are halved three times. Mixtures, and left-right
hidden Markov models whose states are mixtures, are fitted to one half from first guesses of several temperatures (see
``soften``), and their log-likelihood per point of the other half is compared: the mean rank among the temperatures over
all fits of a set, the median gain over the hard guess, and the share of fits with a component that collapsed, as
``fit`` warns. All three are then averaged over sets. No label and no test part is looked at. Six minutes on one core.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn import datasets

from benchmarks.league.contest import SHARED, series_of, splits
from genkern import GaussianEstimator, HMMEstimator, MixtureEstimator, Windows
from genkern.models.mixture import start as mixture_start
from genkern.models.mixture.start import soften

SERIES = {
    "OSULeaf": "ts_sets/OSULeaf.npz",
    "ArrowHead": "ts_sets/ArrowHead.npz",
    "BasicMotions": "ts_sets/BasicMotions.npz",
    "Libras": "ts_sets/Libras.npz",
    "FSDD": "fsdd/fsdd_mfcc13.npz",
    "JapaneseVowels": "embed/japanese_vowels.npz",
    "PLAID": "unseen/PLAID.npz",
    "ItalyPowerDemand": "unseen/ItalyPowerDemand.npz",
    "ASLWords": "unseen/ASLWords.npz",
}
POINTS = ("iris", "wine", "digits", "breast_cancer")
SEEDS = range(3)
SIZES = 300, 2000, 8000  # points, about, of a half
WIDTHS = 1, 5
# Temperatures, as shares of the squared distance from a centre over all d channels, of k clusters of n points.
RULES: dict[str, Callable[[int, int, int], float]] = {
    "hard": lambda d, k, n: 1e-9,
    "distance": lambda d, k, n: 1.0,
    "variance": lambda d, k, n: 1.0 / d,
    "root": lambda d, k, n: d**-0.5,
    "crowding": lambda d, k, n: max(1.0 / d, d * k / (n + d * k)),
}


def tempered(rule: Callable[[int, int, int], float]) -> Callable[..., NDArray[np.float64]]:
    """Return ``soften`` with the temperature of a rule: shares to the power of one by its share."""

    def softened(values: Any, groups: Any, labels: Any, k: int) -> NDArray[np.float64]:
        warm = soften(values, groups, labels, k)
        powers = (warm / warm.max(axis=1, keepdims=True)) ** (1.0 / rule(values.shape[1], k, int((labels >= 0).sum())))
        return powers / powers.sum(axis=1, keepdims=True)

    return softened


def training_series(name: str, path: str) -> list[Any]:
    """Return the training part of a set; where it has none, that of the first fold of the league."""
    X, _, table = series_of(path)
    rows = np.flatnonzero(table["split"] == "train") if "split" in table else splits(f"ts_{name}")[0][0]
    return [X[i] for i in rows]


def halves(X: list[Any], size: int, seed: int) -> list[list[Any]]:
    """Return two disjoint random parts of about so many points each, or of half the objects if there are fewer."""
    order = np.random.default_rng(seed).permutation(len(X))
    parts = []
    for part in np.array_split(order, 2):
        ends = np.cumsum([len(X[i]) for i in part])
        parts.append([X[i] for i in part[: max(3, int(np.searchsorted(ends, size)) + 1)]])
    return parts


def pairs(X: list[Any], series: bool) -> Iterator[tuple[Any, Any]]:
    """Yield what is fitted and what is held out, as points and, of series, as short windows, in standard units."""
    for seed in SEEDS:
        for size in SIZES:
            A, B = halves(X, size, seed)
            for width in WIDTHS if series else WIDTHS[:1]:
                windows = Windows(widths=width).fit(A)
                yield windows.transform(A), windows.transform(B)
            if len(A) == len(X) // 2:
                break  # there is no larger half


def estimators(series: bool) -> Iterator[tuple[str, Any]]:
    """Yield what is fitted: few steps with the floor of ``recipes.series``, and to the end with the default one."""
    for pace, limits, floor in (("20 steps", {"max_iter": 20, "tol": 0}, 1e-2), ("converged", {}, 0.0)):
        gaussian = GaussianEstimator(min_covar=floor)
        for k in (8, 32):
            yield f"mixture {k}, {pace}", MixtureEstimator(k, gaussian, **limits)
        if series:
            yield f"chain, {pace}", HMMEstimator(5, MixtureEstimator(4, gaussian), structure="left-right", **limits)


def held_out(X: list[Any], series: bool) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield the log-likelihood per point held out, and whether a component collapsed, (2, rules), of fits to a set."""
    for A, B in pairs(X, series):
        for kind, estimator in estimators(series):
            found = []
            for rule in RULES.values():
                mixture_start.soften = tempered(rule)
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    model = estimator.fit(A).model_
                collapsed = any("rests on an effective number" in str(one.message) for one in caught)
                found.append((model.log_prob(B).sum() / sum(len(x) for x in B), collapsed))
            yield kind, np.transpose(found)


def table(title: str, groups: dict[str, list[NDArray[np.float64]]]) -> None:
    """Print mean ranks (1 is best), median gains over the hard guess and collapsed fits, of every group and of all."""
    print(f"\n{title:18}" + "".join(f"{name + ' (rank gain %)':>24}" for name in RULES))
    rows = []
    for name, fits in groups.items():
        values, collapsed = np.moveaxis(np.array(fits), 1, 0)
        ranks = rankdata(-values.round(6), axis=1).mean(axis=0)
        rows.append(np.stack([ranks, np.median(values - values[:, :1], axis=0), 100.0 * collapsed.mean(axis=0)]))
        print(f"{name:18}" + "".join(f"{r:11.2f}{g:+8.3f}{c:5.0f}" for r, g, c in rows[-1].T), flush=True)
    print(f"{'mean':18}" + "".join(f"{r:11.2f}{g:+8.3f}{c:5.0f}" for r, g, c in np.mean(rows, axis=0).T))
    ranks = np.array(rows)[:, 0]
    gaps = ranks - ranks[:, [int(np.argmin(ranks.mean(axis=0)))]]
    errors = gaps.std(axis=0, ddof=1) / len(gaps) ** 0.5 if len(gaps) > 1 else np.full(len(RULES), np.nan)
    print(f"{'rank from best':18}" + "".join(f"{g:11.2f} ± {e:4.2f}      " for g, e in zip(gaps.mean(axis=0), errors)))


def main() -> None:
    sets = {name: (training_series(name, path), True) for name, path in SERIES.items() if (SHARED / path).exists()}
    for name in POINTS:
        sets[name] = ([x[None] for x in getattr(datasets, f"load_{name}")().data], False)
    by_set, by_kind = defaultdict(list), defaultdict(list)
    for name, (X, series) in sets.items():
        for kind, values in held_out(X, series):
            by_set[name].append(values)
            by_kind[kind].append(values)
        print(f"{name}: {len(by_set[name])} fits of each rule", flush=True)
    table("sets", by_set)
    table("models", by_kind)


if __name__ == "__main__":
    main()
