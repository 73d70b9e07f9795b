"""PyTorch's names of arguments, its further arguments, in-place forms, and where functions are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from messages import Situations, message_tests
from support import array
from wengert import Tensor
from wengert.testing import assert_close


def ramp() -> Tensor:
    return wg.arange(1.0, 7.0).reshape(2, 3)


# ---- names of arguments ----

NAMED: dict[str, tuple[Callable[[Tensor], Any], Callable[[Any], Any]]] = {
    "add": (lambda x: wg.add(input=x, other=x), lambda x: x + x),
    "sum": (lambda x: wg.sum(input=x, dim=0), lambda x: x.sum(0)),
    "matmul": (lambda x: wg.matmul(input=x, other=x.T), lambda x: x @ x.T),
    "clamp": (lambda x: wg.clamp(input=x, min=2), lambda x: np.maximum(x, 2)),
    "gather": (
        lambda x: wg.gather(input=x, dim=0, index=wg.tensor([[1, 0, 1]])),
        lambda x: x[[[1, 0, 1]], [0, 1, 2]],
    ),
    "transpose": (lambda x: wg.transpose(input=x, dim0=0, dim1=1), lambda x: x.T),
    "kron": (lambda x: wg.kron(input=x, other=x), lambda x: np.kron(x, x)),
    "pow": (lambda x: wg.pow(input=x, exponent=2), lambda x: x**2),
    "flip": (lambda x: wg.flip(x, dims=(0,)), lambda x: x[::-1]),
    "flip, method": (lambda x: x.flip(dims=[0, 1]), lambda x: x[::-1, ::-1]),
    "permute": (lambda x: wg.permute(x, dims=(1, 0)), lambda x: x.T),
    "tile": (lambda x: wg.tile(x, dims=(2, 1)), lambda x: np.tile(x, (2, 1))),
    "tile, method": (lambda x: x.tile(dims=(2, 1)), lambda x: np.tile(x, (2, 1))),
    "repeat": (lambda x: x.repeat(repeats=(2, 1)), lambda x: np.tile(x, (2, 1))),
    "split": (lambda x: wg.split(x, split_size_or_sections=1)[1], lambda x: x[1:]),
    "split, method": (lambda x: x.split(split_size_or_sections=[1, 1])[0], lambda x: x[:1]),
    "max": (lambda x: wg.max(x, other=3 * wg.ones(2, 3)), lambda x: np.maximum(x, 3)),
    "min": (lambda x: wg.min(x, other=3 * wg.ones(2, 3)), lambda x: np.minimum(x, 3)),
    "broadcast_to": (lambda x: wg.broadcast_to(x, size=(2, 2, 3)), lambda x: np.broadcast_to(x, (2, 2, 3))),
    "swapaxes": (lambda x: wg.swapaxes(x, dim0=0, dim1=1), lambda x: x.T),
    "heaviside": (lambda x: wg.heaviside(x - 2, values=wg.tensor(0.5)), lambda x: np.heaviside(x - 2, 0.5)),
    "solve": (lambda x: wg.linalg.solve(A=x @ x.T, B=x), lambda x: np.linalg.solve(x @ x.T, x)),
    "array": (lambda x: wg.exp(input=array(x)), np.exp),
}


@pytest.mark.parametrize("name", NAMED)
def test_arguments_by_pytorch_names(name: str) -> None:
    ours, numpy = NAMED[name]
    assert_close(ours(ramp()), numpy(array(ramp())).astype(np.float32))


def test_names_of_methods_too() -> None:
    x = ramp()
    assert x.permute(dims=(1, 0)).shape == (3, 2)
    assert x.reshape(shape=(3, 2)).shape == x.view(size=(3, 2)).shape == (3, 2)
    assert x.expand(size=(2, 2, 3)).shape == x.broadcast_to(size=(2, 2, 3)).shape == (2, 2, 3)
    assert_close(x.pow(exponent=2), x * x)
    assert_close(x.matmul(tensor2=x.T), x @ x.T)
    assert_close(x[0].dot(tensor=x[1]), (x[0] * x[1]).sum())
    assert_close(x.max(other=3 * wg.ones(2, 3)), x.maximum(3 * wg.ones(2, 3)))


# ---- further arguments ----


def test_integer_quotients_are_exact_integers() -> None:
    x, y = wg.tensor([-7, 7, -6, 2**62 + 1, 0]), wg.tensor([2, -2, 3, 1, 5])
    assert wg.div(x, y, rounding_mode="trunc").tolist() == [-3, -3, -2, 2**62 + 1, 0]
    assert wg.div(x, y, rounding_mode="floor").tolist() == [-4, -4, -2, 2**62 + 1, 0]
    z = wg.tensor([7, -7])
    assert z.div_(2, rounding_mode="trunc") is z
    assert z.tolist() == [3, -3]


def test_factors_keep_integers_and_differentiate() -> None:
    assert wg.add(wg.tensor([1, 2]), wg.tensor([3, 4]), alpha=2).tolist() == [7, 10]
    assert wg.tensor([1, 2]).sub(1, alpha=3).tolist() == [-2, -1]
    assert wg.grad(lambda y: wg.add(1.0, y, alpha=2.5))(wg.tensor(1.0)).item() == 2.5


def test_integers_where_floats_are_meant() -> None:
    x, y = np.array([1, -2, 0, 7]), np.array([3, -4, -5, 0])
    for name in ("arctan2", "copysign"):
        got = getattr(wg, name)(wg.tensor(x), wg.tensor(y))
        assert_close(got, getattr(np, name)(x, y).astype(np.float32))
    for name in ("fmax", "fmin", "heaviside"):
        got = getattr(wg.tensor(x), name)(wg.tensor(y))
        assert got.dtype == wg.int64
        assert (array(got) == getattr(np, name)(x, y)).all()
    assert_close(wg.sinc(wg.tensor([0, 2])), wg.tensor([1.0, 0.0]), atol=1e-6)
    assert wg.logit(wg.tensor([0, 1])).tolist() == [-np.inf, np.inf]


def test_reversed() -> None:
    assert list(map(float, reversed(wg.tensor([1.0, 2.0, 3.0])))) == [3.0, 2.0, 1.0]
    assert (array(reversed(ramp())) == array(ramp())[::-1]).all()


def test_decimals() -> None:
    x = wg.tensor([1234.565, -0.125, 3e38, np.inf, np.nan])
    assert_close(x.round(decimals=2), wg.tensor([1234.56, -0.12, 3e38, np.inf, np.nan]), equal_nan=True)
    assert_close(x[:2].round(decimals=-2), wg.tensor([1200.0, -0.0]))
    assert wg.tensor([7, 12]).round(decimals=1).tolist() == [7, 12]
    assert wg.grad(lambda v: v.round(decimals=1))(wg.tensor(0.3)).item() == 0


def test_norms_by_name_and_in_another_dtype() -> None:
    x = ramp()
    assert_close(x.norm("fro"), x.norm())
    assert_close(wg.norm(x, "nuc", dim=(0, 1)), x.norm("nuc"))
    assert x.norm(dtype=wg.float64).dtype == wg.float64


def test_repeats_alone_and_small_integers() -> None:
    assert wg.repeat_interleave(wg.tensor([2, 0, 1])).tolist() == [0, 0, 2]
    edges = wg.tensor([1.0, 2.0])
    assert wg.searchsorted(edges, wg.tensor([1.5]), out_int32=True).dtype == wg.int32
    assert wg.bucketize(wg.tensor([1.5]), edges, out_int32=True).tolist() == [1]
    x = ramp()
    assert_close(
        wg.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist"),
        wg.cdist(x, x),
    )


def test_sums_by_lists_of_axes() -> None:
    x = ramp()
    assert_close(wg.einsum(x, [1, 0]), x.T)
    assert_close(wg.einsum(x, [..., 0], x, [..., 0], [...]), (x * x).sum(1))
    assert_close(wg.einsum(x, [0, 30], [30]), x.sum(0))


# ---- in place ----

FORMS: dict[str, tuple[Any, ...]] = {
    "addbmm": (wg.ones(2, 2, 2), wg.ones(2, 2, 3)),
    "addmm": (wg.ones(2, 2), wg.ones(2, 3)),
    "addr": (wg.ones(2), wg.ones(3)),
    "clamp_max": (3.0,),
    "clamp_min": (3.0,),
    "cumprod": (1,),
    "deg2rad": (),
    "index_copy": (0, wg.tensor([1]), wg.ones(1, 3)),
    "index_fill": (1, wg.tensor([0, 2]), -1.0),
    "index_put": ((wg.tensor([0]), wg.tensor([1])), wg.tensor([9.0])),
    "index_reduce": (0, wg.tensor([0]), wg.full((1, 3), 2.0), "prod"),
    "ldexp": (wg.tensor([1, 2, 0]),),
    "masked_scatter": (wg.tensor([True, False, True]), wg.arange(6.0)),
    "nan_to_num": (),
    "rad2deg": (),
    "renorm": (2, 0, 1.0),
    "scatter": (1, wg.tensor([[2], [0]]), wg.ones(2, 1)),
    "scatter_reduce": (1, wg.tensor([[2], [0]]), wg.full((2, 1), 2.0), "prod"),
    "sinc": (),
    "xlogy": (wg.tensor(2.0),),
}


@pytest.mark.parametrize("name", FORMS)
def test_in_place_forms_write_and_differentiate(name: str) -> None:
    def one(method: str) -> Callable[[Tensor], Tensor]:
        return lambda x: getattr(x * 1, method)(*FORMS[name])

    x = ramp()
    assert getattr(x, f"{name}_")(*FORMS[name]) is x
    assert_close(x, one(name)(ramp()))
    derivative = wg.grad(lambda v: (one(f"{name}_")(v) ** 2).sum())(ramp())
    assert_close(derivative, wg.grad(lambda v: (one(name)(v) ** 2).sum())(ramp()))


def test_in_place_functions() -> None:
    for name in ("exp_", "arcsin_", "round_", "negative_"):
        x = ramp() / 10
        expected = getattr(np, name.rstrip("_").replace("round", "rint"))(array(x))
        assert getattr(wg, name)(x) is x
        assert_close(x, expected)
    x = ramp()
    assert wg.clamp_(x, max=3) is x
    assert wg.relu_(x - 2).min().item() == 0
    assert wg.grad(lambda v: wg.exp_(v * 2))(wg.tensor(0.0)).item() == 2


def test_diagonals_are_filled_as_by_numpy() -> None:
    for shape in ((3, 3), (2, 4), (7, 3), (3, 3, 3)):
        for wrap in (False, True):
            expected = np.zeros(shape)
            np.fill_diagonal(expected, 5, wrap=wrap)
            assert (array(wg.zeros(shape).fill_diagonal_(5, wrap)) == expected).all()


def test_what_chance_fills_has_its_moments() -> None:
    wg.manual_seed(3)
    x = wg.zeros(200_000)
    # Six standard errors: the standard deviation of an exponential number is its mean.
    assert abs(x.exponential_(2.0).mean().item() - 0.5) < 6 * 0.5 / 200_000**0.5
    assert abs(x.log_normal_(0.5, 0.25).log().mean().item() - 0.5) < 6 * 0.25 / 200_000**0.5
    assert wg.zeros(100_000, dtype=wg.float16).exponential_().isfinite().all()
    assert set(wg.zeros(500).random_(2, 5).tolist()) == {2.0, 3.0, 4.0}
    drawn = wg.randint_like(x, 1, 3)
    assert drawn.dtype == x.dtype
    assert set(drawn[:500].tolist()) == {1.0, 2.0}


# ---- new tensors, kinds, questions ----


def test_new_tensors_are_of_their_models_kind() -> None:
    x = wg.zeros(2, dtype=wg.float64)
    for made in (x.new_zeros(2, 3), x.new_ones((2, 3)), x.new_empty([2, 3]), x.new_full((2, 3), 4)):
        assert (made.shape, made.dtype) == ((2, 3), wg.float64)
    assert x.new_zeros(size=(1,)).shape == (1,)
    assert x.new_ones(2, dtype=wg.int32).tolist() == [1, 1]
    assert x.new_tensor([1, 2], requires_grad=True).requires_grad
    assert x.new_full((), 4).item() == 4
    assert [x.short().dtype, x.byte().dtype, x.char().dtype] == [wg.int16, wg.uint8, wg.int8]


def test_arrays_and_numbers_as_tensors() -> None:
    held = np.zeros(2)
    wg.asarray(held)[0] = 1
    assert held[0] == 1
    copied = wg.asarray(held, copy=True)
    copied[1] = 1
    assert held[1] == 0
    assert wg.asarray([1.0], requires_grad=True).requires_grad
    assert (wg.scalar_tensor(3).shape, wg.scalar_tensor(3).dtype) == ((), wg.float32)


def test_where_a_tensor_is() -> None:
    x = ramp()
    assert x.is_cpu
    assert not x.is_cuda
    assert x.get_device() == -1


def test_questions() -> None:
    x = ramp()
    assert x.ndimension() == 2
    assert x.is_signed()
    assert not x.byte().is_signed()
    assert wg.tensor([2.0]).is_nonzero()
    assert not wg.tensor(0).is_nonzero()
    assert x.is_same_size(x + 1)
    assert not x.is_same_size(x.T)
    assert wg.argwhere(x > 4).tolist() == [[1, 1], [1, 2]]
    assert wg.isreal(wg.tensor([1 + 0j, 1j])).tolist() == [True, False]
    assert wg.isin(wg.tensor([1.0, np.nan, 3.0]), wg.tensor([np.nan, 3.0])).tolist() == [False, False, True]
    assert wg.isin(x, wg.zeros(0)).any().item() is False
    assert wg.isin(wg.tensor([1, 2]), 2, invert=True).tolist() == [True, False]
    assert wg.isin(wg.tensor([1j, 2.0]), wg.tensor([1j])).tolist() == [True, False]


def test_coordinates_of_numbered_elements() -> None:
    numbers = np.array([[0, 5], [23, 7]])
    for ours, numpy in zip(
        wg.unravel_index(wg.tensor(numbers), (2, 3, 4)), np.unravel_index(numbers, (2, 3, 4)), strict=True
    ):
        assert (array(ours) == numpy).all()


def test_dtypes_of_results() -> None:
    assert wg.promote_types(wg.int8, wg.float16) == wg.float16
    assert wg.promote_types(wg.float32, wg.complex64) == wg.complex64
    order = (wg.bool, wg.int8, wg.float16, wg.complex64)
    for i, a in enumerate(order):
        assert [wg.can_cast(a, b) for b in order] == [i <= k for k in range(4)]
    assert wg.can_cast(wg.int64, wg.uint8)
    assert wg.can_cast(wg.float64, wg.float16)


def test_functions_of_layers_stand_at_the_top_too() -> None:
    for name, module in wg._LAZY_NAMES.items():
        assert callable(getattr(wg, name)) or name == "default_generator"
        if module == "nn.functional":
            assert getattr(wg, name) is getattr(wg.nn.functional, name)


SITUATIONS: Situations = {
    "no_tensor": (
        lambda: wg.add(other=2),
        TypeError,
        "add() missing 1 required positional argument: 'input'",
    ),
    "twice": (
        lambda: ramp().flip(0, dims=(1,)),
        TypeError,
        "flip: dims is given by position and by name; give it once",
    ),
    "two_names": (
        lambda: wg.pow(ramp(), other=2, exponent=3),
        TypeError,
        "pow: exponent and other are names of one argument; give one of them",
    ),
    "rounding_mode": (
        lambda: wg.div(ramp(), 2, rounding_mode="up"),
        ValueError,
        "div: rounding_mode must be None, 'trunc' or 'floor', got 'up'",
    ),
    "decimals_of_integers": (
        lambda: wg.tensor([17]).round(decimals=-1),
        TypeError,
        "round: decimals = -1 of int64; convert with .float() first",
    ),
    "norm_name": (
        lambda: ramp().norm("max"),
        ValueError,
        "norm: p must be a number, 'fro' or 'nuc', got 'max'",
    ),
    "uneven": (
        lambda: wg.hsplit(ramp(), 2),
        ValueError,
        "hsplit: axis 1 of length 3 does not divide into 2 equal parts; tensor_split makes unequal ones",
    ),
    "slice_shape": (
        lambda: ramp().slice_scatter(wg.ones(2, 2), 1),
        wg.ShapeError,
        "slice_scatter: src has shape (2, 2), expected (2, 3) as the part it replaces",
    ),
    "select_shape": (
        lambda: ramp().select_scatter(wg.ones(2), 0, 0),
        wg.ShapeError,
        "select_scatter: src has shape (2,), expected (3,) as the part it replaces",
    ),
    "split_kind": (
        lambda: ramp().tensor_split(2.5),
        TypeError,
        "tensor_split: a number of parts or a sequence of integers expected, got 2.5",
    ),
    "split_number": (
        lambda: wg.tensor(1.0).tensor_split(2),
        wg.ShapeError,
        "tensor_split: at least one axis expected, got a number",
    ),
    "slice_number": (
        lambda: wg.tensor(1.0).slice_scatter(wg.ones(1)),
        wg.ShapeError,
        "slice_scatter: at least one axis expected, got a number",
    ),
    "renorm": (
        lambda: ramp().renorm(-1, 0, 1.0),
        ValueError,
        "renorm: a positive p and a maxnorm that is not negative expected, got -1 and 1.0",
    ),
    "select_index": (
        lambda: ramp().select_scatter(wg.ones(3), 0, 2),
        IndexError,
        "select_scatter: index 2 is out of range for axis 0 of length 2 of shape (2, 3)",
    ),
    "nonzero_of_many": (
        lambda: ramp().is_nonzero(),
        ValueError,
        "is_nonzero: one element expected, got shape (2, 3); any() and all() reduce several",
    ),
    "unravel": (
        lambda: wg.unravel_index(wg.tensor([6]), (2, 3)),
        IndexError,
        "unravel_index: indices from 6 to 6 for 6 elements of shape (2, 3)",
    ),
    "function_in_place": (
        lambda: wg.exp_(2.0),
        TypeError,
        "exp_: input must be a tensor, got float; convert it with wengert.tensor()",
    ),
    "exponential": (
        lambda: ramp().exponential_(0),
        ValueError,
        "exponential_: a positive rate expected, got 0",
    ),
}
test_messages = message_tests(SITUATIONS)
