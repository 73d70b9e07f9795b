"""What a program would compute twice, it computes once: the same bits, and no more memory at once."""

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert import Tensor, nn


def staged(f: Callable[..., Any], *args: Any, calls: int = 3) -> wg.jit.Staged:
    """The function as a program, after some calls."""
    step = wg.jit(f)
    for _ in range(calls):
        step(*args)
    assert not step.why()
    return step


def names(f: Callable[..., Any], *args: Any) -> list[str]:
    """The operations of its program."""
    return staged(f, *args).operations(*args)


def flat(tree: Any) -> Iterator[Tensor]:
    if isinstance(tree, Tensor):
        yield tree
    else:
        for part in tree:
            yield from flat(part)


def bits(tree: Any) -> list[bytes]:
    """The bits of all tensors."""
    return [x.detach().numpy().tobytes() for x in flat(tree)]


def sharing(tree: Any) -> list[int]:
    """For each tensor, the first one in the same memory."""
    memory = [x.untyped_storage().data_ptr() for x in flat(tree)]
    return [memory.index(one) for one in memory]


W = wg.tensor(np.random.default_rng(2).standard_normal((30, 20)), dtype=wg.float32)
X = wg.tensor(np.random.default_rng(0).standard_normal((40, 30)), dtype=wg.float32)


def test_the_second_of_two_equal_products_falls_away():
    def f(x):
        return (x @ x.T).sin() + (x @ x.T).cos()

    assert names(f, X).count("matmul") == 1
    assert bits(staged(f, X)(X)) == bits(f(X))


def test_what_follows_from_equal_results_is_equal():
    def f(x):
        a, b = ((x @ x.T)[:20].T.exp().cumsum(0).softmax(-1) for _ in range(2))
        return a - 2 * b

    assert names(f, X) == ["matmul", "exp", "cumsum", "softmax", "mul", "sub"]
    assert bits(staged(f, X)(X)) == bits(f(X))


def test_several_outputs():
    def f(x):
        values, order = x.sort(-1)
        again, order_again = x.sort(-1)
        return values * again, order + order_again

    found = names(f, X)
    assert len(found) == len(set(found)), found
    assert bits(staged(f, X)(X)) == bits(f(X))


@pytest.mark.parametrize("number", [2, 0.5, -0.0, float("inf"), 1e300])
def test_numbers_are_compared_by_their_bits(number):
    def f(x):
        return (x * number).cumsum(0) + (x * number).cumsum(0)

    assert names(f, X) == ["mul", "cumsum", "add"]


def test_numbers_with_other_bits_are_others():
    def f(x):
        return (0.0 / x).cumsum(0), (-0.0 / x).cumsum(0), (x * 2).cumsum(0), (x * 2.0000002).cumsum(0)

    assert names(f, X).count("cumsum") == 4
    assert bits(staged(f, X)(X)) == bits(f(X))


def test_attributes_tell_operations_apart():
    def f(x):
        return x.cumsum(0).sum() + x.cumsum(1).sum() + x.sum(0).sum() + x.sum(1).sum()

    found = names(f, X)
    assert (found.count("cumsum"), found.count("sum")) == (2, 6)


def test_layouts_tell_operands_apart():
    x = wg.randn(30, 30)

    def f(x):
        return x.cumsum(0), x.T.cumsum(0), x[:, 1:].cumsum(0), x[:, :-1].cumsum(0)

    assert names(f, x).count("cumsum") == 4


def test_a_value_and_its_gradient_share_the_forward():
    def f(x):
        return (x @ W).tanh().square().mean(1).sum()

    def both(x):
        return f(x), wg.grad(f)(x), wg.value_and_grad(f)(x)

    # One of the forward, and one for each gradient, since both are returned.
    assert names(both, X).count("matmul") == 3
    assert bits(staged(both, X)(X)) == bits(both(X))


