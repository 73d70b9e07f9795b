"""What custom functions must refuse, in whole messages, and that a failure leaves nothing behind."""

import pytest
import wengert as wg
from messages import Situations, assert_usable, message_tests
from wengert.autograd import Function


def leaf(*shape: int) -> wg.Tensor:
    return wg.ones(*shape, requires_grad=True)


def function(backward=None, forward=None, jvp=None) -> type[Function]:
    """A class `Mine` of two tensors and a number with these rules."""
    body = {"forward": staticmethod(forward or (lambda ctx, x, y, n: (x * y, x + y)))}
    if backward:
        body["backward"] = staticmethod(backward)
    if jvp:
        body["jvp"] = staticmethod(jvp)
    return type("Mine", (Function,), body)


def backward_of(result) -> None:
    mine = function(lambda ctx, g, h: result)
    sum(y.sum() for y in mine.apply(leaf(3), leaf(2, 3), 7)).backward()


def jvp_of(result) -> None:
    mine = function(jvp=lambda ctx, s, t, n: result)
    wg.jvp(lambda x, y: mine.apply(x, y, 7), (wg.ones(3), wg.ones(2, 3)), (wg.ones(3), wg.ones(2, 3)))


def saved_number() -> None:
    def forward(ctx, x, y, n):
        ctx.save_for_backward(x, n)
        return x

    function(forward=forward).apply(leaf(3), leaf(3), 7)


def early_saved_tensors() -> None:
    function(forward=lambda ctx, x, y, n: ctx.saved_tensors).apply(leaf(3), leaf(3), 7)


def dirty_stranger() -> None:
    def forward(ctx, x, y, n):
        ctx.mark_dirty(x.mul_(2))
        return x * y

    function(forward=forward).apply(leaf(3) * 1, leaf(3), 7)


def dirty_leaf() -> None:
    def forward(ctx, x, y, n):
        ctx.mark_dirty(x.mul_(2))
        return x

    function(forward=forward).apply(leaf(3), leaf(3), 7)


def forward_again() -> None:
    def forward(ctx, x, y, n):
        ctx.mark_dirty(x.mul_(2))
        ctx.save_for_backward(y * 2)
        return x

    x = leaf(3)
    out = function(lambda ctx, g: (g * ctx.saved_tensors[0], None, None), forward).apply(x * 1, x, 7)
    (g,) = wg.autograd.grad(out.sum(), x, create_graph=True)
    g.sum().backward()


def closed_over_vmap() -> None:
    def outer(w, x):
        return function(forward=lambda ctx, x, y, n: x * w, backward=lambda ctx, g: (g, g, None)).apply(
            x, x, 7
        )

    wg.grad(lambda x: wg.vmap(outer, in_dims=(0, None))(wg.ones(3), x).sum())(wg.ones(()))


