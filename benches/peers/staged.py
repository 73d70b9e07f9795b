"""Staged work, one thread: `wengert.jit` beside wengert's eager mode, `jax.jit` and `torch.compile`, with the
time of the first call, in which a function is traced (and by JAX and PyTorch compiled).
"""

import importlib
import shutil
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import small
from clock import Row, Target, Work
from libraries import jax_ready, prepared

RNG = np.random.default_rng(0)
SCALAR_STEPS = 250  # of 5 operations each
STEPS, WIDTH = 100, 32


def numbers(*shape: int) -> Any:
    """Standard normal float32 numbers."""
    return RNG.standard_normal(shape).astype(np.float32)


def beside(make: Callable[[Any], Work], make_jax: Callable[[], Work]) -> dict[str, Callable[[], Work]]:
    """The same work of wengert as a program and eager, of PyTorch compiled, and JAX with its own source."""

    def staged(m: Any) -> Work:
        return m.jit(make(m))

    return {
        "wengert": partial(prepared, "wengert", staged),
        "eager": partial(prepared, "wengert", make),
        "jax jit": make_jax,
        "torch compile": partial(compiled, make),
    }


def compiled(make: Callable[[Any], Work]) -> Work:
    """The same source, by `torch.compile`."""
    torch = importlib.import_module("torch")
    if shutil.which("g++") is None:
        raise RuntimeError("torch.compile calls g++, which is not there")
    # What another row compiled of the same source does not count.
    torch.compiler.reset()
    work: Work = torch.compile(make(torch))
    return work


def tiny_step(m: Any) -> Work:
    """Forward, backward and SGD for 16-32-1, with the batch as an argument of the program."""
    model = small.network(m, [16, 32, 1])
    optimiser = m.optim.SGD(model.parameters(), lr=0.01)
    x, y = m.tensor(small.TINY_X), m.tensor(small.TINY_Y)

    def work() -> Any:
        optimiser.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimiser.step()
        return loss

    return work


def recurrence(sin: Callable[[Any], Any], x: Any) -> Any:
    """A program of plain numbers."""
    for _ in range(SCALAR_STEPS):
        x = sin(x) * 1.01 + x * 0.5
        x = x - 0.1 * x
    return x


def scalars(m: Any) -> Work:
    """Its gradient."""
    return partial(small.transforms(m).grad(partial(recurrence, m.sin)), m.tensor(0.3))


def scalars_jax() -> Work:
    """The same, jitted."""
    import jax
    import jax.numpy as jnp

    return jax_ready(jax.jit(jax.grad(partial(recurrence, jnp.sin))), jnp.float32(0.3))


def lstm(m: Any, batch: int) -> Work:
    """The gradient of an LSTM's weights."""
    layer, x = m.nn.LSTM(WIDTH, WIDTH), m.tensor(numbers(STEPS, batch, WIDTH))
    weights = list(layer.parameters())

    def work() -> Any:
        for weight in weights:
            weight.grad = None
        layer(x)[0].square().mean().backward()
        return [weight.grad for weight in weights]

    return work


