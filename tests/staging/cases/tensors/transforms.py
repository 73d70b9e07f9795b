"""Transforms inside of programs, programs inside of transforms, and what they close over."""

import wengert as wg
from staging.comparing import calls, case
from wengert import nn
from wengert.autograd import forward_ad
from wengert.func import functional_call, stack_module_state


def ones():
    return wg.ones(2)


def cubes(x):
    return (x**3).sum()


TRANSFORMS = {
    "grad": wg.grad,
    "vmap": wg.vmap,
    "vmap_of_grad": lambda f: wg.vmap(wg.grad(f)),
    "jvp": lambda f: lambda x: wg.jvp(f, (x,), (x * 2,)),
    "vjp": lambda f: lambda x: wg.vjp(f, x)[1](wg.tensor(1.0)),
    "hessian": wg.hessian,
    "jacrev": wg.jacrev,
    "jacfwd": wg.jacfwd,
    "grad_of_grad": lambda f: wg.grad(lambda x: wg.grad(f)(x).sum()),
    "jvp_of_vmap": lambda f: lambda x: wg.jvp(wg.vmap(f), (x,), (x,)),
}


def transformed(name, transform):
    """Two cases: a program of a transform, and a program of a transform of a program."""

    def drawn():
        return wg.randn(3, 2) if "vmap" in name else wg.randn(2)

    def inside(jit):
        f = jit(transform(cubes))
        for _ in range(3):
            yield f(drawn())

    def of_a_program(jit):
        inner = jit(cubes)
        f, outside = jit(transform(inner)), transform(inner)
        for _ in range(3):
            yield f(drawn())
        yield inner(wg.randn(2))
        for _ in range(2):
            yield outside(drawn())
            yield f(drawn())
        yield inner(wg.randn(2))

    inside.__name__, of_a_program.__name__ = f"{name}_inside", f"{name}_of_a_program"
    case(inside, traces=1)
    case(of_a_program)


for name, transform in TRANSFORMS.items():
    transformed(name, transform)


@case(traces=1)
def a_transform_called_inside(jit):
    @jit
    def f(x):
        y = wg.vmap(lambda row: row * row.sum())(x)
        return y, wg.grad(lambda z: (z * y).sum())(x)

    for _ in range(3):
        yield f(wg.randn(3, 2))


@case
def transforms_that_close_over_numbers(jit):
    functions = [jit(wg.grad(lambda x, k=k: (x * k).sum())) for k in (1.0, 2.0, 3.0)]
    for f in functions * 2:
        yield f(ones())
    scale = [1.0]
    f = jit(wg.grad(lambda x: (x * scale[0]).sum()))
    for scale[0] in (1.0, 2.0, 1.0):
        yield f(ones())


@case(traces=2)
def transforms_that_close_over_tensors(jit):
    weight = ones()
    f = jit(wg.grad(lambda x: (x * weight).sum()))
    yield f(ones())
    weight.add_(1)
    yield f(ones())
    weight = wg.full((2,), 9.0)
    yield f(ones())


@case
def transforms_of_a_module(jit):
    model = nn.Linear(2, 1)
    f = jit(wg.vmap(wg.grad(lambda x: model(x).sum())))
    yield f(wg.ones(3, 2))
    model.weight.data.mul_(2)
    yield f(wg.ones(3, 2))
    model.weight = nn.Parameter(wg.ones(1, 2))
    yield f(wg.ones(3, 2))


@case
def a_program_that_closes_over_what_is_transformed(jit):
    def outer(v):
        inner = jit(lambda x: (x * v).sum())
        return inner(ones()) + inner(wg.full((2,), 2.0))

    yield wg.grad(outer)(ones())
    yield wg.vmap(outer)(wg.randn(3, 2))
    yield wg.jvp(outer, (ones(),), (ones(),))


@case
def a_program_that_reads_what_is_transformed(jit):
    box = [ones()]
    inner = jit(lambda x: (x * box[0]).sum())
    yield inner(ones())
    yield inner(ones())

    def outer(v):
        box[0] = v
        result = inner(ones())
        box[0] = ones()
        return result

    yield wg.grad(outer)(ones())
    yield wg.vmap(outer)(wg.randn(3, 2))
    yield inner(ones())


@case
def a_program_with_a_closed_weight_under_grad(jit):
    weight = ones()
    f = jit(lambda x: x * weight)
    f(ones())
    yield wg.grad(lambda w: (w * f(w)).sum())(ones())
    yield wg.vmap(f)(wg.randn(3, 2))
    yield wg.vmap(f, in_dims=1)(wg.randn(2, 3))


@case
def randomness_under_vmap(jit):
    f = jit(wg.vmap(lambda x: x + wg.rand(2), randomness="different"))
    g = jit(wg.vmap(lambda x: x + wg.rand(2), randomness="same"))
    for _ in range(3):
        yield f(wg.zeros(3, 2))
        yield g(wg.zeros(3, 2))