def test_derivatives_of_one_network_share_it():
    wg.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
    points = wg.rand(64, 2)

    def u(t, x):
        return model(wg.stack([t, x])).reshape(())

    def residual(points):
        t, x = points.T
        value = wg.vmap(u)(t, x)
        slope = wg.vmap(wg.grad(u))(t, x)
        bend = wg.vmap(wg.grad(wg.grad(u, 1), 1))(t, x)
        return (slope + value * bend).square().mean().detach()

    found = names(residual, points)
    assert found.count("linear") < 6
    assert bits(staged(residual, points)(points)) == bits(residual(points))


def test_random_numbers_are_drawn_each_time():
    def f(x):
        return wg.rand(30) + wg.rand(30) + nn.functional.dropout(x, 0.5) + nn.functional.dropout(x, 0.5)

    step = staged(f, X)
    assert step.operations(X).count("rand") >= 2
    wg.manual_seed(3)
    expected = [bits(f(X)) for _ in range(3)]
    wg.manual_seed(3)
    assert [bits(step(X)) for _ in range(3)] == expected


def test_what_is_written_in_between_is_computed_again():
    def f(x):
        y = x * 2
        a = y.cumsum(0)
        y.add_(1)
        return a, y.cumsum(0), y.cumsum(0).exp()

    step = staged(f, X)
    assert step.operations(X).count("cumsum") == 2
    assert bits(step(X)) == bits(f(X))


def test_what_is_written_later_has_memory_of_its_own():
    def f(x):
        a, b, c = x.cumsum(0), x.cumsum(0), x.cumsum(0)
        b.add_(1)
        return a * 1.5, b * 1.5, c * 2.5

    step = staged(f, X)
    assert step.operations(X).count("cumsum") == 2
    assert bits(step(X)) == bits(f(X))


def test_a_write_through_a_view_counts():
    def f(x):
        a, b = x.cumsum(0), x.cumsum(0)
        a[3:5].T.mul_(2)
        return a * 1, b * 1, a.exp(), b.exp()

    assert bits(staged(f, X)(X)) == bits(f(X))


def test_captured_memory_that_is_written():
    def make():
        total = wg.zeros(40, 30)

        def f(x):
            a = total.cumsum(0) + x.cumsum(0)
            total.add_(x)
            return a, total.cumsum(0) + x.cumsum(0), total.cumsum(0) * 2

        return f, total

    (f, first), (g, second) = make(), make()
    step = wg.jit(g)
    for _ in range(4):
        assert bits(step(X)) == bits(f(X))
        assert bits(first) == bits(second)
    assert not step.why()


def test_foreign_memory_that_overlaps():
    def make():
        memory = np.arange(8, dtype=np.float32)
        a, b = wg.from_numpy(memory[:6]), wg.from_numpy(memory[2:])

        def f(x):
            before = a.cumsum(0) * x
            b.add_(1)
            return before, a.cumsum(0) * x

        return f

    f, step = make(), wg.jit(make())
    for _ in range(4):
        assert bits(step(wg.ones(6))) == bits(f(wg.ones(6)))


