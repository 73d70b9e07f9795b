"""Signal processing: windows, under the names of `torch.signal` and `scipy.signal`."""

from . import windows

__all__ = ["windows"]
__dir__ = __all__.copy
