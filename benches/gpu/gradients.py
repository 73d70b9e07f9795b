"""Rows that take a step first: gradients, of which only the backward is measured, and optimisers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .rows import RNG, Arrays, Before, Row, Sizes, exact, matrix, normal, normalised, softmax


def recorded(f: Callable[..., Any], *smooth: int) -> Before:
    """Records `f(m, *tensors)` once, by the inputs `smooth`; the last tensor is the cotangent."""

    def before(m: Any, *tensors: Any) -> tuple[Any, ...]:
        leaves = [t.detach().requires_grad_() if i in smooth else t for i, t in enumerate(tensors[:-1])]
        return f(m, *leaves), [leaves[i] for i in smooth], tensors[-1]

    return before


def pulled(m: Any, y: Any, leaves: list[Any], g: Any) -> tuple[Any, ...]:
    """The gradients of what was recorded."""
    return m.autograd.grad(y, leaves, g, retain_graph=True)


def gradient(
    name: str,
    inputs: Callable[[Sizes], tuple[Arrays, float]],
    f: Callable[..., Any],
    smooth: tuple[int, ...],
    check: Callable[[], tuple[Arrays, Any]],
    **kwargs: Any,
) -> Row:
    """The gradients of `f` by its inputs `smooth`, for a cotangent that is the last of the inputs."""
    return Row(name, inputs, pulled, check, before=recorded(f, *smooth), **kwargs)


def product_inputs(sizes: Sizes) -> tuple[Arrays, float]:
    """Two large square matrices and the cotangent of their product: two more products."""
    n = sizes.side
    return [normal(n, n), normal(n, n), normal(n, n)], 4.0 * n**3


def product_check() -> tuple[Arrays, Any]:
    """Sides that are no multiples of a tile."""
    a, b, g = exact(67, 45), exact(45, 83), exact(67, 83)
    return [a, b, g], (g @ b.T, a.T @ g)


def softmax_check() -> tuple[Arrays, Any]:
    """Rows of 300."""
    x, g = exact(37, 300), exact(37, 300)
    y = softmax(x)
    return [x, g], ((g - (g * y).sum(-1, keepdims=True)) * y,)


def rows_with(columns: int, moved: float, *vectors: float) -> Callable[[Sizes], tuple[Arrays, float]]:
    """A matrix, vectors of its columns, and a cotangent like the matrix."""
    make = matrix(columns, moved, *(normal for _ in vectors))

    def inputs(sizes: Sizes) -> tuple[Arrays, float]:
        arrays, work = make(sizes)
        return [*arrays, normal(*arrays[0].shape)], work

    return inputs


def layer_norm_check() -> tuple[Arrays, Any]:
    """Rows of 300, with a weight and a bias."""
    x, w, b, g = exact(37, 300), exact(300), exact(300), exact(37, 300)
    unit = normalised(x, np.ones(300), np.zeros(300))
    h = g * w
    own = h - h.mean(-1, keepdims=True) - unit * (h * unit).mean(-1, keepdims=True)
    return [x, w, b, g], (own / np.sqrt(x.var(-1, keepdims=True) + 1e-5), (g * unit).sum(0), g.sum(0))


def classes(sizes: Sizes) -> tuple[Arrays, float]:
    """Logits of a vocabulary, read by the forward, read and written by the backward."""
    count = 32_768 if not sizes.small else 2048
    rows = sizes.rows(count)
    return [normal(rows, count), RNG.integers(0, count, rows).astype(np.int32)], 12.0 * rows * count


def cross_entropy(m: Any, x: Any, target: Any) -> tuple[Any, ...]:
    """The loss and its gradient."""
    x = x.detach().requires_grad_()
    loss = m.nn.functional.cross_entropy(x, target)
    return loss, m.autograd.grad(loss, x)[0]


def cross_entropy_check() -> tuple[Arrays, Any]:
    """37 rows of 300 classes."""
    x, t = exact(37, 300), RNG.integers(0, 300, 37).astype(np.int32)
    y = softmax(x)
    own = y.copy()
    own[np.arange(37), t] -= 1
    return [x, t], (-np.log(y[np.arange(37), t]).mean(), own / 37)


def parameters(sizes: Sizes) -> tuple[Arrays, float]:
    """Four parameters and their gradients: 28 bytes each, with two moments."""
    count = sizes.bytes // 16
    return [normal(count) for _ in range(8)], 28.0 * 4 * count


def adam_before(m: Any, *tensors: Any) -> tuple[Any, ...]:
    """An optimiser whose parameters have gradients."""
    half = len(tensors) // 2
    params = [p.clone().requires_grad_() for p in tensors[:half]]
    for p, g in zip(params, tensors[half:], strict=True):
        p.grad = g
    return m.optim.AdamW(params, lr=1e-3, weight_decay=0.01), params


def adam(m: Any, optimiser: Any, params: list[Any]) -> tuple[Any, ...]:
    """One step, in place."""
    optimiser.step()
    return tuple(p.detach() for p in params)


def adam_check() -> tuple[Arrays, Any]:
    """The first step of two parameters: the moments correct to g and g * g."""
    arrays = [exact(1000) for _ in range(4)]
    step = lambda p, g: p * (1 - 1e-5) - 1e-3 * g / (np.abs(g) + 1e-8)
    return arrays, tuple(step(p, g) for p, g in zip(arrays[:2], arrays[2:], strict=True))


def lookups(sizes: Sizes) -> tuple[Arrays, float]:
    """A table of words, a text, and the cotangent of its embedding: it is read, a table is written."""
    words, width, length = (50_257, 768, 8192) if not sizes.small else (1000, 64, 512)
    arrays = [normal(words, width), RNG.integers(0, words, length).astype(np.int32), normal(length, width)]
    return arrays, 4.0 * width * (words + length)


def lookups_check() -> tuple[Arrays, Any]:
    """More words than there are in the table."""
    x, i, g = exact(50, 64), RNG.integers(0, 50, 130).astype(np.int32), exact(130, 64)
    own = np.zeros_like(x)
    np.add.at(own, i, g)
    return [x, i, g], (own,)


def images(sizes: Sizes) -> tuple[Arrays, float]:
    """A batch, 64 filters of 3 x 3, and the cotangent of the convolution."""
    batch, channels, side = (32, 64, 56) if not sizes.small else (2, 8, 16)
    like = (batch, channels, side, side)
    flops = 2.0 * batch * side**2 * channels**2 * 9
    return [normal(*like), normal(channels, channels, 3, 3), normal(*like)], flops


def convolved(m: Any, x: Any, w: Any) -> Any:
    """The convolution whose result is as large as its input."""
    return m.nn.functional.conv2d(x, w, padding=1)


def windows(x: np.ndarray) -> np.ndarray:
    """The 3 x 3 neighbours of every place: [batch, channels, height, width, 3, 3]."""
    around = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return np.lib.stride_tricks.sliding_window_view(around, (3, 3), axis=(2, 3))


def conv_check() -> tuple[Arrays, Any]:
    """Two small images."""
    x, w = exact(2, 5, 9, 11), exact(5, 5, 3, 3)
    return [x, w], np.einsum("bchwij,ocij->bohw", windows(x), w)


def conv_gradient_check() -> tuple[Arrays, Any]:
    """Those of both operands."""
    x, w, g = exact(2, 5, 9, 11), exact(5, 5, 3, 3), exact(2, 5, 9, 11)
    own = np.einsum("bohwij,ocij->bchw", windows(g), w[..., ::-1, ::-1])
    return [x, w, g], (own, np.einsum("bchwij,bohw->ocij", windows(x), g))


def planes(sizes: Sizes) -> tuple[Arrays, float]:
    """Images, and the cotangent of their pooling: it and the places are read, a gradient is written."""
    x = images(sizes)[0][0]
    pooled = (*x.shape[:2], x.shape[2] // 2, x.shape[3] // 2)
    return [x, normal(*pooled)], 6.0 * x.size


def planes_check() -> tuple[Arrays, Any]:
    """The largest of each 2 x 2 gets the cotangent."""
    x, g = exact(2, 3, 6, 8), exact(2, 3, 3, 4)
    blocks = x.reshape(2, 3, 3, 2, 4, 2)
    own = (blocks == blocks.max((3, 5), keepdims=True)) * g[:, :, :, None, :, None]
    return [x, g], (own.reshape(x.shape),)


def heads(sizes: Sizes) -> tuple[Arrays, float]:
    """Queries, keys, values and a cotangent of 16 heads of width 64: five products of the scores."""
    shape = (1, 16 if not sizes.small else 2, sizes.length, 64)
    return [normal(*shape) for _ in range(4)], 10.0 * shape[1] * sizes.length**2 * 64


def attention_check() -> tuple[Arrays, Any]:
    """A short one."""
    q, k, v, g = (exact(1, 2, 33, 64) for _ in range(4))
    turned = lambda x: x.swapaxes(-1, -2)
    w = softmax(q @ turned(k) / 8.0)
    dw = g @ turned(v)
    ds = w * (dw - (dw * w).sum(-1, keepdims=True)) / 8.0
    return [q, k, v, g], (ds @ k, turned(ds) @ q, turned(w) @ g)


def added(sizes: Sizes) -> tuple[Arrays, float]:
    """A matrix, places along its rows, and what is added there: all of it read, a matrix written."""
    side = 1024 if not sizes.small else 128
    places = RNG.integers(0, side, (side, side)).astype(np.int32)
    return [normal(side, side), places, normal(side, side)], 16.0 * side**2


def added_check() -> tuple[Arrays, Any]:
    """Places that repeat."""
    x, i, v = exact(20, 30), RNG.integers(0, 30, (20, 50)).astype(np.int32), exact(20, 50)
    out = x.copy()
    np.add.at(out, (np.arange(20)[:, None], i), v)
    return [x, i, v], out


ROWS = [
    gradient(
        "matmul float32, large, both gradients",
        product_inputs,
        lambda m, a, b: a @ b,
        (0, 1),
        product_check,
        unit="flop",
        gate="66%",
        goal="78%",
    ),
    gradient(
        "softmax of rows of 1,024, gradient",
        rows_with(1024, 12),
        lambda m, x: x.softmax(-1),
        (0,),
        softmax_check,
        gate="80%",
        goal="90%",
    ),
    gradient(
        "layer norm, three gradients",
        rows_with(1024, 12, 1, 2),
        lambda m, x, w, b: m.nn.functional.layer_norm(x, (x.shape[-1],), w, b),
        (0, 1, 2),
        layer_norm_check,
        gate="70%",
        goal="85%",
    ),
    Row(
        "cross-entropy and its gradient", classes, cross_entropy, cross_entropy_check, gate="75%", goal="88%"
    ),
    Row("AdamW, one step", parameters, adam, adam_check, before=adam_before, gate="78%", goal="92%"),
    gradient(
        "embedding, gradient",
        lookups,
        lambda m, x, i: m.nn.functional.embedding(i, x),
        (0,),
        lookups_check,
        gate="40%",
        goal="60%",
    ),
    Row(
        "scatter_add along rows",
        added,
        lambda m, x, i, v: m.scatter_add(x, 1, i, v),
        added_check,
        gate="40%",
        goal="50%",
    ),
    Row(
        "conv2d of 3 x 3",
        lambda sizes: (images(sizes)[0][:2], images(sizes)[1]),
        convolved,
        conv_check,
        unit="flop",
        gate="37%",
        goal="60%",
    ),
    gradient(
        "conv2d of 3 x 3, both gradients",
        lambda sizes: (images(sizes)[0], 2 * images(sizes)[1]),
        convolved,
        (0, 1),
        conv_gradient_check,
        unit="flop",
        gate="30%",
        goal="52%",
    ),
    gradient(
        "max_pool2d of 2 x 2, gradient",
        planes,
        lambda m, x: m.nn.functional.max_pool2d(x, 2),
        (0,),
        planes_check,
        gate="60%",
        goal="80%",
    ),
    *(
        gradient(
            f"attention {dtype}, three gradients",
            heads,
            lambda m, q, k, v: m.nn.functional.scaled_dot_product_attention(q, k, v),
            (0, 1, 2),
            attention_check,
            unit="flop",
            gate=gate,
            goal=goal,
            dtype=dtype,
        )
        for dtype, gate, goal in (("float32", "27%", "42%"), ("float16", "90%", "179%"))
    ),
]
