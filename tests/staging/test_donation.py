"""Arguments whose memory a program takes: what is free when, what is left of them, and when they come back."""

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg

SIZE = 1 << 16
BYTES = 4 * SIZE


def peak(call: Callable[[], object]) -> int:
    """The most bytes that a call takes beyond those before it, while its result is held."""
    gc.collect()
    before = wg.memory.live_bytes()
    wg.memory.reset_peak()
    result = call()
    del result
    return wg.memory.peak_bytes() - before


def parts() -> dict[str, list[wg.Tensor]]:
    return {"w": [wg.full((SIZE,), float(k)) for k in range(8)]}


def moved(params: dict[str, list[wg.Tensor]], scale: wg.Tensor) -> dict[str, list[wg.Tensor]]:
    # Products of matrices, so that nothing is fused.
    return {"w": [(w.reshape(256, -1) @ wg.eye(SIZE // 256)).reshape(-1) * scale for w in params["w"]]}


def test_memory_is_free_for_results_after_its_last_reader() -> None:
    scale = wg.tensor(0.5)
    kept, taken = wg.jit(moved), wg.jit(moved, donate_argnums=0)
    kept(parts(), scale)
    taken(parts(), scale)
    first, second = parts(), parts()
    most, least = peak(lambda: kept(first, scale)), peak(lambda: taken(second, scale))
    assert most >= 8 * BYTES
    assert least <= 3 * BYTES
    again = parts()
    assert taken.program(again, scale).memory().peak == least
    assert kept.program(again, scale).memory().peak == most
    for a, b in zip(taken(again, scale)["w"], moved(parts(), scale)["w"], strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_one_tensor_goes_through_a_chain_of_calls_in_the_memory_of_two() -> None:
    step = wg.jit(lambda x: x @ x * 1e-3, donate_argnums=0)
    x = step(wg.ones(256, 256))
    assert peak(lambda: step(x)) <= 2 * BYTES
    with pytest.raises(RuntimeError, match=r"matmul: a tensor of shape \(256, 256\) was donated"):
        x @ x


USES: dict[str, Callable[[Any], object]] = {
    "arithmetic": lambda x: x + 1,
    "reflected": lambda x: 1 - x,
    "in place": lambda x: x.add_(1),
    "written": lambda x: x.__setitem__(0, 1.0),
    "index": lambda x: x[0],
    "sum": lambda x: x.sum(),
    "numpy": lambda x: x.numpy(),
    "array": lambda x: np.asarray(x),
    "buffer": lambda x: memoryview(x),
    "dlpack": lambda x: np.from_dlpack(x),
    "tolist": lambda x: x.tolist(),
    "item": lambda x: x[:1].item(),
    "float": lambda x: float(x.sum()),
    "iteration": lambda x: list(x),
    "truth": lambda x: bool(x.all()),
    "clone": lambda x: x.clone(),
    "cast": lambda x: x.double(),
    "pickle": lambda x: pickle.dumps(x),
    "deepcopy": lambda x: copy.deepcopy(x),
    "view": lambda x: x.view(3, 1),
    "concatenation": lambda x: wg.cat([wg.ones(1), x]),
    "choice": lambda x: wg.where(x > 0, x, 0),
    "grad": lambda x: wg.grad(lambda y: y.sum())(x),
    "jvp": lambda x: wg.jvp(lambda y: y * y, (x,), (x,)),
    "vmap": lambda x: wg.vmap(lambda y: y * y)(x),
    "jit": lambda x: wg.jit(lambda y: y * y)(x),
    "jit again": lambda x: STEP(x),
    "leaf": lambda x: (x.requires_grad_() * 2).sum().backward(),
    "saved": lambda x: wg.save(x, "/dev/null"),
    "parameter": lambda x: wg.nn.Parameter(x) * 2,
    "tensor": lambda x: wg.tensor(x),
    "as_tensor": lambda x: wg.as_tensor(x) + 1,
    "equal": lambda x: wg.equal(x, wg.ones(3)),
    "detach": lambda x: x.detach() + 1,
    "data": lambda x: x.data + 1,
    "strides": lambda x: x.as_strided((2,), (1,)),
    "address": lambda x: x.data_ptr(),
    "storage": lambda x: x.untyped_storage().nbytes(),
    "contiguous": lambda x: x.contiguous() + 1,
    "multi-index": lambda x: wg.ones(3)[x.long()],
    "format": lambda x: f"{x.sum():.2f}",
}
STEP = wg.jit(lambda x: x * 2, donate_argnums=0)


@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("name", USES)
def test_what_was_donated_raises(name: str, calls: int) -> None:
    for _ in range(calls):
        x = wg.ones(3)
        assert STEP(x).tolist() == [2, 2, 2]
    with pytest.raises((RuntimeError, BufferError), match="was donated to a jitted call"):
        USES[name](x)


def test_what_was_donated_says_what_it_was() -> None:
    x = wg.ones(3, dtype=wg.float64)
    STEP(x)
    assert (x.shape, x.dtype, x.device, x.ndim, len(x)) == ((3,), wg.float64, wg.device("cpu"), 1, 3)
    assert repr(x) == "Donated(shape=(3,), dtype=float64)"
    assert x.grad is None
    assert not x.requires_grad


def test_views_and_owners_keep_their_memory() -> None:
    x = wg.arange(6.0)
    part, array = x[2:], x.numpy()
    STEP(x)
    assert part.tolist() == [2, 3, 4, 5]
    assert array.tolist() == [0, 1, 2, 3, 4, 5]
    part.add_(1)
    assert array[2] == 3
    whole = wg.arange(6.0)
    view = whole[2:4]
    STEP(view)
    assert whole.tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(RuntimeError, match="was donated"):
        view + 1


def test_what_is_returned_is_not_taken() -> None:
    step = wg.jit(lambda x, y: (x, y * 2), donate_argnums=(0, 1))
    for _ in range(3):
        x, y = wg.ones(2), wg.ones(2)
        same, double = step(x, y)
        assert same is x
        assert (x + double).tolist() == [3, 3]
        with pytest.raises(RuntimeError, match="was donated"):
            y + 1
    shared = wg.jit(lambda x: x[1:], donate_argnums=0)
    for _ in range(3):
        assert shared(wg.arange(3.0)).tolist() == [1, 2]


def test_the_same_tensor_twice_and_memory_in_common() -> None:
    step = wg.jit(lambda x, y: x * y + y, donate_argnums=(0, 1))
    one = wg.jit(lambda x, y: x * y + y, donate_argnums=0)
    for f in (step, one):
        for _ in range(3):
            x = wg.ones(3)
            assert f(x, x).tolist() == [2, 2, 2]
            with pytest.raises(RuntimeError, match="was donated"):
                x + 1
            base = wg.arange(4.0)
            assert f(base[:2], base[1:3]).tolist() == [1, 4]
            assert base.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("by", ["names", "from the end", "a tree", "a method"])
def test_arguments_are_named_as_in_jax(by: str) -> None:
    class Model:
        @wg.jit(donate_argnums=1)
        def step(self, x):
            return x * 2

    for _ in range(3):
        x = wg.ones(2)
        if by == "names":
            wg.jit(lambda a, *, state: a + state, donate_argnames="state")(wg.ones(2), state=x)
        elif by == "from the end":
            wg.jit(lambda a, b: a + b, donate_argnums=-1)(wg.ones(2), x)
        elif by == "a tree":
            wg.jit(lambda tree: tree["a"][0] * 2, donate_argnums=0)({"a": [x], "b": 3})
        else:
            Model().step(x)
        with pytest.raises(RuntimeError, match="was donated"):
            x + 1


def test_what_has_a_history_is_left() -> None:
    w = wg.ones(3, requires_grad=True)
    step = wg.jit(lambda x, w: (x * w).sum(), donate_argnums=(0, 1))
    for k in range(3):
        x = wg.full((3,), 2.0)
        step(x, w).backward()
        assert x.tolist() == [2, 2, 2]
        assert w.grad.tolist() == [2.0 * (k + 1)] * 3
    hidden = w * 2
    with wg.no_grad():
        assert step(wg.ones(3), hidden).item() == 6
    assert hidden.tolist() == [2, 2, 2]


def test_inside_of_transforms_and_programs_nothing_is_taken() -> None:
    x = wg.ones(3)
    for _ in range(2):
        assert wg.grad(lambda y: STEP(y).sum())(x).tolist() == [2, 2, 2]
        assert wg.grad(wg.jit(lambda y: (y * y).sum(), donate_argnums=0))(x).tolist() == [2, 2, 2]
        assert wg.vmap(STEP)(x).tolist() == [2, 2, 2]
        assert wg.jvp(STEP, (x,), (x,))[1].tolist() == [2, 2, 2]
        assert wg.jit(lambda y: STEP(y) + y)(x).tolist() == [3, 3, 3]
        wg.eval_shape(STEP, x)
        STEP.lower(x)
        wg.make_graph(STEP)(x)
        assert x.tolist() == [1, 1, 1]


def test_in_an_autocast_region_it_is_taken() -> None:
    step = wg.jit(lambda x: x @ x, donate_argnums=0)
    for _ in range(3):
        x = wg.ones(4, 4)
        with wg.autocast(dtype=wg.bfloat16):
            assert step(x).dtype == wg.bfloat16
        with pytest.raises(RuntimeError, match="was donated"):
            x + 1


def test_a_guard_that_fails_gives_everything_back() -> None:
    step = wg.jit(lambda x, y: (x + y) * 2 if x.sum() > 0 else (x - y) / 2, donate_argnums=(0, 1))
    for sign in (1.0, 1.0, -1.0, -1.0, 1.0, -1.0):
        x, y = wg.full((3,), sign), wg.ones(3)
        assert step(x, y).tolist() == ([4.0] * 3 if sign > 0 else [-1.0] * 3)
        with pytest.raises(RuntimeError, match="was donated"):
            x + y
    assert step.traces == 2


def test_an_error_gives_everything_back() -> None:
    step = wg.jit(lambda x, i: (x * 2)[i] + x, donate_argnums=(0, 1))
    good, bad = wg.tensor([0, 1]), wg.tensor([0, 7])
    assert step(wg.ones(2), good).tolist() == [3, 3]
    assert step(wg.ones(2), wg.tensor([1, 1])).tolist() == [3, 3]
    for _ in range(2):
        x = wg.ones(2)
        with pytest.raises(IndexError):
            step(x, bad)
        assert (x.tolist(), bad.tolist()) == ([1, 1], [0, 7])


def test_calls_that_run_as_python_take_it_too() -> None:
    step = wg.jit(lambda x: (x * x.sum().item(), 1)[0], donate_argnums=0, max_traces=1)
    with pytest.warns(UserWarning, match="runs as Python"):
        step(wg.ones(2))
    for _ in range(2):
        x = wg.ones(2)
        assert step(x).tolist() == [2, 2]
        with pytest.raises(RuntimeError, match="was donated"):
            x + 1


def test_checked_calls_take_it() -> None:
    step = wg.jit(lambda x: x.add_(1) * 2, donate_argnums=0, check=True)
    for _ in range(3):
        x = wg.ones(2)
        assert step(x).tolist() == [4, 4]
        with pytest.raises(RuntimeError, match="was donated"):
            x + 1


def test_settings_of_donation() -> None:
    f = wg.jit(lambda x, y: x + y)
    donating = wg.jit(f, donate_argnums=1)
    assert donating is not f
    assert wg.jit.stage(donating, donate_argnames="y") is donating
    assert wg.jit(donating) is donating
    x, y = wg.ones(2), wg.ones(2)
    donating(x, y)
    assert x.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="was donated"):
        f(x, y)
    with pytest.raises(
        ValueError, match="donate_argnames='z', and the function has no argument 'z'; it has x, y"
    ):
        wg.jit(lambda x, y: x, donate_argnames="z")


def test_empty_tensors_stay() -> None:
    x = wg.ones(0)
    for _ in range(2):
        STEP(x)
    assert x.tolist() == []


@pytest.mark.parametrize(
    "fill",
    [
        lambda x: setattr(x, "data", wg.zeros(3)),
        lambda x: x.zero_(),
        lambda x: x.copy_(wg.zeros(3)),
        lambda x: wg.sub(wg.ones(3), 1, out=x),
    ],
)
def test_it_can_be_filled_again(fill: Callable[[wg.Tensor], object]) -> None:
    x = wg.ones(3)
    STEP(x)
    fill(x)
    for k in range(3):
        assert (x + 1).tolist() == [1 + k] * 3
        x += 1
    assert STEP(x).tolist() == [6, 6, 6]


@pytest.mark.gpu
def test_memory_of_a_gpu_is_free_too() -> None:
    step = wg.jit(lambda xs: [x @ x for x in xs], donate_argnums=0)
    make = lambda: [wg.ones(256, 256, device="gpu") for _ in range(8)]
    step(make())
    for _ in range(2):
        xs = make()
        assert [x.sum().item() for x in step(xs)] == [256.0**3] * 8
        with pytest.raises(RuntimeError, match="was donated"):
            xs[0] + 1
