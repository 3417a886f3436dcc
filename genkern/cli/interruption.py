"""Ctrl-C, wherever it meets the work: also in a destructor, where Python would drop it."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interruptible() -> Iterator[None]:
    """Make Ctrl-C end the work at once, without a word on what it leaves half made.

    An exception in a destructor is not raised but told of by ``sys.unraisablehook``. Where that is the interruption, it
    comes again. What fails after it is of no interest: the destructor of an object that was never finished, or a
    compilation that takes it for an error of its own.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) in (
        signal.SIG_IGN,
        signal.SIG_DFL,
    ):
        yield
        return
    shown, interrupted = sys.unraisablehook, threading.Event()

    def interrupt(number: int, frame: Any) -> None:
        interrupted.set()
        raise KeyboardInterrupt

    def tell(unraisable: Any) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            threading.Timer(0.01, _thread.interrupt_main).start()  # when the destructor has ended
        elif not interrupted.is_set():
            shown(unraisable)

    before = signal.signal(signal.SIGINT, interrupt)
    sys.unraisablehook = tell
    try:
        yield
    except Exception:
        if interrupted.is_set():
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, before)
        if not interrupted.is_set():  # else the objects left over are destroyed at the end of the process
            sys.unraisablehook = shown
