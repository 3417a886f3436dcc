"""Kernels and feature maps from generative models.

Names are listed in the stub beside this file and imported on first use, so that ``import genkern`` costs next to
nothing.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
