"""Objects and classes: attributes, properties, methods, class attributes, patches."""

import abc
import collections
import dataclasses
import enum
import types

import wengert as wg
from staging.comparing import case
from wengert import nn


def ones():
    return wg.ones(2)


class Plain:
    """An object with any attributes."""


@case(traces=3)
def an_attribute(jit):
    held = Plain()
    f = jit(lambda x: x * held.scale)
    for held.scale in (1.0, 2.0, 1.0, 3):
        yield f(ones())


@case(traces=4)
def a_nested_dataclass(jit):
    @dataclasses.dataclass
    class Options:
        rate: float = 0.1
        inner: object = None

    options = Options(0.1, Options(0.2))
    f = jit(lambda x: x * options.rate + options.inner.rate)
    for i in range(5):
        options.inner.rate = i // 2 * 1.0
        yield f(ones())
    options.inner = Options(9.0)
    yield f(ones())


@case(traces=4)
def slots(jit):
    class Slotted:
        __slots__ = ("scale",)

    held = Slotted()
    f = jit(lambda x: x * held.scale)
    for held.scale in (0.0, 1.0, 1.0, 2.0):
        yield f(ones())
    del held.scale
    held.scale = 4.0
    yield f(ones())


@case
def properties(jit):
    class Held:
        def __init__(self):
            self._scale = [1.0]

        @property
        def scale(self):
            return self._scale[0]

        def __getattr__(self, name):
            if name == "missing":
                return self._scale[0]
            raise AttributeError(name)

        def __getitem__(self, key):
            return self._scale[key]

    held = Held()
    functions = [jit(lambda x: x * held.scale), jit(lambda x: x * held.missing), jit(lambda x: x * held[0])]
    for i in range(4):
        held._scale[0] = i // 2 * 1.0
        for f in functions:
            yield f(ones())


@case
def a_property_that_counts(jit):
    class Held:
        reads = 0

        @property
        def scale(self):
            self.reads += 1
            return self.reads

    held = Held()
    f = jit(lambda x: x * held.scale)
    for _ in range(4):
        yield f(ones())
        yield held.reads


@case
def class_attributes(jit):
    class Base:
        scale = 1.0

    class Derived(Base):
        def apply(self, x):
            return x * self.scale

    held = Derived()
    f = jit(lambda x: held.apply(x))
    yield f(ones())
    Base.scale = 2.0
    yield f(ones())
    Derived.scale = 3.0
    yield f(ones())
    held.scale = 4.0
    yield f(ones())
    del held.scale
    yield f(ones())
    del Derived.scale
    yield f(ones())


@case(traces=2)
def class_attributes_of_a_module(jit):
    class Leaky(nn.Module):
        slope = 0.1

        def forward(self, x):
            return nn.functional.leaky_relu(x, self.slope)

    module = Leaky()
    f = jit(lambda x: module(x))
    yield f(-ones())
    Leaky.slope = 0.5
    yield f(-ones())


@case(traces=3)
def a_class_of_settings(jit):
    class Settings:
        rate = 1.0

    f = jit(lambda x: x * Settings.rate)
    for rate in (1.0, 2.0, 3.0):
        Settings.rate = rate
        yield f(ones())


@case
def dictionaries_with_attributes(jit):
    class Settings(dict):
        __getattr__ = dict.__getitem__

    settings = Settings(a=1.0, b=Settings(z=2.0))
    f = jit(lambda x: x * settings.a + settings.b.z + settings["a"])
    yield f(ones())
    settings["a"] = 5.0
    yield f(ones())
    settings.b["z"] = 9.0
    yield f(ones())


@case
def namespaces(jit):
    held = types.SimpleNamespace(a=1.0, inner=types.SimpleNamespace(b=[1.0]))
    f = jit(lambda x: x * held.a + held.inner.b[0])
    yield f(ones())
    held.a = 2.0
    yield f(ones())
    held.inner.b[0] = 7.0
    yield f(ones())
    held.inner = types.SimpleNamespace(b=[4.0])
    yield f(ones())


@case
def attributes_that_are_written(jit):
    held = Plain()

    @jit
    def f(x):
        held.mode = "train"
        held.length = x.shape[0]
        return x * 2

    for i in range(3):
        held.mode = None
        yield f(wg.ones(i % 2 + 1))
        yield held.mode, held.length


