"""A whole training step as a program: the same bits as the function, values and all state."""

import collections
import concurrent.futures
import dataclasses
import fractions
import functools
import gc
import re
import warnings

import numpy as np
import pytest
import wengert as wg
from wengert import nn


def batches(count, seed=0):
    draws = np.random.default_rng(seed)
    for _ in range(count):
        x = wg.tensor(draws.standard_normal((8, 5)), dtype=wg.float32)
        yield x, wg.tensor(draws.standard_normal((8, 2)), dtype=wg.float32)


def bits(values):
    return [x.detach().numpy().tobytes() if isinstance(x, wg.Tensor) else x for x in values]


class Training:
    """A small network with everything that keeps a state."""

    def __init__(self, optimizer, schedule=None):
        wg.manual_seed(0)
        self.model = nn.Sequential(
            nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.25), nn.Linear(16, 2)
        )
        self.optimizer = optimizer(self.model.parameters())
        self.schedule = schedule(self.optimizer) if schedule else None

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        if self.schedule:
            self.schedule.step()
        return loss

    def state(self):
        kept = [
            x for entry in self.optimizer.state.values() for x in entry.values() if isinstance(x, wg.Tensor)
        ]
        grads = [p.grad for p in self.model.parameters() if p.grad is not None]
        return [*self.model.parameters(), *self.model.buffers(), *kept, *grads, wg.get_rng_state()]

    def numbers(self):
        entries = self.optimizer.state.values()
        counts = [x for entry in entries for x in entry.values() if not isinstance(x, wg.Tensor)]
        return [group["lr"] for group in self.optimizer.param_groups], counts


OPTIMIZERS = {
    "SGD": lambda params: wg.optim.SGD(params, lr=0.1),
    "momentum": lambda params: wg.optim.SGD(params, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda params: wg.optim.Adam(params, lr=0.01),
    "AdamW": lambda params: wg.optim.AdamW(params, lr=0.01, amsgrad=True),
    "RMSprop": lambda params: wg.optim.RMSprop(params, lr=0.01, momentum=0.5, centered=True),
    "Adagrad": lambda params: wg.optim.Adagrad(params, lr=0.01),
    "NAdam": lambda params: wg.optim.NAdam(params, lr=0.01),
    "Adafactor": lambda params: wg.optim.Adafactor(params, lr=0.01),
    "Rprop": lambda params: wg.optim.Rprop(params, lr=0.01),
}


def both(optimizer, schedule=None):
    """The same training twice, and the second's step as a program."""
    eager, staged = Training(optimizer, schedule), Training(optimizer, schedule)
    return eager, staged, wg.jit(staged.step)


def alike(eager, staged, step, pairs):
    for x, y in pairs:
        state = wg.get_rng_state()
        expected = eager.step(x, y)
        after = wg.get_rng_state()
        wg.set_rng_state(state)
        found = step(x, y)
        assert bits([found]) == bits([expected])
        assert bits([after]) == bits([wg.get_rng_state()])
        assert bits(staged.state()) == bits(eager.state())
        assert staged.numbers() == eager.numbers()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_has_the_bits_of_eager(name):
    eager, staged, step = both(OPTIMIZERS[name])
    alike(eager, staged, step, batches(6))
    assert step.traces == 1, step.why()


def test_a_new_rate_is_no_new_program():
    schedule = lambda optimizer: wg.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)
    eager, staged, step = both(OPTIMIZERS["Adam"], schedule)
    alike(eager, staged, step, batches(4))
    for training in (eager, staged):
        training.optimizer.param_groups[0]["lr"] = 0.5
    alike(eager, staged, step, batches(3, seed=1))
    assert step.traces == 1, step.why()


