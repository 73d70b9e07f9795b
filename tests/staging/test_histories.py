"""Results with a history: a call of a program is one node of the tape, and its backward a program, too."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import wengert as wg
from staging.comparing import raised, recorded
from wengert import nn

Scenario = Callable[[Callable[..., Any]], Iterator[Any]]


def network() -> Any:
    wg.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2))


def sample(*shape: int, requires_grad: bool = False, seed: int = 1) -> Any:
    wg.manual_seed(seed)
    return wg.randn(*shape).requires_grad_(requires_grad)


def gradients(model: Any) -> list[Any]:
    return [None if p.grad is None else p.grad.clone() for p in model.parameters()]


SCENARIOS: dict[str, tuple[Scenario, int, str]] = {}


def scenario(traces: int, why: str = "") -> Callable[[Scenario], Scenario]:
    """Adds a scenario that makes so many programs, or runs as Python for this reason; it must do the same
    with `jit` and without.
    """

    def add(body: Scenario) -> Scenario:
        SCENARIOS[body.__name__] = body, traces, why
        return body

    return add


@scenario(1)
def steps_of_training(jit: Any) -> Iterator[Any]:
    model = network()
    optimizer = wg.optim.Adam(model.parameters(), lr=1e-2)
    loss_of = jit(lambda x, y: (model(x) - y).square().mean())
    for i in range(5):
        optimizer.zero_grad()
        loss = loss_of(sample(7, 5, seed=i), sample(7, 2, seed=9))
        yield loss, loss.requires_grad, loss.is_leaf
        loss.backward()
        yield gradients(model)
        optimizer.step()
    yield list(model.parameters())


@scenario(1)
def a_forward_alone(jit: Any) -> Iterator[Any]:
    model = network()
    forward = jit(lambda x: model(x))
    for i in range(4):
        out = forward(sample(7, 5, seed=i))
        nn.functional.cross_entropy(out, wg.tensor([0, 1, 0, 1, 1, 0, 0])).backward()
        yield out, gradients(model)


@scenario(1)
def gradients_that_add_up(jit: Any) -> Iterator[Any]:
    model = network()
    loss_of = jit(lambda x: model(x).exp().sum())
    for i in range(4):
        loss_of(sample(7, 5, seed=i)).backward()
        yield gradients(model)


@scenario(1)
def uses_inside_and_outside(jit: Any) -> Iterator[Any]:
    f = jit(lambda x, w: ((x * w).sin() * w + x / w + w * 0.3).tanh() * w)
    for i in range(4):
        x, w = sample(50, requires_grad=True, seed=i), sample(50, requires_grad=True, seed=i + 10)
        y = (w * 1.7).cos() + f(x, w) * x + f(x * 0.3, w) * w.exp() + w
        y.sum().backward()
        yield y, x.grad, w.grad


@scenario(1)
def arguments_with_histories(jit: Any) -> Iterator[Any]:
    f = jit(lambda x: (x.sin() + x * x).cumsum(0))
    for i in range(4):
        x = sample(9, requires_grad=True, seed=i)
        h = x * 2
        h.retain_grad()
        f(f(h)).sum().backward()
        yield x.grad, h.grad


@scenario(1)
def several_results(jit: Any) -> Iterator[Any]:
    f = jit(lambda x: (x.sin(), {"cos": x.cos() * x, "count": (x > 0).sum()}, x.exp().sum()))
    for chosen in ((1, 1, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1)):
        x = sample(6, requires_grad=True)
        a, b, c = f(x)
        parts = [y.sum() * 2 for y, is_chosen in zip((a, b["cos"], c), chosen) if is_chosen]
        sum(parts).backward()
        yield a, b, c, b["count"].requires_grad, x.grad


@scenario(1)
def backward_again(jit: Any) -> Iterator[Any]:
    f = jit(lambda x: (x.sin() * x).sum())
    for i in range(3):
        x = sample(6, requires_grad=True, seed=i)
        y = f(x)
        y.backward(retain_graph=True)
        yield x.grad.clone()
        y.backward()
        yield x.grad.clone()
        error = raised(y.backward)
        yield type(error), "second time" in str(error) or "freed" in str(error)


@scenario(1)
def derivatives_of_derivatives(jit: Any) -> Iterator[Any]:
    f = jit(lambda x: (x.sin() * x).sum())
    for i in range(3):
        x = sample(6, requires_grad=True, seed=i)
        (g,) = wg.autograd.grad(f(x), x, create_graph=True)
        (h,) = wg.autograd.grad(g.square().sum(), x)
        yield g, h


@scenario(1)
def derivatives_of_random_numbers(jit: Any) -> Iterator[Any]:
    model = nn.Sequential(network(), nn.Dropout(0.4), nn.Linear(2, 3))
    f = jit(lambda x: model(x).square().sum())
    wg.manual_seed(0)
    for i in range(4):
        x = sample(6, 5, requires_grad=True, seed=i)
        wg.manual_seed(i)
        y = f(x)
        (g,) = wg.autograd.grad(y, x, create_graph=i % 2 == 0)
        if i % 2 == 0:
            g.sum().backward()
        yield y, g, gradients(model), wg.rand(2)


@scenario(1)
def hooks_outside(jit: Any) -> Iterator[Any]:
    seen: list[Any] = []
    f = jit(lambda x: x.sin() * x)
    for i in range(3):
        x = sample(6, requires_grad=True, seed=i)
        h = x * 2
        if i > 0:
            h.register_hook(lambda g: seen.append(g.clone()))
            x.register_hook(lambda g: g * 3)
        y = f(h)
        y.register_hook(lambda g: g + 1)
        y.sum().backward()
        yield x.grad, list(seen)


@scenario(1)
def writes_between(jit: Any) -> Iterator[Any]:
    w = sample(6, requires_grad=True)
    f = jit(lambda x: (x * w).exp())
    for i in range(3):
        y = f(sample(6, seed=i))
        with wg.no_grad():
            w.mul_(1.5)
        error = raised(y.sum().backward)
        yield type(error), "modified in place" in str(error)
        y = f(sample(6, seed=i))
        error = raised(lambda y=y: y.add_(1).sum().backward())
        yield type(error), "modified in place" in str(error)


@scenario(1)
def writes_to_results(jit: Any) -> Iterator[Any]:
    f = jit(lambda x: x * 3)
    for i in range(3):
        x = sample(6, requires_grad=True, seed=i)
        y = f(x)
        y.mul_(2)
        (y * x).sum().backward()
        yield y, x.grad


@scenario(1)
def gradients_in_other_orders(jit: Any) -> Iterator[Any]:
    b = sample(33, requires_grad=True)
    f = jit(lambda x: x * 2 + b)
    for i in range(3):
        y = f(sample(64, 33, seed=i))
        b.grad = None
        y.backward(sample(33, 64, seed=i + 5).mT if i else sample(64, 33, seed=i + 5))
        yield b.grad


@scenario(1)
def walks_to_some_tensors(jit: Any) -> Iterator[Any]:
    model = network()
    f = jit(lambda x: model(x).sum())
    for i in range(3):
        first, *_, last = model.parameters()
        y = f(sample(3, 5, seed=i))
        yield wg.autograd.grad(y, [last], retain_graph=True), wg.autograd.grad(y, [first, last])
        yield gradients(model)


@scenario(1)
def batches_of_gradients(jit: Any) -> Iterator[Any]:
    f = jit(lambda x: x.sin() * x)
    for i in range(3):
        x = sample(4, requires_grad=True, seed=i)
        yield wg.autograd.grad(f(x), x, wg.eye(4), is_grads_batched=True)


@scenario(2)
def modes_that_alternate(jit: Any) -> Iterator[Any]:
    w = sample(6, requires_grad=True)
    f = jit(lambda x: (x * w).sin())
    for i in range(3):
        x = sample(6, seed=i)
        with wg.no_grad():
            y = f(x)
        yield y, y.requires_grad
        f(x).sum().backward()
        yield w.grad


@scenario(1)
def a_closure_with_a_history(jit: Any) -> Iterator[Any]:
    w = sample(6, requires_grad=True)
    h = w.exp()
    f = jit(lambda x: x.sin() * h)
    for i in range(3):
        f(sample(6, seed=i)).sum().backward(retain_graph=True)
        yield w.grad


@scenario(3, "a reverse rule of your own")
def functions_with_rules_of_their_own(jit: Any) -> Iterator[Any]:
    double = wg.custom_vjp(lambda x: x * 2)
    double.defvjp(lambda x: (x * 2, None), lambda _, g: (g * 3,))
    f = jit(lambda x: double(x).sin().sum())
    for i in range(3):
        x = sample(6, requires_grad=True, seed=i)
        f(x).backward()
        yield x.grad


@scenario(1)
def decisions(jit: Any) -> Iterator[Any]:
    f = jit(lambda x: x.norm() * 2)
    for i in range(3):
        x = sample(40, requires_grad=True, seed=i)
        f(x).backward()
        yield x.grad


@scenario(1)
def derivatives_that_are_zero(jit: Any) -> Iterator[Any]:
    """A zero that arises behind the edge to a tensor reaches it, where eager mode's does."""
    f = jit(lambda a, b: ((a * 2).sign(), b.sin()))
    seen: list[Any] = []
    note = lambda g: seen.append(g.clone())
    for chosen in ((1, 1), (1, 0), (0, 1)):
        a, b = (sample(2, requires_grad=True, seed=i) for i in range(2))
        a.register_hook(note)
        optimizer = wg.optim.SGD([a, b], lr=0.1, weight_decay=0.5)
        parts = [y.sum() for y, is_chosen in zip(f(a * 1, b), chosen) if is_chosen]
        sum(parts).backward()
        optimizer.step()
        yield list(seen), a, b, a.grad, b.grad


