"""`utils._pytree`, `multiprocessing` and `amp.custom_fwd` as programs use them."""

import dataclasses
import math
import os
from typing import Any

import numpy as np
import pytest
import wengert as torch
import wengert.multiprocessing as mp
from wengert.utils import _pytree as pytree


def test_trees_come_apart_and_together() -> None:
    given = {"b": (torch.ones(2), None), "a": [3, {"c": "text"}]}
    leaves, spec = pytree.tree_flatten(given)
    assert len(leaves) == 4
    assert None in [leaf for leaf in leaves if not isinstance(leaf, torch.Tensor)]
    back = pytree.tree_unflatten(leaves, spec)
    assert back["a"] == [3, {"c": "text"}]
    assert back["b"][1] is None
    assert list(back) == ["b", "a"]
    assert pytree.tree_structure(given) == spec
    assert len(pytree.tree_leaves(given)) == len(list(pytree.tree_iter(given))) == 4


def test_maps_over_trees() -> None:
    doubled = pytree.tree_map(lambda x, y: x + y, {"a": 1, "b": (2,)}, {"a": 10, "b": (20,)})
    assert doubled == {"a": 11, "b": (22,)}
    moved = pytree.tree_map_only(torch.Tensor, lambda t: t + 1, [torch.zeros(1), 5, None])
    assert (moved[0].item(), moved[1:]) == (1.0, [5, None])
    seen: list[Any] = []
    assert pytree.tree_map_(seen.append, [1, [2]]) == [1, [2]]
    assert pytree.tree_map_only_(int, seen.append, ["x", 3]) == ["x", 3]
    assert seen == [1, 2, 3]
    assert pytree.tree_map_only(lambda x: x == 1, lambda x: -x, [1, 2]) == [-1, 2]
    stops = lambda x: isinstance(x, tuple)
    assert pytree.tree_leaves([(1, 2), 3], is_leaf=stops) == [(1, 2), 3]
    assert pytree.tree_map(len, [(1, 2)], is_leaf=stops) == [2]


def test_questions_to_trees() -> None:
    assert pytree.tree_all(lambda x: x > 0, [1, {"a": 2}])
    assert pytree.tree_any(lambda x: x > 1, [1, {"a": 2}])
    assert pytree.tree_all_only(int, lambda x: x > 0, [1, "x"])
    assert not pytree.tree_any_only(int, lambda x: x > 1, [1, "x"])


def test_containers_of_a_program() -> None:
    class Pair:
        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

    pytree.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda children, context: Pair(*children))
    made = pytree.tree_map(lambda x: 2 * x, Pair(1, 2))
    assert (made.a, made.b) == (2, 4)

    @dataclasses.dataclass
    class Batch:
        x: Any
        y: Any

    pytree.register_dataclass(Batch)
    assert pytree.tree_map(lambda v: v + 1, Batch(1, 2)) == Batch(2, 3)


def _square(rank: int, queue: Any, x: torch.Tensor) -> None:
    queue.put((rank, float((x * x).sum()) + rank))


def _fail(rank: int) -> None:
    if rank == 1:
        raise ValueError("not this one")


def test_processes_are_spawned() -> None:
    queue = mp.get_context("fork").SimpleQueue()
    mp.spawn(
        _square,
        args=(queue, torch.tensor([1.0, 2.0])),
        nprocs=2,
        join=True,
        daemon=False,
        start_method="fork",
    )
    assert sorted(queue.get() for _ in range(2)) == [(0, 5.0), (1, 6.0)]


def test_the_failure_of_a_process_is_told() -> None:
    with pytest.raises(RuntimeError, match=r"(?s)spawn: process 1 failed:.*ValueError: not this one"):
        mp.spawn(_fail, nprocs=2, start_method="fork")
    context = mp.start_processes(_fail, args=(), nprocs=1, join=False, daemon=True, start_method="fork")
    assert all(isinstance(pid, int) for pid in context.pids())
    assert context.join(timeout=60)


def test_a_fresh_interpreter() -> None:
    context = mp.spawn(math.copysign, args=(1.0,), nprocs=1, join=False)
    assert isinstance(context, mp.SpawnContext)
    while not context.join():
        pass


def test_names_of_python_s_module() -> None:
    assert mp.Process is not None
    assert mp.cpu_count() == os.cpu_count()
    assert mp.get_start_method() in mp.get_all_start_methods()
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() == "file_system"
    mp.set_sharing_strategy(new_strategy="file_descriptor")
    with pytest.raises(ValueError, match="'file_descriptor' or 'file_system' expected"):
        mp.set_sharing_strategy("shared")


class MyMM(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(a, b)
        return a.mm(b)

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        a, b = ctx.saved_tensors
        seen.append(torch.get_autocast_dtype())
        return grad.mm(b.t()), a.t().mm(grad)


class InFull(torch.autograd.Function):
    @staticmethod
    @torch.cuda.amp.custom_fwd(cast_inputs=torch.float32)
    def forward(
        ctx: Any, a: torch.Tensor, more: list[torch.Tensor], exact: torch.Tensor, n: int
    ) -> torch.Tensor:
        assert torch.get_autocast_dtype() is None
        assert (a.dtype, more[0].dtype, exact.dtype, n) == (torch.float32, torch.float32, torch.float64, 3)
        return a * 2

    @staticmethod
    @torch.cuda.amp.custom_bwd
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
        assert torch.get_autocast_dtype() is None
        return grad * 2, None, None, None


seen: list[Any] = []


def test_functions_of_one_s_own_under_autocast() -> None:
    a, b = torch.randn(3, 3, requires_grad=True), torch.randn(3, 3, requires_grad=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        out = MyMM.apply(a, b)
    assert out.dtype == torch.bfloat16
    out.sum().backward()
    MyMM.apply(a, b).sum().backward()
    assert seen == [torch.bfloat16, None]
    assert a.grad.dtype == torch.float32
    x = torch.ones(2, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = InFull.apply(x.bfloat16(), [torch.ones(1).bfloat16()], torch.ones(1).double(), 3)
    assert y.dtype == torch.float32
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 2.0])


def test_decorators_take_the_method_by_name() -> None:
    forward = torch.amp.custom_fwd(fwd=lambda ctx, x: x + 1)
    backward = torch.amp.custom_bwd(bwd=lambda ctx, g: g * 3)

    class Shift(torch.autograd.Function):
        pass

    Shift.forward, Shift.backward = staticmethod(forward), staticmethod(backward)
    x = torch.ones(1, requires_grad=True)
    Shift.apply(x).backward()
    assert x.grad.item() == 3.0


def test_kinds_of_devices_that_autocast_knows() -> None:
    assert torch.amp.is_autocast_available("cpu")
    assert torch.amp.is_autocast_available(device_type="cuda")
    with pytest.raises(ValueError, match="'tpu' is not a device"):
        torch.amp.is_autocast_available("tpu")
