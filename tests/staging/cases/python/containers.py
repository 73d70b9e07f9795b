"""Containers, arrays and settings of Python that a function reads beside its arguments."""

import collections
import contextvars
import functools
import operator
import os
import sys
import threading
import types
import weakref

import numpy as np
import wengert as wg
from staging.comparing import case

SCALE = 1.0
INDIRECT = 1.0
WRITTEN = 0


def ones():
    return wg.ones(2)


@case(traces=3)
def numbers_in_containers(jit):
    nested = ([1.0], {"z": [2.0]})
    f = jit(lambda x: x * nested[0][0] + nested[1]["z"][0])
    yield f(ones())
    nested[0][0] = 4.0
    yield f(ones())
    nested[1]["z"][0] = 5.0
    yield f(ones())


@case
def lengths(jit):
    values = [1, 2]
    f = jit(lambda x: x * len(values))
    yield f(ones())
    values.append(1)
    yield f(ones())

    class Sized:
        size = 2

        def __len__(self):
            return self.size

    sized = Sized()
    f = jit(lambda x: x * len(sized))
    yield f(ones())
    sized.size = 3
    yield f(ones())


@case
def containers_of_the_library(jit):
    defaults, numbers, counts = collections.defaultdict(lambda: 1.0), {1}, collections.Counter()
    f = jit(lambda x: x * defaults["a"] + len(numbers) + counts["q"])
    yield f(ones())
    defaults["a"] = 3.0
    yield f(ones())
    numbers.add(2)
    yield f(ones())
    counts["q"] += 1
    yield f(ones())


@case
def a_deque_that_turns(jit):
    inside, outside = collections.deque([1.0, 2.0, 3.0]), collections.deque([1.0, 2.0, 3.0])

    @jit
    def turns(x):
        inside.rotate(1)
        return x * inside[0]

    read = jit(lambda x: x * outside[0])
    for _ in range(5):
        yield turns(ones())
        yield list(inside)
        yield read(ones())
        outside.rotate(1)


@case(traces=2)
def a_mode_by_name(jit):
    mode = ["double"]
    f = jit(lambda x: x * 2 if mode[0] == "double" else x * 3)
    for mode[0] in ("double", "triple", "double"):
        yield f(ones())


@case(traces=3)
def a_list_of_functions(jit):
    functions = [wg.sin, wg.cos]
    f = jit(lambda x: functools.reduce(lambda y, g: g(y), functions, x))
    yield f(ones())
    functions.append(wg.exp)
    yield f(ones())
    functions[0] = wg.tan
    yield f(ones())


@case
def a_list_in_a_sum(jit):
    scales = [1.0]
    mapped, summed = (
        jit(lambda x: sum(map(lambda k: x * k, scales))),  # noqa: C417
        jit(lambda x: sum(x * k for k in scales)),
    )
    for change in (lambda: None, lambda: scales.append(9.0), lambda: scales.reverse(), scales.pop):
        change()
        yield mapped(ones())
        yield summed(ones())


@case(traces=3)
def a_dictionary_in_a_sum(jit):
    scales = {"a": 1.0}
    f = jit(lambda x: sum(x * k for _, k in scales.items()))
    yield f(ones())
    scales["a"] = 3.0
    yield f(ones())
    scales["b"] = 1.0
    yield f(ones())


@case
def a_sorted_list(jit):
    scales = [1.0]

    def first(x):
        return sorted([x], key=lambda t: 0)[0] * max(scales)

    f = jit(lambda x: first(x))
    yield f(ones())
    scales[0] = 2.0
    yield f(ones())
    scales.append(9.0)
    yield f(ones())


@case
def lists_of_tensors_that_grow(jit):
    kept = [ones()]

    @jit
    def f(x):
        kept.append(x * kept[-1] * 2)
        return kept[-1]

    for _ in range(5):
        yield f(ones())
        yield kept


@case
def a_cache_of_a_tensor(jit):
    cache = {}

    @jit
    def f(x):
        if "mask" not in cache:
            cache["mask"] = wg.rand(2)
        return x * cache["mask"]

    for _ in range(4):
        yield f(ones())
        yield cache


@case
def a_cached_function(jit):
    scale = [1.0]

    @functools.lru_cache
    def ramp(n):
        return wg.arange(n) * scale[0]

    f = jit(lambda x: x * ramp(2))
    yield f(ones())
    yield f(ones() * 2)
    ramp.cache_clear()
    scale[0] = 5.0
    yield f(ones())


@case(traces=1)
def a_tensor_that_is_written(jit):
    weight = ones()
    f = jit(lambda x: x * weight)
    for _ in range(4):
        yield f(ones())
        weight.mul_(2)


@case
def a_tensor_that_is_replaced(jit):
    weight = ones()

    @jit
    def f(x):
        return x * weight

    yield f(ones())
    weight = wg.full((2,), 3.0)
    yield f(ones())
    weight = 2.0
    yield f(ones())
    weight = wg.ones(2, dtype=wg.float64)
    yield f(ones())


