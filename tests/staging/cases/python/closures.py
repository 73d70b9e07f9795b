"""What a function reads beside its arguments: closed-over values, globals, containers, iterators,
settings."""

import argparse
import builtins
import collections
import decimal
import enum
import itertools
import logging
import sys
import types

import numpy as np
import wengert as wg
from staging.comparing import case, raised

SCALE = 1.0
INDIRECT = 1.0
WRITTEN = 0


def ones():
    return wg.ones(2)


def indirectly():
    return globals()["INDIRECT"]


@case
def a_counter(jit):
    count = 0

    @jit
    def f(x):
        nonlocal count
        count += 1
        return x * count

    for _ in range(5):
        yield f(ones())
        yield count


@case
def a_counter_that_is_not_used(jit):
    kept = {"calls": 0}

    @jit
    def f(x):
        y = x * 2
        kept["calls"] += 1
        return y

    for _ in range(5):
        yield f(ones())
        yield kept["calls"]


@case
def a_counter_of_an_iterator(jit):
    numbers = itertools.count()
    f = jit(lambda x: x * next(numbers))
    for _ in range(5):
        yield f(ones())


@case
def a_counter_of_a_generator(jit):
    def count():
        n = 0
        while True:
            n += 1
            yield n

    numbers = count()
    f = jit(lambda x: x * next(numbers))
    for _ in range(5):
        yield f(ones())


@case
def an_iterator_over_numbers(jit):
    numbers = iter([1.0, 2.0, 3.0, 4.0, 5.0])
    f = jit(lambda x: x * next(numbers))
    for _ in range(5):
        yield f(ones())


@case
def a_cycle(jit):
    numbers = itertools.cycle([1.0, 2.0, 3.0])
    f = jit(lambda x: x + next(numbers))
    for _ in range(5):
        yield f(ones())


@case
def an_iterator_over_tensors(jit):
    tensors = iter([wg.full((2,), float(i)) for i in range(5)])
    f = jit(lambda x: x * next(tensors))
    for _ in range(5):
        yield f(ones())


@case
def an_iterator_that_ends(jit):
    numbers = iter([1.0, 2.0])
    f = jit(lambda x: x * next(numbers, 9.0))
    for _ in range(5):
        yield f(ones())


