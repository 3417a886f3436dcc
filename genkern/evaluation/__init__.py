"""How good classifiers are, whether one is better than another, and whether two samples differ."""

from __future__ import annotations

from genkern.evaluation.comparison import PairedTest, error_interval, paired_test
from genkern.evaluation.cost import Latency, latency, latency_scorer, size_scorer
from genkern.evaluation.cross_validation import Evaluation, Row, evaluate
from genkern.evaluation.two_sample import TwoSampleTest, two_sample_test

__all__ = [
    "Evaluation",
    "Latency",
    "PairedTest",
    "Row",
    "TwoSampleTest",
    "error_interval",
    "evaluate",
    "latency",
    "latency_scorer",
    "paired_test",
    "size_scorer",
    "two_sample_test",
]
