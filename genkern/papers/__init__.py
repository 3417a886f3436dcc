"""The experiments of the papers: a module each, with ``report(study)`` that returns a ``Report``."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

# Names, as ``genkern reproduce`` takes them, of the modules here, and what each does.
EXPERIMENTS = {
    "kernels": "Plug-in models, Fisher, product, mean map and spectrum kernels on the two sets of the package.",
    "mean_map_table": "Mehta & Gray, Table 1: synthetic binary sequences, exons and introns, seven classifiers.",
    "mean_map_cuts": "Beside that table: exons and introns without their ends or of one length, scales of kernels.",
    "mean_map_figures": "Mehta & Gray, Figures 1 and 2 a, b: sensitivity of mean map kernels, errors over lambda.",
    "biodiversity": "Mehta & Gray, Figure 2 c: species as densities of their environments, and a map of them.",
    "splice_sites": "Jaakkola & Haussler, Figure 1 a, b: splice sites, the uniform model's kernel against mixtures.",
    "homology": "Jaakkola & Haussler, Figure 1 c: remote homology of proteins, HMMs, Fisher kernels and a recipe.",
    "top_mixtures": "Tsuda et al., section 5: mixtures of Gaussians in 100 channels, Fisher and TOP kernels.",
    "protein_classes": "Tsuda et al., section 6: pairs of protein classes, HMMs, Fisher and TOP kernels.",
    "webkb": "Jebara et al., section 8.1: pages of students and faculty, kernels between multinomials.",
    "exons_introns": "Jebara et al., section 8.2: exons and introns, kernels between HMMs, and honest baselines.",
    "switching_systems": "Jebara et al., section 8.3: series of switching linear systems, five classifiers.",
    "nonlinear_maps": "Carli et al., Table I: maps of state-space and marginalized kernels on four sets.",
}


def run(
    name: str,
    quick: bool = False,
    data: Path | None = None,
    out: Path | None = None,
    n_jobs: int = 1,
    verbose: bool = False,
) -> Any:
    """Run an experiment and return its ``Report``.

    Parameters
    ----------
    name : str
        One of ``EXPERIMENTS``.
    quick : bool, default=False
        Whether it shall take seconds, on fewer objects and settings.
    data : path, optional
        Folder of data sets.
    out : path, optional
        Folder where results of parts are kept, so that an interrupted run goes on.
    n_jobs : int, default=1
        Processes.
    verbose : bool, default=False
        Whether progress is reported.
    """
    from genkern.papers.shared.study import Study

    module = importlib.import_module(f"genkern.papers.{name}")
    return module.report(Study(name, quick, data, out, n_jobs, verbose))
