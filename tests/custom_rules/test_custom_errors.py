"""What `custom_vjp` and `custom_jvp` must refuse, in whole messages."""

import pytest
import wengert as wg
from messages import Situations, message_tests


def rule(bwd=None, fwd=None):
    """A function `mine` of a dict and a tensor."""

    @wg.custom_vjp
    def mine(d, y):
        return d["a"] * y

    mine.defvjp(fwd or (lambda d, y: (d["a"] * y, (d, y))), bwd or (lambda kept, g: (None, g)))
    return mine


def differentiate(mine):
    return wg.grad(lambda x: mine({"a": x}, x).sum())(wg.ones(3))


def closes_over():
    w = wg.ones(3, requires_grad=True)
    f = wg.custom_vjp(lambda x: x * w)
    f.defvjp(lambda x: (x * w, None), lambda _, g: (g * w,))
    f.name = "mine"
    f(wg.ones(3, requires_grad=True))


def push(result):
    @wg.custom_jvp
    def mine(x):
        return x, x * 2

    mine.defjvp(lambda primals, tangents: result)
    wg.jvp(mine, (wg.ones(3),), (wg.ones(3),))


def untransposable():
    @wg.custom_vjp
    def mine(x):
        return x * 1.0

    mine.defvjp(lambda x: (x * 1.0, None), lambda _, g: (wg.from_numpy(g.numpy()),))
    wg.jvp(mine, (wg.ones(3),), (wg.ones(3),))


def no_rules(kind):
    def mine(x):
        return x

    kind(mine)(wg.ones(3))


SITUATIONS: Situations = {
    "too few cotangents": (
        lambda: differentiate(rule(lambda kept, g: (g,))), RuntimeError,
        "the reverse rule of mine returned 1 cotangents, expected 2: one per differentiable argument, None "
        "for zeros",
    ),
    "no tuple": (
        lambda: differentiate(rule(lambda kept, g: g)), RuntimeError,
        "the reverse rule of mine returned Tensor, expected a tuple of 2 cotangents, one per differentiable "
        "argument",
    ),
    "another structure": (
        lambda: differentiate(rule(lambda kept, g: ((g, g), g))), RuntimeError,
        "the reverse rule of mine returned TreeDef((*, *)) for argument 0, expected TreeDef({'a': *}), the "
        "structure of the argument",
    ),
    "another shape": (
        lambda: differentiate(rule(lambda kept, g: ({"a": g[:2]}, g))), RuntimeError,
        "the reverse rule of mine returned shape (2,) for the cotangent of leaf 0 of the arguments, expected "
        "(3,)",
    ),
    "no residuals": (
        lambda: differentiate(rule(fwd=lambda d, y: y)), RuntimeError,
        "mine: the forward rule returned Tensor, expected a pair (output, residuals)",
    ),
    "no pair of output and tangent": (
        lambda: push(wg.ones(3)), RuntimeError,
        "the forward rule of mine returned Tensor, expected a pair (output, tangent of the output)",
    ),
    "a tangent of another structure": (
        lambda: push((None, wg.ones(3))), RuntimeError,
        "the forward rule of mine returned a tangent TreeDef(*), expected TreeDef((*, *)), the structure of "
        "the output",
    ),
    "a tangent of another shape": (
        lambda: push((None, (wg.ones(3), wg.ones(2)))), RuntimeError,
        "the forward rule of mine returned shape (2,) for the tangent of output 1, expected (3,)",
    ),
    "a differentiated tensor in a closure": (
        closes_over, RuntimeError,
        "mine: the function closes over a tensor that is being differentiated, and the custom rules would "
        "miss its gradient; make it an argument, or detach() it",
    ),
    "no rules": (
        lambda: no_rules(wg.custom_vjp), NotImplementedError,
        "custom_vjp: mine was called before its rules were defined; call mine.defvjp(fwd, bwd) first",
    ),
    "no forward rule": (
        lambda: no_rules(wg.custom_jvp), NotImplementedError,
        "custom_jvp: mine was called before its rules were defined; call mine.defjvp(jvp) first",
    ),
    "no function": (
        lambda: wg.custom_vjp(3), TypeError, "custom_vjp: a function expected, got int",
    ),
}  # fmt: skip

