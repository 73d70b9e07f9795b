"""Collective operations of which each rank gets its part."""

from __future__ import annotations

from collections.abc import Sequence

from wengert import _core
from wengert._core import Tensor
from wengert.distributed._everyday.calls import (
    AnyGroup,
    ReduceOp,
    check_list,
    check_op,
    check_size,
    check_tensors,
    exchange_rows,
    reduce_rows,
    run_operation,
    write,
)
from wengert.distributed._everyday.groups import as_member
from wengert.distributed._everyday.work import Work
from wengert.distributed._group import Group
from wengert.distributed._tensors import describe, flatten_on_host, gather_tensors

__all__ = [
    "all_to_all",
    "all_to_all_single",
    "reduce_scatter",
    "reduce_scatter_tensor",
]


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: AnyGroup = None,
    async_op: bool = False,
) -> Work | None:
    """Sends part `i` of `input` to rank `i`, and writes what arrives into `output`, in the order of ranks.

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

    check_tensors("all_to_all_single", output, input)

    def run(g: Group) -> None:
        into = _rows("output", output, output_split_sizes, g.size)
        rows = _rows("input", input, input_split_sizes, g.size)
        if input_split_sizes is None and output_split_sizes is None:
            write(output, exchange_rows(input, g, describe("all_to_all", input)).reshape(output.shape))
            return
        write(output, _core.cat(_uneven(input.detach().cpu(), rows, into, g)).to(output.device))

    return run_operation(group, async_op, run)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: AnyGroup = None,
    async_op: bool = False,
) -> Work | None:
    """Sends tensor `i` of a list to rank `i`, and writes what arrives into the tensors of another, by rank.

    Args:
        output_tensor_list: a tensor for what each rank sends, of its shape and dtype.
        input_tensor_list: a tensor for each rank, all of one dtype, of whatever shapes.
        group: of `new_group`; all ranks if None.
        async_op: True returns at once, with a `Work` to wait for.

    Example:
        >>> wg.distributed.init_process_group()
        >>> found = [wg.zeros(2)]
        >>> wg.distributed.all_to_all(found, [wg.tensor([1.0, 2.0])])
        >>> found
        [tensor([1., 2.])]
        >>> wg.distributed.destroy_process_group()
    """
    check_tensors("all_to_all", *output_tensor_list, *input_tensor_list)
    dtypes = {x.dtype for x in (*output_tensor_list, *input_tensor_list)}
    if len(dtypes) > 1:
        raise TypeError(f"all_to_all: tensors of one dtype expected, got {sorted(map(str, dtypes))}")

    def run(g: Group) -> None:
        for name, given in (("output", output_tensor_list), ("input", input_tensor_list)):
            if len(given) != g.size:
                raise ValueError(
                    f"all_to_all: {name}_tensor_list needs a tensor for each of {g.size} ranks, "
                    f"got {len(given)}"
                )
        sent = _core.cat([flatten_on_host(x) for x in input_tensor_list])
        rows, into = ([x.numel() for x in given] for given in (input_tensor_list, output_tensor_list))
        for place, part in zip(output_tensor_list, _uneven(sent, rows, into, g), strict=True):
            write(place, part.reshape(place.shape).to(place.device))

    return run_operation(group, async_op, run)


def _uneven(sent: Tensor, rows: list[int], into: list[int], group: Group) -> list[Tensor]:
    """The parts of all ranks for this one; each travels as long as the longest of any rank."""
    table = gather_tensors(_core.tensor([rows, into]), group, "all_to_all")
    wrong = (table[:, 0] != table[:, 1].T).nonzero().tolist()
    # All ranks see the same, and raise.
    if wrong:
        source, to = wrong[0]
        sent_there, expected = int(table[source, 0, to]), int(table[to, 1, source])
        raise ValueError(
            f"all_to_all: rank {source} sends {sent_there} to rank {to}, which expects {expected}"
        )
    most = int(table.max())
    padded = _core.zeros((group.size, most, *sent.shape[1:]), dtype=sent.dtype)
    for i, part in enumerate(sent.split(rows)):
        padded[i, : len(part)] = part
    parts = exchange_rows(padded, group, describe("all_to_all", padded)).reshape(padded.shape)
    return [part[:n] for part, n in zip(parts, into, strict=True)]


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: AnyGroup = None,
    async_op: bool = False,
) -> Work | None:
    """Writes into `output` the sum, or whatever `op` says, of what all ranks list for this rank.

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
    check_tensors("reduce_scatter", output, *input_list)
    g = as_member(group)
    if g is not None:
        check_list("reduce_scatter", "input_list", input_list, output, g.size)
    return reduce_scatter_tensor(output, _core.stack(list(input_list)).detach(), op, group, async_op)


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
    check_op("reduce_scatter", op)
    check_tensors("reduce_scatter_tensor", output, input)

    def run(g: Group) -> None:
        check_size("reduce_scatter_tensor", "input", input, output, g.size)
        write(output, reduce_rows(input, g, op, "reduce_scatter").reshape(output.shape).to(output.device))

    return run_operation(group, async_op, run)


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
            f"all_to_all_single: {name}_split_sizes need {count} numbers whose sum is {rows}, "
            f"got {list(sizes)}"
        )
    return list(sizes)
