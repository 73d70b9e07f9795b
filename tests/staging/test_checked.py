"""`check=True`: calls by programs are compared with the function run as Python."""

import collections
import fractions
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from staging.comparing import run
from staging.test_cases import CASES
from staging.test_steps import OPTIMIZERS, Training, alike, batches
from wengert import nn
from wengert.jit._checked import Picture

# What is counted outside counts both runs: lists to which hooks and the optimiser of a program append.
TWICE = {"optimizers-hooks_of_an_optimizer", "own_optimizers-that_log"}


@pytest.mark.parametrize("name", CASES)
def test_a_checked_case_is_the_same(name: str) -> None:
    """What a program changed is taken back: the cases of `test_cases.py` find what they find without."""
    jit = lambda function, **settings: wg.jit(function, check=True, **settings)
    found, expected = run(CASES[name].body, jit), run(CASES[name].body, CASES[name].plain)
    assert (found == expected) is (name not in TWICE)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_checked_step_leaves_what_eager_leaves(name: str) -> None:
    schedule = lambda optimizer: wg.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)
    eager, staged = Training(OPTIMIZERS[name], schedule), Training(OPTIMIZERS[name], schedule)
    step = wg.jit(staged.step, check=True)
    alike(eager, staged, step, batches(4))
    assert (step.traces, step.why()) == (1, [])


# ---- differences ---------------------------------------------------------------------------------


class Unseen:
    """A number that `jit` takes for one that nobody changes, and which changes."""

    def __init__(self) -> None:
        self.number = fractions.Fraction(1)

    def change(self) -> None:
        self.number._numerator = 3  # type: ignore[attr-defined]


def model_of(unseen: Unseen) -> tuple[nn.Module, wg.optim.Optimizer]:
    wg.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    return model, wg.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)


def result(unseen: Unseen) -> Any:
    return lambda x: {"a": x * 0, "b": (x * 2, x * float(unseen.number))}


def argument(unseen: Unseen) -> Any:
    return lambda x: x.mul_(float(unseen.number))


def closure(unseen: Unseen) -> Any:
    total = wg.zeros(2, 2)
    return lambda x: total.add_(x * float(unseen.number))


def gradient(unseen: Unseen) -> Any:
    weight = nn.Parameter(wg.ones(2))
    return lambda x: (weight * x * float(unseen.number)).sum().backward()


def buffer(unseen: Unseen) -> Any:
    model, _ = model_of(unseen)
    return lambda x: model(x * float(unseen.number)).detach() * 0


def optimiser(unseen: Unseen) -> Any:
    model, optimizer = model_of(unseen)

    def step(x: wg.Tensor) -> None:
        optimizer.zero_grad()
        (model[0](x) * float(unseen.number)).sum().backward()
        optimizer.step()
        with wg.no_grad():
            for p in model.parameters():
                p.zero_()
        optimizer.zero_grad()

    return step


def numbers(unseen: Unseen) -> Any:
    return lambda x: x * wg.rand(int(unseen.number) * 2).sum() * 0


def text(unseen: Unseen) -> Any:
    return lambda x: (x, float(unseen.number))


def shape(unseen: Unseen) -> Any:
    return lambda x: x[:1].expand(int(unseen.number), 2) * 1


