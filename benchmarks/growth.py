"""How time and memory grow with the number of objects, their length and their alphabet, for all that is public.

``python -m benchmarks growth`` measures all and writes the table of ``docs/performance.md``; ``GENKERN_GROWTH`` takes
those workloads only whose name has that in it, and writes nothing. Linux only: peaks are read from ``/proc``.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.growth_workloads import WORKLOADS, Size, Workload, make_objects

PAGE = Path(__file__).parent.parent / "docs/performance.md"
BEGIN, END = "<!-- growth -->\n", "<!-- end of growth -->\n"
FACTOR, REPEATS = 4, 2
SMALL = 32  # MB; below that, memory is that of code and of single blocks, and has no exponent
HEADER = (
    "| workload | objects, length, letters | time | memory | objects | length | letters | memory, objects |\n"
    "|---|---|---|---|---|---|---|---|\n"
)


@dataclass(frozen=True)
class Cost:
    """Seconds of CPU, and megabytes at the peak beside the objects."""

    seconds: float
    megabytes: float


def measure(workload: Workload, size: Size) -> Cost:
    """Return the least cost of several runs, each in a process of its own, in which an eighth has run before."""
    runs = [_run_apart(workload, size) for _ in range(REPEATS)]
    return Cost(min(run.seconds for run in runs), min(run.megabytes for run in runs))


def exponent(small: float, large: float, factor: float = FACTOR) -> float:
    """Return e of a cost that grows as the e-th power of the size."""
    return math.log(large / small) / math.log(factor)


def _run_apart(workload: Workload, size: Size) -> Cost:
    """Run a workload in a forked process."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=_run, args=(workload, size, theirs))
    child.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        raise RuntimeError(f"growth: {workload.name} of {size} ended without a result.") from None
    finally:
        child.join()


def _run(workload: Workload, size: Size, pipe: Any) -> None:
    X, y = make_objects(workload.data, *size)
    with threadpool_limits(1):
        few = max(size[0] // 8, 16)
        workload.work(X[:few], y[:few])  # compiled code and imports are loaded
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        held, begin = _memory("VmRSS"), time.process_time()
        result = workload.work(X, y)
        seconds = time.process_time() - begin
    pipe.send(Cost(seconds, max(_memory("VmHWM") - held, 0.0)))
    del result


def _memory(name: str) -> float:
    """Return a figure of this process in megabytes."""
    status = Path("/proc/self/status").read_text()
    found = re.search(rf"{name}:\s+(\d+) kB", status)
    assert found is not None
    return int(found.group(1)) / 1024


def row(workload: Workload, measured: Callable[[Workload, Size], Cost] = measure) -> str:
    """Return the line of a workload: cost of the base, and exponents along every axis."""
    base = measured(workload, workload.size)
    times, memory = [], "–"
    for axis, name in enumerate(("objects", "length", "letters")):
        if name not in workload.axes:
            times.append("–")
            continue
        more = measured(workload, workload.larger(axis, FACTOR))
        times.append(f"{exponent(base.seconds, more.seconds):.1f}")
        if axis == 0 and more.megabytes >= SMALL:
            memory = f"{exponent(max(base.megabytes, 1.0), more.megabytes):.1f}"
    cells = [workload.name, ", ".join(map(str, workload.size)), _seconds(base.seconds), _megabytes(base.megabytes)]
    return "| " + " | ".join([*cells, *times, memory]) + " |"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 0.95 else f"{1e3 * seconds:.0f} ms"


def _megabytes(size: float) -> str:
    return "< 10 MB" if size < 10 else f"{size:.0f} MB"


def main() -> None:
    np.seterr(all="ignore")
    wanted, lines = os.environ.get("GENKERN_GROWTH", ""), []
    print(HEADER, end="", flush=True)
    for workload in WORKLOADS:
        if wanted in workload.name:
            lines.append(row(workload))
            print(lines[-1], flush=True)
    if not wanted:
        before, rest = PAGE.read_text().split(BEGIN)
        PAGE.write_text(before + BEGIN + HEADER + "\n".join(lines) + "\n" + END + rest.split(END)[1])
