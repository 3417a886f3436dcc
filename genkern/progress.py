"""Progress of long work, on standard error so that results on standard output stay clean."""

from __future__ import annotations

import sys
import time

QUIET = 1.0  # seconds in which nothing is said
PAUSE = 10.0  # seconds between lines where there is no terminal
REFRESH = 0.2  # seconds between updates of the line of a terminal


def report(text: str) -> None:
    """Write one line of progress."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


class Progress:
    """Counts the steps of long work and says how far it is and how long it will take.

    Work of less than a second is silent. On a terminal one line is rewritten, elsewhere there is a line every ten
    seconds.

    Parameters
    ----------
    what : str
        Name of the work.
    total : int, optional
        Number of steps; without it only the steps so far are told.
    unit : str, default="steps"
        What is counted.
    enabled : bool, default=True
        Whether anything is said.
    """

    def __init__(self, what: str, total: int | None = None, unit: str = "steps", enabled: bool = True):
        self._what, self._total, self._unit, self._enabled = what, total, unit, enabled
        self._done, self._began = 0, time.monotonic()
        self._terminal = enabled and sys.stderr.isatty()
        self._next = self._began + QUIET
        self._shown = 0  # characters on the line of the terminal

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown:
            self._rewrite("")

    def advance(self, steps: int = 1, note: str = "") -> None:
        """Count steps that are done; say so if it is time."""
        self._done += steps
        now = time.monotonic()
        if not self._enabled or now < self._next:
            return
        self._next = now + (REFRESH if self._terminal else PAUSE)
        line = self._line(now - self._began) + (f", {note}" if note else "")
        if self._terminal:
            self._rewrite(line)
        else:
            report(line)

    def _line(self, elapsed: float) -> str:
        if self._total is None:
            return f"{self._what}: {self._done} {self._unit} in {spell_seconds(elapsed)}"
        left = elapsed * (self._total - self._done) / max(self._done, 1)
        return f"{self._what}: {self._done} of {self._total} {self._unit}, about {spell_seconds(left)} left"

    def _rewrite(self, line: str) -> None:
        sys.stderr.write(f"\r{line.ljust(self._shown)}" + ("" if line else "\r"))
        sys.stderr.flush()
        self._shown = len(line)


def spell_seconds(seconds: float) -> str:
    """Return a duration as people say it: 0.4 s, 12 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 120:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"
