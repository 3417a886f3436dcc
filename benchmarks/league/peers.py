"""What people use instead, on the same splits: aeon on series, words and linear machines on symbols and texts.

Classifiers of aeon run in an environment of their own, ``.venv-league``, which ``make league`` makes. All choose their
settings within the training part.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer
from sklearn.svm import LinearSVC

from benchmarks.league.contest import Contest, Task, folds_of, pick, row

PYTHON = Path(__file__).parents[2] / ".venv-league" / "bin" / "python"
AEON = ("MR-Hydra, padded", "MR-Hydra, resampled", "RDST", "QUANT, padded", "QUANT, resampled")
CS = [0.01, 0.1, 1.0, 10.0, 100.0]


def run_peers(contest: Contest, task: Task) -> None:
    """Print a row for each of the other tools that take such objects."""
    if isinstance(task.X[0], str):
        for name, make in (TEXTS if " " in task.X[0] else WORDS).items():
            begin = time.perf_counter()
            errors = [_error(make, task, train, test) for train, test in folds_of(contest, task)]
            print(row(f"  {name}", errors, time.perf_counter() - begin), flush=True)
        return
    if not PYTHON.exists():
        raise SystemExit("benchmarks.league: aeon needs an environment of its own. 'make league' makes it.")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "set.npz")
        _write(path, task, folds_of(contest, task))
        for name in AEON:
            done = subprocess.run(
                [str(PYTHON), str(Path(__file__).with_name("aeon_peers.py")), path, name],
                capture_output=True,
                text=True,
            )
            if done.returncode:
                print(f"  {name}: {(done.stderr.strip() or 'killed').splitlines()[-1]}", flush=True)
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            print(row(f"  {name}", found["errors"], found["seconds"], found["memory"]), flush=True)


def _write(path: str, task: Task, folds: list[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> None:
    """Write series, labels and splits for another process."""
    series = [np.reshape(x, (len(x), -1)) for x in task.X]
    parts = {f"{name}_{i}": rows for i, fold in enumerate(folds) for name, rows in zip(("train", "test"), fold)}
    np.savez(
        path, values=np.concatenate(series), lengths=[len(x) for x in series], y=task.y, n_folds=len(folds), **parts
    )


def _error(make: Any, task: Task, train: NDArray[np.int64], test: NDArray[np.int64]) -> float:
    """Return the error of a pipeline, in percent; C is chosen by three folds of the training part."""
    inner = StratifiedKFold(3, shuffle=True, random_state=0)
    pipeline = make()
    search = GridSearchCV(pipeline, {f"{pipeline.steps[-1][0]}__C": CS}, cv=inner, n_jobs=2)
    search.fit(pick(task.X, train), task.y[train])
    return 100 * float(np.mean(search.predict(pick(task.X, test)) != task.y[test]))


def _ngrams() -> Pipeline:
    """Return words of one to four letters, also at the ends, weighted by TF-IDF."""
    words = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 4), sublinear_tf=True, lowercase=False)
    return make_pipeline(words, LinearSVC())


def _spectrum() -> Pipeline:
    """Return roots of counts of words of three to five letters."""
    return make_pipeline(
        CountVectorizer(analyzer="char", ngram_range=(3, 5), lowercase=False),
        FunctionTransformer(np.sqrt, accept_sparse=True),
        Normalizer(),
        LinearSVC(),
    )


def _by_position(text: str) -> list[str]:
    """Return words of one to four letters with their positions."""
    return [f"{t}{text[t : t + k]}" for k in range(1, 5) for t in range(len(text) - k + 1)]


def _positional() -> Pipeline:
    """Return words by position, and a logistic regression."""
    return make_pipeline(CountVectorizer(analyzer=_by_position, binary=True), LogisticRegression(max_iter=1000))


def _tfidf() -> Pipeline:
    return make_pipeline(TfidfVectorizer(sublinear_tf=True), LinearSVC())


def _roots() -> Pipeline:
    return make_pipeline(CountVectorizer(), FunctionTransformer(np.sqrt, accept_sparse=True), Normalizer(), LinearSVC())


WORDS = {"TF-IDF of 1-4-grams": _ngrams, "3-5-mers": _spectrum, "words by position": _positional}
TEXTS = {"TF-IDF": _tfidf, "roots of counts": _roots}
