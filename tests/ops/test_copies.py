"""What promises a new tensor never shares memory with its operand: every public function is walked."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert import Tensor, fft, linalg
from wengert.nn import functional as F

# Documented as views, conversions that give the tensor itself where there is nothing to convert, and
# functions that give the input itself in a mode that does nothing, or for a single tensor.
VIEWS = frozenset(
    """
    adjoint asarray dsplit hsplit tensor_split vsplit
    broadcast_tensors broadcast_to chunk conj contiguous detach diagonal expand expand_as flatten imag matrix_transpose
    meshgrid moveaxis movedim narrow permute ravel real reshape reshape_as select split split_with_sizes squeeze
    swapaxes swapdims t transpose unbind unflatten unsqueeze view view_as view_as_complex view_as_real
    as_strided as_tensor block_until_ready cpu float long from_dlpack pin_memory positive to
    to_device type type_as
    atleast_1d atleast_2d atleast_3d cartesian_prod chain_matmul
    alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout feature_dropout
    resolve_conj resolve_neg
    """.split()
)
NO_OPERATIONS = frozenset({"backward", "broadcast_shapes", "manual_seed", "seed", "set_num_threads"})
# Functions that take none of these calls: they want tensors of several shapes, or arguments of another kind.
UNREACHED = frozenset(
    """
    addbmm addmv affine_grid all_gather are_deterministic_algorithms_enabled as_subclass astype axis_index
    axis_size baddbmm bartlett_window bilinear binary_cross_entropy blackman_window bmm can_cast chalf
    checkpoint cholesky compile conv1d conv3d conv_tbc conv_transpose1d conv_transpose3d
    cosine_embedding_loss ctc_loss cuda diagonal_scatter flops fold from_numpy frombuffer
    get_autocast_dtype get_default_device get_default_dtype get_float32_matmul_precision get_num_threads
    get_rng_state gpu grad hamming_window hann_window hessian hvp imag index_add index_copy index_fill
    index_put index_reduce initial_seed is_autocast_enabled is_grad_enabled is_ieee_gradients_enabled
    is_inference_mode_enabled istft jacfwd jacobian jacrev jit jvp kaiser_window layer_norm
    linear_transpose linearize load max_unpool1d max_unpool2d max_unpool3d multi_dot
    multi_head_attention_forward multi_margin_loss mv narrow nll_loss pmax pmean pmin printoptions
    promote_types psum register_hook register_post_accumulate_grad_hook renorm retain_grad rms_norm save
    scatter scatter_add scatter_reduce select_scatter set_default_device set_default_dtype
    set_default_tensor_type set_float32_matmul_precision set_printoptions set_rng_state solve_triangular
    split_with_sizes to_sparse trace_backward unflatten value_and_grad view_as_real vjp vmap
    associative_scan eval_shape fori_loop make_graph map scan switch while_loop
    all_to_all pbroadcast ppermute psum_scatter
    """.split()
)
SHAPES = ((), (1,), (3,), (1, 3), (3, 3), (1, 1, 2, 3), (1, 4, 1, 2))
ALL = wg.tensor(True)
NUMBERS: tuple[tuple[Any, ...], ...] = ((), (0,), (1,), (3,), (1, 0), (0, 0), (1, 1), ((0, 0),), (-1,))
ARGUMENTS = (*NUMBERS, (ALL,), (ALL, 2), (ALL, wg.ones(200)), (ALL, wg.ones(200, dtype=wg.int64)))


def memory(x: Tensor) -> int:
    """Where the block begins that a tensor lies in."""
    return x.data_ptr() - x.storage_offset() * x.element_size()


def tensors(result: Any) -> Iterator[Tensor]:
    """Those in a result."""
    if isinstance(result, Tensor):
        yield result
    elif isinstance(result, (tuple, list)):
        for part in result:
            yield from tensors(part)


# To parse a signature takes longer than the call.
signature = functools.cache(inspect.signature)


def writes(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bool:
    """Whether the arguments ask for the result in place of the operand."""
    try:
        given = signature(function).bind(None, *arguments).arguments
    except (TypeError, ValueError):
        return False
    inplace = given.get("inplace")
    return isinstance(inplace, Tensor) or bool(inplace)


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Methods and functions that do not write."""
    for space in (Tensor, wg, F, linalg, fft):
        for name in dir(space):
            function = getattr(space, name)
            private = name.startswith("_") or name.endswith("_") or name in NO_OPERATIONS
            if callable(function) and not isinstance(function, (type, wg.dtype)) and not private:
                yield name, function


def calls(function: Callable[..., Any], shape: tuple[int, ...], dtype: wg.dtype) -> Iterator[tuple[Any, ...]]:
    """Lists of arguments: a tensor, what is in `ARGUMENTS`, and further tensors like the first."""
    # The same numbers for a function, whichever functions there are besides.
    wg.manual_seed(0)
    for arguments in ARGUMENTS:
        if not writes(function, arguments):
            yield (3 * wg.rand(shape)).to(dtype), *arguments
    for count in (2, 3):
        x, *more = ((3 * wg.rand(shape)).to(dtype) for _ in range(count))
        if not writes(function, tuple(more)):
            yield x, *more


