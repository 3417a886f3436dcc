"""The experiments of the papers, each a module with ``run(quick, folder, verbose)`` that returns a ``Report``."""

from __future__ import annotations

# Names, as ``genkern reproduce`` takes them, of the modules here, and what each does.
EXPERIMENTS = {
    "kernels": "Plug-in models, Fisher, product, mean map and spectrum kernels on the two sets of the package.",
    "mean_map_synthetic": "Mehta & Gray, Table 1: binary sequences of two hidden Markov models, seven classifiers.",
}
