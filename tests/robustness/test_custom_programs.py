"""Random programs over user-defined rules, in random nestings of three transforms,
against the same mathematics written plainly.

A program is a list of steps over a pool of values. Run with `Plain` each step is what it computes; run with
`Custom` it is a custom function of a random form (`custom_jvp`, `custom_vjp`, `autograd.Function` with and
without `setup_context`) whose rules are true, so that all derivatives of all orders must be those of the
plain program. What the forms do differently is drawn too: what they save (arguments, intermediate values,
pullbacks, one by one or in containers), whether they sum over broadcast axes themselves,
and whether their rules use the function itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from hypothesis import example, given, strategies as st
from support import examples
from wengert.utils.checkpoint import checkpoint

Tensor = wg.Tensor
Binary = Callable[[Tensor, Tensor], Tensor]
Rng = np.random.Generator

DEPTH = 3


# ---- the functions: what they compute, and their derivatives -------------------------------------


def _fit(g: Tensor, like: Tensor) -> Tensor:
    """`g` summed to the shape of `like`."""
    while g.ndim > like.ndim:
        g = g.sum(0)
    for axis, n in enumerate(like.shape):
        if n == 1 and g.shape[axis] != 1:
            g = g.sum(axis, keepdim=True)
    return g


class Row:
    """A function of `arity` tensors with the values that its rules read and the partial derivatives by them.

    `keep(*x)` gives those values, `partial[i][j](kept)` the derivative of output `j` by argument `i`,
    elementwise; None for zero.
    """

    def __init__(self, value: Any, keep: Any, partial: list[list[Any]]) -> None:
        self.value, self.keep, self.partial = value, keep, partial
        self.arity, self.count = len(partial), len(partial[0])


ROWS: dict[str, Row] = {
    "sin": Row(lambda x: (x.sin(),), lambda x: [x], [[lambda k: k[0].cos()]]),
    "sin_kept": Row(lambda x: (x.sin(),), lambda x: [x.cos()], [[lambda k: k[0]]]),
    "neg": Row(lambda x: (-x,), lambda x: [], [[lambda k: -1.0]]),
    "same": Row(lambda x: (x,), lambda x: [], [[lambda k: 1.0]]),
    "mul": Row(lambda x, w: (x * w,), lambda x, w: [x, w], [[lambda k: k[1]], [lambda k: k[0]]]),
    "add": Row(lambda x, w: (x + w,), lambda x, w: [], [[lambda k: 1.0], [lambda k: 1.0]]),
    "mix": Row(
        lambda x, w: (x * w.sin(),),
        lambda x, w: [x, w.sin(), w.cos()],
        [[lambda k: k[1]], [lambda k: k[0] * k[2]]],
    ),
    "pair": Row(
        lambda x, w: (x.sin(), x * w),
        lambda x, w: [x.cos(), x, w],
        [[lambda k: k[0], lambda k: k[2]], [None, lambda k: k[1]]],
    ),
    "apart": Row(
        lambda x, w: (x * 1.0, w * 2.0), lambda x, w: [], [[lambda k: 1.0, None], [None, lambda k: 2.0]]
    ),
    "still": Row(lambda x: (x - x.detach(),), lambda x: [], [[lambda k: 1.0]]),
    "second": Row(lambda x, w: (w.tanh(),), lambda x, w: [w.cosh() ** -2], [[None], [lambda k: k[0]]]),
}

#: What the forward computes where it is not what is differentiated.
FORWARD = {"still": lambda x: (wg.zeros(x.shape, dtype=x.dtype),)}


def _value(name: str) -> Any:
    return FORWARD.get(name, ROWS[name].value)


def _total(parts: list[Any]) -> Any:
    parts = [p for p in parts if p is not None]
    return sum(parts[1:], parts[0]) if parts else None


def _pulled(row: Row, kept: list[Any], g: tuple[Tensor, ...], like: list[Tensor] | None) -> tuple[Any, ...]:
    """Cotangents of the arguments, summed to the shape of `like` or left as they are."""
    out = []
    for i in range(row.arity):
        parts = [g[j] * d(kept) for j, d in enumerate(row.partial[i]) if d is not None]
        # Parts of different outputs may be broadcast along different axes,
        # so they are summed before they are added.
        out.append(_total(parts if like is None else [_fit(part, like[i]) for part in parts]))
    return tuple(out)


def _pushed(row: Row, kept: list[Any], d: tuple[Tensor, ...], y: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Tangents of the outputs."""
    out = []
    for j in range(row.count):
        parts = [d[i] * row.partial[i][j](kept) for i in range(row.arity) if row.partial[i][j] is not None]
        total = _total(parts)
        out.append(wg.zeros(y[j].shape, dtype=y[j].dtype) if total is None else total.expand(y[j].shape))
    return tuple(out)


# ---- their forms ---------------------------------------------------------------------------------


