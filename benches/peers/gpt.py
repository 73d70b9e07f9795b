"""One training step of a small GPT: 4 layers of width 256, 4 sequences of 256 tokens, AdamW."""

from typing import Any

import numpy as np
from clock import Work
from libraries import jax_ready

LAYERS, HEADS, WIDTH, BATCH, TOKENS, VOCABULARY = 4, 8, 256, 4, 256, 256
RATE, DECAY = 3e-4, 0.1
TEXT = np.random.default_rng(0).integers(0, VOCABULARY, (BATCH, TOKENS + 1))


def model(m: Any) -> Any:
    """GPT-2's decoder, from the layers that torch and wengert share."""
    nn, f = m.nn, m.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            joined = self.qkv(self.before(x)).view(BATCH, TOKENS, 3, HEADS, WIDTH // HEADS)
            q, k, v = joined.permute(2, 0, 3, 1, 4).unbind(0)
            seen = f.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.project(seen.transpose(1, 2).reshape(BATCH, TOKENS, WIDTH))
            return x + self.down(f.gelu(self.up(self.between(x))))

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(TOKENS, WIDTH)
            self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

        def forward(self, tokens: Any) -> Any:
            x = self.tokens(tokens) + self.places.weight
            return self.head(self.norm(self.blocks(x)))

    return Decoder()


def step(m: Any) -> Work:
    """Forward, cross-entropy, backward, AdamW."""
    network = model(m)
    optimiser = m.optim.AdamW(network.parameters(), lr=RATE, weight_decay=DECAY)
    tokens, targets = m.tensor(TEXT[:, :-1].copy()), m.tensor(TEXT[:, 1:].reshape(-1))

    def work() -> None:
        optimiser.zero_grad()
        m.nn.functional.cross_entropy(network(tokens).reshape(-1, VOCABULARY), targets).backward()
        optimiser.step()

    return work


def weights() -> dict[str, Any]:
    """The same parameters as NumPy arrays, those of all layers stacked."""
    rng = np.random.default_rng(0)
    d = WIDTH
    shapes = {"qkv": (d, 3 * d), "project": (d, d), "up": (d, 4 * d), "down": (4 * d, d)}
    matrix = lambda *shape: rng.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
    made = {name: matrix(LAYERS, *shape) for name, shape in shapes.items()}
    made |= {f"{name}_bias": np.zeros((LAYERS, shape[1]), np.float32) for name, shape in shapes.items()}
    for name in ("before", "between"):
        made |= {
            name: np.ones((LAYERS, WIDTH), np.float32),
            f"{name}_bias": np.zeros((LAYERS, WIDTH), np.float32),
        }
    made |= {"norm": np.ones(WIDTH, np.float32), "norm_bias": np.zeros(WIDTH, np.float32)}
    made |= {
        "tokens": matrix(VOCABULARY, WIDTH),
        "places": matrix(TOKENS, WIDTH),
        "head": matrix(WIDTH, VOCABULARY),
    }
    return made


def loss_jax(p: Any) -> Any:
    """The same loss in array functions."""
    import jax
    import jax.numpy as jnp

    def norm(x: Any, scale: Any, shift: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * scale + shift

    x = p["tokens"][TEXT[:, :-1]] + p["places"]
    mask = jnp.tril(jnp.ones((TOKENS, TOKENS), bool))
    for i in range(LAYERS):
        joined = norm(x, p["before"][i], p["before_bias"][i]) @ p["qkv"][i] + p["qkv_bias"][i]
        q, k, v = joined.reshape(BATCH, TOKENS, 3, HEADS, WIDTH // HEADS).transpose(2, 0, 3, 1, 4)
        scores = jnp.where(mask, q @ k.swapaxes(-1, -2) / np.float32(np.sqrt(WIDTH // HEADS)), -jnp.inf)
        seen = (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(BATCH, TOKENS, WIDTH)
        x = x + seen @ p["project"][i] + p["project_bias"][i]
        inner = norm(x, p["between"][i], p["between_bias"][i]) @ p["up"][i] + p["up_bias"][i]
        x = x + jax.nn.gelu(inner, approximate=False) @ p["down"][i] + p["down_bias"][i]
    logits = norm(x, p["norm"], p["norm_bias"]) @ p["head"]
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), jnp.asarray(TEXT[:, 1:, None]), -1)
    return -chosen.mean()


def step_jax() -> Work:
    """The same step, jitted, with AdamW written out."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def update(p: Any, first: Any, second: Any) -> Any:
        slopes = jax.grad(loss_jax)(p)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slopes)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, slopes)
        moved = jax.tree.map(
            lambda p, m, v: p * (1 - RATE * DECAY) - RATE * (m / 0.1) / (jnp.sqrt(v / 0.001) + 1e-8),
            p,
            first,
            second,
        )
        return moved, first, second

    start = jax.tree.map(jnp.asarray, weights())
    zeros = jax.tree.map(jnp.zeros_like, start)
    return jax_ready(update, start, zeros, zeros)
