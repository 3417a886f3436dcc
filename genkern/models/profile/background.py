"""Frequencies of symbols outside of families."""

from __future__ import annotations

import numpy as np

from genkern.data.objects import Alphabet
from genkern.validation import Floats

# Of amino acids A, C, D, ..., Y in Swiss-Prot 50.8 of 2006: those of HMMER's null model (p7_AminoFrequencies).
AMINO_ACIDS = (
    0.0787945, 0.0151600, 0.0535222, 0.0668298, 0.0397062, 0.0695071, 0.0229198, 0.0590092, 0.0594422, 0.0963728,
    0.0237718, 0.0414386, 0.0482904, 0.0395639, 0.0540978, 0.0683364, 0.0540687, 0.0673417, 0.0114135, 0.0304133,
)  # fmt: skip


def background_of(alphabet: Alphabet) -> Floats:
    """Return the frequencies (m,) of amino acids for proteins, and uniform ones for other alphabets."""
    if alphabet.symbols == tuple("ACDEFGHIKLMNPQRSTVWY"):
        return np.array(AMINO_ACIDS) / sum(AMINO_ACIDS)
    return np.full(alphabet.size, 1.0 / alphabet.size)
