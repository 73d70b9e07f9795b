"""Eager and small work, one thread: what a call costs before any arithmetic does."""

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from clock import Row, Target, Work
from libraries import jax_ready, pair, torchlike

RNG = np.random.default_rng(0)
CHAIN = 1000
SCALAR_STEPS = 100


def numbers(*shape: int) -> Any:
    """Standard normal float32 numbers."""
    return RNG.standard_normal(shape).astype(np.float32)


FOUR, OTHER_FOUR = numbers(4), numbers(4)
NEAR_ONE = np.full(4, 0.999, np.float32)
TINY = [numbers(16, 32) * 0.2, np.zeros(32, np.float32), numbers(32, 1) * 0.2, np.zeros(1, np.float32)]
TINY_X, TINY_Y = numbers(32, 16), numbers(32, 1)
MLP = [numbers(784, 256) * 0.03, np.zeros(256, np.float32), numbers(256, 10) * 0.05, np.zeros(10, np.float32)]
MLP_X, MLP_Y = numbers(64, 784), RNG.integers(0, 10, 64)
LOGISTIC_X, LOGISTIC_Y = numbers(64, 32), (RNG.random(64) < 0.5).astype(np.float32)
WEIGHTS, DIRECTION = numbers(32) * 0.1, numbers(32)
DEEP = [numbers(32, 64) * 0.2, numbers(64, 16) * 0.2]
DEEP_X = numbers(32)


def add(m: Any, requires_grad: bool) -> Work:
    """`a + b` on four floats."""
    a = m.tensor(FOUR, requires_grad=requires_grad)
    b = m.tensor(OTHER_FOUR)
    return lambda: a + b


