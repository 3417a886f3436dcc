"""Embeddings: raw objects become vectors or models."""

from genkern.embed.fisher import FisherScore
from genkern.embed.fit_each import FitEach
from genkern.embed.scaling import ScaleSeries
from genkern.embed.spectrum import Spectrum

__all__ = ["FisherScore", "FitEach", "ScaleSeries", "Spectrum"]
