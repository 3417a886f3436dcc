"""A fair race: contenders alternate in one process, on one thread, and the best of several rounds counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from threadpoolctl import threadpool_limits

TURN = 0.1  # seconds
HEADER = f"{'workload':44} {'peer':34} {'peer s':>9} {'ours s':>9} {'ratio':>7} {'goal':>6}"


def best_times(contenders: list[Callable[[], Any]], rounds: int, threads: int = 1) -> list[float]:
    """Return the shortest time of each contender, taking turns; the first, untimed turn compiles and warms up.

    In each of its turns a contender runs as often as fits into ``TURN`` seconds, but at least once, so that short
    workloads are not timed on the caches and clock rates that the other left behind.
    """
    times = [float("inf")] * len(contenders)
    with threadpool_limits(threads):
        for turn in range(rounds + 1):
            for k, contender in enumerate(contenders):
                stop = time.perf_counter() + TURN
                while True:
                    begin = time.perf_counter()
                    contender()
                    end = time.perf_counter()
                    if turn:
                        times[k] = min(times[k], end - begin)
                    if end >= stop:
                        break
    return times


def line(workload: str, peer: str, theirs: float, ours: float, goal: float | None) -> str:
    """Return one row of the table."""
    ratio = theirs / ours
    verdict = "" if goal is None else f"{goal:>5g}x {'met' if ratio >= goal else 'MISSED'}"
    return f"{workload:44} {peer:34} {theirs:9.4f} {ours:9.4f} {ratio:6.1f}x {verdict}"


def race(
    workload: str,
    peer: str,
    theirs: Callable[[], Any],
    ours: Callable[[], Any],
    goal: float | None = None,
    rounds: int = 5,
    share: float = 1.0,
) -> float:
    """Time both, print a row and return the ratio; ``share`` is the part of the workload that the peer was given.

    A peer that is very slow may be timed on a part of the objects: its time is divided by that share.
    """
    slow, fast = best_times([theirs, ours], rounds)
    print(line(workload, peer, slow / share, fast, goal), flush=True)
    return slow / share / fast
