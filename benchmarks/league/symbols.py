"""Contests of symbols."""

from __future__ import annotations

from benchmarks.league.contest import Contest

CONTESTS: dict[str, Contest] = {}
