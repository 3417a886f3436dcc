"""Files made to take memory or time: refused, or read within bounds of both, each in a process of its own."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from io_attacks import ATTACKS

from genkern.cli.main import DATA, main
from genkern.io import ReadError, read, stream

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bounds of memory and time are those of Linux")
GROWTH = 900  # MB, of whatever is made of a file of a megabyte; that of bombs is less
HERE = Path(__file__).parent


def run(folder: Path, names: list[str]) -> dict[str, dict[str, Any]]:
    """Return what came of attacks, by name."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)])}
    command = [sys.executable, str(HERE / "io_attacks.py"), str(folder), *names]
    lines = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.splitlines()
    return {found["name"]: found for found in map(json.loads, lines)}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("attacks") / "inside"
    folder.mkdir()
    results = run(folder, sorted(ATTACKS))
    assert not list(folder.rglob("*")), "a reader wrote files"
    assert not (folder.parent / "canary").exists()
    return results


def check(one: dict[str, Any]) -> None:
    for said in one["said"].split(" | "):
        assert said.startswith("refused: ") or said.endswith(" objects"), one
        if "bomb" in one["name"] or "line.sto" in one["name"]:
            assert "expected content of at most" in said, one
            assert "max_expansion=" in said, one
    assert one["mb"] < GROWTH, one


@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_hostile_files_take_neither_memory_nor_time(name: str, found: dict[str, dict[str, Any]]) -> None:
    check(found[name])


def bomb(folder: Path) -> Path:
    import gzip

    path = folder / "a.txt.gz"
    path.write_bytes(gzip.compress(b"a b c d\n" * (40 << 17), 1))  # 40 MB
    return path


def test_the_limit_can_be_lifted(tmp_path: Path) -> None:
    path = bomb(tmp_path)
    with pytest.raises(ReadError, match=r"at most \d\d MB for a file of 0\.\d+ MB"):
        read(path, format="lines", kind="documents")
    parts = stream(path, format="lines", kind="documents", max_expansion=10_000, batch=100_000)
    assert len(next(parts)) == 100_000
    for wrong in (0, 0.5, "much", True, float("nan")):
        with pytest.raises(ValueError, match="'max_expansion' must be a number of at least 1"):
            read(path, max_expansion=wrong)
    with pytest.raises(ValueError, match="in memory already"):
        read(__import__("pandas").DataFrame({"text": ["a"]}), max_expansion=5)


def test_the_command_names_its_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = bomb(tmp_path)
    assert main(["info", str(path), "--format", "lines", "--kind", "documents"]) == DATA
    told = capsys.readouterr().err
    assert "--max-expansion" in told
    assert "max_expansion" not in told


@pytest.mark.parametrize("how", ["pipe", "in a folder", "device"])
def test_what_may_never_end_is_refused(how: str, tmp_path: Path) -> None:
    path = Path("/dev/zero") if how == "device" else tmp_path / "a.txt"
    if how != "device":
        os.mkfifo(path)
    with pytest.raises(ReadError, match="a pipe or a device"):
        read(tmp_path if how == "in a folder" else path, format=None if how == "in a folder" else "lines")


def test_folders_and_temporary_files_are_private(tmp_path: Path) -> None:
    """What is written aside, before it has its name, nobody else can read or put another in its place."""
    from genkern.data.whole_files import whole_file

    before = os.umask(0)
    try:
        with whole_file(tmp_path / "a", "test") as file:
            folder = Path(file.name).parent
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            assert folder.parent == tmp_path
    finally:
        os.umask(before)