@case(traces=3)
def a_global_number(jit):
    global SCALE
    f = jit(lambda x: x * SCALE)
    for i in range(5):
        SCALE = float(i // 2)
        yield f(ones())
    SCALE = 1.0


@case
def a_global_number_read_indirectly(jit):
    global INDIRECT
    f = jit(lambda x: x * indirectly())
    for i in range(5):
        INDIRECT = float(i // 2)
        yield f(ones())
    INDIRECT = 1.0


@case
def a_global_number_that_is_written(jit):
    global WRITTEN

    @jit
    def f(x):
        global WRITTEN
        WRITTEN = 5
        return x * 2

    for _ in range(3):
        WRITTEN = 0
        yield f(ones())
        yield WRITTEN


@case
def a_global_that_is_deleted_and_comes_back(jit):
    names = {"wg": wg, "k": 2.0}
    exec("def f(x):\n    return x * k if 'k' in globals() else x", names)
    f = jit(names["f"])
    yield f(ones())
    del names["k"]
    yield f(ones())
    names["k"] = 3.0
    yield f(ones())


@case
def a_global_that_hides_a_builtin(jit):
    names = {"values": [1.0, 2.0]}
    exec("def f(x):\n    return x * max(values)", names)
    f = jit(names["f"])
    yield f(ones())
    names["max"] = min
    yield f(ones())
    del names["max"]
    yield f(ones())


@case
def a_builtin_that_is_replaced(jit):
    values = [1.0, 2.0]
    f = jit(lambda x: x * max(values))
    yield f(ones())
    kept = builtins.max
    try:
        builtins.max = min
        yield f(ones())
    finally:
        builtins.max = kept
    yield f(ones())


@case
def zeros_of_both_signs(jit):
    zero = [0.0]
    f = jit(lambda x: x * zero[0])
    for zero[0] in (0.0, -0.0, 0.0):
        yield f(ones())
    for zero[0] in (0, False, 0.0, True, 1):
        yield f(wg.ones(2, dtype=wg.int32))
        yield f(wg.ones(2, dtype=wg.bool))


@case
def an_order_that_changes(jit):
    named, numbers = {"a": ones(), "b": ones() * 2}, {0, 8}
    f, g = jit(lambda x: wg.stack([x, *named.values()])), jit(lambda x: wg.stack([x * k for k in numbers]))
    yield f(ones())
    yield g(ones())
    named["a"] = named.pop("a")
    numbers.clear()
    numbers.update((8, 0))
    yield f(ones())
    yield g(ones())


@case
def an_ordered_dictionary_that_is_reordered(jit):
    named = collections.OrderedDict(a=1.0, b=2.0)
    f = jit(lambda x: x * next(iter(named.values())))
    yield f(ones())
    named.move_to_end("a")
    yield f(ones())


@case
def keys_that_are_equal(jit):
    named = {1: 2.0}
    f = jit(lambda x: [x * key * k for key, k in named.items()])
    for key in (1, True, 1.0):
        named.clear()
        named[key] = 2.0
        yield f(wg.ones(2, dtype=wg.bool))


@case
def tuples_that_are_equal(jit):
    held = types.SimpleNamespace()
    f = jit(lambda x: x * held.pair[0])
    for held.pair in ((0.0,), (-0.0,), (0,), (False,)):
        yield f(wg.ones(2, dtype=wg.int32))


@case
def the_next_of_an_iterator(jit):
    draw = itertools.count(1).__next__
    f = jit(lambda x: x * draw())
    for _ in range(4):
        yield f(ones())


@case
def bound_methods_of_a_list(jit):
    values = [1.0, 2.0]
    size, get, has = values.__len__, values.__getitem__, values.__contains__
    f, g, h = jit(lambda x: x * size()), jit(lambda x: x * get(0)), jit(lambda x: x * has(2.0))
    for k in range(4):
        yield f(ones())
        yield g(ones())
        yield h(ones())
        values.append(1.0)
        values[:2] = [float(k), float(k)]


@case
def arguments_of_the_process(jit):
    f, kept = jit(lambda x: x * len(sys.argv[-1])), sys.argv[:]
    try:
        for text in ("a", "ab", "a"):
            sys.argv.append(text)
            yield f(ones())
    finally:
        sys.argv[:] = kept


def settings():
    """A module of settings, with functions that read it."""
    module = types.ModuleType("other_settings_of_a_case")
    module.K = 1.0
    names = {"settings": module}
    exec("def by_name(x):\n    return x * getattr(settings, 'K')", names)
    exec("def read(module):\n    return module.K\ndef by_a_helper(x):\n    return x * read(settings)", names)
    return module, names


@case
def a_module_read_by_name(jit):
    module, names = settings()
    f = jit(names["by_name"])
    for module.K in (1.0, 2.0, 1.0):
        yield f(ones())


@case
def a_module_read_by_a_helper(jit):
    module, names = settings()
    f = jit(names["by_a_helper"])
    for module.K in (1.0, 2.0, 1.0):
        yield f(ones())


@case
def values_of_enumerations(jit):
    class Mode(enum.Enum):
        SLOW = [1.0]  # noqa: RUF012 (a value that changes)

    f = jit(lambda x: x * Mode.SLOW.value[0])
    for Mode.SLOW.value[0] in (1.0, 2.0, 1.0):
        yield f(ones())


@case
def attributes_of_members_of_enumerations(jit):
    class Mode(enum.Enum):
        SLOW = 1

    mode = Mode.SLOW
    f = jit(lambda x: x * getattr(mode, "scale", 1.0))
    yield f(ones())
    Mode.SLOW.scale = 3.0
    yield f(ones())


@case
def a_number_with_an_attribute(jit):
    class Amount(float):
        factor = 1.0

    amount = Amount(2.0)
    f, g = jit(lambda x: x * amount.factor), jit(lambda x, k: x * k.factor)
    for amount.factor in (1.0, 2.0):
        yield f(ones())
        yield g(ones(), amount)


@case
def numbers_that_all_look_alike(jit):
    class Amount(float):
        def __repr__(self):
            return "an amount"

    f = jit(lambda x, k: x * k)
    for k in (2.0, 3.0):
        yield f(ones(), Amount(k))


@case
def the_precision_of_decimal_numbers(jit):
    f = jit(lambda x: x * float(decimal.Decimal(1) / decimal.Decimal(3)))
    for precision in (10, 2, 10):
        with decimal.localcontext() as local:
            local.prec = precision
            yield f(wg.ones(2, dtype=wg.float64))


@case
def a_context_of_decimal_numbers(jit):
    context = decimal.Context(prec=10)
    f = jit(lambda x: x * float(context.divide(decimal.Decimal(1), decimal.Decimal(3))))
    for context.prec in (10, 2, 10):
        yield f(wg.ones(2, dtype=wg.float64))


@case
def errors_of_numpy(jit):
    values = np.array([1.0, 0.0])
    f = jit(lambda x: x * float(np.nan_to_num(1 / values).sum() > 0))
    for what in ("ignore", "raise", "ignore"):
        with np.errstate(divide=what):
            yield raised(f, ones())


@case
def options_of_printing_of_numpy(jit):
    values = np.array([1 / 3])
    f = jit(lambda x: x * len(str(values)))
    for precision in (8, 3, 8):
        with np.printoptions(precision=precision):
            yield f(ones())


@case
def the_level_of_a_logger(jit):
    logger = logging.getLogger("a case of jit")
    f = jit(lambda x: x * logger.level)
    for level in (10, 20, 10):
        logger.setLevel(level)
        yield f(ones())


@case
def options_of_the_command_line(jit):
    options = argparse.Namespace(scale=1.0, layers=[1, 2])
    f = jit(lambda x: x * options.scale * len(options.layers))
    yield f(ones())
    options.scale = 2.0
    yield f(ones())
    options.layers.append(3)
    yield f(ones())
