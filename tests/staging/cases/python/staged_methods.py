"""Staged methods: one program per object, whatever was copied, derived or patched."""

import copy
import functools

import wengert as wg
from staging.comparing import case, raised
from wengert import nn


def ones():
    return wg.ones(2)


@case
def staged_methods_with_one_name(jit):
    class Held:
        double = jit(lambda self, x: x * 2)
        triple = jit(lambda self, x: x * 3)

    held = Held()
    for _ in range(2):
        yield held.double(ones())
        yield held.triple(ones())


@case
def staged_methods_that_call_those_of_the_base(jit):
    class Base:
        @jit
        def apply(self, x):
            return x * 2

    class Derived(Base):
        def apply(self, x):
            return super().apply(x) + 1

    class Both(Base):
        @jit
        def apply(self, x):
            return super().apply(x) + 5

    for held in (Derived(), Both()):
        for _ in range(3):
            yield raised(held.apply, ones())


@case
def staged_methods_of_a_copied_object(jit):
    class Held:
        scale = 1.0

        @jit
        def apply(self, x):
            return x * self.scale

    first = Held()
    yield first.apply(ones())
    for copying in (copy.copy, copy.deepcopy):
        second = copying(first)
        second.scale = 5.0
        yield second.apply(ones())
        yield first.apply(ones())
        # Programs lie beside the attributes.
        yield sorted(name for name in vars(second) if not name.startswith("_jit_"))


@case
def staged_methods_that_are_patched(jit):
    class Held:
        @jit
        def apply(self, x):
            return x * 2

    held = Held()
    yield held.apply(ones())
    Held.apply = lambda self, x: x * 3
    yield held.apply(ones())
    Held.apply = jit(lambda self, x: x * 4)
    yield held.apply(ones())


@case
def staged_properties_and_partial_methods(jit):
    class Held:
        scale = 2.0

        @property
        @jit
        def value(self):
            return ones() * self.scale

        @jit
        def apply(self, x, k):
            return x * k * self.scale

        tripled = functools.partialmethod(apply, k=3.0)

    held = Held()
    for held.scale in (2.0, 2.0, 5.0):
        yield held.value
        yield raised(held.tripled, ones())


@case
def staged_methods(jit):
    class Held:
        def __init__(self, scale):
            self.scale = scale
            self.weight = wg.full((2,), scale)

        @jit
        def apply(self, x):
            return x * self.scale + self.weight

    first, second = Held(1.0), Held(2.0)
    for held in (first, second, first, second):
        yield held.apply(ones())
    first.scale = 7.0
    yield first.apply(ones())
    yield second.apply(ones())
    first.weight = wg.zeros(2)
    yield first.apply(ones())
    yield Held.apply(second, ones())


@case
def staged_methods_of_modules(jit):
    class Scaled(nn.Module):
        def __init__(self, scale):
            super().__init__()
            self.inner = nn.Linear(2, 2)
            self.scale = scale

        @jit
        def forward(self, x):
            return self.inner(x) * self.scale

    first, second = Scaled(1.0), Scaled(2.0)
    with wg.no_grad():
        for module in (first, second, first, second):
            yield module(ones())
    for _ in range(2):
        first(ones()).sum().backward()
        yield first.inner.weight.grad
    first.inner = nn.Linear(2, 2)
    with wg.no_grad():
        yield first(ones())
        yield first(ones())
    yield list(first.state_dict())


@case
def staged_methods_of_base_classes(jit):
    class Base:
        scale = 1.0

        @jit
        def apply(self, x):
            return x * self.scale

    class Derived(Base):
        scale = 2.0

        def apply(self, x):
            return super().apply(x) + 1

    for held in (Base(), Derived(), Base(), Derived()):
        yield held.apply(ones())


@case
def static_and_class_methods(jit):
    class Held:
        scale = 1.0

        @staticmethod
        @jit
        def double(x):
            return x * 2

        @classmethod
        @jit
        def scaled(cls, x):
            return x * cls.scale

    class Other(Held):
        scale = 9.0

    yield Held.double(ones())
    yield Held().double(ones())
    for Held.scale in (1.0, 3.0):
        yield Held.scaled(ones())
        yield Held().scaled(ones())
        yield Other.scaled(ones())
