"""Checkpoints: arguments that are written before the second run are an error;
settings of PyTorch's are understood.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import wengert as wg
from wengert.utils.checkpoint import checkpoint, set_checkpoint_early_stop


def leaf() -> wg.Tensor:
    return wg.tensor([0.3, 0.4], dtype=wg.float64, requires_grad=True)


def written_before_backward(x: wg.Tensor) -> wg.Tensor:
    h = x * 1
    y = checkpoint(lambda h: h.exp(), h)
    h.mul_(2)
    return y


def written_inside(x: wg.Tensor) -> wg.Tensor:
    return checkpoint(lambda h: h.mul_(2).exp(), x * 1)


def written_without_a_tape(x: wg.Tensor) -> wg.Tensor:
    h = x * 1
    y = checkpoint(wg.exp, h)
    with wg.no_grad():
        h.zero_()
    return y


def written_through_its_base(x: wg.Tensor) -> wg.Tensor:
    base = x * 1
    y = checkpoint(wg.exp, base[:1])
    base[0] = 5.0
    return y


def given_other_data(x: wg.Tensor) -> wg.Tensor:
    h = wg.ones(2, dtype=wg.float64)
    y = checkpoint(lambda x, h: x * h, x, h)
    h.data = wg.zeros(2, dtype=wg.float64)
    return y


def in_a_list(x: wg.Tensor) -> wg.Tensor:
    h = x * 1
    y = checkpoint(lambda parts: parts[0]["h"].exp(), [{"h": h}])
    h.add_(1)
    return y


def by_keyword(x: wg.Tensor) -> wg.Tensor:
    h = x * 1
    y = checkpoint(lambda x, *, h: h.exp(), x, h=h)
    h[0] = 1.0
    return y


def stepped(x: wg.Tensor) -> wg.Tensor:
    p = wg.nn.Parameter(wg.ones(2, dtype=wg.float64))
    p.grad = wg.ones_like(p)
    y = checkpoint(lambda x, p: x * p, x, p)
    wg.optim.SGD([p], lr=0.5).step()
    return y


WRITTEN: dict[str, tuple[Callable[[wg.Tensor], wg.Tensor], str]] = {
    "before backward": (written_before_backward, r"args\[0\] of shape \(2,\) was modified .* by mul_ "),
    "inside": (written_inside, r"args\[0\] .* by mul_ "),
    "without a tape": (written_without_a_tape, r"args\[0\] .* by zero_ "),
    "through its base": (written_through_its_base, r"args\[0\] .* by x\[...\] = value "),
    "other data": (given_other_data, r"args\[1\] .* was given other data"),
    "in a list": (in_a_list, r"args\[0\]\[0\]\['h'\] .* by add_ "),
    "by keyword": (by_keyword, r"kwargs\['h'\] .* by x\[...\] = value "),
    "a step of an optimiser": (stepped, r"args\[1\] .* by a step of SGD "),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_an_argument_that_was_written_is_an_error(name: str) -> None:
    f, text = WRITTEN[name]
    x = leaf()
    y = f(x).sum()
    with pytest.raises(wg.CheckpointError, match=text):
        y.backward()
    assert x.grad is None


def test_inside_a_transform() -> None:
    with pytest.raises(RuntimeError, match="modified in place by"):
        wg.grad(lambda x: written_before_backward(x).sum())(wg.ones(2))


def test_a_write_afterwards_and_to_other_tensors_is_none() -> None:
    x = leaf()
    h, other = x * 1, wg.zeros(2)
    loop: list[Any] = [other]
    loop.append(loop)
    y = checkpoint(lambda h, parts: h.exp(), h, [3, {"a": (None, "b")}])
    z = checkpoint(lambda h, parts: h.exp(), h, loop)
    (y + z).sum().backward()
    h.mul_(2)
    assert wg.allclose(x.grad, 2 * x.detach().exp())


def test_settings_are_the_checkpoint_s_own() -> None:
    x = leaf()
    settings = {"determinism_check": "none", "debug": True, "early_stop": False, "preserve_rng_state": False}
    seen: list[Any] = []

    def f(x: wg.Tensor, **rest: Any) -> wg.Tensor:
        seen.append(rest)
        return x.exp()

    checkpoint(f, x, own=1, **settings).sum().backward()
    assert seen == [{"own": 1}, {"own": 1}]
    with pytest.raises(ValueError, match="determinism_check is 'default' or 'none', got 'all'"):
        checkpoint(f, x, determinism_check="all")


def test_contexts_of_the_first_run_and_the_second() -> None:
    seen: list[str] = []

    @contextlib.contextmanager
    def named(name: str) -> Any:
        seen.append(name)
        yield

    y = checkpoint(wg.exp, leaf(), context_fn=lambda: (named("first"), named("second")))
    assert seen == ["first"]
    y.sum().backward()
    assert seen == ["first", "second"]


def test_what_a_second_run_saves_too_much_is_noticed_whatever_is_said_of_its_end():
    runs = []

    def f(x):
        runs.append(x)
        y = x.exp()
        return y if len(runs) == 1 else (y, y.sin())[0]

    x = wg.ones(2, requires_grad=True)
    with set_checkpoint_early_stop(True):
        y = checkpoint(f, x)
    with pytest.raises(wg.CheckpointError, match="the recomputation saved more than the forward's 1 values"):
        y.sum().backward()
