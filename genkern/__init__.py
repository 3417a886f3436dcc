"""Kernels and feature maps from generative models.

Names are imported on first use, so that ``import genkern`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from genkern import datasets, plots, recipes
    from genkern.affinities import Expected, Jeffreys, Power, affinity
    from genkern.aligned_gram import AlignedGram
    from genkern.embed import (
        BlockNormalizer,
        CentreSeries,
        Channels,
        CharacteristicFeatures,
        CrossFit,
        EmpiricalMeanMap,
        FisherScore,
        FitEach,
        LatentMeanMap,
        LogisticMap,
        LogMap,
        LogOddsWeights,
        Marginalized,
        ModelLogOdds,
        MultiScale,
        PositionalSpectrum,
        Posteriors,
        PowerMap,
        ProposalFeatures,
        Recode,
        RegionSpectrum,
        Spectrum,
        Standardize,
        StateSpace,
        TopScore,
        Turns,
        UnitTrace,
        Views,
        Windows,
    )
    from genkern.explanation import Explanation, explain
    from genkern.gram import Gram
    from genkern.kernels import (
        RBF,
        Diffusion,
        EmpiricalMean,
        Hellinger,
        Kernel,
        LatentMean,
        Linear,
        MeanMap,
        On,
        Polynomial,
        ProbabilityProduct,
        SetBhattacharyya,
        SymmetricKL,
    )
    from genkern.kernels.diagnostics import diagnostics
    from genkern.learn import (
        EqualErrorClassifier,
        KernelLogisticRegression,
        KernelRidgeClassifierCV,
        KernelSVMClassifierCV,
        PlugInClassifier,
        equal_error_rate,
        roc50_score,
        roc_points,
    )
    from genkern.models.base import Statistics
    from genkern.models.bayes_net import BayesNet
    from genkern.models.bayes_net_estimator import BayesNetEstimator
    from genkern.models.bernoulli import Bernoulli, BernoulliEstimator
    from genkern.models.categorical import Categorical
    from genkern.models.categorical_estimator import CategoricalEstimator
    from genkern.models.check import check_score
    from genkern.models.class_mixture import ClassMixture
    from genkern.models.dirichlet import Dirichlet, DirichletEstimator
    from genkern.models.dirichlet_multinomial import DirichletMultinomial
    from genkern.models.exponential import Exponential, ExponentialEstimator
    from genkern.models.factorial import FactorialHMM
    from genkern.models.factorial_estimator import FactorialHMMEstimator
    from genkern.models.gamma import Gamma, GammaEstimator
    from genkern.models.gaussian import Gaussian
    from genkern.models.gaussian_estimator import GaussianEstimator
    from genkern.models.geometric import Geometric, GeometricEstimator
    from genkern.models.hmm import HMM
    from genkern.models.hmm_estimator import HMMEstimator
    from genkern.models.kde import KDE
    from genkern.models.kde_estimator import KDEEstimator
    from genkern.models.lds import LDS
    from genkern.models.lds_estimator import LDSEstimator
    from genkern.models.linear_gaussian_net import LinearGaussianNet
    from genkern.models.linear_gaussian_net_estimator import LinearGaussianNetEstimator
    from genkern.models.markov import MarkovChain, PeriodicChain, PositionalChain
    from genkern.models.markov_estimator import (
        MarkovChainEstimator,
        PeriodicChainEstimator,
        PositionalChainEstimator,
    )
    from genkern.models.mixture import Mixture
    from genkern.models.mixture_estimator import MixtureEstimator
    from genkern.models.multinomial import Multinomial
    from genkern.models.multinomial_estimator import MultinomialEstimator
    from genkern.models.negative_binomial import NegativeBinomial
    from genkern.models.poisson import Poisson, PoissonEstimator
    from genkern.models.posterior import Posterior
    from genkern.models.sampled import Sampled
    from genkern.models.site import SiteModel
    from genkern.models.site_estimator import SiteEstimator
    from genkern.models.student_t import StudentT
    from genkern.models.switching import SwitchingLDS
    from genkern.models.switching_estimator import SwitchingLDSEstimator
    from genkern.models.von_mises import VonMises, VonMisesEstimator
    from genkern.nystrom import Nystrom
    from genkern.objects import Alphabet, as_alphabet, check_objects, from_concatenated
    from genkern.representations import Representations
    from genkern.store import Store

_HOMES = {
    "affinities": ("Expected", "Jeffreys", "Power", "affinity"),
    "aligned_gram": ("AlignedGram",),
    "embed": (
        "BlockNormalizer",
        "CentreSeries",
        "Channels",
        "CharacteristicFeatures",
        "CrossFit",
        "EmpiricalMeanMap",
        "FisherScore",
        "FitEach",
        "LatentMeanMap",
        "LogMap",
        "LogOddsWeights",
        "LogisticMap",
        "Marginalized",
        "ModelLogOdds",
        "MultiScale",
        "PositionalSpectrum",
        "Posteriors",
        "PowerMap",
        "ProposalFeatures",
        "Recode",
        "RegionSpectrum",
        "Spectrum",
        "Standardize",
        "StateSpace",
        "TopScore",
        "Turns",
        "UnitTrace",
        "Views",
        "Windows",
    ),
    "explanation": ("Explanation", "explain"),
    "gram": ("Gram",),
    "kernels": (
        "RBF",
        "Diffusion",
        "EmpiricalMean",
        "Hellinger",
        "Kernel",
        "LatentMean",
        "Linear",
        "MeanMap",
        "On",
        "Polynomial",
        "ProbabilityProduct",
        "SetBhattacharyya",
        "SymmetricKL",
    ),
    "kernels.diagnostics": ("diagnostics",),
    "learn": (
        "EqualErrorClassifier",
        "KernelLogisticRegression",
        "KernelRidgeClassifierCV",
        "KernelSVMClassifierCV",
        "PlugInClassifier",
        "equal_error_rate",
        "roc50_score",
        "roc_points",
    ),
    "models.base": ("Statistics",),
    "models.bayes_net": ("BayesNet",),
    "models.bayes_net_estimator": ("BayesNetEstimator",),
    "models.bernoulli": ("Bernoulli", "BernoulliEstimator"),
    "models.categorical": ("Categorical",),
    "models.categorical_estimator": ("CategoricalEstimator",),
    "models.check": ("check_score",),
    "models.class_mixture": ("ClassMixture",),
    "models.dirichlet": ("Dirichlet", "DirichletEstimator"),
    "models.dirichlet_multinomial": ("DirichletMultinomial",),
    "models.exponential": ("Exponential", "ExponentialEstimator"),
    "models.factorial": ("FactorialHMM",),
    "models.factorial_estimator": ("FactorialHMMEstimator",),
    "models.gamma": ("Gamma", "GammaEstimator"),
    "models.gaussian": ("Gaussian",),
    "models.gaussian_estimator": ("GaussianEstimator",),
    "models.geometric": ("Geometric", "GeometricEstimator"),
    "models.hmm": ("HMM",),
    "models.hmm_estimator": ("HMMEstimator",),
    "models.kde": ("KDE",),
    "models.kde_estimator": ("KDEEstimator",),
    "models.lds": ("LDS",),
    "models.lds_estimator": ("LDSEstimator",),
    "models.linear_gaussian_net": ("LinearGaussianNet",),
    "models.linear_gaussian_net_estimator": ("LinearGaussianNetEstimator",),
    "models.markov": ("MarkovChain", "PeriodicChain", "PositionalChain"),
    "models.markov_estimator": ("MarkovChainEstimator", "PeriodicChainEstimator", "PositionalChainEstimator"),
    "models.mixture": ("Mixture",),
    "models.mixture_estimator": ("MixtureEstimator",),
    "models.multinomial": ("Multinomial",),
    "models.multinomial_estimator": ("MultinomialEstimator",),
    "models.negative_binomial": ("NegativeBinomial",),
    "models.poisson": ("Poisson", "PoissonEstimator"),
    "models.posterior": ("Posterior",),
    "models.sampled": ("Sampled",),
    "models.site": ("SiteModel",),
    "models.site_estimator": ("SiteEstimator",),
    "models.student_t": ("StudentT",),
    "models.switching": ("SwitchingLDS",),
    "models.switching_estimator": ("SwitchingLDSEstimator",),
    "models.von_mises": ("VonMises", "VonMisesEstimator"),
    "nystrom": ("Nystrom",),
    "objects": ("Alphabet", "as_alphabet", "check_objects", "from_concatenated"),
    "representations": ("Representations",),
    "store": ("Store",),
}
_MODULE_OF = {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}
_MODULES = ("datasets", "plots", "recipes")

__all__ = [
    "HMM",
    "KDE",
    "LDS",
    "RBF",
    "AlignedGram",
    "Alphabet",
    "BayesNet",
    "BayesNetEstimator",
    "Bernoulli",
    "BernoulliEstimator",
    "BlockNormalizer",
    "Categorical",
    "CategoricalEstimator",
    "CentreSeries",
    "Channels",
    "CharacteristicFeatures",
    "ClassMixture",
    "CrossFit",
    "Diffusion",
    "Dirichlet",
    "DirichletEstimator",
    "DirichletMultinomial",
    "EmpiricalMean",
    "EmpiricalMeanMap",
    "EqualErrorClassifier",
    "Expected",
    "Explanation",
    "Exponential",
    "ExponentialEstimator",
    "FactorialHMM",
    "FactorialHMMEstimator",
    "FisherScore",
    "FitEach",
    "Gamma",
    "GammaEstimator",
    "Gaussian",
    "GaussianEstimator",
    "Geometric",
    "GeometricEstimator",
    "Gram",
    "HMMEstimator",
    "Hellinger",
    "Jeffreys",
    "KDEEstimator",
    "Kernel",
    "KernelLogisticRegression",
    "KernelRidgeClassifierCV",
    "KernelSVMClassifierCV",
    "LDSEstimator",
    "LatentMean",
    "LatentMeanMap",
    "Linear",
    "LinearGaussianNet",
    "LinearGaussianNetEstimator",
    "LogMap",
    "LogOddsWeights",
    "LogisticMap",
    "Marginalized",
    "MarkovChain",
    "MarkovChainEstimator",
    "MeanMap",
    "Mixture",
    "MixtureEstimator",
    "ModelLogOdds",
    "MultiScale",
    "Multinomial",
    "MultinomialEstimator",
    "NegativeBinomial",
    "Nystrom",
    "On",
    "PeriodicChain",
    "PeriodicChainEstimator",
    "PlugInClassifier",
    "Poisson",
    "PoissonEstimator",
    "Polynomial",
    "PositionalChain",
    "PositionalChainEstimator",
    "PositionalSpectrum",
    "Posterior",
    "Posteriors",
    "Power",
    "PowerMap",
    "ProbabilityProduct",
    "ProposalFeatures",
    "Recode",
    "RegionSpectrum",
    "Representations",
    "Sampled",
    "SetBhattacharyya",
    "SiteEstimator",
    "SiteModel",
    "Spectrum",
    "Standardize",
    "StateSpace",
    "Statistics",
    "Store",
    "StudentT",
    "SwitchingLDS",
    "SwitchingLDSEstimator",
    "SymmetricKL",
    "TopScore",
    "Turns",
    "UnitTrace",
    "Views",
    "VonMises",
    "VonMisesEstimator",
    "Windows",
    "affinity",
    "as_alphabet",
    "check_objects",
    "check_score",
    "datasets",
    "diagnostics",
    "equal_error_rate",
    "explain",
    "from_concatenated",
    "plots",
    "recipes",
    "roc50_score",
    "roc_points",
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
