"""Many machines: an axis with a name is a batch under `vmap` and a group of ranks under MPI.

`mpirun -n 4 python program.py` starts a program four times; the processes, called ranks, talk through MPI.
PyTorch's names of collective operations are here; they write into tensors. MPI starts when something first
asks for the ranks.
"""

from wengert.distributed import _collectives, _process_groups
from wengert.distributed._collectives import *
from wengert.distributed._process_groups import *
from wengert.distributed._signatures import debug, is_debugging
from wengert.distributed._work import Work

__all__ = ["Work", "debug", "is_debugging"]
__all__ += _collectives.__all__
__all__ += _process_groups.__all__
__dir__ = __all__.copy
