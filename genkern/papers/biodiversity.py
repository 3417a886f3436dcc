"""Mehta & Gray (2010), Figure 2 c: species as densities of their environments, and a map of them by kernel PCA."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kruskal
from sklearn.decomposition import KernelPCA

from genkern import FitEach, KDEEstimator, MeanMap
from genkern.evaluation import two_sample_test
from genkern.papers.report import Report, Table
from genkern.papers.study import Study
from genkern.plots import kernel_pca_map

PROTOCOL = """\
**Data.** 3323 sightings of 54 species in New South Wales (Elith et al. 2020), in place of those of Costa Rica: 7 bats,
10 birds, 8 reptiles and 29 plants (13 of rainforest, 16 of open forest; 15 trees, 14 of the understorey). The species
have only numbers. Each sighting has variables of its place. We take the five nearest to the paper's (altitude, mean
annual temperature, annual rain, isothermality, seasonality of the temperature): mean annual temperature, lowest
temperature, annual rain, rain of the driest quarter and ruggedness, each in standard deviations of 10 000 places
drawn at random from the region. They were chosen by their meaning, before any result was seen; the paper does not
tell its units.

**Kernel.** A density of each species in these five dimensions, whose variance minimises an estimate of the mean
integrated squared error, as in the paper (`KDEEstimator("lscv")`); the mean map kernel with λ = 1 between densities,
as in the paper; kernel PCA. The tests also have `KDEEstimator("likelihood")`, the default here, and normalised kernels.

