"""`nn.utils.weight_norm` and `spectral_norm` as hooks, against their formulas in NumPy."""

import numpy as np
import pytest
import wengert as torch
from wengert import nn
from wengert.nn.utils import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm


@pytest.mark.parametrize("dim", [0, 1, None])
def test_lengths_and_directions(dim: int | None) -> None:
    torch.manual_seed(0)
    layer = nn.Linear(3, 2).double()
    before = layer.weight.detach().numpy().copy()
    assert weight_norm(layer, name="weight", dim=dim) is layer
    assert set(dict(layer.named_parameters())) == {"bias", "weight_g", "weight_v"}
    np.testing.assert_allclose(layer.weight.detach().numpy(), before, rtol=1e-14)
    with torch.no_grad():
        layer.weight_g.mul_(2.0)
    x = torch.randn(4, 3, dtype=torch.float64)
    out = layer(x)
    np.testing.assert_allclose(
        out.detach().numpy(), x.numpy() @ (2 * before).T + layer.bias.detach().numpy(), rtol=1e-12
    )
    out.sum().backward()
    # Directions get no gradient along themselves.
    axis = {0: 1, 1: 0, None: None}[dim]
    along = (layer.weight_v.grad * layer.weight_v).detach().numpy().sum(axis)
    np.testing.assert_allclose(along, 0.0, atol=1e-12)
    expected = x.numpy().sum(0) * before
    length = np.sqrt((before**2).sum(axis, keepdims=dim is not None))
    np.testing.assert_allclose(
        layer.weight_g.grad.numpy(), (expected / length).sum(axis, keepdims=dim is not None), rtol=1e-12
    )


def test_it_trains_saves_and_ends() -> None:
    torch.manual_seed(1)
    layer = weight_norm(nn.Conv1d(2, 3, 2))
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    x = torch.randn(4, 2, 5)
    first = layer(x).square().mean()
    first.backward()
    optimizer.step()
    assert layer(x).square().mean() < first
    other = weight_norm(nn.Conv1d(2, 3, 2))
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other(x), layer(x))
    value = layer(x).detach()
    remove_weight_norm(layer)
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    assert isinstance(layer.weight, nn.Parameter)
    assert torch.equal(layer(x), value)
    with pytest.raises(ValueError, match=r"remove_weight_norm: Conv1d\.weight has none"):
        remove_weight_norm(layer, name="weight")


def test_wrong_uses() -> None:
    layer = weight_norm(nn.Linear(2, 2))
    with pytest.raises(RuntimeError, match=r"Linear\.weight has a weight_norm already"):
        weight_norm(layer)
    with pytest.raises(ValueError, match="has no parameter 'scale'"):
        weight_norm(nn.Linear(2, 2), "scale")
    with pytest.raises(ValueError, match="n_power_iterations of at least 1 expected, got 0"):
        spectral_norm(nn.Linear(2, 2), n_power_iterations=0)


def test_the_largest_singular_value_becomes_one() -> None:
    torch.manual_seed(2)
    layer = nn.Linear(5, 4).double()
    before = layer.weight.detach().numpy().copy()
    spectral_norm(layer, "weight", n_power_iterations=5, eps=1e-12, dim=0)
    assert set(layer.state_dict()) == {"bias", "weight_orig", "weight_u", "weight_v"}
    x = torch.randn(3, 5, dtype=torch.float64)
    for _ in range(100):
        layer(x)
    layer.eval()
    out = layer(x)
    largest = np.linalg.svd(before)[1][0]
    np.testing.assert_allclose(
        out.detach().numpy(), x.numpy() @ before.T / largest + layer.bias.detach().numpy(), rtol=1e-9
    )
    out.sum().backward()
    # The derivative of w / (u' w v) with u and v fixed.
    u, v = layer.weight_u.numpy(), layer.weight_v.numpy()
    g = np.ones((4, 1)) @ x.numpy().sum(0)[None]
    sigma = u @ before @ v
    np.testing.assert_allclose(
        layer.weight_orig.grad.numpy(), g / sigma - (g * before).sum() / sigma**2 * np.outer(u, v), rtol=1e-9
    )
    u_before = layer.weight_u.clone()
    layer(x)
    assert torch.equal(layer.weight_u, u_before)


def test_backward_after_further_calls() -> None:
    layer = spectral_norm(nn.Conv2d(1, 2, 3))
    x = torch.randn(1, 1, 5, 5)
    first, second = layer(x).sum(), layer(x).sum()
    (first + second).backward()
    assert layer.weight_orig.grad is not None


def test_spectral_norms_end() -> None:
    layer = spectral_norm(nn.ConvTranspose1d(2, 3, 2))
    assert layer.weight_u.shape == (3,)
    value = layer.eval()(torch.ones(1, 2, 4)).detach()
    remove_spectral_norm(layer, name="weight")
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    np.testing.assert_allclose(layer(torch.ones(1, 2, 4)).detach().numpy(), value.numpy(), rtol=1e-6)
