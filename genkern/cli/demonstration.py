"""The demo: what people use today beside auto on the two sets that come with the package, a report, an explanation."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.svm import SVC

from genkern import __version__, plots, recipes
from genkern.cli.options import names
from genkern.core.jit import first_use
from genkern.datasets import Dataset, load_japanese_vowels, load_splice_junctions
from genkern.evaluation import Evaluation, evaluate
from genkern.explanation.explain import Explanation, explain
from genkern.features.fisher import FisherScore
from genkern.kernels import Linear
from genkern.learn import PlugInClassifier
from genkern.models.families.site import SiteEstimator
from genkern.models.hmm.estimator import HMMEstimator
from genkern.recipes.auto import AutoClassifier

AUTO = "auto (genkern chooses)"
DRAWN = 300  # objects in a picture: more would not be seen
FOLDS = 2


class Task(NamedTuple):
    """A data set, what is tried on it, the recipe that the report shows, and features for a map of the objects."""

    data: Dataset
    contenders: dict[str, Any]
    recipe: Any
    features: Any


def run(output: Path, fast: bool = False, n_jobs: int = -1) -> dict[str, Evaluation]:
    """Run the demo: print tables and one explanation, save reports and a picture.

    Parameters
    ----------
    output : path
        Folder for the files, made if it does not exist.
    fast : bool, default=False
        Use fewer objects.
    n_jobs : int, default=-1
        Threads; -1 is all cores.

    Returns
    -------
    results : dict of str to Evaluation
        By name of the data set.
    """
    plots.pyplot()  # that matplotlib is missing should be known before the work, not after it
    output.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    print(f"genkern {__version__}: what people use today, and what genkern finds by itself, on two public data sets")
    print("(the very first run compiles numerical code, and takes a minute or two longer)")
    first_use.told = True
    tasks = [junctions_task(fast, n_jobs), vowels_task(fast, n_jobs)]
    results = {}
    for task in tasks:
        result = evaluate(task.data.X, task.data.y, task.contenders, folds=FOLDS)
        results[task.data.name] = result
        print(f"\n{task.data.name}: {len(task.data.X)} objects, {len(task.data.classes)} classes\n{result}")
    junctions = tasks[0]
    model = junctions.recipe.fit(junctions.data.X, junctions.data.y)
    print(f"\n{explained(model, junctions.data)}")
    files = [draw(tasks, list(results.values()), output / "demo.png")]
    files += reports(tasks, list(results.values()), model, output)
    print("\nFiles: " + "\n       ".join(str(path) for path in files))
    print("Yours: genkern evaluate FILE, then genkern train FILE -o model.gk; genkern --help lists the rest.")
    print(f"All this took {time.perf_counter() - began:.0f} s.")
    return results


def junctions_task(fast: bool, n_jobs: int) -> Task:
    """Return the splice junctions: aligned windows of DNA.

    Parameters
    ----------
    fast : bool
        Use fewer objects.
    n_jobs : int
        Threads.
    """
    contenders = {
        AUTO: AutoClassifier("symbols", cv=3, budget="30s", n_jobs=n_jobs),
        "weight matrix per class": PlugInClassifier(SiteEstimator("dna")),
        "k-mer SVM, words of 5": recipes.spectrum_svm(5, alphabet="dna"),
    }
    recipe = recipes.aligned_symbols(alphabet="dna", n_jobs=n_jobs)
    features = make_pipeline(FisherScore(SiteEstimator("dna")), Normalizer())
    return Task(subset(load_splice_junctions(), 200 if fast else 1000), contenders, recipe, features)


def vowels_task(fast: bool, n_jobs: int) -> Task:
    """Return the Japanese vowels: short series of vectors, nine speakers.

    Parameters
    ----------
    fast : bool
        Use fewer objects.
    n_jobs : int
        Threads.
    """
    summary = FunctionTransformer(_summary)
    contenders = {
        AUTO: AutoClassifier("series", cv=3, budget="30s", n_jobs=n_jobs),
        "one HMM per class": PlugInClassifier(HMMEstimator(5, structure="left-right", n_jobs=n_jobs)),
        "means and deviations, SVM": make_pipeline(summary, StandardScaler(), SVC(C=10.0)),
    }
    data = load_japanese_vowels()
    features = recipes.fisher_svm(5, structure="left-right", n_jobs=n_jobs)
    return Task(subset(data, 180) if fast else data, contenders, features, features[:-1])


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


def explained(model: Any, data: Dataset) -> str:
    """Return what the model saw in the first donor site, as text: the letters, and how much each speaks for the class.

    Parameters
    ----------
    model : fitted pipeline
        For splice junctions.
    data : Dataset
        Splice junctions.
    """
    i = int(np.flatnonzero(data.y == "EI")[0])
    why: Explanation = explain(model, data.X[i], label="EI")
    if why.positions is None:
        raise ValueError("demo: the recipe for aligned windows has no contributions of positions.")
    strength = np.clip(np.ceil(4 * why.positions / np.abs(why.positions).max()), 0, 4).astype(int)
    strip = "".join(" .:+#"[level] for level in strength)
    answer = model.predict([data.X[i]])[0]
    return (
        f"One window, {names(data)[i]}, an exon that ends before position 30 (predicted: {answer}).\n"
        f"What speaks for that, letter by letter (# most, . least):\n  {data.X[i]}\n  {strip}\n"
        "The textbooks have GTRAGT there, the beginning of an intron; nobody told the classifier where to look."
    )


def draw(tasks: list[Task], results: list[Evaluation], path: Path) -> Path:
    """Save the errors with their intervals and a map of the objects, a row per data set; return the absolute path.

    Parameters
    ----------
    tasks : list of Task
        What to draw.
    results : list of Evaluation
        What came out.
    path : path
        The PNG file.
    """
    from matplotlib.figure import Figure  # not pyplot: no display is needed, and no figure stays registered

    figure = Figure(figsize=(10.0, 3.4 * len(tasks)), layout="constrained")
    for (left, right), task, result in zip(figure.subplots(len(tasks), 2, squeeze=False), tasks, results):
        errors = np.array([row.error for row in result.rows])
        ends = np.array([row.interval for row in result.rows])
        reach = 100 * np.abs(ends.T - errors)
        left.errorbar(100 * errors, range(len(errors)), xerr=reach, fmt="o", color="black", capsize=3)
        left.set_yticks(range(len(errors)), [row.name for row in result.rows])
        left.set(xlim=(0, None), ylim=(len(errors) - 0.5, -0.5), xlabel="error in %, with 95 % interval",
                 title=f"{task.data.name}, {len(task.data.X)} objects")  # fmt: skip
        data = subset(task.data, DRAWN)
        features = clone(task.features).fit_transform(data.X)
        plots.kernel_pca_map(Linear()(features), data.y, right, title="a map of the objects by Fisher scores")
    figure.savefig(path, dpi=72)
    return path.resolve()


def reports(tasks: list[Task], results: list[Evaluation], model: Any, output: Path) -> list[Path]:
    """Write a report page per data set; return their absolute paths."""
    from genkern.report import write_report

    paths = []
    for task, result, fitted in zip(tasks, results, (model, tasks[1].recipe)):
        path = (output / f"{task.data.name.replace(' ', '_')}.html").resolve()
        write_report(path, task.data, evaluation=result, model=fitted, command="genkern demo")
        paths.append(path)
    return paths


def _summary(X: Any) -> Any:
    """Return means and standard deviations of the channels of every series."""
    return np.array([np.r_[np.mean(x, axis=0), np.std(x, axis=0)] for x in X])
