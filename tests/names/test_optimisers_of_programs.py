"""Optimisers and schedules that a program writes for PyTorch, and the hooks around their state."""

import copy
import math
import warnings
from typing import Any

import numpy as np
import pytest
import wengert as torch
from wengert import nn
from wengert.optim.lr_scheduler import LRScheduler, _LRScheduler
from wengert.optim.optimizer import Optimizer, required


class Lion(Optimizer):
    """Sign of an interpolated momentum, as its authors' code has it."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
    ):
        defaults = {"lr": lr, "betas": betas, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data.mul_(1 - group["lr"] * group["weight_decay"])
                grad, state = p.grad, self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                exp_avg, (beta1, beta2) = state["exp_avg"], group["betas"]
                update = exp_avg * beta1 + grad * (1 - beta1)
                p.add_(update.sign_(), alpha=-group["lr"])
                exp_avg.mul_(beta2).add_(grad, alpha=1 - beta2)
        return loss


class OldSGD(Optimizer):
    """In the manner of before PyTorch 1.5: `required`, `.data`, `addcmul_` with numbers in front left out."""

    def __init__(self, params: Any, lr: Any = required, momentum: float = 0.0) -> None:
        if lr is not required and lr < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        super().__init__(params, dict(lr=lr, momentum=momentum))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("nesterov", False)

    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                d_p = p.grad.data
                buf = self.state[p].setdefault("momentum_buffer", torch.zeros_like(p.data))
                buf.mul_(group["momentum"]).add_(d_p)
                p.data.add_(buf, alpha=-group["lr"])


def lion_in_numpy(x: np.ndarray, steps: int, lr: float, decay: float) -> np.ndarray:
    m = np.zeros_like(x)
    for _ in range(steps):
        g = 2 * x
        x = x * (1 - lr * decay)
        x = x - lr * np.sign(0.9 * m + 0.1 * g)
        m = 0.99 * m + 0.01 * g
    return x


def test_an_optimiser_of_a_program() -> None:
    start = np.array([1.0, -0.3, 0.05])
    p = nn.Parameter(torch.tensor(start.tolist(), dtype=torch.float64))
    optimizer = Lion([p], lr=0.02, weight_decay=0.1)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(5)]
    assert losses == sorted(losses, reverse=True)
    np.testing.assert_allclose(p.detach().numpy(), lion_in_numpy(start, 5, 0.02, 0.1), rtol=1e-12)
    other = Lion([p], lr=1.0)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert other.param_groups[0]["lr"] == 0.02
    assert torch.equal(other.state[p]["exp_avg"], optimizer.state[p]["exp_avg"])
    optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))], "lr": 0.5})
    assert [group["lr"] for group in optimizer.param_groups] == [0.02, 0.5]


def test_a_setting_that_is_required() -> None:
    p = nn.Parameter(torch.ones(2))
    with pytest.raises(ValueError, match="OldSGD: a group of parameters does not say lr, which is required"):
        OldSGD([p])
    optimizer = OldSGD([{"params": [p], "lr": 0.5}], momentum=0.9)
    for _ in range(2):
        p.grad = torch.ones(2)
        optimizer.step()
    np.testing.assert_allclose(p.detach().numpy(), 1 - 0.5 - 0.5 * 1.9, rtol=1e-6)
    optimizer.load_state_dict(optimizer.state_dict())
    assert optimizer.param_groups[0]["nesterov"] is False
    assert repr(required) == "<required parameter>"


def test_hooks_around_the_state() -> None:
    p = nn.Parameter(torch.ones(1))
    optimizer, log = torch.optim.SGD([p], lr=1.0), []
    optimizer.register_state_dict_pre_hook(lambda o: log.append("before"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "extra": o is optimizer})
    optimizer.register_state_dict_post_hook(lambda o, state: log.append("first"), prepend=True)
    state = optimizer.state_dict()
    assert (log, state.pop("extra")) == (["before", "first"], True)

    def halve(o: Optimizer, given: dict[str, Any]) -> dict[str, Any]:
        groups = [{**group, "lr": group["lr"] / 2} for group in given["param_groups"]]
        return {**given, "param_groups": groups}

    before = optimizer.register_load_state_dict_pre_hook(halve)
    optimizer.register_load_state_dict_post_hook(lambda o: log.append(o.param_groups[0]["lr"]))
    optimizer.load_state_dict(state)
    assert log[-1] == optimizer.param_groups[0]["lr"] == 0.5
    assert state["param_groups"][0]["lr"] == 1.0
    before.remove()
    optimizer.load_state_dict(state)
    assert log[-1] == 1.0
    # Hooks belong to this object.
    assert len(copy.deepcopy(optimizer).state_dict()) == 2


def test_order_of_hooks() -> None:
    optimizer, log = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0), []
    for name in ("state_dict_pre", "load_state_dict_post"):
        register = getattr(optimizer, f"register_{name}_hook")
        register(lambda o, name=name: log.append((name, 1)))
        register(lambda o, name=name: log.append((name, 0)), prepend=True)
    for name in ("load_state_dict_pre",):
        register = getattr(optimizer, f"register_{name}_hook")
        register(lambda o, state, name=name: log.append((name, 1)))
        register(lambda o, state, name=name: log.append((name, 0)), prepend=True)
    optimizer.load_state_dict(optimizer.state_dict())
    names = ("state_dict_pre", "load_state_dict_pre", "load_state_dict_post")
    assert log == [(name, i) for name in names for i in (0, 1)]


class Warmup(_LRScheduler):
    """As programs write it: `get_lr` asks whether it is called by `step`."""

    def __init__(self, optimizer: Optimizer, warmup: int, total: int, last_epoch: int = -1) -> None:
        self.warmup, self.total = warmup, total
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if not self._get_lr_called_within_step:
            warnings.warn("To get the last learning rate, use `get_last_lr()`.", UserWarning, stacklevel=2)
        if self.last_epoch < self.warmup:
            return [base * (self.last_epoch + 1) / self.warmup for base in self.base_lrs]
        done = (self.last_epoch - self.warmup) / (self.total - self.warmup)
        return [base * 0.5 * (1 + math.cos(math.pi * done)) for base in self.base_lrs]


def test_a_schedule_of_a_program() -> None:
    assert _LRScheduler is LRScheduler
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule = Warmup(optimizer, warmup=4, total=8)
        rates = []
        for _ in range(8):
            rates.append(schedule.get_last_lr()[0])
            optimizer.step()
            schedule.step()
    expected = [0.2, 0.4, 0.6, 0.8, *(0.4 * (1 + math.cos(math.pi * i / 4)) for i in range(4))]
    np.testing.assert_allclose(rates, expected, rtol=1e-12)
    with pytest.warns(UserWarning, match="get_last_lr"):
        schedule.get_lr()
    assert "_get_lr_called_within_step" not in schedule.state_dict()
