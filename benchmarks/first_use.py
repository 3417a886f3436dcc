"""What first calls take, with nothing compiled before: each in a process and with an empty cache of its own."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time

README = """
from genkern import recipes
from genkern.datasets import load_japanese_vowels
vowels = load_japanese_vowels()
train, test = vowels.part("train"), vowels.part("test")
model = recipes.series().fit(train.X, train.y)
model.score(test.X, test.y)
"""
FISHER = """
from genkern import recipes
from genkern.datasets import load_splice_junctions
dna = load_splice_junctions().take(range(0, 3186, 16))
recipes.fisher_svm().fit(dna.X, dna.y).predict(dna.X)
"""
LDS = """
import numpy as np
from genkern import LDSEstimator
rng = np.random.default_rng(0)
LDSEstimator(2).fit([rng.normal(size=(40, 2)) for _ in range(20)])
"""
# By name: arguments of Python, and the goal in seconds of wall time on two cores.
CALLS = {
    "README, first example": (["-c", README], 15.0),
    "fisher_svm, 200 strings": (["-c", FISHER], 8.0),
    "LDSEstimator.fit": (["-c", LDS], 10.0),
    "genkern demo": (["-m", "genkern", "demo", "-o"], 60.0),
}


def main() -> None:
    """Print wall and CPU seconds of each."""
    for name, (arguments, goal) in CALLS.items():
        with tempfile.TemporaryDirectory() as folder:
            begin, used = time.perf_counter(), _cpu()
            environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
            command = [sys.executable, *arguments, f"{folder}/demo"]
            subprocess.run(command, env=environment, check=True, capture_output=True)
            taken = time.perf_counter() - begin
        verdict = "met" if taken <= goal else "MISSED"
        print(
            f"first use: {name:26} {taken:5.1f} s, {_cpu() - used:5.1f} s of CPU, goal {goal:3.0f} s {verdict}",
            flush=True,
        )


def _cpu() -> float:
    """Return the CPU seconds of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
