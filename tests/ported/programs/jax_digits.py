"""Digits in JAX's functional manner: vmap of a predictor of one image, value_and_grad, Jacobians and
Hessians."""

import jax
import jax.numpy as jnp
import numpy as np


def predict(params, image):
    """The log probabilities of one image, which is a vector."""
    activations = image
    for w, b in params[:-1]:
        activations = jnp.maximum(w @ activations + b, 0)
    final_w, final_b = params[-1]
    logits = final_w @ activations + final_b
    return logits - jnp.log(jnp.sum(jnp.exp(logits - jnp.max(logits)))) - jnp.max(logits)


batched_predict = jax.vmap(predict, in_axes=(None, 0))


def loss(params, images, targets):
    return -jnp.mean(jnp.sum(batched_predict(params, images) * targets, axis=1))


def accuracy(params, images, targets):
    right = jnp.argmax(batched_predict(params, images), axis=1) == jnp.argmax(targets, axis=1)
    return jnp.count_nonzero(right) / len(images)


def update(params, moments, x, y, step_size=0.05, momentum=0.8):
    value, grads = jax.value_and_grad(loss)(params, x, y)
    moments = [(momentum * mw + gw, momentum * mb + gb) for (mw, mb), (gw, gb) in zip(moments, grads)]
    params = [(w - step_size * mw, b - step_size * mb) for (w, b), (mw, mb) in zip(params, moments)]
    return value, params, moments


def main():
    rng = np.random.default_rng(21)
    shapes = (rng.random((10, 64)) > 0.5).astype(np.float64)
    labels = rng.integers(0, 10, 128)
    images = jnp.asarray(shapes[labels] + 0.4 * rng.standard_normal((128, 64)))
    targets = jnp.asarray((labels[:, None] == np.arange(10)).astype(np.float64))
    sizes = [64, 24, 10]
    params = [
        (jnp.asarray(rng.standard_normal((n, m)) / np.sqrt(m)), jnp.zeros(n, dtype=jnp.float64))
        for m, n in zip(sizes[:-1], sizes[1:])  # noqa: RUF007
    ]
    moments = [(jnp.zeros_like(w), jnp.zeros_like(b)) for w, b in params]
    losses = []
    for _ in range(3):
        for i in range(0, 128, 32):
            value, params, moments = update(params, moments, images[i : i + 32], targets[i : i + 32])
            losses.append(float(value))
        losses.append(float(accuracy(params, images, targets)))
    per_example = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(params, images[:6, None], targets[:6, None])
    losses += [float(jnp.sum(leaf**2)) for leaf in sum(per_example, ())]
    jacobian = jax.jacrev(predict, argnums=1)(params, images[0])
    _, tangent = jax.jvp(lambda x: predict(params, x), (images[0],), (jnp.ones_like(images[0]),))
    losses += tangent.tolist()
    hessian = jax.hessian(lambda b: loss([params[0], (params[1][0], b)], images, targets))(params[1][1])
    return [*losses, float(jnp.linalg.trace(hessian)), *jnp.sum(jnp.abs(jacobian), axis=1).tolist()]


if __name__ == "__main__":
    print(main())
