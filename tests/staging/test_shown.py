"""What a program shows of itself: its listing, its cost, its memory, its graph."""

import gc
import re

import numpy as np
import pytest
import wengert as wg
from wengert import nn


def network(optimizer=None):
    wg.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 2))
    made = optimizer(model.parameters()) if optimizer else None

    def step(x, y):
        if made:
            made.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        if made:
            made.step()
        return loss

    return step


BATCH = (wg.ones(4, 8), wg.ones(4, 2))


def test_a_listing_names_what_is_read_and_says_where_each_step_is() -> None:
    weight = wg.ones(3, 2)

    def f(x):
        y = x @ weight
        return y.exp().sum()

    line = f.__code__.co_firstlineno
    step = wg.jit(f)
    step(wg.ones(4, 3))
    assert str(step.program(wg.ones(4, 3))).splitlines()[:4] == [
        "program f",
        "  argument 0: float32[4, 3] = %arg0",
        "  captured: float32[3, 2] = weight",
        f"  %2: float32[4, 2] = matmul(%arg0, weight)   # test_shown.py:{line + 1}",
    ]


def test_a_listing_of_a_training_step_has_every_kind_of_line() -> None:
    step = wg.jit(network(lambda p: wg.optim.SGD(p, lr=0.1)))
    step(*BATCH)
    program = step.program(*BATCH)
    text = str(program)
    for line in (
        "captured: float32[16, 8] = model.0.weight",
        "model.0.weight.grad = None",
        "call function 0 of the host",
        "draws random numbers",
    ):
        assert line in text
    assert re.search(r"model\.3\.bias\.grad = %\d+", text)
    assert {s.kind for s in program.steps} >= {"run", "gradient", "call"}
    assert program.names == step.operations(*BATCH)


def test_a_look_and_a_write_are_shown() -> None:
    total = wg.zeros(2)

    @wg.jit
    def f(x):
        if x.sum() > 1:
            total.add_(x)
        return x * 2

    f(wg.ones(2))
    program = f.program(wg.ones(2))
    text = str(program)
    assert re.search(r"look %\d+ == 1 ", text)
    assert re.search(r"total <- \w+\(.*%arg0", text)


def test_what_has_no_program_raises() -> None:
    step = wg.jit(lambda x: x * 2)
    with pytest.raises(ValueError, match="there is no program for these arguments with the current settings"):
        step.program(wg.ones(2))


PROGRAMS = {
    "chain": (lambda x: (x * 2).sin() + x, (wg.ones(1000),)),
    "sum": (lambda x: (x * 2).exp().sum(), (wg.ones(64, 100),)),
    "mean of an axis": (lambda x: (x - x.mean(1, keepdim=True)).square().mean(1), (wg.ones(64, 100),)),
    "product": (lambda x, y: (x @ y).relu(), (wg.ones(70, 90), wg.ones(90, 110))),
    "products": (lambda x: x @ x @ x, (wg.ones(130, 130),)),
    "softmax": (lambda x: x.softmax(-1).log(), (wg.ones(33, 77),)),
    "sorted": (lambda x: x.sort(-1)[0].cumsum(-1), (wg.rand(33, 77),)),
    "views": (lambda x: (x * 2).reshape(10, 100).T[3:7].exp(), (wg.ones(1000),)),
    "two results": (lambda x: (x.exp(), x.sin() * 2), (wg.ones(1000),)),
    "joined": (lambda x: wg.cat([x, x * 2, x.exp()]).sum(), (wg.ones(1000),)),
    "gradient": (wg.grad(lambda x: (x.sin() * x).sum()), (wg.ones(1000),)),
    "value and gradient": (wg.value_and_grad(lambda x: (x.sin() * x).sum()), (wg.ones(1000),)),
    "hessian": (wg.hessian(lambda x: (x.sin() * x).sum()), (wg.ones(30),)),
    "convolution": (lambda x, w: nn.functional.conv2d(x, w), (wg.ones(2, 3, 20, 20), wg.ones(4, 3, 3, 3))),
    "factor": (lambda x: wg.linalg.cholesky(x @ x.T + 100 * wg.eye(20)), (wg.ones(20, 20),)),
    "training": (network(), BATCH),
    "SGD": (network(lambda p: wg.optim.SGD(p, lr=0.1, momentum=0.9)), BATCH),
    "Adam": (network(lambda p: wg.optim.Adam(p, lr=0.1)), BATCH),
}


@pytest.fixture
def _one_thread():
    before = wg.get_num_threads()
    wg.set_num_threads(1)
    yield
    wg.set_num_threads(before)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.usefixtures("_one_thread")
def test_the_memory_is_what_a_run_takes_to_the_byte(name: str) -> None:
    function, args = PROGRAMS[name]
    step = wg.jit(function)
    for _ in range(3):
        step(*args)
    assert not step.why()
    gc.collect()
    expected = step.program(*args).memory()
    wg.memory.reset_peak()
    before = wg.memory.live_bytes()
    step(*args)
    assert wg.memory.peak_bytes() - before == expected.peak
    assert expected.peak > 0