def test_what_happens_in_between_is_seen():
    eager, staged, step = both(OPTIMIZERS["momentum"])
    alike(eager, staged, step, batches(2))
    for training in (eager, staged):
        training.model.eval()
    alike(eager, staged, step, batches(2, seed=1))
    for training in (eager, staged):
        training.model.train()
    alike(eager, staged, step, batches(2, seed=2))
    assert step.traces == 2
    kept = {k: v.clone() for k, v in eager.model.state_dict().items()}
    for training in (eager, staged):
        training.model.load_state_dict({k: v * 0.5 if v.is_floating_point() else v for k, v in kept.items()})
    alike(eager, staged, step, batches(2, seed=3))
    for training in (eager, staged):
        training.model[4].weight.data = wg.ones(2, 16)
    alike(eager, staged, step, batches(2, seed=4))
    for training in (eager, staged):
        training.model[0].weight.requires_grad_(False)
    alike(eager, staged, step, batches(2, seed=5))
    for training in (eager, staged):
        training.model[2].register_forward_hook(lambda module, args, out: out * 2)
    alike(eager, staged, step, batches(2, seed=6))
    for training in (eager, staged):
        training.model[2] = nn.Tanh()
    alike(eager, staged, step, batches(2, seed=7))


def test_gradients_that_accumulate():
    weight = wg.ones(3, requires_grad=True)
    other = wg.ones(3, requires_grad=True)

    def accumulate(x, weight):
        (x * weight).square().sum().backward()

    step = wg.jit(lambda x: accumulate(x, weight))
    for i in range(5):
        x = wg.arange(3.0) + i
        step(x)
        accumulate(x, other)
        assert weight.grad.tolist() == other.grad.tolist()
    # Without a gradient there is another program.
    weight.grad = other.grad = None
    for i in range(3):
        step(wg.arange(3.0) * i)
        accumulate(wg.arange(3.0) * i, other)
        assert weight.grad.tolist() == other.grad.tolist()
    assert step.traces == 2


def test_results_do_not_share_memory():
    step = wg.jit(lambda x: (x * 2, x + 1))
    first = step(wg.ones(3))
    kept = [y.tolist() for y in first]
    second = step(wg.zeros(3))
    assert [y.tolist() for y in first] == kept
    second[0].add_(1)
    assert step(wg.zeros(3))[0].tolist() == [0.0, 0.0, 0.0]


def test_random_numbers_go_on():
    step = wg.jit(lambda x: x + wg.rand(3) + wg.randn(3))
    wg.manual_seed(3)
    found = [step(wg.zeros(3)).tolist() for _ in range(4)]
    wg.manual_seed(3)
    assert found == [(wg.zeros(3) + wg.rand(3) + wg.randn(3)).tolist() for _ in range(4)]
    assert step.traces == 1


def test_a_branch_is_another_program():
    def f(x):
        return x * 2 if (x.sum() > 0) else x - 1

    step = wg.jit(f)
    for value in (1.0, -1.0, 2.0, -3.0):
        assert step(wg.full((2,), value)).tolist() == f(wg.full((2,), value)).tolist()
    assert step.traces == 2


def test_writes_reach_arguments_and_closures():
    total = wg.zeros(3)

    def f(x):
        total.add_(x)
        x.mul_(2)
        return x.sum()

    step = wg.jit(f)
    for _ in range(3):
        x = wg.ones(3)
        assert step(x).item() == 6.0
        assert x.tolist() == [2.0, 2.0, 2.0]
    assert total.tolist() == [3.0, 3.0, 3.0]
    assert step.traces == 1


def test_names_imported_when_first_used_and_batching_rules_are_staged():
    total = lambda x: wg.celu(x) / wg.psum(x.exp(), "i")
    step = wg.jit(wg.vmap(total, axis_name="i"))
    for scale in (1.0, -2.0, 3.0):
        x = wg.linspace(-1, 1, 5) * scale
        assert wg.equal(step(x), wg.vmap(total, axis_name="i")(x))
    assert (step.traces, step.why()) == (1, [])