def _by_jvp(name: str, rng: Rng) -> Any:
    row, linear = ROWS[name], name in ("neg", "same")
    # The value of a rule has the derivatives of what it is computed by.
    own = rng.random() < 0.5 or name in FORWARD
    f = wg.custom_jvp(lambda *x: _value(name)(*x))

    def rule(p: Any, d: Any) -> Any:
        y = f(*p) if own else _value(name)(*p)
        return y, f(*d) if linear and own else _pushed(row, row.keep(*p), d, y)

    f.defjvp(rule)
    return f


def _by_vjp(name: str, rng: Rng) -> Any:
    row, boxed = ROWS[name], rng.random() < 0.5
    sums = rng.random() < 0.5 or row.count > 1
    f = wg.custom_vjp(lambda *x: _value(name)(*x))
    if name not in FORWARD and rng.random() < 0.3:
        f.defvjp(lambda *x: wg.vjp(row.value, *x), lambda pull, g: pull(g))
        return f

    def fwd(*x: Tensor) -> Any:
        kept = row.keep(*x)
        return _value(name)(*x), ({"kept": kept} if boxed else kept, list(x) if sums else None)

    def bwd(residuals: Any, g: Any) -> Any:
        kept, like = residuals
        return _pulled(row, kept["kept"] if boxed else kept, g, like)

    f.defvjp(fwd, bwd)
    return f


def _by_class(name: str, rng: Rng) -> Any:
    row = ROWS[name]
    sums, boxed, setup, asks = rng.random(4) < 0.5
    sums = sums or row.count > 1

    def fill(ctx: Any, x: tuple[Tensor, ...]) -> None:
        kept = row.keep(*x)
        if asks and not any(ctx.needs_input_grad):
            return
        ctx.like = list(x) if sums else None
        if boxed:
            ctx.kept = kept
        else:
            ctx.save_for_backward(*kept)

    def forward(ctx: Any, *x: Tensor) -> Any:
        fill(ctx, x)
        return _value(name)(*x)

    def backward(ctx: Any, *g: Tensor) -> Any:
        return _pulled(row, ctx.kept if boxed else ctx.saved_tensors, g, ctx.like)

    methods = {"backward": staticmethod(backward)}
    if setup:
        methods["forward"] = staticmethod(lambda *x: _value(name)(*x))
        methods["setup_context"] = staticmethod(lambda ctx, x, _: fill(ctx, x))
    else:
        methods["forward"] = staticmethod(forward)
    return type(name.title(), (wg.autograd.Function,), methods).apply


FORMS = {"custom_jvp": _by_jvp, "custom_vjp": _by_vjp, "function": _by_class}


# ---- programs ------------------------------------------------------------------------------------


class Program:
    """Steps over a pool of values that begins with the two arguments."""

    def __init__(self, rng: Rng) -> None:
        self.steps: list[tuple[str, str, int, list[int]]] = []
        size = 2
        for _ in range(rng.integers(1, 4)):
            name = str(rng.choice(list(ROWS)))
            row = ROWS[name]
            # The newest values are likelier, so that steps depend on each other.
            used = [int(max(rng.integers(0, size), rng.integers(0, size))) for _ in range(row.arity)]
            self.steps.append((name, str(rng.choice(list(FORMS))), int(rng.integers(1 << 30)), used))
            size += row.count
        self.outer = bool(rng.random() < 0.3)

    def __repr__(self) -> str:
        steps = [f"{name} ({form}) of {used}" for name, form, _, used in self.steps]
        return "; ".join(steps)

    def run(self, custom: bool) -> Binary:
        """The program as a function of two tensors."""
        functions: list[Any] = []
        for name, form, seed, _ in self.steps:
            plain = ROWS[name].value
            functions.append(FORMS[form](name, np.random.default_rng(seed)) if custom else plain)

        def f(x: Tensor, w: Tensor) -> Tensor:
            pool = [x, w]
            for function, (_, _, _, used) in zip(functions, self.steps):
                pool += function(*(pool[i] for i in used))
            out = pool[-1]
            for i, y in enumerate(pool[2:-1]):
                out = out + (0.3 + i) * y * (y if self.outer else 1.0)
            return out

        return f


# ---- nestings ------------------------------------------------------------------------------------


def _weights(shape: tuple[int, ...], shift: float = 0.0) -> Tensor:
    count = int(np.prod(shape))
    return wg.tensor(np.cos(np.arange(count) * 1.7 + 0.3 + shift).reshape(shape))


def _scalar(f: Binary) -> Binary:
    def g(x: Tensor, w: Tensor) -> Tensor:
        y = f(x, w)
        return (y * _weights(tuple(y.shape))).sum()

    return g


def _grad(f: Binary, rng: Rng) -> Binary:
    return wg.grad(_scalar(f), argnums=int(rng.integers(2)))


def _vjp(f: Binary, rng: Rng) -> Binary:
    def g(x: Tensor, w: Tensor) -> Tensor:
        y, pull = wg.vjp(f, x, w)
        a, b = pull(_weights(tuple(y.shape), 1.0))
        return a * b.sum() + a

    return g


def _jvp(f: Binary, rng: Rng) -> Binary:
    first, second = rng.random(2) < 0.7
    first = first or not second

    def g(x: Tensor, w: Tensor) -> Tensor:
        d = _weights(tuple(x.shape)) if first else wg.zeros_like(x)
        e = _weights(tuple(w.shape), 2.0) if second else wg.zeros_like(w)
        return wg.jvp(f, (x, w), (d, e))[1]

    return g


