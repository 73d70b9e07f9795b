"""What happens around the tensors: printing, files, protocols of Python, threads and settings of `jit`."""

import array
import collections
import contextlib
import datetime
import fractions
import functools
import io
import pathlib
import sys
import tempfile
import threading
import types
import weakref

import numpy as np
import wengert as wg
from staging.comparing import case, copied
from wengert import nn


def ones():
    return wg.ones(2)


@case
def printing(jit):
    @jit
    def f(x):
        print("shape", x.shape)
        return x * 2

    for _ in range(3):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            yield f(ones())
        yield out.getvalue()


@case
def options_of_printing(jit):
    f = jit(lambda x: x * len(str(x)))
    for precision in (4, 8, 4):
        wg.set_printoptions(precision=precision)
        yield f(ones() / 3)
    wg.set_printoptions(profile="default")


@case
def a_file_that_is_read(jit):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "scale"
        f = jit(lambda x: x * float(path.read_text()))
        for text in ("1.5", "2.5", "1.5"):
            path.write_text(text)
            yield f(ones())


@case
def a_file_that_is_written(jit):
    file = io.StringIO()

    @jit
    def f(x):
        file.write(f"{x.shape[0]} ")
        return x * 2

    for n in (1, 2, 2):
        yield f(wg.ones(n))
        yield file.getvalue()


@case
def a_cached_property(jit):
    class Held:
        scale = 2.0

        @functools.cached_property
        def doubled(self):
            return self.scale * 2

    held = Held()
    f = jit(lambda x: x * held.doubled)
    yield f(ones())
    held.scale = 5.0
    yield f(ones())
    del held.doubled
    yield f(ones())


@case
def a_function_by_type(jit):
    @functools.singledispatch
    def scale(k):
        return 1.0

    f = jit(lambda x, k: x * scale(k))
    yield f(ones(), 3)
    scale.register(int, lambda k: k * 2.0)
    yield f(ones(), 3)
    yield f(ones(), "text")


@case
def protocols_with_a_state(jit):
    class Held:
        scales = (1.0, 2.0)

        def __iter__(self):
            return iter(self.scales)

        def __contains__(self, k):
            return k in self.scales

        def __int__(self):
            return len(self.scales)

        def __eq__(self, other):
            return self.scales[0] == other

        def __hash__(self):
            return 1

    held = Held()
    functions = [
        jit(lambda x: sum(x * k for k in held)),
        jit(lambda x: x * 2 if 2.0 in held else x),
        jit(lambda x: x * int(held)),
        jit(lambda x: x * 3 if held == 1.0 else x),
    ]
    for held.scales in ((1.0, 2.0), (1.0, 3.0), (2.0,), (1.0, 2.0)):
        for f in functions:
            yield f(ones())


@case
def attributes_that_are_computed(jit):
    class Counting:
        reads = 0

        def __getattribute__(self, name):
            if name == "scale":
                object.__setattr__(self, "reads", object.__getattribute__(self, "reads") + 1)
                return self.reads
            return object.__getattribute__(self, name)

    held = Counting()
    f = jit(lambda x: x * held.scale)
    for _ in range(4):
        yield f(ones())
        yield held.reads


@case
def descriptors_and_metaclasses(jit):
    scales = {"descriptor": 1.0, "class": 1.0}

    class Scale:
        def __get__(self, held, owner):
            return scales["descriptor"]

    class Meta(type):
        @property
        def shared(cls):
            return scales["class"]

    class Held(metaclass=Meta):
        scale = Scale()

    held = Held()
    f, g = jit(lambda x: x * held.scale), jit(lambda x: x * Held.shared)
    for k in (1.0, 2.0, 1.0):
        scales.update({"descriptor": k, "class": k + 1})
        yield f(ones())
        yield g(ones())


@case
def other_containers(jit):
    plain = {"a": 1.0}
    proxy, chain = types.MappingProxyType(plain), collections.ChainMap({}, plain)
    user = collections.UserDict(plain)
    numbers, raw = array.array("d", [1.0]), bytearray(b"\x01")
    view, objects = memoryview(raw), np.array([ones(), 2.0], dtype=object)
    functions = [
        jit(lambda x: x * proxy["a"]),
        jit(lambda x: x * chain["a"]),
        jit(lambda x: x * user["a"]),
        jit(lambda x: x * numbers[0]),
        jit(lambda x: x * raw[0]),
        jit(lambda x: x * view[0]),
        jit(lambda x: x * objects[0] * objects[1]),
    ]
    for k in (1, 2, 1):
        plain["a"] = user["a"] = numbers[0] = float(k)
        raw[0], objects[1] = k, k
        for f in functions:
            yield f(ones())
    objects[0].mul_(5)
    yield functions[-1](ones())


