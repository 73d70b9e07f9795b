"""What a function returns: containers, objects, arguments, constants, and what is done with them
afterwards."""

import collections
import dataclasses

import numpy as np
import wengert as wg
from staging.comparing import calls, case, copied
from wengert import distributions, nn

Pair = collections.namedtuple("Pair", "first second")


def ones():
    return wg.ones(2)


def scaled():
    return [wg.ones(2) * k for k in (1.0, 2.0, 3.0)]


def nothing(x):
    x * 2


calls("a_dictionary", lambda x: {"z": x, "a": x * 2, 3: None, "s": "t", "n": x.shape[0]}, scaled, traces=1)
calls("nested_containers", lambda x: [{"a": [x * 2, {"q": (x,)}]}, ((), [], {})], scaled, traces=1)
calls("a_named_tuple", lambda x: Pair(x * 2, [x]), scaled)
calls("a_named_tuple_of_the_library", lambda x: wg.max(x, 0), scaled, traces=1)
calls("numbers", lambda x: (x.shape[0], x.ndim, float(x.shape[0]), str(x.dtype), x.dtype), scaled, traces=1)
calls("a_shape", lambda x: x.shape, scaled, traces=1)
calls("nothing", nothing, scaled, traces=1)
calls("a_set", lambda x: (x, {1, 2}), scaled)
calls("a_slice_and_a_range", lambda x: (slice(1, 2), range(3), x), scaled)
calls("an_array", lambda x: (x, np.zeros(2)), scaled)
calls("constants", lambda x: (wg.zeros(2), wg.tensor([1.0, 2.0]), x), scaled, traces=1)
calls("empty", lambda x: (x[:0], wg.empty(0, 3), x.sum()), scaled, traces=1)
calls("types", lambda x: (type(x), wg.Tensor, len), scaled)
calls("a_boolean_of_a_tensor", lambda x: bool(x.sum() > 3), scaled, traces=2)


@case(traces=1)
def the_same_tensor_twice(jit):
    def twice(x):
        y = x * 2
        return y, y, y[0], [y]

    f = jit(twice)
    for _ in range(3):
        first, second, third, fourth = f(ones())
        yield first is second
        first.add_(1)
        yield second, third, fourth
        third.add_(7)
        yield first, second, fourth


@case(traces=1)
def results_that_are_kept(jit):
    f, kept = jit(lambda x: (x * 2).sin()), []
    for i in range(4):
        kept.append(f(wg.full((3,), float(i))))
    yield kept


@case
def constants_that_are_written_afterwards(jit):
    for f in (
        jit(lambda x: wg.zeros(2)),
        jit(lambda x: wg.tensor([1.0, 2.0])),
        jit(lambda x: wg.arange(2.0)),
    ):
        for _ in range(3):
            result = f(ones())
            yield result
            result.add_(1)


@case
def constants_that_are_written_inside(jit):
    def of_a_list(x):
        constant = wg.tensor([1.0, 2.0])
        constant[0] = x.sum()
        constant += 1
        return constant

    def of_an_array(x):
        constant = wg.from_numpy(np.ones(2, np.float32))
        constant += x
        return constant

    def a_mask(x):
        mask = wg.tensor([True, True])
        mask &= x > 1
        return mask

    def a_total(x):
        total = wg.tensor(0.0)
        for _ in range(2):
            total += x.sum()
        return total / 2

    for f in (jit(of_a_list), jit(of_an_array), jit(a_mask), jit(a_total)):
        for x in scaled():
            yield f(x)


@case(traces=1)
def arguments_that_are_returned(jit):
    f = jit(lambda x, y: (x, y.add_(1), x + y))
    x, y = ones(), wg.zeros(2)
    for _ in range(3):
        first, second, total = f(x, y)
        yield first is x, second is y, total
        first.add_(1)
        second.add_(5)
        yield x, y


@case
def views_of_arguments(jit):
    f = jit(lambda x: x.reshape(2, 2))
    for x in (wg.arange(4.0), wg.arange(4.0), wg.arange(8.0)[::2], wg.arange(4.0).reshape(2, 2).t()):
        result = f(x)
        yield result
        result.add_(1)
        yield x


@case
def the_base_of_a_view(jit):
    x = wg.ones(4)
    f = jit(lambda x: x.view(2, 2))
    f(x)
    view = f(x)
    yield view
    view.mul_(3)
    yield x


@case(traces=1)
def views_of_what_is_closed_over(jit):
    weight = wg.arange(6.0)

    @jit
    def f(x):
        weight.add_(x)
        return weight[1:3]

    for _ in range(3):
        result = f(wg.ones(6))
        yield result
        result.add_(10)
        yield weight


@case
def parameters_that_are_returned(jit):
    layer, weight = nn.Linear(2, 2), wg.ones(2, requires_grad=True)
    f, g = jit(lambda x: (layer.weight, layer.bias.detach(), layer(x).detach())), jit(lambda x: weight)
    for _ in range(3):
        first, second, third = f(ones())
        yield first is layer.weight, first, second, third
        second.add_(1)
        yield layer.bias
        yield g(ones()) is weight
    (g(ones()) * 2).sum().backward()
    yield weight.grad


