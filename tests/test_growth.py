"""The table of growth in docs/performance.md: all that is public is in it."""

import inspect
import math
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import genkern
from benchmarks.growth import Cost, exponent, row
from benchmarks.growth_workloads import WORKLOADS, Workload
from genkern import Kernel, recipes

# Bounded by its budget, whatever the objects; and what kernels cost is that of their matrices.
ELSEWHERE = {"AutoClassifier"}
PAGE = Path(__file__).parent.parent / "docs/performance.md"


def test_all_that_is_public_is_measured():
    public = {name: getattr(genkern, name) for name in genkern.__all__}
    fitted = {
        name
        for name, thing in public.items()
        if inspect.isclass(thing) and issubclass(thing, BaseEstimator) and not issubclass(thing, Kernel)
    }
    made = {f"recipes.{name}" for name in recipes.__all__} - {
        "recipes.AutoClassifier",
        "recipes.auto",
        "recipes.candidates",
    }
    measured = {workload.name.split(",")[0].split(" of ")[0] for workload in WORKLOADS}
    assert fitted | made <= measured | ELSEWHERE
    page = PAGE.read_text(encoding="utf-8")
    for workload in WORKLOADS:
        assert f"| {workload.name} | " in page


def test_exponents_are_those_of_the_cost():
    def measured(workload: Workload, size: tuple[int, int, int]) -> Cost:
        n, length, letters = size
        return Cost(1e-6 * n**2 * length, 1.0 * n * letters)

    cells = row(Workload("made", "rows", lambda X, y: None, (100, 10, 4)), measured).strip("| ").split(" | ")
    assert cells == ["made", "100, 10, 4", "100 ms", "400 MB", "2.0", "1.0", "0.0", "1.0"]
    assert exponent(1.0, 8.0) == pytest.approx(math.log(8) / math.log(4))
