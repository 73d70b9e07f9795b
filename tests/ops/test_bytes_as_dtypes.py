"""`x.view(dtype)`: the bytes of one dtype read as another, against NumPy."""

import numpy as np
import pytest
import wengert as wg

INTEGERS = [wg.uint8, wg.int8, wg.int16, wg.uint16, wg.int32, wg.uint32, wg.int64, wg.uint64]
KINDS = [*INTEGERS, wg.float16, wg.float32, wg.float64, wg.complex64, wg.complex128]
DATA = np.random.default_rng(0).integers(0, 100, (3, 2, 32)).astype(np.uint8)


@pytest.mark.parametrize("to", KINDS, ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_bytes_are_those_of_numpy(kind: wg.dtype, to: wg.dtype) -> None:
    raw = DATA.view(kind.name)
    x = wg.from_numpy(raw.copy())
    assert x.dtype == kind
    got = x.view(to)
    assert got.dtype == to
    np.testing.assert_array_equal(got.numpy(), raw.view(to.name))
    # Outer axes may be in any order, and parts of them.
    np.testing.assert_array_equal(
        x.transpose(0, 1)[1:].view(to).numpy(), raw.swapaxes(0, 1)[1:].view(to.name)
    )
    if kind.itemsize == to.itemsize:
        np.testing.assert_array_equal(x[0, 0, 0].view(to).numpy(), raw[0, 0, 0].view(to.name))
        np.testing.assert_array_equal(x[..., ::2].view(dtype=to).numpy(), raw[..., ::2].view(to.name))


def test_memory_is_shared() -> None:
    x = wg.zeros(4)
    bits = x.view(wg.int32)
    bits[1] = 0x3F800000
    assert x.tolist() == [0.0, 1.0, 0.0, 0.0]
    x[2] = 2.0
    assert bits.tolist() == [0, 0x3F800000, 0x40000000, 0]
    halves = x.view(wg.uint16)
    halves[1] = 0x4040
    assert x[0].item() == 3.0
    assert x.view(wg.float32)[0].item() == 3.0
    x.view(wg.float32)[0] = 5.0
    assert x[0].item() == 5.0
    z = x.view(wg.complex64)
    z[0] = 1 + 2j
    assert x.tolist() == [1.0, 2.0, 2.0, 0.0]


def test_bfloat16_and_bools() -> None:
    x = wg.tensor([1.0, -2.0], dtype=wg.bfloat16)
    assert x.view(wg.int16).tolist() == [0x3F80, -0x4000]
    assert wg.tensor([0x3F80], dtype=wg.int16).view(wg.bfloat16).item() == 1.0
    assert wg.tensor([True, False]).view(wg.uint8).tolist() == [1, 0]
    with pytest.raises(TypeError, match="view: not every byte of uint8 is a bool; use x != 0, which copies"):
        wg.tensor([1, 0], dtype=wg.uint8).view(wg.bool)


def test_gradients_pass_between_complex_numbers_and_their_parts() -> None:
    x = wg.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    x.view(wg.complex64).abs().square().sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0, 8.0]
    z = wg.tensor([1 + 2j], requires_grad=True)
    (z.view(wg.float32) * wg.tensor([3.0, 5.0])).sum().backward()
    assert z.grad.tolist() == [3 + 5j]
    assert not x.view(wg.int32).requires_grad
    assert wg.grad(lambda x: (x * x.view(wg.int32).bool()).sum())(x.detach()).tolist() == [1.0] * 4


def test_batches() -> None:
    x = wg.arange(12, dtype=wg.float32).reshape(3, 4)
    for kind in (wg.int32, wg.int16, wg.float64):
        assert wg.equal(wg.vmap(lambda v, kind=kind: v.view(kind))(x), x.view(kind))
    columns = wg.vmap(lambda v: v.view(wg.int32), in_dims=1, out_dims=1)(x.mT.contiguous().mT)
    assert wg.equal(columns, x.view(wg.int32))


def test_what_has_no_view() -> None:
    x = wg.zeros(3, 4)
    with pytest.raises(
        wg.ShapeError, match=r"view: float32 of shape \(3, 3\), .* cannot be read as complex128"
    ):
        x[:, :3].contiguous().view(wg.complex128)
    with pytest.raises(wg.ShapeError, match=r"cannot be read as int64 in place; call contiguous\(\) first"):
        x.mT[:2].contiguous().mT.view(wg.int64)
    with pytest.raises(
        wg.ShapeError,
        match=r"^view: float32 of shape \(\), 4 bytes an element, cannot be read as uint8, 1 byte an element: a "
        r"tensor without axes must keep the size of its element; give it an axis with unsqueeze\(-1\), or "
        r"convert",
    ):
        wg.tensor(1.0).view(wg.uint8)
    with pytest.raises(wg.ShapeError, match=r"the last axis holds 3 bytes, which must be a multiple of 4$"):
        wg.zeros(2, 3, dtype=wg.uint8).view(wg.float32)
    assert wg.zeros(0, 4).view(wg.int64).shape == (0, 2)
    assert wg.zeros(2, 0).view(wg.int8).shape == (2, 0)
