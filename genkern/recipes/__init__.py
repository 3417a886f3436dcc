"""Ready pipelines, from a list of objects to a classifier, one line each.

Each function returns a scikit-learn ``Pipeline`` whose steps and nested parameters can be changed by ``set_params``
and searched by ``GridSearchCV``. All of them decide between several classes by one-vs-rest. The pairwise scheme that
``SVC`` uses by itself is a trap with sharp kernels and many classes: on Japanese vowels (nine speakers) the product
kernel then makes two to three times as many errors.
"""

from __future__ import annotations

from genkern.recipes.aligned import aligned_symbols
from genkern.recipes.auto import AutoClassifier, auto
from genkern.recipes.candidates import candidates
from genkern.recipes.homology import homology
from genkern.recipes.points import points
from genkern.recipes.series import contours, series
from genkern.recipes.svm import fisher_svm, meanmap_svm, product_svm, spectrum_svm
from genkern.recipes.symbols import symbols
from genkern.recipes.text import text
from genkern.validation import unknown_name

__all__ = [
    "AutoClassifier",
    "aligned_symbols",
    "auto",
    "candidates",
    "contours",
    "fisher_svm",
    "homology",
    "meanmap_svm",
    "points",
    "product_svm",
    "series",
    "spectrum_svm",
    "symbols",
    "text",
]


def __getattr__(name: str) -> object:
    """Say which recipes there are where one is not known."""
    raise unknown_name(name, __name__, __all__)
