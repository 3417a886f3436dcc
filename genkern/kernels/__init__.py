"""Kernels between models and between vectors, and their algebra."""

from genkern.kernels.base import Kernel
from genkern.kernels.composites import Constant, Exponential, IntegerPower, Normalized, Product, Sum
from genkern.kernels.models import MeanMap, ProbabilityProduct
from genkern.kernels.vectors import RBF, Linear, Polynomial

__all__ = [
    "RBF",
    "Constant",
    "Exponential",
    "IntegerPower",
    "Kernel",
    "Linear",
    "MeanMap",
    "Normalized",
    "Polynomial",
    "ProbabilityProduct",
    "Product",
    "Sum",
]
