"""Progress lines for long work, on standard error so that results on standard output stay clean."""

from __future__ import annotations

import sys


def report(text: str) -> None:
    """Write one line of progress."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
