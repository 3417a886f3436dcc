"""The homology experiment's part about ``recipes.homology``: its parts alone, and their sum."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from genkern import Kernel, LocalAlignment, recipes
from genkern.evaluation import wilcoxon_test
from genkern.kernels import NotPositiveWarning
from genkern.papers.shared.report import Table

Floats = NDArray[np.float64]
ODDS_ALONE, WHOLE_SUM = "log-odds of a profile", "homology"
ALONE = {
    "Fisher scores of the profile": ("scores",),
    "local alignments": ("alignment",),
    "symbols": ("symbols",),
    "symbols and alignments": ("symbols", "alignment"),
    WHOLE_SUM: ("symbols", "alignment", "scores", "odds"),
}


class _Known(Kernel):
    """A kernel between some sequences whose values are known.

    Parameters
    ----------
    X : list of n str
    values : array of shape (n, n)
    """

    def __init__(self, X: Sequence[str], values: Any):
        self.X = X
        self.values = values

    def prepare(self, X: Any) -> NDArray[np.int64]:
        """Return the numbers of sequences."""
        place = {x: i for i, x in enumerate(self.X)}
        return X if isinstance(X, np.ndarray) else np.array([place[x] for x in X])

    def _values(self, X: Any, Y: Any) -> Floats:
        return np.asarray(self.values[np.ix_(X, X if Y is None else Y)], np.float64)

    def _values_diag(self, X: Any) -> Floats:
        return np.asarray(self.values[X, X], np.float64)


class Products(NamedTuple):
    """Inner products of training sequences (n, n), and of test and training sequences (m, n)."""

    within: Floats
    across: Floats

    def unit(self) -> Products:
        """Return them with a centred trace of one on average over the training sequences."""
        trace = float(self.within.diagonal().mean() - self.within.mean())
        return Products(self.within / trace, self.across / trace)


def similarities(X: list[str]) -> Kernel:
    """Return a kernel of these sequences whose values are computed once: similarities by alignment, normalised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPositiveWarning)
        return _Known(X, LocalAlignment(logarithm=True)(X)).normalized()


def products(
    parts: tuple[list[str], list[str]], y: Any, groups: Any, symbols: Products, similar: Kernel
) -> tuple[dict[str, Products], Floats]:
    """Return the inner products of all parts of the recipe, and the log-odds of the test sequences.

    Parameters
    ----------
    parts : tuple of list of str
        Training and test sequences.
    y, groups : arrays of shape (n,)
        Whether training sequences are positive, and what is left out together.
    symbols : Products
        Those of the features of ``recipes.symbols("protein")``.
    similar : Kernel
        Similarities by alignment.
    """
    X, Z = parts
    steps = dict(recipes.homology()["kernels"].transformer_list)
    steps["alignment"].set_params(landmarks__kernel=similar)
    found = {"symbols": symbols.unit()}
    for name in ("alignment", "scores", "odds"):
        given = {} if name == "alignment" else {f"{steps[name].steps[0][0]}__groups": groups}
        known = steps[name].fit_transform(X, y, **given)
        new = steps[name].transform(Z)
        found[name] = Products(known @ known.T, new @ known.T)
    return found, steps["odds"].named_steps["bits"].transform(Z)[:, 0]


def ranking(found: Mapping[str, Products], y: Any, names: Sequence[str]) -> Floats:
    """Return the decisions about test sequences by the sum of some parts, as ``recipes.homology`` makes them."""
    recipe = recipes.homology()
    own = recipe["kernels"].transformer_weights
    weights = [own.get(name, 1.0) ** 2 for name in names]
    within, across = (np.sum([w * found[name][k] for w, name in zip(weights, names)], axis=0) for k in range(2))
    total, (C,) = sum(weights), recipe["svm"].Cs
    machine = SVC(C=C, kernel="precomputed", cache_size=500).fit(within / total, y)
    return np.asarray(machine.decision_function(across / total))


def parts_table(found: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return the areas of the parts of the recipe, and of their sum."""
    rows = []
    for name in [ODDS_ALONE, *ALONE]:
        values = np.array([own[name] for own in found.values()])
        means, deviations, medians = values.mean(axis=0), values.std(axis=0, ddof=1), np.median(values, axis=0)
        cells = [text for k in (0, 1) for text in (f"{means[k]:.3f} ± {deviations[k]:.3f}", f"{medians[k]:.3f}")]
        rows.append([name, *cells, int((values[:, 0] >= 0.5).sum())])
    caption = (
        f"`recipes.homology`, its parts, each alone, and sums of some: as in the first table, over {len(found)} "
        "families."
    )
    return Table(caption, ["method", "ROC50", "median", "ROC", "median", "families"], rows)


def parts_tests(found: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return Wilcoxon's tests of the recipe against its parts."""
    rows = []
    for other in [ODDS_ALONE, *(name for name in ALONE if name != WHOLE_SUM)]:
        a, b = (np.array([own[name] for own in found.values()]) for name in (WHOLE_SUM, other))
        tests = [wilcoxon_test(a[:, k], b[:, k]) for k in (0, 1)]
        cells = [text for test in tests for text in (f"{test.difference:+.3f}", f"{test.p_value:.2g}")]
        wins = f"{(a[:, 0] > b[:, 0]).sum()} : {(a[:, 0] < b[:, 0]).sum()}"
        rows.append([f"{WHOLE_SUM} − {other}", *cells, wins])
    caption = "The same against its parts, as in the second table."
    return Table(caption, ["methods", "ROC50", "p", "ROC", "p", "families"], rows)


def inductive_table(found: Mapping[str, Mapping[str, Any]], alone: Mapping[str, Sequence[float]]) -> Table:
    """Return the recipe with kernels of symbols of all sequences, and of training sequences only."""
    rows = [
        [family, *(f"{value:.3f}" for value in (*found[family][WHOLE_SUM], *areas))] for family, areas in alone.items()
    ]
    caption = (
        "`recipes.homology` with the scales and mixtures of its kernels of symbols fitted to all sequences, without "
        "labels, as in the other tables, and with all of it fitted to the training sequences."
    )
    return Table(caption, ["family", "ROC50, shared", "ROC, shared", "ROC50, own", "ROC, own"], rows)
