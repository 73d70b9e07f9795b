"""gradcheck, gradgradcheck and adjoint_check: what they find, and what they say."""

import numpy as np
import pytest
import wengert as wg
from wengert.autograd import GradcheckError, adjoint_check, gradcheck, gradgradcheck


def double(*values: float) -> wg.Tensor:
    """A float64 tensor."""
    return wg.tensor(list(values), dtype=wg.float64)


def wrong(x: wg.Tensor) -> wg.Tensor:
    """x^2 with a derivative that is x at its second element."""
    half = wg.tensor([0.0, 0.5], dtype=wg.float64)
    return x * x * (1 - half) + (x * x.detach()) * half


def test_what_is_right_passes() -> None:
    assert gradcheck(lambda x, y: x.sin() @ y, (wg.randn(2, 3).double(), wg.randn(3, 2).double()))
    assert gradcheck(lambda x: (x.exp(), {"a": x.sum()}), double(0.1, 0.2), check_forward_ad=True)
    assert gradcheck(lambda x: x.sin() * 3, double(0.1, 0.2), fast_mode=True, check_forward_ad=True)
    assert gradcheck(lambda x: x[:1] * x, double(0.1, 0.2), check_batched_grad=True)
    assert gradcheck(lambda x: x.sum(), wg.zeros(0, dtype=wg.float64))
    assert gradgradcheck(lambda x: x**3 + x[:1] * x, double(0.5, 1.0), check_fwd_over_rev=True)
    assert gradgradcheck(lambda x: x**3, double(0.5, 1.0), double(1.0, 2.0), fast_mode=True)


def test_message_names_input_entry_and_both_values() -> None:
    with pytest.raises(GradcheckError) as caught:
        gradcheck(lambda c, x: wrong(x) * c, (3.0, double(1.0, 2.0)))
    assert str(caught.value) == (
        "gradcheck: reverse mode, input 1, output 0: 1 of 4 entries differ; the worst, output entry (1,) by "
        "input entry (1,), is analytically 9 and numerically 12 (atol 1e-05, rtol 0.001)"
    )
    assert isinstance(caught.value, RuntimeError)


def test_message_of_forward_and_fast_mode() -> None:
    x = double(1.0, 2.0)
    with pytest.raises(
        GradcheckError, match=r"^gradcheck: forward mode, output 0: 1 of 2 entries differ; the worst, "
    ):
        gradcheck(wrong, x, check_backward_ad=False, check_forward_ad=True)
    with pytest.raises(
        GradcheckError, match=r"along fixed directions on both sides \(fast_mode=False names the entry\)"
    ):
        gradcheck(wrong, x, fast_mode=True)


def test_false_instead_of_raising() -> None:
    assert gradcheck(wrong, double(1.0, 2.0), raise_exception=False) is False
    assert gradgradcheck(wrong, double(1.0, 2.0), raise_exception=False) is False


def test_second_order_is_checked() -> None:
    def f(x: wg.Tensor) -> wg.Tensor:
        # The right first derivative, 2 x, as a constant.
        return 2 * x.detach() * x - (x * x).detach()

    x = double(1.0, 2.0)
    with pytest.raises(GradcheckError):
        gradgradcheck(lambda x: f(x) + 0 * x**2, x)


def test_only_inputs_that_require_a_gradient() -> None:
    x, c = double(1.0, 2.0).requires_grad_(), double(1.0, 2.0)
    assert gradcheck(lambda x, c: x * c.detach(), (x, c))
    with pytest.raises(GradcheckError):
        gradcheck(lambda x, c: x * c.detach(), (x.detach(), c))


def test_lower_precision_warns() -> None:
    x = wg.tensor([0.5, 1.0], requires_grad=True)
    with pytest.warns(UserWarning, match="gradcheck: input 0 is not float64"):
        assert gradcheck(lambda x: x * 2, x, eps=1e-2, atol=1e-2)


def test_nothing_to_check() -> None:
    with pytest.raises(ValueError) as caught:
        gradcheck(lambda x: x, wg.ones(2))
    assert str(caught.value) == (
        "gradcheck: no input is a float64 tensor, and none requires a gradient; differences need double "
        "precision"
    )


def test_gradients_that_change_from_call_to_call() -> None:
    def hooked(x: wg.Tensor) -> wg.Tensor:
        y = x * 1
        if y.requires_grad:
            y.register_hook(lambda g: g * (1 + 1e-7 * np.random.default_rng().random()))
        return y

    with pytest.raises(GradcheckError, match="gives another gradient the second time"):
        gradcheck(hooked, double(1.0))
    assert gradcheck(hooked, double(1.0), nondet_tol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_adjoint(dtype: str) -> None:
    wg.manual_seed(1)
    x = wg.randn(3, 4).to(getattr(wg, dtype)).requires_grad_()
    w = wg.randn(4, 4).to(getattr(wg, dtype)).requires_grad_()
    assert adjoint_check(lambda x, w: ((x @ w).tanh().cumsum(0), x.abs().sum()), (x, w))


def test_adjoint_at_a_kink() -> None:
    assert adjoint_check(wg.relu, double(0.0, 1.0, -1.0))


def test_adjoint_finds_a_hook_that_only_reverse_mode_sees() -> None:
    def hooked(x: wg.Tensor) -> wg.Tensor:
        y = x * 1
        if y.requires_grad:
            y.register_hook(lambda g: g * 2)
        return y

    with pytest.raises(
        GradcheckError, match=r"^adjoint_check: forward and reverse mode are no transposes: <u, J v> is "
    ):
        adjoint_check(hooked, double(1.0, 2.0))
    assert adjoint_check(hooked, double(1.0, 2.0), raise_exception=False) is False
