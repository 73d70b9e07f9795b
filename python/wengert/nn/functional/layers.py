"""Affine maps, embeddings, normalisation, dropout, padding and attention as functions."""

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import wengert as wg
from wengert import _core
from wengert._arguments import check_real, of_tensors
from wengert._core import Tensor
from wengert._numbers import check_probability
from wengert._precision import in_float32, in_floats, in_widest, rounded

from .in_place import written

__all__ = [
    "bilinear",
    "cosine_similarity",
    "dropout",
    "group_norm",
    "layer_norm",
    "linear",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "rms_norm",
    "scaled_dot_product_attention",
]


def linear(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, *, activation: str | None = None
) -> Tensor:
    """Returns `x W' + b`, and an activation of it, as one operation.

    Args:
        input: `(..., in)`.
        weight: `(out, in)`.
        bias: `(out,)` or None.
        activation: the name of an elementwise function, such as "relu", "tanh", "sigmoid", "gelu" or "silu".

    Returns:
        `(..., out)`. Saves the input and the weight, for each other's gradient, and what the derivative of
        the activation reads.

    Raises:
        ShapeError: if the last axis of `input` is not `in`.

    Example:
        >>> wg.nn.functional.linear(wg.tensor([1.0, 2.0]), wg.tensor([[1.0, 1.0]]), wg.tensor([0.5]))
        tensor([3.5])
    """
    return _core._linear(input, weight, bias, activation)


@of_tensors
@in_widest
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Returns `x1' W_k x2 + b_k` for each output k.

    `input1` `(..., in1)`, `input2` `(..., in2)`, `weight` `(out, in1, in2)` and `bias` `(out,)` or None give
    `(..., out)`.

    Example:
        >>> wg.nn.functional.bilinear(wg.ones(2), wg.ones(3), wg.ones(1, 2, 3))
        tensor([6.])
    """
    if weight.ndim != 3 or (input1.shape[-1], input2.shape[-1]) != tuple(weight.shape)[1:]:
        raise wg.ShapeError(
            f"bilinear: inputs of shapes {tuple(input1.shape)} and {tuple(input2.shape)} with weight of "
            f"shape {tuple(weight.shape)}; expected (..., in1), (..., in2) and (out, in1, in2)"
        )
    if input1.shape[:-1] != input2.shape[:-1]:
        raise wg.ShapeError(
            f"bilinear: inputs of shapes {tuple(input1.shape)} and {tuple(input2.shape)}; all axes but the "
            "last must be the same"
        )
    outputs, in1, in2 = weight.shape
    half = input1 @ weight.permute(1, 0, 2).reshape(in1, outputs * in2)
    half = half.reshape(*tuple(input1.shape)[:-1], outputs, in2)
    out = (half * input2.unsqueeze(-2)).sum(-1)
    return out if bias is None else out + bias


def _check_classes(tensor: Tensor, num_classes: int) -> None:
    """Raises for a class outside of `0 .. num_classes - 1`."""
    if tensor.numel() == 0:
        return
    wrong = wg.logical_or(tensor < 0, tensor >= num_classes)
    if wrong.any():
        low, high = int(tensor.min()), int(tensor.max())
        bad = low if low < 0 else high
        what = (
            "is negative; classes are 0 or more" if bad < 0 else f"is out of range for {num_classes} classes"
        )
        raise IndexError(f"one_hot: class {bad} {what}")


@of_tensors
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Returns int64 of shape `tensor.shape + (num_classes,)`: 1 at the class, else 0. -1 takes one more than
    the largest.

    Example:
        >>> wg.nn.functional.one_hot(wg.tensor([0, 2]), 3)
        tensor([[1, 0, 0],
                [0, 0, 1]])
    """
    if tensor.dtype.is_floating_point or tensor.dtype == wg.bool:
        raise TypeError(f"one_hot: integer classes expected, got {tensor.dtype}; convert with .long()")
    if num_classes == -1:
        if tensor.numel() == 0:
            raise ValueError("one_hot: give num_classes for an empty tensor")
        num_classes = int(tensor.max()) + 1
    # Inside vmap and jvp values cannot be looked at.
    with contextlib.suppress(TypeError):
        _check_classes(tensor, num_classes)
    classes = wg.arange(num_classes, dtype=tensor.dtype, device=tensor.device)
    index_type = wg.int32 if str(tensor.device) != "cpu" else wg.int64
    return (tensor.unsqueeze(-1) == classes).to(index_type)