@case(traces=1)
def a_functional_call(jit):
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    params = {name: p.detach().clone() for name, p in model.named_parameters()}

    def loss(params, x):
        return functional_call(model, params, (x,)).sum()

    @jit
    def step(params, x):
        slopes = wg.grad(loss)(params, x)
        return {name: p - 0.1 * slopes[name] for name, p in params.items()}

    for _ in range(4):
        params = step(params, wg.randn(3, 4))
        yield params
    yield dict(model.named_parameters())


@case
def gradients_per_sample(jit):
    model = nn.Linear(3, 1)
    params = dict(model.named_parameters())

    def loss(params, x, y):
        return (functional_call(model, params, (x,)) - y).square().sum()

    f = jit(lambda x, y: wg.vmap(wg.grad(loss), in_dims=(None, 0, 0))(params, x, y))
    for _ in range(3):
        yield f(wg.randn(4, 3), wg.randn(4, 1))
        with wg.no_grad():
            model.weight.mul_(0.5)


@case(traces=1)
def an_ensemble(jit):
    models = [nn.Linear(3, 2) for _ in range(3)]
    params, buffers = stack_module_state(models)

    def one(params, buffers, x):
        return functional_call(models[0], {**params, **buffers}, (x,))

    f = jit(lambda params, x: wg.vmap(one, in_dims=(0, 0, None))(params, buffers, x))
    params = {name: p.detach() for name, p in params.items()}
    for _ in range(3):
        yield f(params, wg.randn(4, 3))
        params["weight"].mul_(2)


@case
def duals_inside(jit):
    @jit
    def f(x, t):
        with forward_ad.dual_level():
            y = (forward_ad.make_dual(x, t) ** 2).sin()
            return tuple(forward_ad.unpack_dual(y))

    for k in (1, 2, 3):
        yield f(ones() * k, ones())


@case
def duals_around(jit):
    f = jit(lambda x: x**3)
    yield f(ones())
    for k in (1, 2):
        with forward_ad.dual_level():
            primal, tangent = forward_ad.unpack_dual(f(forward_ad.make_dual(ones() * k, ones())))
            yield primal, tangent
    yield f(ones())


@case
def duals_in_what_is_closed_over(jit):
    box = [ones()]
    f = jit(lambda x: x * box[0])
    yield f(ones())
    with forward_ad.dual_level():
        box[0] = forward_ad.make_dual(ones() * 2, ones() * 5)
        primal, tangent = forward_ad.unpack_dual(f(ones()))
        yield primal, tangent
    box[0] = ones()
    yield f(ones())


@case(traces=1)
def a_vjp_that_is_called_twice(jit):
    @jit
    def f(x, g):
        value, pull = wg.vjp(lambda x: x * x.sum(), x)
        return value, pull(g), pull(g * 2)

    for k in (1, 2, 3):
        yield f(ones() * k, ones())


@case
def a_pullback_that_is_returned(jit):
    f = jit(lambda x: wg.vjp(lambda x: x * x.sum(), x)[1])
    for k in (1, 2, 3):
        yield f(ones() * k)(ones())


@case(traces=1)
def a_newton_step(jit):
    @jit
    def step(x):
        loss = lambda x: (x**4).sum() + x.prod()
        return x - wg.linalg.solve(wg.hessian(loss)(x), wg.grad(loss)(x))

    x = wg.tensor([1.0, 2.0])
    for _ in range(5):
        x = step(x)
        yield x


@case
def auxiliary_outputs(jit):
    f = jit(wg.grad(lambda x: (cubes(x), {"twice": x * 2, "n": x.shape[0]}), has_aux=True))
    for n in (2, 3, 2):
        yield f(wg.randn(n))


@case(traces=1)
def writes_under_a_transform(jit):
    weight = wg.zeros(2)

    @jit
    def f(x):
        weight.add_(x.detach().sum())
        return wg.grad(lambda x: (x * x * weight).sum())(x)

    for _ in range(3):
        yield f(ones())
        yield weight


@case(traces=1)
def writes_by_vmapped_functions(jit):
    @jit
    @wg.vmap
    def f(x):
        y = x.clone()
        y[0] = y[1] * 2
        y.mul_(3)
        return y

    for _ in range(3):
        yield f(wg.randn(3, 2))


@case
def derivatives_by_the_functional_interface(jit):
    f = jit(lambda x: wg.autograd.functional.jacobian(lambda x: x * x.sum(), x))
    g = jit(lambda x: wg.autograd.functional.hvp(lambda x: (x**3).sum(), x, ones())[1])
    for k in (1, 2, 3):
        yield f(ones() * k)
        yield g(ones() * k)


class Doubled(wg.autograd.Function):
    """A function without a forward rule, which is the transpose of its backward."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp() * 2
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


calls(
    "a_rule_that_is_transposed",
    lambda x: (wg.jvp(Doubled.apply, (x,), (x,)), wg.hessian(lambda x: Doubled.apply(x).sum())(x)),
    lambda: [wg.arange(3.0) * k for k in (1, -1, 200, 0.5)],
    traces=1,
)
