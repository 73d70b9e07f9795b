"""Where PyTorch keeps checkpointing: `wengert.utils.checkpoint`."""

from . import checkpoint

__all__ = ["checkpoint"]
