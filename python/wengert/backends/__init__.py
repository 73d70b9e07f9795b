"""Switches of PyTorch's backends, none of which is here: they can be set, and change nothing."""

from . import cuda, cudnn, mkldnn, mps

__all__ = ["cuda", "cudnn", "mkldnn", "mps"]
__dir__ = __all__.copy