DIFFERENCES: dict[str, tuple[Callable[[Unseen], Any], str]] = {
    "result": (
        result,
        "result 2 differs: 3 of 4 elements, the first at (0, 1): 1.0 by the program, 3.0 as Python",
    ),
    "argument": (
        argument,
        "argument 0 differs: 3 of 4 elements, the first at (0, 1): 1.0 by the program, 3.0 as Python",
    ),
    "closure": (
        closure,
        "tensor 0 that the function reads, of shape (2, 2) differs: 3 of 4 elements, the first at (0, 1): 4.0 "
        "by the program, 6.0 as Python",
    ),
    "gradient": (
        gradient,
        "the gradient of tensor 0 that the function reads, of shape (2,) differs: 2 of 2 elements, the first "
        "at (0,): 8.0 by the program, 12.0 as Python",
    ),
    "buffer": (
        buffer,
        "1.running_mean of Sequential differs: 2 of 2 elements, the first at (0,): ",
    ),
    "optimiser": (
        optimiser,
        "SGD.state[0]['momentum_buffer'] differs: 4 of 4 elements, the first at (0, 0): ",
    ),
    "numbers": (numbers, "the random numbers after the call differs: "),
    "text": (text, "the function returns other things than its program: ("),
    "shape": (
        shape,
        "result 0 differs: wengert.float32 of shape (1, 2) and strides (2, 1) by the program, wengert.float32 "
        "of shape (3, 2) and strides (2, 1) as Python",
    ),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_difference_is_told(name: str) -> None:
    make, message = DIFFERENCES[name]
    unseen = Unseen()
    step = wg.jit(make(unseen), check=True)
    x = lambda: wg.tensor([[0.0, 1.0], [2.0, 3.0]])
    for _ in range(3):
        step(x())
    # With gradients there is another program than without.
    assert (step.traces, step.why()) == (1 + (name == "gradient"), [])
    unseen.change()
    with pytest.raises(RuntimeError) as caught:
        step(x())
    assert str(caught.value).startswith(f"jit: {step._function.__name__}: {message}")
    # Without the check nobody notices.
    step = wg.jit(make(unseen := Unseen()))
    for _ in range(3):
        step(x())
    unseen.change()
    step(x())
    assert step.traces == 1 + (name == "gradient")


def test_a_function_that_raises_where_its_program_does_not() -> None:
    unseen = Unseen()
    step = wg.jit(lambda x: x / (1 if unseen.number == 1 else wg.ones(7)), check=True)
    for _ in range(2):
        step(wg.ones(2))
    unseen.change()
    with pytest.raises(
        RuntimeError, match="<lambda>: the function raises where its program does not"
    ) as told:
        step(wg.ones(2))
    assert isinstance(told.value.__cause__, wg.ShapeError)


def test_every_nan_is_like_any_other() -> None:
    step = wg.jit(lambda x: (x - x, (x / x).to(wg.bfloat16), x * (1j * x)), check=True)
    for value in (np.inf, 0.0, np.nan, 1.0):
        step(wg.tensor([value, 1.0]))
    assert step.traces == 1


def test_what_an_optimiser_keeps_is_taken_back() -> None:
    class Counting(wg.optim.Optimizer):
        """Keeps numbers in all kinds of places."""

        def __init__(self, params: Any) -> None:
            super().__init__(params, {"lr": 0.5})
            self.seen: collections.deque[int] = collections.deque([0], maxlen=3)
            self.places: set[int] = set()
            self.inner = {"list": [0], "tuple": (wg.zeros(1),)}

        def step(self, closure: Any = None) -> None:
            self.seen.append(self.seen[-1] + 1)
            self.places.add(len(self.places))
            self.inner["list"].append(len(self.inner["list"]))
            self.inner["tuple"][0].add_(1)
            with wg.no_grad():
                for p in self.param_groups[0]["params"]:
                    self.state[p].setdefault("mean", wg.zeros(2)).add_(p.grad)
                    p.sub_(self.state[p]["mean"] * self.seen[-1])

    weights = [wg.ones(2, requires_grad=True) for _ in range(2)]
    both = [Counting([w]) for w in weights]

    def step(weight: wg.Tensor, optimizer: Any, x: wg.Tensor) -> wg.Tensor:
        optimizer.zero_grad()
        loss = (weight * x).square().sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    eager = lambda x: step(weights[0], both[0], x)
    staged = wg.jit(lambda x: step(weights[1], both[1], x), check=True)
    for i in range(4):
        assert wg.equal(eager(wg.full((2,), i / 10)), staged(wg.full((2,), i / 10)))
    assert (staged.traces, staged.why()) == (1, [])
    assert wg.equal(*weights)
    one, two = ([x.seen, x.places, x.inner["list"], x.inner["tuple"][0].item()] for x in both)
    assert one == two == [collections.deque([2, 3, 4]), {0, 1, 2, 3}, [0, 1, 2, 3, 4], 4.0]
    assert wg.equal(both[0].state[weights[0]]["mean"], both[1].state[weights[1]]["mean"])


def test_what_was_saved_of_an_argument_stays() -> None:
    x, weight = wg.ones(2), wg.ones(2, requires_grad=True)
    step = wg.jit(lambda x: x * 2, check=True)
    for _ in range(2):
        loss = (x * weight).sum()
        assert step(x).tolist() == [2.0, 2.0]
        loss.backward()


def test_the_setting() -> None:
    f = wg.jit(lambda x: x * 2)
    assert wg.jit(f) is f
    checked = wg.jit.stage(f, check=True)
    assert checked is not f
    assert checked(wg.ones(1)).tolist() == [2.0]
    with pytest.raises(TypeError, match=r"^jit: check is True or False, got 1$"):
        wg.jit(f, check=1)

    class Scaled:
        def __init__(self) -> None:
            self.unseen = Unseen()

        @wg.jit(check=True)
        def times(self, x: wg.Tensor) -> wg.Tensor:
            return x * float(self.unseen.number)

    scaled = Scaled()
    for _ in range(2):
        scaled.times(wg.ones(2))
    scaled.unseen.change()
    with pytest.raises(RuntimeError, match="jit: times: result 0 differs"):
        scaled.times(wg.ones(2))


def overlapping() -> wg.Tensor:
    """Rows of an array of NumPy that share elements."""
    return wg.from_numpy(np.lib.stride_tricks.sliding_window_view(np.zeros(6, np.float32), 3, writeable=True))


VIEWS: dict[str, Callable[[wg.Tensor], wg.Tensor]] = {
    "expanded": lambda b: b.expand(4, 3),
    "an axis between": lambda b: b.reshape(3, 1, 1).expand(3, 4, 1),
    "a part": lambda b: b[1:],
    "all of it": lambda b: b.reshape(3, 1),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("is_argument", [False, True])
def test_elements_that_share_memory_are_taken_back(view: str, is_argument: bool) -> None:
    def train(jit: Callable[..., Any]) -> list[Any]:
        base, count = wg.zeros(3), wg.zeros(2)
        model = nn.Linear(1, 1)
        model.weight.data.zero_()
        view_of_it = VIEWS[view](base)

        def step(x: wg.Tensor, other: Any = None) -> wg.Tensor:
            count.add_(x.sum())
            model.weight.data.add_(1)
            base.add_(1)
            return (view_of_it if other is None else other) * 2 + x

        staged, results = jit(step), []
        for _ in range(4):
            given = (wg.ones(1), view_of_it) if is_argument and view != "a part" else (wg.ones(1),)
            results.append(staged(*given).tolist())
            results.append([base.tolist(), count.tolist(), model.weight.item(), view_of_it.tolist()])
        return results

    assert train(lambda f: wg.jit(f, check=True)) == train(lambda f: f)


def test_rows_that_overlap_are_taken_back() -> None:
    rows = overlapping()
    before = rows.tolist()
    state = Picture([("rows", rows), ("a row", rows[1])], [])
    for row in rows:
        row.detach().add_(1)
    assert rows.tolist() != before
    state.restore()
    assert rows.tolist() == before


def test_a_write_that_fails_does_not_stop_the_others() -> None:
    first, last = wg.zeros(2), wg.zeros(2)
    with wg.inference_mode():
        stuck = wg.zeros(2)
    state = Picture([("first", first), ("stuck", stuck), ("last", last)], [])
    for x in (first, last):
        x.add_(1)
    with wg.inference_mode():
        stuck.add_(1)
    with pytest.raises(
        RuntimeError, match=r"^jit: what the program did cannot be taken back: .*inference_mode"
    ):
        state.restore()
    assert first.tolist() == last.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("requires_grad", [True, False])
def test_whether_a_gradient_is_required_is_taken_back(requires_grad: bool) -> None:
    weight = nn.Parameter(wg.ones(2))
    weight.grad = wg.full((2,), 3.0)
    weight.requires_grad_(requires_grad)
    kept = [3.0, 3.0] if requires_grad else None
    other = nn.Parameter(wg.ones(2), requires_grad=requires_grad)
    state = Picture([("weight", weight), ("other", other)], [])
    for x in (weight, other):
        x.requires_grad_(True)
        x.grad = wg.ones(2)
        x.requires_grad_(not requires_grad)
    state.restore()
    assert [weight.requires_grad, other.requires_grad] == [requires_grad] * 2
    assert (None if weight.grad is None else weight.grad.tolist()) == kept
    assert other.grad is None
