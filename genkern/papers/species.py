"""Species, the densities of their environments, and whether groups of them are separate."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern import FitEach, KDEEstimator, MeanMap

Matrix = NDArray[np.float64]
VARIABLES = {
    "NSW": ("tempann", "tempmin", "rainann", "raindq", "rugged"),
    "AWT": ("bc01", "bc06", "bc12", "bc17", "tri"),  # the same five, as far as the names of that set tell
}
GROUPS = {
    "ba": "bats",
    "db": "birds",
    "nb": "birds",
    "sr": "reptiles",
    "ot": "open forest trees",
    "ou": "open forest understorey",
    "rt": "rainforest trees",
    "ru": "rainforest understorey",
    "bird": "birds",
    "plant": "plants",
}


class Region(NamedTuple):
    """The species of a region.

    Parameters
    ----------
    names, groups : ndarray of shape (n,)
        Their numbers and groups.
    bags : list of ndarray
        Environments of the sightings of each.
    places : list of set
        Longitudes and latitudes of the sightings of each.
    """

    names: NDArray[Any]
    groups: NDArray[Any]
    bags: list[Matrix]
    places: list[set[tuple[str, str]]]

    def overlap(self) -> Matrix:
        """Return cosines between the sets of places."""
        shared = np.array([[len(a & b) for b in self.places] for a in self.places], dtype=np.float64)
        norms = np.sqrt(np.diag(shared))
        return np.asarray(shared / np.outer(norms, norms))


def region_of(folder: Path, region: str) -> Region:
    """Return the species of a region."""
    seen, ground = (_rows(folder / f"{region}train_{kind}.csv.gz") for kind in ("po", "bg"))
    table = np.array([[float(row[name]) for name in VARIABLES[region]] for row in ground])
    centre, scale = table.mean(axis=0), table.std(axis=0)
    names = sorted({row["spid"] for row in seen})
    bags: dict[str, list[Any]] = {name: [] for name in names}
    places: dict[str, set[tuple[str, str]]] = {name: set() for name in names}
    groups = {row["spid"]: GROUPS[row["group"]] for row in seen}
    for row in seen:
        bags[row["spid"]].append([float(row[name]) for name in VARIABLES[region]])
        places[row["spid"]].add((row["x"], row["y"]))
    return Region(
        np.array([name.removeprefix(region.lower()) for name in names]),
        np.array([groups[name] for name in names]),
        [(np.array(bags[name]) - centre) / scale for name in names],
        [places[name] for name in names],
    )


def _rows(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def coarse(group: str) -> str:
    """Return the group without the kind of forest."""
    return "plants" if "forest" in group else group


def matrices(here: Region) -> dict[str, Matrix]:
    """Return kernel matrices of species, by the rule of the variance, as they are and normalised."""
    found = {}
    for rule in ("lscv", "likelihood"):
        models = FitEach(KDEEstimator(rule)).fit_transform(here.bags)
        found[rule] = np.asarray(MeanMap(1.0)(models))
        found[f"{rule}, normalised"] = np.asarray(MeanMap(1.0).normalized()(models))
    return found


def purity_test(K: Matrix, groups: NDArray[Any], permutations: int) -> tuple[float, float, float]:
    """Return the share of objects whose nearest neighbour is of their group, its mean over permutations, and a p-value.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel values.
    groups : ndarray of shape (n,)
        Groups.
    permutations : int
        Random permutations of the groups (seed 0).
    """
    nearest = np.where(np.eye(len(K), dtype=bool), -np.inf, K).argmax(axis=1)
    rng = np.random.default_rng(0)
    others = np.array([np.mean(p[nearest] == p) for p in (rng.permutation(groups) for _ in range(permutations))])
    share = float(np.mean(groups[nearest] == groups))
    return share, float(others.mean()), float((1 + (others >= share - 1e-12).sum()) / (1 + permutations))
