"""The lowest versions that pyproject.toml allows, as constraints for pip; ``make test-lowest`` installs them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

EXTRAS = ("plots", "frames", "bio", "tables", "report", "scale", "dask", "bench", "test")
LATER = ["pyparsing<3.3"]  # newer ones warn of names by which the lowest Matplotlib calls them


def constraints() -> list[str]:
    """Return ``name==version`` for each floor ``name>=version`` of the package and of what its tests need."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(item for extra in EXTRAS for item in extras[extra])]
    wanted = [item for item in wanted if not item.startswith("genkern[")]
    unclear = [item for item in wanted if not re.fullmatch(r"[\w-]+>=[\d.]+", item)]
    if unclear:
        raise SystemExit(f"pyproject.toml: expected name>=version. Got {', '.join(unclear)}.")
    return [item.replace(">=", "==") for item in wanted] + LATER


if __name__ == "__main__":
    print("\n".join(constraints()))