@of_tensors
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes each element with probability `p` and divides the others by `1 - p` (Srivastava et al. 2014).

    Saves the mask. Returns the input where not training, and with `inplace`, which writes it.

    Example:
        >>> wg.nn.functional.dropout(wg.ones(2), 0.5, training=False)
        tensor([1., 1.])
    """
    check_probability("dropout", p)
    if not training or p == 0.0:
        return input
    return written("dropout", input, _core._dropout, p) if inplace else _core._dropout(input, p)


def _check_end(function: str, input: Tensor, given: Sequence[int]) -> None:
    """Raises unless the shape of the input ends in the one that is normalised."""
    shape = tuple(given)
    if not shape or tuple(input.shape)[-len(shape) :] != shape:
        raise wg.ShapeError(
            f"{function}: a tensor of shape {tuple(input.shape)} does not end in the normalised shape {shape}"
        )


@of_tensors
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises to zero mean and unit variance over the trailing axes `normalized_shape`, then
    `* weight + bias` (Ba et al. 2016). The dtype is that of the input.

    `weight` and `bias` have that shape; `eps` is added to the variance. One fused pass; saves the input and
    one mean and inverse deviation per row.

    Example:
        >>> wg.nn.functional.layer_norm(wg.tensor([1.0, 3.0]), (2,))
        tensor([-1.,  1.])
    """
    _check_end("layer_norm", input, normalized_shape)
    return _core._layer_norm(input, normalized_shape, weight, bias, eps)


@of_tensors
def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | Tensor | None = None,
) -> Tensor:
    """Returns `x / sqrt(mean(x^2) + eps)` over the trailing axes `normalized_shape`, then `* weight` (Zhang
    and Sennrich 2019).

    `weight` has that shape; `eps` is the machine epsilon of the input's dtype if None. The dtype is that of
    the input. One fused pass; saves the input and one inverse root per row. Complex inputs, which are squared
    as they are, and an `eps` that is a tensor take several operations.

    Example:
        >>> wg.nn.functional.rms_norm(wg.tensor([3.0, 3.0]), (2,))
        tensor([1., 1.])
    """
    eps = wg.finfo(_float_of(input)).eps if eps is None else eps
    _check_end("rms_norm", input, normalized_shape)
    if not (input.dtype.is_complex or isinstance(eps, Tensor)):
        return _core._rms_norm(input, normalized_shape, weight, eps)
    wide = input.to(wg.float32) if input.dtype.itemsize < 4 else input
    axes = tuple(range(-len(normalized_shape), 0))
    out = wide * ((wide * wide).mean(axes, keepdim=True) + eps).rsqrt()
    return rounded(out if weight is None else out * weight, _float_of(input))


def _float_of(x: Tensor) -> Any:
    """The dtype of `x`, or float32 where that is no floating point type."""
    return x.dtype if x.dtype.is_differentiable else wg.float32


@of_tensors
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Computes the layer norm over each of `num_groups` groups of channels (axis 1), then `* weight + bias`.

    Both are `(channels,)` or None; `eps` is added to the variance. The dtype is that of the input.

    Example:
        >>> wg.nn.functional.group_norm(wg.ones(1, 4, 2), 2).shape
        (1, 4, 2)
    """
    if input.ndim < 2 or num_groups < 1 or input.shape[1] % num_groups:
        raise wg.ShapeError(
            f"group_norm: the channels (axis 1) of shape {tuple(input.shape)} do not divide into "
            f"{num_groups} groups"
        )
    check_real("group_norm", weight=weight, bias=bias)
    size = math.prod(input.shape[1:]) // num_groups
    wide = input.to(wg.float32) if input.dtype.itemsize < 4 else input
    rows = wide.reshape(input.shape[0], num_groups, size)
    out = _core._layer_norm(rows, (rows.shape[-1],), None, None, eps).reshape(tuple(input.shape))
    per_channel = (-1, *[1] * (input.ndim - 2))
    if weight is not None:
        out = out * weight.reshape(per_channel)
    if bias is not None:
        out = out + bias.reshape(per_channel)
    return rounded(out, _float_of(input))


@of_tensors
@in_floats
@in_float32
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Returns `input / max(norm, eps)` with its `p`-norm along `dim`.

    Example:
        >>> wg.nn.functional.normalize(wg.tensor([3.0, 4.0]), dim=0)
        tensor([0.6, 0.8])
    """
    return input / input.norm(p, dim, keepdim=True).clamp(min=eps)


