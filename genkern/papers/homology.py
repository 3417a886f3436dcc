"""Jaakkola & Haussler (1999), section 5: remote homology of proteins, hidden Markov models and their Fisher kernels."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from genkern import Kernel, LocalAlignment, read, recipes, roc50_score
from genkern.papers import homology_page as page
from genkern.papers import homology_recipe as sums
from genkern.papers.homology_kernels import (
    VARIANTS,
    Models,
    left_out_together,
    lengths_of,
    machine,
    machine_scores,
)
from genkern.papers.shared.report import Report
from genkern.papers.shared.study import Study

CHOSEN_ON = (3, 8, 14, 16, 23, 30, 34, 50)  # of eight superfamilies: settings are compared in their training parts
WHOLE = (13, 22, 27)  # with few training sequences: the whole recipe is fitted to these
QUICK, QUICK_CHOSEN_ON = (8, 14), (50,)
LOG_ODDS = {
    "HMM, 5 states": "5 states",
    "HMM, 10 states": "10 states",
    "HMM, 20 states": "20 states",
    "HMM, left-right": "left-right",
}
RECIPE, RECIPE_SVM = "recipe", "recipe's kernel, SVM"


class Domains(NamedTuple):
    """All sequences, with the names of their SCOP families, and the 54 divisions of them."""

    X: list[str]
    families: NDArray[np.str_]
    membership: NDArray[np.int8]
    targets: list[str]


class Task(NamedTuple):
    """The sequences of one division, by number: training and test, positive and negative."""

    train_positive: NDArray[np.int64]
    train_negative: NDArray[np.int64]
    test_positive: NDArray[np.int64]
    test_negative: NDArray[np.int64]

    def rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return training and test sequences, positives first."""
        return np.concatenate(self[:2]), np.concatenate(self[2:])


def report(study: Study) -> Report:
    """Run the experiment."""
    folder = str(study.folder("scop153"))
    targets = domains(folder).targets
    shown, inner, whole = (
        (QUICK, QUICK_CHOSEN_ON, ()) if study.quick else (tuple(range(len(targets))), CHOSEN_ON, WHOLE)
    )
    models = study.map(_part, {targets[i]: (folder, i, False, study.quick) for i in shown})
    inside = study.map(_part, {f"within {targets[i]}": (folder, i, True, study.quick) for i in inner})
    ours = {
        how: study.map(_recipe_part, {f"{how}, {targets[i]}": (folder, i, how, study.quick) for i in shown})
        for how in (RECIPE_SVM, RECIPE)
    }
    ranked = study.map(_homology_part, {f"homology, {targets[i]}": (folder, i, study.quick) for i in shown})
    alone = study.map(_whole_recipe, {f"whole recipe, {targets[i]}": (folder, i) for i in whole})
    inductive = study.map(_whole_homology, {f"whole homology, {targets[i]}": (folder, i) for i in whole})
    within = {targets[i]: inside[f"within {targets[i]}"] for i in inner}
    recipe = {name: {how: ours[how][f"{how}, {name}"] for how in ours} for name in models}
    found = page.with_choices({name: {**models[name], **recipe[name]} for name in models}, within)
    tables = [
        page.summary(found),
        page.test_table(found),
        page.variants_table(found, within),
        page.shift_table(found),
    ]
    parts = {name: ranked[f"homology, {name}"] for name in models}
    if whole:
        tables.append(page.whole_table(found, {targets[i]: alone[f"whole recipe, {targets[i]}"] for i in whole}))
    tables += [sums.parts_table(parts), sums.parts_tests(parts)]
    if whole:
        own = {targets[i]: inductive[f"whole homology, {targets[i]}"] for i in whole}
        tables.append(sums.inductive_table(parts, own))
    caption = "Families over the ROC50 that they reach at least, and the ROC50 of both nested choices in each family."
    title = "Remote homology: hidden Markov models, their Fisher kernels, and a recipe"
    source = (
        "Jaakkola & Haussler (1999), Exploiting generative models in discriminative classifiers, section 5, figure "
        "1 c; on the benchmark of Liao & Noble (2003)."
    )
    figures = {caption: page.curves(found)}
    return Report(study.name, title, source, page.PROTOCOL, tables, page.FINDINGS, figures, study.quick)


# --- the data


@cache
def domains(folder: str) -> Domains:
    """Return the sequences and their divisions."""
    data = read(Path(folder) / "scop153.fasta.gz", label=r" (\d+\.\d+\.\d+\.\d+)\.")
    with np.load(Path(folder) / "membership.npz", allow_pickle=False) as table:
        membership, targets = table["membership"], [str(name) for name in table["families"]]
    return Domains(list(data.X), np.array([str(name) for name in data.y]), membership, targets)


def outer_task(data: Domains, index: int, quick: bool = False) -> Task:
    """Return the division of a family; a quick one has every twentieth of the negatives."""
    own = data.membership[:, index]
    parts = [np.flatnonzero(own == code) for code in (1, 2, 3, 4)]
    step = 20 if quick else 1
    return Task(parts[0], parts[1][::step], parts[2], parts[3][::step])


