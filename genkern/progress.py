"""Progress of long work, on standard error so that results on standard output stay clean."""

from __future__ import annotations

import sys
import threading
import time

QUIET = 1.0  # seconds in which nothing is said, and between updates of the line of a terminal
PAUSE = 10.0  # seconds between lines where there is no terminal


def report(text: str) -> None:
    """Write one line of progress."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


class Progress:
    """Counts the steps of long work and says how far it is and how long it will take.

    Work of less than a second is silent. After that, on a terminal one line is rewritten every second, elsewhere there
    is a line every ten seconds, also while a step takes long.

    Parameters
    ----------
    what : str
        Name of the work.
    total : int, optional
        Number of steps; without it only the steps so far are told.
    unit : str, default="steps"
        What is counted; empty where nothing is.
    enabled : bool, default=True
        Whether anything is said.
    """

    def __init__(self, what: str, total: int | None = None, unit: str = "steps", enabled: bool = True):
        self._what, self._total, self._unit = what, total, unit
        self._done, self._note, self._began = 0, "", time.monotonic()
        self._terminal = enabled and sys.stderr.isatty()
        self._shown = 0  # characters on the line of the terminal
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tell, daemon=True) if enabled else None

    def __enter__(self) -> Progress:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if self._shown:
            self._rewrite("")

    def advance(self, steps: int = 1, note: str = "") -> None:
        """Count steps that are done, with a note on the last one."""
        self._done, self._note = self._done + steps, note

    def _tell(self) -> None:
        """Say how far the work is, again and again, until it is over."""
        pause = QUIET
        while not self._over.wait(pause):
            pause = QUIET if self._terminal else PAUSE
            line = self._line(time.monotonic() - self._began)
            if self._terminal:
                self._rewrite(line)
            else:
                report(line)

    def _line(self, elapsed: float) -> str:
        done, note = self._done, f", {self._note}" if self._note else ""
        if not self._unit:
            return f"{self._what}: {spell_seconds(elapsed)} so far"
        if self._total is None:
            return f"{self._what}: {done} {self._unit} in {spell_seconds(elapsed)}{note}"
        count = f"{self._what}: {done} of {self._total} {self._unit}"
        if not done:
            return f"{count}, {spell_seconds(elapsed)} so far"
        return f"{count}, about {spell_seconds(elapsed * (self._total - done) / done)} left{note}"

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