def test_the_garbage_collector_is_not_the_function_s():
    calls = []
    look = lambda phase, info: calls.append(phase)
    step = wg.jit(lambda x: sum(wg.stack([x * k, x]).sum() for k in range(20)))
    gc.callbacks.append(look)
    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for _ in range(3):
            step(wg.ones(3))
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(look)
    assert (step.traces, step.why(), gc.isenabled()) == (1, [], True)
    assert calls


def test_what_cannot_be_staged_runs_as_python():
    kept = []

    def f(x):
        kept.append(x * 2)
        return x + 1

    step = wg.jit(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(12):
            assert step(wg.full((2,), float(i))).tolist() == [i + 1.0] * 2
    assert [y.tolist() for y in kept] == [[2.0 * i] * 2 for i in range(12)]


def test_a_value_that_leaves_is_told():
    def f(x):
        return x * float(x.sum())

    step = wg.jit(f)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(12):
            assert step(wg.full((2,), float(i))).tolist() == [2.0 * i * i] * 2
    assert ["float()" in str(w.message) for w in caught] == [True]
    assert "float()" in step.why()[0]


def test_carried_state_is_seen():
    class Cell:
        def __init__(self):
            self.hidden = wg.zeros(2)

        def step(self, x):
            self.hidden = self.hidden * 0.5 + x
            return self.hidden * 1

    cell, other = Cell(), Cell()
    step = wg.jit(cell.step)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(12):
            x = wg.full((2,), float(i))
            assert step(x).tolist() == other.step(x).tolist()


def test_an_exception_leaves_everything():
    weight = wg.ones(2, requires_grad=True)

    def f(x, fails):
        (weight * x).sum().backward()
        if fails:
            raise ArithmeticError("on purpose")
        return x * 2

    step = wg.jit(f)
    with pytest.raises(ArithmeticError):
        step(wg.ones(2), True)
    assert step(wg.ones(2), False).tolist() == [2.0, 2.0]


def test_transforms_inside_and_outside():
    def f(x):
        return (x.sin() * x).sum()

    x = wg.arange(4.0)
    assert wg.jit(wg.grad(f))(x).tolist() == wg.grad(f)(x).tolist()
    staged = wg.jit(wg.hessian(f))
    for _ in range(2):
        assert staged(x).tolist() == wg.hessian(f)(x).tolist()
    assert staged.traces == 1
    assert wg.grad(wg.jit(f))(x).tolist() == wg.grad(f)(x).tolist()
    assert wg.vmap(wg.jit(wg.sin))(x).tolist() == wg.sin(x).tolist()
    inner = wg.jit(f)
    assert wg.jit(lambda x: inner(x) + 1)(x).tolist() == (f(x) + 1).tolist()


def test_modes_that_watch_operations_see_them():
    step = wg.jit(lambda x: x.sqrt())
    x = wg.tensor([-1.0])
    step(x)
    with wg.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="sqrt"):
        wg.jit(lambda x: x.requires_grad_().sqrt().sum().backward())(x)


def test_numbers_of_the_program_are_compared():
    settings = {"scale": 2.0}

    class Holder:
        __slots__ = ("bias",)

    holder = Holder()
    holder.bias = 1.0
    step = wg.jit(lambda x: x * settings["scale"] + holder.bias)
    assert step(wg.ones(1)).tolist() == [3.0]
    settings["scale"] = 5.0
    assert step(wg.ones(1)).tolist() == [6.0]
    holder.bias = -1.0
    assert step(wg.ones(1)).tolist() == [4.0]
    assert step.traces == 3


def test_an_argument_that_was_saved_is_noticed():
    x, weight = wg.ones(2), wg.ones(2, requires_grad=True)
    loss = (x * weight).sum()
    wg.jit(lambda x: x.mul_(3))(x)
    with pytest.raises(RuntimeError, match="modified"):
        loss.backward()


