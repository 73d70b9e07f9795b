"""optim_sgd.wgsl and optim_adam.wgsl: several steps against the textbook in float64; the control words."""

import numpy as np
import pytest
from host import close, rng, run, types
from hypothesis import given
from hypothesis import strategies as st

GO = np.array([1.0, 0.0], np.float32)
SPARE = np.zeros(1, np.float32)


def sgd(x, g, m, flags, rate, decay=0.0, momentum=0.0, dampening=0.0, control=GO):
    params = [x.size, flags, rate, decay, momentum, dampening]
    replace = {"load g": types(g=g.dtype)["load g"]}
    return run("optim_sgd.wgsl", [g, control], [x, m], params, -(-x.size // 1024), replace, limit=2)


def adam(x, g, state, flags, step, rate=0.01, decay=0.0, beta1=0.9, beta2=0.999, eps=1e-8, control=GO):
    size, root = rate / (1 - beta1**step), (1 - beta2**step) ** -0.5
    params = [x.size, flags, rate, decay, beta1, 1 - beta1, beta2, 1 - beta2, eps, size, root]
    return run("optim_adam.wgsl", [g, control], [x, *state], params, -(-x.size // 1024), limit=2)


@given(st.integers(1, 3000), st.booleans(), st.booleans(), st.booleans())
def test_sgd(count, with_momentum, nesterov, maximise):
    r = rng(count)
    x = r.standard_normal(count).astype(np.float32)
    m = np.zeros(count if with_momentum else 1, np.float32)
    exact, buffer = x.astype(np.float64), None
    for step in range(3):
        g = r.standard_normal(count).astype(np.float32)
        flags = with_momentum + 2 * (step == 0) + 4 * nesterov + 8 * maximise
        x, m = sgd(x, g, m, flags, 0.1, 0.01, 0.9, 0.0 if nesterov else 0.1)
        d = (-1.0 if maximise else 1.0) * g + 0.01 * exact
        if with_momentum:
            buffer = d if buffer is None else 0.9 * buffer + (1.0 if nesterov else 0.9) * d
            d = d + 0.9 * buffer if nesterov else buffer
        exact = exact - 0.1 * d
    close(x, exact, scale=4)


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize("count", [1, 300, 2500])
def test_adam(count, decoupled, amsgrad):
    r = rng(count)
    x = r.standard_normal(count).astype(np.float32)
    state = [
        np.zeros(count, np.float32),
        np.zeros(count, np.float32),
        np.zeros(count if amsgrad else 1, np.float32),
    ]
    exact, m, v, top = x.astype(np.float64), 0.0, 0.0, 0.0
    for step in range(1, 5):
        g = (r.standard_normal(count) / step).astype(np.float32)
        x, *state = adam(x, g, state, amsgrad + 2 * decoupled, step, decay=0.1)
        d = g + (0.0 if decoupled else 0.1) * exact
        exact = exact * (1 - (0.01 * 0.1 if decoupled else 0.0))
        m, v = 0.9 * m + 0.1 * d, 0.999 * v + 0.001 * d * d
        top = np.maximum(top, v)
        root = np.sqrt((top if amsgrad else v) / (1 - 0.999**step))
        exact = exact - 0.01 / (1 - 0.9**step) * m / (root + 1e-8)
    close(x, exact, scale=4)


def test_control_scales_and_skips():
    x, g = np.ones(5, np.float32), np.full(5, 8.0, np.float16)
    moved, _ = sgd(x, g, SPARE, 0, 0.5, control=np.array([0.25, 0.0], np.float32))
    np.testing.assert_array_equal(moved, np.zeros(5))
    stop = np.array([0.25, 1.0], np.float32)
    np.testing.assert_array_equal(sgd(x, g, SPARE, 0, 0.5, control=stop)[0], x)
    state = [np.zeros(5, np.float32), np.zeros(5, np.float32), SPARE]
    for got, before in zip(adam(x, x, state, 0, 1, control=stop), [x, *state], strict=True):
        np.testing.assert_array_equal(got, before)
