"""Classes and their methods: staged, patched, inherited, called and counted."""

import functools
import typing
import weakref

import wengert as wg
from staging.comparing import case
from wengert import nn


def ones():
    return wg.ones(2)


@case
def a_class_that_counts(jit):
    class Counting:
        calls = 0

        def apply(self, x):
            Counting.calls += 1
            return x * Counting.calls

    held = Counting()
    f = jit(lambda x: held.apply(x))
    for _ in range(4):
        yield f(ones())
        yield Counting.calls


@case
def methods_that_are_patched(jit):
    class Held:
        def apply(self, x):
            return x * 2

    held = Held()
    f = jit(lambda x: held.apply(x))
    yield f(ones())
    yield f(ones())
    Held.apply = lambda self, x: x * 3
    yield f(ones())
    held.apply = lambda x: x * 4
    yield f(ones())
    del held.apply
    yield f(ones())


@case
def a_class_that_changes(jit):
    class First(nn.Module):
        def forward(self, x):
            return x * 2

    class Second(nn.Module):
        def forward(self, x):
            return x * 3

    module = First()
    f = jit(lambda x: module(x))
    yield f(ones())
    module.__class__ = Second
    yield f(ones())
    First.forward = Second.forward
    module = First()
    yield f(ones())


@case
def the_bases_of_a_class_change(jit):
    class First:
        scale = 1.0

    class Second:
        scale = 5.0

    class Held(First):
        pass

    held = Held()
    f = jit(lambda x: x * held.scale)
    yield f(ones())
    Held.__bases__ = (Second,)
    yield f(ones())


@case
def objects_that_are_called(jit):
    class Scaling:
        def __init__(self, scale):
            self.scale = scale

        def __call__(self, x):
            return x * self.scale

    held = {"s": Scaling(2.0)}
    f, g = jit(lambda x: held["s"](x)), jit(Scaling(2.0))
    yield f(ones())
    yield g(ones())
    held["s"].scale = 3.0
    yield f(ones())
    held["s"] = Scaling(4.0)
    yield f(ones())
    Scaling.__call__ = lambda self, x: x
    yield f(ones())
    yield g(ones())


@case
def operators_of_objects(jit):
    class Amount:
        def __init__(self, value):
            self.value = value

        def __rmul__(self, x):
            return x * self.value

        def __bool__(self):
            return self.value > 1

    amount = Amount(1.0)
    f = jit(lambda x: wg.sin(x) if amount else amount.__rmul__(x))
    for amount.value in (1.0, 2.0, 0.5):
        yield f(ones())


@case
def the_class_of_a_layer_changes(jit):
    class Doubled(nn.Linear):
        def forward(self, x):
            return x * 2

    layer = nn.Linear(2, 2)
    f = jit(lambda x: layer(x).detach())
    yield f(ones())
    layer.__class__ = Doubled
    yield f(ones())
    layer.__class__ = nn.Linear
    yield f(ones())


def patched(name, place, attribute, other):
    """A case: a layer, while the library has another function somewhere."""

    def body(jit):
        layer = nn.Linear(2, 2)
        f = jit(lambda x: layer(x).detach())
        kept = getattr(place, attribute)
        yield f(ones())
        try:
            setattr(place, attribute, other)
            yield f(ones())
        finally:
            setattr(place, attribute, kept)
        yield f(ones())

    body.__name__ = name
    case(body)


patched("a_patched_function_that_a_layer_calls", nn.functional, "linear", lambda x, *params: x * 2)
patched("a_patched_call_of_all_modules", nn.Module, "__call__", lambda self, x: x * 3)
patched("a_patched_forward", nn.Linear, "forward", lambda self, x: x * 4)


