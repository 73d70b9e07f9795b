"""Gradients: accumulation, hooks, functions of one's own, higher orders, what is kept and replaced."""

import wengert as wg
from staging.comparing import case, copied, raised
from wengert import nn
from wengert.utils.checkpoint import checkpoint


def ones():
    return wg.ones(2)


def leaf():
    return wg.ones(2, requires_grad=True)


@case(traces=1)
def a_gradient_given_to_backward(jit):
    weight = leaf()

    @jit
    def f(g):
        weight.grad = None
        (weight * 3).backward(g)
        return weight.grad * 1

    for k in (1.0, 2.0, 3.0):
        yield f(ones() * k)


@case(traces=1)
def second_order(jit):
    weight = leaf()

    @jit
    def f(x):
        (g,) = wg.autograd.grad((weight * weight * x).sum(), weight, create_graph=True)
        (h,) = wg.autograd.grad(g.sum(), weight)
        return g.detach(), h

    for i in range(3):
        yield f(ones() * i)
        weight.data.add_(1)


@case(traces=1)
def a_graph_that_is_retained(jit):
    weight = leaf()

    @jit
    def f(x):
        weight.grad = None
        y = weight * x
        y.retain_grad()
        loss = (y * y).sum()
        loss.backward(retain_graph=True)
        first = y.grad.clone()
        loss.backward()
        return first, y.grad, weight.grad

    for i in range(3):
        yield f(ones() * i)


@case
def arguments_with_gradients(jit):
    f = jit(lambda x: (x * x).sum())
    for i in range(3):
        x = wg.full((2,), float(i), requires_grad=True)
        f(x).backward()
        yield x.grad
    yield f(ones())
    x = leaf()
    f(x).backward()
    yield x.grad


@case
def a_leaf_that_begins_to_require_gradients(jit):
    weight = ones()
    f = jit(lambda x: (x * weight).sum())
    yield f(ones())
    yield f(ones())
    weight.requires_grad_()
    loss = f(ones())
    loss.backward()
    yield loss.requires_grad, weight.grad


@case
def requires_grad_changed_inside(jit):
    model = nn.Linear(2, 2)

    @jit
    def switched(x):
        for p in model.parameters():
            p.requires_grad_(False)
        y = model(x)
        for p in model.parameters():
            p.requires_grad_(True)
        return y

    @jit
    def frozen(x):
        model.weight.requires_grad_(False)
        return model(x).detach()

    for f in (switched, switched, frozen, frozen):
        model.weight.requires_grad_(True)
        yield f(ones())
        yield model.weight.requires_grad


@case
def results_that_require_gradients(jit):
    def f(x):
        y = x * 2
        y.requires_grad_()
        return y

    g, h = jit(f), jit(lambda x: nn.Parameter(x * 2))
    for _ in range(2):
        yield g(ones()).requires_grad
        yield nn.Parameter(g(ones())).requires_grad
        yield type(h(ones())).__name__


@case
def a_tensor_with_a_history(jit):
    weight = leaf()
    y = weight * 3
    f, g = jit(lambda x: (y * x).detach()), jit(lambda x: (y * x).sum())
    for k in (1, 2):
        yield f(ones() * k)
        g(ones()).backward(retain_graph=True)
        yield weight.grad


@case
def what_a_backward_needs_is_overwritten(jit):
    weight, saved = leaf(), ones()
    f = jit(lambda x: saved.add_(x))
    f(ones())
    for _ in range(2):
        loss = (weight * saved).sum()
        f(ones())
        yield str(raised(loss.backward))
    g = jit(lambda y: y.mul_(2))
    g(ones())
    y = ones()
    loss = (weight * y).sum()
    g(y)
    yield str(raised(loss.backward)), y._version


