"""The sets and methods of Mehta & Gray (2010), section 5: parts of work, each with all settings of one method."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from genkern import (
    RBF,
    CategoricalEstimator,
    EmpiricalMeanMap,
    FisherScore,
    FitEach,
    HMMEstimator,
    LatentMeanMap,
    Linear,
    MarkovChainEstimator,
    MeanMap,
    PlugInClassifier,
    ProbabilityProduct,
    Store,
    read,
)
from genkern.datasets import make_two_hmms
from genkern.papers.shared.held_out import Division, Matrix, divide, machine_errors

INF = float("inf")
STARTS = {"ours": "random", "the paper's": "viterbi"}  # of EM, by the names that HMMEstimator has for them
MARGIN, INTERIOR = 10, 80  # letters cut off at each end, and letters in the middle
Result = dict[str, Any]


class Place(NamedTuple):
    """Which set, how small, and where the file of exons and introns is.

    Parameters
    ----------
    name : str
        "synthetic" or "DNA"; "whole", "without ends" and "interior" are DNA of at least 100 letters, cut or not.
    quick : bool
        Whether it shall be small.
    file : str
        The file of exons and introns.
    """

    name: str
    quick: bool
    file: str = ""


class Problem(NamedTuple):
    """Objects, folds, and the models of a set.

    Parameters
    ----------
    X : list of str
        Objects.
    division : Division
        Labels and folds.
    alphabet : str
        Symbols.
    own : int or str
        States of a model of one object.
    classes : dict
        States of a model of each class; latent and Fisher kernels have that of the first.
    n_init : int
        Starts of EM of class models.
    tol : float
        When EM stops.
    """

    X: list[str]
    division: Division
    alphabet: str
    own: Any
    classes: dict[str, int]
    n_init: int
    tol: float

    def hmm(self, start: str, states: Any, n_init: int = 1) -> HMMEstimator:
        """Return an estimator."""
        symbols = CategoricalEstimator(alphabet=self.alphabet)
        return HMMEstimator(states, symbols, init=STARTS[start], n_init=n_init, tol=self.tol, random_state=0)


def problem(place: Place) -> Problem:
    """Return a set with its folds."""
    folds, inner = (3, 2) if place.quick else (10, 3)
    if place.name == "synthetic":
        data = make_two_hmms(n_per_class=40 if place.quick else 500)
        states = {"linger": 3, "hurry": 3}
        n_init, tol = (1, 1e-3) if place.quick else (3, 1e-6)
        return Problem(data.X, divide(data.y, folds, inner), "01", 3, states, n_init, tol)
    X, y = _exons_and_introns(place)
    tol = 1e-3 if place.quick else 1e-5
    return Problem(X, divide(y, folds, inner), "dna", "auto", {"exon": 4, "intron": 8}, 1, tol)


def _exons_and_introns(place: Place) -> tuple[list[str], Any]:
    """Return 500 exons at random and the 500 shortest introns; cut, where the name of the set says so."""
    data = read(place.file)
    lengths, labels = np.array([len(x) for x in data.X]), np.asarray(data.y)
    introns = np.flatnonzero(labels == "intron")
    introns = introns[np.argsort(lengths[introns], kind="stable")[:500]]
    exons = np.random.default_rng(0).choice(np.flatnonzero(labels == "exon"), 500, replace=False)
    kept = np.sort(np.concatenate([exons, introns]))
    if place.quick:
        kept = kept[(lengths[kept] >= 100) & (lengths[kept] < 400)][::4]
    if place.name != "DNA":
        kept = kept[lengths[kept] >= INTERIOR + 2 * MARGIN]
    cut: dict[str, Callable[[str], str]] = {
        "without ends": lambda x: x[MARGIN:-MARGIN],
        "interior": lambda x: x[(len(x) - INTERIOR) // 2 :][:INTERIOR],
    }
    return [cut.get(place.name, str)(data.X[i]) for i in kept], labels[kept]


def grids(quick: bool) -> dict[str, list[Any]]:
    """Return the settings that are tried."""
    if quick:
        return {"C": [1.0, 100.0], "lam": [1.0], "length": [10], "order": [1, 2], "nu": [10.0]}
    return {
        "C": [1.0, 10.0, 100.0, 1000.0],
        "lam": [0.01, 0.1, 1.0, 10.0],
        "length": [10, 20, 30],
        "order": [1, 2, 3, 4],
        "nu": [1.0, 10.0, 100.0, 1000.0],
    }


def generative(place: Place, model: Any, kernels: dict[str, Any], store: Store) -> list[Result]:
    """Return the errors of one kernel between models of the objects, ``{"lam": 1.0}`` or ``{"rho": 0.5}``.

    ``model`` names the start of EM, and perhaps the number of states, or is the order of a Markov chain.
    """
    here, grid = problem(place), grids(place.quick)
    if isinstance(model, int):
        estimator: Any = MarkovChainEstimator(model, alphabet=here.alphabet)
    else:
        start, states = model
        estimator = here.hmm(start, states or here.own)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # 1000 steps at most, as in the paper
        models = FitEach(estimator, store).fit_transform(here.X)
    kind = MeanMap if "lam" in kernels else ProbabilityProduct
    found = []
    for length in kernels.get("length", grid["length"]):
        value = kernels["lam"] if "lam" in kernels else kernels["rho"]
        logs = kind(value, length).log(models)
        setting = {"lam": value, "T": length} if "lam" in kernels else {"T": length}
        found.append(_errors(_cosines(logs), here, grid, setting))
        if kernels.get("raw"):
            found[-1] |= {"raw": _errors(np.exp(logs - logs.max()), here, grid, setting)}
    return found


def _cosines(logs: Matrix) -> Matrix:
    """Return normalised values from logs of kernel values."""
    halves = 0.5 * np.diag(logs)
    return np.minimum(np.exp(logs - halves[:, None] - halves), 1.0)


def empirical(place: Place, order: int) -> list[Result]:
    """Return the errors of the empirical mean map of one order."""
    here, grid = problem(place), grids(place.quick)
    found = []
    for lam in [*grid["lam"], INF]:
        features = EmpiricalMeanMap(order, lam, alphabet=here.alphabet).fit_transform(here.X)
        found.append(_errors(Linear().normalized()(features), here, grid, {"order": order, "lam": _shown(lam)}))
    return found


def latent(place: Place, start: str, store: Store, lams: Sequence[float] = (), nus: bool = True) -> list[Result]:
    """Return the errors of the latent mean map: over lambda, and over nu with an infinite lambda."""
    here, grid = problem(place), grids(place.quick)
    found = []
    for lam in [*(lams or grid["lam"]), INF]:
        features = _of_folds(here, start, lambda hmm, lam=lam: LatentMeanMap(hmm, lam, lam, store=store))  # type: ignore[misc]
        found.append(_errors(_each(Linear().normalized(), features), here, grid, {"lam": _shown(lam)}))
    for nu in grid["nu"] if nus else ():
        found.append(_errors(_each(Linear().exp(nu), features), here, grid, {"lam": "inf", "nu": nu}))
    return found


def fisher(place: Place, start: str, store: Store) -> list[Result]:
    """Return the errors of the Fisher kernel, with the information of the complete data and without any."""
    here, grid = problem(place), grids(place.quick)
    found = []
    for kind in ("complete", "identity"):
        features = _of_folds(here, start, lambda hmm, kind=kind: FisherScore(hmm, kind, store=store))  # type: ignore[misc]
        found.append(_errors(_each(Linear().normalized(), features), here, grid, {"information": kind}))
    return found


def bayes(place: Place, start: str) -> list[Result]:
    """Return the errors of Bayes' rule with a model of each class."""
    here = problem(place)
    models = {label: here.hmm(start, states, here.n_init) for label, states in here.classes.items()}
    y, lost = here.division.y, []
    for fold, test in enumerate(here.division.tests):
        train = here.division.train(fold)
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            rule = PlugInClassifier(models, "uniform").fit([here.X[i] for i in train], y[train])
        lost += test[rule.predict([here.X[i] for i in test]) != y[test]].tolist()
    return [{"settings": [{}], "wrong": [sorted(lost)], "inner": [[0.0] * len(here.division.tests)]}]


