"""Log kernel values between models: ``affinity`` and its formulas."""

from genkern.affinities import (
    bayes_net,
    categorical,
    chains,
    factorial,
    families,
    gaussian,
    hmm,
    linear_gaussian,
    mixture,
    multinomial,
    switching,
)
from genkern.affinities.how import Expected, How, Power
from genkern.affinities.registry import Affinity, affinity
from genkern.affinities.rules import PairError

__all__ = [
    "Affinity",
    "Expected",
    "How",
    "PairError",
    "Power",
    "affinity",
    "bayes_net",
    "categorical",
    "chains",
    "factorial",
    "families",
    "gaussian",
    "hmm",
    "linear_gaussian",
    "mixture",
    "multinomial",
    "switching",
]
