"""Arguments whose memory a program takes: what is free when, what is left of them, when they come back."""

import copy
import functools
import gc
import pickle
import sys
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


def set_data(parameter: wg.Tensor, x: wg.Tensor) -> wg.Tensor:
    parameter.data = x
    return parameter


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
    "hook": lambda x: x.requires_grad_().register_hook(print),
    "gradient": lambda x: wg.ones(3, requires_grad=True).backward(x),
    "cotangent": lambda x: wg.autograd.grad((y := wg.ones(3, requires_grad=True)) + 1, [y], [x]),
    "data of a parameter": lambda x: set_data(wg.nn.Parameter(wg.zeros(3)), x).tolist(),
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


def test_an_object_given_twice_and_returned_is_not_taken() -> None:
    pair = wg.jit(lambda x, y: (x, y * 2), donate_argnums=(0, 1))
    same = wg.jit(lambda tree: tree, donate_argnums=0)
    compiled = pair.lower(*[wg.ones(2)] * 2).compile()
    for f in (pair, pair, compiled):
        x = wg.ones(2)
        assert f(x, x)[0] is x
        assert x.tolist() == [1, 1]
        same({"a": x, "b": x})
        assert x.tolist() == [1, 1]


def test_the_last_argument_is_that_of_the_signature() -> None:
    step = wg.jit(lambda a, b, c=0: a + b, donate_argnums=-1)
    static = wg.jit(lambda a, b, c=(1,): a + b * c[0], static_argnums=-1)
    for _ in range(2):
        x, y = wg.ones(2), wg.ones(2)
        step(x, b=y)
        step(x, y)
        step(x, y, 5)
        assert static(x, b=y).tolist() == static(x, y, c=(1,)).tolist() == [2, 2]
        assert x.tolist() == y.tolist() == [1, 1]
        step(x, y, c=y)
        with pytest.raises(RuntimeError, match="was donated"):
            y + 1


@pytest.mark.parametrize(
    "how", ["as Python", "checked", "again", "profiled", "an optimiser's hook", "checkpoint"]
)
def test_a_call_inside_of_one_takes_nothing(how: str) -> None:
    inner = wg.jit(lambda x: x * 2, donate_argnums=0)
    inner(wg.ones(2))
    for _ in range(3):
        x, w = wg.ones(2), wg.ones(2, requires_grad=True)
        if how == "as Python":
            outer = wg.jit(lambda y: (inner(y) + y) * float(y.sum().item()), max_traces=1)
            with pytest.warns(UserWarning, match="runs as Python"):
                outer(x)
            assert outer(x).tolist() == [6, 6]
        elif how == "checked":
            outer = wg.jit(lambda y: inner(y) + y, check=True)
            assert outer(x).tolist() == outer(x).tolist() == [3, 3]
        elif how == "again":
            outer = wg.jit(lambda w, x: (w * w * inner(x)).sum())
            for _ in range(2):
                (slope,) = wg.autograd.grad(outer(w, x), [w], create_graph=True)
                assert slope.tolist() == [4, 4]
        elif how == "profiled":
            sys.setprofile(lambda *_: None)
            try:
                assert wg.jit(lambda y: inner(y) + y)(x).tolist() == [3, 3]
            finally:
                sys.setprofile(None)
        elif how == "checkpoint":
            wg.utils.checkpoint.checkpoint(lambda w, x: (w * inner(x)).sum(), w, x).backward()
            assert w.grad.tolist() == [2, 2]
        else:
            optimizer = wg.optim.SGD([w], lr=0.1)
            optimizer.register_step_post_hook(lambda *_, x=x: inner(x))

            @wg.jit
            def step(w=w, optimizer=optimizer):
                optimizer.zero_grad()
                (w * w).sum().backward()
                optimizer.step()

            for _ in range(3):
                step()
        assert x.tolist() == [1, 1]


def test_a_view_that_got_a_history_is_left() -> None:
    step = wg.jit(lambda x: x * 2, donate_argnums=0)
    step(wg.ones(2))
    for _ in range(2):
        base, w = wg.zeros(4), wg.ones(4, requires_grad=True)
        view = base[:2]
        base.add_(w * 3)
        with wg.no_grad():
            step(view)
        view.sum().backward()
        assert w.grad.tolist() == [3, 3, 0, 0]


