"""Large work, two threads: where memory bandwidth and matrix products decide."""

from functools import partial
from typing import Any

import gpt
import numpy as np
from clock import Row, Target, Work
from libraries import jax_ready, pair, torchlike

RNG = np.random.default_rng(0)
MILLIONS = 4 * 1024 * 1024
WIDTH, HEADS, TOKENS, BATCH = 256, 8, 128, 8


def numbers(*shape: int) -> Any:
    """Standard normal float32 numbers."""
    return RNG.standard_normal(shape, dtype=np.float32)


def jax_numpy() -> Any:
    """jax.numpy, imported where it is needed so that its absence is one row's matter."""
    import jax.numpy as jnp

    return jnp


def product(m: Any, n: int, dtype: str) -> Work:
    """A square matrix product."""
    a, b = (m.tensor(numbers(n, n)).to(getattr(m, dtype)) for _ in range(2))
    return lambda: a @ b


def product_numpy(n: int, dtype: str) -> Work:
    """The same in NumPy."""
    a, b = (numbers(n, n).astype(dtype) for _ in range(2))
    return lambda: a @ b


def product_jax(n: int, dtype: str) -> Work:
    """The same, jitted."""
    import jax

    if dtype == "float64":
        raise NotImplementedError("float64 needs a process-wide switch")
    a, b = (jax_numpy().asarray(numbers(n, n), dtype=dtype) for _ in range(2))
    return jax_ready(jax.jit(lambda a, b: a @ b), a, b)


def product_row(n: int, dtype: str, target: Target) -> Row:
    """A row of the matrix product table."""
    makers = {**torchlike(product, n, dtype), "jax jit": partial(product_jax, n, dtype)}
    if dtype != "bfloat16":
        makers["numpy"] = partial(product_numpy, n, dtype)
    return Row(f"matmul {dtype} {n}", target, makers)


def backward_of(m: Any, function: Any, *arrays: Any) -> Work:
    """Forward and backward of `function`, summed against fixed numbers; every argument gets a gradient."""
    inputs = [m.tensor(array, requires_grad=True) for array in arrays]
    out = function(*inputs)
    cotangent = m.tensor(numbers(*out.shape))

    def work() -> None:
        function(*inputs).backward(gradient=cotangent)
        for x in inputs:
            x.grad = None

    return work


def backward_of_jax(make: Any, *arrays: Any) -> Work:
    """The same for JAX: `make()` returns the function. The value is a result too, or XLA would leave it
    out."""
    import jax

    function = make()
    values = [jax_numpy().asarray(array) for array in arrays]
    cotangent = jax_numpy().asarray(numbers(*function(*values).shape))

    def both(g: Any, *xs: Any) -> Any:
        value, pull = jax.vjp(function, *xs)
        return value, pull(g)

    return jax_ready(jax.jit(both), cotangent, *values)


def add(m: Any) -> Work:
    """Element-wise sum of 4 M numbers."""
    a, b = m.tensor(numbers(MILLIONS)), m.tensor(numbers(MILLIONS))
    return lambda: a + b


def add_numpy() -> Work:
    """The same in NumPy."""
    a, b = numbers(MILLIONS), numbers(MILLIONS)
    return lambda: a + b


def add_jax() -> Work:
    """The same, jitted."""
    import jax

    a, b = (jax_numpy().asarray(numbers(MILLIONS)) for _ in range(2))
    return jax_ready(jax.jit(lambda a, b: a + b), a, b)


def total(m: Any) -> Work:
    """Sum of 4 M numbers."""
    return m.tensor(numbers(MILLIONS)).sum


def total_numpy() -> Work:
    """The same in NumPy."""
    return numbers(MILLIONS).sum


def total_jax() -> Work:
    """The same, jitted."""
    import jax

    return jax_ready(jax.jit(lambda a: a.sum()), jax_numpy().asarray(numbers(MILLIONS)))


def gated(m: Any) -> Work:
    """gelu(x) * sigmoid(y) + x, summed, backward."""
    gelu = m.nn.functional.gelu
    function = lambda x, y: (gelu(x) * m.sigmoid(y) + x).sum()
    return backward_of(m, function, numbers(MILLIONS), numbers(MILLIONS))


def gated_jax() -> Work:
    """The same, jitted."""

    def make() -> Any:
        import jax

        return lambda x, y: (jax.nn.gelu(x, approximate=False) * jax.nn.sigmoid(y) + x).sum()

    return backward_of_jax(make, numbers(MILLIONS), numbers(MILLIONS))


def softmax(m: Any) -> Work:
    """Softmax along the last axis."""
    return backward_of(m, lambda x: m.softmax(x, -1), numbers(4096, 1024))


def softmax_jax() -> Work:
    """The same, jitted."""

    def make() -> Any:
        import jax

        return jax.nn.softmax

    return backward_of_jax(make, numbers(4096, 1024))


def layer_norm(m: Any) -> Work:
    """Layer normalisation with scale and shift."""
    function = lambda x, w, b: m.nn.functional.layer_norm(x, (1024,), w, b)
    return backward_of(m, function, numbers(4096, 1024), numbers(1024), numbers(1024))