test_message = message_tests(SITUATIONS)


def test_a_reverse_rule_that_cannot_be_transposed_says_so() -> None:
    with pytest.raises(NotImplementedError) as caught:
        untransposable()
    text = str(caught.value)
    assert text.startswith("mine has no jvp rule, and its reverse rule cannot be transposed (RuntimeError: ")
    assert text.endswith("); define one with mine.defjvp")
    assert caught.value.__cause__ is not None


def test_an_argument_number_out_of_range() -> None:
    f = wg.custom_jvp(lambda x: x, nondiff_argnums=2)
    f.defjvp(lambda n, p, t: (p[0], t[0]))
    f.name = "mine"
    with pytest.raises(
        ValueError, match="mine: nondiff_argnums names argument 2, but 1 arguments were given"
    ):
        f(wg.ones(1))


# ---- closures over tensors of transforms ---------------------------------------------------------


def closing(kind: str):
    """Calls a custom function that multiplies by a tensor that is none of its arguments."""

    def call(x):
        f = wg.custom_vjp(lambda y: y * x) if kind == "vjp" else wg.custom_jvp(lambda y: y * x)
        if kind == "vjp":
            f.defvjp(lambda y: (y * x, None), lambda _, g: (g * x,))
        else:
            f.defjvp(lambda primals, tangents: (primals[0] * x, tangents[0] * x))
        return f(x * 1).sum()

    return call


TRANSFORMS = {
    "grad": lambda f: wg.grad(f)(wg.ones(3)),
    "jvp": lambda f: wg.jvp(f, (wg.ones(3),), (wg.ones(3),)),
    "jacfwd": lambda f: wg.jacfwd(f)(wg.ones(3)),
    "hessian": lambda f: wg.hessian(f)(wg.ones(3)),
    "linearize": lambda f: wg.linearize(f, wg.ones(3)),
    "vmap of grad": lambda f: wg.vmap(wg.grad(f))(wg.ones(2, 3)),
    "grad of vmap": lambda f: wg.grad(lambda x: wg.vmap(f)(x).sum())(wg.ones(2, 3)),
}


@pytest.mark.parametrize("kind", ["vjp", "jvp"])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_closure_over_a_tensor_of_a_transform_says_so(transform: str, kind: str) -> None:
    with pytest.raises(
        RuntimeError, match=r"closes over a tensor .*, and (the custom|its) rules would miss"
    ) as caught:
        TRANSFORMS[transform](closing(kind))
    assert "has ended" not in str(caught.value)
    # What is cut off before is a constant.
    if transform == "jvp":
        f = wg.custom_jvp(lambda y: y * 2)
        f.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * 2))
        assert TRANSFORMS["jvp"](lambda x: f(x * 1).sum())[1].item() == 6.0


# ---- rules that are not linear -------------------------------------------------------------------


def test_a_forward_rule_that_adds_a_constant_has_no_transpose() -> None:
    f = wg.custom_jvp(lambda x: x * 2)
    f.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * 2 + 1))
    with pytest.raises(NotImplementedError) as caught:
        wg.grad(f)(wg.tensor(3.0))
    assert "the rule is not linear, so it has no transpose: zeros give elements up to 1" in str(caught.value)
    g = wg.custom_vjp(lambda x: x * 2)
    g.defvjp(lambda x: (x * 2, None), lambda _, g: (g * 2 - 3,))
    with pytest.raises(NotImplementedError, match="zeros give elements up to 3"):
        wg.jvp(g, (wg.tensor(3.0),), (wg.tensor(1.0),))
    # Zero times a coefficient that is not finite says nothing.
    h = wg.custom_jvp(lambda x: x * 2)
    h.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * (1 / primals[0])))
    assert wg.grad(h)(wg.tensor(4.0)).item() == 0.25
    assert not wg.grad(h)(wg.tensor(0.0)).isfinite().item()