def stepping(jit):
    """A staged step, called once, and a function that counts its calls."""
    weight, calls = wg.ones(2, requires_grad=True), []
    optimizer = wg.optim.SGD([weight], lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()

    def count(*args):
        calls.append(1)

    step(ones())
    return weight, optimizer, step, count, calls


@case
def a_patched_step_of_all_optimizers(jit):
    weight, _, step, count, calls = stepping(jit)
    kept = wg.optim.SGD.step
    try:
        wg.optim.SGD.step = count
        step(ones())
        yield weight, calls
    finally:
        wg.optim.SGD.step = kept
    step(ones())
    yield weight, calls


@case
def a_patched_step_of_one_optimizer(jit):
    weight, optimizer, step, count, calls = stepping(jit)
    optimizer.step = count
    step(ones())
    yield weight, calls
    del optimizer.step
    step(ones())
    yield weight, calls


@case
def a_patched_zero_grad_of_one_optimizer(jit):
    weight, optimizer, step, count, calls = stepping(jit)
    optimizer.zero_grad = count
    step(ones())
    yield weight, weight.grad, calls


@case
def parameters_that_are_added_to_a_group(jit):
    weight, other = wg.ones(2, requires_grad=True), wg.ones(2, requires_grad=True)
    optimizer = wg.optim.SGD([weight], lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        (weight * other * x).sum().backward()
        optimizer.step()

    step(ones())
    step(ones())
    yield weight, other, other.grad
    optimizer.param_groups[0]["params"].append(other)
    for _ in range(2):
        step(ones())
        yield weight, other, other.grad


@case
def states_that_are_assigned(jit):
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    f = jit(lambda x: model(x).detach())
    x = wg.randn(3, 2)
    yield f(x)
    state = {name: p.clone() for name, p in model.state_dict().items()}
    model.load_state_dict(state, assign=True)
    yield f(x)
    state["0.weight"].mul_(2)
    yield f(x)
    yield model.state_dict()["1.running_mean"]


@case
def methods_that_come_later(jit):
    class Held:
        scale = 1.0

    held = Held()
    f = jit(lambda x: x * held.scale * getattr(held, "more", 1.0))
    yield f(ones())
    Held.__getattr__ = lambda self, name: 7.0
    yield f(ones())
    Held.scale = property(lambda self: 3.0)
    yield f(ones())


@case
def slots_of_a_derived_class(jit):
    class Base:
        __slots__ = ("scale",)

    class Derived(Base):
        __slots__ = ("more",)

    held = Derived()
    held.more = 1.0
    f = jit(lambda x: x * held.scale * held.more)
    for held.scale in (1.0, 2.0, 1.0):
        yield f(ones())
    held.more = 3.0
    yield f(ones())


@case
def a_sequence_by_its_methods(jit):
    class Scales:
        def __init__(self):
            self.items = [1.0, 2.0]

        def __getitem__(self, i):
            return self.items[i]

        def __len__(self):
            return len(self.items)

    scales = Scales()
    f, g = (
        jit(lambda x: sum(x * k for k in scales) + (2.0 in scales)),
        jit(lambda x: [x * k for k in reversed(scales)]),
    )
    for items in ([1.0, 2.0], [1.0, 2.0, 3.0], [5.0]):
        scales.items[:] = items
        yield f(ones())
        yield g(ones())


@case
def an_order_by_one_method(jit):
    @functools.total_ordering
    class Level:
        def __init__(self, value):
            self.value = value

        def __lt__(self, other):
            return self.value < other.value

        def __eq__(self, other):
            return self.value == other.value

        __hash__ = None

    low, high = Level(1), Level(2)
    f = jit(lambda x: x * 2 if low < high else x * 3 if low >= high else x)
    for low.value in (1, 3, 2, 1):
        yield f(ones())


@case
def cached_tensors_of_an_object(jit):
    class Held:
        scale = 1.0

        @functools.cached_property
        def table(self):
            return ones() * self.scale

        @functools.cache  # noqa: B019 (freed with the case)
        def ramp(self):
            return ones() * self.scale

    held = Held()
    f = jit(lambda x: x * held.table + held.ramp())
    yield f(ones())
    held.scale = 2.0
    yield f(ones())
    held.table.mul_(3)
    yield f(ones())


@case
def tuples_with_names_and_types(jit):
    class Scaled(typing.NamedTuple):
        x: object
        scale: float = 1.0

    f = jit(lambda given: Scaled(given.x * given.scale, given.scale))
    for scale in (1.0, 2.0, 1.0):
        yield list(f(Scaled(ones(), scale)))


@case
def dictionaries_of_weak_references(jit):
    held = wg.nn.Identity()
    held.scale = 1.0
    keys, values = weakref.WeakKeyDictionary({held: 2.0}), weakref.WeakValueDictionary({"held": held})
    f = jit(lambda x: x * len(keys))
    g = jit(lambda x: x * (values["held"].scale if "held" in values else 9.0))
    yield f(ones())
    yield g(ones())
    held.scale = 2.0
    yield g(ones())


@case
def parameters_put_in_other_ways(jit):
    layer = nn.Linear(2, 2)
    f = jit(lambda x: layer(x).detach())
    yield f(ones())
    del layer.bias
    layer.register_parameter("bias", None)
    yield f(ones())
    layer.bias = nn.Parameter(ones())
    yield f(ones())
    kept = layer.weight
    layer.weight = nn.Parameter(kept.detach() * 2)
    yield f(ones())
    layer._parameters["weight"] = kept
    yield f(ones())