**Tests.** A group's purity is the share of species whose nearest neighbour, the one of the largest kernel value, is of
the same group; its p-value is the share of {permutations} random permutations of the groups (seed 0) that reach it. Two
groups are also compared by their maximum mean discrepancy, with as many permutations (`two_sample_test`). The groups
were recorded by different surveys. So the same is done with a kernel that knows nothing of environments: the cosine of
the sets of places (longitude and latitude) where two species were seen. If that separates groups too, then a
separation by environment may be one of the surveys."""
FINDINGS = ""
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
DIVISIONS = {  # words of groups, and how they are called
    "four groups": {"bats": "bats", "birds": "birds", "reptiles": "reptiles", "forest": "plants"},
    "birds, plants": {"birds": "birds", "forest": "plants"},
    "plants of rainforest, of open forest": {"rainforest": "rainforest", "open forest": "open forest"},
    "trees, understorey": {"trees": "trees", "understorey": "understorey"},
}
Matrix = NDArray[np.float64]


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


def report(study: Study) -> Report:
    """Run the experiment."""
    folder, permutations = str(study.folder("disdat")), 99 if study.quick else 999
    parts = study.map(_part, {region: (folder, region, permutations) for region in VARIABLES})
    here = region_of(Path(folder), "NSW")
    K = matrices(here)["lscv"]
    title = "A map of species by the densities of their environments"
    source = "Mehta & Gray (2010), Generative and latent mean map kernels, Figure 2 c."
    tables = [_separation(parts["NSW"]), _components(K, here), _confounding(parts)]
    protocol = PROTOCOL.format(permutations=permutations)
    return Report(study.name, title, source, protocol, tables, FINDINGS, _figures(K, here), study.quick)


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


def _coarse(group: str) -> str:
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


def _part(folder: str, region: str, permutations: int) -> dict[str, Any]:
    """Return all tests of a region, by division."""
    here = region_of(Path(folder), region)
    kernels = {**matrices(here), "places": here.overlap()}
    divisions = DIVISIONS if region == "NSW" else {"birds, plants": {"birds": "birds", "plants": "plants"}}
    return {name: _tests(kernels, here, words, permutations) for name, words in divisions.items()}


def _tests(kernels: Mapping[str, Matrix], here: Region, words: Mapping[str, str], permutations: int) -> dict[str, Any]:
    """Return the number of species and of places in each group and in all of them, and tests by every kernel."""
    called = np.array([next((words[word] for word in words if word in group), "") for group in here.groups])
    members = [np.flatnonzero(called == name) for name in words.values()]
    order = np.concatenate(members)
    seen = [set().union(*(here.places[i] for i in some)) for some in members]
    found: dict[str, Any] = {"n": len(order), "places": [*map(len, seen), len(set.intersection(*seen))], "tests": {}}
    for kernel, K in kernels.items():
        within = K[np.ix_(order, order)]
        share, chance, p = purity_test(within, called[order], permutations)
        found["tests"][kernel] = one = {"purity": share, "chance": chance, "p": p}
        if len(members) == 2:
            one["discrepancy"] = two_sample_test(within, len(members[0]), n_permutations=permutations).p_value
    return found


def _separation(part: Mapping[str, Any]) -> Table:
    """Return the purities and discrepancies of all divisions of New South Wales."""
    rows = []
    for division, found in part.items():
        for kernel, one in found["tests"].items():
            rows.append([division, found["n"], "places only" if kernel == "places" else kernel,
                         f"{100 * one['purity']:.0f}", f"{100 * one['chance']:.0f}", f"{one['p']:.2g}",
                         f"{one['discrepancy']:.2g}" if "discrepancy" in one else None])  # fmt: skip
    head = ["groups", "species", "kernel", "purity", "by chance", "p", "p of the discrepancy"]
    caption = "New South Wales: purity of groups in per cent, and what permuted groups have on average."
    return Table(caption, head, rows)


def _components(K: Matrix, here: Region, most: int = 6) -> Table:
    """Return how far the first components separate groups."""
    learner = KernelPCA(most, kernel="precomputed").fit(K)
    places, shares = learner.transform(K), learner.eigenvalues_
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    four = np.array([_coarse(group) for group in here.groups])
    plants = four == "plants"
    rows = []
    for k in range(most):
        values = [places[four == group, k] for group in dict.fromkeys(four)]
        habitats = [places[plants & np.char.startswith(here.groups, word), k] for word in ("rainforest", "open")]
        rows.append([k + 1, f"{100 * shares[k] / np.trace(centred):.0f}", f"{kruskal(*values).pvalue:.2g}",
                     f"{kruskal(*habitats).pvalue:.2g}"])  # fmt: skip
    caption = (
        "Single components of the kernel as in the paper: share of the variance in per cent, and p-values of Kruskal "
        "and Wallis' test, not corrected for the number of tests."
    )
    return Table(caption, ["component", "variance", "four groups", "rainforest against open forest"], rows)


def _confounding(parts: Mapping[str, Any]) -> Table:
    """Return how far the places of surveys separate groups in both regions."""
    rows = []
    for region, name in (("NSW", "New South Wales"), ("AWT", "Wet Tropics")):
        for division, found in parts[region].items():
            if len(found["places"]) == 3:
                purities = [found["tests"][kernel]["purity"] for kernel in ("places", "lscv", "lscv, normalised")]
                rows.append([name, division, *found["places"], *(f"{100 * purity:.0f}" for purity in purities)])
    head = ["region", "groups", "places of the first", "of the second", "of both", "places only", "lscv",
            "lscv, normalised"]  # fmt: skip
    caption = "The surveys: in how many places two groups were seen, and purities in per cent."
    return Table(caption, head, rows)


def _figures(K: Matrix, here: Region) -> dict[str, Any]:
    """Return the map of all groups, and one of birds and plants with their numbers."""
    from matplotlib.figure import Figure

    four = np.array([_coarse(group) for group in here.groups])
    everything = Figure(figsize=(10.0, 4.0), layout="constrained")
    for ax, pair in zip(everything.subplots(1, 2), ((0, 3), (0, 1))):
        kernel_pca_map(K, four, ax, "54 species", components=pair)
    some = np.flatnonzero(np.isin(four, ["birds", "plants"]))
    kinds = np.array([" ".join(group.split()[:-1]) or group for group in here.groups[some]])
    named = Figure(figsize=(8.5, 5.2), layout="constrained")
    kernel_pca_map(K[np.ix_(some, some)], kinds, named.subplots(), "Birds and plants", here.names[some], (0, 3))
    return {
        "First and fourth kernel principal component, as in the paper's Figure 2 c; first and second.": everything,
        "The same of birds and plants alone, with the numbers of the species in the data.": named,
    }
