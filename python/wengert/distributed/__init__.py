"""Many machines: an axis with a name is a batch under `vmap` and a group of processes under MPI.

`mpirun -n 4 python program.py` starts a program four times; the processes, called ranks, talk through MPI,
which starts when something first asks for them. `axis` and `mesh` give them names, over which `wengert.psum`
and its kin work. PyTorch's functions are here too; they write into tensors, and have no derivatives.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from wengert.distributed import _everyday
from wengert.distributed._everyday import *
from wengert.distributed._group import Group, world
from wengert.distributed.costs import Cost, cost
from wengert.distributed.mesh import axis, mesh
from wengert.distributed.traffic import Exchange, Traffic, count_traffic

__all__ = [
    "Cost",
    "DataParallel",
    "DistributedDataParallel",
    "Exchange",
    "Group",
    "Traffic",
    "axis",
    "checkpoint",
    "cost",
    "count_traffic",
    "mesh",
    "optim",
    "world",
]
__all__ += _everyday.__all__
__dir__ = __all__.copy

_INSTEAD = dict.fromkeys(
    ("P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"),
    "both sides of a message call it together: wengert.ppermute, or the method exchange of a group",
)
_INSTEAD |= {
    "DeviceMesh": "wengert.distributed.mesh names the axes of a grid of ranks",
    "FullyShardedDataParallel": "the guide of training on many ranks shows it in a few dozen lines",
    "gather_object": "all_gather_object gives the objects to all ranks",
    "init_device_mesh": "wengert.distributed.mesh names the axes of a grid of ranks",
    "monitored_barrier": "barrier names the ranks that do not come",
    "scatter_object_list": "broadcast_object_list gives the objects to all ranks",
}

if TYPE_CHECKING:
    from wengert.distributed import checkpoint, optim
    from wengert.distributed._parallel import DataParallel, DistributedDataParallel
else:

    def __getattr__(name):
        """What needs layers and optimisers, on first use."""
        if name in ("DataParallel", "DistributedDataParallel"):
            return getattr(import_module("wengert.distributed._parallel"), name)
        if name in ("checkpoint", "optim"):
            return import_module(f"wengert.distributed.{name}")
        hint = f"; {instead}" if (instead := _INSTEAD.get(name)) else ""
        raise AttributeError(f"module 'wengert.distributed' has no attribute {name!r}{hint}")
