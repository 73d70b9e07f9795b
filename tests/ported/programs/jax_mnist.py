"""A classifier of digits from scratch in JAX: log-softmax, grad, jit, and plain steps downhill."""

import jax
import jax.numpy as jnp
import numpy.random as npr
from jax import grad, jit
from jax.scipy.special import logsumexp


def init_random_params(scale, layer_sizes, rng):
    return [
        (scale * rng.standard_normal((m, n)), scale * rng.standard_normal(n))
        for m, n in zip(layer_sizes[:-1], layer_sizes[1:])  # noqa: RUF007
    ]


def predict(params, inputs):
    activations = inputs
    for w, b in params[:-1]:
        outputs = jnp.dot(activations, w) + b
        activations = jnp.tanh(outputs)

    final_w, final_b = params[-1]
    logits = jnp.dot(activations, final_w) + final_b
    return logits - logsumexp(logits, axis=1, keepdims=True)


def loss(params, batch):
    inputs, targets = batch
    preds = predict(params, inputs)
    return -jnp.mean(jnp.sum(preds * targets, axis=1))


def accuracy(params, batch):
    inputs, targets = batch
    target_class = jnp.argmax(targets, axis=1)
    predicted_class = jnp.argmax(predict(params, inputs), axis=1)
    return jnp.mean(predicted_class == target_class)


def digits(rng, shapes, count):
    labels = rng.integers(0, 10, count)
    images = shapes[labels] + 0.4 * rng.standard_normal((count, 64))
    return images, jnp.array(labels[:, None] == jnp.arange(10), jnp.float64)


def main():
    rng = npr.default_rng(20)
    shapes = jnp.asarray(rng.random((10, 64)) > 0.5).astype(jnp.float64)
    train_images, train_labels = digits(rng, shapes, 128)
    test_images, test_labels = digits(rng, shapes, 50)
    num_batches, batch_size, step_size = 4, 32, 0.1

    def data_stream():
        while True:
            perm = rng.permutation(128)
            for i in range(num_batches):
                batch_idx = perm[i * batch_size : (i + 1) * batch_size]
                yield train_images[batch_idx], train_labels[batch_idx]

    @jit
    def update(params, batch):
        grads = grad(loss)(params, batch)
        return jax.tree.map(lambda p, g: p - step_size * g, params, grads)

    batches = data_stream()
    params = init_random_params(0.1, [64, 24, 10], rng)
    losses = []
    for _ in range(4):
        for _ in range(num_batches):
            batch = next(batches)
            losses.append(float(loss(params, batch)))
            params = update(params, batch)
        losses.append(float(accuracy(params, (train_images, train_labels))))
        losses.append(float(accuracy(params, (test_images, test_labels))))
    return losses


if __name__ == "__main__":
    print(main())