def chain(m: Any) -> Work:
    """A thousand multiplications and additions, then back."""
    x, c = m.tensor(FOUR, requires_grad=True), m.tensor(NEAR_ONE)

    def work() -> None:
        y = x
        for _ in range(CHAIN // 2):
            y = y * c
            y = y + c
        y.sum().backward()
        x.grad = None

    return work


def chain_autograd() -> Work:
    """The same in HIPS autograd."""
    import autograd
    import autograd.numpy as anp

    def run(x: Any) -> Any:
        y = x
        for _ in range(CHAIN // 2):
            y = y * NEAR_ONE
            y = y + NEAR_ONE
        return anp.sum(y)

    return partial(autograd.grad(run), FOUR)


def scalar_steps(w: Any, b: Any, x: Any) -> Any:
    """A recurrence on plain numbers: 2 operations a step."""
    for _ in range(SCALAR_STEPS):
        x = x * w + b
    return x


def scalars(m: Any) -> Work:
    """The scalar graph on tensors without axes."""
    w, b, x = (m.tensor(value, requires_grad=True) for value in (0.9, 0.1, 1.0))

    def work() -> None:
        scalar_steps(w, b, x).backward()
        w.grad = b.grad = x.grad = None

    return work


def scalars_micrograd() -> Work:
    """The same in micrograd."""
    from micrograd.engine import Value

    def work() -> None:
        scalar_steps(Value(0.9), Value(0.1), Value(1.0)).backward()

    return work


def scalars_autograd() -> Work:
    """The same in HIPS autograd."""
    import autograd

    return partial(autograd.grad(scalar_steps, (0, 1, 2)), 0.9, 0.1, 1.0)


def network(m: Any, sizes: list[int]) -> Any:
    """Linear layers with ReLU between them."""
    layers: list[Any] = []
    for fan_in, fan_out in pairwise(sizes):
        layers += [m.nn.Linear(fan_in, fan_out), m.nn.ReLU()]
    return m.nn.Sequential(*layers[:-1])


def tiny_step(m: Any) -> Work:
    """Forward, backward and SGD for 16-32-1."""
    model = network(m, [16, 32, 1])
    optimiser = m.optim.SGD(model.parameters(), lr=0.01)
    x, y = m.tensor(TINY_X), m.tensor(TINY_Y)

    def work() -> None:
        optimiser.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        optimiser.step()

    return work


def tiny_loss(np_: Any, parameters: list[Any]) -> Any:
    """The same loss, for the functional libraries."""
    w1, b1, w2, b2 = parameters
    hidden = np_.maximum(TINY_X @ w1 + b1, 0.0)
    return np_.mean((hidden @ w2 + b2 - TINY_Y) ** 2)


def tiny_step_jax() -> Work:
    """The same step, jitted."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def step(parameters: Any) -> Any:
        slopes = jax.grad(partial(tiny_loss, jnp))(parameters)
        return [p - 0.01 * g for p, g in zip(parameters, slopes, strict=True)]

    return jax_ready(step, [jnp.asarray(p) for p in TINY])


def tiny_step_autograd() -> Work:
    """The same step in HIPS autograd."""
    import autograd
    import autograd.numpy as anp

    slope = autograd.grad(partial(tiny_loss, anp))
    return lambda: [p - 0.01 * g for p, g in zip(TINY, slope(TINY), strict=True)]


def mlp_step(m: Any) -> Work:
    """Forward, cross-entropy, backward and Adam for 784-256-10."""
    model = network(m, [784, 256, 10])
    optimiser = m.optim.Adam(model.parameters(), lr=1e-3)
    x, y = m.tensor(MLP_X), m.tensor(MLP_Y)

    def work() -> None:
        optimiser.zero_grad()
        m.nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()

    return work


def mlp_step_jax() -> Work:
    """The same step, jitted, with Adam written out."""
    import jax
    import jax.numpy as jnp

    def loss(parameters: Any) -> Any:
        w1, b1, w2, b2 = parameters
        logits = jnp.maximum(MLP_X @ w1 + b1, 0.0) @ w2 + b2
        return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(64), MLP_Y])

    @jax.jit
    def step(parameters: Any, first: Any, second: Any) -> Any:
        slopes = jax.grad(loss)(parameters)
        first = [0.9 * m + 0.1 * g for m, g in zip(first, slopes, strict=True)]
        second = [0.999 * v + 0.001 * g * g for v, g in zip(second, slopes, strict=True)]
        moved = [
            p - 1e-3 * (m / 0.1) / (jnp.sqrt(v / 0.001) + 1e-8)
            for p, m, v in zip(parameters, first, second, strict=True)
        ]
        return moved, first, second

    start = [jnp.asarray(p) for p in MLP]
    zeros = [jnp.zeros_like(p) for p in start]
    return jax_ready(step, start, zeros, zeros)


def logistic(m: Any) -> tuple[Any, Any, Any]:
    """Logistic regression's loss and its arguments, for torch and wengert."""
    x, y = m.tensor(LOGISTIC_X), m.tensor(LOGISTIC_Y)
    softplus = m.nn.functional.softplus

    def loss(w: Any) -> Any:
        z = x @ w
        return (softplus(z) - y * z).mean()

    return loss, m.tensor(WEIGHTS), m.tensor(DIRECTION)


def logistic_jax() -> tuple[Any, Any, Any]:
    """The same for JAX."""
    import jax
    import jax.numpy as jnp

    def loss(w: Any) -> Any:
        z = LOGISTIC_X @ w
        return jnp.mean(jax.nn.softplus(z) - LOGISTIC_Y * z)

    return loss, jnp.asarray(WEIGHTS), jnp.asarray(DIRECTION)


def transforms(m: Any) -> Any:
    """Where a library keeps `grad`, `vmap` and `jvp`."""
    return getattr(m, "func", m)


def hvp(m: Any) -> Work:
    """Hessian times vector, forward over reverse."""
    f = transforms(m)
    loss, w, v = logistic(m)
    slope = f.grad(loss)
    return lambda: f.jvp(slope, (w,), (v,))[1]


def hvp_jax() -> Work:
    """The same, jitted."""
    import jax

    loss, w, v = logistic_jax()
    return jax_ready(jax.jit(lambda w, v: jax.jvp(jax.grad(loss), (w,), (v,))[1]), w, v)


def hessian(m: Any) -> Work:
    """The whole Hessian."""
    loss, w, _ = logistic(m)
    return partial(transforms(m).hessian(loss), w)


def hessian_jax() -> Work:
    """The same, jitted."""
    import jax

    loss, w, _ = logistic_jax()
    return jax_ready(jax.jit(jax.hessian(loss)), w)


def per_sample(m: Any) -> Work:
    """The gradient of each of 64 samples."""
    f = transforms(m)
    softplus = m.nn.functional.softplus
    x, y, w = m.tensor(LOGISTIC_X), m.tensor(LOGISTIC_Y), m.tensor(WEIGHTS)

    def loss(w: Any, x: Any, y: Any) -> Any:
        z = (x * w).sum()
        return softplus(z) - y * z

    mapped = f.vmap(f.grad(loss), in_dims=(None, 0, 0))
    return lambda: mapped(w, x, y)


def per_sample_jax() -> Work:
    """The same, jitted."""
    import jax
    import jax.numpy as jnp

    def loss(w: Any, x: Any, y: Any) -> Any:
        z = jnp.sum(x * w)
        return jax.nn.softplus(z) - y * z

    mapped = jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)))
    return jax_ready(mapped, *(jnp.asarray(a) for a in (WEIGHTS, LOGISTIC_X, LOGISTIC_Y)))


