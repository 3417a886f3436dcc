"""Mehta & Gray (2010), Figure 2 c: species as densities of their environments, and a map of them by kernel PCA."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kruskal
from sklearn.decomposition import KernelPCA

from genkern.evaluation import two_sample_test
from genkern.papers.shared.report import Report, Table
from genkern.papers.shared.study import Study
from genkern.papers.species import VARIABLES, Matrix, Region, coarse, matrices, purity_test, region_of
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
separation by environment may be one of the surveys. The last table has this of 20 birds and 20 plants of the Wet
Tropics of Queensland too (3806 sightings, five variables of the same kind), which are not on the maps."""
FINDINGS = """\
**What agrees.** The paper reports "some separation between the different species groups" in two components, and no
figure. Here the nearest neighbour of a species is of its own group for 59 % of the 54 species, where 35 % would be by
chance (p = 0.001). The kind of result is the same: groups are visible and overlap widely. It hardly depends on the
rule for the variance or on normalisation (56 to 63 %).

**What does not.** The paper's first and fourth component do not separate these groups (p = 0.75 and 0.31). The second
does (p = 6e-5, also after correction for the twelve tests of the table): reptiles lie at its lower end. Which component
it is depends on the data; the paper looked for it, too. The first and third are of habitats: plants of rainforest and
of open forest differ in them (p = 0.025 and 0.016, not corrected), and by their discrepancy (p = 0.003 to 0.015). Trees
and understorey are not separated by any of the kernels between densities (p = 0.053 to 0.52).

**What the separation does not prove.** Birds and plants were recorded by different surveys. In New South Wales one
place has both, in the Wet Tropics none; so the places alone, without any environment, separate birds from plants
without error in both regions, and the four groups of New South Wales for 96 %. In the Wet Tropics the normalised kernel
does so without error too. A separation of birds from plants by their environments can therefore be one of the places
that were searched, and the same may hold for the paper's groups; it does not say how its species were sampled. The
comparison least open to this is that within plants, whose groups were seen in common places. There, too, places alone
separate rainforest from open forest (76 %), as they must if the species live in different forests."""
DIVISIONS = {  # words of groups, and how they are called
    "four groups": {"bats": "bats", "birds": "birds", "reptiles": "reptiles", "forest": "plants"},
    "birds, plants": {"birds": "birds", "forest": "plants"},
    "plants of rainforest, of open forest": {"rainforest": "rainforest", "open forest": "open forest"},
    "trees, understorey": {"trees": "trees", "understorey": "understorey"},
}


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
    four = np.array([coarse(group) for group in here.groups])
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

    four = np.array([coarse(group) for group in here.groups])
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