def test_modules_and_optimisers_are_arguments():
    wg.manual_seed(0)
    model = nn.Linear(3, 1)
    optimizer = wg.optim.SGD(model.parameters(), lr=0.1)

    @wg.jit
    def step(model, optimizer, x):
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    losses = [step(model, optimizer, wg.ones(2, 3)).item() for _ in range(4)]
    assert losses == sorted(losses, reverse=True)
    assert step.traces == 1
    other = nn.Linear(3, 1)
    step(other, wg.optim.SGD(other.parameters(), lr=0.1), wg.ones(2, 3))
    assert step.traces == 2


def test_arguments_that_are_no_tensors_are_compared_by_value():
    step = wg.jit.stage(
        lambda x, n, scale: x * n * scale, static_argnums=1, static_argnames="scale", donate_argnums=0
    )
    for n, scale in ((2, 3.0), (2, 3.0), (3, 3.0), (2, 0.5)):
        assert step(wg.ones(1), n, scale=scale).tolist() == [n * scale]
    assert step.traces == 3


def test_a_function_is_written_down_so_often():
    step = wg.jit.stage(lambda x: x * x.sum().item(), max_traces=2)
    with pytest.warns(UserWarning, match="runs as Python from now on"):
        assert [step(wg.ones(2)).tolist() for _ in range(4)] == [[2.0, 2.0]] * 4
    assert step.traces == 2


def test_gradients_that_change_after_the_step_are_those_of_eager():
    eager, staged = Training(OPTIMIZERS["SGD"]), Training(OPTIMIZERS["SGD"])

    def zeroed(training):
        def step(x, y):
            loss = training.step(x, y)
            for p in training.model.parameters():
                p.grad.zero_()
            return loss

        return step

    staged.run, eager.run = wg.jit(zeroed(staged)), zeroed(eager)
    for x, y in batches(4):
        state = wg.get_rng_state()
        expected = eager.run(x, y)
        wg.set_rng_state(state)
        assert bits([staged.run(x, y)]) == bits([expected])
        assert bits(staged.state()) == bits(eager.state())
    assert staged.run.traces <= 2, staged.run.why()


def test_one_thread_at_a_time_writes_down():
    weight = wg.ones(2, requires_grad=True)
    optimizer = wg.optim.SGD([weight], lr=0.5)
    first = True

    def step(x):
        nonlocal first
        optimizer.zero_grad()
        (weight * x).sum().backward()
        if first:
            first = False
            # Another thread trains while this one is traced.
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                pool.submit(other, x).result()
        optimizer.step()

    def train(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()

    other, staged = wg.jit(train), wg.jit(step)
    for _ in range(3):
        staged(wg.ones(2))
    assert type(optimizer) is wg.optim.SGD
    assert other.traces == 0
    for _ in range(3):
        other(wg.ones(2))
    assert other.traces == 1
    # The first step ran twice, once for each thread.
    assert weight.tolist() == [1 - 0.5 * 7] * 2


def test_sets_and_queues_are_compared():
    wanted, factors = {1}, collections.deque([2.0])
    step = wg.jit(lambda x: x * factors[0] * len(wanted))
    assert step(wg.ones(1)).tolist() == [2.0]
    wanted.add(2)
    assert step(wg.ones(1)).tolist() == [4.0]
    factors[0] = 5.0
    assert step(wg.ones(1)).tolist() == [10.0]


def test_numbers_that_change_at_each_call_end_in_a_warning():
    scale = [0.0]
    f, g = wg.jit(lambda x: x * scale[0]), wg.jit(lambda x, k: x * k)

    def read(i):
        scale[0] = float(i)
        return f(wg.ones(1)).item()

    assert [read(i) for i in range(8)] == [*range(8)]
    with pytest.warns(UserWarning, match="<lambda> runs as Python from now on: 8 traces made no program"):
        assert read(8) == 8
    assert read(9) == 9
    assert f.traces == 8
    assert [g(wg.ones(1), float(i)).item() for i in range(64)] == [*range(64)]
    with pytest.warns(UserWarning, match="more than 64 kinds of arguments; give numbers that change at each"):
        assert g(wg.ones(1), 64.0).item() == 64
    assert g.traces == 64
    assert g.why() == [
        "more than 64 kinds of arguments; give numbers that change at each call as tensors, and pad "
        "tensors to a few shapes",
    ]


def test_an_autocast_region_around_the_call_is_a_part_of_the_program():
    model = nn.Linear(4, 4)
    f = wg.jit(lambda x: model(x).exp())
    x, autocast = wg.randn(3, 4), functools.partial(wg.autocast, "cpu")
    regions = [{"dtype": wg.bfloat16}, {"dtype": wg.float16}, {"enabled": False}]
    for region in regions * 3:
        eager, staged = (x.clone().requires_grad_() for _ in range(2))
        with autocast(**region):
            found, expected = f(staged), model(eager).exp()
        assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())
        for y in (expected, found):
            y.float().sum().backward()
        assert staged.grad.tolist() == eager.grad.tolist()
    assert (f.traces, f.why()) == (3, [])
    with autocast(dtype=wg.bfloat16):
        assert "cast" in f.program(x.requires_grad_()).names
        assert wg.jit(lambda x: x @ x).lower(wg.ones(2, 2)).compile
    f(x)
    assert f.traces == 4
    assert "cast" not in f.program(x).names
    leaves = wg.jit(lambda x: x * (x @ x).sum().item())
    with autocast():
        leaves(wg.ones(2, 2))
    assert leaves.traces == 1
    assert "item()" in leaves.why()[0]


