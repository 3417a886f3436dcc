"""``genkern warmup`` has tasks for models of every public kind, and they run."""

from __future__ import annotations

import inspect

import pytest

import genkern
from genkern.cli import warming
from genkern.models.base import Model

ELSEWHERE = {
    "HMM": "in all layouts",
    "Posterior": "the posterior of hidden states, whose passes are those of its model",
    "Sampled": "draws of other models",
    "BayesNet": "NumPy only",
    "LinearGaussianNet": "NumPy only",
    "NaturalFamily": "a family of the user",
    "SparseMultinomial": "NumPy and SciPy only",
}


def test_every_kind_of_model_is_asked() -> None:
    public = {name for name in genkern.__all__ if inspect.isclass(getattr(genkern, name))}
    kinds = {name for name in public if issubclass(getattr(genkern, name), Model)} - {"Model"}
    zoo = {type(model).__name__ for model in warming._zoo().values()}
    assert kinds - zoo - set(ELSEWHERE) == set()
    assert zoo & set(ELSEWHERE) == set()


def test_tasks_have_names_and_every_layout_is_asked() -> None:
    tasks = warming.tasks()
    assert all(callable(task) for task in tasks.values())
    for n in (1, 2, 4, 8, 12, 17):
        for kind in ("4 symbols", "30 symbols", "series"):
            assert {f"models.HMM, {n} states, {kind}", f"models.HMM, {n} states, {kind}, own"} <= set(tasks)


@pytest.mark.parametrize("name", ["models.Poisson", "models.MarkovChain", "maps.Spectrum, k=3", "kernel, Linear"])
def test_a_task_runs(name: str) -> None:
    warming.tasks()[name]()
