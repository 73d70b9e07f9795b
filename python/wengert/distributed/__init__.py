"""Many machines: an axis with a name is a batch under `vmap` and a group of processes under MPI.

`mpirun -n 4 python program.py` starts a program four times; the processes, called ranks, talk through MPI,
which starts when something first asks for them. `axis` and `mesh` give them names, over which `wengert.psum`
and its kin work. PyTorch's functions are here too; they write into tensors, and have no derivatives.
"""

from wengert.distributed import _collectives, _process_groups, checkpoint, optim
from wengert.distributed._collectives import *
from wengert.distributed._group import Group, world
from wengert.distributed._parallel import DataParallel
from wengert.distributed._process_groups import *
from wengert.distributed._signatures import debug, is_debugging
from wengert.distributed._work import Work
from wengert.distributed.costs import Cost, cost
from wengert.distributed.mesh import axis, mesh
from wengert.distributed.traffic import Traffic, counted

__all__ = [
    "Cost",
    "DataParallel",
    "Group",
    "Traffic",
    "Work",
    "axis",
    "checkpoint",
    "cost",
    "counted",
    "debug",
    "is_debugging",
    "mesh",
    "optim",
    "world",
]
__all__ += _collectives.__all__
__all__ += _process_groups.__all__
__dir__ = __all__.copy
