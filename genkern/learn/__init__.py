"""Learners that scikit-learn lacks."""

from genkern.learn.logistic import KernelLogisticRegression
from genkern.learn.plugin import PlugInClassifier
from genkern.learn.ridge import KernelRidgeClassifierCV

__all__ = ["KernelLogisticRegression", "KernelRidgeClassifierCV", "PlugInClassifier"]
