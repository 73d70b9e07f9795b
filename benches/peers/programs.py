"""Whole programs as people write them for PyTorch, one thread: long loops, many backward passes, short
axes."""

from typing import Any

import numpy as np
from clock import Row, Target, Work
from libraries import torchlike

RNG = np.random.default_rng(0)

# A language model of characters: two layers whose gates have one weight per element, written out step by
# step.
STEPS, LETTERS = 1024, 14
GATES = RNG.normal(size=(2, 4, 2, LETTERS)) * 0.5
OUTER = RNG.normal(size=(3, LETTERS)) * 0.5
TEXT = np.eye(LETTERS)[RNG.integers(0, LETTERS, STEPS)]

# A hand: a chain of bones that carries a skin, and the distances of its points to measured ones.
BONES, VERTICES, MEASURED = 22, 544, 100
AXES = RNG.normal(size=(BONES, 3)) * 0.3
OFFSETS = RNG.normal(size=(BONES, 3))
SKIN = np.concatenate([RNG.normal(size=(VERTICES, 3)), np.ones((VERTICES, 1))], 1)
WEIGHTS = RNG.dirichlet(np.ones(BONES) * 0.1, VERTICES)
NEAREST = RNG.integers(0, VERTICES, MEASURED)
POINTS = RNG.normal(size=(MEASURED, 3))

# Cameras that see points: one projection per observation.
CAMERAS, SPOTS, SEEN = 49, 7_776, 31_843
CAMERA = RNG.normal(size=(CAMERAS, 11)) * 0.1
SPOT = RNG.normal(size=(SPOTS, 3)) + np.array([0.0, 0.0, 5.0])
WHICH_CAMERA, WHICH_SPOT = RNG.integers(0, CAMERAS, SEEN), RNG.integers(0, SPOTS, SEEN)
TRUST, FEATURE = RNG.uniform(0.5, 1.5, SEEN), RNG.normal(size=(SEEN, 2))

# An encoder of sentences: layers of attention over short sequences, averaged over the words.
LAYERS, WIDTH, HEADS, SENTENCES, WORDS = 6, 384, 12, 8, 64
EMBEDDED = RNG.normal(size=(SENTENCES, WORDS, WIDTH)).astype(np.float32)


def language_model(m: Any) -> Work:
    """The gradient of the negative log-likelihood of a text in the weights of all gates."""
    gates, outer = m.tensor(GATES, requires_grad=True), m.tensor(OUTER, requires_grad=True)
    text = m.tensor(TEXT)

    def cell(layer: Any, x: Any, h: Any, c: Any) -> tuple[Any, Any]:
        forget = m.sigmoid(x * layer[0, 0] + layer[0, 1])
        admit = m.sigmoid(h * layer[1, 0] + layer[1, 1])
        show = m.sigmoid(x * layer[2, 0] + layer[2, 1])
        c = c * forget + admit * m.tanh(h * layer[3, 0] + layer[3, 1])
        return show * m.tanh(c), c

    def work() -> None:
        states = [(m.zeros(LETTERS, dtype=m.float64), m.zeros(LETTERS, dtype=m.float64)) for _ in range(2)]
        total = 0.0
        for t in range(STEPS - 1):
            x = text[t] * outer[0]
            for i in range(2):
                states[i] = cell(gates[i], x, *states[i])
                x = states[i][0]
            guess = x * outer[1] + outer[2]
            total = total + m.dot(text[t + 1], guess - m.log(m.sum(m.exp(guess)) + 2.0))
        (-total / (STEPS - 1)).backward()
        gates.grad = outer.grad = None

    return work


def hand(m: Any) -> Work:
    """The Jacobian of all distances in the angles of the bones, one backward pass per row."""
    axes, offsets = m.tensor(AXES, requires_grad=True), m.tensor(OFFSETS)
    skin, weights, points = m.tensor(SKIN), m.tensor(WEIGHTS), m.tensor(POINTS)
    nearest = m.tensor(NEAREST)
    last_row = m.tensor(np.array([[0.0, 0.0, 0.0, 1.0]]))

    def turned(axis: Any) -> Any:
        """The rotation about an axis by its length (Rodrigues)."""
        angle = m.sqrt(m.sum(axis * axis))
        x, y, z = axis / angle
        zero = m.zeros_like(x)
        cross = m.stack([m.stack([zero, -z, y]), m.stack([z, zero, -x]), m.stack([-y, x, zero])])
        return m.eye(3, dtype=m.float64) + m.sin(angle) * cross + (1 - m.cos(angle)) * (cross @ cross)

    def distances() -> Any:
        placed = []
        for i in range(BONES):
            own = m.cat([m.cat([turned(axes[i]), offsets[i].reshape(3, 1)], 1), last_row], 0)
            placed.append(own if i % 5 == 0 else placed[-1] @ own)
        carried = m.stack(placed) @ skin.T
        moved = (carried * weights.T.unsqueeze(1)).sum(0)[:3].T
        return (points - moved[nearest]).reshape(-1)

    def work() -> None:
        out = distances()
        rows = []
        for i in range(out.shape[0]):
            out[i].backward(retain_graph=True)
            rows.append(axes.grad)
            axes.grad = None

    return work