def test_a_view_that_changed_with_its_tensor_is_taken() -> None:
    step = wg.jit(lambda x, y: x.mul_(2) + y, donate_argnums=(0, 1))
    for _ in range(3):
        base = wg.arange(6.0)
        x, y = base[:4], base[2:]
        assert step(x, y).tolist() == [4, 8, 8, 11]
        assert base.tolist() == [0, 2, 4, 6, 4, 5]
        for z in (x, y):
            with pytest.raises(RuntimeError, match="was donated"):
                z + 1


def chain(x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
    z = x @ y
    for _ in range(3):
        z = z @ z
    return z


@pytest.mark.parametrize("donated", [(0, 1), (0,)])
@pytest.mark.parametrize("how", ["one", "detached", "halves", "apart"])
def test_memory_in_common_is_free_when_both_are_read(how: str, donated: tuple[int, ...]) -> None:
    def pair() -> tuple[wg.Tensor, wg.Tensor]:
        x = wg.full((256, 256), 1e-3)
        if how == "one":
            return x, x
        if how == "detached":
            return x, x.detach()
        if how == "halves":
            whole = wg.full((512, 256), 1e-3)
            return whole[:256], whole[256:]
        return x, x.clone()

    step = wg.jit(chain, donate_argnums=donated)
    for _ in range(2):
        step(*pair())
    x, y = pair()
    want = step.program(x, y).memory().peak
    assert peak(lambda: step(x, y)) == want
    is_free = how in ("one", "apart") or (how == "detached" and len(donated) == 2)
    assert want == (BYTES if is_free else 2 * BYTES)


def test_what_only_a_view_holds_is_free() -> None:
    step = wg.jit(lambda x: x @ x, donate_argnums=0)
    make = lambda: wg.ones(SIZE).reshape(256, 256)
    for _ in range(2):
        step(make())
    x, f = make(), wg.jit(lambda x: chain(x, x), donate_argnums=0)
    f(make())
    assert peak(lambda: f(x)) == f.program(make()).memory().peak == BYTES


def test_shared_memory_comes_back_after_an_error() -> None:
    step = wg.jit(lambda x, y, i: x[i] + y[i], donate_argnums=(0, 1))
    good, bad = wg.tensor([0, 1]), wg.tensor([0, 9])
    for _ in range(3):
        base = wg.arange(8.0)
        step(base[:4], base[2:6], good)
        x, y = wg.arange(8.0)[:4], base[2:6].T
        for _ in range(2):
            with pytest.raises(IndexError):
                step(base[:4], y, bad)
            with pytest.raises(IndexError):
                step(x, x, bad)
        assert (x.tolist(), y.tolist()) == ([0, 1, 2, 3], [2, 3, 4, 5])


def test_an_elementwise_step_makes_one_parameter_after_the_other() -> None:
    def sgd(params: list[wg.Tensor], slopes: list[wg.Tensor]) -> list[wg.Tensor]:
        return [p - 0.1 * g for p, g in zip(params, slopes, strict=True)]

    make = lambda: [wg.full((SIZE,), float(k)) for k in range(8)]
    slopes = make()
    kept, taken = wg.jit(sgd), wg.jit(sgd, donate_argnums=0)
    kept(make(), slopes), taken(make(), slopes)
    params, others = make(), make()
    assert kept.program(others, slopes).memory().peak == 8 * BYTES
    assert taken.program(params, slopes).memory().peak == BYTES
    assert taken.fused(params, slopes) == [["mul", "sub"]] * 8
    assert peak(lambda: taken(params, slopes)) == BYTES
    for a, b in zip(taken(make(), slopes), sgd(make(), slopes), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_what_was_filled_meanwhile_stays() -> None:
    w = wg.ones(2, requires_grad=True)
    optimizer, box, fails = wg.optim.SGD([w], lr=0.1), [], [False]

    def hook(*_: object) -> None:
        if fails[0]:
            box[0].data = wg.full((2,), 7.0)
            raise ValueError("boom")

    optimizer.register_step_post_hook(hook)

    @functools.partial(wg.jit, donate_argnums=(0, 1))
    def step(x, z):
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        return (z * 2).sum() + w.detach().sum()

    for i in range(3):
        z = wg.ones(2)
        box[:], fails[0] = [z], i == 2
        if i < 2:
            step(wg.ones(2), z)
        else:
            with pytest.raises(ValueError, match="boom"):
                step(wg.ones(2), z)
    assert z.tolist() == [7, 7]


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
