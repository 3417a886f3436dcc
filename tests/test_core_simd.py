"""The vector operations against NumPy; without compilation the same tests exercise the NumPy twins."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from genkern.core import jit as jit_module
from genkern.core.jit import inlined, jit, kernel, part
from genkern.core.simd import shuffle as simd_shuffle
from genkern.core.simd import vectors as simd
from genkern.core.simd.vectors import W

ROOT = Path(__file__).parents[1]


@jit
def arithmetic(a, out):
    x, y, z = simd.load(a, 0), simd.load(a, 8), simd.load(a, 16)
    simd.store(out, 0, x + y)
    simd.store(out, 8, x - y)
    simd.store(out, 16, x * y)
    simd.store(out, 24, x / y)
    simd.store(out, 32, simd.multiply_add(x, y, z))
    simd.store(out, 40, simd.maximum(x, y))
    simd.store(out, 48, simd.select(simd.less(x, y), x, z))
    simd.store(out, 56, simd.broadcast(simd.element(a, 5)))
    simd.store(out, 64, simd.zero())
    out[72] = simd.horizontal_sum(x)
    out[73] = simd.any_lane(simd.less(x, y))
    out[74] = simd.any_lane(simd.less(x, x))


def test_arithmetic():
    rng = np.random.default_rng(2)
    a, out = rng.normal(size=(3, W)), np.full(80, np.nan)
    x, y, z = a
    arithmetic(a, out)
    got = out[:72].reshape(-1, W)
    np.testing.assert_array_equal(got[0], x + y)
    np.testing.assert_array_equal(got[1], x - y)
    np.testing.assert_array_equal(got[2], x * y)
    np.testing.assert_array_equal(got[3], x / y)
    np.testing.assert_allclose(got[4], x * y + z, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(got[5], np.maximum(x, y))
    np.testing.assert_array_equal(got[6], np.where(x < y, x, z))
    np.testing.assert_array_equal(got[7], np.full(W, a.ravel()[5]))
    np.testing.assert_array_equal(got[8], np.zeros(W))
    assert out[72] == ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]))
    assert (out[73], out[74]) == (1.0, 0.0)


@jit
def shuffles(a, out, powers):
    v0, v1, v2, v3, v4, v5, v6, v7 = simd_shuffle.transpose(
        simd.load(a, 0),
        simd.load(a, 8),
        simd.load(a, 16),
        simd.load(a, 24),
        simd.load(a, 32),
        simd.load(a, 40),
        simd.load(a, 48),
        simd.load(a, 56),
    )
    simd.store(out, 0, v0)
    simd.store(out, 8, v1)
    simd.store(out, 16, v2)
    simd.store(out, 24, v3)
    simd.store(out, 32, v4)
    simd.store(out, 40, v5)
    simd.store(out, 48, v6)
    simd.store(out, 56, v7)
    u0, u1, u2, u3 = simd_shuffle.transpose_halves(simd.load(a, 0), simd.load(a, 8), simd.load(a, 16), simd.load(a, 24))
    simd.store(out, 64, u0)
    simd.store(out, 72, u1)
    simd.store(out, 80, u2)
    simd.store(out, 88, u3)
    simd_shuffle.add_pair(out, 96, 98, simd_shuffle.load_pair(a, 3, 20))
    simd.store(powers, 8, simd_shuffle.exponent(simd.load(powers, 0)))
    simd.store(powers, 16, simd_shuffle.inverse_power(simd.load(powers, 0)))
    simd.store(powers, 24, simd.power_of_two(simd.load(powers, 0)))


def test_shuffles_and_powers_of_two():
    a, out = np.random.default_rng(1).normal(size=(W, W)), np.zeros(104)
    powers = np.zeros((4, W))
    powers[0] = [0.0, 1.0, 1.5, 2.0**-1022, 3e-200, 7.9, 0.1, 1e300]
    shuffles(a, out, powers)
    np.testing.assert_array_equal(out[:64].reshape(W, W), a.T)
    halves = out[64:96].reshape(4, W)
    np.testing.assert_array_equal(halves[:, :4], a[:4, :4].T)
    np.testing.assert_array_equal(halves[:, 4:], a[:4, 4:].T)
    flat, expected = a.ravel(), np.zeros(8)
    expected[:4] += flat[3:7]
    expected[2:6] += flat[20:24]
    np.testing.assert_array_equal(out[96:104], expected)
    np.testing.assert_array_equal(powers[1, 1:], np.floor(np.log2(powers[0, 1:])))
    assert powers[1, 0] == -1023.0
    np.testing.assert_array_equal(powers[2, 1:], 2.0 ** -powers[1, 1:])
    assert powers[2, 0] == 2.0**1023
    np.testing.assert_array_equal(powers[3, 1:], 2.0 ** powers[1, 1:])


@jit
def bits(codes, flags, out):
    flags[0] = np.int64(simd_shuffle.bits_at(codes, 1, 0) | simd_shuffle.bits_at(codes, 1, 1) << np.uint64(8))
    for byte in range(2):
        simd.store(out, byte * W, simd.select(simd_shuffle.mask_at(flags, byte), simd.broadcast(1.0), simd.zero()))


def test_bits_become_masks():
    codes, flags, out = np.array([3, 0, 1, 2, 3, 2, 1, 0, 1], np.int32), np.zeros(1, np.int64), np.zeros(2 * W)
    bits(codes, flags, out)
    np.testing.assert_array_equal(out.reshape(2, W), [codes[1:] & 1, codes[1:] >> 1])


@inlined
def twice(x):
    return 2.0 * x


@jit
def calls_inlined(x):
    return twice(x) + 1.0


@part
def power(x, k, upwards):
    return simd.element(x, k) ** (k if upwards else -k)


@kernel
def calls_a_part(x):
    return power(x, 1, True) + power(x, 2, False) + power(x, len(x) - 1, True)


def test_parts_are_compiled_once_for_all_numbers_and_for_callers_in_compiled_code_only():
    assert calls_a_part(np.array([0.0, 3.0, 0.5])) == 3.0 + 4.0 + 0.25
    if jit_module.COMPILED:
        assert len(power.overloads) == 1
        with pytest.raises(TypeError, match="power is a part of compiled functions"):
            power(np.ones(3), 1, True)


def test_inlined_functions_and_the_arithmetic_of_numpy():
    assert calls_inlined(3.0) == 7.0
    assert jit_module.FLAGS["error_model"] == "numpy"
    assert "fastmath" not in jit_module.FLAGS


def test_cache_directory_follows_the_sources_and_the_wish_of_the_user(tmp_path):
    directory = jit_module.cache_directory("0123", str(tmp_path))
    assert directory == tmp_path / "genkern-0123"
    assert directory.is_dir()


def test_digests_cover_all_that_a_module_imports_and_nothing_else():
    home = Path(jit_module.__file__).parent
    names = {".".join(path.relative_to(home).with_suffix("").parts) for path in home.rglob("*.py")}
    for name in names:
        imported = set()
        for node in ast.walk(ast.parse((home / f"{name.replace('.', '/')}.py").read_text())):
            assert not (isinstance(node, ast.Import) and any(alias.name.startswith("genkern") for alias in node.names))
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0
                modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                imported |= {module.removeprefix("genkern.core.") for module in modules} & names
        assert jit_module._imported(name) == imported
    assert {"hmm.lanes", "simd.vectors", "jit"} <= jit_module._reached("hmm.passes")
    assert "words.counts" not in jit_module._reached("hmm.passes")
    assert jit_module._reached("elsewhere") == names


def test_an_edit_changes_the_digests_of_those_that_reach_it(monkeypatch):
    before = {name: jit_module.source_digest.__wrapped__(name) for name in ("hmm.lanes", "arrays.rows")}
    source = jit_module._source
    monkeypatch.setattr(
        jit_module, "_source", lambda name: source(name) + ("# edited" if name == "simd.vectors" else "")
    )
    assert jit_module.source_digest.__wrapped__("hmm.lanes") != before["hmm.lanes"]
    assert jit_module.source_digest.__wrapped__("arrays.rows") == before["arrays.rows"]


def test_users_are_told_of_the_first_use_once(tmp_path):
    lines = ["import numpy as np", "from genkern.core.arrays.products import mirror"]
    lines += ["mirror(np.eye(3))", "mirror(np.ones((2, 2), 'f'))"]  # two compilations

    def told(*before) -> str:
        env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
        program = "\n".join([*before, *lines])
        run = subprocess.run([sys.executable, "-c", program], env=env, check=True, timeout=120, capture_output=True)
        return run.stderr.decode()

    worker = "import multiprocessing; multiprocessing.current_process().name = 'LokyProcess-1'"
    assert told() == jit_module.FIRST_USE  # batch jobs and editors too
    assert told() == ""
    shutil.rmtree(tmp_path)
    assert told(worker) == ""


def test_cache_directory_falls_back_to_a_temporary_one(tmp_path, monkeypatch):
    barrier = tmp_path / "file"
    barrier.write_text("not a directory")
    monkeypatch.setattr(jit_module.tempfile, "tempdir", str(tmp_path))
    directory = jit_module.cache_directory("0123", str(barrier))
    assert directory.parent == tmp_path
    assert directory.is_dir()


def test_a_foreign_directory_is_not_trusted(tmp_path, monkeypatch):
    if not hasattr(os, "getuid"):
        pytest.skip("the system has no owners")
    monkeypatch.setattr(jit_module.os, "getuid", lambda: -2)
    monkeypatch.setattr(jit_module, "_told", [])
    monkeypatch.setattr(jit_module.tempfile, "tempdir", str(tmp_path))
    with pytest.warns(UserWarning, match=r"belongs to another user.*compiled again in every process"):
        assert jit_module.cache_directory.__wrapped__("0123", str(tmp_path / "other")) is None


@pytest.mark.skipif(not jit_module.COMPILED, reason="this is the run without compilation")
def test_twins_without_compilation():
    """The tests of this file and the smallest ones of the passes hold with the NumPy twins."""
    tests = ["tests/test_core_simd.py", "tests/test_core_hmm.py"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-k", "not compiled", "-p", "no:cacheprovider", *tests],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-2000:]
