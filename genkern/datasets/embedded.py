"""The two real sets inside the package. Sources and licences: README.md beside this file."""

from __future__ import annotations

import gzip
from importlib.resources import files
from io import BytesIO

import numpy as np

from genkern.io.dataset import Dataset

SPLICE = """\
Primate DNA around splice junctions: 3186 windows of 60 nucleotides (A, C, G, T), the junction in the middle.
Classes: EI (exon to intron, 767), IE (intron to exon, 765), N (neither, 1654).
Source: UCI Machine Learning Repository, Molecular Biology (Splice-junction Gene Sequences); from mlbench.
Licence: CC BY 4.0. Cite: G. Towell, M. Noordewier, J. Shavlik (1991)."""

VOWELS = """\
Nine male speakers saying the Japanese vowels /ae/: 640 series of 12 LPC cepstrum coefficients, 7-29 frames.
Classes: the speakers, "1" to "9". Official split: 270 series for training (30 a speaker), 370 for testing.
Source: UCI Machine Learning Repository, Japanese Vowels, doi:10.24432/C5NS47; from aeon.
Licence: CC BY 4.0. Cite: M. Kudo, J. Toyama, M. Shimbo (1999), Multidimensional curve classification using
passing-through regions, Pattern Recognition Letters 20."""


def load_splice_junctions() -> Dataset:
    """Return the splice junctions: 3186 aligned DNA windows of 60 letters, classes EI, IE and N.

    Returns
    -------
    Dataset
        ``X`` is a list of strings over "ACGT".

    Examples
    --------
    >>> from genkern.datasets import load_splice_junctions
    >>> load_splice_junctions()
    Dataset(splice junctions: 3186 objects, classes EI 767, IE 765, N 1654)
    """
    lines = gzip.decompress(_read("splice_junctions.fasta.gz")).decode("ascii").split()
    names, labels, windows = lines[0::3], lines[1::3], lines[2::3]
    return Dataset(
        windows,
        np.array([label.removeprefix("class=") for label in labels]),
        [name.removeprefix(">") for name in names],
        kind="symbols",
        meta={"name": "splice junctions", "description": SPLICE, "alphabet": "dna"},
    )


def load_japanese_vowels() -> Dataset:
    """Return the Japanese vowels: 640 series of 12 coefficients, 9 speakers, with the official split.

    Returns
    -------
    Dataset
        ``X`` is a list of float64 arrays of shape (T, 12); ``split`` says "train" or "test".

    Examples
    --------
    >>> from genkern.datasets import load_japanese_vowels
    >>> vowels = load_japanese_vowels()
    >>> vowels.X[0].shape, len(vowels.part("train").X), len(vowels.part("test").X)
    ((20, 12), 270, 370)
    """
    with np.load(BytesIO(_read("japanese_vowels.npz")), allow_pickle=False) as stored:
        values = stored["values"].astype(np.float64)
        ends = np.cumsum(stored["lengths"])
        labels, split = stored["y"], stored["split"]
    series = [part.copy() for part in np.split(values, ends[:-1])]
    names = [f"utterance{i + 1:03d}" for i in range(len(series))]
    meta = {"name": "Japanese vowels", "description": VOWELS, "split": split}
    return Dataset(series, labels, names, kind="series", meta=meta)


def _read(name: str) -> bytes:
    """Return the bytes of a file of this package."""
    return (files("genkern.datasets") / name).read_bytes()
