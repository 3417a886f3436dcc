"""Hypothesis explores new cases on every run; where CI is set, it takes the same ones every time.

Files that take longest are first, so that workers end together.

No test may leave BLAS with another number of threads: results of later ones would differ in the last bits.
"""

import os
import time

import pytest
from hypothesis import settings

from genkern.threads import blas_threads

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "explore")


@pytest.fixture(autouse=True)
def _threads_as_before():
    before = blas_threads()
    yield
    for _ in range(1000):
        if blas_threads() == before:
            break
        time.sleep(0.01)  # blocks that an error stopped: threads end the one that they are at
    assert blas_threads() == before


# With "--dist loadfile --no-loadscope-reorder"; otherwise files of few tests, such as these, are the last ones.
LONGEST = [
    "docs",
    "progress",
    "similarity",
    "io_hostile",
    "papers_top",
    "soak",
    "recipe_contracts",
    "explain_set",
    "core_simd",
    "cli_commands",
    "gram_disk",
    "recipes_series",
    "recipes",
    "models_lds",
    "auto",
    "core_pairs",
    "affinity",
    "mistakes",
    "saving",
    "restarts",
    "report",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first."""
    rank = {f"test_{name}.py": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))
