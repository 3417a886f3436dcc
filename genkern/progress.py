"""Progress of long work, on standard error so that results on standard output stay clean.

A ``Progress`` tells a person; whatever runs inside it says how far it is by ``each``, ``divided``, ``portion`` and
``reach``, which divide the work at hand into parts, and those into parts again. They find it by a context variable, so
that no function needs a parameter for it, and cost next to nothing where nobody listens.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any, Self, TypeVar

T = TypeVar("T")

QUIET = 1.0  # seconds in which nothing is said, and between updates of the line of a terminal
PAUSE = 10.0  # seconds between lines where there is no terminal
LITTLE = 1e-2  # share of the work that must be done, and be left, where it is told how long the rest will take
FIRST_LOOK = 0.05  # share of a pass over a file that only looks at it, before one that works on it


def report(text: str) -> None:
    """Write one line of progress."""
    _screen.rewrite("")
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


class _Screen:
    """The line at the bottom of a terminal."""

    def __init__(self) -> None:
        self._shown = 0  # characters

    def rewrite(self, line: str) -> None:
        """Put another text in the place of what is shown."""
        if line or self._shown:
            line = line[: shutil.get_terminal_size().columns - 1]
            sys.stderr.write(f"\r{line.ljust(self._shown)}" + ("" if line else "\r"))
            sys.stderr.flush()
            self._shown = len(line)


_screen = _Screen()
_adding = threading.Lock()


class Part:
    """A share of long work, which is done when it is left.

    Parameters
    ----------
    share : float
        How much of all the work it is.
    whole : Part, optional
        What it is a part of.
    """

    def __init__(self, share: float, whole: Part | None = None):
        self.share, self.whole, self.done = share, whole, 0.0
        self.awaited = 0.0  # weight of the parts that will be taken from it

    def __enter__(self) -> Self:
        _at_work.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        self.reach(1.0)
        if _at_work.get() is self:
            _at_work.set(self.whole)

    @property
    def rest(self) -> float:
        """How much of all the work is still to be done here."""
        return max(self.share - self.done, 0.0)

    def reach(self, fraction: float) -> None:
        """Say that so much of this part is done."""
        with _adding:
            more = min(fraction, 1.0) * self.share - self.done
            part: Part | None = self
            while more > 0.0 and part is not None:
                part.done += more
                part = part.whole

    def name(self, text: str) -> None:
        """Say what is being done."""
        if self.whole is not None:
            self.whole.name(text)


_at_work: ContextVar[Part | None] = ContextVar("genkern_progress", default=None)


def listening() -> bool:
    """Say whether anybody wants to know how far the work is."""
    return _at_work.get() is not None


def each(items: Iterable[T], weights: Iterable[float] | None = None) -> Iterable[T]:
    """Return items, the work on each of which is a part of what is left of the work at hand, all alike or by weight."""
    whole = _at_work.get()
    return items if whole is None else _each(list(items), weights, whole)


def _each(items: Sequence[T], weights: Iterable[float] | None, whole: Part) -> Iterator[T]:
    sizes = [1.0] * len(items) if weights is None else list(weights)
    unit = whole.rest / (sum(sizes) or 1.0)
    for item, size in zip(items, sizes, strict=True):
        with Part(size * unit, whole):
            yield item


def divided(work: Callable[..., T], count: int) -> Callable[..., T]:
    """Return work as one of so many equal parts of what is left of the work at hand, in whatever thread it is done."""
    whole = _at_work.get()
    if whole is None:
        return work
    share = whole.rest / max(count, 1)

    def part(*args: Any) -> T:
        with Part(share, whole):
            return work(*args)

    return part


def portion(fraction: float, name: str = "") -> AbstractContextManager[Any]:
    """Return a context for a fraction of what is left of the work at hand, which may have a name.

    In a portion of zero, nothing that is done counts.
    """
    whole = _at_work.get()
    if whole is None:
        return nullcontext()
    if name:
        whole.name(name)
    return Part(fraction * whole.rest, whole)


def reach(fraction: float) -> None:
    """Say that so much of the work at hand is done."""
    part = _at_work.get()
    if part is not None:
        part.reach(fraction)


def expecting(weight: float) -> AbstractContextManager[Any]:
    """Return a context in which parts of the work at hand will be ``taken``, of this weight together."""
    whole = _at_work.get()
    if whole is None:
        return nullcontext()
    part = Part(whole.rest, whole)
    part.awaited = weight
    return part


def taken(weight: float, name: str) -> AbstractContextManager[Any]:
    """Return a context for a part of the work at hand, where one is ``expecting`` it."""
    whole = _at_work.get()
    if whole is None or whole.awaited <= 0.0:
        return nullcontext()
    fraction = min(weight / whole.awaited, 1.0)
    whole.awaited -= weight
    return portion(fraction, name)


class Progress(Part):
    """Tells how far long work is and how long it will take.

    Work of less than a second is silent. After that, on a terminal one line is rewritten every second, elsewhere there
    is a line every ten seconds, also while a step takes long.

    Parameters
    ----------
    what : str
        Name of the work.
    total : int, optional
        Number of steps, where they are counted by ``advance``.
    unit : str, default="steps"
        What is counted; empty where nothing is.
    enabled : bool, default=True
        Whether anything is said.
    """

    def __init__(self, what: str, total: int | None = None, unit: str = "steps", enabled: bool = True):
        super().__init__(1.0)
        self._what, self._total, self._unit = what, total, unit
        self._count, self._note, self._began = 0, "", time.monotonic()
        self._terminal = enabled and sys.stderr.isatty()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tell, daemon=True) if enabled else None
        self._before: Part | None = None

    def __enter__(self) -> Self:
        self._before = _at_work.get()
        if self._thread is not None:
            self._next()
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        _at_work.set(self._before)
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if self._terminal:
            _screen.rewrite("")

    def advance(self, steps: int = 1, note: str = "") -> None:
        """Count steps that are done, with a note on the last one."""
        self._count, self._note = self._count + steps, note
        if self._total is not None and self._thread is not None:
            self.reach(self._count / max(self._total, 1))
            self._next()

    def name(self, text: str) -> None:
        """Say what is being done."""
        self._note = text

    def _next(self) -> None:
        """Make the next step the work at hand, or all of the work where steps are not counted."""
        _at_work.set(self if self._total is None else Part(min(1.0 / max(self._total, 1), self.rest), self))

    def _tell(self) -> None:
        """Say how far the work is, again and again, until it is over."""
        pause = QUIET
        while not self._over.wait(pause):
            pause = QUIET if self._terminal else PAUSE
            line = self._line(time.monotonic() - self._began)
            if self._terminal:
                _screen.rewrite(line)
            else:
                report(line)

    def _line(self, elapsed: float) -> str:
        done, note = self.done, f", {self._note}" if self._note else ""
        counted = f"{self._count} of {self._total} {self._unit}, " if self._total is not None else ""
        if LITTLE <= done <= 1.0 - LITTLE:
            counted = counted or (f"{self._count} {self._unit}, " if self._unit else f"{100.0 * done:.0f} %, ")
            return f"{self._what}: {counted}about {spell_seconds(elapsed * max(1.0 - done, 0.0) / done)} left{note}"
        if self._unit and not counted:
            return f"{self._what}: {self._count} {self._unit} in {spell_seconds(elapsed)}{note}"
        return f"{self._what}: {counted}{spell_seconds(elapsed)} so far{note}"


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
