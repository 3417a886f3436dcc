"""Many objects: sequences from a file to a learner in batches, matrices by processes, Nystrom features.

``python -m benchmarks stream processes nystrom`` prints figures, no race: the peers have nothing for these.
``GENKERN_OBJECTS`` sets the number of sequences of the stream (one million without it).
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from joblib import parallel_config
from scipy.linalg import cho_factor, cho_solve
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from genkern import (
    HMM,
    RBF,
    Categorical,
    FisherScore,
    Gram,
    HMMEstimator,
    KernelRidgeClassifierCV,
    Nystrom,
    ProbabilityProduct,
)
from genkern.io import stream as read_stream
from genkern.io import transform_stream

LETTERS, LENGTH, STATES, BATCH = "ACGT", 100, 8, 5000
TEST = 20_000  # sequences of the stream on which the error is measured


def _chain(seed: int) -> HMM:
    """Return a random chain with states that stay."""
    rng = np.random.default_rng(seed)
    steps = 0.8 * np.eye(STATES) + 0.2 * rng.dirichlet(np.ones(STATES), size=STATES)
    emissions = Categorical(rng.dirichlet(np.full(4, 0.7), size=STATES), alphabet=LETTERS)
    return HMM(np.full(STATES, 1 / STATES), steps, emissions)


def write_sequences(path: Path, count: int) -> None:
    """Write sequences of two chains in turn, in parts, with their class in the header."""
    rng, chains = np.random.default_rng(0), [_chain(0), _chain(1)]
    with open(path, "w", encoding="ascii") as file:
        for first in range(0, count, BATCH):
            half = min(BATCH, count - first) // 2
            drawn = [chain.sample(half, length=LENGTH, rng=rng) for chain in chains]
            for i, pair in enumerate(zip(*drawn)):
                file.writelines(f">s{first + 2 * i + label} {label}\n{word}\n" for label, word in enumerate(pair))


def stream() -> None:
    """From a FASTA file to predictions: a model in one pass, its Fisher scores, a linear machine, held-out errors."""
    count = int(os.environ.get("GENKERN_OBJECTS", "1000000"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sequences.fa"
        write_sequences(path, count + TEST)
        size, begin = path.stat().st_size, time.perf_counter()

        def batches() -> Any:
            return read_stream(path, label=r" (\d)$", batch=BATCH)

        estimator = HMMEstimator(STATES, max_iter=100, tol=1e-4, random_state=0)
        model = estimator.fit_stream(batches(), one_pass=True).model_
        fitted = time.perf_counter()
        features = FisherScore(model).fit(next(iter(batches())).X)
        scaler, learner = StandardScaler(), SGDClassifier(loss="log_loss", random_state=0)
        wrong = tested = seen = 0
        for part in transform_stream(features, batches()):
            if seen < count:
                learner.partial_fit(scaler.partial_fit(part.X).transform(part.X), part.y, classes=["0", "1"])
                seen += len(part.X)
            else:
                wrong += int((learner.predict(scaler.transform(part.X)) != part.y).sum())
                tested += len(part.X)
        end = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(
        f"stream: {seen} sequences of {LENGTH} ({size / 1e6:.0f} MB), {STATES} states, {features.n_features_out_} "
        f"features: model {fitted - begin:.0f} s, features and learner {end - fitted:.0f} s, error "
        f"{100 * wrong / tested:.2f} % of {tested}, peak {peak:.2f} GB",
        flush=True,
    )


def _models(count: int) -> Any:
    rng = np.random.default_rng(0)
    return [
        HMM(
            rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5), size=5), Categorical(rng.dirichlet(np.ones(4), size=5))
        )
        for _ in range(count)
    ]


def processes() -> None:
    """Matrices on disk: what a block costs by its size, and the efficiency of two processes."""
    models, kernel = _models(8192), ProbabilityProduct(0.5, length=50)

    def run(size: int) -> tuple[float, float]:
        """Wall and CPU seconds of one matrix, after one of four blocks has compiled and started all."""
        with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
            Gram(kernel, out=f"{folder}/warm.npy", block_size=size).fit_transform(models[: 2 * size])
            wall, cpu = time.perf_counter(), time.process_time()
            Gram(kernel, out=f"{folder}/gram.npy", block_size=size).fit_transform(models)
            return time.perf_counter() - wall, time.process_time() - cpu

    for size in (64, 256, 1024):
        rows = len(models) // size
        block = run(size)[1] / (rows * (rows + 1) / 2)
        print(
            f"processes: {len(models)} models of 5 states, blocks of {size:4}: {1e3 * block:6.1f} ms of CPU a block, "
            f"{1e9 * block / size**2:.0f} ns a value",
            flush=True,
        )
    times = {}
    for workers in (1, 2):
        with parallel_config("loky", n_jobs=workers):
            times[workers], _ = run(1024)
    print(
        f"processes: blocks of 1024: 1 process {times[1]:.1f} s, 2 {times[2]:.1f} s, efficiency "
        f"{times[1] / (2 * times[2]):.2f}",
        flush=True,
    )


def nystrom() -> None:
    """Nystrom features of 20,000 sequences against the exact kernel: values, errors of a ridge classifier, CPU time."""
    rng, chains = np.random.default_rng(1), [_chain(seed) for seed in range(4)]
    X = [word for chain in chains for word in chain.sample(5500, length=LENGTH, rng=rng)]
    y = np.repeat(np.arange(4), 5500)
    order = rng.permutation(len(X))
    train, test = order[:20_000], order[20_000:]
    known, fresh = ([X[i] for i in part] for part in (train, test))
    model = HMMEstimator(STATES, max_iter=100, tol=1e-4, random_state=0).fit(known[:2000]).model_
    scores = FisherScore(model).fit(known)
    rows, new = scores.transform(known), scores.transform(fresh)
    kernel, targets = RBF(0.5 / rows.shape[1]), np.eye(4)[y[train]]
    # One penalty for all, the one that leave-one-out errors of 2000 training objects choose.
    penalty = KernelRidgeClassifierCV(kernel=kernel).fit(rows[:2000], y[train][:2000]).alpha_

    def error(weights: Any, values: Any) -> float:
        return 100 * float(np.mean((values @ weights).argmax(axis=1) != y[test]))

    begin = time.process_time()
    gram = Gram(kernel)
    K = gram.fit_transform(rows)
    some = rng.choice(20_000, 2000, replace=False)
    exact = K[np.ix_(some, some)]
    K[np.diag_indices_from(K)] += penalty
    weights = cho_solve(cho_factor(K, lower=True, overwrite_a=True, check_finite=False), targets, check_finite=False)
    wrong = error(weights, gram.transform(new))
    print(f"nystrom: exact, 20000 objects: {time.process_time() - begin:.0f} s of CPU, error {wrong:.2f} %", flush=True)
    for select in ("uniform", "kmeans++", "leverage", "pivots"):
        for landmarks in (100, 400, 1600):
            begin = time.process_time()
            features = Nystrom(kernel, landmarks, select=select, random_state=0)
            Z = features.fit_transform(rows)
            weights = np.linalg.solve(Z.T @ Z + penalty * np.eye(Z.shape[1]), Z.T @ targets)
            wrong = error(weights, features.transform(new))
            taken = time.process_time() - begin
            away = np.linalg.norm(exact - Z[some] @ Z[some].T) / np.linalg.norm(exact)
            print(
                f"nystrom: {select:9} {landmarks:5} landmarks: {taken:6.1f} s of CPU, error {wrong:.2f} %, values off "
                f"by {100 * away:.3f} %",
                flush=True,
            )
