"""All sets of the league, and the run of one of them, which a process of its own can import."""

from __future__ import annotations

from benchmarks.league.aligned import CONTESTS as ALIGNED
from benchmarks.league.contest import run
from benchmarks.league.peers import run_peers
from benchmarks.league.series import CONTESTS as SERIES
from benchmarks.league.symbols import CONTESTS as SYMBOLS
from benchmarks.league.text import CONTESTS as TEXT

CONTESTS = SERIES | SYMBOLS | ALIGNED | TEXT


def run_one(name: str, peers: bool) -> None:
    """Run one contest."""
    contest = CONTESTS[name]
    task = contest.load()
    run(contest, name, task)
    if peers:
        run_peers(contest, task)
