"""`autograd.Function`: arguments and results, in-place arguments, closures, random numbers."""

import numpy as np
import pytest
import wengert as wg
from custom_rules.custom_functions import FUNCTIONS
from support import array, assert_near
from wengert.autograd import Function


def leaf(*values: float) -> wg.Tensor:
    return wg.tensor(list(values), dtype=wg.float64, requires_grad=True)


# ---- arguments and results -----------------------------------------------------------------------


class Scale(Function):
    """x * factor + y, and the factor."""

    @staticmethod
    def forward(ctx, x, factor, y, name="scale"):
        ctx.factor, ctx.name = factor, name
        return x * factor + y, factor, y.round()

    @staticmethod
    def backward(ctx, g, nothing, rounded):
        assert nothing is None
        assert rounded.tolist() == [0.0, 0.0]
        assert ctx.name == "scale"
        return g * ctx.factor, None, g, None


def test_arguments_and_results_that_are_no_tensors() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    out, factor, rounded = Scale.apply(x, 2.5, y, "scale")
    assert (out.tolist(), factor, rounded.tolist()) == ([5.5, 9.0], 2.5, [3.0, 4.0])
    out.sum().backward(retain_graph=True)
    assert (x.grad.tolist(), y.grad.tolist()) == ([2.5, 2.5], [1.0, 1.0])
    assert out.grad_fn.name() == "ScaleBackward"
    assert len(out.grad_fn.next_functions) == 2
    assert out.grad_fn(wg.ones(2, dtype=wg.float64), None)[0].tolist() == [2.5, 2.5]


def test_trailing_none_is_accepted_and_one_result_is_no_tuple() -> None:
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return 2 * g, None, None

    x = leaf(1.0)
    y = Double.apply(x)
    assert isinstance(y, wg.Tensor)
    y.backward(wg.ones(1, dtype=wg.float64))
    assert x.grad.tolist() == [2.0]


class SinCos(Function):
    """Two results."""

    @staticmethod
    def forward(x):
        return x.sin(), x.cos()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*output)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, g, h):
        sin, cos = ctx.saved_tensors
        parts = ([] if g is None else [g * cos]) + ([] if h is None else [-h * sin])
        return sum(parts[1:], parts[0])


def test_several_results_and_none_for_those_that_do_not_matter() -> None:
    for pick in (lambda s, c: s.sum(), lambda s, c: c.sum(), lambda s, c: (s * c).sum()):
        found = wg.hessian(lambda x, pick=pick: pick(*SinCos.apply(x)))(leaf(0.3, 1.2).detach())
        expected = wg.hessian(lambda x, pick=pick: pick(x.sin(), x.cos()))(leaf(0.3, 1.2).detach())
        assert_near(array(found), array(expected), 1e-12, "sin and cos")
    y, z = SinCos.apply(leaf(0.3))
    assert y.grad_fn == z.grad_fn


def test_needs_input_grad_in_forward_and_backward() -> None:
    seen = []

    class Sum(Function):
        @staticmethod
        def forward(ctx, x, number, y):
            seen.append(ctx.needs_input_grad)
            return x * number + y

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            return g, None, g

    x, y = leaf(1.0), leaf(2.0)
    Sum.apply(x, 2, y.detach()).sum().backward()
    wg.autograd.grad(Sum.apply(x, 2, y).sum(), [y])
    with wg.no_grad():
        Sum.apply(x, 2, y)
    assert seen == [
        (True, False, False), (True, False, False), (True, False, True), (False, False, True),
        (True, False, True),
    ]  # fmt: skip


def test_marked_outputs_have_no_gradient() -> None:
    class Max(Function):
        @staticmethod
        def forward(ctx, x):
            index = x.argmax(0)
            floats = index.double()
            ctx.mark_non_differentiable(floats)
            ctx.save_for_backward(wg.arange(len(x)) == index)
            return x.amax(0), index, floats

        @staticmethod
        def backward(ctx, g, of_index, of_floats):
            assert of_floats.item() == 0.0
            return g * ctx.saved_tensors[0]

    x = leaf(1.0, 3.0, 2.0)
    value, index, floats = Max.apply(x)
    assert value.requires_grad
    assert not index.requires_grad
    assert not floats.requires_grad
    (value * 10).backward()
    assert x.grad.tolist() == [0.0, 10.0, 0.0]
    moved = wg.jvp(Max.apply, (x.detach(),), (x.detach() * 2,))[1]
    assert (moved[0].item(), moved[2].item()) == (6.0, 0.0)