@scenario(1)
def results_without_a_slope(jit: Any) -> Iterator[Any]:
    f = jit(lambda x: (x * 2).floor())
    for i in range(3):
        x = sample(3, requires_grad=True, seed=i)
        y = f(x)
        y.sum().backward()
        # A zero is not added: it would change the sign of another one.
        z = x * 1
        (z * -0.0 + f(z)).sum().backward()
        yield y, y.requires_grad, y.is_leaf, x.grad, wg.autograd.grad(f(x).sum(), x)


@scenario(1)
def zeros_beside_other_gradients(jit: Any) -> Iterator[Any]:
    f = jit(lambda a, b: (a * 2).sign() * b + b)
    for _ in range(3):
        a, b = (sample(2, requires_grad=True, seed=i) for i in range(2))
        yield wg.autograd.grad(f(a, b).sum(), [a, b]), wg.autograd.grad(f(a, b).sum(), [a])
        f(a, b).sum().backward()
        yield a.grad, b.grad


@scenario(1)
def rounded_weights(jit: Any) -> Iterator[Any]:
    wg.manual_seed(0)
    linear, scale = nn.Linear(3, 1), nn.Parameter(wg.ones(3))
    f = jit(lambda x: linear((x * scale * 4).round()))
    optimizer = wg.optim.AdamW([*linear.parameters(), scale], lr=0.1, weight_decay=0.1)
    for i in range(3):
        optimizer.zero_grad()
        f(sample(4, 3, seed=i)).square().mean().backward()
        optimizer.step()
        yield scale, scale.grad