@case
def an_average(jit):
    class Meter:
        def __init__(self):
            self.total, self.count = wg.zeros(()), 0

        def update(self, value):
            self.total += value
            self.count += 1

    sizes, sums = Meter(), Meter()

    @jit
    def f(x):
        sizes.update(x.shape[0])
        sums.update(x.sum())
        return x * 2

    for _ in range(4):
        yield f(ones())
        yield sizes.total, sizes.count, sums.total, sums.count


@case(traces=2)
def a_context_manager_that_counts(jit):
    class Depth:
        depth = 0

        def __enter__(self):
            self.depth += 1

        def __exit__(self, *error):
            self.depth -= 1

    held = Depth()

    @jit
    def f(x):
        with held:
            return x * held.depth

    for held.depth in (0, 5, 0):
        yield f(ones())
        yield held.depth


@case
def an_object_that_counts(jit):
    class Meter:
        count = 0

    meter = Meter()

    @jit
    def log(x, meter):
        meter.count += 1
        return x * 2

    for _ in range(4):
        yield log(ones(), meter)
        yield meter.count


@case
def a_dataclass_that_counts(jit):
    @dataclasses.dataclass
    class Batch:
        x: object
        count: int = 0

    @jit
    def use(batch):
        batch.count += 1
        return batch.x * batch.count

    batch = Batch(ones())
    for _ in range(4):
        yield use(batch)
        yield batch
    for i in range(3):
        yield use(Batch(wg.full((2,), float(i)), i))


@case
def a_frozen_dataclass(jit):
    @dataclasses.dataclass(frozen=True)
    class Options:
        scale: float

    use = jit(lambda x, options: x * options.scale)
    for scale in (1.0, 2.0, 1.0):
        yield use(ones(), Options(scale))


@case
def a_frozen_dataclass_with_something_that_changes(jit):
    @dataclasses.dataclass(frozen=True)
    class Options:
        scales: list

    use = jit(lambda x, options: x * options.scales[0])
    options = Options([1.0])
    for scale in (1.0, 2.0, 1.0):
        options.scales[0] = scale
        yield use(ones(), options)


@case
def enumerations(jit):
    class Mode(enum.Enum):
        SLOW = 1.0
        FAST = 2.0

    class Level(enum.IntEnum):
        LOW = 1
        HIGH = 2

    use = jit(lambda x, mode: x * mode.value)
    for mode in (Mode.SLOW, Mode.FAST, Mode.SLOW, Level.LOW, Level.HIGH, Level.LOW):
        yield use(ones(), mode)


@case
def named_tuples(jit):
    first = collections.namedtuple("first", "a b")
    second = collections.namedtuple("second", "b a")
    use = jit(lambda pair: first(pair.a * 2, pair.b))
    x = ones()
    for pair in (first(x, x * 3), second(x, x * 3), first(x, 3), second(3, x), first(x, x * 3)):
        yield list(use(pair))
        yield type(use(pair)).__name__


@case
def classes_that_are_registered(jit):
    class Scalable(abc.ABC):
        @abc.abstractmethod
        def scale(self): ...

    class Held:
        pass

    held = Held()
    f = jit(lambda x: x * 2 if isinstance(held, Scalable) else x)
    yield f(ones())
    Scalable.register(Held)
    yield f(ones())


@case
def the_name_of_a_function(jit):
    def inner():
        pass

    f = jit(lambda x: x * len(inner.__name__))
    for inner.__name__ in ("inner", "another"):
        yield f(ones())


@case
def the_name_and_the_text_of_a_class(jit):
    class Held:
        """A text."""

    f, g = jit(lambda x: x * len(Held.__name__)), jit(lambda x: x * len(Held.__doc__))
    yield f(ones())
    yield g(ones())
    Held.__name__, Held.__doc__ = "Another", "Another text."
    yield f(ones())
    yield g(ones())


@case
def a_dictionary_of_attributes_that_is_updated(jit):
    held = types.SimpleNamespace(scale=1.0)
    f = jit(lambda x: x * held.scale)
    yield f(ones())
    held.__dict__.update(scale=2.0)
    yield f(ones())
    vars(held)["scale"] = 3.0
    yield f(ones())


@case
def a_dictionary_of_attributes_that_is_replaced(jit):
    class Held:
        scale = 5.0

    held = Held()
    held.scale = 1.0
    f = jit(lambda x: x * held.scale)
    yield f(ones())
    held.__dict__ = {"scale": 2.0}
    yield f(ones())
    held.__dict__ = {}
    yield f(ones())