@case(traces=1)
def overwritten_by_an_optimizer(jit):
    weight = leaf()
    optimizer = wg.optim.SGD([weight], lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        (weight * weight * x).sum().backward()
        optimizer.step()

    step(ones())
    step(ones())
    loss = (weight * weight).sum()
    step(ones())
    yield str(raised(loss.backward))


@case(undoes=True)
def overwritten_inside(jit):
    weight, saved = leaf(), ones()

    @jit
    def f(x):
        loss = (weight * saved).sum()
        saved.add_(1)
        loss.backward()
        return loss.detach()

    for _ in range(3):
        yield str(raised(f, ones()))
        yield weight.grad, saved


@case(traces=1)
def a_checkpoint(jit):
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.GELU(), nn.Linear(8, 1))
    optimizer = wg.optim.SGD(model.parameters(), lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = checkpoint(model, x, use_reentrant=False).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(4):
        yield step(wg.randn(3, 4))
        yield copied(model.state_dict())


@case(traces=2)
def a_checkpoint_that_closes_over_a_number(jit):
    weight, scale = leaf(), [2.0]

    @jit
    def f(x):
        weight.grad = None
        y = checkpoint(lambda x: weight * x * scale[0], x, use_reentrant=False).sum()
        y.backward()
        return y.detach()

    for scale[0] in (2.0, 2.0, 3.0):
        yield f(ones())
        yield weight.grad


@case
def anomalies(jit):
    weight = leaf()

    @jit
    def f(x):
        (weight * x).sqrt().sum().backward()
        return weight.grad * 1

    yield f(ones())
    with wg.autograd.detect_anomaly():
        yield type(raised(f, wg.zeros(2) - 1)).__name__
    yield weight.grad


def saving(jit):
    """A function whose backward needs saved tensors, called once."""
    weight = leaf()

    @jit
    def f(x):
        weight.grad = None
        (weight * x).exp().sum().backward()

    f(ones())
    return weight, f


@case
def hooks_of_saved_tensors_that_log(jit):
    weight, f = saving(jit)
    log = []
    with wg.autograd.graph.saved_tensors_hooks(lambda t: (log.append(1), t)[1], lambda t: t):
        f(ones())
    yield weight.grad, log


@case
def hooks_of_saved_tensors_that_change_them(jit):
    weight, f = saving(jit)
    with wg.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t):
        f(ones())
    yield weight.grad
    f(ones())
    yield weight.grad


@case(traces=2)
def other_ways_of_saving_tensors(jit):
    weight, f = saving(jit)
    with wg.autograd.graph.save_on_cpu():
        f(ones())
    yield weight.grad
    with wg.autograd.graph.disable_saved_tensors_hooks("none here"):
        f(ones())
    yield weight.grad


@case
def a_gradient_as_an_argument(jit):
    weight = leaf()
    weight.grad = ones()

    @jit
    def f(g):
        (weight * weight).sum().backward()
        return g * 2

    yield f(ones())
    for _ in range(3):
        yield f(weight.grad)
        yield weight.grad


@case
def gradients_that_are_deleted_and_shared(jit):
    first, second = leaf(), leaf()

    @jit
    def f(x):
        (first * second * x).sum().backward()

    f(ones())
    yield first.grad, second.grad
    second.grad = first.grad
    f(ones())
    yield first.grad, second.grad
    first.grad = second.grad = None
    f(ones())
    yield first.grad, second.grad


@case(traces=1)
def unused_and_repeated_inputs(jit):
    weight, other = leaf(), leaf()

    @jit
    def f(x):
        loss = (weight * x).sum()
        found = wg.autograd.grad(loss, (weight, other, weight), allow_unused=True)
        return [g if g is None else g * 2 for g in found]

    for k in (1, 2, 3):
        yield f(ones() * k)


@case
def a_hook_over_several_gradients(jit):
    first, second, log = leaf(), leaf(), []
    wg.autograd.graph.register_multi_grad_hook((first, second), lambda grads: log.append(len(grads)))

    @jit
    def f(x):
        (first * second * x).sum().backward()

    for _ in range(3):
        f(ones())
        yield log, first.grad


@case
def inputs_of_a_backward(jit):
    first, second = leaf(), leaf()

    @jit
    def f(x):
        (first * second * x).sum().backward(inputs=[first])

    for _ in range(3):
        f(ones())
        yield first.grad, second.grad


@case
def gradients_of_an_argument_made_to_require_them(jit):
    @jit
    def f(x):
        x.requires_grad_()
        (x * x).sum().backward()
        return x.grad * 1

    for k in (1, 2, 3):
        x = ones() * k
        yield f(x)
        yield x, x.requires_grad, x.grad
