"""Many machines: an axis with a name is a batch under `vmap` and a group of ranks under MPI."""

from ._parallel import DataParallel

__all__ = ["DataParallel"]
