"""Losses as programs for autograd write them: functions of parameters, made by a function of the library.

Each takes `ag`, which has the library's `np`, `npr`, `scipy` and `tuple`, and returns a loss and where to
take its gradient.
"""

from typing import Any


def gaussian_mixture(ag: Any) -> Any:
    np, npr = ag.np, ag.npr
    rs = npr.RandomState(0)
    data = np.concatenate([rs.randn(6, 2) - 2, 0.5 * rs.randn(6, 2) + 1])

    def log_likelihood(params):
        logps, means, chols = params
        logps = logps - ag.scipy.special.logsumexp(logps)
        covs = [np.dot(np.tril(L), np.tril(L).T) + np.eye(2, dtype=float) for L in chols]
        lls = [
            lp + ag.scipy.stats.multivariate_normal.logpdf(data, m, c) for lp, m, c in zip(logps, means, covs)
        ]
        return -np.sum(ag.scipy.special.logsumexp(np.vstack(lls), axis=0))

    return log_likelihood, (rs.randn(3), rs.randn(3, 2), rs.randn(3, 2, 2))


def logistic_regression(ag: Any) -> Any:
    np, rs = ag.np, ag.npr.RandomState(1)
    inputs, targets = np.array(rs.randn(8, 3)), np.array(rs.rand(8) > 0.5)

    def training_loss(weights):
        preds = 0.5 * (np.tanh(np.dot(inputs, weights)) + 1)
        label_probabilities = preds * targets + (1 - preds) * (1 - targets)
        return -np.sum(np.log(label_probabilities))

    return training_loss, rs.randn(3)


def gaussian_process(ag: Any) -> Any:
    np, rs = ag.np, ag.npr.RandomState(2)
    x, y = rs.randn(7, 2), rs.randn(7)

    def rbf_covariance(kernel_params, x, xp):
        output_scale = np.exp(kernel_params[0])
        lengthscales = np.exp(kernel_params[1:])
        diffs = np.expand_dims(x / lengthscales, 1) - np.expand_dims(xp / lengthscales, 0)
        return output_scale * np.exp(-0.5 * np.sum(diffs**2, axis=2))

    def log_marginal_likelihood(params):
        mean, noise = params[0], np.exp(params[1]) + 0.0001
        cov_y_y = rbf_covariance(params[2:], x, x) + noise * np.eye(len(y), dtype=float)
        prior_mean = mean * np.ones(len(y), dtype=float)
        prediction = np.dot(cov_y_y, np.linalg.solve(cov_y_y, y - prior_mean))
        return ag.scipy.stats.multivariate_normal.logpdf(y, prior_mean, cov_y_y) + np.sum(prediction**2)

    return log_marginal_likelihood, rs.randn(5)


def convolutional_network(ag: Any) -> Any:
    np, rs = ag.np, ag.npr.RandomState(3)
    images, one_hot = rs.randn(4, 1, 9, 9), np.array(rs.randint(0, 3, 4)[:, None] == np.arange(3), dtype=int)

    def loss(params):
        w, b, v = params
        conv = ag.scipy.signal.convolve(images, w, axes=([2, 3], [2, 3]), dot_axes=([1], [0]), mode="valid")
        hidden = np.maximum(0.0, conv + np.reshape(b, (1, 2, 1, 1)))
        pooled = np.max(np.max(hidden.reshape((4, 2, 4, 2, 4, 2)), axis=3), axis=4)
        outputs = np.dot(pooled.reshape((4, -1)), v)
        log_probs = outputs - ag.scipy.special.logsumexp(outputs, axis=1, keepdims=True)
        return -np.sum(log_probs * one_hot) / len(images)

    return loss, (rs.randn(1, 2, 2, 2), rs.randn(2), rs.randn(32, 3))


def recurrent_network(ag: Any) -> Any:
    np, rs = ag.np, ag.npr.RandomState(4)
    sequence = np.array(np.arange(4)[None, :] == rs.randint(0, 4, (6, 3))[:, :, None], dtype=float)

    def concat_and_multiply(weights, *args):
        cat_state = np.hstack(args + (np.ones((args[0].shape[0], 1)),))  # noqa: RUF005
        return np.dot(cat_state, weights)

    def loss(params):
        hiddens = np.repeat(params["init"], 3, axis=0)
        cells, total = np.zeros_like(hiddens), 0.0
        for t in range(1, 6):
            x = sequence[t - 1]
            change, forget, out = (
                concat_and_multiply(w, x, hiddens) for w in np.split(params["gates"], 3, axis=1)
            )
            cells = cells * 0.5 * (np.tanh(forget) + 1.0) + np.tanh(change)
            hiddens = 0.5 * (np.tanh(out) + 1.0) * np.tanh(cells)
            scores = concat_and_multiply(params["predict"], hiddens)
            logprobs = scores - ag.scipy.special.logsumexp(scores, axis=1, keepdims=True)
            total += np.sum(logprobs * sequence[t])
        return -total / 15

    return loss, {"init": rs.randn(1, 5), "gates": 0.3 * rs.randn(10, 15), "predict": rs.randn(6, 4)}


