"""Learners that scikit-learn lacks, and measures of rankings."""

from genkern.learn.calibration import expected_calibration_error
from genkern.learn.equal_error import EqualErrorClassifier
from genkern.learn.logistic import KernelLogisticRegression
from genkern.learn.plugin import PlugInClassifier
from genkern.learn.ranking import equal_error_rate, roc50_score, roc_points
from genkern.learn.ridge import KernelRidgeClassifierCV
from genkern.learn.svm_path import KernelSVMClassifierCV

__all__ = [
    "EqualErrorClassifier",
    "KernelLogisticRegression",
    "KernelRidgeClassifierCV",
    "KernelSVMClassifierCV",
    "PlugInClassifier",
    "equal_error_rate",
    "expected_calibration_error",
    "roc50_score",
    "roc_points",
]
