"""Work on a cluster of processes: the same bits as alone, also when a worker dies."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config

from genkern import CharacteristicFeatures, FisherScore, FitEach, Gram, HMMEstimator, MeanMap

distributed = pytest.importorskip("distributed", reason="needs dask.distributed, of the extra 'dask'")

rng = np.random.default_rng(0)
WORDS = ["".join(rng.choice(list("abc"), 12)) for _ in range(60)]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_workers_compute_the_blocks(client: Any, tmp_path: Path) -> None:
    models = FitEach(HMMEstimator(2, max_iter=5, tol=0.0)).fit_transform(WORDS)
    kernel = MeanMap(1.0, length=5).normalized()
    alone = Gram(kernel, block_size=7, out=tmp_path / "alone.zarr").fit_transform(models)[:]
    with parallel_config("dask"):
        shared = Gram(kernel, block_size=7, out=tmp_path / "shared.zarr").fit_transform(models)[:]
        inside = Gram(kernel, block_size=7).fit_transform(models)
        waves = CharacteristicFeatures(1.0, length=5).fit_transform(models)
        scores = FisherScore(models[0], n_jobs=2).fit_transform(WORDS)
        fitted = FitEach(HMMEstimator(2, max_iter=5, tol=0.0)).fit_transform(WORDS)
        streamed = HMMEstimator(2, max_iter=5, tol=0.0, n_jobs=2).fit_stream([WORDS[:20], WORDS[20:40], WORDS[40:]])
    assert fitted == models
    alone_streamed = HMMEstimator(2, max_iter=5, tol=0.0).fit_stream([WORDS[:20], WORDS[20:40], WORDS[40:]])
    assert streamed.model_ == alone_streamed.model_
    np.testing.assert_array_equal(shared, alone)
    np.testing.assert_array_equal(inside, alone)
    np.testing.assert_array_equal(waves, CharacteristicFeatures(1.0, length=5).fit_transform(models))
    np.testing.assert_array_equal(scores, FisherScore(models[0]).fit_transform(WORDS))
    assert set(client.run(lambda: "genkern.gram.gram" in __import__("sys").modules).values()) == {True}


def test_a_worker_that_dies_changes_nothing(client: Any, tmp_path: Path) -> None:
    models = FitEach(HMMEstimator(2, max_iter=5, tol=0.0)).fit_transform(WORDS)
    kernel = MeanMap(1.0, length=5).normalized()
    alone = Gram(kernel, block_size=2, out=tmp_path / "alone.zarr").fit_transform(models)[:]
    victim = next(iter(client.run(os.getpid).values()))
    manifest = tmp_path / "shared.zarr.part" / "manifest.jsonl"
    killed = []

    def kill() -> None:
        while not killed:
            if manifest.exists() and len(manifest.read_text().splitlines()) > 40:
                os.kill(victim, signal.SIGKILL)
                killed.append(len(manifest.read_text().splitlines()))
            time.sleep(0.001)

    thread = threading.Thread(target=kill)
    thread.start()
    with parallel_config("dask"):
        shared = Gram(kernel, block_size=2, out=tmp_path / "shared.zarr").fit_transform(models)[:]
    thread.join()
    assert killed[0] < 465  # of 465 blocks: in the middle
    np.testing.assert_array_equal(shared, alone)
