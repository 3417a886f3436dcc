"""Data to try things on: two real sets that come with the package, and the papers' synthetic problems."""

from genkern.datasets.embedded import load_japanese_vowels, load_splice_junctions
from genkern.datasets.switching import make_switching_systems, random_switching_lds
from genkern.datasets.synthetic import make_two_hmms, make_two_mixtures, two_hmms, two_mixtures
from genkern.io.dataset import Dataset

__all__ = [
    "Dataset",
    "load_japanese_vowels",
    "load_splice_junctions",
    "make_switching_systems",
    "make_two_hmms",
    "make_two_mixtures",
    "random_switching_lds",
    "two_hmms",
    "two_mixtures",
]
