"""What is given to a function: numbers, texts, containers and objects, and what it does to them."""

import collections
import enum

import numpy as np
import wengert as wg
from staging.comparing import calls, case, copied, raised
from wengert import nn
from wengert.nn import functional as F

NUMBERS = [0.0, -0.0, 0, False, True, 1, 1.0, float("nan"), float("nan"), 1 + 0j, complex(0, -0.0)]
SCALARS = [np.float32, np.float64, np.int64, np.int32, np.bool_]
DTYPES = [wg.uint8, wg.int8, wg.int16, wg.int32, wg.int64, wg.bfloat16, wg.float16, wg.float64, wg.complex64]
KINDS = [wg.tensor(1.0), wg.tensor(2, dtype=wg.float64), wg.ones(2, dtype=wg.float16), wg.tensor(3)]
SLICES = [
    slice(0, 2),
    slice(1, 4),
    slice(None, None, 2),
    0,
    (0,),
    ...,
    None,
    [0, 1],
    [1, 2],
    wg.tensor([0, 1]),
]


def ones():
    return wg.ones(2)


calls("numbers", lambda x, k: x * k, lambda: [(ones(), k) for k in NUMBERS])
calls(
    "numbers_with_integers",
    lambda x, k: x * k,
    lambda: [(wg.ones(2, dtype=wg.int32), k) for k in NUMBERS[:7]],
)
calls("numbers_of_numpy", lambda x, k: x * k, lambda: [(ones(), k(n)) for k in SCALARS for n in (1, 2)])
calls(
    "same_numbers_are_one_program",
    lambda x, k: x * k,
    lambda: [(ones(), k) for k in (2.0, 3.0, 2.0)],
    traces=2,
)
calls("a_recursion", lambda x, n: double(x, n), lambda: [(ones(), n) for n in (3, 4, 3)], traces=2)
calls(
    "dtypes",
    lambda x: (x + x, x * x, x.sum(), x > 0),
    lambda: [wg.ones(3).to(d) for d in DTYPES for _ in "ab"],
)
calls(
    "shapes",
    lambda x: (x * 2, x.sum(), x.reshape(-1)),
    lambda: [wg.ones(*s) for s in ((), (0,), (0, 3), (1,), (2, 2))],
)
calls("zero_d", lambda x: (x * 2, x.sum()), lambda: [wg.tensor(v) for v in (1.0, 2.0, 3, True, 1 + 2j)])
calls("promotion", lambda x, y: x * y, lambda: [(x, y) for x in KINDS for y in (*KINDS, 2, 2.0, 1j)])
calls(
    "by_keyword",
    lambda x, a, b=1, **rest: x * a + b + sum(rest.values()),
    lambda: [(ones(), k) for k in (1, 2)],
)
calls("slices", lambda x, s: x[s], lambda: [(wg.arange(6.0), s) for s in SLICES])
calls("masks", lambda x, mask: x[mask], lambda: [(wg.arange(6.0), wg.arange(6.0) > k) for k in (2, 4, 9)])
calls(
    "sets_and_ranges",
    lambda x, s: x * sum(s),
    lambda: [(ones(), s) for s in ({1, 2}, {3}, frozenset([5]), range(4))],
)
calls("functions", lambda x, f: f(x), lambda: [(ones(), f) for f in (wg.sin, wg.cos, wg.sin)])
calls("functions_that_close", lambda x, f: f(x), lambda: [(ones(), lambda x, k=k: x * k) for k in (1, 2, 3)])
calls("no_tensors", lambda n: wg.arange(n) * 2, lambda: [3, 4, 3], traces=2)
calls("none", lambda x, y=None: x if y is None else x + y, lambda: [ones(), (ones(), ones()), (ones(), None)])
calls(
    "complex_numbers",
    lambda x: (x.real, x.imag, x.conj() * x, wg.fft.fft(x)),
    lambda: [wg.ones(3) * k for k in (1j, 2 - 1j)],
)


def double(x, n):
    return x if n == 0 else double(x * 2, n - 1)


