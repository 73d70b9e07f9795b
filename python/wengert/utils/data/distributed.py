"""The sampler of ranks, where PyTorch has it."""

from wengert.utils.data.sampler import DistributedSampler

__all__ = ["DistributedSampler"]
__dir__ = __all__.copy
