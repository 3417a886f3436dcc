"""How good classifiers are, whether one is better than another, and whether two samples differ."""

from __future__ import annotations

from genkern.evaluation.comparison import PairedTest, error_interval, paired_test
from genkern.evaluation.cost import Latency, latency, latency_scorer, size_scorer
from genkern.evaluation.cross_validation import Evaluation, Row, evaluate
from genkern.evaluation.significance import Comparisons, compare_methods, mcnemar_test, t_test, wilcoxon_test
from genkern.evaluation.two_sample import TwoSampleTest, two_sample_test

__all__ = [
    "Comparisons",
    "Evaluation",
    "Latency",
    "PairedTest",
    "Row",
    "TwoSampleTest",
    "compare_methods",
    "error_interval",
    "evaluate",
    "latency",
    "latency_scorer",
    "mcnemar_test",
    "paired_test",
    "size_scorer",
    "t_test",
    "two_sample_test",
    "wilcoxon_test",
]