@scenario(3, "a reverse rule of your own")
def inputs_that_a_rule_leaves_out(jit: Any) -> Iterator[Any]:
    """Nothing reaches them, though the result is on the tape."""
    keeps = wg.custom_vjp(lambda x, y: x * y)
    keeps.defvjp(lambda x, y: (x * y, y), lambda y, g: (g * y, None))
    f = jit(lambda x, y: keeps(x * 2, y * 2))
    for _ in range(3):
        x, y = (sample(3, requires_grad=True, seed=i) for i in range(2))
        z = f(x, y)
        z.sum().backward()
        yield z.requires_grad, x.grad, y.grad


ROWS = wg.tensor([0, 2, 2, 1, 0, 0])


@scenario(1)
def rows_by_index_of_what_is_used_outside(jit: Any) -> Iterator[Any]:
    """Each row is added to the sum that is there."""
    wg.manual_seed(0)
    table = nn.Embedding(3, 4)
    f = jit(lambda index: table(index))
    for i in range(6):
        table.zero_grad()
        weights, penalty = sample(6, 4, seed=i), lambda: table.weight.square().sum() * 0.1
        before = penalty()
        loss = (f(ROWS) * weights).sum()
        (loss + penalty() if i % 2 else before + loss).backward()
        yield table.weight.grad
        loss = (f(ROWS) * weights).sum()
        loss.backward()
        yield table.weight.grad


