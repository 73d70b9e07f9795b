"""Collective operations on tensors and objects under PyTorch's names: they write into tensors they are given.

They have no derivatives. `wengert.psum` and its siblings, which return new tensors, have.
"""

from __future__ import annotations

import enum
import functools
import io
import operator
import pickle
from collections.abc import Callable, Sequence
from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert.autograd.modes import no_grad
from wengert.distributed._group import Group
from wengert.distributed._process_groups import GroupMember, get_group_rank, member
from wengert.distributed._tensors import described, flat, gathered, octets, reduced
from wengert.distributed._work import Work, beside, twin

__all__ = [
    "ReduceOp",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
]

AnyGroup = Group | GroupMember | None


class ReduceOp(enum.Enum):
    """What a reduction makes of the tensors of all ranks, element by element, in the order of the ranks."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"


_REDUCTIONS: dict[ReduceOp, Callable[[Tensor], Tensor]] = {
    ReduceOp.SUM: lambda parts: parts.sum(0, dtype=parts.dtype),
    ReduceOp.AVG: lambda parts: (parts.sum(0, dtype=parts.dtype) / parts.shape[0]).to(parts.dtype),
    ReduceOp.PRODUCT: lambda parts: parts.prod(0, dtype=parts.dtype),
    ReduceOp.MIN: lambda parts: parts.amin(0),
    ReduceOp.MAX: lambda parts: parts.amax(0),
    ReduceOp.BAND: lambda parts: functools.reduce(operator.and_, parts.unbind(0)),
    ReduceOp.BOR: lambda parts: functools.reduce(operator.or_, parts.unbind(0)),
    ReduceOp.BXOR: lambda parts: functools.reduce(operator.xor, parts.unbind(0)),
}


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
    of, what = _reduction("all_reduce", op, tensor)
    return _do(group, async_op, lambda g: _write(tensor, reduced(tensor, g, of, what)))


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
    of, what = _reduction("reduce", op, tensor)
    root = _rooted("reduce", "dst", dst, group_dst, group)

    def run(g: Group) -> None:
        found = reduced(tensor, g, of, f"{what} to rank {root}")
        if g.rank == root:
            _write(tensor, found)

    return _do(group, async_op, run)


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

    def run(g: Group) -> None:
        _check_list("all_gather", "tensor_list", tensor_list, tensor, g.size)
        for place, part in zip(tensor_list, gathered(tensor, g), strict=True):
            _write(place, part)

    return _do(group, async_op, run)


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

    def run(g: Group) -> None:
        _check_size("all_gather_into_tensor", "output_tensor", output_tensor, input_tensor, g.size)
        _write(output_tensor, gathered(input_tensor, g).reshape(output_tensor.shape))

    return _do(group, async_op, run)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM, group: AnyGroup = None, async_op: bool = False
) -> Work | None:
    """Writes into `output` this rank's part of the sum, or whatever `op` says, of the inputs of all ranks.

    Args:
        output: with the elements of one part.
        input: the parts of all ranks, stacked or one after the other along the first axis.
        op: a `ReduceOp`.
        group: of `new_group`; all ranks if None.
        async_op: True returns at once, with a `Work` to wait for.

    Example:
        >>> wg.distributed.init_process_group()
        >>> found = wg.zeros(2)
        >>> wg.distributed.reduce_scatter_tensor(found, wg.tensor([1.0, 2.0]))
        >>> found
        tensor([1., 2.])
        >>> wg.distributed.destroy_process_group()
    """
    of, what = _reduction("reduce_scatter", op, input)

    def run(g: Group) -> None:
        _check_size("reduce_scatter_tensor", "input", input, output, g.size)
        _write(output, of(_exchanged(input, g, what)).reshape(output.shape).to(output.device))

    return _do(group, async_op, run)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: AnyGroup = None,
    async_op: bool = False,
) -> Work | None:
    """Writes into `output` the sum, or whatever `op` says, of what all ranks have at this rank's place of a list.

    Args:
        output: of the shape and dtype of each tensor of the list.
        input_list: a tensor for each rank.
        op: a `ReduceOp`.
        group: of `new_group`; all ranks if None.
        async_op: True returns at once, with a `Work` to wait for.

    Example:
        >>> wg.distributed.init_process_group()
        >>> found = wg.zeros(2)
        >>> wg.distributed.reduce_scatter(found, [wg.tensor([1.0, 2.0])])
        >>> found
        tensor([1., 2.])
        >>> wg.distributed.destroy_process_group()
    """
    g = member(group)
    if g is not None:
        _check_list("reduce_scatter", "input_list", input_list, output, g.size)
    return reduce_scatter_tensor(output, _core.stack(list(input_list)).detach(), op, group, async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: AnyGroup = None,
    async_op: bool = False,
) -> Work | None:
    """Sends part `i` of `input` to rank `i`, and writes what this rank gets into `output`, in the order of ranks.

    Args:
        output: what arrives, along the first axis.
        input: what is sent, along the first axis.
        output_split_sizes: rows that each rank sends to this one; equal parts if None.
        input_split_sizes: rows for each rank; equal parts if None.
        group: of `new_group`; all ranks if None.
        async_op: True returns at once, with a `Work` to wait for.

    Example:
        >>> wg.distributed.init_process_group()
        >>> found = wg.zeros(2)
        >>> wg.distributed.all_to_all_single(found, wg.tensor([1.0, 2.0]))
        >>> found
        tensor([1., 2.])
        >>> wg.distributed.destroy_process_group()
    """

    def run(g: Group) -> None:
        into = _rows("output", output, output_split_sizes, g.size)
        rows = _rows("input", input, input_split_sizes, g.size)
        if input_split_sizes is None and output_split_sizes is None:
            _write(output, _exchanged(input, g, described("all_to_all", input)).reshape(output.shape))
            return
        # Parts travel as long as the longest of any rank.
        most = int(gathered(_core.tensor([*rows, *into]), g, "all_to_all").max())
        padded = _core.zeros((g.size, most, *input.shape[1:]), dtype=input.dtype)
        for i, part in enumerate(input.detach().cpu().split(rows)):
            padded[i, : len(part)] = part
        parts = _exchanged(padded, g, "all_to_all").reshape(padded.shape)
        _write(output, _core.cat([part[:n] for part, n in zip(parts, into, strict=True)]).to(output.device))

    return _do(group, async_op, run)


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
    root = _rooted("broadcast", "src", src, group_src, group)

    def run(g: Group) -> None:
        own = flat(tensor) if g.rank == root else _core.empty(tensor.numel(), dtype=tensor.dtype)
        g.broadcast(octets(own), root, described("broadcast", tensor))
        if g.rank != root:
            _write(tensor, own.reshape(tensor.shape).to(tensor.device))

    return _do(group, async_op, run)


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
    root = _rooted("scatter", "src", src, group_src, group)

    def run(g: Group) -> None:
        if g.rank == root:
            _check_list("scatter", "scatter_list", scatter_list, tensor, g.size)
            every = _core.stack([flat(x) for x in scatter_list or ()])
        else:
            every = _core.empty((g.size, tensor.numel()), dtype=tensor.dtype)
        g.broadcast(octets(every.reshape(-1)), root, described("scatter", tensor))
        _write(tensor, every[g.rank].reshape(tensor.shape).to(tensor.device))

    return _do(group, async_op, run)


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
    root = _rooted("gather", "dst", dst, group_dst, group)

    def run(g: Group) -> None:
        if g.rank == root:
            _check_list("gather", "gather_list", gather_list, tensor, g.size)
        parts = gathered(tensor, g, described(f"gather to rank {root}", tensor))
        if g.rank == root:
            for place, part in zip(gather_list or (), parts, strict=True):
                _write(place, part)

    return _do(group, async_op, run)


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
    return _do(group, async_op, lambda g: g.barrier())


def all_gather_object(object_list: list[Any], obj: Any, group: AnyGroup = None) -> None:
    """Writes the objects of all ranks into a list; they are pickled.

    Args:
        object_list: with a place for each rank.
        obj: whatever can be pickled.
        group: of `new_group`; all ranks if None.

    Example:
        >>> wg.distributed.init_process_group()
        >>> found = [None]
        >>> wg.distributed.all_gather_object(found, {"loss": 0.5})
        >>> found
        [{'loss': 0.5}]
        >>> wg.distributed.destroy_process_group()
    """

    def run(g: Group) -> None:
        if len(object_list) != g.size:
            raise ValueError(f"all_gather_object: a list of {g.size} places expected, got {len(object_list)}")
        text = pickle.dumps(obj)
        sizes = gathered(_core.tensor(len(text)), g, "all_gather_object").tolist()
        found = bytearray(max(sizes) * g.size)
        g.all_gather(text.ljust(max(sizes), b"\0"), found, "all_gather_object")
        for i, size in enumerate(sizes):
            object_list[i] = pickle.loads(memoryview(found)[i * max(sizes) :][:size])

    _do(group, False, run)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: AnyGroup = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Writes the objects in the list of rank `src` into those of all others; they are pickled.

    Args:
        object_list: of the same length on all ranks.
        src: a rank of the default group.
        group: of `new_group`; all ranks if None.
        device: accepted for programs that give it.
        group_src: a rank of `group`, instead of `src`.

    Example:
        >>> wg.distributed.init_process_group()
        >>> wg.distributed.broadcast_object_list(["a", 1], src=0)
        >>> wg.distributed.destroy_process_group()
    """
    root = _rooted("broadcast_object_list", "src", src, group_src, group)

    def run(g: Group) -> None:
        what = f"broadcast_object_list of {len(object_list)}"
        text = bytearray(pickle.dumps(list(object_list)) if g.rank == root else b"")
        size = bytearray(len(text).to_bytes(8, "little"))
        g.broadcast(size, root, what)
        if g.rank != root:
            text = bytearray(int.from_bytes(size, "little"))
        g.broadcast(text, root, what)
        if g.rank != root:
            object_list[:] = pickle.load(io.BytesIO(text))

    _do(group, False, run)


