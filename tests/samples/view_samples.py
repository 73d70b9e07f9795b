"""Records of products, views and joins."""

from __future__ import annotations

import numpy as np
import wengert as wg
from support import Arg, Array, Case, Source
from wengert import _core

from samples.sample import Table

VIEWS = Table()
add = VIEWS.record


def matmul_case(s: Source) -> Case:
    b, c, m, k, n = (s.integer(1, s.most) for _ in range(5))
    shapes = [
        ((m, k), (k, n)),
        ((k,), (k,)),
        ((k,), (k, n)),
        ((m, k), (k,)),
        ((b, m, k), (k, n)),
        ((b, m, k), (b, k, n)),
        ((m, k), (b, k, n)),
        ((c, 1, m, k), (b, k, n)),
        ((b, m, k), (k,)),
    ]
    x, y = s.choice(shapes)
    return Case((Arg(x), Arg(y)))


add("matmul", lambda x, y: x @ y, np.matmul, matmul_case, rows=("Matmul",), scale=8, empty=False)


def reshape_case(s: Source) -> Case:
    shape = s.shape(0, 3)
    flat = [d for d in shape if d != 1]
    targets = [tuple(reversed(shape)), (*shape, 1), (1, *flat)]
    if 0 not in shape:
        targets += [(-1,), (*shape[:1], -1) if shape else (1, -1)]
    return Case((Arg(shape),), {"shape": s.choice(targets)})


def permutation(s: Source, rank: int) -> tuple[int, ...]:
    rest, order = list(range(rank)), []
    while rest:
        order.append(rest.pop(s.integer(0, len(rest) - 1)))
    return tuple(i - rank if s.flag() else i for i in order)


def permute_case(s: Source) -> Case:
    shape = s.shape(0, 4)
    return Case((Arg(shape),), {"dims": permutation(s, len(shape))})


def transpose_case(s: Source) -> Case:
    shape = s.shape(1, 3)
    return Case((Arg(shape),), {"a": s.axis(len(shape)), "b": s.axis(len(shape))})


def expand_case(s: Source) -> Case:
    target = s.shape(0, 3)
    shape = tuple(1 if s.flag() else d for d in target)[s.integer(0, len(target)) :]
    return Case((Arg(shape),), {"shape": target})


def squeeze_case(s: Source) -> Case:
    shape = tuple(1 if s.flag() else d for d in s.shape(1, 4))
    return Case((Arg(shape),), {"dim": s.choice([None, s.axis(len(shape))])})


def squeeze_reference(x: Array, dim: int | None) -> Array:
    return x.squeeze() if dim is None else (x.squeeze(dim) if x.shape[dim] == 1 else x)


def unsqueeze_case(s: Source) -> Case:
    shape = s.shape()
    return Case((Arg(shape),), {"dim": s.integer(-len(shape) - 1, len(shape))})


def flatten_case(s: Source) -> Case:
    shape = s.shape(1, 4)
    start = s.integer(0, len(shape) - 1)
    return Case((Arg(shape),), {"start": start, "end": s.choice([-1, s.integer(start, len(shape) - 1)])})


def flatten_reference(x: Array, start: int, end: int) -> Array:
    end %= x.ndim
    return x.reshape(*x.shape[:start], int(np.prod(x.shape[start : end + 1])), *x.shape[end + 1 :])


def flip_case(s: Source) -> Case:
    shape = s.shape(1, 3)
    return Case((Arg(shape),), {"dims": tuple(i for i in range(len(shape)) if s.flag())})


def pad_case(s: Source) -> Case:
    shape = s.shape(1, 3)
    count = s.integer(1, len(shape))
    return Case(
        (Arg(shape),), {"pad": [s.integer(0, 2) for _ in range(2 * count)], "value": s.choice([0.0, 1.5])}
    )


