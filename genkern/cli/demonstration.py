"""The demo: kernels from generative models beside the usual tools, on the two sets that come with the package."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import SVC

from genkern import __version__, plots, recipes
from genkern.core.jit import first_use
from genkern.datasets import Dataset, load_japanese_vowels, load_splice_junctions
from genkern.features.fisher import FisherScore
from genkern.kernels import Linear, Polynomial
from genkern.kernels.gram import Gram
from genkern.learn import PlugInClassifier
from genkern.models.hmm.estimator import HMMEstimator
from genkern.validation import Floats

NAMES = 46  # width of the names in progress lines and tables
DRAWN = 400  # objects in a picture: more would not be seen


class Contender(NamedTuple):
    """A classifier with its name and the group in which it competes."""

    group: str
    name: str
    classifier: Any


class Task(NamedTuple):
    """A data set, who competes on it, whose kernel is drawn, and what is to be said of it."""

    data: Dataset
    n_folds: int
    contenders: list[Contender]
    drawn: Contender
    note: str = ""


class Result(NamedTuple):
    """Errors (n_folds,) of a contender, and its error on the official split where there is one."""

    contender: Contender
    errors: Floats
    official: float | None


def run(output: Path, fast: bool = False, n_jobs: int = -1) -> dict[str, list[Result]]:
    """Run the demo: print progress and tables, save a picture.

    Parameters
    ----------
    output : path
        Folder for the picture, made if it does not exist.
    fast : bool, default=False
        Use fewer objects and folds.
    n_jobs : int, default=-1
        Threads; -1 is all cores.

    Returns
    -------
    results : dict of str to list of Result
        By name of the data set.
    """
    plots.pyplot()  # that matplotlib is missing should be known before the work, not after it
    began = time.perf_counter()
    print(f"genkern {__version__}: classifiers from generative models, on two public data sets")
    tasks = [splice_task(fast, n_jobs), vowels_task(fast, n_jobs)]
    _compile(tasks)
    results = {}
    for task in tasks:
        print(f"\n{_headline(task)}: progress, a dot per fold")
        results[task.data.name] = [evaluate(task, contender) for contender in task.contenders]
    for task in tasks:
        print(f"\n{table(task, results[task.data.name])}")
    for task in tasks:
        print(f"\n{conclusion(task, results[task.data.name])}")
    print(f"\nPicture: {draw(tasks, output)}")
    print(f"All this took {time.perf_counter() - began:.0f} s.")
    return results


def splice_task(fast: bool, n_jobs: int) -> Task:
    """Return the splice junctions: stationary models, word counts, and models that know the position.

    Parameters
    ----------
    fast : bool
        Use fewer objects and folds.
    n_jobs : int
        Threads.
    """
    data = load_splice_junctions()
    blind, aware = "models that do not know the position", "left-right models, one state per position"
    states = len(data.X[0])
    # With a state per position the segmental first guess is nearly the answer, so EM may stop soon.
    aligned = HMMEstimator(states, structure="left-right", init="segmental", tol=1e-4, n_jobs=n_jobs)
    quadratic = Pipeline(
        [
            ("fisher", FisherScore(aligned, n_jobs=n_jobs)),
            ("norm", Normalizer()),
            ("gram", Gram(Polynomial(degree=2, offset=1.0), n_jobs=n_jobs)),
            ("svm", SVC(kernel="precomputed")),
        ]
    )
    linear = recipes.fisher_svm(n_jobs=n_jobs).set_params(fisher__estimator=aligned)
    # Models that find little to hold on to creep for thousands of steps; a looser end changes these errors little.
    few = HMMEstimator(4, tol=1e-4, random_state=0, n_jobs=n_jobs)
    contenders = [
        Contender(blind, "plug-in HMM, 4 states", PlugInClassifier(few)),
        Contender(blind, "Fisher score, HMM of 4 states", recipes.fisher_svm().set_params(fisher__estimator=few)),
        Contender(blind, "product kernel of HMMs, 2 states each", recipes.product_svm(2, n_jobs=n_jobs)),
        Contender(blind, "mean map kernel of HMMs, 2 states each", recipes.meanmap_svm(2, n_jobs=n_jobs)),
        Contender(blind, "spectrum, words of 5 letters", recipes.spectrum_svm(5, alphabet="dna")),
        Contender(aware, f"plug-in HMM, {states} states", PlugInClassifier(aligned)),
        Contender(aware, f"Fisher score, HMM of {states} states", linear),
        Contender(aware, "Fisher score, quadratic kernel", quadratic),
    ]
    return Task(subset(data, 500) if fast else data, 3 if fast else 5, contenders, contenders[6])


def vowels_task(fast: bool, n_jobs: int) -> Task:
    """Return the Japanese vowels: short series of vectors, nine speakers.

    Parameters
    ----------
    fast : bool
        Use fewer objects and folds.
    n_jobs : int
        Threads.
    """
    data = load_japanese_vowels()
    common, own = "left-right models of many utterances", "a model of each utterance"
    left_right = HMMEstimator(5, structure="left-right", n_jobs=n_jobs)
    fisher = recipes.fisher_svm(5, structure="left-right", n_jobs=n_jobs)
    contenders = [
        Contender(common, "plug-in HMM, 5 states", PlugInClassifier(left_right)),
        Contender(common, "Fisher score, HMM of 5 states", fisher),
        Contender(own, "product kernel of HMMs, 2 states each", recipes.product_svm(2, n_jobs=n_jobs)),
        Contender(own, "mean map kernel of HMMs, 2 states each", recipes.meanmap_svm(2, n_jobs=n_jobs)),
    ]
    few = subset(data, 270)
    few = replace(few, meta={**few.meta, "split": None})  # a part of the official test set is not the official test set
    note = "No spectrum here: it counts words of symbols, and these are series of vectors."
    return Task(few if fast else data, 3 if fast else 5, contenders, contenders[3], note)


def subset(data: Dataset, size: int) -> Dataset:
    """Return about ``size`` objects, spread evenly over the list within every class.

    Parameters
    ----------
    data : Dataset
        The whole set; returned as it is if it is not larger.
    size : int
        Number of objects.
    """
    step = max(1.0, len(data.X) / size)
    members = [np.flatnonzero(data.y == label) for label in data.classes]
    kept = [places[np.arange(0, len(places), step).astype(int)] for places in members]
    return data.take(np.sort(np.concatenate(kept)))


def evaluate(task: Task, contender: Contender) -> Result:
    """Return a contender's errors in stratified folds, saying how far it is.

    Parameters
    ----------
    task : Task
        The data and the number of folds.
    contender : Contender
        Whom to evaluate.
    """
    print(f"  {contender.name:{NAMES}} ", end="", flush=True)
    began = time.perf_counter()
    y = task.data.y
    folds = StratifiedKFold(task.n_folds, shuffle=True, random_state=0)
    errors = []
    for train, test in folds.split(np.zeros(len(y)), y):
        errors.append(_error(contender.classifier, task.data.take(train), task.data.take(test)))
        print(".", end="", flush=True)
    official = None
    if task.data.split is not None:
        official = _error(contender.classifier, task.data.part("train"), task.data.part("test"))
    print(f" {time.perf_counter() - began:5.1f} s")
    return Result(contender, np.array(errors), official)


def table(task: Task, results: list[Result]) -> str:
    """Return a table of errors in percent, by group.

    Parameters
    ----------
    task : Task
        What was done.
    results : list of Result
        What came out.
    """
    split = task.data.split is not None
    title = f"{_headline(task)}; error in %, mean ± standard deviation over folds"
    lines = [title + (", and on the official split" if split else "")]
    group = None
    for result in results:
        if result.contender.group != group:
            group = result.contender.group
            lines.append(f"  {group}")
        line = f"    {result.contender.name:{NAMES}} {_percent(result):>11}"
        lines.append(line if result.official is None else f"{line} {100 * result.official:8.1f}")
    _, counts = np.unique(task.data.y, return_counts=True)
    chance = 100 * (1 - counts.max() / counts.sum())
    lines += ["  for comparison", f"    {'always the most frequent class':{NAMES}} {chance:5.1f}"]
    return "\n".join([*lines, f"  {task.note}"] if task.note else lines)


def conclusion(task: Task, results: list[Result]) -> str:
    """Return what the numbers say: the best of all, whether it is clearly so, and the best of each other group.

    Parameters
    ----------
    task : Task
        What was done.
    results : list of Result
        What came out.
    """
    best, second = sorted(results, key=lambda result: float(result.errors.mean()))[:2]
    gap = float(second.errors.mean() - best.errors.mean())
    within = gap <= float(max(best.errors.std(ddof=1), second.errors.std(ddof=1)))
    lines = [
        f"{task.data.name}: smallest error {_percent(best)} % ({best.contender.name}; {best.contender.group}).",
        f"  Next: {_percent(second)} % ({second.contender.name}). The difference is "
        + ("within one standard deviation over folds." if within else "more than one standard deviation over folds."),
    ]
    for group in dict.fromkeys(result.contender.group for result in results):
        if group != best.contender.group:
            rival = min((r for r in results if r.contender.group == group), key=lambda r: float(r.errors.mean()))
            lines.append(f"  Best of the group '{group}': {_percent(rival)} % ({rival.contender.name}).")
    return "\n".join(lines)


def draw(tasks: list[Task], output: Path) -> Path:
    """Save kernel PCA maps and Gram heat maps, a row per data set, and return the absolute path of the picture.

    Parameters
    ----------
    tasks : list of Task
        What to draw.
    output : path
        Folder, made if it does not exist.
    """
    from matplotlib.figure import Figure  # not pyplot: no display is needed, and no figure stays registered

    output.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(12.0, 5.0 * len(tasks)), layout="constrained")
    for row, task in zip(figure.subplots(len(tasks), 2, squeeze=False), tasks):
        data = subset(task.data, DRAWN)
        represented = clone(task.drawn.classifier)[:-1].fit_transform(data.X)
        square = represented.shape[0] == represented.shape[1] and "gram" in task.drawn.classifier.named_steps
        gram = represented if square else Linear()(represented)
        label = f"{task.data.name}: {task.drawn.name}"
        plots.kernel_pca_map(gram, data.y, row[0], title=f"{label}\nkernel PCA map")
        plots.gram_heatmap(gram, data.y, row[1], title=f"{label}\nGram matrix, {len(gram)} objects")
    path = (output / "demo.png").resolve()
    figure.savefig(path, dpi=90)
    return path


def _compile(tasks: list[Task]) -> None:
    """Fit everything to a handful of objects, so that later times are not those of the compiler."""
    print("Compiling numerical code (long on first use only) ...", end="", flush=True)
    first_use.told = True
    began = time.perf_counter()
    for task in tasks:
        few = subset(task.data, 60)
        for contender in task.contenders:
            clone(contender.classifier).fit(few.X, few.y).predict(few.X)
    print(f" {time.perf_counter() - began:.1f} s")


def _error(classifier: Any, train: Dataset, test: Dataset) -> float:
    """Return the share of wrong predictions on the second set after fitting to the first."""
    return float(np.mean(clone(classifier).fit(train.X, train.y).predict(test.X) != test.y))


def _headline(task: Task) -> str:
    return f"{task.data.name}, {len(task.data.X)} objects, {len(task.data.classes)} classes, {task.n_folds} folds"


def _percent(result: Result) -> str:
    return f"{100 * result.errors.mean():.1f} ± {100 * result.errors.std(ddof=1):.1f}"