@case
def a_target_given_by_out(jit):
    target = wg.zeros(2)
    f = jit(lambda x: wg.add(x, 1, out=target))
    for i in range(3):
        result = f(wg.full((2,), float(i)))
        yield result is target
        result.add_(1)
        yield target


@case
def containers_that_are_the_functions_own(jit):
    settings, numbers = {"a": 1}, [1]
    f = jit(lambda x: (x, settings, numbers))
    for _ in range(3):
        _, first, second = f(ones())
        yield first is settings, second is numbers
        numbers.append(2)
        yield f(ones())[2]


@case
def containers_that_are_changed_afterwards(jit):
    nested, several = (
        jit(lambda x: [{"a": [x * 2, {"q": (x,)}]}]),
        jit(lambda x: (x, {1, 2}, [1], np.zeros(2))),
    )
    for _ in range(3):
        first, second = nested(ones()), several(ones())
        yield first, second
        first[0]["a"].append(1)
        first[0]["z"] = 1
        second[1].add(9)
        second[2].append(3)
        second[3][0] = 5


@case
def generators(jit):
    def yielding(x):
        for i in range(3):
            yield x * i

    for f in (
        jit(yielding),
        jit(lambda x: (x * i for i in range(3))),
        jit(lambda x: map(lambda i: x * i, [1, 2])),  # noqa: C417
        jit(lambda x: zip([x], [x * 2])),
    ):
        for x in scaled():
            yield list(f(x))


@case
def a_generator_that_writes_when_it_is_read(jit):
    weight = wg.zeros(2)

    @jit
    def f(x):
        for i in range(3):
            weight.add_(x * i)
            yield weight * 1

    for x in scaled():
        results = f(x)
        yield weight
        yield list(results)


@case
def objects(jit):
    class Held:
        def __init__(self, value):
            self.value = value

    @dataclasses.dataclass
    class Record:
        value: object

    f, g, same = jit(lambda x: Held(x * 2)), jit(lambda x: Record(x * 2)), jit(lambda x: Held(x))
    for x in scaled():
        yield f(x).value, g(x), same(x).value


@case
def functions(jit):
    f, g = jit(lambda x: lambda y: y * x), jit(lambda x: nn.Linear(2, 2).forward)
    for x in scaled():
        yield f(x)(ones())
        yield g(x)(ones()).detach()


@case
def distributions_of_results(jit):
    f = jit(lambda x: distributions.Normal(x * 2, 1.0))
    g = jit(lambda x: distributions.Categorical(logits=x))
    for x in scaled():
        yield f(x).mean
        yield g(wg.cat([x, ones()])).logits


@case
def tensors_with_attributes(jit):
    @jit
    def f(x):
        y = nn.Parameter(x * 2, requires_grad=False)
        y.tag = "a tag"
        return y

    for x in scaled():
        y = f(x)
        yield y, getattr(y, "tag", None)


@case(traces=1)
def states_of_modules(jit):
    model = nn.Linear(2, 2)

    @jit
    def f(x):
        with wg.no_grad():
            model.weight.add_(x)
        return model.state_dict()

    for x in scaled():
        yield copied(f(x))
        yield type(f(x)).__name__


@case(traces=1)
def a_tuple_of_modules(jit):
    model = nn.Linear(2, 2)
    f = jit(lambda x: (model, x * 2))
    for x in scaled():
        found, y = f(x)
        yield found is model, y


@case
def identity(jit):
    weight, table = ones(), {}
    table[weight] = 5.0
    closed, looked = jit(lambda x: x is weight), jit(lambda x: x * table.get(x, 1.0))
    numbered = jit(lambda x: x * (1.0 if id(x) == id(weight) else 2.0))
    for x in (weight, ones(), weight):
        yield closed(x)
        yield looked(x)
        yield numbered(x)


@case
def a_parameter_found_by_its_name(jit):
    layer = nn.Linear(2, 2)
    f = jit(lambda name, x: next(p for n, p in layer.named_parameters() if n == name).detach() * x)
    for name in ("weight", "bias", "weight"):
        yield f(name, ones())


@case
def packed_sequences_in_and_out(jit):
    pack = nn.utils.rnn.pack_padded_sequence
    f = jit(lambda packed: packed._replace(data=packed.data * 2))
    for k in (1, 2, 3):
        yield list(f(pack(wg.ones(3, 2, 1) * k, wg.tensor([3, 2]))))


@case(traces=1)
def several_outputs_of_linear_algebra(jit):
    f = jit(lambda x: (wg.linalg.svd(x), wg.linalg.eigh(x), wg.sort(x), wg.linalg.qr(x).Q))
    for k in (1.0, 2.0):
        yield f(wg.eye(2) * k)


@case
def an_argument_that_is_overwritten_by_its_own_result(jit):
    f = jit(lambda x: x.copy_(x * 2 + 1))
    x = ones()
    for _ in range(4):
        yield f(x) is x
        yield x
