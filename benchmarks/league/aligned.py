"""Splice sites: aligned windows of DNA."""

from __future__ import annotations

import numpy as np

from benchmarks.league.contest import Contest, Task, fasta_of
from genkern import recipes


def windows(path: str) -> Task:
    """Return the windows of a FASTA file and the classes that its headers name."""
    headers, sequences = fasta_of(path)
    return Task(sequences, np.array([header.split("class=")[1].split()[0] for header in headers]))


CONTESTS = {
    "splice_junctions": Contest(
        "splice_junctions", lambda: windows("embed/splice_junctions.fasta.gz"), recipes.aligned_symbols, 2.7, 2.8
    ),
    "celegans_5ss": Contest(
        "celegans_5ss", lambda: windows("celegans_5ss/celegans_5ss_25mer.fasta.gz"), recipes.aligned_symbols, 5.2, 5.3
    ),
}