def test_a_step_of_an_optimizer_changes_parameters():
    def make():
        wg.manual_seed(0)
        model = nn.Linear(30, 30)
        optimizer = wg.optim.SGD(model.parameters(), lr=0.1)

        def f(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            before = (model.weight @ model.weight).detach()
            optimizer.step()
            after = (model.weight @ model.weight).detach()
            return loss.detach(), before, after.exp()

        return f, model

    (f, one), (g, other) = make(), make()
    step = wg.jit(g)
    for _ in range(4):
        assert bits(step(X)) == bits(f(X))
        assert bits(one.parameters()) == bits(other.parameters())
    assert not step.why()


def test_gradients_have_memory_of_their_own():
    a, b = (wg.zeros(30, requires_grad=True) for _ in range(2))

    def f(x):
        a.grad = b.grad = None
        ((x @ (a + 1)).sum() + (x @ (b + 1)).sum()).backward()
        return (x * 2).sum(0)

    step = staged(f, X)
    assert a.grad.untyped_storage().data_ptr() != b.grad.untyped_storage().data_ptr()
    found = bits([a.grad, b.grad])
    f(X)
    assert bits([a.grad, b.grad]) == found
    a.grad.add_(1)
    assert bits(b.grad) == found[1:]
    step(X)
    assert bits([a.grad, b.grad]) == found


@pytest.mark.parametrize("first", [True, False])
def test_a_call_of_the_host_changes_gradients(first):
    def make():
        weight = wg.ones(30, requires_grad=True)
        optimizer = wg.optim.SGD([weight], lr=0.1)
        scaler = wg.amp.GradScaler(init_scale=4.0)

        def loss(weight, x):
            return scaler.scale((x * weight).sum())

        def f(x):
            optimizer.zero_grad()
            if first:
                loss(weight, x).backward()
            inner = wg.grad(loss)(weight.detach(), x)
            if not first:
                loss(weight, x).backward()
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
            return inner * 2

        return f, weight

    (f, one), (g, other) = make(), make()
    step = wg.jit(g)
    for _ in range(4):
        assert bits(step(X)) == bits(f(X))
        assert bits(one.grad) == bits(other.grad)
    assert not step.why()


def test_results_have_memory_of_their_own():
    def f(x):
        y = x.cumsum(0)
        z = x.cumsum(0)
        return y, z, z, y[1:], x.cumsum(0).T, x.cumsum(0).exp()

    step = staged(f, X)
    # Three that are returned, and none for what nobody sees.
    assert step.operations(X).count("cumsum") == 3
    first = step(X)
    held = bits(first)
    assert sharing(first) == sharing(f(X))
    second = step(X)
    assert len(set(sharing([first, second]))) == 2 * len(set(sharing(first)))
    for x in second:
        x.zero_()
    assert bits(first) == held
    assert bits(step(X)) == held


def test_two_results_do_not_share_what_comes_before():
    def f(x):
        return x.cumsum(0).exp(), x.cumsum(0), x.cumsum(0)

    step = staged(f, X)
    assert step.operations(X).count("cumsum") == 2
    assert sharing(step(X)) == sharing(f(X)) == [0, 1, 2]


def test_a_result_may_serve_what_came_before():
    def f(x):
        inner = (x @ x.T).exp().sum()
        return inner, x @ x.T

    assert names(f, X).count("matmul") == 1
    assert bits(staged(f, X)(X)) == bits(f(X))


def test_decisions_are_taken_once():
    def f(x):
        y = x * 2 if x.amax() > 1 else x
        z = x * 3 if x.amin() < 0 else x
        return y + (z * 2 if x.amax() > 1 else z)

    step = staged(f, X)
    assert [s.kind for s in step.program(X).steps].count("look") == 2
    assert bits(step(X)) == bits(f(X))
    assert bits(step(X * 0)) == bits(f(X * 0))


def test_what_decides_is_looked_at_again_once_it_was_written():
    flag = wg.tensor(True)

    def f(x):
        y = x * 2 if flag else x
        flag.copy_(x.sum() > 0)
        y = y + 1 if flag else y - 1
        flag.fill_(True)
        return y

    step = staged(f, X.abs())
    for x in (X.abs(), -X.abs(), X.abs()):
        assert bits(step(x)) == bits(f(x))


def test_the_first_of_two_errors_is_raised():
    table = wg.zeros(40, 30)

    def f(x, index):
        table.add_(x)
        return x[index].sum() + x[index].exp().sum()

    good, bad = wg.tensor([1, 2]), wg.tensor([1, 40])
    step = staged(f, X, good)
    assert sum(name in ("take", "index") for name in step.operations(X, good)) == 1
    held, line = bits(table), f.__code__.co_firstlineno + 2
    with pytest.raises(IndexError) as found:
        step(X, bad)
    assert bits(table) == held
    traceback = found.tb
    lines = []
    while traceback:
        lines.append((traceback.tb_frame.f_code, traceback.tb_lineno))
        traceback = traceback.tb_next
    assert (f.__code__, line) in lines


def test_the_line_is_that_of_the_first():
    def f(x):
        a = (x @ x.T).exp()
        b = (x @ x.T).sin()
        return a + b

    step = staged(f, X)
    (line,) = [s.place[1] for s in step.program(X).steps if "matmul" in s.names]
    assert line == f.__code__.co_firstlineno + 1


def test_the_cost_is_that_of_what_is_left():
    def once(x):
        return (x @ x.T).exp()

    def twice(x):
        return (x @ x.T).exp() + (x @ x.T).exp()

    costs = [staged(f, X).program(X).cost().total.flops for f in (once, twice)]
    assert costs[1] - costs[0] == 40 * 40


def test_checked_programs():
    def f(x):
        y = x.softmax(-1)
        y.add_(1)
        return y @ x.T, x.softmax(-1) @ x.T, x.softmax(-1)

    step = wg.jit(f, check=True)
    for _ in range(3):
        assert bits(step(X)) == bits(f(X))


# Memory


def peak(f: Callable[..., Any], *args: Any) -> int:
    """The most bytes that a run takes, as the program says and as it is."""
    step = staged(f, *args)
    gc.collect()
    expected = step.program(*args).memory().peak
    wg.memory.reset_peak()
    before = wg.memory.live_bytes()
    held = step(*args)
    assert wg.memory.peak_bytes() - before == expected
    del held
    return expected


@pytest.fixture
def _one_thread():
    before = wg.get_num_threads()
    wg.set_num_threads(1)
    yield
    wg.set_num_threads(before)


BIG = wg.randn(200, 200)


@pytest.mark.usefixtures("_one_thread")
def test_what_would_be_held_over_the_peak_is_computed_again():
    def f(x, y, z):
        first = x.cumsum(0).sum()
        # Two matrices at once.
        middle = (y @ y @ y).cumsum(0).sum()
        return first + middle + z.cumsum(0).amax()

    twins = BIG.clone(), BIG.clone()
    assert names(lambda x, y: f(x, y, x), BIG, twins[0]).count("cumsum") == 3
    assert peak(lambda x, y: f(x, y, x), BIG, twins[0]) == peak(f, BIG, *twins)


@pytest.mark.usefixtures("_one_thread")
def test_what_is_held_anyway_is_shared_where_more_is_not():
    def f(x, y, z):
        first, held = x.cumsum(0).sum(), y.cumsum(1)
        middle = (y @ y @ y).cumsum(0).sum()
        return first + middle + x.cumsum(0).amax() + (z.cumsum(1) * held).sum()

    twins = BIG.clone(), BIG.clone()
    assert names(lambda x, y: f(x, y, y), BIG, twins[0]).count("cumsum") == 4
    assert names(f, BIG, *twins).count("cumsum") == 5
    assert peak(lambda x, y: f(x, y, y), BIG, twins[0]) <= peak(f, BIG, *twins)


@pytest.mark.usefixtures("_one_thread")
def test_checkpoints_go_on_saving_memory():
    wg.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh()) for _ in range(6)]
    parameters = [p for layer in layers for p in layer.parameters()]
    x = wg.randn(256, 64)

    def make(saves: bool):
        def f(x):
            for p in parameters:
                p.grad = None
            for layer in layers:
                x = wg.utils.checkpoint.checkpoint(layer, x, use_reentrant=False) if saves else layer(x)
            x.square().mean().backward()
            return x.detach().sum()

        return f

    assert peak(make(True), x) < 0.8 * peak(make(False), x)


