"""PyTorch's everyday functions. Reading order: `groups`, `calls`, `work`, then the operations."""

from wengert.distributed._everyday import collectives, groups, objects, parts
from wengert.distributed._everyday.calls import ReduceOp
from wengert.distributed._everyday.collectives import *
from wengert.distributed._everyday.groups import *
from wengert.distributed._everyday.objects import *
from wengert.distributed._everyday.parts import *
from wengert.distributed._everyday.work import Work

__all__ = ["ReduceOp", "Work"]
__all__ += collectives.__all__
__all__ += groups.__all__
__all__ += objects.__all__
__all__ += parts.__all__
