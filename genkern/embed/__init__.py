"""Embeddings: raw objects become vectors or models."""

from genkern.features.characteristic import CharacteristicFeatures
from genkern.features.empirical_mean_map import EmpiricalMeanMap
from genkern.features.fisher import FisherScore
from genkern.features.fit_each import FitEach
from genkern.features.latent_mean_map import LatentMeanMap
from genkern.features.log_odds import LogOddsWeights
from genkern.features.marginalized import Marginalized
from genkern.features.model_log_odds import ModelLogOdds
from genkern.features.positional import PositionalSpectrum, RegionSpectrum
from genkern.features.posteriors import Posteriors
from genkern.features.proposal import ProposalFeatures
from genkern.features.spectrum import Spectrum
from genkern.features.state_space import StateSpace
from genkern.features.top import TopScore
from genkern.preprocess.block_normalizer import BlockNormalizer
from genkern.preprocess.channels import Channels
from genkern.preprocess.cross_fit import CrossFit
from genkern.preprocess.maps import LogisticMap, LogMap, PowerMap
from genkern.preprocess.multi_scale import MultiScale
from genkern.preprocess.recode import Recode
from genkern.preprocess.scaling import CentreSeries, ScaleSeries
from genkern.preprocess.standardize import Standardize
from genkern.preprocess.turns import Turns
from genkern.preprocess.unit_trace import UnitTrace
from genkern.preprocess.views import Views
from genkern.preprocess.windows import Windows

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
