"""Hooks of tensors and modules, and functions with a backward of their own."""

import wengert as wg
from staging.comparing import case
from wengert import nn


def ones():
    return wg.ones(2)


def leaf():
    return wg.ones(2, requires_grad=True)


def backward(jit, weight):
    """A staged function whose gradient is that of a product."""

    @jit
    def f(x):
        weight.grad = None
        (weight * x).sum().backward()

    return f


@case(traces=2)
def a_tensor_hook_with_a_number(jit):
    weight, scale = leaf(), [2.0]
    weight.register_hook(lambda g: g * scale[0])
    f = backward(jit, weight)
    for scale[0] in (2.0, 2.0, 3.0):
        f(ones())
        yield weight.grad


@case
def a_tensor_hook_that_logs(jit):
    weight, log = leaf(), []
    weight.register_hook(lambda g: log.append(float(g.sum())))
    f = backward(jit, weight)
    for i in range(4):
        f(ones() * i)
        yield log


@case
def a_tensor_hook_that_comes_and_goes(jit):
    weight = leaf()
    f = backward(jit, weight)
    f(ones())
    yield weight.grad
    for register in (
        lambda: weight.register_hook(lambda g: g * 5),
        lambda: weight.register_post_accumulate_grad_hook(lambda p: [p.grad.mul_(7)].clear()),
    ):
        handle = register()
        f(ones())
        yield weight.grad
        handle.remove()
        f(ones())
        yield weight.grad


@case
def a_tensor_hook_that_goes(jit):
    weight = leaf()
    handle = weight.register_hook(lambda g: g * 5)
    f = backward(jit, weight)
    f(ones())
    yield weight.grad
    handle.remove()
    f(ones())
    yield weight.grad


@case
def a_tensor_hook_inside(jit):
    scale = [2.0]

    @jit
    def f(x):
        x = x.detach().requires_grad_()
        y = x * 3
        y.register_hook(lambda g: g * scale[0])
        y.sum().backward()
        return x.grad

    for scale[0] in (2.0, 2.0, 3.0):
        yield f(ones())


@case
def a_tensor_hook_on_a_parameter_inside(jit):
    weight = leaf()

    @jit
    def f(x):
        weight.grad = None
        handle = weight.register_hook(lambda g: g * 2)
        (weight * x).sum().backward()
        handle.remove()

    for k in (1, 2, 3):
        f(ones() * k)
        yield weight.grad
    (weight * 1).sum().backward()
    yield weight.grad


@case
def hooks_of_modules(jit):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    scale, log = [1.0], []
    model[0].register_forward_hook(lambda module, args, out: out * scale[0])
    model[2].weight.register_hook(lambda g: g * 2)
    x = wg.randn(3, 4)

    @jit
    def step(x):
        model.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        return loss.detach()

    def grads():
        return [p.grad for p in model.parameters()]

    for scale[0] in (1.0, 1.0, 3.0):
        yield step(x), grads()
    handle = model[1].register_forward_hook(lambda module, args, out: out + 1)
    yield step(x), grads()
    handle.remove()
    yield step(x), grads()
    handle = model[1].register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    yield step(x), grads()
    handle.remove()
    yield step(x), grads()
    model[0].bias.requires_grad_(False)
    yield step(x), grads()
    model.register_full_backward_hook(lambda module, given, made: log.append(1))
    for _ in range(2):
        yield step(x), grads()
        yield log


@case
def a_hook_of_a_module_that_logs_a_tensor(jit):
    model, seen = nn.Linear(2, 2), {}
    model.register_forward_hook(lambda module, args, out: seen.update(out=out.detach()))
    f = jit(lambda x: model(x).detach())
    for k in (1, 2, 3):
        yield f(ones() * k)
        yield seen


@case
def a_hook_of_all_modules(jit):
    model = nn.Linear(2, 2)
    f = jit(lambda x: model(x).detach())
    yield f(ones())
    handle = nn.register_module_forward_hook(lambda module, args, out: out * 2)
    yield f(ones())
    handle.remove()
    yield f(ones())


@case(traces=2)
def a_function_with_a_class_attribute(jit):
    class Scaled(wg.autograd.Function):
        scale = 1.0

        @staticmethod
        def forward(ctx, x, factor):
            ctx.save_for_backward(x)
            ctx.factor = factor
            return x * x * factor

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0] * ctx.factor * Scaled.scale, None

    weight = leaf()

    @jit
    def f(x):
        weight.grad = None
        loss = Scaled.apply(weight * x, 2.0).sum()
        loss.backward()
        return loss.detach()

    for Scaled.scale in (1.0, 1.0, 2.0):
        yield f(ones())
        yield weight.grad


@case(traces=2)
def a_function_that_reads_a_closure(jit):
    scale = [1.0]

    class Scaled(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * scale[0]

        @staticmethod
        def backward(ctx, g):
            return g * scale[0] * 2

    weight = leaf()

    @jit
    def f(x):
        weight.grad = None
        loss = Scaled.apply(weight * x).sum()
        loss.backward()
        return loss.detach()

    for scale[0] in (1.0, 1.0, 0.5):
        yield f(ones())
        yield weight.grad


@case
def a_function_that_counts(jit):
    count = [0]

    class Counting(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            count[0] += 1
            return g * count[0]

    weight = leaf()

    @jit
    def f(x):
        weight.grad = None
        Counting.apply(weight * x).sum().backward()

    for _ in range(4):
        f(ones())
        yield weight.grad, count


@case(traces=1)
def a_straight_through_estimator(jit):
    class Rounded(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, g):
            return g

    weight = wg.tensor([0.3, 1.7], requires_grad=True)
    optimizer = wg.optim.SGD([weight], lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = ((Rounded.apply(weight) - x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(5):
        yield step(ones())
        yield weight


@case(traces=1)
def a_function_that_marks_its_input(jit):
    class Doubled(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    weight = leaf()

    @jit
    def f(x):
        weight.grad = None
        y = weight * x
        Doubled.apply(y).sum().backward()
        return y.detach()

    for k in (1, 2, 3):
        yield f(ones() * k)
        yield weight.grad


@case
def a_vjp_of_ones_own(jit):
    scale = [2.0]

    @wg.custom_vjp
    def scaled(x):
        return x * scale[0]

    scaled.defvjp(lambda x: (scaled(x), x), lambda kept, g: (g * scale[0] * kept,))
    f = jit(wg.grad(lambda x: scaled(x).sum()))
    for scale[0] in (2.0, 2.0, 3.0):
        yield f(ones())


@case(undoes=True)
def a_hook_that_raises(jit):
    weight, angry = leaf(), [False]

    def hook(g):
        if angry[0]:
            raise ValueError("an angry hook")
        return g * 2

    weight.register_hook(hook)
    f = backward(jit, weight)
    for angry[0] in (False, True, False):
        try:
            f(ones())
        except ValueError as error:
            yield error
        yield weight.grad