@of_tensors
@in_floats
@in_float32
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Returns `x1 . x2 / (max(|x1|, eps) max(|x2|, eps))` along `dim`.

    Args:
        x1: floating point, of a shape that broadcasts with `x2`; `dim` is an axis of the broadcast shape.
        x2: floating point.
        dim: the axis of the vectors, which the result does not have.
        eps: the least length that is divided by. Where it takes the place of a length,
            that has no derivative.

    Raises:
        ShapeError: where the shapes do not broadcast.

    Example:
        >>> wg.nn.functional.cosine_similarity(wg.tensor([1.0, 0.0]), wg.tensor([0.0, 2.0]), dim=0)
        tensor(0.)
    """
    # Vectors along an axis of length 1 are as long as those that they broadcast to.
    if x1.shape != x2.shape:
        x1, x2 = wg.broadcast_tensors(x1, x2)
    # Each is divided by its own length, so that no product of elements overflows.
    unit1, unit2 = (x / x.norm(2.0, dim, keepdim=True).clamp(min=eps) for x in (x1, x2))
    return (unit1 * unit2).sum(dim)


@of_tensors
@in_floats
@in_float32
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """Returns the `p`-norm of `x1 - x2 + eps` along the last axis, which `keepdim` keeps with length 1.

    Example:
        >>> wg.nn.functional.pairwise_distance(wg.tensor([0.0, 0.0]), wg.tensor([3.0, 4.0]))
        tensor(5.)
    """
    return (x1 - x2 + eps).norm(p, -1, keepdim=keepdim)


@of_tensors
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Enlarges the last axes. A copy, also where all widths are zero.

    Args:
        input: any tensor.
        pad: `(before, after)` of the last axis, then of the one before it, and so on; negative widths crop.
        mode: "constant", "reflect", "replicate" or "circular".
        value: the constant, 0 by default.

    Example:
        >>> wg.nn.functional.pad(wg.tensor([1.0, 2.0]), (1, 2))
        tensor([0., 1., 2., 0., 0.])
    """
    widths = [int(n) for n in pad]
    if len(widths) % 2 or len(widths) // 2 > input.ndim:
        raise ValueError(
            f"pad: pairs (before, after) for at most {input.ndim} axes expected, got {len(widths)} numbers"
        )
    pairs = list(zip(widths[::2], widths[1::2]))
    if mode == "constant":
        if value is not None and not input.dtype.is_differentiable:
            value = wg.scalar_tensor(value, dtype=input.dtype).item()
        return _core._pad(input, widths, 0.0 if value is None else float(value))
    if mode not in ("reflect", "replicate", "circular"):
        raise ValueError(f"pad: mode must be 'constant', 'reflect', 'replicate' or 'circular', got {mode!r}")
    if value:
        raise ValueError(f"pad: mode {mode!r} takes no value, got {value}")
    out = input
    if mode == "circular" and min(widths, default=0) < 0:
        # What is cut off comes back nowhere.
        out = _core._pad(input, [min(n, 0) for n in widths], 0.0)
        pairs = [(max(before, 0), max(after, 0)) for before, after in pairs]
    for i, (before, after) in enumerate(pairs):
        if before or after:
            index = _padded_index(out.shape[-1 - i], before, after, mode)
            out = out.index_select(-1 - i, index.to(input.device, _index_type(input)))
    return input.clone() if out is input else out


def _index_type(input: Tensor) -> wg.dtype:
    return wg.int64 if str(input.device) == "cpu" else wg.int32


def _padded_index(size: int, before: int, after: int, mode: str) -> Tensor:
    """For each position of the enlarged axis, the position it is read from."""
    largest = {"reflect": size - 1, "circular": size, "replicate": math.inf if size else 0}[mode]
    if max(before, after) > largest:
        raise ValueError(
            f"pad: mode {mode!r} of an axis of {size} takes widths up to {largest}, got {(before, after)}"
        )
    positions = wg.arange(-before, size + after, device="cpu")
    if mode == "circular":
        return positions % size
    if mode == "replicate":
        return positions.clamp(0, size - 1)
    return size - 1 - (size - 1 - positions.abs()).abs()


@of_tensors
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Returns `softmax(Q K' scale + mask) V` (Vaswani et al. 2017), without holding the matrix of scores.

    The scores live in tiles of at most 128 keys by 64 queries, on the CPU and on GPUs, forward, backward, in
    `jvp` and in a double backward, so memory grows with the lengths and not with their product. Third
    derivatives hold the scores.

    Saves the three operands, the mask, the result and one number per query.

    Args:
        query: `(..., L, E)`.
        key: `(..., S, E)`.
        value: `(..., S, V)`.
        attn_mask: broadcasts to `(..., L, S)`; bool (True takes part) or added to the scores, in which case
            it may require a gradient.
        dropout_p: dropout on the attention weights; applied whenever it is positive. The random numbers are
            those of `rand(*scores.shape)`.
        is_causal: position i sees positions up to i. Excludes `attn_mask`.
        scale: `1 / sqrt(E)` by default.
        enable_gqa: the heads of `query` (axis -3) may be a multiple of those of `key` and `value`; equal
            shares of them use one head of those (grouped queries, Ainslie et al. 2023).

    Returns:
        `(..., L, V)`; leading axes broadcast. A row whose positions are all masked gives zeros, and so do
        its gradients.

    Raises:
        ShapeError: for shapes that do not fit.
        ValueError: for a mask together with `is_causal`, or a `dropout_p` outside of 0 to 1.
        TypeError: for operands or masks of other dtypes.

    Example:
        >>> wg.nn.functional.scaled_dot_product_attention(*(wg.ones(2, 5, 8) for _ in range(3))).shape
        (2, 5, 8)
    """
    return _core._attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
