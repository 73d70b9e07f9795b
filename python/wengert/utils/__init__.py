"""What goes with training, where PyTorch keeps it: `wengert.utils.checkpoint` and `wengert.utils.data`."""

from . import _pytree as _pytree, checkpoint, data

__all__ = ["checkpoint", "data"]