# Without the value of the function, which nothing reads.
SHORTER = {"gradient", "hessian"}
# What is the same in all calls is computed as the program is made: an identity matrix times a number, and the
# gradient that a mean begins with.
ONCE = {"factor": 20 * 20, "training": 1, "SGD": 1, "Adam": 1}


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in SHORTER])
def test_the_cost_is_what_the_counter_counts(name: str) -> None:
    function, args = PROGRAMS[name]
    function(*args)
    with wg.FlopCounter() as counter:
        function(*args)
    step = wg.jit(function)
    step(*args)
    cost = step.program(*args).cost()
    assert cost.total.flops + ONCE.get(name, 0) == counter.total
    assert cost.total.flops == sum(row.flops for row in cost.steps)
    assert cost.total.flops == sum(row.flops for row in cost.by_name.values())
    assert str(cost).splitlines()[-1].startswith("total")


def test_what_nobody_reads_costs_nothing() -> None:
    function, args = PROGRAMS["gradient"]
    with wg.FlopCounter() as counter:
        function(*args)
    step = wg.jit(function)
    step(*args)
    # The product and the sum of 1,000 elements are those of the value.
    assert step.program(*args).cost().total.flops == counter.total - 1000 - 999


def test_bytes_intensity_and_bound() -> None:
    step = wg.jit(lambda x, y: x @ y)
    args = wg.ones(10, 20), wg.ones(20, 30)
    step(*args)
    (row,) = step.program(*args).cost(flops_per_second=1.0, bytes_per_second=1e9).steps
    assert (row.flops, row.read, row.written) == (2 * 10 * 20 * 30, 4 * (200 + 600), 4 * 300)
    assert row.intensity == row.flops / (4 * 1100)
    assert (row.bound, row.seconds) == ("compute", row.flops)
    (row,) = step.program(*args).cost(flops_per_second=1e12, bytes_per_second=1.0).steps
    assert (row.bound, row.seconds) == ("memory", 4400)
    with pytest.raises(ValueError, match="cost: flops_per_second is positive, got 0"):
        step.program(*args).cost(flops_per_second=0)


def test_broadcast_operands_are_read_once() -> None:
    step = wg.jit(lambda x: x + 1)
    x = wg.ones(1).expand(100)
    step(x)
    (row,) = step.program(x).cost().steps
    # One element of the argument, and the number.
    assert (row.read, row.written) == (4 + 4, 400)


STATEMENT = re.compile(r'\s+(\w+)( -> (\w+))?( \[(\w+=("([^"\\]|\\.)*"|\w+)(, )?)*\])?;|  (rankdir=TB;)')


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_drawing_is_dot(name: str) -> None:
    function, args = PROGRAMS[name]
    step = wg.jit(function)
    step(*args)
    program = step.program(*args)
    first, *body, last = program.draw().splitlines()
    assert (first, last) == ("digraph program {", "}")
    found = [STATEMENT.fullmatch(line) for line in body]
    assert all(found), [line for line, m in zip(body, found) if not m]
    nodes = {m[1] for m in found if m[1] and not m[3]} - {"node"}
    edges = {(m[1], m[3]) for m in found if m[3]}
    assert {end for edge in edges for end in edge} <= nodes
    assert len([n for n in nodes if n.startswith("s")]) == len(program.steps)


def test_a_rate_is_a_positive_number() -> None:
    f = wg.jit(lambda x: x @ x)
    f(wg.ones(2, 2))
    program = f.program(wg.ones(2, 2))
    assert program.cost(np.float32(1e9), 10**9).total == program.cost(1e9, 1e9).total
    for name in ("flops_per_second", "bytes_per_second"):
        for rate in ("a", None, True, 1j):
            with pytest.raises(TypeError, match=f"^cost: {name} is a number, got {rate!r}$"):
                program.cost(**{name: rate})
        for number in (0, -1.0, float("nan")):
            with pytest.raises(ValueError, match=f"^cost: {name} is positive, got {number!r}$"):
                program.cost(**{name: number})


def test_costs_are_told_by_module() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(8, 4), nn.Linear(4, 2)

        def forward(self, x: wg.Tensor) -> wg.Tensor:
            return self.second(self.first(x).tanh())

    model = nn.Sequential(Block(), nn.Linear(2, 1))

    def step(x: wg.Tensor) -> wg.Tensor:
        loss = model(x).square().sum()
        loss.backward()
        return loss.detach()

    staged, x = wg.jit(step), wg.ones(5, 8)
    with wg.FlopCounter() as counter:
        step(x)
    model.zero_grad()
    staged(x)
    model.zero_grad()
    program = staged.program(x)
    found = program.cost().by_module
    # In the first layer backward makes no gradient of `x`.
    products = {"Sequential.0.first": 2, "Sequential.0.second": 3, "Sequential.1": 3}
    sizes = {"Sequential.0.first": 5 * 8 * 4, "Sequential.0.second": 5 * 4 * 2, "Sequential.1": 5 * 2}
    for name, count in products.items():
        inside = [s for s in program.steps if s.module == name]
        assert {s.module.count("linear") for s in inside} == {0}
        assert found[name].flops >= 2 * count * sizes[name]
        assert found[name].flops == sum(s.flops for s in inside)
        assert found[name].calls == len(inside)
    assert found["Sequential"].flops == sum(s.flops for s in program.steps if s.module != "Global")
    assert (
        found["Sequential.0"].flops > found["Sequential.0.first"].flops + found["Sequential.0.second"].flops
    )
    whole = counter.by_module()["Sequential"].flops
    assert found["Sequential"].flops == pytest.approx(whole, rel=0.05)
    assert found["Sequential"].flops + found["Global"].flops == program.cost().total.flops
    assert "Sequential.0.second" in str(program.cost())
    assert set(wg.make_graph(lambda x: x * 2)(x).cost().by_module) == {"Global"}
