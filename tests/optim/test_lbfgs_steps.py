"""L-BFGS: how often it calls its closure, what it keeps from step to step, and short line searches."""

import numpy as np
import pytest
import wengert as wg
from wengert import Tensor, optim
from wengert.testing import assert_close


class Problem:
    """A loss of a vector, and how often it was asked for."""

    def __init__(self, start, loss, **settings):
        self.x = wg.tensor(start, dtype=wg.float64, requires_grad=True)
        self.loss, self.calls = loss, 0
        self.optimizer = optim.LBFGS([self.x], **settings)

    def closure(self):
        self.calls += 1
        self.optimizer.zero_grad()
        loss = self.loss(self.x)
        loss.backward()
        return loss

    def step(self):
        return float(self.optimizer.step(self.closure).detach())


def rosenbrock(x):
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_few_iterations_with_a_line_search(max_iter):
    problem = Problem([-1.2, 1.0], rosenbrock, max_iter=max_iter, line_search_fn="strong_wolfe")
    losses = [problem.step() for _ in range(60)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < (1e-6 if max_iter > 1 else losses[0])


def quartic(x):
    return (x**4).sum() + (x[0] * x[1]) ** 2 + x.sum()


@pytest.mark.parametrize(("max_iter", "calls"), [(1, 1), (2, 2), (20, 20)])
def test_the_last_iterate_is_not_evaluated(max_iter, calls):
    problem = Problem([3.0, -2.0], quartic, lr=0.01, max_iter=max_iter)
    problem.step()
    assert problem.calls == problem.optimizer.state[problem.x]["func_evals"] == calls


def test_no_call_beyond_the_most():
    problem = Problem([3.0, -2.0], quartic, lr=0.01, max_iter=20, max_eval=7)
    problem.step()
    assert problem.calls == 7


def moving(start, targets, lr):
    """L-BFGS on `(x - target)^2`, one evaluation a step, by its recurrences in plain numbers:
    the losses met.
    """
    x, losses, pair, before = start, [], None, None
    for k, target in enumerate(targets):
        g = 2 * (x - target)
        losses.append((x - target) ** 2)
        if before is not None:
            y, s = g - before[0], before[1]
            pair = (y, s) if y * s > 1e-10 else pair
        # In one dimension the inverse Hessian is s / y, whatever the start of the recursion.
        d = -g if pair is None else -g * pair[1] / pair[0]
        step = d * lr * (min(1.0, 1 / abs(g)) if k == 0 else 1.0)
        before, x = (g, step), x + step
    return losses


def test_steps_of_a_loss_that_changes():
    """Differences of the gradient are those between one step's only evaluation and the next one's."""
    targets = [0.1 * k for k in range(1, 6)]
    found, problem = [], Problem([1.0], lambda x: x, lr=0.5, max_iter=1)
    for target in targets:
        problem.loss = lambda x, target=target: (x - target).square().sum()
        found.append(problem.step())
    assert found == pytest.approx(moving(1.0, targets, 0.5), rel=1e-12)
    assert found == pytest.approx([0.81, 0.09, 0.005625, 0.0021007, 0.0201306], rel=1e-4)
    assert problem.calls == 5


def test_steps_follow_the_recursion():
    """With exact arithmetic on a quadratic, by the inverse Hessian as a dense matrix."""
    a = np.array([[3.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])
    start = np.array([1.0, -2.0, 0.5])
    problem = Problem(start, lambda x: 0.5 * x @ wg.tensor(a) @ x, lr=0.3, max_iter=1, history_size=50)
    x, inverse, before, pairs = start, np.eye(3), None, []
    for k in range(6):
        g = a @ x
        if before is not None:
            pairs.append((g - before[0], before[1]))
            y, s = pairs[-1]
            inverse = np.eye(3) * (s @ y) / (y @ y)
            for y, s in pairs:
                left = np.eye(3) - np.outer(s, y) / (s @ y)
                inverse = left @ inverse @ left.T + np.outer(s, s) / (s @ y)
        step = -inverse @ g * 0.3 * (min(1.0, 1 / np.abs(g).sum()) if k == 0 else 1.0)
        before, x = (g, step), x + step
        problem.step()
        np.testing.assert_allclose(problem.x.detach().numpy(), x, rtol=1e-10)


def test_complex_parameters():
    """The parts are a vector of real numbers."""
    x = wg.tensor([1 + 1j, 0.5 - 2j], dtype=wg.complex128, requires_grad=True)
    weights = wg.tensor([1.0, 2.0], dtype=wg.float64)
    optimizer = optim.LBFGS([x], lr=0.5, max_iter=3)
    pairs = Problem(
        [[1.0, 1.0], [0.5, -2.0]], lambda v: (v.square().sum(-1) * weights).sum(), lr=0.5, max_iter=3
    )

    def closure():
        optimizer.zero_grad()
        loss = (x.abs().square() * weights).sum()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
        pairs.step()
    np.testing.assert_allclose(wg.view_as_real(x.detach()).numpy(), pairs.x.detach().numpy(), rtol=1e-9)


@pytest.mark.parametrize("line_search_fn", [None, "strong_wolfe"])
def test_a_batch_has_no_common_step(line_search_fn: str | None) -> None:
    def f(x: Tensor) -> Tensor:
        w = wg.zeros(2).requires_grad_()
        optimizer = optim.LBFGS([w], line_search_fn=line_search_fn)

        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = ((w - x) ** 2).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        return w.detach()

    x = wg.tensor([1.0, 2.0])
    assert_close(f(x), x)
    with pytest.raises(RuntimeError, match=r"LBFGS: how far step\(\) goes depends on the value of the loss"):
        wg.vmap(f)(wg.stack([x, x]))
    with pytest.raises(RuntimeError, match="which vmap and jvp hide"):
        wg.jvp(f, (x,), (x,))
    # Numbers that nothing hides.
    found = wg.vmap(lambda y: f(x) + y)(wg.zeros(2, 2))
    assert_close(found, wg.stack([x, x]))
