"""Of the tape: hooks, saved values, gradients as attributes, inference mode, training loops."""

import wengert as wg
from messages import Situations
from wengert import nn
from wengert.amp import GradScaler
from wengert.autograd import Function, graph

from situations.operands import leaf, ones


def inferred() -> wg.Tensor:
    """A tensor of inference mode."""
    with wg.inference_mode():
        return ones(2) * 2


def hook_of_another_dtype() -> None:
    x = leaf(2)
    x.register_hook(lambda g: g.double())
    x.sum().backward()


def hook_of_text() -> None:
    x = leaf(2)
    x.register_hook(lambda g: "g")
    x.sum().backward()


def node_hook_of_another_shape() -> None:
    y = leaf(2) * 2
    y.grad_fn.register_hook(lambda gi, go: (ones(3), None))
    y.sum().backward()


def node_prehook_of_two() -> None:
    y = leaf(2) * 2
    y.grad_fn.register_prehook(lambda go: (go[0], go[0]))
    y.sum().backward()


def node_hook_of_a_number() -> None:
    y = leaf(2) * 2
    y.grad_fn.register_hook(lambda gi, go: 3)
    y.sum().backward()


def pack_that_writes() -> None:
    with graph.saved_tensors_hooks(lambda t: t.zero_(), lambda t: t):
        leaf(2).exp()


def unpack_of_another_shape() -> None:
    with graph.saved_tensors_hooks(lambda t: t[:1], lambda t: t):
        y = leaf(2).exp()
    y.sum().backward()


def unpack_of_text() -> None:
    with graph.saved_tensors_hooks(lambda t: t, lambda t: "t"):
        y = leaf(2).exp()
    y.sum().backward()


def grad_of_another_dtype() -> None:
    leaf(2).grad = wg.ones(2, dtype=wg.float64)


def grad_of_a_constant() -> None:
    ones(2).grad = ones(2)


def assigned(name: str, value: object) -> None:
    setattr(leaf(2) * 2, name, value)


def twice_freed_by_grad() -> None:
    x = leaf(2)
    y = x.exp().sum()
    wg.autograd.grad(y, x)
    wg.autograd.grad(y, x)


def scaled(order: str) -> None:
    """The steps of a scaler, by their first letters, in this order."""
    p = nn.Parameter(ones(2))
    optimizer, scaler = wg.optim.SGD([p], lr=0.1), GradScaler()
    for step in order:
        if step == "b":
            scaler.scale((p * 2).sum()).backward()
        elif step == "u":
            scaler.unscale_(optimizer)
        elif step == "s":
            scaler.step(optimizer)
        else:
            scaler.update()


def scaled_half() -> None:
    p = nn.Parameter(ones(2).half())
    optimizer, scaler = wg.optim.SGD([p], lr=0.1), GradScaler()
    scaler.scale((p * 2).sum()).backward()
    scaler.unscale_(optimizer)


def clipped_infinity() -> None:
    p = nn.Parameter(ones(2))
    p.grad = wg.tensor([1.0, wg.inf])
    nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)


def loaded_mismatch() -> None:
    nn.Linear(2, 3).load_state_dict({"weight": ones(3, 3), "offset": ones(1)})


class Doubles(Function):
    """Its backward returns too much."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2, g


class Shrinks(Function):
    """Its backward returns a gradient of another shape."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g[:1]


class Onward(Function):
    """It has no backward."""

    @staticmethod
    def forward(ctx, x):
        return x * 2


