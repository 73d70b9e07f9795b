"""Functions of functions: defaults, decorators, patches, recursion, programs that call programs."""

import asyncio
import copy
import functools
import inspect
import pickle

import wengert as wg
from staging.comparing import case
from wengert import nn
from wengert.nn import functional as F


def ones():
    return wg.ones(2)


def doubled(x):
    return x * 2


def replaced(x):
    return x * 2


@case(traces=3)
def defaults_that_change(jit):
    def f(x, k=1.0, values=[1.0]):  # noqa: B006 (a default that changes)
        return x * k + values[0]

    g = jit(f)
    yield g(ones())
    f.__defaults__ = (2.0, [3.0])
    yield g(ones())
    f.__defaults__[1][0] = 7.0
    yield g(ones())


@case
def defaults_of_what_is_called(jit):
    def inner(x, k=[1.0], *, more=1.0):  # noqa: B006 (a default that changes)
        return x * k[0] * more

    f = jit(lambda x: inner(x))
    yield f(ones())
    inner.__defaults__[0][0] = 2.0
    yield f(ones())
    inner.__defaults__ = ([5.0],)
    yield f(ones())
    inner.__kwdefaults__ = {"more": 3.0}
    yield f(ones())


@case(traces=2)
def a_tensor_as_a_default(jit):
    weight = ones()

    def f(x, k=weight):
        return x * k

    g = jit(f)
    yield g(ones())
    weight.mul_(3)
    yield g(ones())
    yield g(ones(), ones() * 7)
    yield g(ones())


@case
def code_that_is_swapped(jit):
    def inner(x):
        return x * 2

    def other(x):
        return x * 3

    f = jit(lambda x: inner(x))
    yield f(ones())
    inner.__code__ = other.__code__
    yield f(ones())


@case(traces=2)
def a_global_function_defined_again(jit):
    global replaced
    f = jit(lambda x: replaced(x))
    yield f(ones())
    kept = replaced

    def replaced(x):
        return x * 3

    yield f(ones())
    replaced = kept
    yield f(ones())


@case
def a_function_of_the_library_patched(jit):
    f = jit(lambda x: F.relu(x))
    kept = F.relu
    yield f(-ones())
    try:
        F.relu = lambda x: x
        yield f(-ones())
    finally:
        F.relu = kept
    yield f(-ones())


@case
def a_partial(jit):
    def scaled(a, x, k=1):
        return a * x * k

    partial = functools.partial(scaled, ones() * 3, k=2)
    f = jit(partial)
    yield f(ones())
    partial.keywords["k"] = 5
    yield f(ones())
    partial.args[0].mul_(2)
    yield f(ones())


@case(traces=2)
def a_decorator_with_a_setting(jit):
    settings = {"scale": 1.0}

    def decorated(function):
        @functools.wraps(function)
        def call(*args):
            return function(*args) * settings["scale"]

        return call

    f = jit(decorated(lambda x: x * 2))
    yield f(ones())
    settings["scale"] = 5.0
    yield f(ones())


@case
def a_function_in_a_dictionary_of_names(jit):
    names = {"k": 1.0}
    exec("def scaled(x):\n    return x * k", names)
    f = jit(lambda x: names["scaled"](x))
    yield f(ones())
    names["k"] = 2.0
    yield f(ones())


@case(traces=2)
def deep_calls(jit):
    scale = [1.0]
    first = lambda x: second(x)
    second = lambda x: third(x) + 1
    third = lambda x: x * scale[0]
    f = jit(lambda x: first(x))
    for scale[0] in (1.0, 2.0, 1.0):
        yield f(ones())


@case
def a_function_that_calls_itself(jit):
    scale = [3]

    @jit
    def power(x, n):
        return x if n == 0 else power(x * scale[0], n - 1)

    yield power(ones(), 2)
    scale[0] = 5
    yield power(ones(), 2)
    yield power(ones(), 2)


@case
def a_program_in_a_program(jit):
    scale = [1.0]
    inner = jit(lambda x: x * scale[0])
    outer = jit(lambda x: inner(x) + 1)
    yield outer(ones())
    scale[0] = 2.0
    yield outer(ones())
    yield inner(ones())
    scale[0] = 1.0
    yield outer(ones())


@case
def a_program_in_a_program_with_a_state(jit):
    weight = wg.zeros(2)

    @jit
    def inner(x):
        weight.add_(x)
        return weight * 2

    outer = jit(lambda x: inner(x) + inner(x))
    for _ in range(4):
        yield outer(ones())
        yield inner(ones())
        yield weight


