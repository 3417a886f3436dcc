"""Work on a cluster of processes: the same bits as alone, also when a worker dies."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config

from genkern import RBF, CharacteristicFeatures, FisherScore, FitEach, Gram, HMMEstimator, MeanMap
from genkern.cli.main import main

zarr = pytest.importorskip("zarr", reason="needs zarr, of the extra 'scale'")
distributed = pytest.importorskip("distributed", reason="needs dask.distributed, of the extra 'dask'")

rng = np.random.default_rng(0)
WORDS = ["".join(rng.choice(list("abc"), 12)) for _ in range(60)]


COMPARED: dict[str, Any] = {
    "models": (MeanMap(1.0, length=5).normalized(), FitEach(HMMEstimator(2, max_iter=5, tol=0.0)).fit_transform(WORDS)),
    "vectors": (RBF(0.01), rng.normal(size=(60, 500))),
}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", silence_logs=50
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


def test_rows_are_sent_once(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once for each block that asks for them, and also where nothing tells Dask how large they are."""
    sent: list[int] = []
    scattered: list[Any] = []
    submit, scatter = distributed.Client.submit, distributed.Client.scatter

    def noted(self: Any, function: Any, *args: Any, **options: Any) -> Any:
        sent.extend([args[0].shape[0]] if getattr(function, "__name__", "") == "_itself" else [])
        return submit(self, function, *args, **options)

    def told(self: Any, data: Any, *args: Any, **options: Any) -> Any:
        scattered.append(data)
        return scatter(self, data, *args, **options)

    monkeypatch.setattr(distributed.Client, "submit", noted)
    monkeypatch.setattr(distributed.Client, "scatter", told)
    for kernel, X in COMPARED.values():
        alone = Gram(kernel, block_size=7).fit(X)
        with parallel_config("dask"):
            cluster = Gram(kernel, block_size=7).fit(X)
            for work in (Gram.fit_transform, Gram.transform):
                sent.clear()
                found = work(cluster, X)
                assert sum(sent) == (60 if work is Gram.fit_transform else 120)
                np.testing.assert_array_equal(found, work(alone, X))
            sent.clear()
            few = Gram(kernel, block_size=7, top_k=3).fit_transform(X)
            assert sum(sent) == 60
        np.testing.assert_array_equal(few.toarray(), Gram(kernel, block_size=7, top_k=3).fit_transform(X).toarray())
    assert not scattered


@pytest.mark.parametrize("kind", ["models", "vectors"])
def test_a_worker_that_dies_changes_nothing(client: Any, tmp_path: Path, kind: str) -> None:
    """Nor do the rows that only it had."""
    kernel, models = COMPARED[kind]
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

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    with parallel_config("dask"):
        shared = Gram(kernel, block_size=2, out=tmp_path / "shared.zarr").fit_transform(models)[:]
    thread.join()
    assert killed[0] < 465  # of 465 blocks: in the middle
    np.testing.assert_array_equal(shared, alone)


@pytest.mark.filterwarnings("error")
def test_the_command_takes_a_cluster(client: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that runs, or one of its own, also where the port of Dask's pages is taken."""
    words = tmp_path / "words.fa"
    words.write_text("".join(f">s{i}\n{word.replace('b', 't')}\n" for i, word in enumerate(WORDS)))
    with socket.socket() as taken:
        with suppress(OSError):  # by others
            taken.bind(("", 8787))
            taken.listen()
        address = client.scheduler.address
        for name, cluster in (("alone", []), ("running", ["--dask", address]), ("own", ["--dask", "local"])):
            assert main(["gram", str(words), "-o", str(tmp_path / f"{name}.zarr"), "--quiet", *cluster]) == 0
            assert "Port" not in capsys.readouterr().err
    alone, running, own = (zarr.open(tmp_path / f"{name}.zarr", mode="r")[:] for name in ("alone", "running", "own"))
    np.testing.assert_array_equal(running, alone)
    np.testing.assert_array_equal(own, alone)