@case
def numbers_of_other_kinds(jit):
    held = types.SimpleNamespace(part=fractions.Fraction(1, 2), time=datetime.timedelta(seconds=1))
    f = jit(lambda x: x * float(held.part) * held.time.total_seconds())
    for n in (1, 2, 1):
        held.part, held.time = fractions.Fraction(n, 2), datetime.timedelta(seconds=n)
        yield f(ones())


@case
def facts_about_arguments(jit):
    f = jit(lambda x: (x * 1, x.requires_grad, x.is_leaf, str(x.device), x.grad, x.dim()))
    x = ones()
    for _ in range(2):
        yield f(x)
        x.add_(1)
    yield f(ones().requires_grad_())[1:4]


@case
def the_version_of_an_argument(jit):
    f = jit(lambda x: x * (1 + x._version))
    x = ones()
    for _ in range(3):
        yield f(x)
        x.add_(1)


@case
def the_address_of_memory(jit):
    seen = {}

    @jit
    def f(x):
        seen.setdefault(x.data_ptr(), len(seen))
        return x * (1 + seen[x.data_ptr()])

    tensors = [ones() for _ in range(3)]
    for x in (*tensors, *tensors):
        yield f(x)


@case
def one_tensor_in_several_places(jit):
    f = jit(lambda tree: (tree["a"].add_(1), tree["b"][0] * 2, tree["a"] is tree["b"][0]))
    for _ in range(2):
        x, y = ones(), ones()
        yield f({"a": x, "b": [x]})
        yield f({"a": x, "b": [y]})
        yield f({"a": x, "b": [x[:]]})


@case(traces=1)
def results_that_are_given_again(jit):
    f = jit(lambda x, y: (y.mul_(2), x + y))
    x, y = ones(), ones()
    for _ in range(4):
        x, y = f(x, y)
        yield x, y


@case
def modules_that_are_changed_inside(jit):
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())

    @jit
    def f(x):
        model.apply(lambda m: m.bias.data.add_(1) if isinstance(m, nn.Linear) else None)
        model.to(wg.float64)
        y = model(x.double()).detach()
        model.float()
        return y

    for _ in range(3):
        yield f(ones())
        yield copied(model.state_dict())


@case(traces=1)
def arguments_that_are_freed(jit):
    f = jit(lambda x: (x * 2).sum())
    for _ in range(3):
        x = ones()
        reference = weakref.ref(x)
        yield f(x)
        del x
        yield reference() is None


@case
def another_thread_that_computes(jit):
    wrong, done = [], threading.Event()

    def work():
        while not done.is_set():
            if (wg.ones(3) * 3).tolist() != [3.0] * 3:
                wrong.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(5):
        f = jit(lambda x: functools.reduce(lambda y, _: (y * 1.01).sin(), range(20), x))
        yield f(wg.ones(3))
        yield f(wg.ones(3))
    done.set()
    thread.join()
    yield wrong


@case
def settings_of_jit(jit):
    f = jit(lambda x, k, mode="a": x * k if mode == "a" else x, static_argnums=1, static_argnames="mode")
    g = jit(lambda x: x.add_(1) * 2)
    h = jit(lambda x: x * 2 if x.sum() > 3 else x, max_traces=1)
    for k in (1, 2, 1, 2):
        yield f(ones(), k)
        yield f(ones(), k, mode="b")
        x = ones() * k
        yield g(x), x
        yield h(ones() * k)


@case
def names_and_locals(jit):
    scale = [2.0]

    @jit
    def f(x):
        k = scale[0]
        return x * locals()["k"] * len(dir(scale))

    for scale[0] in (2.0, 3.0):
        yield f(ones())


@case
def attributes_that_are_deleted_inside(jit):
    held = types.SimpleNamespace()

    @jit
    def f(x):
        k = held.scale
        del held.scale
        return x * k

    for k in (1.0, 2.0, 2.0):
        held.scale = k
        yield f(ones())
        yield hasattr(held, "scale")


@case
def a_profile_stays(jit):

    f = jit(lambda x: x * 2)
    yield f(ones()), sys.getprofile()


@case
def freed_objects_of_closures(jit):

    held = types.SimpleNamespace(weight=ones())
    f = jit(lambda x: x * held.weight)
    yield f(ones())
    reference = weakref.ref(held.weight)
    held.weight = ones() * 2
    yield f(ones())
    yield reference() is None