def bundle(m: Any) -> Work:
    """The rows of the Jacobian of all projections and weights: two backward passes over all observations."""
    camera, spot = m.tensor(CAMERA), m.tensor(SPOT)
    which, of = m.tensor(WHICH_CAMERA), m.tensor(WHICH_SPOT)
    trust, feature = m.tensor(TRUST), m.tensor(FEATURE)

    def turned(axis: Any, x: Any) -> Any:
        """`x` turned about axes by their lengths (Rodrigues)."""
        angle = m.sqrt((axis * axis).sum(1, keepdim=True) + 1e-12)
        unit = axis / angle
        along = (unit * x).sum(1, keepdim=True)
        return x * m.cos(angle) + m.linalg.cross(unit, x) * m.sin(angle) + unit * along * (1 - m.cos(angle))

    def projected(cam: Any, x: Any) -> Any:
        seen = turned(cam[:, :3], x - cam[:, 3:6])
        plane = seen[:, :2] / seen[:, 2:]
        squared = (plane * plane).sum(1, keepdim=True)
        bent = plane * (1.0 + cam[:, 9:10] * squared + cam[:, 10:11] * squared * squared)
        return bent * cam[:, 6:7] + cam[:, 7:9]

    def work() -> None:
        cam, x, w = (t.detach().requires_grad_(True) for t in (camera[which], spot[of], trust))
        error = w.unsqueeze(1) * (projected(cam, x) - feature)
        rows = []
        for i in range(2):
            error[:, i].sum().backward(retain_graph=True)
            rows.append((cam.grad, x.grad, w.grad))
            cam.grad = x.grad = w.grad = None
        (1 - w * w).sum().backward()

    return work


def sentences(m: Any) -> Work:
    """A forward and a backward pass of an encoder whose sentence vectors are averages over words."""
    nn, f = m.nn, m.nn.functional
    m.manual_seed(0)

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
            self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

        def forward(self, x: Any) -> Any:
            shape = (SENTENCES, WORDS, HEADS, WIDTH // HEADS)
            q, k, v = (part.reshape(shape).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
            seen = f.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(SENTENCES, WORDS, WIDTH)
            x = self.first(x + self.project(seen))
            return self.second(x + self.down(f.gelu(self.up(x))))

    encoder = nn.Sequential(*(Layer() for _ in range(LAYERS)))
    x = m.tensor(EMBEDDED)

    def work() -> None:
        y = f.normalize(encoder(x).mean(1), dim=-1)
        (y @ y.T).sum().backward()
        for p in encoder.parameters():
            p.grad = None

    return work


ROWS = [
    Row(
        "LSTM language model, 1,024 steps",
        Target(ratio=1 / 8, of="torch"),
        torchlike(language_model),
        limit="65 operations a step on 14 numbers each, 67,000 in all: the call from Python, a value and a "
        "node of the tape are what an operation costs, and no function has more than 5 % of the time.",
    ),
    Row("hand: 300 backward passes", Target(ratio=1 / 8, of="torch"), torchlike(hand)),
    Row(
        "bundle adjustment, 31,843 observations",
        Target(ratio=1 / 8, of="torch"),
        torchlike(bundle),
        limit="44 operations forward and two walks back, some 190 kernels over 0.1 to 0.35 M float64 each: "
        "they take two to three times as long as copies of these arrays, and no function has more than 7 % "
        "of the time. Fewer passes over memory, hence operations fused by staging, are what is left.",
    ),
    Row(
        "sentence encoder, 6 layers, and its gradient",
        Target(ratio=1 / 2, of="torch"),
        torchlike(sentences),
        limit="33 GFLOP of matrix products, which both libraries compute near the peak of the core: they have "
        "four fifths of wengert's time, and alone take longer than half of torch's.",
    ),
]
