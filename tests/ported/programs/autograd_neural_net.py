"""A multilayer perceptron in autograd's manner: NumPy's functions, a gradient of nested parameters, Adam by
hand."""

import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import grad
from autograd.scipy.special import logsumexp


def init_random_params(scale, layer_sizes, rs):
    """A list of (weights, biases), one for each layer."""
    return [
        (scale * rs.randn(m, n), scale * rs.randn(n))  # weight matrix, bias vector
        for m, n in zip(layer_sizes[:-1], layer_sizes[1:])  # noqa: RUF007
    ]


def neural_net_predict(params, inputs):
    """Returns normalized class log-probabilities."""
    for W, b in params:
        outputs = np.dot(inputs, W) + b
        inputs = np.tanh(outputs)
    return outputs - logsumexp(outputs, axis=1, keepdims=True)


def l2_norm(params):
    return sum(np.sum(W * W) + np.dot(b, b) for W, b in params)


def log_posterior(params, inputs, targets, L2_reg):
    log_prior = -L2_reg * l2_norm(params)
    log_lik = np.sum(neural_net_predict(params, inputs) * targets)
    return log_prior + log_lik


def accuracy(params, inputs, targets):
    target_class = np.argmax(targets, axis=1)
    predicted_class = np.argmax(neural_net_predict(params, inputs), axis=1)
    return np.mean(predicted_class == target_class)


def adam(gradient, params, num_iters, step_size, b1=0.9, b2=0.999, eps=1e-8):
    m = [tuple(np.zeros_like(p) for p in layer) for layer in params]
    v = [tuple(np.zeros_like(p) for p in layer) for layer in params]
    for i in range(num_iters):
        g = gradient(params, i)
        new_params, new_m, new_v = [], [], []
        for layer in zip(params, m, v, g):
            triples = []
            for p, m_, v_, g_ in zip(*layer):
                m_ = (1 - b1) * g_ + b1 * m_
                v_ = (1 - b2) * (g_**2) + b2 * v_
                mhat = m_ / (1 - b1 ** (i + 1))
                vhat = v_ / (1 - b2 ** (i + 1))
                triples.append((p - step_size * mhat / (np.sqrt(vhat) + eps), m_, v_))
            for kept, values in zip((new_params, new_m, new_v), zip(*triples)):
                kept.append(values)
        params, m, v = new_params, new_m, new_v
    return params


def main():
    rs = npr.RandomState(19)
    shapes, labels = rs.randn(3, 12), rs.randint(0, 3, 60)
    images = np.array(shapes[labels] + rs.randn(60, 12))
    one_hot = np.array(labels[:, None] == np.arange(3)[None, :], dtype=float)
    num_batches, losses = 3, []

    def objective(params, iter):
        idx = slice((iter % num_batches) * 20, (iter % num_batches + 1) * 20)
        return -log_posterior(params, images[idx], one_hot[idx], 1e-2)

    objective_grad = grad(objective)
    params = init_random_params(0.3, [12, 8, 3], rs)
    for _ in range(4):
        losses += [float(objective(params, batch)) for batch in range(num_batches)]
        losses.append(float(accuracy(params, images, one_hot)))
        params = adam(objective_grad, params, num_iters=5, step_size=0.03)
    return losses


if __name__ == "__main__":
    print(main())
