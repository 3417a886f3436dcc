"""Learners that scikit-learn lacks."""

from genkern.learn.plugin import PlugInClassifier

__all__ = ["PlugInClassifier"]