@scenario(1)
def tied_rows(jit: Any) -> Iterator[Any]:
    """What takes rows first may do anything with the tensor then."""
    f = jit(lambda w, rows: ((w[rows].tanh() + w[rows[:1]]) @ w.t(), w.sin()))
    for i in range(5):
        w = sample(3, 4, requires_grad=True, seed=i)
        h = w * 1
        y, z = f(h, ROWS)
        if i < 4:
            (y * sample(6, 3, seed=i + 9)).sum().backward(retain_graph=True)
            yield y, w.grad.clone()
        ((y * sample(6, 3, seed=i + 8)).sum() + (z + h.exp()).sum()).backward()
        yield z, w.grad


@scenario(1)
def rows_of_rows(jit: Any) -> Iterator[Any]:
    """By an index that the function computes, too."""
    f = jit(lambda w, x: w[x.argsort(0)][wg.tensor([0, 0, 1])].sin())
    for i in range(4):
        w, x = sample(3, 4, requires_grad=True, seed=i), sample(3, seed=i)
        y = f(w, x)
        (y.exp().sum() + w.square().sum()).backward()
        yield y, w.grad


@scenario(1)
def rows_by_an_index_that_is_written(jit: Any) -> Iterator[Any]:
    f = jit(lambda w, rows: w[rows].sin())
    for i in range(4):
        w, rows = sample(3, 4, requires_grad=True, seed=i), ROWS.clone()
        y = f(w, rows)
        if i % 2:
            rows.fill_(0)
        yield type(raised(y.sum().backward)), w.grad, type(raised(y.sum().backward))


@scenario(1)
def derivatives_of_derivatives_of_rows(jit: Any) -> Iterator[Any]:
    f = jit(lambda w, rows: w[rows].sin())
    for i in range(4):
        w = sample(3, 4, requires_grad=True, seed=i)
        (g,) = wg.autograd.grad(f(w, ROWS).sum(), w, create_graph=True)
        yield g, wg.autograd.grad(g.square().sum(), w)


@pytest.mark.parametrize("name", SCENARIOS)
def test_is_the_same_with_and_without(name: str) -> None:
    body, traces, why = SCENARIOS[name]
    made: list[Any] = []

    def jit(function: Any) -> Any:
        made.append(wg.jit(function))
        return made[-1]

    expected = [recorded(value) for value in body(lambda function: function)]
    found = [recorded(value) for value in body(jit)]
    assert len(found) == len(expected)
    for i, (x, y) in enumerate(zip(found, expected)):
        assert x == y, f"value {i}"
    (f,) = made
    assert f.traces == traces
    assert why in f.why()[0] if why else not f.why()


