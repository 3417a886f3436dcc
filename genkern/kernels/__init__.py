"""Kernels between models and between vectors, and their algebra."""

from genkern.kernels.base import Kernel
from genkern.kernels.composites import Constant, IntegerPower, Product, Sum
from genkern.kernels.divergences import Diffusion, Hellinger, NotPositiveWarning, SymmetricKL
from genkern.kernels.empirical import EmpiricalMean
from genkern.kernels.latent import LatentMean
from genkern.kernels.local_alignment import LocalAlignment
from genkern.kernels.models import MeanMap, ProbabilityProduct
from genkern.kernels.sets import SetBhattacharyya
from genkern.kernels.transforms import ExponentialKernel, Normalized
from genkern.kernels.vectors import RBF, Laplace, Linear, Polynomial
from genkern.kernels.views import On

__all__ = [
    "RBF",
    "Constant",
    "Diffusion",
    "EmpiricalMean",
    "ExponentialKernel",
    "Hellinger",
    "IntegerPower",
    "Kernel",
    "Laplace",
    "LatentMean",
    "Linear",
    "LocalAlignment",
    "MeanMap",
    "Normalized",
    "NotPositiveWarning",
    "On",
    "Polynomial",
    "ProbabilityProduct",
    "Product",
    "SetBhattacharyya",
    "Sum",
    "SymmetricKL",
]