@case
def texts_and_dtypes(jit):
    pad = jit(lambda x, mode, dtype=None: F.pad(x, (1, 1), mode=mode).to(dtype or wg.float32))
    for mode in ("reflect", "circular", "replicate", "reflect"):
        yield pad(wg.arange(4.0).reshape(1, 4), mode)
        yield pad(wg.arange(4.0).reshape(1, 4), mode, wg.float16)


@case
def by_name_and_by_place(jit):
    scale = jit(lambda x, k: x * k)
    yield scale(wg.ones(1), k=2.0)
    yield scale(wg.ones(1), 3.0)
    yield scale(k=4.0, x=wg.ones(1))
    yield raised(scale, wg.ones(1))
    yield raised(scale, wg.ones(1), q=3)


@case
def any_number_of_arguments(jit):
    total = jit(
        lambda *args, **named: sum(args) * len(args) + sum(named.values()) * 2 + next(iter(named.values()))
    )
    x = ones()
    yield total(x, a=x, b=x * 2)
    yield total(x, b=x * 2, a=x)
    yield total(x, x, a=x, b=x * 2)
    yield total(x, x, b=x * 2, a=x)


@case(traces=5)
def lists_and_dictionaries(jit):
    total = jit(lambda d: sum(d["x"]) * d.get("k", 1))
    x = ones()
    for given in ({"x": [x]}, {"x": [x, x * 2]}, {"x": (x, x * 2)}, {"x": [x], "k": 3}, {"k": 4, "x": [x]}):
        yield total(given)


@case
def the_order_of_a_dictionary(jit):
    weighted = jit(lambda d: [x * (i + 1) for i, x in enumerate(d.values())])
    x = ones()
    yield weighted({"a": x, "b": x * 2})
    yield weighted({"b": x * 2, "a": x})
    yield weighted(collections.OrderedDict(b=x * 2, a=x))
    backwards = jit(lambda d: {key: x * 2 for key, x in reversed(d.items())})
    for _ in range(2):
        yield backwards({"a": x, "b": x * 2})


@case
def a_dictionary_with_defaults(jit):
    read = jit(lambda d: d["x"] * d["missing"])
    given = collections.defaultdict(lambda: 3.0, x=ones())
    for _ in range(2):
        yield read(given)
        yield sorted(given)


@case
def a_dictionary_with_attributes(jit):
    class Named(dict):
        pass

    read = jit(lambda d: d["x"] * d.scale)
    given = Named(x=ones())
    for given.scale in (2.0, 3.0):
        yield read(given)


@case
def a_dictionary_that_is_written(jit):
    @jit
    def write(d):
        d["new"] = d["x"] * 2
        d["count"] = d.get("count", 0) + 1
        return d["new"]

    for i in range(4):
        given = {"x": wg.full((2,), float(i))}
        yield write(given)
        yield given


@case
def a_shape_kept_in_a_dictionary(jit):
    kept = {}

    @jit
    def write(x, d):
        d["last"] = x.shape[0]
        return x * 2

    for i in range(4):
        yield write(wg.ones(i + 1), kept)
        yield kept
        kept.clear()


@case
def a_dictionary_that_loses_an_entry(jit):
    take = jit(lambda d: d.pop("x") * 2)
    for _ in range(3):
        given = {"x": ones()}
        yield take(given)
        yield list(given)


@case
def a_list_that_is_written(jit):
    @jit
    def write(values):
        values.append(1)
        values[0] = values[0] * 2
        return values[0].sum()

    for i in range(4):
        given = [wg.full((2,), float(i))]
        yield write(given)
        yield given


@case
def a_new_list_that_grows(jit):
    @jit
    def log(x, history):
        history.append(x * 3)
        return x * 2

    for i in range(3):
        history = []
        yield log(wg.full((2,), float(i)), history)
        yield history


@case
def the_same_list_that_grows(jit):
    history = []

    @jit
    def log(x, history):
        history.append(len(history))
        return x * sum(history)

    for _ in range(4):
        yield log(ones(), history)
        yield history


