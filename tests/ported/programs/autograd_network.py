"""A network of tanh layers that fits a curve, by autograd's grad over NumPy's functions; and its
curvature."""

import autograd.numpy as np
import numpy as onp
from autograd import grad, value_and_grad


def predict(params, inputs):
    for W, b in params:
        outputs = inputs @ W + b
        inputs = np.tanh(outputs)
    return outputs


def loss(params, inputs, targets, noise_scale=0.3):
    """The negative log likelihood under a Gaussian, with a prior on the weights."""
    error = (predict(params, inputs) - targets) / noise_scale
    prior = sum(np.sum(W**2) + np.sum(b**2) for W, b in params)
    return np.sum(0.5 * error**2 + np.log(noise_scale) + 0.5 * np.log(2 * np.pi)) + 0.5 * prior


def curvature(params, x):
    """The second derivative of the curve, one point after another."""
    curve = lambda x: np.sum(predict(params, np.reshape(x, (1, 1))))
    return [float(grad(grad(curve))(each)) for each in x]


def main():
    rng = onp.random.default_rng(19)
    inputs = onp.concatenate([onp.linspace(0, 2, 10), onp.linspace(6, 8, 10)]).reshape(-1, 1)
    targets = np.cos(inputs) + 0.1 * rng.standard_normal((20, 1))
    inputs = (inputs - 4.0) / 4.0
    sizes = [1, 8, 8, 1]
    params = [
        (np.asarray(0.5 * rng.standard_normal((m, n))), np.asarray(0.5 * rng.standard_normal(n)))
        for m, n in zip(sizes[:-1], sizes[1:])  # noqa: RUF007
    ]
    velocity = [(np.zeros_like(W), np.zeros_like(b)) for W, b in params]
    losses, training = [], value_and_grad(loss)
    for _ in range(20):
        value, gradients = training(params, inputs, targets)
        losses.append(float(value))
        velocity = [
            (0.8 * vW - 1e-3 * gW, 0.8 * vb - 1e-3 * gb) for (vW, vb), (gW, gb) in zip(velocity, gradients)
        ]
        params = [(W + vW, b + vb) for (W, b), (vW, vb) in zip(params, velocity)]
    return losses + curvature(params, onp.linspace(-1, 1, 5))


if __name__ == "__main__":
    print(main())