class Twice(Function):
    """x * 2 in place."""

    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_in_place_functions_return_their_argument() -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    version = y._version
    z = Twice.apply(y)
    assert z is y
    assert y._version > version
    assert y.grad_fn.name() == "TwiceBackward"
    y.sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([6.0, 12.0], [6.0, 6.0])
    plain = wg.ones(2)
    assert Twice.apply(plain) is plain
    assert plain.tolist() == [2.0, 2.0]
    assert wg.vmap(wg.grad(lambda x: Twice.apply(x * 1.0)))(wg.ones(3)).tolist() == [2.0] * 3


def test_in_place_functions_of_views() -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    part = y[1:]
    assert Twice.apply(part) is part
    assert (y.tolist(), part.tolist()) == ([3.0, 12.0], [12.0])
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 6.0]
    z = leaf(1.0, 2.0) * 1
    part = z[1:]
    Twice.apply(z)
    assert part.tolist() == [4.0]
    assert part.requires_grad


def test_an_earlier_saved_value_that_the_function_wrote_to_raises() -> None:
    x = leaf(1.0)
    y = x.exp()
    with pytest.raises(RuntimeError, match="modified in place"):
        Twice.apply(y).sum().backward()


def test_closed_over_tensors_are_constants() -> None:
    w = leaf(3.0)

    class Times(Function):
        @staticmethod
        def forward(ctx, x):
            assert not wg.is_grad_enabled()
            return x * w

        @staticmethod
        def backward(ctx, g):
            assert not wg.is_grad_enabled()
            return g * w

    x = leaf(2.0)
    y = Times.apply(x)
    y.sum().backward()
    assert x.grad.tolist() == [3.0]
    assert not x.grad.requires_grad
    assert w.grad is None
    assert not Times.apply(x.detach()).requires_grad


