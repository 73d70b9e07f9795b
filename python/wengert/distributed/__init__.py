"""Many machines: an axis with a name is a batch under `vmap` and a group of processes under MPI."""

from wengert.distributed import checkpoint, optim
from wengert.distributed._group import Group, world
from wengert.distributed._parallel import DataParallel
from wengert.distributed.mesh import axis, mesh

__all__ = ["DataParallel", "Group", "axis", "checkpoint", "mesh", "optim", "world"]
