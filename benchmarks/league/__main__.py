"""``python -m benchmarks.league [set ...]``: print the error of its recipe on every set named, or on all."""

from __future__ import annotations

import sys

from benchmarks.league.aligned import CONTESTS as ALIGNED
from benchmarks.league.contest import HEADER, run
from benchmarks.league.series import CONTESTS as SERIES
from benchmarks.league.symbols import CONTESTS as SYMBOLS
from benchmarks.league.text import CONTESTS as TEXT

CONTESTS = SERIES | SYMBOLS | ALIGNED | TEXT


def main(names: list[str]) -> None:
    unknown = [name for name in names if name not in CONTESTS]
    if unknown:
        raise SystemExit(f"benchmarks.league: there is no set {unknown[0]!r}. The sets are {', '.join(CONTESTS)}.")
    print(HEADER, flush=True)
    for name in names or CONTESTS:
        run(name, CONTESTS[name])


if __name__ == "__main__":
    main(sys.argv[1:])
