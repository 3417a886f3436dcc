"""Estimators in files that loading can only read, never run.

``save`` writes a fitted estimator, kernel or model, ``load`` reads it, ``describe`` tells what a file holds, and
``register`` lets own classes and functions be part of one.
"""

from __future__ import annotations

from genkern.saving.files import FormatError, ModelFileError, describe, load, save
from genkern.saving.registry import register

__all__ = ["FormatError", "ModelFileError", "describe", "load", "register", "save"]
