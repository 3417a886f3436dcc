"""Pictures of data, models, decisions and results, for matplotlib and as hand-written SVG."""

from genkern.plots.calibration import CalibrationDisplay
from genkern.plots.confusion import ConfusionDisplay
from genkern.plots.contributions import ContributionsDisplay
from genkern.plots.curves import MeanCurveDisplay
from genkern.plots.diagrams import StateDiagramDisplay
from genkern.plots.display import pyplot
from genkern.plots.gram import GramDisplay
from genkern.plots.logos import LogoDisplay
from genkern.plots.maps import ObjectMapDisplay
from genkern.plots.rankings import PrecisionRecallDisplay, RocDisplay
from genkern.plots.samples import LengthsDisplay, SamplesDisplay
from genkern.plots.shortcuts import explanation, gram_heatmap, kernel_pca_map, object_map
from genkern.plots.strips import HeatStripDisplay
from genkern.plots.style import css

__all__ = [
    "CalibrationDisplay",
    "ConfusionDisplay",
    "ContributionsDisplay",
    "GramDisplay",
    "HeatStripDisplay",
    "LengthsDisplay",
    "LogoDisplay",
    "MeanCurveDisplay",
    "ObjectMapDisplay",
    "PrecisionRecallDisplay",
    "RocDisplay",
    "SamplesDisplay",
    "StateDiagramDisplay",
    "css",
    "explanation",
    "gram_heatmap",
    "kernel_pca_map",
    "object_map",
    "pyplot",
]
