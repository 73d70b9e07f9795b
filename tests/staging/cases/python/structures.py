"""Trees of one's own, control flow of Python inside, exceptions, and steps by hand."""

import collections
import contextlib
import dataclasses
import warnings

import wengert as wg
from staging.comparing import case
from wengert import nn, tree

Batch = collections.namedtuple("Batch", "x y")


@tree.register_dataclass
@dataclasses.dataclass
class State:
    """A tree that is a dataclass."""

    mean: wg.Tensor
    count: int


@tree.register_pytree_node_class
class Pair:
    """A tree with a class of its own."""

    def __init__(self, first, second):
        self.first, self.second = first, second

    def tree_flatten(self):
        return (self.first, self.second), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


@tree.register_pytree_node_class
class Scaled:
    """A tree that says more than its tensors."""

    def __init__(self, x, scales):
        self.x, self.scales = x, scales

    def tree_flatten(self):
        return (self.x,), self.scales

    @classmethod
    def tree_unflatten(cls, scales, children):
        return cls(*children, scales)


def ones():
    return wg.ones(2)


@case
def a_class_that_is_a_tree_with_a_list_beside(jit):
    f = jit(lambda held: held.x * held.scales[0])
    held = Scaled(ones(), [1.0])
    for held.scales[0] in (1.0, 2.0, 1.0):
        yield f(held)
    yield f(Scaled(ones(), [3.0]))


@case(traces=2)
def a_dataclass_that_is_a_tree(jit):
    f = jit(lambda state, x: State(state.mean * 0.9 + x * 0.1, state.count))
    state = State(ones(), 3)
    for k in (1, 2, 3):
        state = f(state, ones() * k)
        yield state
    yield f(State(ones(), 4), ones())


@case
def a_dataclass_that_is_a_tree_and_counts(jit):
    f = jit(lambda state, x: State(state.mean + x, state.count + 1))
    state = State(ones(), 0)
    for _ in range(4):
        state = f(state, ones())
        yield state


@case
def a_dataclass_that_is_a_tree_and_is_written(jit):
    @jit
    def f(state, x):
        state.mean = state.mean + x
        state.count += 1
        return state

    state = State(ones(), 0)
    for _ in range(4):
        yield f(state, ones())
        yield state


@case(traces=1)
def a_class_that_is_a_tree(jit):
    f = jit(lambda pair: Pair(pair.second * 2, pair.first + pair.second))
    pair = Pair(ones(), ones() * 2)
    for _ in range(4):
        pair = f(pair)
        yield type(pair).__name__, pair.first, pair.second


@case
def a_class_that_is_a_tree_with_an_attribute(jit):
    f = jit(lambda pair: pair.first * getattr(pair, "scale", 1.0))
    pair = Pair(ones(), ones())
    yield f(pair)
    pair.scale = 5.0
    yield f(pair)


@case
def named_tuples_in_and_out(jit):
    f = jit(lambda batch: Batch(batch.x * 2, {"y": batch.y}))
    for k in (1, 2, 3):
        yield f(Batch(ones() * k, ones()))
    yield f(Batch(ones(), None))
    yield f(Batch((ones(), ones())[0], 3))


@case
def a_subclass_of_list(jit):
    class Stack(list):
        pass

    f = jit(lambda stack: Stack([x * 2 for x in stack]))
    for n in (1, 2, 1):
        yield f(Stack([ones()] * n))


@case(traces=2)
def a_generator_inside(jit):
    scale = [2.0]

    def powers(x):
        for i in range(3):
            yield x**i * scale[0]

    f = jit(lambda x: sum(powers(x)))
    for scale[0] in (2.0, 2.0, 3.0):
        yield f(ones() * 2)


@case(traces=1)
def a_generator_that_is_sent_values(jit):
    @jit
    def f(x):
        def running():
            total = 0
            while True:
                total = total + (yield total)

        average = running()
        next(average)
        return [average.send(x * k) for k in (1, 2, 3)]

    for k in (1, 2, 3):
        yield f(ones() * k)


