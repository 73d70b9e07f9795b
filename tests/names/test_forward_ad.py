"""`autograd.forward_ad`: dual tensors by hand, against `jvp` and closed forms."""

import numpy as np
import pytest
import wengert as torch
import wengert.autograd.forward_ad as fwAD
from wengert import nn


def test_a_tangent_is_pushed_through() -> None:
    primal, tangent = torch.randn(10, 10), torch.randn(10, 10)
    with fwAD.dual_level():
        dual = fwAD.make_dual(primal, tangent)
        assert fwAD.unpack_dual(dual).tangent is not None
        out = (dual.sin() * dual).sum(0)
        value, moved = fwAD.unpack_dual(out)
    np.testing.assert_allclose(value.numpy(), (primal.sin() * primal).sum(0).numpy(), rtol=1e-6)
    expected = ((primal.cos() * primal + primal.sin()) * tangent).sum(0)
    np.testing.assert_allclose(moved.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_as_jvp() -> None:
    f = lambda x: torch.softmax(x @ x.T, -1).log().sum()
    x, t = torch.randn(4, 3, dtype=torch.float64), torch.randn(4, 3, dtype=torch.float64)
    with fwAD.dual_level() as level:
        result = fwAD.unpack_dual(f(fwAD.make_dual(x, t, level=level)), level=level)
    value, tangent = torch.jvp(f, (x,), (t,))
    assert torch.equal(result.primal, value)
    assert torch.equal(result.tangent, tangent)


def test_what_has_no_tangent_is_left_as_it_is() -> None:
    x = torch.ones(2)
    with fwAD.dual_level():
        primal, tangent = fwAD.unpack_dual(x)
        assert primal is x
        assert tangent is None
        assert fwAD.unpack_dual(x * 2).tangent is None


def test_parameters_of_a_model() -> None:
    # As PyTorch's documentation does it: parameters are replaced by dual tensors.
    model = nn.Linear(5, 5)
    x = torch.randn(16, 5)
    params = dict(model.named_parameters())
    tangents = {name: torch.rand_like(p) for name, p in params.items()}
    with fwAD.dual_level():
        for name, p in params.items():
            delattr(model, name)
            setattr(model, name, fwAD.make_dual(p, tangents[name]))
        moved = fwAD.unpack_dual(model(x)).tangent
    expected = x @ tangents["weight"].T + tangents["bias"]
    np.testing.assert_allclose(moved.detach().numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_the_tape_records_values_and_tangents() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with fwAD.dual_level():
        moved = fwAD.unpack_dual(fwAD.make_dual(x, torch.ones(2)) ** 3).tangent
    (second,) = torch.autograd.grad(moved.sum(), x)
    assert second.tolist() == [6.0, 12.0]


def test_levels_nest() -> None:
    x = torch.tensor(2.0)
    with fwAD.dual_level() as outer:
        a = fwAD.make_dual(x, torch.tensor(1.0))
        with fwAD.dual_level() as inner:
            assert inner == outer + 1
            first = fwAD.unpack_dual(fwAD.make_dual(a, torch.tensor(1.0)) ** 3).tangent
        second = fwAD.unpack_dual(first).tangent
    assert (second.item(), inner) == (12.0, 1)


def test_transforms_run_inside() -> None:
    with fwAD.dual_level():
        x = fwAD.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0]))
        slope = fwAD.unpack_dual(torch.vmap(torch.grad(lambda v: v**3))(x)).tangent
    assert slope.tolist() == [6.0, 0.0]


def test_a_decorator_and_functions() -> None:
    @fwAD.dual_level()
    def slope(x: torch.Tensor) -> torch.Tensor:
        return fwAD.unpack_dual(fwAD.make_dual(x, torch.ones_like(x)).exp()).tangent

    assert slope(torch.zeros(1)).item() == 1.0
    level = fwAD.enter_dual_level()
    y = fwAD.unpack_dual(fwAD.make_dual(torch.tensor(3.0), torch.tensor(1.0)).square()).tangent
    fwAD.exit_dual_level(level=level)
    assert y.item() == 6.0
    fwAD.enter_dual_level()
    fwAD.exit_dual_level()


def test_an_exception_ends_the_level() -> None:
    with pytest.raises(KeyError), fwAD.dual_level():
        raise KeyError
    with pytest.raises(TypeError, match=r"^make_dual: the tangent is a tensor, got float$"):
        fwAD.make_dual(torch.ones(()), 1.0)
    with pytest.raises(RuntimeError, match="make_dual: no level of forward mode"):
        fwAD.make_dual(torch.ones(1), torch.ones(1))


def test_what_cannot_be_said_raises() -> None:
    with pytest.raises(RuntimeError, match="unpack_dual: no level"):
        fwAD.unpack_dual(torch.ones(1))
    with pytest.raises(RuntimeError, match="exit_dual_level: no level"):
        fwAD.exit_dual_level()
    with fwAD.dual_level():
        with pytest.raises(torch.ShapeError, match="make_dual: a tangent is"):
            fwAD.make_dual(torch.ones(2), torch.ones(3))
        with pytest.raises(TypeError, match=r"make_dual: a tangent is float64\(2,\), expected float32\(2,\)"):
            fwAD.make_dual(torch.ones(2), torch.ones(2, dtype=torch.float64))
        with pytest.raises(TypeError, match="make_dual: int64 tensors have no derivatives"):
            fwAD.make_dual(torch.arange(2), torch.arange(2))
        x = fwAD.make_dual(torch.ones(2), torch.ones(2))
        with pytest.raises(ValueError, match="the tensor has a tangent at this level already"):
            fwAD.make_dual(x, torch.ones(2))
        with pytest.raises(ValueError, match="the tangent has a tangent at this level already"):
            fwAD.make_dual(torch.ones(2), x)
        with pytest.raises(RuntimeError, match="only the innermost level"):
            fwAD.make_dual(torch.ones(2), torch.ones(2), level=4)
        with pytest.raises(RuntimeError, match="only the innermost level"):
            fwAD.exit_dual_level(level=7)


def test_complex_numbers() -> None:
    with fwAD.dual_level():
        z = fwAD.make_dual(torch.tensor(1 + 1j), torch.tensor(1j))
        moved = fwAD.unpack_dual(z * z).tangent
    assert moved.item() == 2 * (1 + 1j) * 1j
