"""`set_default_dtype`: what is made of numbers follows it, what exists does not."""

import threading
from collections.abc import Iterator

import numpy as np
import pytest
import wengert as torch
from wengert import nn


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    torch.set_default_dtype(torch.float32)


FACTORIES = {
    "tensor": lambda: torch.tensor([0.1, 2]),
    "number": lambda: torch.tensor(0.1),
    "nested": lambda: torch.tensor([[0.1], [2]]),
    "empty list": lambda: torch.tensor([]),
    "as_tensor": lambda: torch.as_tensor(0.1),
    "asarray": lambda: torch.asarray([0.1]),
    "scalar_tensor": lambda: torch.scalar_tensor(3),
    "zeros": lambda: torch.zeros(2),
    "ones": lambda: torch.ones(2),
    "empty": lambda: torch.empty(2),
    "full": lambda: torch.full((2,), 0.5),
    "arange": lambda: torch.arange(0.0, 1.0, 0.25),
    "linspace": lambda: torch.linspace(0, 1, 3),
    "logspace": lambda: torch.logspace(0, 1, 3),
    "eye": lambda: torch.eye(2),
    "rand": lambda: torch.rand(2),
    "randn": lambda: torch.randn(2),
    "normal": lambda: torch.normal(0.0, 1.0, (2,)),
    "window": lambda: torch.hann_window(4),
    "kaiser": lambda: torch.kaiser_window(1),
    "Tensor": lambda: torch.Tensor(2, 3),
    "Tensor of data": lambda: torch.Tensor([1, 2]),
    "fftfreq": lambda: torch.fft.fftfreq(4),
    "quotient": lambda: torch.tensor([1, 2]) / 2,
    "root": lambda: torch.tensor([1, 2]).sqrt(),
    "product": lambda: torch.tensor([1, 2]) * 0.1,
    "where": lambda: torch.where(torch.tensor([True]), 1.0, 0.0),
    "linear": lambda: nn.Linear(2, 1).weight,
    "conv": lambda: nn.Conv2d(1, 1, 2).bias,
    "batch norm": lambda: nn.BatchNorm1d(2).running_var,
    "embedding": lambda: nn.Embedding(2, 2).weight,
    "lstm": lambda: nn.LSTM(1, 2).weight_hh_l0,
    "prelu": lambda: nn.PReLU().weight,
    "attention": lambda: nn.MultiheadAttention(2, 1).in_proj_weight,
    "Normal": lambda: torch.distributions.Normal(0.0, 1.0).sample((2,)),
    "Categorical": lambda: torch.distributions.Categorical(probs=torch.tensor([0.5, 0.5])).probs,
    "Uniform": lambda: torch.distributions.Uniform(0.0, 1.0).sample(),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_what_is_made_of_numbers_has_the_default(name: str) -> None:
    for dtype in (torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        assert FACTORIES[name]().dtype == dtype


def test_digits_are_kept() -> None:
    torch.set_default_dtype(torch.float64)
    assert torch.tensor(0.1).item() == 0.1
    assert torch.tensor([0.1, [1]][0]).item() == 0.1
    assert torch.tensor([[0.1, 2.0]]).tolist() == [[0.1, 2.0]]
    assert torch.tensor(0.1 + 0.2j).item() == 0.1 + 0.2j
    assert torch.linspace(0, 1, 11).tolist() == np.linspace(0, 1, 11).tolist()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_half_by_default_loses_nothing_that_is_asked_for(dtype: torch.dtype) -> None:
    torch.set_default_dtype(dtype)
    assert torch.get_default_dtype() == dtype
    assert torch.tensor([0.1, 3]).dtype == dtype
    # The digits of another dtype do not pass through the default.
    assert torch.tensor([0.1], dtype=torch.float32).item() == np.float32(0.1)
    assert torch.tensor(0.1, dtype=torch.float64).item() == 0.1
    assert (torch.ones(1, dtype=torch.float64) * 0.1).item() == 0.1
    assert torch.tensor(1j).dtype == torch.complex64
    assert (
        torch.dot(torch.ones(2, dtype=torch.float64), torch.tensor([0.1, 0.1]).double()).dtype
        == torch.float64
    )
    assert torch.stack([torch.ones((), dtype=torch.float64), 0.1])[1].item() == 0.1


def test_complex_numbers_follow() -> None:
    assert torch.tensor(1j).dtype == torch.complex64
    torch.set_default_dtype(torch.float64)
    assert torch.tensor([1j]).dtype == torch.complex128
    assert torch.full((1,), 1j).dtype == torch.complex128
    assert (torch.tensor([1, 2]) * 1j).dtype == torch.complex128
    assert torch.polar(1.0, 0.5).dtype == torch.complex128


def test_what_exists_and_what_is_named_stays() -> None:
    x, layer = torch.ones(2), nn.Linear(2, 1)
    torch.set_default_dtype(torch.float64)
    # A number adapts to the tensor beside it, whatever the default is.
    for y in (
        x * 0.1,
        0.1 + x,
        x.clamp(0.0, 0.5),
        torch.where(x > 0, x, 0.0),
        x.sum() * 0.1,
        x**0.5,
        x.lerp(x, 0.5),
    ):
        assert y.dtype == torch.float32
    assert layer(x).dtype == torch.float32
    assert torch.zeros_like(x).dtype == torch.float32
    assert x.new_zeros(2).dtype == torch.float32
    assert torch.ones(2, dtype=torch.float32).dtype == torch.float32
    assert torch.as_tensor(np.ones(2, np.float32)).dtype == torch.float32
    assert torch.arange(3).dtype == torch.tensor([1]).dtype == torch.int64
    assert torch.tensor([True]).dtype == torch.bool


def test_a_training_step_stays_in_one_dtype() -> None:
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Tanh(), nn.Dropout(0.1), nn.Linear(4, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    loss = nn.functional.cross_entropy(model(torch.randn(5, 3)), torch.tensor([0, 1, 0, 1, 1]))
    loss.backward()
    optimizer.step()
    assert loss.dtype == torch.float64
    assert (
        {p.dtype for p in model.parameters()} == {p.grad.dtype for p in model.parameters()} == {torch.float64}
    )


def test_it_is_that_of_all_threads() -> None:
    torch.set_default_dtype(torch.float64)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.ones(1).dtype))
    thread.start()
    thread.join()
    assert seen == [torch.float64]


def test_text_names_the_dtypes_that_are_no_default() -> None:
    torch.set_default_dtype(torch.float64)
    assert repr(torch.tensor([0.5])) == "tensor([0.5])"
    assert repr(torch.tensor([0.5], dtype=torch.float32)) == "tensor([0.5], dtype=float32)"


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_only_floats_can_be_the_default(dtype: torch.dtype) -> None:
    with pytest.raises(
        TypeError, match=f"set_default_dtype: a floating point dtype expected, got {dtype.name}"
    ):
        torch.set_default_dtype(dtype)
    assert torch.get_default_dtype() == torch.float32


def test_classes_of_tensors_choose_as_well() -> None:
    torch.set_default_tensor_type(torch.DoubleTensor)
    assert torch.zeros(1).dtype == torch.float64
    torch.set_default_tensor_type("torch.HalfTensor")
    assert torch.zeros(1).dtype == torch.float16
    torch.set_default_tensor_type(t="torch.FloatTensor")
    assert torch.zeros(1).dtype == torch.float32
    with pytest.raises(TypeError, match=r"a class such as wengert\.DoubleTensor"):
        torch.set_default_tensor_type("torch.Nothing")
    with pytest.raises(TypeError, match="floating point dtype expected, got int64"):
        torch.set_default_tensor_type(torch.LongTensor)
    for kind in ("torch.cuda.FloatTensor", torch.cuda.FloatTensor):
        with pytest.raises(ValueError, match="WENGERT_CUDA=gpu"):
            torch.set_default_tensor_type(kind)


def test_a_literature_snippet() -> None:
    # As numerical programs begin.
    torch.set_default_dtype(torch.double)
    t = torch.linspace(0.0, 1.0, 5)
    x = torch.tensor(2.0, requires_grad=True)
    y = (x * t.exp()).sum()
    (g,) = torch.autograd.grad(y, x)
    np.testing.assert_allclose(g.item(), np.exp(np.linspace(0, 1, 5)).sum(), rtol=1e-15)
    assert torch.finfo().eps == np.finfo(np.float64).eps
    assert repr(torch.finfo(torch.float32)) == (
        "finfo(min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, smallest_normal=1.17549e-38, "
        "tiny=1.17549e-38, dtype=float32)"
    )
    assert repr(torch.iinfo(torch.int8)) == "iinfo(min=-128, max=127, dtype=int8)"