def cases() -> dict[str, tuple[Callable[..., Any], Callable[[], Any], list[Any]]]:
    """Functions, their argument, and the parameters that they read."""
    made: dict[str, tuple[Callable[..., Any], Callable[[], Any], list[Any]]] = {}
    floats = lambda *shape, dtype=wg.float32: lambda: wg.randn(*shape, dtype=dtype).requires_grad_()

    def layer(name: str, module: Any, *shape: int) -> None:
        made[name] = module, floats(*shape), list(module.parameters())

    wg.manual_seed(5)
    linear, dropout = nn.Linear(5, 3), nn.Dropout(0.5)

    def autocast(x: Any) -> Any:
        with wg.autocast(dtype=wg.bfloat16):
            return linear(x).tanh()

    def writes(x: Any) -> Any:
        y = x * 2
        y[0] = x[1]
        return y.mul_(x)

    layers = nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.SiLU(), nn.MaxPool2d(2), nn.Flatten()
    layer("convolution", nn.Sequential(*layers), 2, 3, 8, 8)
    layer("transformer", nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), 2, 7, 16)
    made["complex"] = lambda z: z * z + z.conj(), floats(5, dtype=wg.complex64), []
    for dtype in (wg.float64, wg.bfloat16, wg.float16):
        made[str(dtype)] = lambda x: (x.sin() * x).softmax(-1), floats(4, 5, dtype=dtype), []
    made["empty"] = lambda x: x.sin() * x, floats(0, 5), []
    made["autocast"] = autocast, floats(4, 5), list(linear.parameters())
    made["matrices"] = lambda x: wg.linalg.inv(x @ x.mT + wg.eye(4)), floats(4, 4), []
    made["slices"] = lambda x: x[1:, ::2].clone().cumsum(0) * x[0, 0], floats(4, 4), []
    made["writes"] = writes, floats(4, 4), []
    made["scan"] = (
        lambda x: wg.scan(lambda c, v: (c * 0.5 + v, c.sin()), x[0], x)[1],
        floats(6, 3),
        [],
    )
    made["transforms"] = lambda x: wg.grad(lambda z: (z.sin() * z).sum())(x) * x, floats(6), []
    made["dropout"] = lambda x: dropout(x) * x, floats(60), []
    return made


@pytest.mark.parametrize("name", cases())
def test_bits_of_gradients(name: str) -> None:
    function, argument, parameters = cases()[name]
    staged = wg.jit(function)
    for i in range(3):
        found = []
        for f in (function, staged):
            wg.manual_seed(i)
            x = argument()
            for p in parameters:
                p.grad = None
            y = f(x)
            y.abs().sum().backward()
            found.append(recorded([y.detach(), x.grad, *(p.grad for p in parameters)]))
        assert found[0] == found[1], i
    assert (staged.traces, staged.why()) == (1, [])


def test_a_call_is_one_node() -> None:
    f = wg.jit(lambda x: (x.sin() * x).tanh().sum())
    for _ in range(2):
        x = sample(6, requires_grad=True)
        y = f(x)
    assert y.grad_fn.op == "<lambda>"
    # One edge for each use of the leaf, and none for its values, which are saved.
    assert [node is not None for node, _ in y.grad_fn.next_functions] == [True, True, False]


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {}