TAPE: Situations = {
    "hook_dtype": (
        hook_of_another_dtype,
        RuntimeError,
        (
            "a gradient hook returned a gradient of dtype float64, expected float32 as it was "
            "given; return a gradient of the same shape, dtype and device, or None to leave it as"
            " it is"
        ),
    ),
    "hook_result": (
        hook_of_text,
        RuntimeError,
        ("a gradient hook returned str, expected a tensor, or None to leave the gradient as it is"),
    ),
    "hook_no_function": (
        lambda: leaf(2).register_hook(1),
        TypeError,
        ("register_hook: a hook is a function of the gradient, got int; pass something that can be called"),
    ),
    "hook_post_accumulate_on_result": (
        lambda: (leaf(2) * 2).register_post_accumulate_grad_hook(print),
        RuntimeError,
        (
            "register_post_accumulate_grad_hook: the tensor of shape (2,) is no leaf that "
            "requires a gradient; gradients accumulate in leaves only, so use register_hook() on "
            "results of operations"
        ),
    ),
    "hook_of_node_shape": (
        node_hook_of_another_shape,
        RuntimeError,
        (
            "a hook of a graph node returned a gradient of shape (3,), expected (2,) as it was "
            "given; return a gradient of the same shape, dtype and device, or None to leave it as"
            " it is"
        ),
    ),
    "hook_before_node_count": (
        node_prehook_of_two,
        RuntimeError,
        (
            "a pre-hook of a graph node returned 2 gradients, expected 1 as it was given; return "
            "one gradient (or None) for each"
        ),
    ),
    "hook_of_node_result": (
        node_hook_of_a_number,
        RuntimeError,
        (
            "a hook of a graph node returned int, expected a tuple of tensors, or None to leave "
            "the gradients as they are"
        ),
    ),
    "hook_of_several_on_constant": (
        lambda: graph.register_multi_grad_hook([ones(2)], print),
        RuntimeError,
        (
            "register_multi_grad_hook: the float32 tensor of shape (2,) does not require a gradient; call "
            "requires_grad_() before using it"
        ),
    ),
    "hook_of_several_mode": (
        lambda: graph.register_multi_grad_hook([leaf(2)], print, mode="some"),
        ValueError,
        "register_multi_grad_hook: mode must be 'all' or 'any', got 'some'",
    ),
    "retain_grad_on_constant": (
        lambda: ones(2).retain_grad(),
        RuntimeError,
        (
            "retain_grad: the float32 tensor of shape (2,) does not require a gradient; call "
            "requires_grad_() before using it"
        ),
    ),
    "saved_pack_writes": (
        pack_that_writes,
        RuntimeError,
        (
            "saved_tensors_hooks: the pack function wrote in place to the tensor of shape (2,) "
            "that exp saves; write to a clone() of it"
        ),
    ),
    "saved_unpack_shape": (
        unpack_of_another_shape,
        RuntimeError,
        (
            "saved_tensors_hooks: the unpack function returned float32(1,) on cpu, expected "
            "float32(2,) on cpu as was packed"
        ),
    ),
    "saved_unpack_result": (
        unpack_of_text,
        TypeError,
        ("saved_tensors_hooks: the unpack function returned str, expected the tensor that was packed"),
    ),
    "grad_shape": (
        lambda: setattr(leaf(2), "grad", ones(3)),
        RuntimeError,
        (
            "a gradient of float32(3,) on cpu cannot be assigned to a tensor of float32(2,) on "
            "cpu; shape, dtype and device must agree"
        ),
    ),
    "grad_dtype": (
        grad_of_another_dtype,
        RuntimeError,
        (
            "a gradient of float64(2,) on cpu cannot be assigned to a tensor of float32(2,) on "
            "cpu; shape, dtype and device must agree"
        ),
    ),
    "grad_of_constant": (
        grad_of_a_constant,
        RuntimeError,
        (
            "the float32 tensor of shape (2,) does not require a gradient, so none can be "
            "assigned to it; call requires_grad_() first"
        ),
    ),
    "requires_grad_off_result": (
        lambda: assigned("requires_grad", False),
        RuntimeError,
        (
            "requires_grad can be turned off for leaves only; call detach() to cut off the result"
            " of an operation"
        ),
    ),
    "detach_view": (
        lambda: (leaf(4) * 1)[:2].detach_(),
        RuntimeError,
        (
            "detach_: the tensor of shape (2,) is a view of another tensor and shares its "
            "history; use detach() instead, or cut off the base"
        ),
    ),
    "inference_saved": (
        lambda: leaf(2) * inferred(),
        RuntimeError,
        (
            "mul: the float32 tensor of shape (2,) was made in inference_mode() and cannot be "
            "saved for backward; use a clone() of it, or make it under no_grad() instead"
        ),
    ),
    "inference_written": (
        lambda: inferred().add_(1),
        RuntimeError,
        (
            "add_: the tensor of shape (2,) was made in inference_mode() and cannot be written in"
            " place outside of it; write to a clone() of it"
        ),
    ),
    "inference_item_written": (
        lambda: inferred().__setitem__(0, 1.0),
        RuntimeError,
        (
            "x[...] = value: the tensor of shape (2,) was made in inference_mode() and cannot be "
            "written in place outside of it; write to a clone() of it"
        ),
    ),
    "inference_requires_grad": (
        lambda: inferred().requires_grad_(),
        RuntimeError,
        (
            "the float32 tensor of shape (2,) was made in inference_mode() and cannot require a "
            "gradient outside of it; call requires_grad_() on a clone() of it"
        ),
    ),
    "freed_by_grad": (
        twice_freed_by_grad,
        RuntimeError,
        (
            "backward: the graph was already used and freed (reached again at sum); pass "
            "retain_graph=True to the first backward, run the forward again, or detach() state "
            "that is carried from one step to the next; inside wengert.debug() this message names"
            " the line"
        ),
    ),
    "grad_only_inputs": (
        lambda: wg.autograd.grad(leaf(2).sum(), [leaf(2)], only_inputs=False),
        ValueError,
        (
            "grad: only_inputs=False is not supported, for it would fill .grad of all leaves; "
            "call backward() for that"
        ),
    ),
    "grad_materialize_unused": (
        lambda: wg.autograd.grad(leaf(2).sum(), [leaf(2)], allow_unused=False, materialize_grads=True),
        ValueError,
        (
            "grad: materialize_grads=True gives zeros for unused inputs, which allow_unused=False"
            " forbids; leave allow_unused out"
        ),
    ),
    "grad_cotangent_count": (
        lambda: wg.autograd.grad([leaf(2).sum()], [leaf(2)], [ones(()), ones(())]),
        ValueError,
        "grad: 2 cotangents given for 1 outputs; pass one (or None) for each",
    ),
    "grad_cotangent_shape": (
        lambda: wg.autograd.grad([leaf(2) * 2], [leaf(2)], [ones(3)]),
        RuntimeError,
        "backward: gradient= has shape (3,), expected (2,) as the tensor it belongs to",
    ),
    "grad_batch_of_scalars": (
        lambda: wg.autograd.grad([leaf(2).sum()], [leaf(2)], [wg.tensor(1.0)], is_grads_batched=True),
        ValueError,
        (
            "grad: is_grads_batched=True, but the cotangent of output 0 has no axis for the "
            "batch; expected shape (batch, *())"
        ),
    ),
    "backward_cotangent_count": (
        lambda: wg.autograd.backward([leaf(2).sum()], [ones(()), ones(())]),
        ValueError,
        "backward: 2 cotangents given for 1 tensors; pass one (or None) for each",
    ),
    "backward_no_inputs": (
        lambda: wg.autograd.backward([leaf(2).sum()], inputs=[]),
        RuntimeError,
        (
            "backward: inputs= names no tensor, so nothing would be accumulated; name at least "
            "one, or leave it out for all leaves"
        ),
    ),
    "backward_constant_inputs": (
        lambda: leaf(2).sum().backward(inputs=[ones(2)]),
        RuntimeError,
        (
            "backward: inputs[0], a float32 tensor of shape (2,), does not require a gradient; "
            "call requires_grad_() on it before computing with it, or leave it out"
        ),
    ),
    "dlpack_of_recorded": (
        lambda: leaf(2).__dlpack__(),
        BufferError,
        (
            "__dlpack__ of a tensor that requires a gradient would leave the tape; call detach() "
            "first, as in x.detach().__dlpack__()"
        ),
    ),
    "random_in_vmap": (
        lambda: wg.vmap(lambda x: x + wg.rand(2))(ones(3, 2)),
        RuntimeError,
        (
            "rand: random numbers are drawn inside vmap, which does not know whether its 3 "
            "examples should share them; pass vmap(..., randomness='different') for numbers of "
            "their own, or 'same' for equal ones"
        ),
    ),
    "random_in_vmap_mode": (
        lambda: wg.vmap(lambda x: x, randomness="any"),
        ValueError,
        "vmap: randomness must be 'error', 'same' or 'different', got 'any'",
    ),
    "scaler_step_first": (
        lambda: scaled("s"),
        RuntimeError,
        ("GradScaler: step() before scale(); call scaler.scale(loss).backward() earlier in the iteration"),
    ),
    "scaler_unscale_twice": (
        lambda: scaled("buu"),
        RuntimeError,
        (
            "GradScaler: unscale_() a second time for this optimiser since the last update(); "
            "call it once per iteration, before step"
        ),
    ),
    "scaler_step_twice": (
        lambda: scaled("bss"),
        RuntimeError,
        "GradScaler: step() a second time for this optimiser; call update() in between",
    ),
    "scaler_unscale_after_step": (
        lambda: scaled("bsu"),
        RuntimeError,
        "GradScaler: unscale_() after step(); the order is scale, unscale_, step, update",
    ),
    "scaler_update_first": (
        lambda: scaled("bU"),
        RuntimeError,
        ("GradScaler: update() before any step() or unscale_(); the order is scale, step, update"),
    ),
    "scaler_half": (
        scaled_half,
        RuntimeError,
        (
            "GradScaler: a gradient of shape (2,) is float16, which dividing would make vanish "
            "again; keep parameters in float32 and use autocast"
        ),
    ),
    "clip_not_finite": (
        clipped_infinity,
        RuntimeError,
        (
            "the total norm of the gradients is inf; look for the loss or layer that overflowed, "
            "or pass error_if_nonfinite=False to clip anyway"
        ),
    ),
    "optimizer_without_parameters": (
        lambda: wg.optim.SGD([], lr=0.1),
        ValueError,
        "SGD: no parameters; a generator may have been used up already",
    ),
    "optimizer_of_results": (
        lambda: wg.optim.SGD([leaf(2) * 2], lr=0.1),
        ValueError,
        (
            "SGD: parameter 0 of shape (2,) is the result of an operation; only leaves can be "
            "optimised, use detach().requires_grad_()"
        ),
    ),
    "state_dict_mismatch": (
        loaded_mismatch,
        RuntimeError,
        (
            "load_state_dict of Linear:\n"
            "  missing key 'bias'\n"
            "  unexpected key 'offset'\n"
            "  shape of 'weight': (3, 3) in the state dict, (3, 2) in the module"
        ),
    ),
    "function_count": (
        lambda: Doubles.apply(leaf(2)).sum().backward(),
        RuntimeError,
        (
            "Doubles.backward returned 2 gradients, expected 1: one per argument of forward, None"
            " for an argument without one"
        ),
    ),
    "function_shape": (
        lambda: Shrinks.apply(leaf(2)).sum().backward(),
        RuntimeError,
        "Shrinks.backward returned shape (1,) for the gradient of argument 0, expected (2,)",
    ),
    "function_without_backward": (
        lambda: Onward.apply(leaf(2)).sum().backward(),
        NotImplementedError,
        (
            "Onward has no backward and cannot be differentiated in reverse mode; define a static"
            " method backward(ctx, *gradients), one gradient per output"
        ),
    ),
    "vmap_out_axes": (
        lambda: wg.vmap(lambda x: x, out_axes=None)(ones(3, 2)),
        ValueError,
        (
            "vmap: out_axes is None for a result that differs between examples; name the place of"
            " its batch axis, as in out_axes=0"
        ),
    ),
}