# Random programs


UNARY = ["sin", "tanh", "abs"]


def made(seed: int, size: int, writes: bool = True) -> tuple[Callable[..., list[Tensor]], Tensor]:
    """A random program of few different operations on few values, so that many steps repeat others; and what
    it adds to. Its line k reads leaf k.
    """
    rng = np.random.default_rng(seed)
    total = wg.zeros(12, 12)
    kinds = ["unary", "binary", "number", "view", "matmul", "sum", "softmax"]
    kinds += ["write", "state", "random"] if writes else []
    lines = [(str(rng.choice(kinds)), *map(int, rng.integers(0, 1000, 4))) for _ in range(size)]
    returned = [int(k) for k in rng.integers(0, 1000, 6)]
    returned += returned[:2]

    def program(*leaves):
        values = [leaves[0] * 1.5]
        for k, (kind, a, b, c, d) in enumerate(lines):
            # Mostly one of the first three.
            own = [leaves[k % len(leaves)], *values[:2], *values[-4:]]
            x, y = (own[n // 8 % (min(3, len(own)) if n % 4 else len(own))] for n in (a, b))
            if kind == "unary":
                values.append(getattr(x, UNARY[c % len(UNARY)])())
            elif kind == "binary":
                values.append(x * y if c % 2 else x + y)
            elif kind == "number":
                values.append(x * [0.5, 0.25, -0.5][c % 3])
            elif kind == "view":
                values.append([x.T, x.flip(0), x.T.reshape(12, 12)][c % 3])
            elif kind == "matmul":
                values.append((x.tanh() @ y.tanh()) * 0.1)
            elif kind == "sum":
                values.append(x.sum(c % 2, keepdim=True) * 0.1 + x)
            elif kind == "softmax":
                values.append(x.softmax(c % 2))
            elif kind == "random":
                values.append(wg.rand(12, 12) + x)
            elif kind == "state":
                total.mul_(0.5).add_(x.tanh())
                values.append(total * 1)
            elif x is not own[0]:
                part = x[d % 6 :] if c % 2 else x
                part.mul_(0.5).add_(0.125)
        return [sum(values), *(values[k % len(values)] for k in returned)]

    return program, total


LEAF = wg.tensor(np.random.default_rng(1).standard_normal((12, 12)), dtype=wg.float32)


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed):
    (eager, expected_total), (program, total) = made(seed, 40), made(seed, 40)
    step, kept = wg.jit(program), []
    for call in range(4):
        # Views of an argument may be written, too.
        x, y = (LEAF + call * 0.1 for _ in range(2))
        wg.manual_seed(call)
        expected, numbers = eager(x), wg.rand(2)
        wg.manual_seed(call)
        found = step(y)
        assert bits(x) == bits(y)
        assert bits(wg.rand(2)) == bits(numbers)
        assert not any(x.isnan().any() for x in expected)
        assert bits(found) == bits(expected)
        assert sharing(found) == sharing(expected)
        assert bits(total) == bits(expected_total)
        kept.append((found, bits(found)))
    assert not step.why()
    for found, held in kept:
        assert bits(found) == held


@pytest.mark.parametrize("seed", range(20))
def test_gradients_of_random_programs(seed):
    program, _ = made(seed, 25, writes=False)

    def loss(x):
        return sum(y.sin().sum() for y in program(x))

    def f(x):
        return loss(x), wg.grad(loss)(x), program(x), wg.grad(lambda x: wg.grad(loss)(x).cos().sum())(x)

    step = staged(f, LEAF)
    assert bits(step(LEAF)) == bits(f(LEAF))
    once = names(wg.grad(loss), LEAF)
    assert len(once) < len(step.operations(LEAF))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.usefixtures("_one_thread")
def test_random_programs_take_no_more_memory(seed):
    """Than the same program where each line reads an argument of its own, so that nothing is repeated."""
    program, _ = made(seed, 30, writes=False)
    assert peak(program, LEAF) <= peak(program, *(LEAF.clone() for _ in range(30)))


def test_random_programs_repeat_themselves():
    """Otherwise the tests above would say nothing."""
    shorter = 0
    for seed in range(20):
        program, _ = made(seed, 30, writes=False)
        shorter += len(names(program, LEAF)) < len(names(program, *(LEAF.clone() for _ in range(30))))
    assert shorter > 10
