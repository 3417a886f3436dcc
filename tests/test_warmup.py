"""``genkern warmup`` has tasks for models of every public kind, and they run."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys

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


UNCOMPILED = """
import importlib, pkgutil, warnings
from numba.core.registry import CPUDispatcher
import genkern.core
from genkern.cli import warming

warnings.simplefilter("ignore")
for task in warming.tasks().values():
    task()
for found in pkgutil.walk_packages(genkern.core.__path__, "genkern.core."):
    for name, function in vars(importlib.import_module(found.name)).items():
        inlined = "always" in str(getattr(function, "targetoptions", {}).get("inline"))
        if isinstance(function, CPUDispatcher) and function.py_func.__module__ == found.name and not inlined:
            if not function.signatures:
                print(f"{found.name}.{name}")
"""


@pytest.mark.slow
def test_warmup_compiles_everything(tmp_path) -> None:
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    run = subprocess.run([sys.executable, "-c", UNCOMPILED], env=env, capture_output=True, text=True, timeout=3600)
    assert run.returncode == 0, run.stderr
    assert run.stdout == ""
