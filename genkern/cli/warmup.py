"""genkern warmup: compile before it is needed."""

from __future__ import annotations

import time
import warnings
from typing import Any

import click

from genkern.cli.options import common
from genkern.cli.output import answer
from genkern.progress import Progress, spell_seconds


@click.command("warmup")
@common
def warmup_command(as_json: bool, quiet: bool, **options: Any) -> None:
    """Compile now what would be compiled on first use, for all recipes, and keep it.

    Compiled code is kept per user and version; a second run takes a moment.
    """
    began = time.perf_counter()
    tasks = _tasks()
    with Progress("warmup", len(tasks), "recipes", not quiet) as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what so few objects cannot support
        for name, (recipe, X, y) in tasks.items():
            recipe.fit(X, y).predict(X)
            progress.advance(note=name)
    seconds = time.perf_counter() - began
    answer({"recipes": list(tasks), "seconds": seconds}, f"{len(tasks)} recipes, {spell_seconds(seconds)}", as_json)


def _tasks() -> dict[str, Any]:
    """Return recipes with a few objects on which each is fitted."""
    import numpy as np

    from genkern import recipes
    from genkern.core.jit import first_use
    from genkern.datasets import load_japanese_vowels, load_splice_junctions

    first_use.told = True
    dna, vowels = load_splice_junctions().take(range(0, 3186, 80)), load_japanese_vowels().take(range(0, 640, 16))
    turned = ["".join(str((int(c) + i) % 8) for c in "0022446600224466" * 2) for i in range(8)]
    return {
        "series": (recipes.series(), vowels.X, vowels.y),
        "contours": (recipes.contours(), turned, np.arange(8) % 2),
        "symbols, DNA": (recipes.symbols("dna"), dna.X, dna.y),
        "aligned symbols": (recipes.aligned_symbols(alphabet="dna", cv=2), dna.X, dna.y),
        "Fisher, symbols": (recipes.fisher_svm(), dna.X, dna.y),
        "Fisher, series": (recipes.fisher_svm(), vowels.X, vowels.y),
        "product kernel, symbols": (recipes.product_svm(), dna.X, dna.y),
        "product kernel, series": (recipes.product_svm(), vowels.X, vowels.y),
        "mean map, symbols": (recipes.meanmap_svm(), dna.X, dna.y),
        "mean map, series": (recipes.meanmap_svm(), vowels.X, vowels.y),
        "spectrum": (recipes.spectrum_svm(), dna.X, dna.y),
    }
