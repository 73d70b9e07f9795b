"""Anomaly detection, and the lines that errors of the tape name."""

import math
import re
import threading
from pathlib import Path

import numpy as np
import pytest
import wengert as wg
from wengert.autograd import AnomalyError, detect_anomaly, is_anomaly_enabled, set_detect_anomaly

HERE = re.escape(__file__)


def whole(caught: pytest.ExceptionInfo[BaseException]) -> str:
    """The message, with the lines of this file replaced by L."""
    return re.sub(HERE + r":\d+", "L", str(caught.value))


def line_of(text: str) -> int:
    """The number of the only line of this file that contains `text` besides the question."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    found = [i for i, line in enumerate(lines, 1) if text in line and "line_of" not in line]
    assert len(found) == 1
    return found[0]


def leaf(*values: float) -> wg.Tensor:
    """A leaf that requires a gradient."""
    return wg.tensor(list(values), requires_grad=True)


def test_gradient_at_a_pole() -> None:
    x = leaf(1.0, 0.0)
    with detect_anomaly():
        y = x.sqrt().sum()  # the pole
        with pytest.raises(AnomalyError) as caught:
            y.backward()
    assert whole(caught) == (
        "anomaly in the backward of sqrt at L: the gradient of input 0 is inf at index (1,), where the "
        "cotangent is 1 "
        "and the saved output 0 is 0; the derivative of sqrt is not finite there: keep its operand away from "
        "that point (clamp it, or add a small number)"
    )
    assert f"{__file__}:{line_of('# the pole')}:" in str(caught.value)
    assert issubclass(AnomalyError, RuntimeError)
    # Outside of the region the same is no error.
    x.sqrt().sum().backward()
    assert x.grad.tolist() == [0.5, float("inf")]


def test_masked_forward_value_spoils_a_gradient() -> None:
    x, c = leaf(1.0, 0.0, 2.0), leaf(1.0, 0.0, 2.0)
    # Unless asked for, a cotangent of zero stays zero, whatever it meets.
    with detect_anomaly():
        wg.where(x > 0, c * x.log(), 0.0).sum().backward()
    with wg.ieee_gradients(True), detect_anomaly() as found:
        y = c * x.log()
        masked = wg.where(x > 0, y, 0.0)
        assert [(n.op, n.index) for n in found.notes] == [("log", (1,)), ("mul", (1,))]
        assert found.notes[0].value == -np.inf
        assert re.sub(HERE + r":\d+", "L", str(found.notes[0])) == (
            "log at L made -inf at index (1,), where input 0 is 0"
        )
        with pytest.raises(AnomalyError) as caught:
            masked.sum().backward()
    assert whole(caught) == (
        "anomaly in the backward of mul at L: the gradient of input 0 is nan at index (1,), where the "
        "cotangent is 0, "
        "the saved input 0 is 0 and the saved input 1 is -inf; log at L made -inf at index (1,) in the "
        "forward, where "
        "input 0 is 0, and where at L masked it later, so its cotangent is zero; keep the operands of log "
        "inside its domain (clamp them, or apply where() to them as well as to the result)"
    )


def test_masked_forward_value_that_spoils_nothing_is_noted() -> None:
    x = leaf(1.0, 0.0)
    with detect_anomaly() as found:
        wg.where(x > 0, x.log(), x).sum().backward()
    assert [n.op for n in found.notes] == ["log"]
    assert x.grad.tolist() == [1.0, 1.0]


def test_forward_raises_on_request() -> None:
    x = leaf(1.0, 0.0)
    with detect_anomaly(forward=True), pytest.raises(AnomalyError) as caught:
        wg.where(x > 0, x.log(), x)
    assert whole(caught) == (
        "anomaly in the forward: log at L made -inf at index (1,), where input 0 is 0; keep its operands "
        "inside its "
        "domain (clamp them, or apply where() to them as well as to the result), or leave out forward=True "
        "if the value is masked later"
    )


def test_forward_without_a_tape() -> None:
    with (
        detect_anomaly(forward=True),
        pytest.raises(AnomalyError, match=r"^anomaly in the forward: div at .* made inf"),
    ):
        wg.ones(2) / wg.zeros(2)


def test_infinities_that_are_handed_on_are_no_anomaly() -> None:
    x = wg.ones(2, 2, requires_grad=True)
    mask = wg.tensor([[0.0, -np.inf], [-np.inf, 0.0]])
    with detect_anomaly(forward=True) as found:
        (x + mask).softmax(-1).square().sum().backward()
    assert found.notes == []


def test_nan_from_infinities_is_one() -> None:
    x = leaf(np.inf)
    with detect_anomaly(forward=True), pytest.raises(AnomalyError, match=r"sub at .* made nan"):
        x - x


def test_tangent() -> None:
    with detect_anomaly(), pytest.raises(AnomalyError) as caught:
        wg.jvp(lambda x: x.sqrt(), (wg.zeros(2),), (wg.ones(2),))
    assert whole(caught) == (
        "anomaly in the jvp of sqrt at L: the tangent is inf at index (0,), where input 0 is 0 and its "
        "tangent 0 is 1; "
        "keep its operands away from where its derivative is not finite (clamp them, or add a small number)"
    )


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: wg.grad(lambda x: f(x).sum()),
        lambda f: wg.vmap(wg.grad(f)),
        lambda f: wg.grad(lambda x: wg.vmap(f)(x).sum()),
        wg.jacfwd,
        wg.jacrev,
        lambda f: wg.hessian(lambda x: (x * f(x)).sum()),
    ],
    ids=["grad", "vmap of grad", "grad of vmap", "jacfwd", "jacrev", "hessian"],
)
def test_inside_transforms(transform) -> None:
    def f(x: wg.Tensor) -> wg.Tensor:
        return x.sqrt()  # inside

    with detect_anomaly(), pytest.raises(AnomalyError) as caught:
        transform(f)(wg.tensor([4.0, 0.0]))
    assert f"sqrt at {__file__}:{line_of('return x.sqrt()  # inside')}" in str(caught.value)


def test_matrix_operands_are_told_by_shape() -> None:
    a = wg.tensor([[1.0, np.inf]], requires_grad=True)
    b = wg.zeros(2, 1, requires_grad=True)
    with detect_anomaly(), pytest.raises(AnomalyError) as caught:
        (a @ b).sum().backward()
    assert whole(caught) == (
        "anomaly in the backward of matmul at L: the gradient of input 1 is inf at index (1, 0), where the "
        "cotangent of shape (1, 1) is finite, the saved input 0 of shape (1, 2) is inf at index (0, 1) "
        "and the saved input 1 of shape (2, 1) is finite; "
        "that operand was not finite when it came in: look at where its values come from"
    )


def test_cotangent_that_comes_in_not_finite() -> None:
    x = leaf(1.0)
    with detect_anomaly(), pytest.raises(AnomalyError) as caught:
        (x * 2).backward(wg.tensor([np.nan]))
    assert whole(caught).endswith(
        "; the cotangent was not finite already: it came in by gradient= or was returned by a hook"
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_every_dtype(dtype: str) -> None:
    x = wg.tensor([0.0], dtype=getattr(wg, dtype), requires_grad=True)
    with detect_anomaly(), pytest.raises(AnomalyError):
        x.sqrt().backward()
    with detect_anomaly(forward=True), pytest.raises(AnomalyError):
        x.log()


def test_overflow_of_a_cast() -> None:
    with (
        detect_anomaly(forward=True),
        pytest.raises(AnomalyError, match=r"cast at .* made inf, where input 0 is 100000"),
    ):
        wg.tensor(1e5).half()


def test_healthy_training_passes() -> None:
    wg.manual_seed(0)
    model = wg.nn.Sequential(wg.nn.Linear(4, 8), wg.nn.LayerNorm(8), wg.nn.GELU(), wg.nn.Linear(8, 3))
    optimizer = wg.optim.Adam(model.parameters(), lr=1e-2)
    x, y = wg.randn(16, 4), wg.randint(0, 3, (16,))
    with detect_anomaly(forward=True) as found:
        for _ in range(3):
            optimizer.zero_grad()
            wg.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    assert found.notes == []


def test_create_graph_names_the_second_walk() -> None:
    x = leaf(0.0)
    with detect_anomaly():
        y = x.pow(1.5)
        (g,) = wg.autograd.grad(y.sum(), x, create_graph=True)
        assert g.tolist() == [0.0]
        with pytest.raises(AnomalyError, match="anomaly in the backward of"):
            g.sum().backward()


def test_modes() -> None:
    assert not is_anomaly_enabled()
    with detect_anomaly(check_nan=False):
        assert is_anomaly_enabled()
        assert not wg.autograd.is_anomaly_check_nan_enabled()
        leaf(0.0).sqrt().backward()
        with set_detect_anomaly(True):
            assert wg.autograd.is_anomaly_check_nan_enabled()
        assert not wg.autograd.is_anomaly_check_nan_enabled()
        with set_detect_anomaly(False):
            assert not is_anomaly_enabled()
        assert is_anomaly_enabled()
    assert not is_anomaly_enabled()
    set_detect_anomaly(True)
    try:
        with pytest.raises(AnomalyError):
            leaf(0.0).sqrt().backward()
    finally:
        set_detect_anomaly(False)
    leaf(0.0).sqrt().backward()
    with wg.debug():
        assert not is_anomaly_enabled()
        with detect_anomaly():
            assert is_anomaly_enabled()
        assert not is_anomaly_enabled()
        assert leaf(1.0).exp().grad_fn.location is not None
    assert leaf(1.0).exp().grad_fn.location is None


def test_decorators() -> None:
    @detect_anomaly
    def plain(x: wg.Tensor) -> None:
        x.sqrt().sum().backward()

    @detect_anomaly(forward=True)
    def strict(x: wg.Tensor) -> None:
        x.log()

    @set_detect_anomaly(True)
    def switched() -> bool:
        return is_anomaly_enabled()

    with pytest.raises(AnomalyError):
        plain(leaf(0.0))
    with pytest.raises(AnomalyError):
        strict(leaf(0.0))
    assert not is_anomaly_enabled()
    assert switched()
    assert not is_anomaly_enabled()


def test_other_threads_are_not_affected() -> None:
    seen = []
    with detect_anomaly():
        thread = threading.Thread(target=lambda: seen.append(is_anomaly_enabled()))
        thread.start()
        thread.join()
        assert is_anomaly_enabled()
    assert seen == [False]


def test_errors_of_the_tape_name_the_line() -> None:
    x = leaf(1.0, 2.0)
    with wg.debug():
        y = x.exp()  # the recorded line
        y.sum().backward()
        with pytest.raises(RuntimeError) as freed:
            y.sum().backward()
        z = x.exp()
        w = z.tanh()  # the saving line
        z.detach().mul_(2)
        with pytest.raises(RuntimeError) as written:
            (w + z).sum().backward()
        with wg.no_grad():
            loss = (x * 3).sum()
        with pytest.raises(RuntimeError) as nothing:
            loss.backward()
    assert f"(reached again at exp recorded at {__file__}:{line_of('# the recorded line')}); pass" in str(
        freed.value
    )
    assert "names the line" not in str(freed.value)
    assert "its saved output 0 of shape (2,) was modified in place" in str(written.value)
    assert f"recorded at {__file__}:{line_of('= x.exp()  # the recorded') + 4}" in str(written.value)
    assert whole(nothing).endswith(
        "call requires_grad_() on an input before computing it; recorded values last left the tape by mul "
        "(recording was off) at L"
    )


class Failing(wg.autograd.Function):
    """A function whose derivative is not finite, or raises."""

    @staticmethod
    def forward(ctx, x, raises):
        ctx.raises = raises
        return x * 2

    @staticmethod
    def backward(ctx, g):
        if ctx.raises:
            raise KeyError("mine")
        return g / 0, None


def test_functions_of_the_user() -> None:
    x = leaf(1.0)
    with detect_anomaly(), pytest.raises(AnomalyError) as caught:
        Failing.apply(x, False).sum().backward()
    assert whole(caught).startswith("anomaly in the backward of Failing at L: the gradient of input 0 is inf")
    with wg.debug():
        y = Failing.apply(x, True).sum()
        with pytest.raises(KeyError) as raised:
            y.backward()
    assert [re.sub(HERE + r":\d+", "L", note) for note in raised.value.__notes__] == [
        "in the backward of Failing recorded at L"
    ]
    with pytest.raises(KeyError) as bare:
        Failing.apply(x, True).sum().backward()
    assert not hasattr(bare.value, "__notes__")


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    x = wg.tensor([1.0, 0.0], device="gpu", requires_grad=True)
    with detect_anomaly(), pytest.raises(AnomalyError, match=r"sqrt at .* is inf at index \(1,\)"):
        x.sqrt().sum().backward()
    with detect_anomaly(forward=True), pytest.raises(AnomalyError, match=r"log at .* made -inf"):
        x.detach().log()


def test_user_line_is_the_first_outside_the_package() -> None:
    model = wg.nn.Sequential(wg.nn.Linear(2, 2), wg.nn.Tanh())
    with wg.debug():
        out = model(wg.ones(1, 2))  # the call of the model
    node = out.grad_fn
    expected = (
        __file__,
        line_of("# the call of the model"),
        "test_user_line_is_the_first_outside_the_package",
    )
    assert node.location == expected
    while node.next_functions:
        node = next(n for n, _ in node.next_functions if n is not None)
        assert node.is_leaf or node.location == expected


def test_a_linear_map_that_makes_nan() -> None:
    x = wg.tensor([4.0, -1.0])
    with detect_anomaly():
        _, push = wg.linearize(lambda x: x.sqrt().sum(), x)
        with pytest.raises(AnomalyError) as caught:
            push(wg.ones(2))
        assert str(caught.value).startswith(
            "anomaly in the linear map of linearize: sqrt made the tangent nan at index (1,),"
        )
        with pytest.raises(AnomalyError, match="anomaly in the linear map of linearize"):
            wg.vmap(push)(wg.ones(3, 2))
        # What is not finite already was not made so here.
        _, push = wg.linearize(lambda x: x * 2, x)
        assert push(wg.tensor([math.inf, 1.0])).tolist() == [math.inf, 2.0]
        _, push = wg.linearize(lambda x: x.abs().sqrt(), x)
        assert push(wg.ones(2)).tolist() == [0.25, -0.5]
    _, push = wg.linearize(lambda x: x.sqrt(), x)
    assert math.isnan(push(wg.ones(2))[1].item())


def test_numbers_that_the_program_asks_for_are_no_anomaly():
    with wg.autograd.detect_anomaly(forward=True):
        assert wg.full((2, 2), -math.inf).triu(1)[0, 1].item() == -math.inf