@case
def jit_of_jit(jit):
    f = jit(jit(doubled))
    for _ in range(3):
        yield f(ones())


@case(traces=2)
def a_function_made_inside(jit):
    def maker(scale):
        def scaled(x):
            return x * scale

        return scaled

    f = jit(lambda x, k: maker(k)(x))
    for k in (2.0, 3.0, 2.0):
        yield f(ones(), k)


@case
def a_function_that_returns_a_function(jit):
    f = jit(lambda x: lambda y: y * (x * 2))
    for k in (1, 3, 5):
        yield f(ones() * k)(ones())


@case
def a_function_staged_inside(jit):
    scale = [1.0]

    def outer(x):
        inner = jit(lambda x: x * scale[0])
        return inner(x) + inner(x)

    f = jit(outer)
    for scale[0] in (1.0, 2.0, 1.0):
        yield f(ones())
        yield outer(ones())


@case(traces=2)
def attributes_of_functions(jit):
    def inner(x):
        return x * inner.scale

    f = jit(lambda x: inner(x))
    for inner.scale in (1.0, 2.0, 1.0):
        yield f(ones())


@case
def a_function_that_counts_on_itself(jit):
    def inner(x):
        inner.calls += 1
        return x * inner.calls

    inner.calls = 0
    f = jit(lambda x: inner(x))
    for _ in range(4):
        yield f(ones())
        yield inner.calls


@case
def names_and_documentation(jit):
    f = jit(doubled)
    yield f.__name__, f.__doc__, f.__module__, f.__qualname__


@case(traces=1)
def a_copy(jit):
    f = jit(doubled)
    yield f(ones())
    yield copy.copy(f)(ones() * 2)
    yield copy.deepcopy(f)(ones() * 3)
    yield copy.deepcopy({"f": f})["f"](ones() * 3)


class Scaling(nn.Module):
    """A module whose method may be staged."""

    def __init__(self, scale):
        super().__init__()
        self.scale = scale
        self.inner = nn.Linear(2, 2)

    def forward(self, x):
        return self.inner(x) * self.scale


@case
def a_copy_of_a_module_with_a_program(jit):
    first = Scaling(2.0)
    first.run = jit(first.forward)
    with wg.no_grad():
        yield first.run(ones())
        second = copy.deepcopy(first)
        second.scale = 5.0
        second.inner.weight.zero_()
        for _ in range(2):
            yield first.run(ones())
            yield second.run(ones())


def pickled(x):
    return x * 3


@case
def pickling(jit):
    global pickled
    kept = pickled
    pickled = jit(pickled)
    yield pickled(ones())
    yield pickle.loads(pickle.dumps(pickled))(ones())
    pickled = kept


@case(traces=1)
def a_partial_of_a_program(jit):
    f = functools.partial(jit(lambda x, k: x * k), k=3.0)
    for _ in range(3):
        yield f(ones())


@case
def a_program_as_an_argument(jit):
    inner, apply = jit(doubled), jit(lambda f, x: f(f(x)))
    for _ in range(3):
        yield apply(inner, ones())


@case
def a_key_of_sorting(jit):
    order = [1]
    f = jit(lambda x: sorted([x, x * 2], key=lambda t: order[0] * int(t.sum()))[0])
    for order[0] in (1, -1, 1):
        yield f(ones())


@case
def coroutines(jit):
    async def doubled(x):
        await asyncio.sleep(0)
        return x * 2

    f = jit(doubled)
    for k in (1, 2, 3):
        yield asyncio.run(f(ones() * k))


@case
def what_can_be_called(jit):
    for function in (wg.sin, nn.Tanh(), wg.Tensor.exp, functools.partial(wg.add, alpha=2)):
        f = jit(function)
        arguments = 2 if isinstance(function, functools.partial) else 1
        for k in (1, 2, 3):
            yield f(*[ones() * k] * arguments)
    yield [str(p) for p in inspect.signature(jit(lambda x, *, k=1: x)).parameters.values()]


@case
def layers_that_are_made_by_calls(jit):
    make = jit(nn.Linear)
    first, second = make(2, 2), make(2, 2)
    yield first is second, type(first).__name__, first.weight, second.weight


@case
def the_source_and_the_signature(jit):
    def f(x, k=2.0):
        return x * k

    g = jit(f)
    yield str(inspect.signature(g)), inspect.getsource(f) == inspect.getsource(g), callable(g)
