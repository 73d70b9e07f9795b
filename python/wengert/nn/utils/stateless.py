"""`functional_call` where PyTorch first had it; `wengert.nn.functional_call` is the same."""

from ..functional_call import functional_call

__all__ = ["functional_call"]
__dir__ = __all__.copy