def lengths(place: Place) -> list[Result]:
    """Return the errors of a Gaussian kernel on the logarithm of the length, which sees nothing else."""
    here, grid = problem(place), grids(place.quick)
    logs = np.log([[len(x)] for x in here.X])
    return [_errors(RBF(gamma=1.0)(logs), here, grid, {})]


def scaled(place: Place, model: int | str, store: Store) -> list[Result]:
    """Return errors with an infinite lambda: of normalised kernels, of means over positions, and of sums over them.

    ``model`` is the order of the empirical mean map, or the start of EM of the latent one. Sums are divided by the
    median length, so that their values are as large as those of means.
    """
    here, grid = problem(place), grids(place.quick)
    if isinstance(model, int):
        means = [EmpiricalMeanMap(model, INF, alphabet=here.alphabet).fit_transform(here.X)] * len(here.division.tests)
    else:
        means = _of_folds(here, model, lambda hmm: LatentMeanMap(hmm, INF, INF, store=store))
    sizes = np.array([[len(x)] for x in here.X], dtype=np.float64)
    sums = [features * (sizes / np.median(sizes)) for features in means]
    kernels = {"normalised": (Linear().normalized(), means), "means": (Linear(), means), "sums": (Linear(), sums)}
    return [_errors(_each(kernel, some), here, grid, {"of": name}) for name, (kernel, some) in kernels.items()]


def _of_folds(here: Problem, start: str, make: Callable[[HMMEstimator], Any]) -> list[Matrix]:
    """Return features of all objects in every fold, by a model of the first class in its training part."""
    label, states = next(iter(here.classes.items()))
    embedding, found = make(here.hmm(start, states, here.n_init)).set_params(fit_on=label), []
    for fold in range(len(here.division.tests)):
        train = here.division.train(fold)
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            embedding.fit([here.X[i] for i in train], here.division.y[train])
        found.append(embedding.transform(here.X))
    return found


def _each(kernel: Any, features: list[Matrix]) -> Callable[[int], Matrix]:
    """Return the kernel matrix of a fold."""
    return lambda fold: np.asarray(kernel(features[fold]))


def _errors(matrix: Any, here: Problem, grid: dict[str, list[Any]], setting: dict[str, Any]) -> Result:
    """Return ``machine_errors`` with the setting of every C."""
    settings = [{**setting, "C": C} for C in grid["C"]]
    return {"settings": settings, **machine_errors(matrix, here.division, grid["C"])}


def _shown(lam: float) -> Any:
    return lam if np.isfinite(lam) else "inf"


def call(function: Callable[..., list[Result]], *arguments: Any) -> list[Result]:
    """Return the result of a method, as a part of work."""
    return function(*arguments)


def gathered(parts: dict[str, Any], keys: Iterable[str]) -> list[Result]:
    """Return the results of several parts in one list."""
    return [one for key in keys for one in parts[key]]
