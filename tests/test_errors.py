"""What must raise, and in which words: what happened, what was given, what was expected, what to do. Whole messages."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import wengert as wg
from wengert.nn import functional as F
from wengert.utils.checkpoint import checkpoint

ones = wg.ones


def leaf(*shape: int) -> wg.Tensor:
    """A leaf that requires a gradient."""
    return wg.ones(*shape, requires_grad=True)


def used_graph() -> None:
    y = leaf(2).tanh().sum()
    y.backward()
    y.backward()


def used_graph_of_additions() -> None:
    y = (leaf(2) + 1).sum()
    y.backward()
    y.backward()


def saved_then_written() -> None:
    x = leaf(2)
    y = x.exp()
    z = y.tanh().sum()
    w = y.detach()
    w.mul_(2)
    (z + y.sum()).backward()


def written_leaf() -> None:
    x = leaf(2)
    x += 1


def written_view_of_leaf() -> None:
    leaf(2)[0].zero_()


def checkpoint_that_changes() -> None:
    runs = []

    def f(x: wg.Tensor) -> wg.Tensor:
        runs.append(1)
        return x.tanh() if len(runs) == 1 else x.exp()

    checkpoint(f, leaf(2), use_reentrant=False).sum().backward()


def hook_of_another_shape() -> None:
    x = leaf(2)
    y = x * 1
    y.register_hook(lambda g: g[:1])
    y.sum().backward()


def grad_of_unused() -> None:
    x, z = leaf(2), leaf(3)
    wg.autograd.grad((x * 2).sum(), [z])


def escaped() -> None:
    kept = []
    wg.jvp(lambda x: (kept.append(x), x)[1], (ones(2),), (ones(2),))
    kept[0] + 1


def mismatched_batch() -> None:
    wg.vmap(lambda x, y: x + y)(ones(2, 3), ones(4, 3))


def i(*values: int) -> wg.Tensor:
    """Indices."""
    return wg.tensor(list(values), dtype=wg.int64)


SITUATIONS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    # name: (what goes wrong, class, message)
}


def situation(name: str, call: Callable[[], Any], kind: type[Exception], message: str) -> None:
    """Puts a situation on the list."""
    SITUATIONS[name] = (call, kind, message)


@pytest.mark.parametrize("name", list(SITUATIONS))
def test_message(name: str) -> None:
    call, kind, message = SITUATIONS[name]
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == message
    # Whatever happened, the next computation is not affected.
    x = leaf(2)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("name", list(SITUATIONS))
def test_messages_are_complete_sentences_without_internals(name: str) -> None:
    message = SITUATIONS[name][2]
    assert "internal" not in message
    assert "panicked" not in message
    assert len(message) > 20


def test_gradient_of_a_non_leaf_warns() -> None:
    y = leaf(2) * 2
    with pytest.warns(UserWarning, match=r"retain_grad\(\)"):
        assert y.grad is None
    y.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y.grad is None


def test_mse_of_shapes_that_only_broadcast_warns() -> None:
    with pytest.warns(UserWarning, match=r"\(3, 1\).*\(3,\)"):
        F.mse_loss(ones(3, 1), ones(3))
