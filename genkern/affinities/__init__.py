"""Log kernel values between models: ``affinity`` and its formulas."""

from genkern.affinities import (
    bayes_net,
    categorical,
    chains,
    conversions,
    factorial,
    families,
    gaussian,
    hmm,
    jeffreys,
    laplace,
    linear_gaussian,
    mixture,
    multinomial,
    predictive,
    profile,
    sampled,
    switching,
)
from genkern.affinities.how import Expected, ExpectedLaplace, How, Jeffreys, Power
from genkern.affinities.registry import Affinity, affinity
from genkern.affinities.rules import PairError

__all__ = [
    "Affinity",
    "Expected",
    "ExpectedLaplace",
    "How",
    "Jeffreys",
    "PairError",
    "Power",
    "affinity",
    "bayes_net",
    "categorical",
    "chains",
    "conversions",
    "factorial",
    "families",
    "gaussian",
    "hmm",
    "jeffreys",
    "laplace",
    "linear_gaussian",
    "mixture",
    "multinomial",
    "predictive",
    "profile",
    "sampled",
    "switching",
]
