"""Gram matrices on disk, sparse ones, and blocks that other processes compute."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from scipy import sparse

from genkern import (
    RBF,
    EmpiricalMean,
    FitEach,
    Gaussian,
    Gram,
    Hellinger,
    HMMEstimator,
    Kernel,
    LatentMean,
    Linear,
    LocalAlignment,
    MeanMap,
    On,
    Posteriors,
    ProbabilityProduct,
    SetBhattacharyya,
)
from genkern.gram import disk

rng = np.random.default_rng(0)
VECTORS = rng.normal(size=(53, 3))
MODELS = [Gaussian(mean, cov) for mean, cov in zip(rng.normal(size=(23, 2)), rng.uniform(0.5, 2.0, size=(23, 2)))]
FORMATS = [".zarr", ".npy"]


def table(matrix: object) -> np.ndarray:
    return np.asarray(matrix[:])  # type: ignore[index]


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize(("kernel", "X"), [(RBF(0.5), VECTORS), (ProbabilityProduct(0.5), MODELS)])
@pytest.mark.parametrize("size", [1, 7, 16, 100])
def test_a_matrix_on_disk_is_that_in_memory(tmp_path: Path, ending: str, kernel: object, X: Any, size: int) -> None:
    path = tmp_path / f"gram{ending}"
    X = X[:17] if size == 1 else X  # blocks of one value each: 153 files are enough
    found = Gram(kernel, block_size=size, out=path).fit_transform(X)
    np.testing.assert_allclose(table(found), Gram(kernel).fit_transform(X), rtol=1e-13)
    assert path.exists()
    assert not Path(f"{path}.part").exists()
    again = Gram(kernel, out=path).fit_transform(X)  # with the blocks that are there
    np.testing.assert_array_equal(table(again), table(found))
    np.testing.assert_array_equal(table(found), table(found).T)


class Counting(RBF):
    """Counts the blocks that are computed, and may stop."""

    blocks = 0
    stop_at = -1

    def _values(self, X: object, Y: object) -> np.ndarray:
        Counting.blocks += 1
        if Counting.blocks == Counting.stop_at:
            raise KeyboardInterrupt
        return super()._values(X, Y)


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("stop", [1, 2, 9, 10])
def test_an_interrupted_matrix_goes_on(tmp_path: Path, ending: str, stop: int) -> None:
    path = tmp_path / f"gram{ending}"
    gram = Gram(Counting(0.5), block_size=16, out=path)
    Counting.blocks, Counting.stop_at = 0, stop
    with pytest.raises(KeyboardInterrupt):
        gram.fit_transform(VECTORS)
    assert not path.exists()  # half a matrix has another name
    Counting.blocks, Counting.stop_at = 0, -1
    found = gram.fit_transform(VECTORS)
    assert Counting.blocks == 10 - (stop - 1)
    whole = Gram(Counting(0.5), block_size=16, out=tmp_path / f"other{ending}").fit_transform(VECTORS)
    np.testing.assert_array_equal(table(found), table(whole))


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("mirrored", [False, True])
def test_a_damaged_block_is_computed_again(tmp_path: Path, ending: str, mirrored: bool) -> None:
    path = tmp_path / f"gram{ending}"
    gram = Gram(Counting(0.5), block_size=16, out=path)
    before = table(gram.fit_transform(VECTORS)).copy()
    i, j = (2, 1) if mirrored else (1, 2)
    if ending == ".npy":
        numbers = np.load(path, mmap_mode="r+")
        numbers[i * 16 + 3, j * 16 + 4] += 1e-9
        numbers.flush()
        del numbers
    else:
        chunk = path / "c" / str(i) / str(j)
        damaged = bytearray(chunk.read_bytes())
        damaged[77] ^= 1
        chunk.write_bytes(bytes(damaged))
    Counting.blocks = 0
    np.testing.assert_array_equal(table(gram.fit_transform(VECTORS)), before)
    assert Counting.blocks == 1


def test_a_chunk_that_is_cut_off_or_gone_is_computed_again(tmp_path: Path) -> None:
    path = tmp_path / "gram.zarr"
    gram = Gram(Counting(0.5), block_size=16, out=path)
    before = table(gram.fit_transform(VECTORS)).copy()
    (path / "c" / "0" / "1").unlink()
    (path / "c" / "3" / "3").write_bytes(b"short")
    Counting.blocks = 0
    np.testing.assert_array_equal(table(gram.fit_transform(VECTORS)), before)
    assert Counting.blocks == 2


@pytest.mark.parametrize("ending", FORMATS)
def test_another_matrix_is_refused_with_the_reason(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"gram{ending}"
    Gram(RBF(0.5), block_size=16, out=path).fit_transform(VECTORS)
    changed = VECTORS.copy()
    changed[31, 1] += 1e-12
    with pytest.raises(ValueError, match="object 31 is another one"):
        Gram(RBF(0.5), out=path).fit_transform(changed)
    with pytest.raises(ValueError, match=r"kernel is RBF\(gamma=0.5\), not RBF\(gamma=0.25\)"):
        Gram(RBF(0.25), out=path).fit_transform(VECTORS)
    with pytest.raises(ValueError, match="objects is 53, not 52"):
        Gram(RBF(0.5), out=path).fit_transform(VECTORS[:52])
    with pytest.raises(ValueError, match="block is 16, not 8"):
        Gram(RBF(0.5), block_size=8, out=path).fit_transform(VECTORS)
    (tmp_path / f"foreign{ending}").mkdir()
    with pytest.raises(FileExistsError, match="no matrix of Gram"):
        Gram(RBF(0.5), out=tmp_path / f"foreign{ending}").fit_transform(VECTORS)


def test_a_line_of_the_manifest_that_is_cut_off_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "gram.zarr"
    gram = Gram(Counting(0.5), block_size=16, out=path)
    before = table(gram.fit_transform(VECTORS)).copy()
    manifest = path / "manifest.jsonl"
    manifest.write_text(manifest.read_text()[:-9])
    Counting.blocks = 0
    np.testing.assert_array_equal(table(gram.fit_transform(VECTORS)), before)
    assert Counting.blocks == 1
    lines = [json.loads(line) for line in manifest.read_text().splitlines()]
    assert len(lines) == 1 + 10


def test_a_full_disk_loses_no_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real, written = tmp_path / "gram.zarr", os.replace, []

    def full(source: str, target: str) -> None:
        if len(written) == 6:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(target)
        real(source, target)

    gram = Gram(Counting(0.5), block_size=16, out=path)
    with monkeypatch.context() as patch:
        patch.setattr(disk.os, "replace", full)
        with pytest.raises(OSError, match=r"No space left.* 3 of 10 blocks are done and kept. Make room"):
            gram.fit_transform(VECTORS)  # diagonal blocks are written twice, at the same place
    assert not [name for name in (tmp_path / "gram.zarr.part").rglob(".*") if name.is_file()]
    Counting.blocks = 0
    gram.fit_transform(VECTORS)
    assert Counting.blocks == 7


def test_a_disk_without_room_is_refused_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = disk.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(OSError, match=r"needs 0\.0 GB, and its disk has 0\.0 GB left"):
        Gram(RBF(0.5), out=tmp_path / "gram.npy").fit_transform(VECTORS)
    assert not list(tmp_path.iterdir())


KILLED = """
import sys, time
import numpy as np
from genkern import RBF, Gram
import genkern.gram.disk as disk

