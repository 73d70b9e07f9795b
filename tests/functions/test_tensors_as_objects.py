"""The rows on tensors as objects of Python of docs/coming_from.md, and what strings and attributes refuse."""

import copy

import numpy as np
import pytest
import wengert as wg


def test_functions_of_numpy() -> None:
    x = wg.ones(3)
    assert isinstance(np.sin(x), wg.Tensor)
    values = np.ones(3)
    values += x
    assert values.tolist() == [2.0, 2.0, 2.0]
    assert isinstance(np.ones(3) + x, wg.Tensor)


def test_results_of_a_subclass() -> None:
    class Own(wg.Tensor):
        pass

    assert type(Own([1.0])) is Own
    assert type(Own([1.0]) + 1) is wg.Tensor


def test_copies_of_a_tensor_and_its_view() -> None:
    x = wg.arange(4)
    whole, part = copy.deepcopy((x, x[1:]))
    whole[1] = 9
    assert part.tolist() == [1, 2, 3]
    assert x.tolist() == [0, 1, 2, 3]


def test_format() -> None:
    assert f"{wg.tensor([2.0]):.2f}" == f"{wg.tensor(2.0):.2f}" == "2.00"
    assert f"{wg.ones(2)}" == "tensor([1., 1.])"
    with pytest.raises(TypeError, match=r"one element.*\(2,\)"):
        f"{wg.ones(2):.2f}"
    with pytest.raises(TypeError, match="one element"):
        wg.vmap(lambda a: f"{a:.2f}")(wg.ones(2, 3))


def test_what_grad_refuses() -> None:
    x = wg.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match="grad is a tensor or None, got int"):
        x.grad = 5
    assert x.grad is None


@pytest.mark.parametrize("name", ["grad", "value_and_grad", "vmap", "jacrev", "jacfwd", "hessian"])
def test_transforms_of_what_is_no_function(name: str) -> None:
    with pytest.raises(TypeError, match="a function expected, got int"):
        getattr(wg, name)(5)


def test_vmap_takes_one_name() -> None:
    with pytest.raises(TypeError, match="two names"):
        wg.vmap(lambda a: a, in_axes=1, in_dims=0)
    with pytest.raises(TypeError, match="two names"):
        wg.vmap(lambda a: a, out_axes=1, out_dims=0)


def test_the_first_nan_is_the_median() -> None:
    x = wg.tensor([[1.0, float("nan"), float("nan"), 0.0], [4.0, 1.0, 2.0, 3.0]], requires_grad=True)
    found = x.median(1)
    assert found.indices.tolist() == [1, 2]
    found.values.sum().backward()
    assert x.grad.tolist() == [[0, 1, 0, 0], [0, 0, 1, 0]]


@pytest.mark.parametrize(
    ("make", "settings", "kind", "what"),
    [
        (wg.optim.Adam, {"betas": (0.9,)}, ValueError, "betas are two numbers"),
        (wg.optim.Adam, {"betas": (0.9, 0.99, 0.999)}, ValueError, "betas are two numbers"),
        (wg.optim.Adam, {"betas": 0.9}, ValueError, "betas are two numbers"),
        (wg.optim.Adam, {"betas": (0.9, "a")}, TypeError, r"betas\[1\] is a number"),
        (wg.optim.SGD, {"lr": "a"}, TypeError, "lr is a number"),
        (wg.optim.SGD, {"momentum": "a"}, TypeError, "momentum is a number"),
        (wg.optim.Adam, {"eps": None}, TypeError, "eps is a number"),
        (wg.optim.NAdam, {"weight_decay": "a"}, TypeError, "weight_decay is a number"),
    ],
)
def test_settings_of_optimisers(make: type, settings: dict, kind: type, what: str) -> None:
    with pytest.raises(kind, match=what):
        make([wg.ones(1, requires_grad=True)], **settings)


@pytest.mark.parametrize("scale", [float("nan"), float("inf"), (2.0, float("inf"))])
def test_scales_that_are_no_numbers(scale: object) -> None:
    with pytest.raises(ValueError, match="interpolate: scale_factor must be finite"):
        wg.nn.functional.interpolate(wg.ones(1, 1, 2, 2), scale_factor=scale)


def test_types_of_python_as_dtypes() -> None:
    """As NumPy and PyTorch read them."""
    for kind, name in ((float, "float64"), (complex, "complex128"), (int, "int64"), (bool, "bool")):
        assert str(wg.zeros(1, dtype=kind).dtype) == f"wengert.{name}"
        assert np.zeros(1, dtype=kind).dtype.name == name
    assert wg.tensor([0.1], dtype=wg.float64).to(float).item() == 0.1
    assert wg.numpy.asarray([0.1], dtype=float).item() == 0.1