def test_settings_of_jit_are_checked():
    f = wg.jit(lambda x: x * 2)
    for value, error in ((0, ValueError), ("a", TypeError)):
        with pytest.raises(error, match="jit: max_traces is"):
            wg.jit(f, max_traces=value)


def test_what_of_optimisers_and_scalers_stays_python_is_told():
    weight = wg.ones(2, requires_grad=True)
    scaler, search = wg.amp.GradScaler(), wg.optim.LBFGS([weight])
    closure = lambda: weight.detach().sum()

    class Louder(wg.amp.GradScaler):
        def scale(self, outputs):
            return super().scale(outputs)

    louder = Louder()
    for told, f in {
        "LBFGS.step with a closure, which is called as often as the step wants; jit the closure": (
            lambda: search.step(closure)
        ),
        "GradScaler.get_scale, whose values are not compared; give it as a tensor": lambda: (
            scaler.get_scale()
        ),
        "Louder.scale, which is not that of GradScaler": lambda: louder.scale(weight.detach()),
        "GradScaler.update with arguments": lambda: scaler.update(wg.ones(())),
    }.items():
        step = wg.jit(f)
        step()
        (reason,) = step.why()
        assert reason.startswith(f"{told} (")


def test_data_classes_and_attributes_named_type_do_not_ask_for_classes():
    @dataclasses.dataclass(order=True)
    class Config:
        width: int = 3

    class Model(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.config, self.layer = config, nn.Linear(config.width, 1)

        def forward(self, x):
            scale = 1.0 if x.device.type == "cpu" else 2.0
            return self.layer(scale * x[:, : self.config.width]).sum()

    model = Model(Config())
    optimizer = wg.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        model(x).backward()
        optimizer.step()

    staged = wg.jit(step)
    for _ in range(2):
        staged(wg.ones(2, 3))
    assert (staged.traces, staged.why()) == (1, [])

    asking = wg.jit(lambda x: (step(x), type(optimizer)))
    asking(wg.ones(2, 3))
    assert asking.why() == ["a function that may ask for the class of an optimiser"]


def test_the_reason_is_that_of_such_arguments():
    f = wg.jit(lambda x, power=1.0: (x * x.sum().item() if len(x) == 2 else x * 2) ** power)
    f(wg.ones(2))
    leaves = re.escape(f.why()[0])
    with pytest.raises(ValueError, match=f"no program for these arguments.*: {leaves}$"):
        f.program(wg.ones(2))
    # Other arguments have no reason yet.
    with pytest.raises(ValueError, match=r"then see why\(\)$"):
        f.program(wg.ones(3))
    given = nn.Parameter(wg.ones(3), requires_grad=False)
    given.note = "attributes"
    f(given)
    with pytest.raises(ValueError, match=r"then see why.*: an argument with attributes$"):
        f.operations(given)
    with pytest.raises(ValueError, match=f": {leaves}$"):
        f.fused(wg.ones(2))
    with pytest.raises(ValueError, match=": an argument of type Fraction may change unnoticed; "):
        f.program(wg.ones(3), power=fractions.Fraction(1))
    f(wg.ones(3))
    assert f.program(wg.ones(3)).names[0] == "mul"


@pytest.mark.filterwarnings("ignore:jit")
def test_the_reason_after_too_many_traces_and_kinds():
    factor = [0]
    f = wg.jit(lambda x, n=0: x * factor[0] * n, max_traces=1)
    for i in range(64):
        f(wg.ones(1), i)
    with pytest.raises(ValueError, match="more than 64 kinds of arguments"):
        f.program(wg.ones(1), 64)
    g = wg.jit(lambda x: x.sum().item() * 1, max_traces=1)
    for _ in range(2):
        g(wg.ones(1))
    with pytest.raises(ValueError, match=r"there is no program for these arguments.*item\(\)"):
        g.program(wg.ones(1))


@pytest.mark.filterwarnings("ignore:jit")
def test_a_jitted_function_takes_another_number_of_traces():
    factor = [0]
    inner = wg.jit(lambda x: x * factor[0])

    def traces(f):
        for i in range(10):
            factor[0] = i
            assert f(wg.ones(1)).item() == i
        return f.traces

    assert wg.jit(inner) is inner
    assert wg.jit(inner, max_traces=8) is inner
    two = wg.jit(inner, max_traces=2)
    assert (traces(two), traces(wg.jit(two)), traces(wg.jit(two, check=True)), traces(inner)) == (2, 2, 2, 8)
    assert wg.jit(two) is two
    with pytest.raises(TypeError, match=r"^jit: max_traces is an integer, got True$"):
        wg.jit(inner, max_traces=True)


def test_a_method_of_an_object_without_a_dictionary():
    class Slots:
        __slots__ = ("scale",)

        def __init__(self):
            self.scale = 2

        @wg.jit
        def times(self, x):
            return x * self.scale

    given = Slots()
    assert [given.times(wg.ones(1)).item() for _ in range(3)] == [2.0] * 3
    (told,) = given.times.why()
    assert told == (
        "Slots: an object without a __dict__ has no place for programs; keep its method: step = model.step"
    )
    times = given.times
    assert [times(wg.ones(1)).item() for _ in range(3)] == [2.0] * 3
    assert times.traces == 1
    given.scale = 3
    assert times(wg.ones(1)).item() == 3.0


@pytest.mark.parametrize("inside", [False, True])
def test_gradients_that_lie_in_other_memory_later(inside):
    def run(jit):
        p, a = wg.ones(4, requires_grad=True), wg.zeros(4)
        p.grad = wg.zeros(4)
        given = wg.ones(2)

        def f(i):
            p.grad.add_(1)
            y = a * 2
            if inside:
                p.grad = a
            return y, given[i]

        step, found = jit(f), []
        for k in range(4):
            found.append(step(wg.tensor([0]))[0].tolist())
            if k == 0 and not inside:
                p.grad = a
            if k == 2:
                p.grad = wg.zeros(4)
        return found, a.tolist(), p.grad.tolist()

    assert run(wg.jit) == run(lambda f: f)


def test_gradients_in_one_memory():
    def run(jit):
        p, q = wg.ones(3, requires_grad=True), wg.ones(3, requires_grad=True)
        p.grad = wg.zeros(3)
        q.grad = p.grad

        def f(x):
            p.grad.add_(x)
            q.grad.mul_(2.0)
            return p.grad + 1

        step, found = jit(f), []
        for k in range(5):
            found.append(step(wg.ones(3)).tolist())
            if k == 2:
                q.grad = wg.ones(3)
        return found, p.grad.tolist(), q.grad.tolist()

    assert run(wg.jit) == run(lambda f: f)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.std(),
        lambda x: wg.linalg.vector_norm(x),
        lambda x: wg.nn.functional.normalize(x, dim=0),
        lambda x: wg.std_mean(x, 0)[0] + wg.dist(x, -x),
    ],
)
def test_sums_of_squares_out_of_range_are_a_decision(function):
    step = wg.jit(function)
    for values in ([1.0, 2.0], [1e25, -1e25], [3.0, 5.0], [1e-30, -1e-30], [1.0, 1.5]):
        x = wg.tensor(values)
        assert step(x).tolist() == function(x).tolist()
    assert step.traces == 2, step.why()


