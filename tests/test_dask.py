"""Work on a cluster of processes: the same bits as alone, also when a worker dies."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config

from genkern import CharacteristicFeatures, FisherScore, FitEach, Gram, HMMEstimator, MeanMap
from genkern.cli.gram import NO_PAGES

distributed = pytest.importorskip("distributed", reason="needs dask.distributed, of the extra 'dask'")

rng = np.random.default_rng(0)
WORDS = ["".join(rng.choice(list("abc"), 12)) for _ in range(60)]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, silence_logs=50, **NO_PAGES
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


def test_the_command_starts_workers_here_beside_other_clusters(tmp_path: Path) -> None:
    (tmp_path / "words.fa").write_text(
        "".join(f">{i}\n{word.translate(dict(zip(b'abc', 'ACG')))}\n" for i, word in enumerate(WORDS))
    )
    command = [sys.executable, "-W", "error::UserWarning", "-m", "genkern", "gram", "words.fa", "--kernel", "spectrum"]
    with socket.socket() as other:
        with contextlib.suppress(OSError):  # the port of Dask's pages; then somebody has it already
            other.bind(("", 8787))
            other.listen()
        for name, options in (("alone", []), ("shared", ["--dask", "local"])):
            done = subprocess.run(
                [*command, "-o", f"{name}.npz", *options], cwd=tmp_path, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
    alone, shared = (np.load(tmp_path / f"{name}.npz") for name in ("alone", "shared"))
    assert set(alone) == set(shared)
    for key in alone:
        np.testing.assert_array_equal(alone[key], shared[key])
