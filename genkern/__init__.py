"""Kernels and feature maps from generative models.

Names are imported on first use, so that ``import genkern`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from genkern import datasets, plots, recipes
    from genkern.affinities import Expected, Power, affinity
    from genkern.embed import FisherScore, FitEach, Spectrum
    from genkern.gram import Gram
    from genkern.kernels import RBF, Kernel, Linear, MeanMap, Polynomial, ProbabilityProduct
    from genkern.learn import PlugInClassifier
    from genkern.models.base import Statistics
    from genkern.models.categorical import Categorical
    from genkern.models.categorical_estimator import CategoricalEstimator
    from genkern.models.check import check_score
    from genkern.models.gaussian import Gaussian
    from genkern.models.gaussian_estimator import GaussianEstimator
    from genkern.models.hmm import HMM
    from genkern.models.hmm_estimator import HMMEstimator
    from genkern.objects import Alphabet, check_objects, from_concatenated
    from genkern.store import Store

_HOMES = {
    "affinities": ("Expected", "Power", "affinity"),
    "embed": ("FisherScore", "FitEach", "Spectrum"),
    "gram": ("Gram",),
    "kernels": ("RBF", "Kernel", "Linear", "MeanMap", "Polynomial", "ProbabilityProduct"),
    "learn": ("PlugInClassifier",),
    "models.base": ("Statistics",),
    "models.categorical": ("Categorical",),
    "models.categorical_estimator": ("CategoricalEstimator",),
    "models.check": ("check_score",),
    "models.gaussian": ("Gaussian",),
    "models.gaussian_estimator": ("GaussianEstimator",),
    "models.hmm": ("HMM",),
    "models.hmm_estimator": ("HMMEstimator",),
    "objects": ("Alphabet", "check_objects", "from_concatenated"),
    "store": ("Store",),
}
_MODULE_OF = {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}
_MODULES = ("datasets", "plots", "recipes")

__all__ = [
    "HMM",
    "RBF",
    "Alphabet",
    "Categorical",
    "CategoricalEstimator",
    "Expected",
    "FisherScore",
    "FitEach",
    "Gaussian",
    "GaussianEstimator",
    "Gram",
    "HMMEstimator",
    "Kernel",
    "Linear",
    "MeanMap",
    "PlugInClassifier",
    "Polynomial",
    "Power",
    "ProbabilityProduct",
    "Spectrum",
    "Statistics",
    "Store",
    "affinity",
    "check_objects",
    "check_score",
    "datasets",
    "from_concatenated",
    "plots",
    "recipes",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