def _do(group: AnyGroup, async_op: bool, run: Callable[[Group], None]) -> Work | None:
    """Runs an operation in the group, now or beside the program; a rank that is not in it does nothing."""
    found = member(group)
    if found is None:
        return None
    if async_op:
        other = twin(found)
        return beside(lambda: run(other))
    with no_grad():
        run(found)
    return None


def _write(place: Tensor, value: Tensor) -> None:
    with no_grad():
        place.copy_(value)


def _exchanged(x: Tensor, group: Group, what: str) -> Tensor:
    """Part `i` of every rank's tensor for this rank, stacked."""
    sent = flat(x)
    found = _core.empty(sent.numel(), dtype=x.dtype)
    group.all_to_all(octets(sent), octets(found), what)
    return found.reshape(group.size, -1)


def _reduction(function: str, op: ReduceOp, tensor: Tensor) -> tuple[Callable[[Tensor], Tensor], str]:
    if not isinstance(op, ReduceOp):
        raise TypeError(f"{function}: op= is a wengert.distributed.ReduceOp, got {op!r}")
    return _REDUCTIONS[op], described(f"{function} ({op.value})", tensor)


def _rooted(function: str, name: str, rank: int | None, group_rank: int | None, group: AnyGroup) -> int:
    """A rank of the group, given as one of the default group or of its own."""
    found = member(group)
    if found is None:
        return 0
    if rank is not None and group_rank is not None:
        raise ValueError(f"{function}: {name}= or group_{name}= expected, got both")
    root = group_rank if group_rank is not None else get_group_rank(found, rank or 0)
    if not 0 <= root < found.size:
        raise ValueError(f"{function}: group_{name}= is a rank of 0..{found.size - 1}, got {root}")
    return root


