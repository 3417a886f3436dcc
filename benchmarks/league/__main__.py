"""``python -m benchmarks.league [--peers] [set ...]``: the error of its recipe on every set named, or on all.

With ``--peers`` other tools run on the same splits after it (``make league`` prepares their environment). Each set has
a process of its own, so that the peak of memory is that of its recipe.
"""

from __future__ import annotations

import sys
from multiprocessing import get_context

from benchmarks.league.contest import HEADER
from benchmarks.league.sets import CONTESTS, run_one


def main(arguments: list[str]) -> None:
    names, peers = [name for name in arguments if name != "--peers"], "--peers" in arguments
    unknown = [name for name in names if name not in CONTESTS]
    if unknown:
        raise SystemExit(f"benchmarks.league: there is no set {unknown[0]!r}. The sets are {', '.join(CONTESTS)}.")
    print(HEADER, flush=True)
    failed = 0
    for name in names or CONTESTS:
        process = get_context("spawn").Process(target=run_one, args=(name, peers))
        process.start()
        process.join()
        failed += process.exitcode != 0
    raise SystemExit(failed)


if __name__ == "__main__":
    main(sys.argv[1:])