def pad_reference(x: Array, pad: list[int], value: float) -> Array:
    last = [(pad[2 * i], pad[2 * i + 1]) for i in range(len(pad) // 2)]
    return np.pad(x, [(0, 0)] * (x.ndim - len(last)) + last[::-1], constant_values=value)


def triangle_case(s: Source) -> Case:
    return Case((Arg((*s.shape(0, 1), *s.shape(2, 2))),), {"diagonal": s.integer(-2, 2)})


add(
    "reshape",
    lambda x, shape: x.reshape(shape),
    lambda x, shape: x.reshape(shape),
    reshape_case,
    rows=("Reshape",),
)
add(
    "permute",
    lambda x, dims: x.permute(*dims),
    lambda x, dims: x.transpose(dims),
    permute_case,
    rows=("Permute",),
)
add(
    "transpose",
    lambda x, a, b: x.transpose(a, b),
    lambda x, a, b: x.swapaxes(a, b),
    transpose_case,
    rows=("Permute",),
)
add(
    "expand",
    lambda x, shape: x.expand(*shape),
    lambda x, shape: np.broadcast_to(x, shape),
    expand_case,
    rows=("Expand",),
)
add(
    "squeeze",
    lambda x, dim: x.squeeze() if dim is None else x.squeeze(dim),
    squeeze_reference,
    squeeze_case,
    rows=("Reshape",),
)
add(
    "unsqueeze",
    lambda x, dim: x.unsqueeze(dim),
    lambda x, dim: np.expand_dims(x, dim),
    unsqueeze_case,
    rows=("Reshape",),
)
add(
    "flatten", lambda x, start, end: x.flatten(start, end), flatten_reference, flatten_case, rows=("Reshape",)
)
add("flip", lambda x, dims: x.flip(dims), lambda x, dims: np.flip(x, dims), flip_case, rows=("Slice",))
add(
    "pad",
    lambda x, pad, value: wg.nn.functional.pad(x, pad, value=value),
    pad_reference,
    pad_case,
    rows=("Unslice",),
)


def written_case(s: Source) -> Case:
    shape = s.shape(1, 3)
    return Case((Arg(shape), Arg((max(shape[0] - 1, 0), *shape[1:]))), {})


def written(x: wg.Tensor, value: wg.Tensor) -> wg.Tensor:
    """A view that is read after its root was written through another one."""
    y = x.clone()
    whole, tail = y[:], y[1:]
    tail.copy_(value)
    return whole * y


def written_reference(x: Array, value: Array) -> Array:
    return np.concatenate([x[:1], value]) ** 2


add(
    "write into a view",
    written,
    written_reference,
    written_case,
    rows=("AsStrided", "AsStridedTranspose", "Put"),
)
add(
    "tril",
    lambda x, diagonal: x.tril(diagonal),
    lambda x, diagonal: np.tril(x, diagonal),
    triangle_case,
    rows=("Triangle",),
)
add(
    "triu",
    lambda x, diagonal: x.triu(diagonal),
    lambda x, diagonal: np.triu(x, diagonal),
    triangle_case,
    rows=("Triangle",),
)


def cat_case(s: Source) -> Case:
    shape = s.shape(1, 3)
    axis = s.axis(len(shape))
    parts = []
    for _ in range(s.integer(1, 4)):
        part = list(shape)
        part[axis] = s.integer(0, 3)
        parts.append(Arg(tuple(part)))
    return Case(tuple(parts), {"dim": axis})


def stack_case(s: Source) -> Case:
    shape = s.shape(0, 2)
    return Case((Arg(shape),) * s.integer(1, 4), {"dim": s.integer(-len(shape) - 1, len(shape))})


def split_case(s: Source) -> Case:
    shape = s.shape(1, 3)
    axis = s.axis(len(shape))
    first = s.integer(0, shape[axis])
    return Case((Arg(shape),), {"sections": [first, shape[axis] - first], "dim": axis})


add(
    "cat", lambda *x, dim: wg.cat(x, dim=dim), lambda *x, dim: np.concatenate(x, dim), cat_case, rows=("Cat",)
)
add(
    "stack", lambda *x, dim: wg.stack(x, dim=dim), lambda *x, dim: np.stack(x, dim), stack_case, rows=("Cat",)
)
add(
    "split",
    lambda x, sections, dim: tuple(x.split(sections, dim)),
    lambda x, sections, dim: tuple(np.split(x, [sections[0]], dim)),
    split_case,
    rows=("Slice",),
)


def bundle_case(s: Source) -> Case:
    return Case(tuple(Arg(s.shape(0, 3)) for _ in range(s.integer(1, 3))), {})


add("bundle", lambda *x: tuple(_core._bundle(x)), lambda *x: tuple(x), bundle_case, rows=("Bundle",))


def complex_square(x: wg.Tensor) -> wg.Tensor:
    """Pairs of numbers squared as complex ones. Halves are no parts of complex numbers."""
    wide = x if x.dtype in ("float32", "float64") else x.float()
    return wg.view_as_real(wg.view_as_complex(wide).square()).to(x.dtype)


def complex_square_reference(x: Array) -> Array:
    a, b = x[..., 0], x[..., 1]
    return np.stack([a * a - b * b, 2 * a * b], -1)


def complex_product(x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
    """Pairs of numbers multiplied as complex ones, the second one conjugated."""
    wide = [t if t.dtype in ("float32", "float64") else t.float() for t in (x, y)]
    a, b = (wg.view_as_complex(t) for t in wide)
    return wg.view_as_real(a * b.conj()).to(x.dtype)


def complex_product_reference(x: Array, y: Array) -> Array:
    a, b, c, d = x[..., 0], x[..., 1], y[..., 0], y[..., 1]
    return np.stack([a * c + b * d, b * c - a * d], -1)


def pairs_case(s: Source) -> Case:
    return Case((Arg((*s.shape(0, 2), 2)),))


def two_pairs_case(s: Source) -> Case:
    x, y = s.broadcast(2)
    return Case((Arg((*x, 2)), Arg((*y, 2))))


add(
    "view_as_complex",
    complex_square,
    complex_square_reference,
    pairs_case,
    rows=("ViewAsReal", "ViewAsComplex"),
    scale=4,
)
add(
    "complex_mul",
    complex_product,
    complex_product_reference,
    two_pairs_case,
    rows=("ComplexProduct",),
    scale=4,
)
