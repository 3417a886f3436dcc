"""Folders that nobody else can write, and compiled code that is kept in no other."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from genkern.core import jit as jit_module
from genkern.core import private

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="the system has no owners of files")
STRANGER = 54321


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A place whose folders above are trusted, and a temporary directory that is not the system's."""
    (tmp_path / "temporary").mkdir(mode=0o700)
    monkeypatch.setattr(jit_module.tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(jit_module, "_told", [])
    jit_module.cache_directory.cache_clear()
    yield tmp_path.resolve()
    jit_module.cache_directory.cache_clear()


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def made(path, mode):
    path.mkdir()
    path.chmod(mode)
    return path


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077, 0o777])
def test_folders_are_private_whatever_the_umask(place, umask):
    before = os.umask(umask)
    try:
        private.make_private(place / "a" / "b")
        directory = jit_module.cache_directory("0123", str(place / "c" / "d"))
    finally:
        os.umask(before)
    assert directory == place / "c" / "d" / "genkern-0123"
    for folder in (place / "a", place / "a" / "b", place / "c", directory):
        assert mode_of(folder) == 0o700
        assert private.exposure(folder) is None


def test_what_exists_stays_as_it_is(place):
    folder = made(place / "a", 0o755)
    private.make_private(folder)
    assert mode_of(folder) == 0o755
    (place / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        private.make_private(place / "file")
    with pytest.raises(OSError, match="file"):
        private.make_private(place / "file" / "below")


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707, 0o720, 0o702, 0o1777])
def test_a_folder_that_others_can_write_is_refused(place, mode):
    """Sticky or not: what is in the folder itself could have been put there."""
    base = made(place / "base", 0o700)
    made(base / "genkern-0123", mode)
    with pytest.warns(
        UserWarning, match=r"others could replace it.*mode.*chmod go-w.*NUMBA_CACHE_DIR.*mode 700"
    ) as told:
        directory = jit_module.cache_directory("0123", str(base))
    assert directory == place / "temporary" / f"genkern-0123-{os.getuid()}"
    assert mode_of(directory) == 0o700
    assert f"It is kept in {directory.parent} instead" in str(told[0].message)


@pytest.mark.parametrize(
    ("mode", "safe"), [(0o777, False), (0o770, False), (0o1777, True), (0o1770, True), (0o755, True)]
)
def test_folders_above_may_be_shared_only_if_they_are_sticky(place, mode, safe):
    base = made(place / "base", mode)
    if safe:
        assert jit_module.cache_directory("0123", str(base)) == base / "genkern-0123"
    else:
        with pytest.warns(UserWarning, match=rf"others can write into {base} .mode {mode:o}"):
            assert jit_module.cache_directory("0123", str(base)).parent == place / "temporary"


def owned_by_a_stranger(monkeypatch, folder):
    lstat = os.lstat

    def changed(path, *args, **options):
        status = list(lstat(path, *args, **options))
        if Path(path) == folder:
            status[stat.ST_UID] = STRANGER
        return os.stat_result(status)

    monkeypatch.setattr(private.os, "lstat", changed)


@pytest.mark.parametrize("below", ["genkern-0123", ""])
def test_a_folder_of_another_user_is_refused(place, monkeypatch, below):
    """Also one above: its owner can rename what is in it."""
    base = made(place / "base", 0o755)
    made(base / "genkern-0123", 0o700)
    owned_by_a_stranger(monkeypatch, base / below)
    with pytest.warns(UserWarning, match=rf"belongs to another user .{STRANGER}"):
        assert jit_module.cache_directory("0123", str(base)).parent == place / "temporary"


def test_links_are_followed_above_and_refused_at_the_end(place):
    """What a link names is looked at and used; a link in place of the folder is someone else's choice."""
    target = made(place / "target", 0o700)
    (place / "link").symlink_to(target)
    assert jit_module.cache_directory("0123", str(place / "link")) == target / "genkern-0123"
    (target / "genkern-4567").symlink_to(made(place / "other", 0o700))
    with pytest.warns(UserWarning, match="is a symbolic link"):
        assert jit_module.cache_directory("4567", str(target)).parent == place / "temporary"
    open_target = made(place / "open", 0o777)
    (place / "second").symlink_to(open_target)
    jit_module._told.clear()
    with pytest.warns(UserWarning, match=rf"others can write into {open_target}"):
        assert jit_module.cache_directory("89ab", str(place / "second")).parent == place / "temporary"


def test_without_a_safe_folder_nothing_is_kept(place):
    (place / "temporary").chmod(0o777)
    base = made(place / "base", 0o777)
    with pytest.warns(UserWarning, match=r"base.*temporary.*compiled again in every process"):
        assert jit_module.cache_directory("0123", str(base)) is None
    assert jit_module.cache_directory("4567", str(base)) is None  # told once


def test_what_cannot_be_written_is_passed_over_in_silence(place):
    (place / "file").write_text("")
    assert jit_module.cache_directory("0123", str(place / "file")).parent == place / "temporary"


@pytest.mark.skipif(not jit_module.COMPILED, reason="this is the run without compilation")
@pytest.mark.parametrize("safe", [True, False])
def test_processes_with_open_folders_compile_and_say_so_once(place, safe):
    """Nothing is written into the open folder, nor read from it."""
    base, temporary = made(place / "base", 0o777), made(place / "tmp", 0o700 if safe else 0o777)
    code = "import numpy as np; from genkern.core.arrays import products, rows; products.mirror(np.eye(3))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_CACHE_DIR": str(base), "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stderr.count("others can write into") == (1 if safe else 2)
    assert run.stderr.count("UserWarning") == 1
    assert not [file for file in base.rglob("*") if file.is_file()]
    assert bool(list(temporary.rglob("*.nbc"))) == safe