class OfBatch:
    """Calls a function that closes over one example of a batch."""

    @staticmethod
    def call(x, w):
        class Times(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.kept = [w.exp()]
                return x * w

            @staticmethod
            def backward(ctx, g):
                assert ctx.kept[0].shape == w.shape
                return g * w

        return Times.apply(x)


def test_closures_over_one_example_of_a_batch() -> None:
    x, w = leaf(1.0, 2.0, 3.0).detach(), leaf(5.0, 6.0, 7.0).detach()
    f = OfBatch.call
    assert wg.vmap(f)(x, w).tolist() == (x * w).tolist()
    assert wg.vmap(f, in_dims=(None, 0))(x[0], w).tolist() == w.tolist()
    assert wg.vmap(wg.grad(f))(x, w).tolist() == w.tolist()
    assert wg.vmap(wg.grad(f), in_dims=(None, 0))(x[0], w).tolist() == w.tolist()
    assert wg.grad(lambda x: wg.vmap(f, in_dims=(0, None))(x, w[0]).sum())(x).tolist() == [5.0] * 3


class Bias(Function):
    """x + b, whose backward leaves the sum over the broadcast axis to the tape."""

    @staticmethod
    def forward(ctx, x, b):
        return x + b

    @staticmethod
    def backward(ctx, g):
        return g, g * 2


def test_gradients_are_summed_over_broadcast_axes_in_every_mode() -> None:
    x, b = leaf(*range(6)).detach().reshape(2, 3), leaf(1.0, 2.0, 3.0).detach()
    assert wg.grad(lambda b: Bias.apply(x, b).sum())(b).tolist() == [4.0] * 3
    assert wg.jvp(lambda b: Bias.apply(x, b), (b,), (b,))[1].tolist() == [[2.0, 4.0, 6.0]] * 2
    assert wg.equal(wg.jacfwd(Bias.apply, argnums=1)(x, b), wg.jacrev(Bias.apply, argnums=1)(x, b))
    assert (
        wg.vmap(wg.grad(lambda x, b: Bias.apply(x, b).sum(), argnums=1))(x, wg.stack([b, b])).tolist()
        == [[2.0] * 3] * 2
    )


def test_integer_arguments() -> None:
    class Pick(Function):
        @staticmethod
        def forward(ctx, x, index):
            ctx.save_for_backward(index)
            ctx.length = len(x)
            return x[index]

        @staticmethod
        def backward(ctx, g):
            (index,) = ctx.saved_tensors
            return wg.zeros(ctx.length, dtype=g.dtype).scatter_add(0, index, g), None

    x, index = leaf(1.0, 2.0, 3.0).detach(), wg.tensor([1, 1, 2])
    f = lambda x: Pick.apply(x, index)
    assert wg.jvp(f, (x,), (x,))[1].tolist() == [2.0, 2.0, 3.0]
    assert wg.grad(lambda x: f(x).sum())(x).tolist() == [0.0, 2.0, 1.0]
    assert wg.equal(wg.jacfwd(f)(x), wg.jacrev(f)(x))


def test_an_argument_twice_and_a_result_twice() -> None:
    class Pair(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y, x)
            z = x * y
            return z, z, x

        @staticmethod
        def backward(ctx, g, h, k):
            _, y, again = ctx.saved_tensors
            return (g + 10 * h) * y + k, (g + 10 * h) * again

    x = leaf(3.0)
    z, again, same = Pair.apply(x, x)
    assert same is not x
    (z + again + same).sum().backward()
    assert x.grad.tolist() == [67.0]
    assert wg.hessian(lambda x: Pair.apply(x, x)[0].sum())(x.detach()).tolist() == [[2.0]]


class Noisy(Function):
    """The square of x times noise that the forward draws; saves their product, which is neither input nor
    output."""

    @staticmethod
    def forward(ctx, x):
        noise = wg.randn(*x.shape, dtype=x.dtype)
        ctx.save_for_backward(x * noise, noise)
        return (x * noise).square()

    @staticmethod
    def backward(ctx, g):
        h, noise = ctx.saved_tensors
        return 2 * g * h * noise


def test_a_forward_that_runs_again_draws_the_same_random_numbers() -> None:
    def value_and_second(x):
        x = x.detach().requires_grad_()
        y = Noisy.apply(x)
        (g,) = wg.autograd.grad(y.sum(), x, create_graph=True)
        return y.detach(), wg.autograd.grad(g.sum(), x)[0]

    x = leaf(1.0, 2.0, 3.0).detach()
    y, second = value_and_second(x)
    assert_near(array(second), array(2 * y / x.square()), 1e-12, "noise")
    for randomness in ("same", "different"):
        y, second = wg.vmap(value_and_second, randomness=randomness)(x)
        assert_near(array(second), array(2 * y / x.square()), 1e-12, f"{randomness} noise")


def test_anomalies_name_the_function() -> None:
    class Pole(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g / 0

    with pytest.raises(RuntimeError, match="anomaly in the backward of Pole"), wg.autograd.detect_anomaly():
        Pole.apply(leaf(1.0)).sum().backward()


def test_recording_inside_backward() -> None:
    class Region(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx, g):
            with wg.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                return wg.autograd.grad(x.exp(), x, g)[0]

    x = leaf(1.0)
    Region.apply(x).sum().backward()
    assert x.grad.item() == pytest.approx(np.e)


def test_many_tensors() -> None:
    class Total(Function):
        @staticmethod
        def forward(ctx, *xs):
            ctx.save_for_backward(*xs)
            return sum(x.square().sum() for x in xs)

        @staticmethod
        def backward(ctx, g):
            return tuple(2 * g * x for x in ctx.saved_tensors)

    xs = [wg.full((2,), float(i), requires_grad=True) for i in range(300)]
    Total.apply(*xs).backward()
    assert [x.grad[0].item() for x in xs] == [2.0 * i for i in range(300)]
    (g,) = wg.autograd.grad(Total.apply(*xs), [xs[299]])
    assert g[0].item() == 598.0


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    x = wg.tensor([0.3, -1.2], device="gpu")
    for name, f in FUNCTIONS.items():
        found = wg.vmap(wg.grad(wg.grad(f)))(x)
        expected = wg.vmap(wg.grad(wg.grad(wg.sigmoid)))(x.cpu())
        assert_near(array(found.cpu()), array(expected), 1e-5, name)