@pytest.mark.filterwarnings("ignore")
def test_what_the_walk_does_not_reach() -> None:
    left = dict(functions())
    for shape, dtype in itertools.product(SHAPES, (wg.float32, wg.int64)):
        for name, function in list(left.items()):
            for arguments in calls(function, shape, dtype):
                with contextlib.suppress(Exception):
                    function(*arguments)
                    del left[name]
                    break
    assert set(left) <= UNREACHED <= dict(functions()).keys()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [wg.float32, wg.int64], ids=["float32", "int64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_only_views_share_memory(shape: tuple[int, ...], dtype: wg.dtype) -> None:
    sharing = set()
    for name, function in functions():
        for x, *arguments in calls(function, shape, dtype):
            try:
                found = list(tensors(function(x, *arguments)))
            except Exception:  # arguments that mean nothing to this function
                continue
            if any(y.numel() and memory(y) == memory(x) for y in found):
                sharing.add(name)
    assert sharing - VIEWS == set()


X = np.arange(6.0).reshape(2, 3)
COPIES: dict[str, tuple[Callable[[Tensor], Tensor], np.ndarray]] = {
    "flip": (lambda x: x.flip(0), X[::-1]),
    "flip of both": (lambda x: x.flip((0, 1)), X[::-1, ::-1]),
    "rot90": (lambda x: x.rot90(), np.rot90(X)),
    "diag": (lambda x: x.diag(), np.diag(X)),
    "diag above": (lambda x: wg.diag(x, 1), np.diag(X, 1)),
    "repeat": (lambda x: x.repeat(1, 1), X),
    "repeat twice": (lambda x: x.repeat(2, 1), np.tile(X, (2, 1))),
    "repeat of one row": (lambda x: x[:1].repeat(2, 1), np.tile(X[:1], (2, 1))),
    "repeat of one column": (lambda x: x[:, :1].repeat(1, 2), np.tile(X[:, :1], (1, 2))),
    "tile": (lambda x: wg.tile(x, (1,)), X),
    "tile of one element": (lambda x: x[0, :1].tile((3,)), np.tile(X[0, :1], 3)),
    "repeat_interleave": (lambda x: x.repeat_interleave(1, 0), X),
    "repeat_interleave of one": (lambda x: x[:1].repeat_interleave(2, 0), np.repeat(X[:1], 2, 0)),
    "roll": (lambda x: x.roll(0, 0), X),
    "roll by a turn": (lambda x: x.roll(3, 1), X),
    "roll of all": (lambda x: x.roll(6), X),
    "roll by one": (lambda x: x.roll((1, 2), (0, 1)), np.roll(X, (1, 2), (0, 1))),
    "pad": (lambda x: F.pad(x, (0, 0)), X),
    "pad, cropping": (lambda x: F.pad(x, (-1, 0)), X[:, 1:]),
    "pad, replicating": (lambda x: F.pad(x, (0, 0), "replicate"), X),
    "matrix_power": (lambda x: linalg.matrix_power(x[:, :2], 1), X[:, :2]),
    "interpolate": (lambda x: F.interpolate(x.reshape(1, 2, 3), 3), X.reshape(1, 2, 3)),
    "adaptive pool": (lambda x: F.adaptive_avg_pool1d(x, 3), X),
    "diff": (lambda x: x.diff(n=0), X),
    "fftshift": (lambda x: fft.fftshift(x[:1], 0), X[:1]),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x.reshape(1, 2, 3), 1), X.reshape(1, 2, 3)),
    "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x.reshape(1, 2, 3), 1), X.reshape(1, 2, 3)),
    "channel_shuffle": (lambda x: F.channel_shuffle(x.reshape(1, 2, 3), 1), X.reshape(1, 2, 3)),
    "cat": (lambda x: wg.cat([wg.tensor([]), x]), X),
}


@pytest.mark.parametrize("name", list(COPIES))
def test_writing_into_a_copy_leaves_the_operand(name: str) -> None:
    function, expected = COPIES[name]
    x = wg.tensor(X)
    y = function(x)
    np.testing.assert_array_equal(y.numpy(), expected)
    y += 10
    np.testing.assert_array_equal(y.numpy(), expected + 10)
    np.testing.assert_array_equal(x.numpy(), X)


@pytest.mark.parametrize("name", list(COPIES))
def test_copies_inside_transforms(name: str) -> None:
    function, expected = COPIES[name]

    def written(x: Tensor) -> Tensor:
        y = function(x)
        y *= 3
        return y.sum() + x.sum()

    x = wg.tensor(X)
    ones = wg.ones_like(x)
    # Every element of the result is one of the operand: the slope is one plus three for each time it occurs
    # there.
    value, along = wg.jvp(written, (x,), (ones,))
    assert value.item() == 3 * expected.sum() + X.sum()
    assert along.item() == 3 * expected.size + X.size
    assert wg.grad(written)(x).sum().item() == along.item()
    assert wg.vmap(written)(wg.stack([x, 2 * x])).tolist() == [value.item(), 2 * value.item()]


@pytest.mark.parametrize("name", ["ceil", "fix", "floor", "round", "trunc"])
def test_rounding_whole_numbers_copies(name: str) -> None:
    x = wg.tensor([1, 2])
    y = getattr(x, name)()
    y += 1
    assert x.tolist() == [1, 2]
    assert y.tolist() == [2, 3]


@pytest.mark.parametrize("function", [lambda x: x.cumprod(0), lambda x: x.prod(0, keepdim=True)])
def test_products_of_one_complex_number_copy(function: Callable[[Tensor], Tensor]) -> None:
    x = wg.tensor([[1j, 2.0]])
    y = function(x)
    y += 1
    assert x.tolist() == [[1j, 2.0]]


@pytest.mark.parametrize("function", [wg.numpy.positive, wg.numpy.conj])
def test_numpys_functions_of_elements_copy(function: Callable[[Tensor], Tensor]) -> None:
    x = wg.tensor([1.0, 2.0])
    y = function(x)
    y += 1
    assert x.tolist() == [1.0, 2.0]


def test_numpys_flip_stays_a_view() -> None:
    x = wg.tensor(X)
    wg.numpy.flip(x, axis=0)[0] = 7.0
    assert x[1].tolist() == [7.0, 7.0, 7.0]