def lstm_jax(batch: int) -> Work:
    """The same as a scan, jitted."""
    import jax
    import jax.numpy as jnp

    w, u, b = numbers(WIDTH, 4 * WIDTH) * 0.1, numbers(WIDTH, 4 * WIDTH) * 0.1, numbers(4 * WIDTH)
    x = jnp.asarray(numbers(STEPS, batch, WIDTH))

    def loss(weights: Any) -> Any:
        w, u, b = weights

        def step(carry: Any, x: Any) -> Any:
            h, c = carry
            i, f, g, o = jnp.split(x @ w + h @ u + b, 4, axis=1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((batch, WIDTH))
        return jnp.mean(jax.lax.scan(step, (zero, zero), x)[1] ** 2)

    return jax_ready(jax.jit(jax.grad(loss)), [jnp.asarray(part) for part in (w, u, b)])


def cheap(x: Any, y: Any, z: Any) -> Any:
    """Eight cheap operations."""
    a = x * y + z
    b = a - x
    c = b * b + y
    return (c * z - a) * 0.5


def chain(m: Any, n: int) -> Work:
    """Of three vectors."""
    return partial(cheap, *(m.tensor(numbers(n)) for _ in range(3)))


def chain_jax(n: int) -> Work:
    """The same, jitted."""
    import jax
    import jax.numpy as jnp

    return jax_ready(jax.jit(cheap), *(jnp.asarray(numbers(n)) for _ in range(3)))


GATED = 4_000_000


def gated(m: Any) -> Work:
    """gelu(x) sigmoid(y) + x, its sum, and both gradients."""

    def loss(x: Any, y: Any) -> Any:
        return (m.nn.functional.gelu(x) * m.sigmoid(y) + x).sum()

    slope = small.transforms(m).grad(loss, argnums=(0, 1))
    return partial(slope, m.tensor(numbers(GATED)), m.tensor(numbers(GATED)))


def gated_jax() -> Work:
    """The same, jitted."""
    import jax
    import jax.numpy as jnp

    def loss(x: Any, y: Any) -> Any:
        return jnp.sum(jax.nn.gelu(x, approximate=False) * jax.nn.sigmoid(y) + x)

    slope = jax.jit(jax.grad(loss, argnums=(0, 1)))
    return jax_ready(slope, jnp.asarray(numbers(GATED)), jnp.asarray(numbers(GATED)))


def call(m: Any, reads_all: bool) -> Work:
    """Four arguments and four captured tensors of four numbers, and their sum; or a single addition, of the
    same tensors given and compared, in which there is next to nothing but what a call costs.
    """
    captured = [m.tensor(small.FOUR) for _ in range(4)]
    given = [m.tensor(small.FOUR) for _ in range(4)]

    def function(a: Any, b: Any, c: Any, d: Any) -> Any:
        p, q, r, s = captured
        return a + b + c + d + p + q + r + s if reads_all else a + p

    return partial(m.jit(function), *given)


def fastest(work: Work, times: int = 20) -> float:
    """Seconds of a call, at best."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def by_products(flops: float) -> str:
    """How long products with so many floating point operations take at the rate of a large one."""
    a, b = numbers(1024, 1024), numbers(1024, 1024)
    out = np.empty_like(a)
    rate = 2 * 1024**3 / fastest(partial(np.matmul, a, b, out=out))
    return (
        f"{flops / 1e6:.3g} MFLOP of products take {flops / rate * 1e6:.3g} us at the {rate / 1e9:.3g} GFLOP/s "
        "of NumPy's product of 1024 x 1024"
    )


def by_memory(read: float, written: float) -> str:
    """How long it takes to move so many bytes at the rate of a copy."""
    a = np.ones(1 << 25, np.float32)
    b = np.empty_like(a)
    rate = 2 * a.nbytes / fastest(partial(np.copyto, b, a))
    moved = read + written
    return (
        f"{moved / 1e6:.3g} MB read and written take {moved / rate * 1e6:.3g} us at the {rate / 1e9:.3g} GB/s "
        "of a copy"
    )


def lstm_limit(batch: int) -> str:
    """What the gradient of an LSTM's weights takes at least: per step two products forward, one back to the
    state and two to the weights.
    """
    products = by_products(5 * STEPS * 2 * batch * WIDTH * 4 * WIDTH)
    return f"{products}, and the gates take {5 * STEPS * batch * WIDTH} exponentials"


ROWS = [
    Row(
        "MLP 16-32-1 step, SGD",
        Target(ratio=4.5 / 25, of="jax"),
        beside(tiny_step, small.tiny_step_jax),
        limit="the products, the step of the optimiser, which Python takes, and what a call costs",
    ),
    Row(
        "Hessian, logistic 32",
        Target(ratio=6 / 20, of="jax"),
        beside(small.hessian, small.hessian_jax),
        limit="four products, and what a call costs",
    ),
    Row(
        "HVP, logistic 32",
        Target(ratio=3 / 15, of="jax"),
        beside(small.hvp, small.hvp_jax),
        limit="three products, and what a call costs",
    ),
    Row(
        "gradient of a scalar program, 1,250 operations",
        Target(ratio=12 / 9.9, of="jax"),
        beside(scalars, scalars_jax),
        limit="one loop for one element: the latency of its instructions",
    ),
    *(
        Row(
            f"gradient of an LSTM, T = 100, d = 32, batch {batch}",
            Target(ratio=ratio, of="jax"),
            beside(lambda m, batch=batch: lstm(m, batch), partial(lstm_jax, batch)),
            limit=partial(lstm_limit, batch),
        )
        for batch, ratio in ((1, 0.17 / 0.52), (16, 0.8 / 3.9))
    ),
    *(
        Row(
            f"chain of 8 cheap operations, n = {name}",
            Target(ratio=ratio, of="jax"),
            beside(lambda m, n=n: chain(m, n), partial(chain_jax, n)),
            limit="reading and writing memory",
        )
        for name, n, ratio in (("1e3", 1000, 1.0), ("1e5", 100_000, 20 / 36), ("1e6", 1_000_000, 260 / 272))
    ),
    Row(
        "gelu(x) sigmoid(y) + x, sum, backward, 4 M",
        Target(ratio=6 / 72, of="jax"),
        beside(gated, gated_jax),
        limit=lambda: f"{by_memory(8 * GATED, 8 * GATED)}, before any function is computed",
    ),
    Row(
        "a call with 4 arguments and 4 captures, beside its kernels",
        Target(us=0.8),
        {"wengert": partial(prepared, "wengert", partial(call, reads_all=False))},
        limit="what a function reads is compared at every call, place by place",
    ),
    Row(
        "such a call with the sum of all eight",
        Target(),
        {"wengert": partial(prepared, "wengert", partial(call, reads_all=True))},
    ),
]
