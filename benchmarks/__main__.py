"""``python -m benchmarks [part ...]``: print every ratio of the parts named, or of all; more parts only by name."""

from __future__ import annotations

import importlib
import sys

from benchmarks.timing import HEADER

PARTS = {
    "hmm_passes": "W1: posterior passes of hidden Markov models",
    "em": "W2, W3: Baum-Welch",
    "gram": "W4, W7: Gram matrices",
    "affinities": "Gram matrices of Gaussians, mixtures, density estimates and linear systems",
    "gaussian_hmm": "W5: passes of Gaussian hidden Markov models",
    "fisher": "Fisher features of hidden Markov models",
    "mixtures": "EM of Gaussian mixtures, W6: Fisher vectors",
    "kmers": "W8: k-mer counts",
    "alignments": "the local alignment kernel",
    "lds": "EM of linear dynamical systems",
    "first_use": "what the first calls of all take, with an empty cache",
}
NAMED = {
    "calibration": "log loss and calibration error of recipes; no race",
    "stream": "sequences from a file to a learner in batches, with memory; no race",
    "processes": "matrices on disk by one and by two processes; no race",
    "growth": "exponents of time and memory of all that is public, and the table of docs/performance.md; no race",
    "nystrom": "Nystrom features of 20,000 sequences against the exact kernel; no race",
}
MODULES = dict.fromkeys(("stream", "processes", "nystrom"), "scale")  # of parts that share one


def main(names: list[str]) -> None:
    known = PARTS | NAMED
    unknown = [name for name in names if name not in known]
    if unknown:
        listed = "\n".join(f"  {name:12} {what}" for name, what in known.items())
        raise SystemExit(f"benchmarks: there is no part {unknown[0]!r}. The parts are\n{listed}")
    if not names or set(names) & set(PARTS):
        print(HEADER, flush=True)
    for name in names or PARTS:
        module = importlib.import_module(f"benchmarks.{MODULES.get(name, name)}")
        getattr(module, name if name in MODULES else "main")()


if __name__ == "__main__":
    main(sys.argv[1:])