def _check_list(function: str, name: str, given: list[Tensor] | None, like: Tensor, size: int) -> None:
    found = [(x.dtype, tuple(x.shape)) for x in given or ()]
    if found != [(like.dtype, tuple(like.shape))] * size:
        shapes = ", ".join(f"{x.dtype} {tuple(x.shape)}" for x in given or ()) or "none"
        raise ValueError(
            f"{function}: {name} needs {size} tensors of {like.dtype} {tuple(like.shape)}, got {shapes}"
        )


def _check_size(function: str, name: str, large: Tensor, small: Tensor, size: int) -> None:
    if (large.numel(), large.dtype) != (small.numel() * size, small.dtype):
        raise ValueError(
            f"{function}: {name} needs {small.numel() * size} elements of {small.dtype}, "
            f"got {large.numel()} of {large.dtype}"
        )


def _rows(name: str, x: Tensor, sizes: Sequence[int] | None, count: int) -> list[int]:
    rows = x.shape[0] if x.ndim else 0
    if sizes is None:
        if rows % count:
            raise ValueError(
                f"all_to_all_single: {rows} rows of {name} cannot be cut into {count} equal parts"
            )
        return [rows // count] * count
    if len(sizes) != count or sum(sizes) != rows:
        raise ValueError(
            f"all_to_all_single: {name}_split_sizes need {count} numbers whose sum is {rows}, got {list(sizes)}"
        )
    return list(sizes)