@case
def a_list_that_is_cleared_and_filled(jit):
    @jit
    def refill(values):
        values[:] = [values[1], values[0]]
        return values[0] - values[1]

    given = [ones(), ones() * 3]
    for _ in range(4):
        yield refill(given)
        yield given


@case
def arrays_of_numpy(jit):
    use = jit(lambda x, array: x * wg.tensor(array))
    array = np.ones(2, np.float32)
    yield use(ones(), array)
    array[0] = 5
    yield use(ones(), array)
    yield use(ones(), array * 2)


@case
def generators(jit):
    total = jit(lambda values: sum(values))
    for k in (2, 3):
        yield total(x * k for x in (ones(), ones()))


@case
def iterators(jit):
    first = jit(lambda values: next(values) * 2)
    values = iter([ones(), ones() * 5, ones() * 7])
    for _ in range(3):
        yield first(values)


@case
def modules(jit):
    use = jit(lambda module, x: module(x).detach())
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    for module in (first, second, first, second, nn.Tanh(), nn.Sequential(first, second)):
        yield use(module, ones())
    first.bias = None
    yield use(first, ones())


@case(traces=2)
def modules_and_optimizers(jit):
    @jit
    def step(model, optimizer, x):
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    models = [nn.Linear(2, 2) for _ in range(2)]
    optimizers = [wg.optim.Adam(model.parameters()) for model in models]
    for i in range(6):
        yield step(models[i % 2], optimizers[i % 2], ones())
        yield copied(models[i % 2].state_dict())


@case(traces=2)
def the_same_tensor_twice(jit):
    which = jit(lambda x, y: x * 2 if x is y else x * 3)
    x = ones()
    yield which(x, x)
    yield which(x, ones())
    yield which(x, x)


@case
def parameters(jit):
    parameter = nn.Parameter(ones())
    read = jit(lambda p: (p * 2).detach())
    for _ in range(3):
        yield read(parameter)
        parameter.data.add_(1)

    @jit
    def slope(p):
        (p * p).sum().backward()
        return p.grad

    for _ in range(3):
        parameter.grad = None
        yield slope(parameter)
        yield parameter.grad

    @jit
    def move(p, x):
        with wg.no_grad():
            p.add_(x)
        return p.detach().sum()

    for _ in range(3):
        yield move(parameter, ones())
        yield parameter


@case
def tensors_with_attributes(jit):
    x = nn.Parameter(ones(), requires_grad=False)
    use = jit(lambda x: x * getattr(x, "scale", 1.0))
    yield use(x)
    x.scale = 5.0
    yield use(x)
    yield use(ones())


@case
def a_subclass_of_tensor(jit):
    class Labelled(wg.Tensor):
        pass

    use = jit(lambda x: (x * 2, x, isinstance(x, Labelled)))
    for x in (ones(), Labelled([1.0, 2.0]), Labelled([1.0, 2.0]), ones()):
        yield list(use(x))


@case
def a_list_that_holds_itself(jit):
    held = [1.0]
    held.append(held)
    f = jit(lambda x, held: x * held[0])
    yield f(ones(), held)
    g = jit(lambda x: x * held[1][0])
    yield g(ones())
    held[0] = 2.0
    yield g(ones())


@case
def dictionaries_with_keys_of_all_kinds(jit):
    f = jit(lambda d: d[1] * 2 + d["a"] + d[None] + d[(1, 2)])
    for k in (1, 2):
        yield f({1: ones(), "a": ones() * k, None: ones(), (1, 2): ones()})


@case
def distributions_as_arguments(jit):
    f = jit(lambda d, x: d.log_prob(x))
    for k in (1.0, 2.0, 1.0):
        yield f(wg.distributions.Normal(ones() * k, 1.0), ones())


@case(traces=6)
def arguments_that_nobody_can_change(jit):
    class Kind(enum.Enum):
        FIRST = 1.0
        SECOND = 2.0

    f = jit(lambda x, kind: x * (kind.value if isinstance(kind, Kind) else 3.0))
    for kind in (Kind.FIRST, Kind.SECOND, Kind.FIRST, slice(0, 1), range(2), wg.float64, wg.device("cpu")):
        yield f(ones(), kind)
