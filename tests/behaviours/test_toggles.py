"""What gets a gradient and what does not: teachers, targets, stopped branches, writes in place."""

import pytest
import wengert as wg
from wengert import nn
from wengert.nn import functional as F


def net(seed: int, out: int = 3) -> nn.Sequential:
    """A small network."""
    wg.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, out))


def gradients(module: nn.Module) -> list[object]:
    """The gradients of all parameters."""
    return [None if p.grad is None else p.grad.tolist() for p in module.parameters()]


@pytest.mark.parametrize("way", ["requires_grad", "no_grad", "detach"])
def test_a_teacher_gets_no_gradient(way: str) -> None:
    student, teacher, x = net(0), net(1), wg.linspace(-1, 1, 20).reshape(5, 4)

    def goal() -> wg.Tensor:
        if way == "no_grad":
            with wg.no_grad():
                return teacher(x).softmax(-1)
        if way == "detach":
            return teacher(x).detach().softmax(-1)
        return teacher(x).softmax(-1)

    if way == "requires_grad":
        teacher.requires_grad_(False)
    target = goal()
    assert not target.requires_grad
    F.kl_div(student(x).log_softmax(-1), target, reduction="batchmean").backward()
    assert gradients(teacher) == [None] * 4
    expected = [p.grad.clone() for p in student.parameters()]
    assert all(g.abs().sum().item() > 0 for g in expected)
    # The same gradients as against a constant of the same value.
    student.zero_grad()
    F.kl_div(student(x).log_softmax(-1), wg.tensor(target.tolist()), reduction="batchmean").backward()
    for p, g in zip(student.parameters(), expected):
        assert wg.allclose(p.grad, g, rtol=1e-5, atol=1e-7)


def test_two_losses_on_one_graph_need_it_retained() -> None:
    student, x = net(0), wg.linspace(-1, 1, 20).reshape(5, 4)
    features = student(x)
    features.square().mean().backward(retain_graph=True)
    features.abs().mean().backward()
    separate = [p.grad.clone() for p in student.parameters()]
    student.zero_grad()
    features = student(x)
    (features.square().mean() + features.abs().mean()).backward()
    for p, g in zip(student.parameters(), separate):
        assert wg.allclose(p.grad, g, rtol=1e-5, atol=1e-7)


def test_a_target_network() -> None:
    online, target = net(0), net(0)
    target.load_state_dict(online.state_dict())
    states = wg.linspace(-1, 1, 24).reshape(6, 4)
    actions, rewards = wg.tensor([0, 1, 2, 0, 1, 2]).reshape(6, 1), wg.linspace(0, 1, 6)
    best = target(states.flip(0)).max(dim=1).values
    goal = rewards + 0.9 * best.detach()
    loss = F.mse_loss(online(states).gather(1, actions).squeeze(1), goal)
    loss.backward()
    assert gradients(target) == [None] * 4
    assert all(g is not None for g in gradients(online))
    # Only the chosen actions' rows are touched: with action 2 never taken its row is zero.
    online.zero_grad()
    F.mse_loss(online(states).gather(1, actions % 2).squeeze(1), goal).backward()
    assert online[2].weight.grad[2].tolist() == [0.0] * 8


def test_one_branch_of_a_pair_is_stopped() -> None:
    encoder, predictor = net(0), nn.Linear(3, 3)
    a, b = wg.linspace(-1, 1, 20).reshape(5, 4), wg.linspace(1, -0.5, 20).reshape(5, 4)
    stopped = encoder(b).detach()
    (-F.cosine_similarity(predictor(encoder(a)), stopped, dim=-1).mean()).backward()
    one_sided = gradients(encoder)
    encoder.zero_grad()
    constant = wg.tensor(stopped.tolist())
    (-F.cosine_similarity(predictor(encoder(a)), constant, dim=-1).mean()).backward()
    assert gradients(encoder) == one_sided
    encoder.zero_grad()
    (-F.cosine_similarity(predictor(encoder(a)), encoder(b), dim=-1).mean()).backward()
    assert gradients(encoder) != one_sided


def test_writing_a_leaf_in_place_raises_and_a_new_value_is_fine() -> None:
    x = wg.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"no_grad\(\)"):
        x += 1
    y = x
    y = y + 1
    (y * y).sum().backward()
    assert x.grad.tolist() == [4.0] * 3
    with wg.no_grad():
        x += 1
    assert x.tolist() == [2.0] * 3


def test_a_gradient_may_be_scaled_in_place() -> None:
    x = wg.ones(3, requires_grad=True)
    (x * 8.0).sum().backward()
    x.grad /= 4.0
    assert x.grad.tolist() == [2.0] * 3


def train(zero: int, steps: int = 8, lr: float = 0.01) -> list[float]:
    """Steps of plain gradient descent on `w^2 / 2` that clear the gradient every `zero` steps."""
    w = wg.tensor(1.0, dtype=wg.float64, requires_grad=True)
    seen = []
    for step in range(steps):
        if step % zero == 0:
            w.grad = None
        (w * w / 2).backward()
        seen.append(w.grad.item())
        with wg.no_grad():
            w -= lr * w.grad
    return seen


def test_forgetting_zero_grad_trains_on_the_sum() -> None:
    right, forgotten = train(1), train(10**6)
    assert right == pytest.approx([0.99**k for k in range(8)], rel=1e-12)
    w, total = 1.0, 0.0
    for g in forgotten:
        total += w
        assert g == pytest.approx(total, rel=1e-12)
        w -= 0.01 * total


def test_a_larger_batch_by_not_clearing() -> None:
    layer, data, target = net(0), wg.linspace(-1, 1, 64).reshape(16, 4), wg.linspace(0, 1, 48).reshape(16, 3)
    F.mse_loss(layer(data), target).backward()
    whole = [p.grad.clone() for p in layer.parameters()]
    layer.zero_grad()
    for x, t in zip(data.split(4), target.split(4)):
        (F.mse_loss(layer(x), t) / 4).backward()
    for p, g in zip(layer.parameters(), whole):
        assert wg.allclose(p.grad, g, rtol=1e-4, atol=1e-7)