def _vmap(f: Binary, rng: Rng) -> Binary:
    dims = [(0, None), (None, 0), (0, 0), (-1, None), (0, -1)][int(rng.integers(5))]
    scale = wg.tensor([0.6, 1.0, 1.3], dtype=wg.float64)

    def batch(x: Tensor, dim: int | None) -> Tensor:
        return x if dim is None else wg.stack([x * s for s in scale], 0 if dim == 0 else -1)

    def g(x: Tensor, w: Tensor) -> Tensor:
        out = wg.vmap(f, in_dims=dims)(batch(x, dims[0]), batch(w, dims[1]))
        return (out * _weights((3, *[1] * (out.ndim - 1)), 3.0)).sum(0)

    return g


def _linearize(f: Binary, rng: Rng) -> Binary:
    def g(x: Tensor, w: Tensor) -> Tensor:
        _, push = wg.linearize(f, x, w)
        return push(_weights(tuple(x.shape)), _weights(tuple(w.shape), 2.0))

    return g


def _jacobian(kind: str) -> Any:
    def transform(f: Binary, rng: Rng) -> Binary:
        i = int(rng.integers(2))

        def g(x: Tensor, w: Tensor) -> Tensor:
            full = getattr(wg, kind)(f, argnums=i)(x, w)
            # The axes of the argument are summed, so that derivatives do not grow with their order.
            axes = (x, w)[i].ndim
            return full.sum(tuple(range(full.ndim - axes, full.ndim))) if axes else full

        return g

    return transform


def _checkpoint(f: Binary, rng: Rng) -> Binary:
    return lambda x, w: checkpoint(f, x, w)


def _backward(f: Binary, rng: Rng) -> Binary:
    """Eager differentiation, which ends what is differentiated further out; so it is the outermost."""

    def g(x: Tensor, w: Tensor) -> Tensor:
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        y = _scalar(f)(x, w)
        if not y.requires_grad:
            return wg.zeros(2 * (x.numel() + w.numel()), dtype=wg.float64)
        # A function with rules of its own gives zeros where the tape of the plain one finds no way.
        found = wg.autograd.grad(y, (x, w), create_graph=True, allow_unused=True)
        a, b = (wg.zeros_like(z) if g is None else g for g, z in zip(found, (x, w)))
        total = (a * _weights(tuple(a.shape))).sum() + (b * _weights(tuple(b.shape))).sum()
        if total.requires_grad:
            total.backward()
        slopes = [wg.zeros_like(z) if z.grad is None else z.grad for z in (x, w)]
        return wg.cat([z.reshape(-1) for z in (a, b, *slopes)]).detach()

    return g


INNER = {
    "grad": _grad,
    "vjp": _vjp,
    "jvp": _jvp,
    "vmap": _vmap,
    "linearize": _linearize,
    "jacfwd": _jacobian("jacfwd"),
    "jacrev": _jacobian("jacrev"),
    "checkpoint": _checkpoint,
}
OUTER = {**INNER, "backward": _backward}
SHAPES = [((2,), (2,)), ((2,), ()), ((2, 2), (2,)), ((2, 1), (2,)), ((), ()), ((3,), (1,))]


def check(seed: int, names: list[str] | None = None) -> None:
    """Compares one program in one nesting."""
    rng = np.random.default_rng(seed)
    program = Program(rng)
    if names is None:
        names = [str(rng.choice(list(INNER))) for _ in range(DEPTH - 1)] + [str(rng.choice(list(OUTER)))]
    seeds = [int(s) for s in rng.integers(1 << 30, size=len(names))]
    shapes = SHAPES[int(rng.integers(len(SHAPES)))]
    x, w = (rng.uniform(0.2, 1.0, shape) for shape in shapes)

    def run(custom: bool) -> Any:
        f = program.run(custom)
        for name, inner in zip(names, seeds):
            f = OUTER[name](f, np.random.default_rng(inner))
        return f(wg.tensor(x), wg.tensor(w)).detach().numpy()

    want = run(False)
    note = f"seed {seed}: {' of '.join(reversed(names))} of [{program}], shapes {shapes}"
    try:
        got = run(True)
    except Exception as error:
        raise AssertionError(f"{note} raised {type(error).__name__}: {error}") from error
    np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-9, err_msg=note)


@examples(40)
@given(st.integers(0, 2**32 - 1))
@example(0)
def test_program_has_the_derivatives_of_the_same_mathematics(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("inner", INNER)
def test_every_pair_of_transforms(inner: str, outer: str) -> None:
    for seed in range(2):
        check(1000 * seed + 7, [inner, outer])


def test_wrong_rule_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    row = ROWS["sin"]
    monkeypatch.setitem(ROWS, "sin", Row(row.value, row.keep, [[lambda k: 1.01 * k[0].cos()]]))
    failed = 0
    for seed in range(40):
        try:
            check(seed, ["grad"])
        except AssertionError:
            failed += 1
    assert failed > 3
