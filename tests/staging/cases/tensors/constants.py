"""Tensors that a function makes itself: each run has its own, whatever was written into those of before."""

import numpy as np
import wengert as wg
from staging.comparing import calls, case
from wengert import nn


def ones():
    return wg.ones(2)


def scaled():
    return [wg.ones(2) * k for k in (1.0, 2.0, 3.0)]


#: How tensors of two numbers are made.
MAKERS = {
    "tensor": lambda x: wg.tensor([1.0, 2.0]),
    "tensor_of_an_array": lambda x: wg.tensor(np.ones(2, np.float32)),
    "as_tensor": lambda x: wg.as_tensor([1.0, 2.0]),
    "from_numpy": lambda x: wg.from_numpy(np.ones(2, np.float32)),
    "Tensor": lambda x: wg.Tensor([1.0, 2.0]),
    "new_tensor": lambda x: x.new_tensor([1.0, 2.0]),
    "new_zeros": lambda x: x.new_zeros(2),
    "zeros": lambda x: wg.zeros(2),
    "zeros_like": lambda x: wg.zeros_like(x),
    "full": lambda x: wg.full((2,), 0.5),
    "arange": lambda x: wg.arange(2.0),
    "linspace": lambda x: wg.linspace(0, 1, 2),
    "eye": lambda x: wg.eye(2)[0],
    "stack": lambda x: wg.stack([wg.tensor(1.0), wg.tensor(2.0)]),
    "clone": lambda x: wg.tensor([1.0, 2.0]).clone(),
    "expand": lambda x: wg.tensor([[1.0, 2.0]]).expand(1, 2)[0],
    "to": lambda x: wg.tensor([1, 2]).to(wg.float32),
    "contiguous": lambda x: wg.tensor([1.0, 2.0]).contiguous(),
    "detach": lambda x: wg.tensor([1.0, 2.0]).detach(),
}


def made(name, make):
    """A case: tensors that are written inside, and tensors that are written after they were returned."""

    def body(jit):
        inside, outside = jit(lambda x: make(x).add_(x)), jit(lambda x: (make(x), x.sum()))
        for x in scaled():
            yield inside(x)
            result, _ = outside(x)
            yield result
            result.add_(7)

    body.__name__ = f"made_by_{name}"
    # The memory of an array of NumPy is outside.
    case(body, traces=None if name == "from_numpy" else 2)


for name, make in MAKERS.items():
    made(name, make)


def elements(x):
    made = wg.tensor([0.0, 0.0])
    made[0] = x[0]
    made[1] += x[1]
    return made


def total(x):
    made = wg.tensor(0.0)
    for _ in range(3):
        made += x.sum()
    return made


def leaf(x):
    weight = wg.tensor([1.0, 2.0], requires_grad=True)
    (weight * x).sum().backward()
    return weight.grad


def fitted(x):
    weight = wg.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(2):
        (slope,) = wg.autograd.grad((weight * weight * x).sum(), weight)
        with wg.no_grad():
            weight -= 0.1 * slope
    return weight.detach()


def optimised(x):
    weight = wg.tensor([1.0, 2.0], requires_grad=True)
    optimizer = wg.optim.SGD([weight], lr=0.1, momentum=0.9)
    for _ in range(2):
        optimizer.zero_grad()
        (weight * weight * x).sum().backward()
        optimizer.step()
    return weight.detach()


calls("written_by_elements", elements, scaled, traces=1)
calls("a_running_total", total, scaled, traces=1)
calls("a_leaf", leaf, scaled, traces=1)
calls("a_leaf_that_is_fitted", fitted, scaled, traces=1)
calls("a_leaf_that_is_optimised", optimised, scaled)
calls("a_leaf_that_is_returned", lambda x: (wg.tensor([1.0], requires_grad=True), x), scaled)
calls("a_layer_that_is_made", lambda x: nn.LayerNorm(2)(x).detach(), scaled, traces=1)
calls("a_mask", lambda x: x.masked_fill(wg.triu(wg.ones(2, 2), 1).bool()[0], 0.0), scaled, traces=1)
calls("empty", lambda x: wg.cat([wg.tensor([]), x, wg.zeros(0)]), scaled, traces=1)


@case(traces=1)
def a_constant_kept_by_a_default(jit):
    def f(x, kept=wg.zeros(2)):  # noqa: B008 (one for all calls is meant)
        return kept.add_(x) * 1

    g = jit(f)
    for x in scaled():
        yield g(x)


@case(traces=1)
def a_view_of_a_constant(jit):
    f = jit(lambda x: wg.tensor([[1.0, 2.0], [3.0, 4.0]])[1].mul_(x))
    for x in scaled():
        result = f(x)
        yield result
        result.zero_()


@case(traces=1)
def a_constant_in_two_results(jit):
    def f(x):
        made = wg.tensor([1.0, 2.0])
        return made, made[:1], x

    g = jit(f)
    for x in scaled():
        first, second, _ = g(x)
        first.add_(1)
        yield first, second


@case
def a_constant_of_an_argument_that_is_no_tensor(jit):
    f = jit(lambda x, values: wg.tensor(values).add_(x))
    for values in ([1.0, 2.0], [1.0, 2.0], [3.0, 2.0]):
        yield f(ones(), values)


@case(traces=2)
def one_hot_rows_and_ramps(jit):
    f = jit(lambda x, n: wg.eye(n)[0] + wg.arange(n) * x.sum())
    for n in (2, 3, 2):
        yield f(ones(), n)
