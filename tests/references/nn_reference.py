"""What the tests of layers compare with: fixed random arrays, and central differences."""

import numpy as np
import wengert as wg


def array(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape) + 7).standard_normal(shape)


def close(actual, expected, tol=1e-6):
    actual = actual.detach().tolist() if isinstance(actual, wg.Tensor) else actual
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=tol, atol=tol)


def check_gradient(function, *arrays, tol=1e-6):
    """Reverse-mode gradients of a weighted sum of outputs, against central differences in float64."""
    inputs = [wg.tensor(a, dtype=wg.float64, requires_grad=True) for a in arrays]
    out = function(*inputs)
    weights = np.random.default_rng(3).standard_normal(tuple(out.shape))
    (out * wg.tensor(weights, dtype=wg.float64)).sum().backward()

    def value(at):
        out = function(*[wg.tensor(a, dtype=wg.float64) for a in at])
        return float((np.asarray(out.tolist()) * weights).sum())

    for i, x in enumerate(inputs):
        expected = np.zeros_like(arrays[i])
        for index in np.ndindex(arrays[i].shape):
            both = []
            for step in (1e-6, -1e-6):
                moved = [a.copy() for a in arrays]
                moved[i][index] += step
                both.append(value(moved))
            expected[index] = (both[0] - both[1]) / 2e-6
        close(x.grad, expected, tol)
