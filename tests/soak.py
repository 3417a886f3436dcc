"""``python tests/soak.py [MINUTES]``: fits, matrices, predictions and files in turn, for an hour without a number.

Every round does the same work in a folder of its own. Results must have the same bits in every round; memory, open
files, threads and files left behind must not grow. ``test_soak.py`` runs some rounds of it.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier

import genkern
from genkern import (
    FisherScore,
    FitEach,
    GaussianEstimator,
    Gram,
    HMMEstimator,
    LDSEstimator,
    MeanMap,
    MixtureEstimator,
    Nystrom,
    ProbabilityProduct,
    Spectrum,
    Store,
    TopScore,
    recipes,
)
from genkern.data.digests import make_key
from genkern.io import read, stream, transform_stream, write_features

WARM = 3  # rounds before memory is watched
GROWTH = 8.0  # MB by which later rounds may lie above earlier ones: what the allocator holds goes up and down
LABELS = np.arange(24) % 2
_rng = np.random.default_rng(0)
WORDS = ["".join(_rng.choice(list("ACGT"), _rng.integers(20, 60))) for _ in LABELS]
SERIES = [_rng.normal(size=(int(_rng.integers(20, 60)), 2)) + 0.5 * y for y in LABELS]


def _models(folder: Path) -> Any:
    chain = HMMEstimator(3, max_iter=5, random_state=0).fit(WORDS).model_
    mixture = MixtureEstimator(3, GaussianEstimator(), max_iter=5, random_state=0).fit(SERIES).model_
    system = LDSEstimator(2, max_iter=3).fit(SERIES).model_
    batches = [WORDS[:12], WORDS[12:]]
    once = HMMEstimator(2, max_iter=3, random_state=0).fit_stream(iter(batches), one_pass=True).model_
    return [chain.log_prob(WORDS), mixture.log_prob(SERIES), system.log_prob(SERIES), once.log_prob(WORDS)]


def _features(folder: Path) -> Any:
    estimator = HMMEstimator(3, max_iter=5, random_state=0)
    found = [
        FisherScore(estimator).fit(WORDS).transform(WORDS),
        TopScore(estimator).fit(WORDS, LABELS).transform(WORDS),
    ]
    return [*found, Spectrum(3).fit(WORDS).transform(WORDS)]


def _matrices(folder: Path) -> Any:
    store = Store(folder / "fits")
    models = FitEach(HMMEstimator(2, max_iter=3, random_state=0), store=store, n_jobs=2).fit_transform(WORDS)
    plain = Gram(ProbabilityProduct(0.5, length=10), n_jobs=2, block_size=7).fit_transform(models)
    on_disk = Gram(ProbabilityProduct(0.5, length=10), out=folder / "gram.npy", block_size=7).fit_transform(models)
    assert np.array_equal(plain, on_disk)
    del on_disk
    few = Gram(MeanMap(1.0, length=5), top_k=3).fit_transform(models)
    return [plain, few.toarray(), Nystrom(MeanMap(1.0, length=5), 5, random_state=0).fit_transform(models)]


def _recipes(folder: Path) -> Any:
    found = []
    for recipe, X in (
        (recipes.symbols("ACGT"), WORDS),
        (recipes.series(4, 2), SERIES),
        (recipes.product_svm(2), WORDS),
    ):
        genkern.save(recipe.fit(X, LABELS), folder / "model.gk")
        loaded = genkern.load(folder / "model.gk")
        found += [loaded.predict_proba(X), *(loaded.predict([x]) for x in X[:5])]
    return found


def _files(folder: Path) -> Any:
    path = folder / "words.fa"
    path.write_text("".join(f">s{i} {y}\n{x}\n" for i, (x, y) in enumerate(zip(WORDS, LABELS))))
    data = read(path, label=r" (\d)$")
    scores = FisherScore(HMMEstimator(2, max_iter=3, random_state=0)).fit(data.X)
    learner = SGDClassifier(random_state=0)
    for part in transform_stream(scores, stream(path, label=r" (\d)$", batch=7)):
        learner.partial_fit(part.X, part.y, classes=["0", "1"])
    write_features(scores, stream(path, batch=7), folder / "features.npy")
    return [np.load(folder / "features.npy"), learner.coef_]


TASKS: dict[str, Callable[[Path], Any]] = {
    "models": _models,
    "features": _features,
    "matrices": _matrices,
    "recipes": _recipes,
    "files": _files,
}


class State(NamedTuple):
    """What a round leaves: megabytes of memory, open files, threads, and files in the folder of temporary ones."""

    memory: float
    files: int
    threads: int
    left: int


def state(folder: Path) -> State:
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    files, left = len(os.listdir("/proc/self/fd")), len(os.listdir(folder))
    return State(int(status["VmRSS"].split()[0]) / 1024, files, int(status["Threads"]), left)


def one_round(folder: Path) -> dict[str, str]:
    """Do all tasks; return a digest of the result of each."""
    found = {}
    for name, task in TASKS.items():
        with tempfile.TemporaryDirectory(dir=folder) as own, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found[name] = make_key([np.asarray(part).tolist() for part in task(Path(own))])
    return found


def soak(done: Callable[[int, float], bool], tell: Callable[[str], None], warm: int = WARM) -> list[State]:
    """Run rounds until ``done(rounds, seconds)``; return the state after each, raising for what changed or grew."""
    begin, states = time.monotonic(), []
    first: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        while not done(len(states), time.monotonic() - begin):
            found = one_round(Path(folder))
            first = first or found
            changed = [name for name in TASKS if found[name] != first[name]]
            if changed:
                raise AssertionError(f"round {len(states)}: results of {changed} are not those of the first round")
            states.append(state(Path(folder)))
            tell(f"round {len(states)}, {time.monotonic() - begin:.0f} s: {states[-1]}")
    check_flat(states[warm:])
    return states


def check_flat(watched: list[State]) -> None:
    """Raise if later rounds have more of anything than earlier ones."""
    half = len(watched) // 2
    for name in State._fields:
        early, late = (max(getattr(one, name) for one in part) for part in (watched[:half], watched[half:]))
        if late > early + (GROWTH if name == "memory" else 0):
            raise AssertionError(f"{name} grew from {early} to {late} in {len(watched)} rounds")


if __name__ == "__main__":
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    ended = soak(lambda _, seconds: seconds >= 60.0 * minutes, lambda text: print(text, flush=True))
    print(f"soak: {len(ended)} rounds, nothing grew, results the same in all; first {ended[WARM]}, last {ended[-1]}")
