"""BLAS on one thread, for work that is spread over threads of ours or is too small for more."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import scipy.linalg  # noqa: F401  (its BLAS is another library than NumPy's, and must be there to be limited)
from threadpoolctl import ThreadpoolController


class _Limit:
    """Who is at such work in this process, and what was found and is put back when the last one leaves.

    An interruption may meet any line in the main thread, and the collector may close a generator at any line of any
    thread. So ``leave`` can be repeated, and a thread can take the lock twice.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.users: set[tuple[int, object]] = set()
        self.found: dict[Any, int] = {}

    def enter(self, user: tuple[int, object]) -> None:
        """Set one thread; what others have set meanwhile counts as found."""
        with self.lock:
            self.users.add(user)
            for library, number in zip(_libraries(), blas_threads(), strict=True):
                if number != 1:
                    self.found[library] = number
                    _set(library, 1)

    def leave(self, user: Any) -> None:
        """Put back what was found, unless somebody is left inside or others have set another number."""
        with self.lock:
            self.users.discard(user)
            if not self.users:
                for library, number in list(self.found.items()):
                    if library.get_num_threads() == 1:
                        _set(library, number)
                self.found.clear()

    def renew(self) -> None:
        """Forget the other threads of the parent process, and the lock that one of them may have held."""
        self.lock = threading.RLock()
        self.users = {user for user in self.users if user[0] == threading.get_ident()}
        self.leave(None)


_limit = _Limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_limit.renew)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread, in this whole process, as long as anybody is inside.

    The limit belongs to the process. Were each thread to put back what it had found, the last one would put back the
    limit of another.
    """
    user = threading.get_ident(), object()
    try:
        _limit.enter(user)
        yield
    finally:
        try:
            _limit.leave(user)
        except BaseException:  # an interruption
            _limit.leave(user)
            raise


def blas_threads() -> list[int]:
    """Return the number of threads of each library of BLAS."""
    return [library.get_num_threads() for library in _libraries()]


def _set(library: Any, number: int) -> None:
    """Set the threads of a library of BLAS.

    From version 3.8 on ``set_num_threads`` does nothing where another thread has set it last; here the last thread of
    several takes away what the first one set.
    """
    getattr(library, "_real_set_num_threads", library.set_num_threads)(number)


@cache
def _libraries() -> list[Any]:
    """Return the libraries of BLAS of this process."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
