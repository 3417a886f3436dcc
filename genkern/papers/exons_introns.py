"""Jebara, Kondor & Howard (2004), section 8.2: exons and introns, kernels between hidden Markov models and of words."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, train_test_split

from genkern import (
    RBF,
    FitEach,
    Linear,
    MarkovChainEstimator,
    PlugInClassifier,
    ProbabilityProduct,
    Spectrum,
    Store,
)
from genkern.papers.exons_introns_page import page
from genkern.papers.mean_map_sets import Place, Problem, problem
from genkern.papers.shared.grids import grid_errors, machine_grid_errors
from genkern.papers.shared.report import Report
from genkern.papers.shared.study import Study
from genkern.recipes import symbols

MAIN, CUT = ("DNA", "interior"), ("whole", "without ends")  # as mean_map_sets names them
LENGTHS, QUICK_LENGTHS = (7, 8, 9, 10, 11), (7, 9)
WORDS, QUICK_WORDS = (1, 2, 3, 4, 5), (1, 3)
ORDERS, QUICK_ORDERS = (0, 1, 2, 3, 4, 5), (0, 2)
CS, QUICK_CS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0), (1.0, 100.0)
RULES = ("length alone", "starts with GT", "starts with GT and ends with AG")
DRAWS, QUICK_DRAWS, INNER = 20, 3, 3


def report(study: Study) -> Report:
    """Run the experiment."""
    file, store = str(study.folder("exon_intron", "human.fasta.gz")), study.store("mean_map")
    found: dict[str, Any] = {}
    for which in (*MAIN, *CUT):
        place = Place(which, study.quick, file)
        parts = study.map(_part, {f"{which}: {name}": (place, name, store) for name in methods(which, study.quick)})
        found[which] = {key.partition(": ")[2]: part for key, part in parts.items()}
    return page(study, found, QUICK_CS if study.quick else CS)


def methods(which: str, quick: bool) -> list[str]:
    """Return the names of all methods on a set; interiors show neither lengths nor splice sites."""
    lengths, words, orders = (QUICK_LENGTHS, QUICK_WORDS, QUICK_ORDERS) if quick else (LENGTHS, WORDS, ORDERS)
    return [
        *(f"HMM kernel, T = {T}" for T in lengths if which in MAIN),
        *(["HMM kernel of 3 states, T = 9"] if which == "DNA" else []),
        *(f"words of {k}" for k in words),
        *(f"Markov plug-in, order {order}" for order in orders),
        *(["recipes.symbols"] if which == "interior" and not quick else []),
        *(RULES if which in ("DNA", "whole") else []),
    ]


def _part(place: Place, name: str, store: Store) -> list[dict[str, Any]]:
    """Return the errors of one method in all draws, as ``grid_errors`` has them."""
    here = problem(place)
    X, y = here.X, here.division.y
    Cs, draws = (QUICK_CS, QUICK_DRAWS) if place.quick else (CS, DRAWS)
    matrix = None if name.startswith(("Markov", "recipes", "starts")) else kernel_matrix(here, name, store)
    found = []
    for index in range(draws):
        train, test = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=index)
        if matrix is None:
            parts = ([X[i] for i in train], y[train]), ([X[i] for i in test], y[test])
            found.append(grid_errors(_rule(name), {}, *parts))
        else:
            parts = (matrix[np.ix_(train, train)], y[train]), (matrix[np.ix_(test, train)], y[test])
            folds = StratifiedKFold(INNER, shuffle=True, random_state=index)
            found.append(machine_grid_errors(*parts, Cs, folds))
    return found


def kernel_matrix(here: Problem, name: str, store: Store) -> Any:
    """Return a kernel between all objects by its name; that of models at T transitions is of T + 1 letters."""
    if name == "length alone":
        return RBF(gamma=1.0)(np.log([[len(x)] for x in here.X]))
    value = int(name.rpartition(" ")[2])
    if name.startswith("words"):
        return Linear()(Spectrum(value, "dna", normalize="l2").fit_transform(here.X))
    states = 3 if "of 3 states" in name else here.own
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # 1000 steps at most
        models = FitEach(here.hmm("ours", states), store).fit_transform(here.X)
    return ProbabilityProduct(1.0, length=value + 1).normalized()(models)


def _rule(name: str) -> Any:
    if name.startswith("Markov"):
        return PlugInClassifier(MarkovChainEstimator(int(name.rpartition(" ")[2]), alphabet="dna"))
    if name == "recipes.symbols":
        return symbols("dna")
    return _Ends("AG" if name.endswith("AG") else "")


class _Ends(ClassifierMixin, BaseEstimator):
    """The rule that an intron starts with GT, and ends with some letters; nothing is learnt.

    Parameters
    ----------
    end : str, default=""
        Last letters of introns.
    """

    def __init__(self, end: str = ""):
        self.end = end

    def fit(self, X: Any, y: Any) -> _Ends:
        """Return the rule."""
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        """Return the class of each sequence."""
        return np.array(["intron" if x.startswith("GT") and x.endswith(self.end) else "exon" for x in X])
