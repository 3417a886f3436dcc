"""How good classifiers are, whether one is better than another, and whether two samples differ."""

from __future__ import annotations

from genkern.evaluation.comparison import PairedTest, error_interval, paired_test
from genkern.evaluation.cross_validation import Evaluation, Row, evaluate
from genkern.evaluation.two_sample import TwoSampleTest, two_sample_test

__all__ = [
    "Evaluation",
    "PairedTest",
    "Row",
    "TwoSampleTest",
    "error_interval",
    "evaluate",
    "paired_test",
    "two_sample_test",
]
