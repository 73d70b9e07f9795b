"""Collective operations on tensors under PyTorch's names: they write into the tensors that they are given.

They have no derivatives. `wengert.psum` and its kin, which return new tensors, have.
"""

from __future__ import annotations

from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert.distributed._everyday.calls import (
    AnyGroup,
    ReduceOp,
    check_list,
    check_op,
    check_size,
    check_tensors,
    reduce_all,
    resolve_root,
    run_operation,
    write,
)
from wengert.distributed._everyday.work import Work
from wengert.distributed._group import Group
from wengert.distributed._tensors import as_bytes, describe, flatten_on_host, gather_tensors

__all__ = [
    "all_gather",
    "all_gather_into_tensor",
    "all_reduce",
    "barrier",
    "broadcast",
    "gather",
    "reduce",
    "scatter",
]


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: AnyGroup = None, async_op: bool = False
) -> Work | None:
    """Writes the tensors of all ranks into the tensors of a list.

    Args:
        tensor_list: a tensor for each rank, of the shape and dtype of `tensor`.
        tensor: of the same shape and dtype on all ranks.
        group: of `new_group`; all ranks if None.
        async_op: True returns at once, with a `Work` to wait for.

    Example:
        >>> wg.distributed.init_process_group()
        >>> found = [wg.zeros(2)]
        >>> wg.distributed.all_gather(found, wg.tensor([1.0, 2.0]))
        >>> found
        [tensor([1., 2.])]
        >>> wg.distributed.destroy_process_group()
    """

    check_tensors("all_gather", tensor, *tensor_list)

    def run(g: Group) -> None:
        check_list("all_gather", "tensor_list", tensor_list, tensor, g.size)
        for place, part in zip(tensor_list, gather_tensors(tensor, g), strict=True):
            write(place, part)

    return run_operation(group, async_op, run)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: AnyGroup = None, async_op: bool = False
) -> Work | None:
    """Writes the tensors of all ranks into one, stacked or one after the other along the first axis.

    Args:
        output_tensor: with as many elements as all inputs together.
        input_tensor: of the same shape and dtype on all ranks.
        group: of `new_group`; all ranks if None.
        async_op: True returns at once, with a `Work` to wait for.

    Example:
        >>> wg.distributed.init_process_group()
        >>> found = wg.zeros(2)
        >>> wg.distributed.all_gather_into_tensor(found, wg.tensor([1.0, 2.0]))
        >>> found
        tensor([1., 2.])
        >>> wg.distributed.destroy_process_group()
    """

    check_tensors("all_gather_into_tensor", output_tensor, input_tensor)

    def run(g: Group) -> None:
        check_size("all_gather_into_tensor", "output_tensor", output_tensor, input_tensor, g.size)
        write(output_tensor, gather_tensors(input_tensor, g).reshape(output_tensor.shape))

    return run_operation(group, async_op, run)


def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: AnyGroup = None, async_op: bool = False
) -> Work | None:
    """Writes into `tensor` the sum, or whatever `op` says, of the tensors of all ranks.

    Args:
        tensor: of the same shape and dtype on all ranks.
        op: a `ReduceOp`.
        group: of `new_group`; all ranks if None.
        async_op: True returns at once, with a `Work` to wait for.

    Example:
        >>> wg.distributed.init_process_group()
        >>> x = wg.tensor([1.0, 2.0])
        >>> wg.distributed.all_reduce(x)
        >>> x
        tensor([1., 2.])
        >>> wg.distributed.destroy_process_group()
    """
    check_op("all_reduce", op)
    check_tensors("all_reduce", tensor)
    return run_operation(group, async_op, lambda g: write(tensor, reduce_all(tensor, g, op, "all_reduce")))


