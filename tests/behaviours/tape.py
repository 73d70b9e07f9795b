"""Reading the tape: its entries, the bytes they keep, and the products that a backward computes."""

import gc
from collections.abc import Callable
from math import prod

import wengert as wg


def entries(*roots: wg.Tensor) -> list[wg.autograd.graph.Node]:
    """The entries behind some tensors, latest first; leaves are left out."""
    found: dict[int, wg.autograd.graph.Node] = {}
    waiting = [t.grad_fn for t in roots if t.grad_fn is not None]
    while waiting:
        entry = waiting.pop()
        if entry.is_leaf or entry.sequence_nr in found:
            continue
        found[entry.sequence_nr] = entry
        waiting += [nxt for nxt, _ in entry.next_functions if nxt is not None]
    return [found[number] for number in sorted(found, reverse=True)]


def ops(*roots: wg.Tensor) -> list[str]:
    """The names of their operations, latest first."""
    return [entry.op for entry in entries(*roots)]


def kept(root: wg.Tensor) -> list[tuple[str, tuple[int, ...]]]:
    """What the entry of a tensor keeps: which value, and its shape."""
    return [(value.name, tuple(value.shape)) for value in root.grad_fn.saved]


def live(run: Callable[[], object]) -> int:
    """Bytes of memory that the result of `run` holds, its own value included."""
    gc.collect()
    before = wg.memory.live_bytes()
    result = run()
    gc.collect()
    used = wg.memory.live_bytes() - before
    del result
    return used


def product_flops(*roots: wg.Tensor, apart_from: tuple[wg.Tensor, ...] = ()) -> int:
    """Multiplications and additions of the matrix products on the tape of some tensors.

    A backward with `create_graph=True` is on the tape of the gradients, so its products can be counted there;
    those of the forward pass stand on it too and are named by `apart_from`.
    """
    forward = {entry.sequence_nr for entry in entries(*apart_from)}
    total = 0
    for entry in entries(*roots):
        if entry.op not in ("matmul", "linear") or entry.sequence_nr in forward:
            continue
        # The elements of an operand by those of its axis that the result has, whether it is transposed or
        # not.
        i, operand = next((i, value) for i, value in enumerate(entry.inputs) if value is not None)
        inner = prod(operand.shape[-2:]) // entry.outputs[0].shape[-2 + i]
        total += 2 * prod(entry.outputs[0].shape) * inner
    return total