def jacobian(m: Any) -> Work:
    """The Jacobian of a 32-64-16 network."""
    w1, w2, x = m.tensor(DEEP[0]), m.tensor(DEEP[1]), m.tensor(DEEP_X)
    return partial(transforms(m).jacrev(lambda x: m.tanh(x @ w1) @ w2), x)


def jacobian_jax() -> Work:
    """The same, jitted."""
    import jax
    import jax.numpy as jnp

    return jax_ready(jax.jit(jax.jacrev(lambda x: jnp.tanh(x @ DEEP[0]) @ DEEP[1])), jnp.asarray(DEEP_X))


def add_jax() -> Work:
    """`a + b` on four floats, jitted."""
    import jax
    import jax.numpy as jnp

    return jax_ready(jax.jit(lambda a, b: a + b), jnp.asarray(FOUR), jnp.asarray(OTHER_FOUR))


ROWS = [
    Row(
        "`a + b`, f32[4]",
        Target(us=0.2),
        {
            **torchlike(add, False),
            "numpy": lambda: lambda: FOUR + OTHER_FOUR,
            "jax jit": add_jax,
        },
    ),
    Row("`a + b`, f32[4], recorded", Target(us=0.3), torchlike(add, True)),
    Row(
        "1000-op chain, forward + backward, per op",
        Target(us=0.5),
        {
            **torchlike(chain),
            "autograd": chain_autograd,
        },
        CHAIN,
    ),
    Row(
        "scalar graph, forward + backward, per op",
        Target(us=0.5),
        {
            **torchlike(scalars),
            "micrograd": scalars_micrograd,
            "autograd": scalars_autograd,
        },
        2 * SCALAR_STEPS,
        limit="an operation makes a Python object, a value and an entry of the tape, and two gradients; no function "
        "has more than 5 % of the time",
    ),
    Row(
        "MLP step 16-32-1, batch 32, SGD",
        Target(us=20),
        {
            **torchlike(tiny_step),
            "jax jit": tiny_step_jax,
            "autograd": tiny_step_autograd,
        },
    ),
    Row("MLP step 784-256-10, batch 64, Adam", Target(us=450), pair(mlp_step, mlp_step_jax)),
    Row("HVP, logistic regression, 32 parameters", Target(us=25), pair(hvp, hvp_jax)),
    Row("Hessian, the same", Target(us=50), pair(hessian, hessian_jax)),
    Row("per-sample gradients, 64 samples", Target(us=20), pair(per_sample, per_sample_jax)),
    Row("jacrev of a 32-64-16 MLP", Target(us=25), pair(jacobian, jacobian_jax)),
]