def barrier(group: AnyGroup = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Returns when all ranks have called it.

    Args:
        group: of `new_group`; all ranks if None.
        async_op: True returns at once, with a `Work` to wait for.
        device_ids: accepted for programs that give it.

    Example:
        >>> wg.distributed.init_process_group()
        >>> wg.distributed.barrier()
        >>> wg.distributed.destroy_process_group()
    """
    return run_operation(group, async_op, lambda g: g.barrier())


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: AnyGroup = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Writes the tensor of rank `src` into those of all others.

    Args:
        tensor: of the same shape and dtype on all ranks.
        src: a rank of the default group.
        group: of `new_group`; all ranks if None.
        async_op: True returns at once, with a `Work` to wait for.
        group_src: a rank of `group`, instead of `src`.

    Example:
        >>> wg.distributed.init_process_group()
        >>> wg.distributed.broadcast(wg.ones(2), src=0)
        >>> wg.distributed.destroy_process_group()
    """
    check_tensors("broadcast", tensor)
    root = resolve_root("broadcast", "src", src, group_src, group)

    def run(g: Group) -> None:
        own = flatten_on_host(tensor) if g.rank == root else _core.empty(tensor.numel(), dtype=tensor.dtype)
        g.broadcast(as_bytes(own), root, describe("broadcast", tensor))
        if g.rank != root:
            write(tensor, own.reshape(tensor.shape).to(tensor.device))

    return run_operation(group, async_op, run)


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: AnyGroup = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Writes the tensors of all ranks into the list of rank `dst`. They travel to all ranks.

    Args:
        tensor: of the same shape and dtype on all ranks.
        gather_list: on rank `dst`, a tensor for each rank.
        dst: a rank of the default group, 0 if None.
        group: of `new_group`; all ranks if None.
        async_op: True returns at once, with a `Work` to wait for.
        group_dst: a rank of `group`, instead of `dst`.

    Example:
        >>> wg.distributed.init_process_group()
        >>> found = [wg.zeros(2)]
        >>> wg.distributed.gather(wg.tensor([1.0, 2.0]), found, dst=0)
        >>> found
        [tensor([1., 2.])]
        >>> wg.distributed.destroy_process_group()
    """
    check_tensors("gather", tensor, *(gather_list or ()))
    root = resolve_root("gather", "dst", dst, group_dst, group)

    def run(g: Group) -> None:
        if g.rank == root:
            check_list("gather", "gather_list", gather_list, tensor, g.size)
        parts = gather_tensors(tensor, g, describe(f"gather to rank {root}", tensor))
        if g.rank == root:
            for place, part in zip(gather_list or (), parts, strict=True):
                write(place, part)

    return run_operation(group, async_op, run)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: AnyGroup = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Writes into the `tensor` of rank `dst` the sum, or whatever `op` says, of those of all ranks.

    Args:
        tensor: of the same shape and dtype on all ranks; it keeps its values on all but one.
        dst: a rank of the default group.
        op: a `ReduceOp`.
        group: of `new_group`; all ranks if None.
        async_op: True returns at once, with a `Work` to wait for.
        group_dst: a rank of `group`, instead of `dst`.

    Example:
        >>> wg.distributed.init_process_group()
        >>> x = wg.tensor([1.0, 2.0])
        >>> wg.distributed.reduce(x, dst=0)
        >>> x
        tensor([1., 2.])
        >>> wg.distributed.destroy_process_group()
    """
    check_op("reduce", op)
    check_tensors("reduce", tensor)
    root = resolve_root("reduce", "dst", dst, group_dst, group)

    def run(g: Group) -> None:
        found = reduce_all(tensor, g, op, f"reduce to rank {root}")
        if g.rank == root:
            write(tensor, found)

    return run_operation(group, async_op, run)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: AnyGroup = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Writes into `tensor` what rank `src` has for this rank. The whole list travels to all ranks.

    Args:
        tensor: of the same shape and dtype on all ranks.
        scatter_list: on rank `src`, a tensor for each rank.
        src: a rank of the default group, 0 if None.
        group: of `new_group`; all ranks if None.
        async_op: True returns at once, with a `Work` to wait for.
        group_src: a rank of `group`, instead of `src`.

    Example:
        >>> wg.distributed.init_process_group()
        >>> x = wg.zeros(2)
        >>> wg.distributed.scatter(x, [wg.tensor([1.0, 2.0])], src=0)
        >>> x
        tensor([1., 2.])
        >>> wg.distributed.destroy_process_group()
    """
    check_tensors("scatter", tensor, *(scatter_list or ()))
    root = resolve_root("scatter", "src", src, group_src, group)

    def run(g: Group) -> None:
        if g.rank == root:
            check_list("scatter", "scatter_list", scatter_list, tensor, g.size)
            every = _core.stack([flatten_on_host(x) for x in scatter_list or ()])
        else:
            every = _core.empty((g.size, tensor.numel()), dtype=tensor.dtype)
        g.broadcast(as_bytes(every.reshape(-1)), root, describe("scatter", tensor))
        write(tensor, every[g.rank].reshape(tensor.shape).to(tensor.device))

    return run_operation(group, async_op, run)
