"""Control flow that depends on values: branches, loops and scans, differentiated and batched like everything
else.

They run as they are called, one step after another, and are made of the operations that the functions in them
call. So derivatives of every order, batches and hooks work as elsewhere, and functions may close over tensors
that require gradients. Where Python's `if` and `while` do, they need none of these; these are for
conditions that differ between the examples of a `vmap`, for programs written for JAX, and for scans that save
memory.
"""

from wengert.control.associative import associative_scan
from wengert.control.branches import cond, switch
from wengert.control.loops import fori_loop, while_loop
from wengert.control.scans import map, scan

__all__ = ["associative_scan", "cond", "fori_loop", "map", "scan", "switch", "while_loop"]
__dir__ = __all__.copy
