"""Many machines: an axis with a name is a batch under `vmap` and a group of processes under MPI."""

from wengert.distributed._group import Group, world
from wengert.distributed.mesh import axis, mesh
from wengert.distributed.traffic import Cost, Traffic, cost, counted

__all__ = ["Cost", "Group", "Traffic", "axis", "cost", "counted", "mesh", "world"]
