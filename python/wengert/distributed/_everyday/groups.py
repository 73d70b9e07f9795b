"""Groups of ranks under PyTorch's names: `init_process_group` and what asks about them."""

from __future__ import annotations

import enum
import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from wengert.distributed._group import _CURRENT, TIMEOUT, Group, mpi, world

__all__ = [
    "GroupMember",
    "ProcessGroup",
    "destroy_process_group",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "is_available",
    "is_initialized",
    "new_group",
]

ProcessGroup = Group


class GroupMember(enum.Enum):
    """What `new_group` returns to a rank that is not in the group."""

    NON_GROUP_MEMBER = "no rank of this group"


_BACKENDS = ("mpi", "gloo", "nccl", "ucc", "cpu:gloo,cuda:nccl")


def is_available() -> bool:
    """Returns whether mpi4py and an MPI library are installed.

    Example:
        >>> wg.distributed.is_available()
        True
    """
    try:
        mpi()
    except ImportError:
        return False
    return True


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | float | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Makes the ranks that `mpirun` started the default group of the functions of this module.

    Args:
        backend: any of PyTorch's names; MPI does the work.
        init_method, store, group_name, pg_options, device_id: accepted for programs that give them; the
            ranks find each other through MPI.
        timeout: how long a rank waits for others, a `timedelta` or seconds; half an hour if None.
        world_size, rank: what the program expects, compared with what MPI says.

    Raises:
        ImportError: without mpi4py.
        RuntimeError: where it has been called before.
        ValueError: where `world_size` or `rank` is not MPI's.

    Example:
        >>> wg.distributed.init_process_group()
        >>> wg.distributed.get_rank(), wg.distributed.get_world_size()
        (0, 1)
        >>> wg.distributed.destroy_process_group()
    """
    if _CURRENT[0].default is not None:
        raise RuntimeError("init_process_group: it was called before; destroy_process_group() undoes it")
    if backend is not None and str(backend).lower() not in _BACKENDS:
        raise ValueError(f"init_process_group: backend is one of {', '.join(_BACKENDS)}, got {backend!r}")
    group = world()
    asked = int(os.environ.get("WORLD_SIZE", "-1")) if world_size < 0 else world_size
    if asked not in (-1, group.size):
        raise ValueError(
            f"init_process_group: {asked} ranks are expected, but MPI runs {group.size}; start the program "
            f"with mpirun -n {asked} python ..., which takes the place of torchrun"
        )
    if rank not in (-1, group.rank):
        raise ValueError(
            f"init_process_group: rank {rank} is expected, but MPI numbers this one {group.rank}"
        )
    group.timeout = _seconds(timeout)
    _CURRENT[0].default = group


def destroy_process_group(group: Group | None = None) -> None:
    """Undoes `init_process_group`; MPI itself ends with the program.

    Args:
        group: a group of `new_group`, which needs no end; None is the default group.

    Example:
        >>> wg.distributed.init_process_group()
        >>> wg.distributed.destroy_process_group()
        >>> wg.distributed.is_initialized()
        False
    """
    if group is None or group is _CURRENT[0].default:
        default_group()
        _CURRENT[0].default = None


def is_initialized() -> bool:
    """Returns whether there is a default group.

    Example:
        >>> wg.distributed.is_initialized()
        False
    """
    return _CURRENT[0].default is not None


def default_group() -> Group:
    """The default group."""
    found = _CURRENT[0].default
    if found is None:
        raise ValueError(
            "there is no default group of ranks; call wengert.distributed.init_process_group() first"
        )
    return found


def as_member(group: Group | GroupMember | None) -> Group | None:
    """The group that an argument means; None where this rank is not in it."""
    if group is None:
        return default_group()
    if isinstance(group, GroupMember):
        return None
    if not isinstance(group, Group):
        raise TypeError(f"group= is what new_group returns, or None, got {type(group).__name__}")
    return group


def get_rank(group: Group | GroupMember | None = None) -> int:
    """Returns the number of this rank in the group, or -1 where it is not in it.

    Example:
        >>> wg.distributed.init_process_group()
        >>> wg.distributed.get_rank()
        0
        >>> wg.distributed.destroy_process_group()
    """
    found = as_member(group)
    return -1 if found is None else found.rank


def get_world_size(group: Group | GroupMember | None = None) -> int:
    """Returns the number of ranks in the group, or -1 where this one is not in it.

    Example:
        >>> wg.distributed.init_process_group()
        >>> wg.distributed.get_world_size()
        1
        >>> wg.distributed.destroy_process_group()
    """
    found = as_member(group)
    return -1 if found is None else found.size


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Returns the number of this rank among those of its host, by which ranks choose a GPU for instance.

    Args:
        fallback_rank: accepted for programs that give it; MPI always knows.

    Example:
        >>> wg.distributed.get_node_local_rank()
        0
    """
    MPI = mpi()
    here = MPI.COMM_WORLD.Split_type(MPI.COMM_TYPE_SHARED, world().rank)
    found: int = here.Get_rank()
    here.Free()
    return found


