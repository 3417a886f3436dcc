"""Pictures of data, models, decisions and results, for matplotlib and as hand-written SVG."""

from genkern.plots.confusion import ConfusionDisplay
from genkern.plots.contributions import ContributionsDisplay
from genkern.plots.display import pyplot
from genkern.plots.gram import GramDisplay
from genkern.plots.maps import ObjectMapDisplay
from genkern.plots.rankings import PrecisionRecallDisplay, RocDisplay
from genkern.plots.shortcuts import explanation, gram_heatmap, kernel_pca_map, object_map
from genkern.plots.strips import HeatStripDisplay
from genkern.plots.style import css

__all__ = [
    "ConfusionDisplay",
    "ContributionsDisplay",
    "GramDisplay",
    "HeatStripDisplay",
    "ObjectMapDisplay",
    "PrecisionRecallDisplay",
    "RocDisplay",
    "css",
    "explanation",
    "gram_heatmap",
    "kernel_pca_map",
    "object_map",
    "pyplot",
]