SITUATIONS: Situations = {
    "too few gradients": (
        lambda: backward_of(wg.ones(3)), RuntimeError,
        "Mine.backward returned 1 gradients, expected 3: one per argument of forward, None for an argument "
        "without one",
    ),
    "too many gradients": (
        lambda: backward_of((None, None, None, wg.ones(3))), RuntimeError,
        "Mine.backward returned 4 gradients, expected 3: one per argument of forward, None for an argument "
        "without one",
    ),
    "a gradient of another shape": (
        lambda: backward_of((wg.ones(2), None, None)), RuntimeError,
        "Mine.backward returned shape (2,) for the gradient of argument 0, expected (3,)",
    ),
    "a gradient that is no tensor": (
        lambda: backward_of((1.0, None, None)), RuntimeError,
        "Mine.backward returned float for the gradient of argument 0, expected a tensor or None",
    ),
    "a gradient of a number": (
        lambda: backward_of((None, None, wg.ones(()))), RuntimeError,
        "Mine.backward returned a gradient for argument 2, which is no tensor but int; return None there",
    ),
    "no backward": (
        lambda: backward_of.__globals__["function"]().apply(leaf(3), leaf(3), 7)[0].sum().backward(),
        NotImplementedError,
        "Mine has no backward and cannot be differentiated in reverse mode; define a static method "
        "backward(ctx, *gradients), one gradient per output",
    ),
    "too few tangents": (
        lambda: jvp_of(wg.ones(2, 3)), RuntimeError,
        "Mine.jvp returned 1 tangents, expected 2: one per output of forward",
    ),
    "a tangent of another shape": (
        lambda: jvp_of((wg.ones(3), None)), RuntimeError,
        "Mine.jvp returned shape (3,) for the tangent of output 0, expected (2, 3)",
    ),
    "a number is saved": (
        saved_number, TypeError,
        "save_for_backward: argument 1 is int, expected a tensor or None; keep other objects as attributes "
        "of ctx",
    ),
    "saved tensors are read in the forward": (
        early_saved_tensors, RuntimeError,
        "ctx.saved_tensors is read outside backward and jvp, the only places that have it",
    ),
    "a dirty tensor that is not returned": (
        dirty_stranger, RuntimeError,
        "Mine: mark_dirty names a tensor that the forward does not return; it takes inputs that are outputs "
        "too",
    ),
    "a leaf is written to": (
        dirty_leaf, RuntimeError,
        "Mine: a leaf of shape (3,) that requires a gradient (or a view of one) cannot be marked as dirty "
        "while recording; call the function under no_grad(), or of a clone()",
    ),
    "a dict of tensors is returned": (
        lambda: function(forward=lambda ctx, x, y, n: {"a": x}).apply(leaf(3), leaf(3), 7), TypeError,
        "Mine.forward returned dict with tensors in it, whose gradients would be lost; return a tensor or a "
        "tuple of tensors",
    ),
    "an in-place forward that would have to run again": (
        forward_again, RuntimeError,
        "Mine: its forward writes to its arguments and cannot run again, which a derivative that it does not "
        "define needs; save inputs and outputs only, and define backward and jvp",
    ),
    "an instance is called": (
        lambda: function()()(leaf(3)), RuntimeError,
        "Mine: an instance of an autograd.Function was called; use Mine.apply(...)",
    ),
    "no forward": (
        lambda: type("Mine", (Function,), {}).apply(leaf(3)), NotImplementedError,
        "an autograd.Function needs a static method forward(ctx, *args)",
    ),
    "a closure over a batch": (
        closed_over_vmap, RuntimeError,
        "Mine: the function uses a tensor of an enclosing transform that is none of its arguments; pass it "
        "as an argument",
    ),
}  # fmt: skip

test_message = message_tests(SITUATIONS)


def raiser(error: BaseException):
    def f(*args):
        raise error

    return f


CALLS = {
    "backward": lambda f: f(leaf(3)).sum().backward(),
    "create_graph": lambda f: wg.autograd.grad(f(x := leaf(3)).sum(), x, create_graph=True),
    "grad": lambda f: wg.grad(lambda x: f(x).sum())(wg.ones(3)),
    "vmap of grad": lambda f: wg.vmap(wg.grad(f))(wg.ones(3)),
    "grad of vmap": lambda f: wg.grad(lambda x: wg.vmap(f)(x).sum())(wg.ones(3)),
    "jvp": lambda f: wg.jvp(f, (wg.ones(3),), (wg.ones(3),)),
    "hessian": lambda f: wg.hessian(lambda x: f(x).sum())(wg.ones(3)),
    "checkpoint": lambda f: wg.utils.checkpoint.checkpoint(f, leaf(3)).sum().backward(),
    "autocast": lambda f: wg.autocast("cpu", dtype=wg.bfloat16)(f)(leaf(3)).sum().backward(),
}


@pytest.mark.parametrize("call", list(CALLS))
@pytest.mark.parametrize("error", [KeyboardInterrupt(), ZeroDivisionError("boom"), SystemExit(3)], ids=repr)
@pytest.mark.parametrize(
    "place", ["forward", "backward", "jvp", "setup_context", "vmap", "fwd", "bwd", "rule"]
)
def test_exceptions_pass_through_and_leave_the_library_usable(
    call: str, error: BaseException, place: str
) -> None:
    methods = {
        "forward": lambda x: x * 2,
        "setup_context": lambda ctx, inputs, output: None,
        "backward": lambda ctx, g: g * 2,
        "jvp": lambda ctx, t: t * 2,
    }
    if place in ("fwd", "bwd", "rule"):
        f = wg.custom_vjp(lambda x: x * 2)
        fwd, bwd = lambda x: (x * 2, None), lambda _, g: (g * 2,)
        f.defvjp(raiser(error) if place == "fwd" else fwd, raiser(error) if place == "bwd" else bwd)
        f.defjvp(raiser(error) if place == "rule" else lambda p, t: (p[0] * 2, t[0] * 2))
    else:
        body = {k: staticmethod(v) for k, v in methods.items()}
        body[place] = staticmethod(raiser(error))
        f = type("Mine", (Function,), body).apply
    raised = None
    try:
        CALLS[call](f)
    except BaseException as e:
        raised = e
    # Some calls have no use for the rule that raises.
    assert raised is None or error in (raised, raised.__cause__)
    assert_usable()