def inner_task(data: Domains, task: Task) -> Task:
    """Return a division of the training part: a family and a third of the folds are held out.

    The family is the largest that has at most half of the positives.
    """
    positive, negative = task.train_positive, task.train_negative
    names, sizes = np.unique(data.families[positive], return_counts=True)
    held = names[np.argmax(np.where(2 * sizes <= len(positive), sizes, 0))]
    folds = np.array([name.rsplit(".", 2)[0] for name in data.families[negative]])
    kinds = np.random.default_rng(0).permutation(np.unique(folds))
    out = np.isin(folds, kinds[: len(kinds) // 3])
    own = data.families[positive] == held
    return Task(positive[~own], negative[~out], positive[own], negative[out])


def quality(task: Task, scores: NDArray[np.float64]) -> list[float]:
    """Return ROC50 and ROC of the scores of test positives and negatives."""
    y = np.repeat([1, 0], [len(task.test_positive), len(task.test_negative)])
    return [float(roc50_score(y, scores)), float(roc_auc_score(y, scores))]


# --- one family


def _part(folder: str, index: int, inner: bool, quick: bool) -> dict[str, Any]:
    """Return ROC50 and ROC of all methods but the recipe, for one family or for a division of its training part."""
    data = domains(folder)
    task = outer_task(data, index, quick)
    task = inner_task(data, task) if inner else task
    known, fresh = task.rows()
    X, Z = [data.X[i] for i in known], [data.X[i] for i in fresh]
    models = Models(X, Z, (len(task.train_positive), len(task.test_positive)), data.families[known])
    found = {"length": quality(task, models.length_scores())}
    for name, kind in LOG_ODDS.items():
        odds = models.log_odds(kind)
        found[name] = quality(task, odds)
        found[f"{name}, per residue"] = quality(task, odds / lengths_of(Z))
    found["HMM, left-right, reversed null"] = quality(task, models.reversed_odds("left-right"))
    for name, variant in VARIANTS.items():
        found[name] = quality(task, machine_scores(models, variant))
    return {**found, "shift": models.shift(), "positives": len(task.train_positive)}


# --- the recipe


@cache
def _features(folder: str) -> NDArray[np.float64]:
    """Return the inner products of the features of ``recipes.symbols`` of all sequences, which no label enters."""
    features = recipes.symbols("protein")[:-1].fit_transform(domains(folder).X)
    return np.asarray(features @ features.T)


@cache
def _similarities(folder: str) -> Kernel:
    """Return the similarities by alignment of all sequences."""
    return sums.similarities(domains(folder).X)


def _symbols(folder: str, task: Task, quick: bool) -> tuple[NDArray[np.float64], ...]:
    """Return the inner products of training and test sequences and of these; quick ones are of few words."""
    known, fresh = task.rows()
    if quick:  # of the sequences of this division only
        X = domains(folder).X
        words = recipes.symbols("protein", n_lags=2, n_gaps=1, table=None)[:-1]
        features = words.fit_transform([X[i] for i in (*known, *fresh)])
        G = features @ features.T
        known, fresh = np.arange(len(known)), np.arange(len(known), len(G))
    else:
        G = _features(folder)
    return G[np.ix_(known, known)], G[np.ix_(fresh, known)], G[fresh, fresh]


def _recipe_part(folder: str, index: int, how: str, quick: bool) -> list[float]:
    """Return ROC50 and ROC of the recipe, or of a support vector machine with its kernel."""
    task = outer_task(domains(folder), index, quick)
    within, across, own = _symbols(folder, task, quick)
    squares, ridge = within.diagonal().copy(), recipes.symbols("protein")[-1]
    within, across = (
        np.exp(-ridge.kernel.gamma * np.maximum(squares + others[:, None] - 2.0 * part, 0.0))
        for part, others in ((within, squares), (across, own))
    )
    y = np.arange(len(within)) < len(task.train_positive)
    learner = clone(ridge).set_params(kernel="precomputed") if how == RECIPE else machine()
    return quality(task, learner.fit(within, y).decision_function(across))


def _homology_part(folder: str, index: int, quick: bool) -> dict[str, list[float]]:
    """Return ROC50 and ROC of ``recipes.homology``, and of its parts."""
    data = domains(folder)
    task = outer_task(data, index, quick)
    known, fresh = task.rows()
    y = np.arange(len(known)) < len(task.train_positive)
    groups = left_out_together(y, data.families[known])
    parts = [data.X[i] for i in known], [data.X[i] for i in fresh]
    similar = LocalAlignment(logarithm=True).normalized() if quick else _similarities(folder)
    symbols = sums.Products(*_symbols(folder, task, quick)[:2])
    found, bits = sums.products(parts, y, groups, symbols, similar)
    areas = {name: quality(task, sums.ranking(found, y, names)) for name, names in sums.ALONE.items()}
    return {sums.ODDS_ALONE: quality(task, bits)} | areas


def _whole_homology(folder: str, index: int) -> list[float]:
    """Return ROC50 and ROC of ``recipes.homology``, all of it fitted to the training sequences only."""
    data = domains(folder)
    task = outer_task(data, index)
    known, fresh = task.rows()
    y = np.arange(len(known)) < len(task.train_positive)
    groups = left_out_together(y, data.families[known])
    learner = recipes.homology().fit([data.X[i] for i in known], y, groups=groups)
    return quality(task, learner.decision_function([data.X[i] for i in fresh]))


def _whole_recipe(folder: str, index: int) -> list[float]:
    """Return ROC50 and ROC of the recipe, all of it fitted to the training sequences only."""
    data = domains(folder)
    task = outer_task(data, index)
    known, fresh = task.rows()
    y = np.arange(len(known)) < len(task.train_positive)
    learner = recipes.symbols("protein").fit([data.X[i] for i in known], y)
    return quality(task, learner.decision_function([data.X[i] for i in fresh]))