@pytest.mark.parametrize(
    "function",
    [
        lambda i, t: nn.functional.embedding(i, t),
        lambda i, t: nn.functional.embedding_bag(i.reshape(1, -1), t),
        lambda i, t: nn.functional.one_hot(i, 50) + t.sum().long(),
        lambda i, t: t.index_add(0, i, t[:2]),
        lambda i, t: t.scatter(0, i.reshape(2, 1), 1.5),
        lambda i, t: t.index_fill(0, i, 2.0),
    ],
    ids=["embedding", "embedding_bag", "one_hot", "index_add", "scatter", "index_fill"],
)
def test_one_program_for_all_indices(function):
    table = wg.randn(50, 2)
    step = wg.jit(lambda i: function(i, table))
    for least in range(12):
        i = wg.tensor([least, 40])
        assert step(i).tolist() == function(i, table).tolist()
    assert step.traces == 1, step.why()
    for bad in (50, -51):
        with pytest.raises(IndexError):
            step(wg.tensor([bad, 3]))
    assert step(wg.tensor([0, 1])).tolist() == function(wg.tensor([0, 1]), table).tolist()


def test_a_write_by_an_index_within_a_program():
    kept = wg.zeros(4)

    def f(i):
        kept[i] = kept.sum() + 1.0
        return kept * 2

    step, other = wg.jit(f), wg.zeros(4)
    for k in range(12):
        found = step(wg.tensor([k % 4]))
        other[wg.tensor([k % 4])] = other.sum() + 1.0
        assert found.tolist() == (other * 2).tolist()
    assert step.traces == 1, step.why()
    with pytest.raises(IndexError):
        step(wg.tensor([4]))
    assert kept.tolist() == other.tolist()


def test_globals_that_are_named_as_attributes_do_not_matter():
    text = """
def f(x):
    return x.mean() * scale
"""
    names = {"scale": 2.0, "mean": 0}
    exec(text, names)
    step = wg.jit(names["f"])
    for k in range(12):
        names["mean"] = step(wg.full((3,), float(k)))
        assert names["mean"].item() == 2.0 * k
    assert step.traces == 1, step.why()
    names["scale"] = 3.0
    assert step(wg.ones(3)).item() == 3.0


def test_calls_that_raise_are_no_tries():
    def f(x, i):
        return x[i] * 2

    step = wg.jit(f)
    for _ in range(12):
        with pytest.raises(IndexError):
            step(wg.ones(3), wg.tensor([7]))
    for _ in range(2):
        assert step(wg.ones(3), wg.tensor([1])).tolist() == [2.0]
    assert step.why() == []
    assert step.fused(wg.ones(3), wg.tensor([1])) == []