def normalised(jnp: Any, x: Any, w: Any, b: Any) -> Any:
    """The same in array functions."""
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * w + b


def layer_norm_jax() -> Work:
    """The same, jitted."""
    make = lambda: partial(normalised, jax_numpy())
    return backward_of_jax(make, numbers(4096, 1024), numbers(1024), numbers(1024))


def product_twice(m: Any) -> Work:
    """A matrix product of 1024 and its two gradients."""
    return backward_of(m, lambda a, b: a @ b, numbers(1024, 1024), numbers(1024, 1024))


def product_twice_jax() -> Work:
    """The same, jitted."""
    return backward_of_jax(lambda: lambda a, b: a @ b, numbers(1024, 1024), numbers(1024, 1024))


def block_arrays() -> list[Any]:
    """Input and weights of a transformer block: qkv, projection, two layers, two normalisations."""
    d = WIDTH
    shapes = [(d, 3 * d), (d, d), (d, 4 * d), (4 * d, d)]
    weights = [numbers(*shape) / np.float32(np.sqrt(shape[0])) for shape in shapes]
    norms = [np.ones(d, np.float32), np.zeros(d, np.float32)] * 2
    return [numbers(BATCH, TOKENS, d), *weights, *norms]


def block(m: Any) -> Work:
    """A pre-norm transformer block, causal, forward and backward, all weights included."""
    f = m.nn.functional

    def function(x: Any, *weights: Any) -> Any:
        qkv, proj, up, down, w1, b1, w2, b2 = weights
        joined = (f.layer_norm(x, (WIDTH,), w1, b1) @ qkv).reshape(BATCH, TOKENS, 3, HEADS, WIDTH // HEADS)
        q, k, v = joined.permute(2, 0, 3, 1, 4).unbind(0)
        seen = f.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + seen.permute(0, 2, 1, 3).reshape(BATCH, TOKENS, WIDTH) @ proj
        return x + f.gelu(f.layer_norm(x, (WIDTH,), w2, b2) @ up) @ down

    return backward_of(m, function, *block_arrays())


def block_jax() -> Work:
    """The same, jitted."""

    def make() -> Any:
        import jax

        jnp = jax_numpy()
        mask = jnp.tril(jnp.ones((TOKENS, TOKENS), bool))

        def function(x: Any, *weights: Any) -> Any:
            qkv, proj, up, down, w1, b1, w2, b2 = weights
            joined = (normalised(jnp, x, w1, b1) @ qkv).reshape(BATCH, TOKENS, 3, HEADS, WIDTH // HEADS)
            q, k, v = joined.transpose(2, 0, 3, 1, 4)
            scores = q @ k.swapaxes(-1, -2) / np.float32(np.sqrt(WIDTH // HEADS))
            seen = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf)) @ v
            x = x + seen.transpose(0, 2, 1, 3).reshape(BATCH, TOKENS, WIDTH) @ proj
            return x + jax.nn.gelu(normalised(jnp, x, w2, b2) @ up, approximate=False) @ down

        return function

    return backward_of_jax(make, *block_arrays())


def convolution(m: Any) -> Work:
    """conv2d 3x3, 32 to 64 channels, 8 x 32 x 32."""
    function = lambda x, w: m.nn.functional.conv2d(x, w, padding=1)
    return backward_of(m, function, numbers(8, 32, 32, 32), numbers(64, 32, 3, 3))


TORCH = "torch"
BOTH = "forward + backward"
BEST_PRODUCT = Target(ratio=1 / 0.95, of=TORCH)
AHEAD = Target(ratio=1.0, of=TORCH)
ROWS = [
    *(product_row(n, "float32", AHEAD if n <= 256 else BEST_PRODUCT) for n in (256, 512, 1024, 2048)),
    Row(
        "add, 4 M f32",
        Target(ratio=0.8, of=TORCH),
        {**pair(add, add_jax), "numpy": add_numpy},
        limit="memory: every library moves the same 48 MB, more than the third cache holds",
    ),
    Row("sum, 4 M f32", Target(ratio=1.0, of=TORCH), {**pair(total, total_jax), "numpy": total_numpy}),
    Row("gelu(x)*sigmoid(y)+x, sum, backward, 4 M", Target(ratio=1.0, of=TORCH), pair(gated, gated_jax)),
    Row(f"softmax 4096x1024, {BOTH}", Target(ratio=0.8), pair(softmax, softmax_jax)),
    Row(
        f"layernorm 4096x1024, {BOTH}",
        Target(ratio=0.9, of=TORCH),
        pair(layer_norm, layer_norm_jax),
    ),
    Row(
        f"matmul 1024, {BOTH}",
        Target(ratio=1.0, of=TORCH),
        pair(product_twice, product_twice_jax),
    ),
    Row(
        "GPT step, 4 layers, d=256, 4x256 tokens, AdamW",
        Target(ratio=0.85, of=TORCH),
        pair(gpt.step, gpt.step_jax),
    ),
]