def get_backend(group: Group | None = None) -> str:
    """Returns "mpi".

    Example:
        >>> wg.distributed.init_process_group("gloo")
        >>> wg.distributed.get_backend()
        'mpi'
        >>> wg.distributed.destroy_process_group()
    """
    as_member(group)
    return "mpi"


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | float | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> Group | GroupMember:
    """Returns the group of some ranks. All ranks call it, also those that are not in it.

    Args:
        ranks: their numbers in the default group; all of them if None.
        timeout: how long a rank waits for others, a `timedelta` or seconds; half an hour if None.
        backend, pg_options, use_local_synchronization, group_desc, device_id: accepted for programs that give
            them.

    Returns:
        `GroupMember.NON_GROUP_MEMBER` on the ranks that are not in it.

    Example:
        >>> wg.distributed.init_process_group()
        >>> wg.distributed.get_world_size(wg.distributed.new_group([0]))
        1
        >>> wg.distributed.destroy_process_group()
    """
    whole = default_group()
    wanted = sorted(range(whole.size) if ranks is None else ranks)
    if len(set(wanted)) != len(wanted) or not set(wanted) <= set(range(whole.size)) or not wanted:
        raise ValueError(
            f"new_group: different ranks of 0..{whole.size - 1} expected, got {list(ranks or ())}"
        )
    inside = whole.rank in wanted
    rest = [rank for rank in range(whole.size) if rank not in wanted]
    found = whole.subgroup(wanted if inside else rest, f"new_group of {wanted}")
    found.timeout = _seconds(timeout)
    return found if inside else GroupMember.NON_GROUP_MEMBER


def get_process_group_ranks(group: Group | None = None) -> list[int]:
    """Returns the ranks of a group as numbers of the default group.

    Example:
        >>> wg.distributed.init_process_group()
        >>> wg.distributed.get_process_group_ranks()
        [0]
        >>> wg.distributed.destroy_process_group()
    """
    found = as_member(group)
    return [] if found is None else list(found.ranks)


def get_global_rank(group: Group, group_rank: int) -> int:
    """Returns the number in the default group of a rank of `group`.

    Example:
        >>> wg.distributed.init_process_group()
        >>> wg.distributed.get_global_rank(wg.distributed.new_group([0]), 0)
        0
        >>> wg.distributed.destroy_process_group()
    """
    ranks = _inside("get_global_rank", group)
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"get_global_rank: the group has the ranks 0..{len(ranks) - 1}, got {group_rank}")
    return ranks[group_rank]


def get_group_rank(group: Group, global_rank: int) -> int:
    """Returns the number in `group` of a rank of the default group.

    Example:
        >>> wg.distributed.init_process_group()
        >>> wg.distributed.get_group_rank(wg.distributed.new_group([0]), 0)
        0
        >>> wg.distributed.destroy_process_group()
    """
    ranks = _inside("get_group_rank", group)
    if global_rank not in ranks:
        raise ValueError(
            f"get_group_rank: the group has the ranks {ranks} of the default group, got {global_rank}"
        )
    return ranks.index(global_rank)


def _inside(function: str, group: Group | None) -> list[int]:
    if isinstance(group, GroupMember):
        raise TypeError(f"{function}: this rank is not in the group; new_group gave it {group}")
    return get_process_group_ranks(group)


def _seconds(timeout: timedelta | float | None) -> float:
    if timeout is None:
        return TIMEOUT
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)
    if not seconds > 0:
        raise ValueError(f"timeout: a positive number of seconds or a timedelta expected, got {timeout!r}")
    return seconds
