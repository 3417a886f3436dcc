"""Embeddings: raw objects become vectors or models."""

from genkern.embed.fisher import FisherScore
from genkern.embed.fit_each import FitEach
from genkern.embed.maps import LogisticMap, LogMap, PowerMap
from genkern.embed.marginalized import Marginalized
from genkern.embed.scaling import ScaleSeries
from genkern.embed.spectrum import Spectrum
from genkern.embed.state_space import StateSpace
from genkern.embed.top import TopScore

__all__ = [
    "FisherScore",
    "FitEach",
    "LogMap",
    "LogisticMap",
    "Marginalized",
    "PowerMap",
    "ScaleSeries",
    "Spectrum",
    "StateSpace",
    "TopScore",
]