def variational_autoencoder(ag: Any) -> Any:
    np, npr, norm = ag.np, ag.npr, ag.scipy.stats.norm
    npr.seed(5)
    data = npr.rand(6, 4) > 0.5

    def diag_gaussian_log_density(x, mu, log_std):
        return np.sum(norm.logpdf(x, mu, np.exp(log_std)), axis=-1)

    def bernoulli_log_density(targets, unnormalized_logprobs):
        label_probabilities = -np.logaddexp(0, -unnormalized_logprobs * (targets * 2 - 1))
        return np.sum(label_probabilities, axis=-1)

    def objective(params):
        npr.seed(6)
        rec, gen = params
        mus, log_stds = np.array_split(np.dot(data, rec), 2, axis=1)
        latents = np.exp(log_stds) * npr.randn(6, 2) + mus
        log_prior = diag_gaussian_log_density(latents, 0, 0.0)
        log_q = diag_gaussian_log_density(latents, mus, log_stds)
        return -np.mean(bernoulli_log_density(data, np.dot(np.tanh(latents), gen)) + log_prior - log_q)

    return objective, (npr.randn(4, 4), npr.randn(2, 4))


def black_box_inference(ag: Any) -> Any:
    np, npr = ag.np, ag.npr
    rs, D = npr.RandomState(7), 2

    def log_density(x):
        mu, log_sigma = x[:, 0], x[:, 1]
        sigma_density = ag.scipy.stats.norm.logpdf(log_sigma, 0, 1.35)
        return sigma_density + ag.scipy.stats.norm.logpdf(mu, 0, np.exp(log_sigma))

    noise = 0.5 * rs.randn(10, D)

    def variational_objective(params):
        mean, log_std = params[:D], params[D:]
        samples = noise * np.exp(log_std) + mean
        entropy = 0.5 * D * (1.0 + np.log(2 * np.pi)) + np.sum(log_std)
        log_q = ag.scipy.stats.multivariate_normal.logpdf(samples, mean, np.diag(np.exp(2 * log_std)))
        return -(entropy + np.mean(log_density(samples)) + 0.1 * np.mean(log_q))

    return variational_objective, 0.3 * rs.randn(2 * D)


def fluid_simulation(ag: Any) -> Any:
    np, rs = ag.np, ag.npr.RandomState(8)
    smoke, rows, cols = rs.rand(5, 6), 5, 6

    def project(vx, vy):
        p = np.zeros(vx.shape)
        h = 1.0 / vx.shape[0]
        div = (
            -0.5 * h * (np.roll(vx, -1, axis=0) - np.roll(vx, 1, 0) + np.roll(vy, -1, 1) - np.roll(vy, 1, 1))
        )
        for _ in range(3):
            p = (div + np.roll(p, 1, 0) + np.roll(p, -1, 0) + np.roll(p, 1, 1) + np.roll(p, -1, 1)) / 4.0
        return vx - 0.5 * (np.roll(p, -1, 0) - np.roll(p, 1, 0)) / h, vy

    def advect(f, vx, vy):
        cell_ys, cell_xs = np.meshgrid(np.arange(rows), np.arange(cols), indexing="ij")
        center_xs, center_ys = (cell_xs - vx).ravel(), (cell_ys - vy).ravel()
        left_ix, top_ix = np.floor(center_xs).astype(int), np.floor(center_ys).astype(int)
        rw, bw = center_xs - left_ix, center_ys - top_ix
        left_ix, right_ix = np.mod(left_ix, cols), np.mod(left_ix + 1, cols)
        top_ix, bot_ix = np.mod(top_ix, rows), np.mod(top_ix + 1, rows)
        flat_f = (1 - rw) * ((1 - bw) * f[top_ix, left_ix] + bw * f[bot_ix, left_ix])
        flat_f += rw * ((1 - bw) * f[top_ix, right_ix] + bw * f[bot_ix, right_ix])
        return np.reshape(flat_f, (rows, cols))

    def distance(params):
        vx, vy = project(*np.reshape(params, (2, rows, cols)))
        return np.mean((advect(smoke, vx, vy) - smoke.mean()) ** 2)

    return distance, 0.3 * rs.randn(60)


def differential_equation(ag: Any) -> Any:
    np, rs = ag.np, ag.npr.RandomState(9)
    times, start = np.linspace(0.0, 2.0, 5), rs.randn(2)

    def loss(params):
        path = ag.scipy.integrate.odeint(
            lambda y, t, a: np.dot(np.tanh(y), a), start, times, ag.tuple((params,))
        )
        return np.mean(np.abs(path[1:] - 1.0))

    return loss, np.array(rs.randn(2, 2))


FRAGMENTS = {
    each.__name__: each
    for each in (
        gaussian_mixture,
        logistic_regression,
        gaussian_process,
        convolutional_network,
        recurrent_network,
        variational_autoencoder,
        black_box_inference,
        fluid_simulation,
        differential_equation,
    )
}
