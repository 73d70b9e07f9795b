"""Of the tape: backward, in-place writes, hooks, checkpoints."""

import numpy as np
import wengert as wg
from messages import Situations
from wengert.utils.checkpoint import checkpoint

from situations.operands import i, leaf, ones


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


AUTOGRAD: Situations = {
    "complex_gradient": (
        lambda: (leaf(2) * 1).backward(ones(2) * 1j),
        RuntimeError,
        "backward: a cotangent (gradient=) is complex64, and the tensor of shape (2,) that it belongs to is "
        "float32; the cotangent of a real tensor is real: pass its .real or .imag",
    ),
    "grad_of_an_array": (
        lambda: wg.autograd.grad(np.ones(2), leaf(2)),
        TypeError,
        "grad: outputs must be a tensor or a sequence of tensors, got float64",
    ),
    "grad_with_respect_to_a_string": (
        lambda: wg.autograd.grad(leaf(2).sum(), "x"),
        TypeError,
        "grad: inputs must be a tensor or a sequence of tensors, got str",
    ),
    "cotangent_of_a_set": (
        lambda: wg.autograd.backward(leaf(2) * 1, {"a"}),
        TypeError,
        "backward: a cotangent is a tensor, an array, a number or None, got set",
    ),
    "backward_twice": (
        used_graph,
        RuntimeError,
        (
            "backward: the graph was already used and freed (reached again at sum); pass "
            "retain_graph=True to the first backward, run the forward again, or detach() state that "
            "is carried from one step to the next; inside wengert.debug() this message names the line"
        ),
    ),
    "backward_twice_nothing_saved": (
        used_graph_of_additions,
        RuntimeError,
        (
            "backward: the graph was already used and freed (reached again at sum); pass "
            "retain_graph=True to the first backward, run the forward again, or detach() state that "
            "is carried from one step to the next; inside wengert.debug() this message names the line"
        ),
    ),
    "saved_value_modified": (
        saved_then_written,
        RuntimeError,
        (
            "backward of exp: its saved output 0 of shape (2,) was modified in place by mul_ (version "
            "1, expected 0); write x = x + ... instead of an in-place operation, or modify a clone(); inside "
            "wengert.debug() this message names the line"
        ),
    ),
    "in_place_on_leaf": (
        written_leaf,
        RuntimeError,
        (
            "add_: a leaf of shape (2,) that requires a gradient cannot be written in place while "
            "recording; do it under no_grad(), or write x = x.add(...)"
        ),
    ),
    "in_place_on_view_of_leaf": (
        written_view_of_leaf,
        RuntimeError,
        (
            "zero_: this tensor is a view of a leaf of shape (2,) that requires a gradient, and cannot be "
            "written in place while recording; do it under no_grad(), or write to a clone()"
        ),
    ),
    "backward_of_vector": (
        lambda: (leaf(3) * 2).backward(),
        RuntimeError,
        (
            "backward: a tensor of shape (3,) has no single gradient; reduce it first, as in "
            "y.sum().backward(), or pass gradient= of the same shape"
        ),
    ),
    "backward_gradient_shape": (
        lambda: (leaf(3) * 2).backward(ones(2)),
        RuntimeError,
        "backward: gradient= has shape (2,), expected (3,) as the tensor it belongs to",
    ),
    "backward_without_graph": (
        lambda: ones(1).backward(),
        RuntimeError,
        (
            "backward: the float32 tensor of shape (1,) has no graph: no input of its computation "
            "requires a gradient, it was computed under no_grad(), or it was detached; call "
            "requires_grad_() on an input before computing it"
        ),
    ),
    "requires_grad_of_integers": (
        lambda: wg.tensor([1], requires_grad=True),
        RuntimeError,
        "only floating point tensors have gradients, got int64; convert with .float() first",
    ),
    "requires_grad_of_integers_later": (
        lambda: wg.tensor([True]).requires_grad_(),
        RuntimeError,
        "only floating point tensors have gradients, got bool; convert with .float() first",
    ),
    "requires_grad_off_on_non_leaf": (
        lambda: (leaf(2) * 2).requires_grad_(False),
        RuntimeError,
        (
            "requires_grad can be turned off for leaves only; call detach() to cut off the result of "
            "an operation"
        ),
    ),
    "numpy_of_recorded": (
        lambda: leaf(2).numpy(),
        RuntimeError,
        (
            "numpy of a tensor that requires a gradient would leave the tape; call detach() first, as "
            "in x.detach().numpy()"
        ),
    ),
    "numpy_of_recorded_number": (
        lambda: np.asarray([leaf(2).sum()]),
        RuntimeError,
        (
            "numpy of a tensor that requires a gradient would leave the tape; call detach() first, as "
            "in x.detach().numpy(), or item() for its number, as in [x.item() for x in losses]"
        ),
    ),
    "grad_of_unused_input": (
        grad_of_unused,
        RuntimeError,
        (
            "grad: no output depends on input 0 of shape (3,); pass allow_unused=True for None in its "
            "place, or materialize_grads=True for zeros"
        ),
    ),
    "grad_of_constant_input": (
        lambda: wg.autograd.grad(leaf(1) * 2, [ones(1)]),
        RuntimeError,
        "grad: input 0 does not require a gradient; call requires_grad_() on it first",
    ),
    "checkpoint_changed": (
        checkpoint_that_changes,
        wg.CheckpointError,
        (
            "checkpoint: the recomputation saved float32(2,) for exp where the forward saved "
            "float32(2,) for tanh; the function must do the same both times (no branches on changing "
            "state, no changed inputs)"
        ),
    ),
    "hook_shape": (
        hook_of_another_shape,
        RuntimeError,
        (
            "a gradient hook returned a gradient of shape (1,), expected (2,) as it was given; return a "
            "gradient of the same shape, dtype and device, or None to leave it as it is"
        ),
    ),
    "hook_on_constant": (
        lambda: ones(2).register_hook(print),
        RuntimeError,
        (
            "register_hook: the float32 tensor of shape (2,) does not require a gradient; call "
            "requires_grad_() before using it"
        ),
    ),
    "in_place_dtype": (
        lambda: i(1, 2).add_(0.5),
        TypeError,
        ("add_: the result is float32 and cannot be stored in a tensor of int64; write x = x.add(...)"),
    ),
    "in_place_shape": (
        lambda: ones(2).add_(ones(3, 2)),
        wg.ShapeError,
        "add_: the result has shape (3, 2) and does not fit into the tensor of shape (2,)",
    ),
    "in_place_on_repeated_memory": (
        lambda: ones(3).expand(2, 3).add_(1),
        RuntimeError,
        "add_: elements of this tensor of shape (2, 3) share memory; clone() it first",
    ),
}
