"""Custom functions that equal built-in ones, in every style, for the tests of `Function` and the custom rules."""

import wengert as wg
from wengert.autograd import Function
from wengert.autograd.function import once_differentiable


class OldStyle(Function):
    """Saves its output."""

    @staticmethod
    def forward(ctx, x):
        y = 1 / (1 + (-x).exp())
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y * (1 - y)


class NewStyle(Function):
    """Saves its output, in setup_context."""

    @staticmethod
    def forward(x):
        return 1 / (1 + (-x).exp())

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    backward = OldStyle.backward


class SavesInput(Function):
    """Saves its input, and has a jvp too."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 1 / (1 + (-x).exp())

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.sigmoid() * (1 - x.sigmoid())

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return t * x.sigmoid() * (1 - x.sigmoid())


class SavesIntermediate(Function):
    """Saves a value that is neither input nor output."""

    @staticmethod
    def forward(ctx, x):
        e = (-x).exp()
        ctx.save_for_backward(e)
        return 1 / (1 + e)

    @staticmethod
    def backward(ctx, g):
        (e,) = ctx.saved_tensors
        return g * e / (1 + e).square()


class SavesAttributes(Function):
    """Keeps tensors as attributes, an intermediate value among them."""

    @staticmethod
    def forward(ctx, x):
        ctx.e = (-x).exp()
        ctx.y = 1 / (1 + ctx.e)
        ctx.one = 1
        return ctx.y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.e * ctx.y / (ctx.one + ctx.e)


class OnlyJvp(Function):
    """Has no backward."""

    @staticmethod
    def forward(ctx, x):
        y = x.sigmoid()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def jvp(ctx, t):
        (y,) = ctx.saved_tensors
        return t * y * (1 - y)


class OwnVmap(Function):
    """Has a batching rule."""

    calls = 0

    @staticmethod
    def forward(x):
        return x.sigmoid()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    backward = OldStyle.backward

    @staticmethod
    def vmap(info, in_dims, x):
        OwnVmap.calls += 1
        assert x.shape[in_dims[0]] == info.batch_size
        return OwnVmap.apply(x.movedim(in_dims[0], 0)), 0


class OldStyleVmap(OldStyle):
    """A batching rule beside a forward that takes ctx."""

    @staticmethod
    def vmap(info, in_dims, x):
        return OldStyleVmap.apply(x), in_dims[0]


def by_vjp():
    @wg.custom_vjp
    def sigmoid(x):
        return 1 / (1 + (-x).exp())

    def fwd(x):
        e = (-x).exp()
        return 1 / (1 + e), e

    sigmoid.defvjp(fwd, lambda e, g: (g * e / (1 + e).square(),))
    return sigmoid


def by_recursive_vjp():
    @wg.custom_vjp
    def sigmoid(x):
        return 1 / (1 + (-x).exp())

    def fwd(x):
        y = sigmoid(x)
        return y, {"y": y}

    sigmoid.defvjp(fwd, lambda kept, g: (g * kept["y"] * (1 - kept["y"]),))
    return sigmoid


def by_jvp():
    @wg.custom_jvp
    def sigmoid(x):
        return 1 / (1 + (-x).exp())

    @sigmoid.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        y = sigmoid(x)
        return y, t * y * (1 - y)

    return sigmoid


def by_jvps():
    @wg.custom_jvp
    def sigmoid(x):
        return 1 / (1 + (-x).exp())

    sigmoid.defjvps(lambda t, y, x: t * y * (1 - y))
    return sigmoid


def by_both():
    sigmoid = by_vjp()
    sigmoid.defjvp(lambda primals, tangents: (_y := primals[0].sigmoid(), tangents[0] * _y * (1 - _y)))
    return sigmoid


def stacked():
    inner = by_jvp()
    sigmoid = wg.custom_vjp(inner)
    sigmoid.defvjp(lambda x: (inner(x),) * 2, lambda y, g: (g * y * (1 - y),))
    return sigmoid


FUNCTIONS = {
    kind.__name__: kind.apply
    for kind in (
        OldStyle, NewStyle, SavesInput, SavesIntermediate, SavesAttributes, OnlyJvp, OwnVmap, OldStyleVmap,
    )
}  # fmt: skip
RULES = {make.__name__: make() for make in (by_vjp, by_recursive_vjp, by_jvp, by_jvps, by_both, stacked)}


class Cube(Function):
    """x ** 3 in NumPy, both ways."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return wg.from_numpy(x.numpy() ** 3)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * wg.from_numpy(3 * x.numpy() ** 2)


class Gain(Function):
    """The identity whose derivative is `factor`: tells a custom rule from a traced forward."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None
