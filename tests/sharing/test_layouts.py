"""Changes of shape in place, memory behind tensors, and functions that store into a tensor."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert import Tensor

# In-place changes of shape, and the method that returns the same view.
CHANGES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "squeeze_": (lambda x: x.squeeze_(), lambda x: x.squeeze()),
    "squeeze_dim": (lambda x: x.squeeze_(dim=0), lambda x: x.squeeze(0)),
    "squeeze_dims": (lambda x: x.squeeze_((0, 2)), lambda x: x.squeeze((0, 2))),
    "unsqueeze_": (lambda x: x.unsqueeze_(dim=-1), lambda x: x.unsqueeze(-1)),
    "transpose_": (lambda x: x.transpose_(1, 3), lambda x: x.transpose(1, 3)),
    "swapaxes_": (lambda x: x.swapaxes_(axis0=1, axis1=-1), lambda x: x.transpose(1, 3)),
    "swapdims_": (lambda x: x.swapdims_(dim0=0, dim1=3), lambda x: x.transpose(0, 3)),
}


def block() -> Tensor:
    return wg.arange(6.0, dtype=wg.float64).reshape(1, 2, 1, 3)


@pytest.mark.parametrize("name", CHANGES)
def test_the_object_becomes_the_view(name: str) -> None:
    change, view = CHANGES[name]
    x = block().clone()
    expected, address = view(x).clone(), x.data_ptr()
    assert change(x) is x
    assert x.data_ptr() == address
    assert x.shape == expected.shape
    assert wg.equal(x, expected)
    # Of a view, the root sees what is written.
    root = block().clone()
    part = root[:, :1]
    change(part).mul_(2)
    assert root[:, :1].sum().item() == 6
    assert part.shape == view(block()[:, :1]).shape


@pytest.mark.parametrize("name", CHANGES)
def test_gradients_flow_through(name: str) -> None:
    change, view = CHANGES[name]

    def program(x: Tensor) -> Tensor:
        y = x * 1.0
        change(y)
        y.mul_(y.detach() + 1)
        z = (y * 2.0)[..., :1]
        change(z.squeeze_().unsqueeze_(0).unsqueeze_(0).unsqueeze_(0))
        return y.sum() + z.sum()

    def plain(x: Tensor) -> Tensor:
        y = view(x * 1.0)
        y = y * (y.detach() + 1)
        return y.sum() + (y * 2.0)[..., :1].sum()

    x = block() + 1
    expected = wg.grad(plain)(x)
    assert wg.allclose(wg.grad(program)(x), expected)
    leaf = x.clone().requires_grad_()
    program(leaf).backward()
    assert wg.allclose(leaf.grad, expected)
    many = wg.stack([x, 2 * x])
    assert wg.allclose(wg.vmap(wg.grad(program))(many), wg.vmap(wg.grad(plain))(many))
    assert wg.allclose(wg.jvp(program, (x,), (x,))[1], wg.jvp(plain, (x,), (x,))[1])


def test_views_made_before_follow_where_the_order_of_elements_stays() -> None:
    leaf = wg.ones(2, 3, dtype=wg.float64, requires_grad=True)
    y = leaf * 1.0
    row = y[1]
    y.unsqueeze_(0)
    y.mul_(3.0)
    row.sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [[0, 0, 0], [3, 3, 3]]
    plain = wg.arange(6.0).reshape(2, 3).clone()
    column = plain[:, 0]
    plain.t_()
    plain[0] = 9.0
    assert column.tolist() == [9, 9]


def test_what_cannot_change_its_shape_in_place() -> None:
    leaf = wg.ones(2, 3, requires_grad=True)
    for change in (lambda: leaf.t_(), lambda: leaf.unsqueeze_(0), lambda: leaf[0].unsqueeze_(0)):
        with pytest.raises(RuntimeError, match=r"leaf of shape .2, 3. that requires a gradient"):
            change()
    with wg.no_grad():
        leaf.t_()
    assert leaf.shape == (3, 2)
    assert leaf.is_leaf
    leaf.sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.shape == (3, 2)
    y = leaf * 1.0
    row = y[0]
    with pytest.raises(
        RuntimeError, match=r"transpose_: views or saved values refer .*; write y = x.transpose\(...\)"
    ):
        y.transpose_(0, 1)
    assert row.shape == (2,)
    with pytest.raises(IndexError, match="axis 5"):
        wg.ones(2).unsqueeze_(5)
    assert wg.ones(2, 3).t_().shape == (3, 2)
    kept = leaf.detach().requires_grad_() * 2.0
    kept.retain_grad()
    kept.unsqueeze_(0)
    kept.sum().backward()
    assert kept.grad is not None
    assert kept.grad.shape == (1, 3, 2)


# ---- memory --------------------------------------------------------------------------------------


def test_resize() -> None:
    x = wg.arange(6)
    address = x.data_ptr()
    assert x.resize_(2, 2) is x
    assert x.tolist() == [[0, 1], [2, 3]]
    assert x.resize_((6,)).tolist() == [0, 1, 2, 3, 4, 5]
    assert x.data_ptr() == address
    assert x.resize_(2, 4, memory_format=wg.contiguous_format).tolist() == [[0, 1, 2, 3], [4, 5, 0, 0]]
    assert x.resize_(0).numel() == 0
    assert x.resize_as_(wg.ones(1, 3)).shape == (1, 3)
    with pytest.raises(TypeError, match="resize_as_: the_template must be a tensor, got list"):
        x.resize_as_([1])
    wide = wg.arange(6.0).reshape(2, 3).clone()
    wide.t_().resize_(7)
    assert wide.tolist() == [0, 3, 1, 4, 2, 5, 0]
    shared = wg.zeros(4)
    part = shared[:2]
    part.resize_(3).fill_(1.0)
    assert shared.tolist() == [1, 1, 1, 0]
    for call, text in (
        (lambda: shared.resize_(100_000), "resize_: other tensors or arrays share its memory"),
        (lambda: wg.ones(2, requires_grad=True).resize_(3), "resize_: a tensor that requires a gradient"),
        (
            lambda: wg.vmap(lambda x: x.resize_(1))(wg.ones(2, 3)),
            "resize_: a tensor that requires a gradient, or is",
        ),
        (lambda: wg.ones(2).resize_(-1), "resize_: a length cannot be negative, got -1"),
    ):
        with pytest.raises((RuntimeError, ValueError), match=text):
            call()
    array = shared.numpy()
    with pytest.raises(RuntimeError, match="share its memory"):
        shared.resize_(100_000)
    assert array.shape == (4,)


def test_set_and_storages() -> None:
    x = wg.arange(6.0).reshape(2, 3).clone()
    y = wg.empty(0).set_(x)
    y[0, 0] = 7.0
    assert x[0, 0].item() == 7
    memory = x[1].storage()
    assert (memory.size(), len(memory), memory.nbytes(), memory.element_size()) == (6, 6, 24, 4)
    assert memory.data_ptr() == x.data_ptr()
    assert memory.tolist() == [7, 1, 2, 3, 4, 5]
    assert (memory[1], memory[-2:]) == (1, [4, 5])
    memory[1] = 8.0
    assert x[0, 1].item() == 8
    assert (memory.dtype, str(memory.device)) == (wg.float32, "cpu")
    assert memory == x.storage()
    assert hash(memory) == hash(y.storage())
    assert memory != wg.ones(6).storage()
    assert memory != 3
    assert memory != x.untyped_storage()
    assert repr(memory) == "UntypedStorage(6 of float32 on cpu)"
    assert x.untyped_storage().size() == 24
    assert wg.ones(3, dtype=wg.uint8).untyped_storage().tolist() == [1, 1, 1]
    assert y.set_(memory, 1, (2, 2), (3, 1)).tolist() == [[8, 2], [4, 5]]
    assert y.set_(source=memory, storage_offset=2).tolist() == [2, 3, 4, 5]
    assert y.set_(memory, size=(3, 2), stride=(2, 1)).shape == (3, 2)
    assert y.set_().numel() == 0
    with pytest.raises(IndexError, match="reaches outside of a tensor of 6"):
        y.set_(memory, 5, (2,))
    with pytest.raises(TypeError, match=r"set_: memory of .*float32 expected, got .*int64"):
        y.set_(wg.arange(3))
    with pytest.raises(TypeError, match="set_: source must be a tensor, got list"):
        y.set_([1.0])
    with pytest.raises(RuntimeError, match="set_: the tensor requires a gradient"):
        wg.ones(1, requires_grad=True).set_(x)
    with pytest.raises(TypeError, match="storage: the value of this tensor"):
        wg.vmap(lambda x: wg.tensor(x.storage().size()))(wg.ones(2, 3))


def test_strided_tensors() -> None:
    x = wg.empty_strided((2, 3), (1, 2), dtype=wg.int32, device="cpu")
    assert (x.shape, x.stride(), x.dtype) == ((2, 3), (1, 2), wg.int32)
    assert wg.empty_strided(size=(2,), stride=(5,), requires_grad=True).is_leaf
    y = wg.ones(1, dtype=wg.float64).new_empty_strided((2, 2), (1, 2))
    assert (y.stride(), y.dtype) == ((1, 2), wg.float64)
    z = wg.ones(1).new_empty_strided((2,), (1,), dtype=wg.int8, device="cpu", requires_grad=False)
    assert z.dtype == wg.int8
    assert wg.empty_strided((2, 0), (1, 1)).shape == (2, 0)
    assert wg.empty_strided((), ()).shape == ()
    assert wg.empty_strided((2, 3), (0, 1)).stride() == (0, 1)
    for size, stride, text in (
        ((2, 3), (1, 1), r"elements of shape \(2, 3\) meet with strides \(1, 1\); leave room for each"),
        ((2,), (1, 2), "a stride that is not negative for each axis expected"),
        ((2,), (-1,), "a stride that is not negative"),
    ):
        with pytest.raises(ValueError, match=f"empty_strided: {text}"):
            wg.empty_strided(size, stride)


def test_kinds_that_there_are_not() -> None:
    x = wg.ones(2)
    assert x.layout is wg.strided
    assert isinstance(wg.strided, wg.layout)
    assert repr(wg.strided) == "wengert.strided"
    assert [x.is_sparse, x.is_quantized, x.is_meta, x.is_xpu, x.is_mps] == [False] * 5
    assert [wg.is_conj(x), wg.is_neg(x)] == [False] * 2
    assert x.resolve_conj() is x
    assert x.resolve_neg() is x
    assert x.cfloat().dtype == wg.complex64
    assert x.cdouble().dtype == wg.complex128
    assert x.as_subclass(wg.Tensor) is x
    calls: list[tuple[Callable[[], Any], str]] = [
        (x.chalf, r"chalf: there are no complex numbers of halves; convert to complex64 with .cfloat\(\)"),
        (x.to_sparse, "to_sparse: there are no sparse tensors"),
        (
            lambda: x.as_subclass(type("Mine", (Tensor,), {})),
            "as_subclass: operations return plain tensors, not 'Mine'",
        ),
    ]
    for call, text in calls:
        with pytest.raises(TypeError, match=text):
            call()
    with pytest.raises(AttributeError, match=r"use wengert\.cfloat"):
        _ = wg.chalf
    assert (wg.typename(x), wg.typename(3), wg.typename(wg.nn.ReLU())) == (
        "wengert.float32",
        "int",
        "wengert.nn.modules.activation.ReLU",
    )
    assert wg.typename(o=Tensor) == "wengert.Tensor"
    assert x.type("torch.DoubleTensor", non_blocking=True).dtype == wg.float64
    assert x.double().type(Tensor).dtype == wg.float32
    assert x.double().type("torch.Tensor").dtype == wg.float32


# ---- elements by position and by function
# ---------------------------------------------------------------------------


def test_put() -> None:
    x, index, source = wg.zeros(2, 3), wg.tensor([[1, -1]]), wg.tensor([[5.0, 6.0]])
    expected = np.zeros((2, 3), np.float32)
    np.put(expected, [1, -1], [5, 6])
    assert x.put(index, source).tolist() == expected.tolist()
    assert x.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert wg.put(x, index * 0, source, accumulate=True)[0, 0].item() == 11
    assert x.put_(index, source) is x
    assert x.tolist() == expected.tolist()
    assert x.put_(index * 0 + 1, source, accumulate=True)[0, 1].item() == 16
    for call, error, text in (
        (lambda: x.put(wg.tensor([0.0]), wg.ones(1)), TypeError, "put: index must be of integers"),
        (
            lambda: x.put(wg.tensor([0]), wg.ones(1).double()),
            TypeError,
            "put: source must be .*float32 as the tensor",
        ),
        (lambda: x.put(wg.tensor([0]), wg.ones(2)), wg.ShapeError, "put: 1 positions for 2 elements"),
        (lambda: x.put(wg.tensor([6]), wg.ones(1)), IndexError, "6"),
    ):
        with pytest.raises(error, match=text):
            call()


def test_sum_to_size() -> None:
    x = wg.arange(24.0).reshape(2, 3, 4)
    for size in ((2, 3, 4), (3, 4), (3, 1), (1, 1, 4), (4,), (1,), ()):
        wide = wg.zeros(size).expand(2, 3, 4)
        assert x.sum_to_size(size).shape == size
        expected = wg.vjp(lambda y: y.expand(2, 3, 4), wg.zeros(size))[1](x)
        assert wg.allclose(x.sum_to_size(*size), expected if isinstance(expected, Tensor) else expected[0])
        assert wide.shape == x.shape
    for size in ((2,), (2, 2, 3, 4), (2, 4)):
        with pytest.raises(
            wg.ShapeError, match=r"sum_to_size: shape .* does not broadcast to that of the tensor"
        ):
            x.sum_to_size(size)


def test_functions_of_numbers() -> None:
    x = wg.tensor([[1, 2], [3, 4]])
    assert x.t().apply_(lambda n: n * 10).tolist() == [[10, 30], [20, 40]]
    assert x.tolist() == [[10, 20], [30, 40]]
    assert x.map_(wg.tensor([1, 2]), lambda a, b: a + b).tolist() == [[11, 22], [31, 42]]
    assert wg.ones(0).apply_(callable=lambda n: n).numel() == 0
    assert wg.ones(1).map_(tensor=wg.ones(1), callable=lambda a, b: a - b).item() == 0
    with pytest.raises(RuntimeError, match="apply_: a function of Python's numbers has no derivative"):
        wg.ones(1, requires_grad=True).apply_(lambda n: n)
    with pytest.raises(TypeError, match="map_: tensor must be a tensor, got int"):
        x.map_(3, lambda a, b: a)


@pytest.mark.parametrize("name", ["rand", "randn", "zeros", "ones", "empty", "randint", "randperm", "normal"])
def test_makers_store_into_a_tensor(name: str) -> None:
    make = getattr(wg, name)
    args: dict[str, tuple[Any, ...]] = {"randint": (0, 9, (4,)), "randperm": (4,), "normal": (1.0, 2.0, (4,))}
    out = wg.full((4,), 77.0, dtype=wg.float64)
    wg.manual_seed(0)
    assert make(*args.get(name, (4,)), out=out) is out
    wg.manual_seed(0)
    assert wg.equal(out, make(*args.get(name, (4,)), dtype=wg.float64))
    row = wg.zeros(2, 4)
    make(*args.get(name, (4,)), out=row[1])
    assert row[0].tolist() == [0] * 4
    with pytest.raises(wg.ShapeError, match=rf"{name}: out has shape \(3,\), expected \(4,\)"):
        make(*args.get(name, (4,)), out=wg.zeros(3))
    if name not in ("randperm", "normal"):
        with pytest.raises(ValueError, match="out has its own requires_grad"):
            make(*args.get(name, (4,)), out=out, requires_grad=True)


ARGUMENTS = {
    "squeeze_": (),
    "unsqueeze_": (0,),
    "t_": (),
    "transpose_": (0, 1),
    "swapaxes_": (0, 1),
    "swapdims_": (0, 1),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_errors_of_leaves_name_the_method_and_the_way(name: str) -> None:
    leaf = wg.ones(1, 2, requires_grad=True)
    with pytest.raises(RuntimeError) as caught:
        getattr(leaf, name)(*ARGUMENTS[name])
    assert str(caught.value) == (
        f"{name}: a leaf of shape (1, 2) that requires a gradient cannot be written in place while "
        f"recording; do it under no_grad(), or write x = x.{name[:-1]}(...)"
    )
    with wg.no_grad():
        getattr(leaf, name)(*ARGUMENTS[name])


def test_errors_of_diagonals_and_templates_name_the_method() -> None:
    with pytest.raises(RuntimeError, match=r"^fill_diagonal_: a leaf of .*, or write to a clone\(\) of it$"):
        wg.ones(2, 2, requires_grad=True).fill_diagonal_(0.0)
    with pytest.raises(RuntimeError, match=r"^fill_diagonal_: elements of this tensor .* share memory"):
        wg.ones(1, 3).expand(3, 3).fill_diagonal_(0.0)
    with pytest.raises(RuntimeError, match=r"^resize_as_: a tensor that requires a gradient"):
        wg.ones(2, requires_grad=True).resize_as_(wg.ones(3))
