"""What all of PyTorch's functions do with their arguments: the group, the root, lists, reductions."""

from __future__ import annotations

import enum
import functools
import operator
from collections.abc import Callable
from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert.autograd.modes import is_grad_enabled, no_grad
from wengert.distributed._everyday.groups import GroupMember, as_member, get_group_rank
from wengert.distributed._everyday.work import Work, run_in_background, twin
from wengert.distributed._group import Group
from wengert.distributed._tensors import as_bytes, describe, flatten_on_host, gather_tensors, sum_tensors

__all__ = ["ReduceOp"]

AnyGroup = Group | GroupMember | None


class ReduceOp(enum.Enum):
    """What a reduction makes of the tensors of all ranks, element by element."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"


# Of the tensors of all ranks, stacked; the core has the others.
_REDUCTIONS: dict[ReduceOp, Callable[[Tensor], Tensor]] = {
    ReduceOp.PRODUCT: lambda parts: parts.prod(0, dtype=parts.dtype),
    ReduceOp.MIN: lambda parts: parts.amin(0),
    ReduceOp.MAX: lambda parts: parts.amax(0),
    ReduceOp.BAND: lambda parts: functools.reduce(operator.and_, parts.unbind(0)),
    ReduceOp.BOR: lambda parts: functools.reduce(operator.or_, parts.unbind(0)),
    ReduceOp.BXOR: lambda parts: functools.reduce(operator.xor, parts.unbind(0)),
}


def reduce_all(x: Tensor, group: Group, op: ReduceOp, what: str) -> Tensor:
    """What `op` makes of the tensors of all ranks, on each."""
    x = x.detach()
    if op in (ReduceOp.MIN, ReduceOp.MAX):
        return _core._collective(x, op.value, None, group.members)
    if op not in _REDUCTIONS:
        return _add_pairwise(x, group, op, lambda x: sum_tensors(x, group))
    # Each rank makes a part.
    share = -(-x.numel() // group.size)
    padded = _core.zeros(share * group.size, dtype=x.dtype, device=x.device)
    padded[: x.numel()] = x.reshape(-1)
    rows = exchange_rows(padded, group, describe(f"{what} ({op.value})", x))
    return gather_tensors(_REDUCTIONS[op](rows), group).reshape(-1)[: x.numel()].reshape(x.shape)


def reduce_rows(x: Tensor, group: Group, op: ReduceOp, what: str) -> Tensor:
    """This rank's part along the first axis of what `op` makes of the tensors of all ranks."""
    parts = x.detach().reshape(group.size, -1)
    if op in _REDUCTIONS:
        return _REDUCTIONS[op](exchange_rows(parts, group, describe(f"{what} ({op.value})", x)))
    return _add_pairwise(parts, group, op, lambda x: _core._collective(x, "sum_scatter", 0, group.members))


def exchange_rows(x: Tensor, group: Group, what: str) -> Tensor:
    """Part `i` of every rank's tensor for this rank, stacked."""
    sent = flatten_on_host(x)
    found = _core.empty(sent.numel(), dtype=x.dtype)
    group.all_to_all(as_bytes(sent), as_bytes(found), what)
    return found.reshape(group.size, -1).to(x.device)


def _add_pairwise(x: Tensor, group: Group, op: ReduceOp, sum: Callable[[Tensor], Tensor]) -> Tensor:
    """The sum or the average; that of halves is one of parts, for the sum may be beyond their range."""
    if op is not ReduceOp.AVG:
        return sum(x)
    if x.is_floating_point() and x.itemsize == 2:
        return sum(x / group.size)
    return (sum(x) / group.size).to(x.dtype)


def run_operation(group: AnyGroup, async_op: bool, run: Callable[[Group], None]) -> Work | None:
    """Runs an operation in the group, now or beside the program; a rank that is not in it does nothing."""
    found = as_member(group)
    if found is None:
        return None
    if async_op:
        other = twin(found)
        return run_in_background(lambda: run(other))
    with no_grad():
        run(found)
    return None


def write(place: Tensor, value: Tensor) -> None:
    with no_grad():
        place.copy_(value)


def check_tensors(function: str, *given: Any) -> None:
    """Raises for what is no tensor, and for one whose derivatives would get lost."""
    for x in given:
        if not isinstance(x, Tensor):
            raise TypeError(
                f"{function}: tensors expected, got {type(x).__name__}; wengert.tensor(...) makes one of "
                "an array, and all_gather_object and broadcast_object_list send other objects"
            )
        if is_grad_enabled() and _core._is_differentiated(x) and (_core._in_transform() or not x.is_leaf):
            raise RuntimeError(
                f"{function}: this tensor is part of a computation that is differentiated, and {function} "
                "has no derivative; wengert.psum and its kin have, or give it tensor.detach()"
            )


def check_op(function: str, op: ReduceOp) -> None:
    """Raises for what is no `ReduceOp`."""
    if not isinstance(op, ReduceOp):
        raise TypeError(f"{function}: op= is a wengert.distributed.ReduceOp, got {op!r}")


def resolve_root(function: str, name: str, rank: int | None, group_rank: int | None, group: AnyGroup) -> int:
    """A rank of the group, given as one of the default group or of its own."""
    found = as_member(group)
    if found is None:
        return 0
    if rank is not None and group_rank is not None:
        raise ValueError(f"{function}: {name}= or group_{name}= expected, got both")
    root = group_rank if group_rank is not None else get_group_rank(found, rank or 0)
    if not 0 <= root < found.size:
        raise ValueError(f"{function}: group_{name}= is a rank of 0..{found.size - 1}, got {root}")
    return root


def check_list(function: str, name: str, given: list[Tensor] | None, like: Tensor, size: int) -> None:
    found = [(x.dtype, tuple(x.shape)) for x in given or ()]
    if found != [(like.dtype, tuple(like.shape))] * size:
        shapes = ", ".join(f"{x.dtype} {tuple(x.shape)}" for x in given or ()) or "none"
        raise ValueError(
            f"{function}: {name} needs {size} tensors of {like.dtype} {tuple(like.shape)}, got {shapes}"
        )


def check_size(function: str, name: str, large: Tensor, small: Tensor, size: int) -> None:
    if (large.numel(), large.dtype) != (small.numel() * size, small.dtype):
        raise ValueError(
            f"{function}: {name} needs {small.numel() * size} elements of {small.dtype}, "
            f"got {large.numel()} of {large.dtype}"
        )
