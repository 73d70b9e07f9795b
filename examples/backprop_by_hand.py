"""Backpropagation by hand, and by every way this library has: a network small enough to follow with a pencil.

Two inputs, two hidden ReLU units, one sigmoid output, binary cross-entropy with target 1:

    z1 = 0.3 * 1 + 0.7 * 0.5 + 0.1 = 0.75      h1 = 0.75
    z2 = -0.2 * 1 + 0.5 * 0.5 + 0  = 0.05      h2 = 0.05
    s  = 0.6 h1 - 0.4 h2 + 0.1     = 0.53      p  = sigmoid(0.53) = 0.6295
    loss = -log(p) = 0.4629

Backward, the chain rule gives d loss / d s = p - 1 = -0.3705; times (h1, h2, 1) for the output layer, and
times the output weights, the ReLU slopes (both 1) and (1, 0.5, 1) for the hidden one.

Run it: python examples/backprop_by_hand.py [--device gpu]
"""

import argparse
import math

import wengert as wg
from wengert.nn import functional as F

INPUTS = [1.0, 0.5]
TARGET = [1.0]
PARAMETERS = {
    "hidden.weight": [[0.3, 0.7], [-0.2, 0.5]],
    "hidden.bias": [0.1, 0.0],
    "output.weight": [[0.6, -0.4]],
    "output.bias": [0.1],
}


def by_hand() -> tuple[float, dict[str, list]]:
    """The loss and its nine derivatives, in plain arithmetic."""
    (x1, x2), ((a, b), (c, d)), (b1, b2) = INPUTS, PARAMETERS["hidden.weight"], PARAMETERS["hidden.bias"]
    ((u, v),), (b3,) = PARAMETERS["output.weight"], PARAMETERS["output.bias"]
    h1, h2 = max(a * x1 + b * x2 + b1, 0.0), max(c * x1 + d * x2 + b2, 0.0)
    p = 1.0 / (1.0 + math.exp(-(u * h1 + v * h2 + b3)))
    ds = p - 1.0
    dz1, dz2 = ds * u * (h1 > 0), ds * v * (h2 > 0)
    gradients = {
        "hidden.weight": [[dz1 * x1, dz1 * x2], [dz2 * x1, dz2 * x2]],
        "hidden.bias": [dz1, dz2],
        "output.weight": [[ds * h1, ds * h2]],
        "output.bias": [ds],
    }
    return -math.log(p), gradients


def tensors(device: str = "cpu", dtype: wg.dtype = wg.float32) -> dict[str, wg.Tensor]:
    """The parameters as tensors."""
    return {name: wg.tensor(values, dtype=dtype).to(device) for name, values in PARAMETERS.items()}


def loss(parameters: dict[str, wg.Tensor]) -> wg.Tensor:
    """The network, as a function of its parameters."""
    like = parameters["hidden.weight"]
    x = wg.tensor(INPUTS, dtype=like.dtype).to(like.device)
    target = wg.tensor(TARGET, dtype=like.dtype).to(like.device)
    hidden = F.relu(F.linear(x, parameters["hidden.weight"], parameters["hidden.bias"]))
    logit = F.linear(hidden, parameters["output.weight"], parameters["output.bias"])
    return F.binary_cross_entropy_with_logits(logit, target)


def eager(device: str = "cpu") -> dict[str, list]:
    """Reverse mode as in PyTorch: record, then walk back."""
    parameters = {name: value.requires_grad_() for name, value in tensors(device).items()}
    loss(parameters).backward()
    return {name: value.grad.tolist() for name, value in parameters.items()}


def reverse(device: str = "cpu") -> dict[str, list]:
    """Reverse mode as in JAX: the gradient is a function."""
    return {name: g.tolist() for name, g in wg.grad(loss)(tensors(device)).items()}


def forward(device: str = "cpu") -> dict[str, list]:
    """Forward mode: one Jacobian-vector product per basis direction."""
    return {name: g.tolist() for name, g in wg.jacfwd(loss)(tensors(device)).items()}


def differences(step: float = 1e-6) -> dict[str, list]:
    """Central differences in float64: no rule of calculus at all."""
    found = {}
    for name, values in tensors(dtype=wg.float64).items():
        flat = values.reshape(-1)
        slopes = []
        for i in range(flat.numel()):
            both = []
            for sign in (1.0, -1.0):
                moved = flat.clone()
                moved[i] = moved[i] + sign * step
                both.append(
                    loss({**tensors(dtype=wg.float64), name: moved.reshape(tuple(values.shape))}).item()
                )
            slopes.append((both[0] - both[1]) / (2.0 * step))
        found[name] = wg.tensor(slopes, dtype=wg.float64).reshape(tuple(values.shape)).tolist()
    return found


def flat(values: list) -> list[float]:
    """Nested lists as one list."""
    return [x for row in values for x in (flat(row) if isinstance(row, list) else [row])]


def main() -> None:
    """Prints all the gradients side by side."""
    parser = argparse.ArgumentParser(description="Backpropagation by hand and by machine.")
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    value, hand = by_hand()
    print(f"loss by hand {value:.4f}, by wengert {loss(tensors(device)).item():.4f} ({device})\n")
    ways = {"hand": hand, "eager": eager(device), "reverse": reverse(device), "forward": forward(device)}
    ways["differences"] = differences()
    print(f"{'':16}" + "".join(f"{name:>13}" for name in ways))
    for name in PARAMETERS:
        for i, row in enumerate(zip(*[flat(gradients[name]) for gradients in ways.values()])):
            print(f"{name + f' [{i}]':16}" + "".join(f"{g:>13.4f}" for g in row))


if __name__ == "__main__":
    main()
