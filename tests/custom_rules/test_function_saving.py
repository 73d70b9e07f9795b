"""What custom functions save: through the tape, hooks, checkpoints and the ledger, and that nothing leaks."""

import gc
import weakref

import pytest
import wengert as wg
from custom_rules.custom_functions import FUNCTIONS, Gain, NewStyle, OldStyle, SavesInput, SavesIntermediate
from support import array, assert_near
from wengert.autograd import Function


def leaf(*values: float) -> wg.Tensor:
    return wg.tensor(list(values), dtype=wg.float64, requires_grad=True)


# ---- saving --------------------------------------------------------------------------------------


def test_the_ledger_counts_what_is_saved() -> None:
    x = leaf(*range(100))
    assert NewStyle.apply(x).grad_fn.saved_bytes == 800
    assert SavesIntermediate.apply(x * 1.0).grad_fn.saved_bytes == 1600
    assert Gain.apply(x, 2.0).grad_fn.saved_bytes == 0
    y = NewStyle.apply(x)
    assert [v.name for v in y.grad_fn.saved] == ["output 0"]
    y.sum().backward()
    assert y.grad_fn.saved_bytes == 0
    with pytest.raises(RuntimeError, match="graph was already used"):
        y.sum().backward()


def test_a_saved_value_that_was_written_to_raises() -> None:
    x = leaf(1.0, 2.0)
    h = x * 1.0
    y = SavesInput.apply(h)
    h.detach().mul_(2)
    with pytest.raises(RuntimeError, match="saved input 0 of shape \\(2,\\) was modified in place"):
        y.sum().backward()


def test_saved_tensor_hooks_see_what_is_saved() -> None:
    packed, unpacked = [], []

    def pack(t):
        packed.append(t.tolist())
        return t * 2

    def unpack(t):
        unpacked.append(t.tolist())
        return t / 2

    x = leaf(0.5)
    with wg.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = SavesInput.apply(x)
    assert packed == [[0.5]]
    y.sum().backward()
    assert unpacked == [[1.0]]
    assert x.grad.item() == pytest.approx(
        wg.tensor(0.5).sigmoid().item() * (1 - wg.tensor(0.5).sigmoid().item())
    )


def test_checkpoint_forgets_what_is_saved() -> None:
    for name, f in FUNCTIONS.items():
        x = leaf(0.5, -1.0)
        y = wg.utils.checkpoint.checkpoint(lambda x, f=f: f(x * 2), x)
        assert y.grad_fn.saved_bytes == 0, name
        (g,) = wg.autograd.grad(y.sum(), x, create_graph=True)
        (h,) = wg.autograd.grad(g.sum(), x)
        s = (x.detach() * 2).sigmoid()
        assert_near(array(h), array(4 * s * (1 - s) * (1 - 2 * s)), 1e-12, name)


def test_save_for_forward_is_for_jvp() -> None:
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            ctx.save_for_forward(x * 2)
            return x * x

        @staticmethod
        def backward(ctx, g):
            x, none = ctx.saved_tensors
            assert none is None
            return 2 * x * g

        @staticmethod
        def jvp(ctx, t):
            (twice,) = ctx.saved_tensors
            return twice * t

    x = leaf(3.0).detach()
    assert wg.jvp(Square.apply, (x,), (x,))[1].tolist() == [18.0]
    assert wg.grad(lambda x: Square.apply(x).sum())(x).tolist() == [6.0]
    assert wg.hessian(lambda x: Square.apply(x).sum())(x).tolist() == [[2.0]]


# ---- nothing leaks -------------------------------------------------------------------------------


def test_nothing_leaks() -> None:
    contexts: list[weakref.ref] = []

    class Big(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.y, ctx.input = y, x
            ctx.save_for_backward(x, y, x * 2)
            contexts.append(weakref.ref(ctx))
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.y

    def run() -> None:
        x = wg.ones(10_000, requires_grad=True)
        for use in range(4):
            y = Big.apply(x)
            if use == 1:
                y.sum().backward()
            if use == 2:
                (g,) = wg.autograd.grad(y.sum(), x, create_graph=True)
                g.sum().backward()
            if use == 3:
                wg.vmap(wg.grad(lambda x: Big.apply(x).sum()))(wg.ones(4, 100))
                wg.hessian(lambda x: Big.apply(x).sum())(wg.ones(10))

    gc.collect()
    run()
    contexts.clear()
    start = wg.memory.live_bytes()
    gc.disable()
    try:
        run()
        # No cycle is made, so nothing waits for the collector.
        assert wg.memory.live_bytes() <= start
        assert [c for c in contexts if c() is not None] == []
    finally:
        gc.enable()


class Token:
    """Something to watch: it lives as long as the cycle that it is in."""


def context_that_knows_its_output(token: Token) -> None:
    box: list[object] = [token]

    class Keeps(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.box = box
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g

    box.append(Keeps.apply(leaf(1.0)))


def rule_that_knows_its_output(token: Token, view=lambda f: f) -> None:
    f = wg.custom_vjp(lambda x: x * 1)
    f.defvjp(lambda x: (x * 1, None), lambda _, g: (y, token) and (g,))
    y = view(f)(leaf(1.0, 2.0))


@pytest.mark.parametrize(
    "make",
    [
        context_that_knows_its_output,
        rule_that_knows_its_output,
        lambda token: rule_that_knows_its_output(token, wg.vmap),
    ],
)
def test_cycles_that_users_make_are_collected(make) -> None:
    token = Token()
    alive = weakref.ref(token)
    make(token)
    del token
    gc.collect()
    assert alive() is None


def test_backward_gives_saved_values_back_at_once() -> None:
    x = wg.ones(10_000, requires_grad=True)
    y = OldStyle.apply(x).sum()
    before = wg.memory.live_bytes()
    x.grad = wg.zeros(10_000)
    y.backward()
    assert wg.memory.live_bytes() <= before
