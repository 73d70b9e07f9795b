"""Graphs a million operations deep and a million wide: every way through them, without recursion, in linear
memory.

Where a size says `MANY` it is smaller by default, and a million with `HYPOTHESIS_PROFILE=search`. Depth is
tested on threads with a small stack, where a hundred thousand nested calls of anything would end the process.
"""

import gc
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
import wengert as wg
from wengert.utils.checkpoint import checkpoint

MILLION = 1_000_000
MANY = MILLION if os.environ.get("HYPOTHESIS_PROFILE") == "search" else 100_000
STACK = 512 * 1024


def on_small_stack(work: Callable[[], Any]) -> Any:
    """The result of `work` on a thread with a stack of half a megabyte."""
    out: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            out.append(work())
        except BaseException as error:
            failed.append(error)

    before = threading.stack_size(STACK)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    if failed:
        raise failed[0]
    return out[0]


@pytest.fixture(autouse=True)
def nothing_is_left() -> Any:
    """Every test gives back its bytes and its entries of the tape."""
    gc.collect()
    before = wg.memory.live_bytes(), wg.memory.live_nodes()
    yield
    gc.collect()
    assert (wg.memory.live_bytes(), wg.memory.live_nodes()) == before


def powers(x: wg.Tensor, n: int) -> wg.Tensor:
    """`x ** n`, one product at a time."""
    y = x
    for _ in range(n - 1):
        y = y * x
    return y


# ---- depth ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_million_products_backward_twice_and_freed() -> None:
    def work() -> list[float]:
        x = wg.tensor(1.0, requires_grad=True)
        y = powers(x, MILLION)
        assert wg.memory.live_nodes() >= MILLION
        y.backward(retain_graph=True)
        first = x.grad.item()
        y.backward()
        return [first, x.grad.item()]

    assert on_small_stack(work) == [MILLION, 2 * MILLION]


@pytest.mark.slow
def test_both_operands_may_be_the_same_entry_all_the_way_down() -> None:
    def work() -> float:
        x = wg.tensor(1.0, requires_grad=True)
        y = x
        for _ in range(MILLION):
            y = y + y
        del y
        y = x
        for _ in range(MANY):
            y = y.maximum(y)
        y.backward()
        return x.grad.item()

    assert on_small_stack(work) == 1.0


def test_memory_is_linear_in_depth() -> None:
    def peak(n: int) -> int:
        start = wg.memory.live_bytes()
        wg.memory.reset_peak()
        x = wg.tensor(1.0, requires_grad=True)
        powers(x, n).backward()
        return wg.memory.peak_bytes() - start

    small, large = peak(20_000), peak(40_000)
    # Each product keeps its first operand, of four bytes; the second is one tensor.
    assert small <= 4 * 20_000 + 64
    assert large <= 4 * 40_000 + 64


def test_second_derivatives_through_many_operations() -> None:
    n = 100_000

    def work() -> tuple[float, float]:
        x = wg.tensor(1.0, dtype=wg.float64, requires_grad=True)
        (g,) = wg.autograd.grad(powers(x, n), x, create_graph=True)
        (gg,) = wg.autograd.grad(g, x)
        return g.item(), gg.item()

    assert on_small_stack(work) == (n, n * (n - 1))


@pytest.mark.parametrize(
    "name", ["grad", "vjp", "jvp", "vmap", "grad_of_grad", "jvp_of_grad", "vmap_of_grad"]
)
def test_transforms_of_many_operations(name: str) -> None:
    n = MANY // (5 if name in ("grad_of_grad", "jvp_of_grad") else 1)
    f = lambda x: powers(x, n)
    one = wg.tensor(1.0, dtype=wg.float64)
    calls: dict[str, Callable[[], Any]] = {
        "grad": lambda: wg.grad(f)(one).item() == n,
        "vjp": lambda: wg.vjp(f, one)[1](one)[0].item() == n,
        "jvp": lambda: wg.jvp(f, (one,), (one,))[1].item() == n,
        "vmap": lambda: wg.vmap(f)(wg.ones(3)).tolist() == [1.0] * 3,
        "grad_of_grad": lambda: wg.grad(wg.grad(f))(one).item() == n * (n - 1),
        "jvp_of_grad": lambda: wg.jvp(wg.grad(f), (one,), (one,))[1].item() == n * (n - 1),
        "vmap_of_grad": lambda: wg.vmap(wg.grad(f))(wg.ones(3)).tolist() == [float(n)] * 3,
    }
    assert on_small_stack(calls[name])


def test_chains_of_checkpoints_hooks_and_python_objects() -> None:
    def checkpoints(x: wg.Tensor, n: int) -> wg.Tensor:
        for _ in range(n):
            x = checkpoint(lambda t: t * 1.0, x, use_reentrant=False)
        return x

    def hooks(x: wg.Tensor, n: int) -> wg.Tensor:
        for _ in range(n):
            last, x = x, x + 1
            x.register_hook(lambda g, last=last: None)
        return x

    def packed(x: wg.Tensor, n: int) -> wg.Tensor:
        for _ in range(n):
            with wg.autograd.graph.saved_tensors_hooks(lambda t, last=x: (t, last), lambda kept: kept[0]):
                x = x * 1.0
        return x

    def work(chain: Callable[[wg.Tensor, int], wg.Tensor]) -> float:
        x = wg.tensor(1.0, requires_grad=True)
        y = chain(x, 20_000)
        del y
        chain(x, 20_000).backward()
        return x.grad.item()

    for chain in (checkpoints, hooks, packed):
        assert on_small_stack(lambda chain=chain: work(chain)) == 1.0


def test_the_tape_can_be_walked_from_python() -> None:
    def work() -> int:
        x = wg.tensor(1.0, requires_grad=True)
        node, steps = powers(x, 20_000).grad_fn, 0
        while node is not None and node.next_functions:
            node = node.next_functions[0][0]
            steps += 1
        return steps

    assert on_small_stack(work) == 20_000 - 1


# ---- width ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_one_tensor_used_a_million_times() -> None:
    x = wg.tensor(1.0, requires_grad=True)
    wg.stack([x] * MILLION).sum().backward()
    assert x.grad.item() == MILLION


def test_as_many_leaves_in_one_concatenation() -> None:
    leaves = [wg.ones(1, requires_grad=True) for _ in range(MANY)]
    wg.memory.reset_peak()
    start = wg.memory.live_bytes()
    wg.cat(leaves).sum().backward()
    assert all(leaf.grad is not None for leaf in leaves)
    assert sum(leaf.grad.item() for leaf in leaves[::1000]) == MANY / 1000
    # The joined tensor and what it is joined from, its gradient and the leaves' own: four bytes per leaf
    # each.
    assert wg.memory.peak_bytes() - start <= 6 * 4 * MANY


def test_gradients_for_many_inputs_at_once() -> None:
    leaves = [wg.tensor(1.0, requires_grad=True) for _ in range(MANY)]
    total = leaves[0]
    for leaf in leaves[1:]:
        total = total + leaf
    found = wg.autograd.grad(total, leaves)
    assert len(found) == MANY
    assert all(g.item() == 1 for g in found[:: MANY // 100])
    stacked = wg.stack(leaves).sum()
    stacked.backward(inputs=leaves[: MANY // 2])
    assert leaves[0].grad.item() == 1
    assert leaves[-1].grad is None
