"""Named axes of processes: what `vmap(axis_name=)` is for a batch."""

import contextlib
import math
from collections.abc import Iterator, Mapping

from wengert.distributed._group import Group, world
from wengert.transforms.axes import Axis, name_axes

__all__ = ["axis", "mesh"]


@contextlib.contextmanager
def mesh(axes: Mapping[str, int]) -> Iterator[dict[str, Group]]:
    """Arranges all processes in a grid whose axes have names: `psum` and its kin find them while it lasts.

    Args:
        axes: the length of each axis by name; their product is the number of processes. Ranks count along
            the last axis first.

    Yields:
        The group of processes along each axis that this process is in.

    Every process enters the same meshes in the same order, as those of an axis agree with each other first.

    Raises:
        ValueError: lengths whose product is not the number of processes.
        ImportError: without mpi4py.

    Example:
        >>> with wg.distributed.mesh({"data": 1, "model": 1}):
        ...     wg.psum(wg.tensor([1.0, 2.0]), ("data", "model"))
        tensor([1., 2.])
    """
    everyone = world()
    key = tuple(axes.items())
    for name, size in key:
        if not isinstance(name, str) or isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"mesh: an axis is a name and a length of at least 1, got {name!r}: {size!r}")
    if not key or math.prod(axes.values()) != everyone.size:
        lengths = " * ".join(str(size) for _, size in key) or "no axis"
        raise ValueError(
            f"mesh: {lengths} does not make {everyone.size} processes; start as many with mpirun -n"
        )
    # Ranks that part are never asked twice.
    if key not in everyone.meshes:
        groups, members, step = {}, {}, everyone.size
        for name, size in key:
            step //= size
            at = everyone.rank // step % size
            ranks = [everyone.rank + (i - at) * step for i in range(size)]
            group = everyone.subgroup(ranks, f"axis {name!r} of mesh({dict(key)})")
            groups[name] = group
            members[name] = Axis(size, at, group.members, group.number)
        everyone.meshes[key] = groups, members
    groups, members = everyone.meshes[key]
    with name_axes(members):
        yield groups


@contextlib.contextmanager
def axis(name: str) -> Iterator[Group]:
    """Gives the processes that `mpirun` started a name: `psum` and its kin find them while it lasts.

    Args:
        name: of the axis; its length is the number of processes, one where a program runs by itself.

    Yields:
        The group of all processes.

    Raises:
        ImportError: without mpi4py.

    Example:
        >>> with wg.distributed.axis("data"):
        ...     wg.pmean(wg.tensor([1.0, 2.0]), "data")
        tensor([1., 2.])
    """
    with mesh({name: world().size}) as groups:
        yield groups[name]
