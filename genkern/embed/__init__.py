"""Embeddings: raw objects become vectors or models."""

from genkern.embed.block_normalizer import BlockNormalizer
from genkern.embed.channels import Channels
from genkern.embed.characteristic import CharacteristicFeatures
from genkern.embed.cross_fit import CrossFit
from genkern.embed.empirical_mean_map import EmpiricalMeanMap
from genkern.embed.fisher import FisherScore
from genkern.embed.fit_each import FitEach
from genkern.embed.latent_mean_map import LatentMeanMap
from genkern.embed.log_odds import LogOddsWeights
from genkern.embed.maps import LogisticMap, LogMap, PowerMap
from genkern.embed.marginalized import Marginalized
from genkern.embed.model_log_odds import ModelLogOdds
from genkern.embed.multi_scale import MultiScale
from genkern.embed.positional import PositionalSpectrum, RegionSpectrum
from genkern.embed.posteriors import Posteriors
from genkern.embed.proposal import ProposalFeatures
from genkern.embed.recode import Recode
from genkern.embed.scaling import CentreSeries, ScaleSeries
from genkern.embed.spectrum import Spectrum
from genkern.embed.standardize import Standardize
from genkern.embed.state_space import StateSpace
from genkern.embed.top import TopScore
from genkern.embed.turns import Turns
from genkern.embed.unit_trace import UnitTrace
from genkern.embed.views import Views
from genkern.embed.windows import Windows

__all__ = [
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
    "ScaleSeries",
    "Spectrum",
    "Standardize",
    "StateSpace",
    "TopScore",
    "Turns",
    "UnitTrace",
    "Views",
    "Windows",
]
