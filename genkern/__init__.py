"""Kernels and feature maps from generative models.

Names are listed in the stub beside this file and imported on first use, so that ``import genkern`` costs next to
nothing.
"""

import lazy_loader

__version__ = "0.1.0"

_named, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """Import a public name on first use; of others, say which ones are near."""
    try:
        return _named(name)
    except AttributeError:
        if name.startswith("__") or name in __all__:
            raise
    from genkern.validation import unknown_name

    raise unknown_name(name, __name__, __all__)
