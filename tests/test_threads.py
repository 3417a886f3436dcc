"""BLAS has its threads again when work ends, whatever ends it: errors, interruptions, forks, other threads."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import threadpoolctl
from joblib import Parallel, delayed

from genkern import RBF, Gram
from genkern.gram import base, gram
from genkern.gram.disk import DiskMatrix
from genkern.threads import blas_threads, one_blas_thread

POINTS = np.random.default_rng(0).normal(size=(60, 3))


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    with threadpoolctl.threadpool_limits(2, "blas"):
        yield
        assert set(blas_threads()) == {2}


def soon(number: set[int]) -> bool:
    for _ in range(500):
        if set(blas_threads()) == number:
            return True
        time.sleep(0.01)
    return False


class Rung(BaseException):
    """What an alarm raises, as Ctrl-C raises KeyboardInterrupt."""


@contextmanager
def alarms() -> Iterator[None]:
    def ring(number: int, frame: Any) -> None:
        raise Rung

    before = signal.signal(signal.SIGALRM, ring)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def enter_until_the_alarm(after: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, after)
    while True:
        with one_blas_thread(), one_blas_thread():
            pass


def test_an_interruption_anywhere_leaves_no_limit_behind() -> None:
    """2000 alarms, each at another moment of entering and leaving."""
    left = []
    with alarms():
        for k in range(2000):
            with pytest.raises(Rung):
                enter_until_the_alarm(1e-5 + 1e-7 * k)
            if set(blas_threads()) != {2}:
                gc.collect()  # a traceback may hold the one that was about to leave
                left += [k] if set(blas_threads()) != {2} else []
    assert not left


@pytest.mark.parametrize("where", ["Gram", "disk", "few", "rows"])
def test_an_error_where_blocks_are_taken_ends_the_limit_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str
) -> None:
    """Its traceback would hold the generator of blocks, which is in the middle of its work."""

    def broken(*_: Any) -> Any:
        raise ArithmeticError("no more")

    def first_only(blocks: Iterator[Any]) -> Iterator[Any]:
        yield next(blocks)
        broken()

    kernel = Gram(RBF(0.5), n_jobs=2, block_size=10, top_k=3 if where == "few" else None)
    kernel.set_params(out=tmp_path / "K.npy" if where == "disk" else None)
    work = kernel.fit(POINTS[:9]).transform if where == "rows" else kernel.fit_transform
    monkeypatch.setattr(DiskMatrix, "done", broken)
    monkeypatch.setattr(gram, "gather", lambda shape, parts, rule: list(first_only(parts)))
    if where != "disk":
        monkeypatch.setattr(base, "zip", lambda places, blocks: zip(places, first_only(blocks)), raising=False)
    with pytest.raises(ArithmeticError, match="no more") as error:
        work(POINTS)
    if where != "disk":  # whose workers have limits of their own, until they are done with the block they are at
        assert set(blas_threads()) == {2}
    assert soon({2})
    assert error.tb is not None


def test_a_limit_of_others_that_ends_before_ours_is_not_put_back_by_us() -> None:
    """Another thread set one thread before we came, and two again while we were inside."""
    others, ours = threadpoolctl.threadpool_limits(1, "blas"), one_blas_thread()
    ours.__enter__()
    others.restore_original_limits()
    with one_blas_thread():
        assert set(blas_threads()) == {1}
    ours.__exit__(None, None, None)
    assert set(blas_threads()) == {2}


def inside(function: Callable[[], Any]) -> Any:
    with one_blas_thread():
        return function()


def nested(depth: int) -> list[int]:
    if not depth:
        return blas_threads()
    with one_blas_thread():
        both = Parallel(n_jobs=2, prefer="threads")(delayed(nested)(depth - 1) for _ in range(2))
    return [*both[0], *both[1]]


def test_nested_and_parallel() -> None:
    for _ in range(20):
        assert set(nested(3)) == {1}
        assert set(blas_threads()) == {2}


def test_a_generator_that_is_left_in_the_middle() -> None:
    def steps() -> Iterator[int]:
        with one_blas_thread():
            yield from range(3)

    abandoned, cycle = steps(), []
    next(abandoned)
    cycle += [cycle, abandoned]
    assert set(blas_threads()) == {1}
    del abandoned, cycle
    gc.collect()
    assert set(blas_threads()) == {2}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork")
def test_a_forked_child_forgets_the_other_threads_and_keeps_its_own() -> None:
    def seen_by_child() -> int:
        child = os.fork()
        if not child:
            outside = set(blas_threads())
            with one_blas_thread():
                within = set(blas_threads())
            os._exit(10 * max(outside) + max(within))
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    other = one_blas_thread()
    with ThreadPoolExecutor(1) as thread:
        thread.submit(other.__enter__).result()
        assert seen_by_child() == 21
        assert inside(seen_by_child) == 11
        thread.submit(other.__exit__, None, None, None).result()