@case
def a_tensor_with_an_attribute(jit):
    weight = wg.nn.Parameter(ones(), requires_grad=False)
    weight.scale = 2.0
    f = jit(lambda x: x * weight.scale)
    yield f(ones())
    weight.scale = 3.0
    yield f(ones())


@case
def arrays_of_numpy(jit):
    array = np.ones(2, np.float32)
    functions = [
        jit(lambda x: x * wg.tensor(array)),
        jit(lambda x: x * wg.from_numpy(array)),
        jit(lambda x: x * float(array[0])),
        jit(lambda x: x * array[0]),
        jit(lambda x: x * array.mean()),
        jit(lambda x: x[array.astype(int) % 2]),
    ]
    for array[0] in (1, 5, 6):
        for f in functions:
            yield f(ones())


@case
def numbers_of_numpy(jit):
    scale = np.float64(2)
    f = jit(lambda x: x * scale)
    yield f(ones())
    scale = np.float64(3)
    yield f(ones())


@case(traces=2)
def memory_shared_with_numpy(jit):
    array, written = np.ones(2, np.float32), np.zeros(2, np.float32)
    weight, target = wg.from_numpy(array), wg.from_numpy(written)
    f, g = jit(lambda x: x * weight), jit(lambda x: target.add_(x))
    yield f(ones())
    array[:] = 5
    yield f(ones())
    for _ in range(3):
        g(ones())
        yield written


@case
def a_list_that_makes_a_tensor(jit):
    values = [1.0, 2.0]
    f = jit(lambda x: x * wg.tensor(values))
    yield f(ones())
    values[0] = 5
    yield f(ones())


@case
def the_environment(jit):
    f = jit(lambda x: x * int(os.environ.get("A_CASE_OF_JIT", "1")))
    yield f(ones())
    os.environ["A_CASE_OF_JIT"] = "3"
    yield f(ones())
    del os.environ["A_CASE_OF_JIT"]
    yield f(ones())


@case
def a_module_of_settings(jit):
    settings = types.ModuleType("settings_of_a_case")
    exec("K = 1.0\ndef scaled(x):\n    return x * K", settings.__dict__)
    sys.modules["settings_of_a_case"] = settings

    def imports(x):
        import settings_of_a_case

        return x * settings_of_a_case.K

    def imports_a_name(x):
        from settings_of_a_case import K

        return x * K

    for f in (
        jit(lambda x: settings.scaled(x)),
        jit(lambda x: x * settings.K),
        jit(imports),
        jit(imports_a_name),
    ):
        for settings.K in (1.0, 2.0):
            yield f(ones())
    del sys.modules["settings_of_a_case"]


@case
def context_variables(jit):
    variable = contextvars.ContextVar("variable", default=1.0)
    f = jit(lambda x: x * variable.get())
    yield f(ones())
    variable.set(3.0)
    yield f(ones())


@case
def values_of_a_thread(jit):
    local = threading.local()
    local.scale = 1.0
    f = jit(lambda x: x * local.scale)
    yield f(ones())
    local.scale = 3.0
    yield f(ones())


@case
def weak_references(jit):
    class Held:
        scale = 1.0

    held = Held()
    reference = weakref.ref(held)
    f = jit(lambda x: x * reference().scale)
    yield f(ones())
    held.scale = 3.0
    yield f(ones())


@case
def getters(jit):
    held = types.SimpleNamespace(scale=1.0)
    get = operator.attrgetter("scale")
    f, g = jit(lambda x: x * get(held)), jit(lambda x: x * vars(held)["scale"])
    h = jit(lambda x: x * sum(held.__dict__.values()) * getattr(held, "".join(["sca", "le"])))
    for held.scale in (1.0, 3.0):
        yield f(ones())
        yield g(ones())
        yield h(ones())
    held.other = 5.0
    yield h(ones())


@case
def lambdas_of_a_loop(jit):
    bound = [jit(lambda x, i=i: x * i) for i in range(3)]
    shared = [jit(lambda x: x * i) for i in range(3)]  # noqa: B023 (all see the last)
    yield [f(ones()) for f in bound]
    yield [f(ones()) for f in shared]


@case
def a_polynomial_of_numpy(jit):
    polynomial = np.poly1d([1.0, 2.0])
    f = jit(lambda x: x * float(polynomial(2.0)))
    yield f(ones())
    polynomial[0] = 5.0
    yield f(ones())


@case
def a_masked_array_of_numpy(jit):
    masked = np.ma.array([1.0, 2.0], mask=[False, False])
    f = jit(lambda x: x * float(masked.sum()))
    yield f(ones())
    masked[0] = np.ma.masked
    yield f(ones())


@case
def one_object_under_two_names(jit):
    first = [1.0]
    second = first
    f = jit(lambda x: x * first[0] + second[0])
    yield f(ones())
    second = [5.0]
    yield f(ones())
    first[0] = 3.0
    yield f(ones())