@case
def managers_of_contexts(jit):
    entered = []

    @contextlib.contextmanager
    def scaled(k):
        entered.append(k)
        yield k
        entered.append(-k)

    @jit
    def f(x):
        with scaled(3) as k, contextlib.suppress(ValueError), contextlib.ExitStack() as stack:
            stack.enter_context(wg.no_grad())
            return x * k

    for _ in range(3):
        yield f(ones())
        yield entered


@case(traces=4)
def matching(jit):
    command = ["scale", 2.0]

    @jit
    def f(x):
        match command:
            case ["scale", k]:
                return x * k
            case ["shift", k]:
                return x + k
        return x

    for command[:] in (["scale", 2.0], ["scale", 3.0], ["shift", 3.0], ["none"], ["scale", 2.0]):
        yield f(ones())


@case
def assignment_expressions_and_unpacking(jit):
    @jit
    def f(x):
        first, *rest = x
        return [y for r in rest if (y := r * 2) is not None], first

    for n in (1, 2, 3, 2):
        yield f(wg.arange(2.0 * n).reshape(n, 2))


@case(traces=1)
def nested_functions_with_a_shared_name(jit):
    @jit
    def f(x):
        total = 0

        def add(y):
            nonlocal total
            total = total + y
            return total

        add(x)
        add(x * 2)
        return total, add(x)

    for k in (1, 2, 3):
        yield f(ones() * k)


@case
def masks_and_integers(jit):
    table, counts = wg.arange(12.0).reshape(4, 3), wg.zeros(4, dtype=wg.int64)

    @jit
    def f(i, mask):
        counts[i] += 1
        table[mask] = -1.0
        return table[i], wg.where(mask, table, wg.tensor(0.0)), (i * 2) // 3, mask & ~mask

    for k in (0, 1, 3, 1):
        yield f(wg.tensor([k, 2]), wg.arange(12).reshape(4, 3) == k)
        yield table, counts


@case(traces=2)
def gradient_descent_by_hand(jit):
    params = {"w": wg.randn(3, 1, requires_grad=True), "b": wg.zeros(1, requires_grad=True)}

    @jit
    def step(x, y):
        loss = (x @ params["w"] + params["b"] - y).square().mean()
        loss.backward()
        with wg.no_grad():
            for p in params.values():
                p -= 0.1 * p.grad
                p.grad.zero_()
        return loss

    for _ in range(5):
        x = wg.randn(4, 3)
        yield step(x, x.sum(1, keepdim=True))
        yield params, [p.grad for p in params.values()]


@case(traces=1)
def parameters_that_are_passed_through(jit):
    def loss(params, x):
        return (x @ params["w"]).square().sum()

    @jit
    def step(params, momentum, x):
        slopes = wg.grad(loss)(params, x)
        momentum = tree.map(lambda m, g: 0.9 * m + g, momentum, slopes)
        return tree.map(lambda p, m: p - 0.01 * m, params, momentum), momentum

    params, momentum = {"w": wg.randn(3, 2)}, {"w": wg.zeros(3, 2)}
    for _ in range(4):
        params, momentum = step(params, momentum, wg.randn(4, 3))
        yield params, momentum


@case
def a_module_made_inside_and_kept(jit):
    made = []

    @jit
    def f(x):
        if not made:
            made.append(nn.Linear(2, 2))
        return made[0](x).detach()

    for _ in range(3):
        yield f(ones())
        yield len(made)


@case
def sums_over_a_deque(jit):
    recent = collections.deque(maxlen=3)

    @jit
    def f(x):
        recent.append(x * 2)
        return sum(recent)

    for k in range(5):
        yield f(ones() * k)
        yield len(recent)


@case
def warnings_that_are_given(jit):
    @jit
    def f(x):
        warnings.warn("a warning of a case", stacklevel=2)
        return x * 2

    for _ in range(3):
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            yield f(ones())
        yield [str(w.message) for w in given if "a case" in str(w.message)]