write = disk.Place.write
def slow(self, *args):
    time.sleep(0.02)
    return write(self, *args)
disk.Place.write = slow
X = np.random.default_rng(0).normal(size=(160, 4))
Gram(RBF(0.5), block_size=16, out=sys.argv[1]).fit_transform(X)
"""


@pytest.mark.parametrize("ending", FORMATS)
def test_a_killed_process_leaves_what_can_go_on(tmp_path: Path, ending: str) -> None:
    X = np.random.default_rng(0).normal(size=(160, 4))
    path = tmp_path / f"gram{ending}"
    part, manifest = Path(f"{path}.part"), "manifest.jsonl"
    manifest_at = Path(f"{path}.manifest") / manifest if ending == ".npy" else part / manifest
    for lines in (4, 20, 37):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)])
        while process.poll() is None:
            if manifest_at.exists() and len(manifest_at.read_text().splitlines()) > lines:
                break
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not path.exists()
    found = Gram(Counting(0.5), block_size=16, out=tmp_path / f"whole{ending}").fit_transform(X)
    again = Gram(RBF(0.5), block_size=16, out=path).fit_transform(X)
    np.testing.assert_array_equal(table(again), table(found))


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize(("backend", "n_jobs"), [("threading", 2), ("loky", 2)])
def test_workers_write_the_same_bits(tmp_path: Path, ending: str, backend: str, n_jobs: int) -> None:
    alone = Gram(ProbabilityProduct(0.5), block_size=5, out=tmp_path / f"a{ending}").fit_transform(MODELS)
    with parallel_config(backend, n_jobs=n_jobs):
        shared = Gram(ProbabilityProduct(0.5), block_size=5, out=tmp_path / f"b{ending}").fit_transform(MODELS)
        inside = Gram(ProbabilityProduct(0.5), block_size=5).fit_transform(MODELS)
    np.testing.assert_array_equal(table(alone), table(shared))
    np.testing.assert_array_equal(inside, table(shared))


SETS = [rng.normal(size=(4, 2)) for _ in range(9)]
WORDS = ["".join(rng.choice(list("ab"), 6)) for _ in range(9)]
NAMES = ["vectors", "sparse", "models", "chains", "sets", "words", "alignments", "posteriors", "views"]


@cache
def representations() -> dict[str, tuple[Kernel, Any]]:
    """Return a kernel and objects by name."""
    chains = FitEach(HMMEstimator(2, max_iter=5, tol=0.0)).fit_transform(WORDS)
    return {
        "vectors": (RBF(0.5) + Linear(), VECTORS[:9]),
        "sparse": (Linear().normalized(), sparse.csr_array(np.abs(VECTORS[:9]).round())),
        "models": ((ProbabilityProduct(0.5) * 2.0).normalized(), MODELS[:9]),
        "chains": (MeanMap(1.0, length=4).normalized().exp(2.0), chains),
        "sets": (SetBhattacharyya(eta=0.1), SETS),
        "words": (EmpiricalMean(1), WORDS),
        "alignments": (LocalAlignment(0.3, 2.0 * np.eye(2) - 1.0, 2.0, alphabet="ab"), WORDS),
        "posteriors": (LatentMean(1.0, 1.0), Posteriors(chains[0]).fit_transform(WORDS)),
        "views": (On("x", RBF(0.5)) + On("m", Hellinger()), {"x": VECTORS[:9], "m": MODELS[:9]}),
    }


@pytest.mark.parametrize("name", NAMES)
def test_blocks_of_every_representation_travel(name: str) -> None:
    kernel, X = representations()[name]
    here = Gram(kernel, block_size=4).fit_transform(X)
    with parallel_config("loky", n_jobs=2):
        there = Gram(kernel, block_size=4).fit_transform(X)
    np.testing.assert_array_equal(here, there)


def test_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"ends in .zarr or .npy. Got 'gram.csv'"):
        Gram(RBF(0.5), out="gram.csv").fit(VECTORS)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        Gram(RBF(0.5), out=tmp_path / "none" / "gram.npy").fit(VECTORS)
    with pytest.raises(ValueError, match="out and psd exclude each other"):
        Gram(RBF(0.5), out=tmp_path / "gram.npy", psd="clip").fit(VECTORS)
    with pytest.raises(ValueError, match="psd and top_k exclude"):
        Gram(RBF(0.5), psd="clip", top_k=3).fit(VECTORS)
    with pytest.raises(ValueError, match=r"needs .* GB, and .* GB may be used. Put it on disk by out='gram.zarr'"):
        Gram(Linear(), memory_limit="1MB").fit_transform(np.ones((400, 1)))
    fitted = Gram(Linear(), memory_limit="1MB").fit(np.ones((400, 1)))  # which computes no matrix
    assert fitted.transform(np.ones((2, 1))).shape == (2, 400)
    with pytest.raises(ValueError, match="'memory_limit' parameter of Gram must be a number of bytes"):
        Gram(Linear(), memory_limit="much").fit_transform(VECTORS)
    monkeypatch.setattr("genkern.gram.gram.MOST", 50)
    with pytest.raises(ValueError, match=r"matrix of 53 objects would have .* TB; 50 are the most. Use features"):
        Gram(RBF(0.5), out=tmp_path / "gram.npy").fit_transform(VECTORS)


@pytest.mark.parametrize("size", [None, 1, 8, 20])
@pytest.mark.parametrize(("threshold", "top_k"), [(0.3, None), (None, 4), (0.5, 3), (None, 99), (2.0, None)])
def test_sparse_matrices_keep_the_largest(size: int | None, threshold: float | None, top_k: int | None) -> None:
    X = np.vstack([VECTORS, VECTORS[:9]])  # equal values: those of the first columns are kept
    gram = Gram(RBF(0.5), block_size=size, threshold=threshold, top_k=top_k)
    dense = Gram(RBF(0.5), block_size=size).fit_transform(X)

    def expected(values: np.ndarray) -> np.ndarray:
        kept = np.zeros_like(values)
        for i, row in enumerate(values):
            columns = [j for j in range(len(row)) if threshold is None or row[j] >= threshold]
            for j in sorted(columns, key=lambda j: (-row[j], j))[:top_k]:
                kept[i, j] = row[j]
        return kept

    found = gram.fit_transform(X)
    assert sparse.issparse(found)
    assert found.has_sorted_indices
    np.testing.assert_allclose(found.toarray(), expected(dense), rtol=1e-12)
    fresh = rng.normal(size=(11, 3))
    np.testing.assert_allclose(
        gram.transform(fresh).toarray(), expected(Gram(RBF(0.5)).fit(X).transform(fresh)), rtol=1e-12
    )


MEASURED = """
import resource, sys
import numpy as np
from genkern import RBF, Gram, ProbabilityProduct, Gaussian
rng = np.random.default_rng(0)
def gram(n, path):
    if sys.argv[2] == "vectors":
        return Gram(RBF(0.5), out=path, memory_limit="32MB").fit_transform(rng.normal(size=(n, 8)))
    X = Gaussian(rng.normal(size=(n, 2)), rng.uniform(0.5, 2.0, size=(n, 2)))
    return Gram(ProbabilityProduct(0.5), out=path, memory_limit="32MB").fit_transform([X[i] for i in range(n)])
gram(64, sys.argv[1] + "a.zarr")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
gram(int(sys.argv[3]), sys.argv[1] + "b.zarr")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.parametrize(("kind", "n"), [("vectors", 3000), ("models", 2000)])
def test_memory_stays_below_the_limit(tmp_path: Path, kind: str, n: int) -> None:
    command = [sys.executable, "-c", MEASURED, f"{tmp_path}/", kind, str(n)]
    peak = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert peak < 32 << 20  # a matrix of 72 and 32 MB