def refused(reason: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def add(body: Callable[[], Any]) -> Callable[[], Any]:
        REFUSED[body.__name__] = body, reason
        return body

    return add


@refused("hooks in the function see its gradients")
def hooks_inside() -> Any:
    def f(x: Any) -> Any:
        y = x.sin()
        y.register_hook(lambda g: g * 2)
        return y * x

    return f


@refused("writes to tensors of outside")
def statistics() -> Any:
    norm = nn.BatchNorm1d(4)
    return lambda x: norm(x) * x


@refused("shares memory with an argument or another result")
def a_view() -> Any:
    return lambda x: x.mT


@refused("shares memory with an argument or another result")
def results_in_one_memory() -> Any:
    def f(x: Any) -> Any:
        y = x * 2
        return y, y.mT

    return f


@refused("rows of a tensor are taken by index, which was used in other ways before")
def rows_of_what_was_used_before() -> Any:
    return lambda x: x.sin().sum() + x[wg.tensor([0, 0, 1])].exp().sum()


@refused("rows by index of what is a result, or has the gradient of one")
def rows_of_a_result() -> Any:
    def f(x: Any) -> Any:
        y = x.tanh()
        return y, y[wg.tensor([0, 0, 1])].sin()

    return f


@refused("rows by index of what is a result, or has the gradient of one")
def rows_of_what_is_added() -> Any:
    return lambda x: (x[wg.tensor([0, 0, 1])].sin(), x + 1)


@refused("a tensor is kept elsewhere than in the result")
def an_attribute() -> Any:
    model = network()

    def f(x: Any) -> Any:
        model.last = x.sin()
        return model.last * x

    return f


@pytest.mark.filterwarnings("ignore:jit")
@pytest.mark.parametrize("name", REFUSED)
def test_what_stays_python(name: str) -> None:
    made, reason = REFUSED[name]
    results = []
    for jit in (lambda f: f, wg.jit):
        f = jit(made())
        found = []
        for i in range(3):
            x = sample(3, 4, requires_grad=True, seed=i)
            y = f(x)
            total = sum(z.sum() for z in y) if isinstance(y, tuple) else y.sum()
            total.backward(retain_graph=True)
            found.append(recorded([y, x.grad]))
        results.append(found)
    assert results[0] == results[1]
    assert any(reason in why for why in f.why()), f.why()


def test_what_changes_before_a_recorded_backward_raises() -> None:
    scale = {"by": 2.0}
    f = wg.jit(lambda x: (x * scale["by"]).sin().sum())
    for _ in range(2):
        x = sample(4, requires_grad=True)
        y = f(x)
    scale["by"] = 3.0
    with pytest.raises(RuntimeError, match="has changed since its call"):
        wg.autograd.grad(y, x, create_graph=True)


def test_memory_is_given_up_by_backward() -> None:
    f = wg.jit(lambda x: (x.sin() * x.cos()).tanh().sum())
    x = sample(1000, requires_grad=True)
    f(x).backward()
    before = wg.memory.live_bytes()
    y = f(x)
    kept = wg.memory.live_bytes() - before
    y.backward(retain_graph=True)
    assert wg.memory.live_bytes() - before == kept > 4000
    y.backward()
    assert wg.memory.live_bytes() - before < 200


def test_results_may_go_back_one_after_the_other():
    """A node keeps what it saved for those results that had no turn yet."""
    f = wg.jit(lambda x, y: (x * y, (x + y).tanh(), (x * 2).detach()))
    gradients = []
    for run in (f, f, f, f._function):
        x, y = (wg.full((3,), v, requires_grad=True) for v in (0.5, 2.0))
        first, second, _ = run(x, y)
        first.sum().backward()
        (slope,) = wg.autograd.grad(second.sum(), y)
        gradients.append([x.grad, y.grad, slope])
    assert (f.traces, f.why()) == (1, [])
    for found in gradients[:-1]:
        assert all(a.equal(b) for a, b in zip(found, gradients[-1], strict=True))


def test_rows_by_index_are_a_node_of_their_own():
    """Beside an edge to the tensor for what the function computes, run again."""
    f = wg.jit(lambda x: x[ROWS].sin() * 2)
    for _ in range(2):
        y = f(sample(3, 4, requires_grad=True))
    assert [node.op for node, _ in y.grad_fn.next_functions if node] == ["take", "leaf"]


def test_where_optree_is_loaded_its_registry_is_no_part_of_the_function():
    pytest.importorskip("optree")
    f = wg.jit(lambda x: {"twice": x * 2, "pair": (x + 1, 3)})
    for _ in range(2):
        assert f(wg.ones(2))["twice"].tolist() == [2.0, 2.0]
    assert (f.traces, f.why()) == (1, [])


def test_recording_that_the_function_turns_on_counts_where_it_is_off_around_the_call():
    p = wg.ones(2, requires_grad=True)

    @wg.jit
    def f(x):
        with wg.enable_grad():
            return p * x

    for _ in range(3):
        p.grad = None
        with wg.no_grad():
            y = f(wg.full((2,), 3.0))
        assert y.requires_grad
        y.sum().backward()
        assert p.grad.tolist() == [3, 3]
    assert f.traces == 1


@pytest.mark.parametrize("count", [1, 3])
def test_a_reverse_rule_of_the_programs_own_is_called_as_often_as_backward(count):
    factors, calls = [2.0], []

    class Scaled(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            calls.append(ctx.needs_input_grad)
            return g * factors[0] * (10 if ctx.needs_input_grad[1] else 1), g

    f = wg.jit(lambda x, y: Scaled.apply(x, y))
    x, y = wg.ones(2, requires_grad=True), wg.ones(2)
    for i in range(count):
        out = f(x, y)
        factors[0] = float(i + 3)
        assert wg.autograd.grad(out.sum(), [x])[0].tolist() == [i + 3.0] * 2
        assert len(calls) == i + 1
    assert "reverse rule of your own" in f.why()[0]
