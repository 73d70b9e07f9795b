"""Recording modes and the tensors of inference mode."""

import pytest
import wengert as wg


def leaf(*values: float) -> wg.Tensor:
    return wg.tensor(list(values), requires_grad=True)


def inferred() -> wg.Tensor:
    with wg.inference_mode():
        return wg.ones(2) * 2


def test_what_is_made_inside_is_an_inference_tensor() -> None:
    x, w = wg.ones(2), leaf(1.0, 2.0)
    with wg.inference_mode():
        assert wg.is_inference_mode_enabled()
        assert not wg.is_grad_enabled()
        y = x * w
        assert y.is_inference()
        assert not y.requires_grad
        # A view is memory that was there before.
        assert not x[:1].is_inference()
        assert y[:1].is_inference()
        x += 1
        y += 1
    assert not wg.is_inference_mode_enabled()
    assert wg.is_grad_enabled()
    assert not x.is_inference()
    assert y.is_inference()
    assert y[:1].is_inference()
    assert not y.clone().is_inference()
    assert not (y + 1).is_inference()


def test_an_inference_tensor_can_be_computed_with() -> None:
    y, w = inferred(), leaf(1.0, 2.0)
    z = w + y
    z.sum().backward()
    assert z.tolist() == [3.0, 4.0]
    assert w.grad.tolist() == [1.0, 1.0]


def test_an_inference_tensor_cannot_be_saved() -> None:
    y, w = inferred(), leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"mul: .* was made in inference_mode\(\) and cannot be saved"):
        w * y
    (w * y.clone()).sum().backward()
    assert w.grad.tolist() == [2.0, 2.0]


def test_an_inference_tensor_cannot_be_written_outside() -> None:
    y = inferred()
    for write in (
        lambda: y.add_(1),
        lambda: y.__setitem__(0, 5.0),
        lambda: y.zero_(),
        lambda: y[:1].fill_(3),
    ):
        with pytest.raises(
            RuntimeError, match=r"was made in inference_mode\(\) and cannot be written in place"
        ):
            write()
    with wg.no_grad(), pytest.raises(RuntimeError, match="cannot be written in place"):
        y.add_(1)
    with wg.inference_mode():
        y.add_(1)
    assert y.tolist() == [3.0, 3.0]


def test_an_inference_tensor_cannot_require_a_gradient_outside() -> None:
    y = inferred()
    with pytest.raises(RuntimeError, match="cannot require a gradient outside of it"):
        y.requires_grad_()
    with wg.inference_mode():
        assert wg.ones(2, requires_grad=True).requires_grad


def test_nothing_records_inside() -> None:
    w = leaf(1.0)
    with wg.inference_mode(), wg.enable_grad():
        assert not (w * 2).requires_grad
    with wg.inference_mode(), wg.set_grad_enabled(True):
        assert not (w * 2).requires_grad


def test_the_mode_can_be_left_for_a_region() -> None:
    w = leaf(1.0)
    with wg.inference_mode():
        with wg.inference_mode(False):
            assert not wg.is_inference_mode_enabled()
            y = w * 2
            assert y.requires_grad
            assert not y.is_inference()
        assert wg.is_inference_mode_enabled()
        assert (w * 2).is_inference()
    with wg.no_grad(), wg.inference_mode(False):
        assert wg.is_grad_enabled()
    assert wg.is_grad_enabled()


def test_transforms_differentiate_inside() -> None:
    with wg.inference_mode():
        x = wg.tensor([1.0, 2.0])
        assert wg.grad(lambda x: (x**2 * x).sum())(x).tolist() == [3.0, 12.0]
        assert wg.vmap(wg.grad(lambda x: x**2))(x).tolist() == [2.0, 4.0]


def test_a_decorator_and_a_generator() -> None:
    @wg.inference_mode()
    def f() -> wg.Tensor:
        return wg.ones(1) * 1

    @wg.inference_mode
    def steps():
        yield wg.is_inference_mode_enabled()
        yield wg.is_inference_mode_enabled()

    assert f().is_inference()
    generator = steps()
    assert next(generator)
    assert not wg.is_inference_mode_enabled()
    assert next(generator)


def test_the_mode_ends_with_an_exception() -> None:
    with pytest.raises(KeyboardInterrupt), wg.inference_mode():
        raise KeyboardInterrupt
    assert not wg.is_inference_mode_enabled()
    assert not wg.ones(1).is_inference()


def test_set_grad_enabled_as_call_context_and_decorator() -> None:
    w = leaf(1.0)
    wg.set_grad_enabled(False)
    assert not (w * 2).requires_grad
    wg.set_grad_enabled(True)
    with wg.set_grad_enabled(False):
        assert not (w * 2).requires_grad
    assert (w * 2).requires_grad

    @wg.set_grad_enabled(False)
    def f() -> bool:
        return (w * 2).requires_grad

    assert (w * 2).requires_grad
    assert not f()
    assert wg.is_grad_enabled()
