"""Draw the pictures of docs/concepts.md again: the last figure of each example, into docs/images."""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib

DOCS = Path(__file__).parent
PICTURES = {"fisher_score": 1, "top": 2, "product": 3, "mean_map": 4, "gram": 5}


def draw() -> None:
    """Run the examples and save what they draw."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    for name, number in PICTURES.items():
        plt.close("all")
        runpy.run_path(str(DOCS.parent / "examples" / f"plot_{number}_{name}.py"))
        plt.gcf().savefig(DOCS / "images" / f"{name}.png", dpi=72)


if __name__ == "__main__":
    draw()
