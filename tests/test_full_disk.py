"""Disks that are really full: a clear error, nothing half written under its name, and what was finished is kept."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from genkern import RBF, Dataset, Gram, Spectrum, Store, load, save
from genkern.io import read, write, write_features

ROOM = 4 << 20  # bytes of the disk
X = np.random.default_rng(0).normal(size=(300, 4))
OBJECTS = ["".join(np.random.default_rng(k).choice(list("ACGT"), 2000)) for k in range(3000)]  # 6 MB


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own, mounted for the test."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only the administrator of a Linux system can mount a disk to fill")
    command = ["mount", "-t", "tmpfs", "-o", f"size={ROOM},mode=700", "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no file system could be mounted: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path, left: int) -> Path:
    """Fill the disk but for some bytes; return the file that fills it."""
    filler = disk / "filler"
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    with open(filler, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, free - left))
    return filler


class Filling(RBF):
    """Fills the disk before it computes the block of this number."""

    disk: Path | None = None
    at = blocks = 0
    left = 0

    def _values(self, X: object, Y: object) -> np.ndarray:
        Filling.blocks += 1
        if Filling.disk is not None and Filling.blocks == Filling.at:
            fill(Filling.disk, Filling.left)
        return super()._values(X, Y)


@pytest.fixture
def filling(disk: Path) -> Iterator[type[Filling]]:
    Filling.disk, Filling.blocks = disk, 0
    yield Filling
    Filling.disk = None


@pytest.mark.parametrize(
    ("ending", "size", "at", "left"),
    [
        *[(".zarr", 64, 1, 0), (".zarr", 64, 12, 0), (".zarr", 64, 15, 0), (".zarr", 64, 5, 50_000)],
        *[(".npy", 16, 20, 0), (".npy", 16, 60, 4096), (".npy", 16, 100, 0)],
    ],
)
def test_a_matrix_loses_no_finished_block(
    ending: str, size: int, at: int, left: int, disk: Path, filling: type[Filling], tmp_path: Path
) -> None:
    """Of an .npy file, whose room is reserved, the manifest has none."""
    path, n = disk / f"gram{ending}", -(-len(X) // size)
    total = n * (n + 1) // 2
    gram = Gram(Filling(0.5), block_size=size, out=path)
    filling.at, filling.left = at, left
    with pytest.raises(
        OSError, match=rf"No space left on device.*of {total} blocks are done and kept. Make room"
    ) as told:
        gram.fit_transform(X)
    assert told.value.errno == errno.ENOSPC
    assert not path.exists()
    done = int(str(told.value).partition(f" of {total}")[0].rpartition(" ")[2])
    assert done >= at - 1
    (disk / "filler").unlink()
    filling.disk, filling.blocks = None, 0
    found = np.asarray(gram.fit_transform(X)[:])
    assert filling.blocks == total - done
    whole = Gram(Filling(0.5), block_size=size, out=tmp_path / f"whole{ending}").fit_transform(X)
    np.testing.assert_array_equal(found, np.asarray(whole[:]))


def test_a_matrix_whose_room_is_reserved_is_finished(disk: Path, filling: type[Filling]) -> None:
    filling.at, filling.left = 1, 0
    found = Gram(Filling(0.5), block_size=64, out=disk / "gram.npy").fit_transform(X)
    np.testing.assert_allclose(found, Gram(RBF(0.5)).fit_transform(X), rtol=1e-13)


@pytest.mark.parametrize("ending", [".zarr", ".npy"])
@pytest.mark.parametrize("left", [0, 8192, 740_000, 8 * 320**2])
def test_a_matrix_that_cannot_begin_leaves_nothing(ending: str, left: int, disk: Path) -> None:
    """Whether the room that is left is asked for before, or is too little for what comes beside the numbers."""
    many = np.vstack([X, X[:20] + 1.0])  # blocks without a rest
    gram = Gram(RBF(0.5), block_size=64, out=disk / f"gram{ending}")
    filler = fill(disk, left)
    with pytest.raises(OSError, match=r"Gram: .*(its disk has .* left|cannot be written .No space left)"):
        gram.fit_transform(many)
    assert ending == ".zarr" or [path.name for path in disk.iterdir()] == ["filler"]
    filler.unlink()
    np.testing.assert_allclose(np.asarray(gram.fit_transform(many)[:]), Gram(RBF(0.5)).fit_transform(many), rtol=1e-13)


@pytest.mark.parametrize("name", ["a.fa", "a.fa.gz", "a.fa.xz", "a.fa.zst", "a.jsonl", "a.npz", "a.parquet"])
def test_data_are_written_whole_or_not(name: str, disk: Path) -> None:
    data = Dataset(OBJECTS, np.arange(len(OBJECTS)).astype(str), kind="symbols")
    path = disk / name
    write(data.take(range(5)), path)
    filler = fill(disk, 100_000)
    with pytest.raises(OSError, match=r"cannot be written \(No space left on device\); the file that was there is as"):
        write(data, path)
    assert sorted(disk.iterdir()) == sorted([filler, path])
    np.testing.assert_array_equal(read(path).X, OBJECTS[:5])


@pytest.mark.parametrize("ending", [".npy", ".zarr", ".parquet"])
def test_features_are_written_whole_or_not(ending: str, disk: Path) -> None:
    spectrum = Spectrum(4, alphabet="dna").fit(OBJECTS[:2])
    fill(disk, 100_000)
    with pytest.raises(OSError, match="No space left on device"):
        write_features(spectrum, [OBJECTS[k : k + 100] for k in range(0, 600, 100)], disk / f"a{ending}")
    assert [path.name for path in disk.iterdir()] == ["filler"]


def test_models_are_saved_whole_or_not(disk: Path) -> None:
    first, second = Spectrum(1).fit(["abab"]), Spectrum(6, alphabet="dna").fit(OBJECTS)
    second.extra_ = X.repeat(60)  # half a megabyte
    save(first, disk / "a.gk")
    filler = fill(disk, 10_000)
    with pytest.raises(OSError, match=r"genkern.save: .* \(No space left on device\); the file that was there is as"):
        save(second, disk / "a.gk")
    assert sorted(disk.iterdir()) == sorted([filler, disk / "a.gk"])
    np.testing.assert_array_equal(load(disk / "a.gk").transform(["ab"]), first.transform(["ab"]))
    with pytest.raises(OSError, match="no file was made"):
        save(second, disk / "b.gk")


def test_a_store_keeps_its_entries_and_gives_results(disk: Path) -> None:
    store = Store(disk / "store")
    keys = [f"{k:08x}" for k in range(40)]
    values = [np.full(1000, float(k)) for k in range(40)]
    store.put(keys[0], values[0])
    filler = fill(disk, 40_000)
    with pytest.warns(UserWarning, match=r"cannot be written, so that results are not kept .*Make room") as told:
        found = store.fetch_many(keys, lambda missing: [values[k] for k in missing])
    assert len(told) == 1
    np.testing.assert_array_equal(found, values)
    kept = store.n_entries
    assert 1 <= kept < 40
    assert not list((disk / "store").rglob("*.tmp"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fresh = Store(disk / "store")
        assert sum(fresh.get(key) is not None for key in keys) == kept
        filler.unlink()
        fresh.fetch_many(keys, lambda missing: [values[k] for k in missing])
    assert fresh.n_entries == 40
