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
    """How many are at such work in this process, and what the first one found and the last one puts back."""

    def __init__(self) -> None:
        self.lock, self.users = threading.Lock(), 0
        self.found: list[tuple[Any, int]] = []

    def renew(self) -> None:
        """Forget a lock that another thread of the parent process may have held."""
        self.lock = threading.Lock()


_limit = _Limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_limit.renew)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread, in this whole process, as long as anybody is inside.

    The limit belongs to the process. Were each thread to put back what it had found, the last one would put back the
    limit of another.
    """
    with _limit.lock:
        if not _limit.users:
            _limit.found = [(library, library.get_num_threads()) for library in _libraries()]
            for library, _ in _limit.found:
                _set(library, 1)
        _limit.users += 1
    try:
        yield
    finally:
        with _limit.lock:
            _limit.users -= 1
            if not _limit.users:
                for library, number in _limit.found:
                    _set(library, number)


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
