"""Optimisers' shaders: several steps against the textbook in float64, a formula put in; norms and scaling."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from shaders.host import BF16, by_fours, close, rng, run
from shaders.views import few


def groups(x):
    return -(-x.size // 1024)


def by_four(number, dtype):
    """The replacements for the gradient's dtype, which is bound by vectors."""
    return {k: v for k, v in by_fours("g0", f"read {number}", dtype).items() if k != "load g0"}


FOUND = {found: np.full(1, found, np.int32) for found in (0, 1)}


def sgd(x, g, m, first, flags, rate, decay=0.0, momentum=0.0, dampening=0.0, found=1):
    params = [flags, rate, decay, momentum, 1.0 - dampening, 0, 0, 0, 0, x.size, first, 0]
    replace = by_four(1, g.dtype) | {"const MOMENTUM": f"const MOMENTUM = {str(m.size > 1).lower()};"}
    return run("optim_sgd.wgsl", [FOUND[found], g], [x, m], params, groups(x), replace, limit=2)


def adam(
    x, g, state, step, flags=0, rate=0.01, decay=0.0, shrink=1.0, beta1=0.9, beta2=0.999, eps=1e-8, found=1
):
    size, root = rate / (1 - beta1**step), (1 - beta2**step) ** -0.5
    params = [flags, decay, shrink, beta1, 1 - beta1, beta2, 1 - beta2, eps, 0, x.size, size, root]
    replace = {"const AMSGRAD": f"const AMSGRAD = {str(state[2].size > 1).lower()};"}
    return run("optim_adam.wgsl", [FOUND[found], g], [x, *state], params, groups(x), replace, limit=2)


@few
@given(st.integers(1, 3000), st.sampled_from([0, 1]), st.booleans())
def test_formula(count, found, decays):
    """The file itself, whose formula leaves all as it is but for the factor on the parameter; and one put
    in."""
    r = rng(count)
    x, g, s = (r.standard_normal(count).astype(np.float32) for _ in range(3))
    g[0] = np.inf
    decay = np.float32(0.5 if decays else 0.0)
    numbers = np.array([decay, 0.5, -1.0, 3.0, 0, 0, 0, 0, 0], np.float32).view(np.uint32)
    params = [4, *numbers, 0, 0, 0, count, 0, 0]
    state = [s, s.copy(), s.copy()]
    rule = "vec4<f32>(s.x + a.x * g, s.y + g, s.z * s.x, s.w)"
    head = "fn op(s: vec4<f32>, g: f32, a: vec4<f32>, b: vec2<f32>) -> vec4<f32>"
    for text in (None, f"{head} {{ return {rule}; }}"):
        replace = {"fn op": text} if text else {}
        got = run("optim_formula.wgsl", [FOUND[found], g], [x, *state], params, groups(x), replace, limit=2)
        old, d = np.float32(0.5) * x, -g + decay * x
        wanted = [old + 3 * d, s + d, s * old, s] if text else [old, s, s, s]
        for one, other in zip(got, [x, *state] if found else wanted):
            close(one, other)


@few
@given(st.integers(1, 3000), st.booleans(), st.booleans(), st.booleans())
def test_sgd(count, with_momentum, nesterov, maximise):
    r = rng(count)
    x = r.standard_normal(count).astype(np.float32)
    m = np.zeros(max(count, 2) if with_momentum else 1, np.float32)
    exact, buffer = x.astype(np.float64), None
    for step in range(3):
        g = r.standard_normal(count).astype(np.float32)
        flags = nesterov + 2 * maximise
        x, m = sgd(x, g, m, step == 0, flags, 0.1, 0.01, 0.9, 0.0 if nesterov else 0.1)
        d = (-1.0 if maximise else 1.0) * g + 0.01 * exact
        if with_momentum:
            buffer = d if buffer is None else 0.9 * buffer + (1.0 if nesterov else 0.9) * d
            d = d + 0.9 * buffer if nesterov else buffer
        exact = exact - 0.1 * d
    close(x, exact, scale=4)


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize("count", [2, 301, 2500])
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
        decay = dict(shrink=1.0 - 0.01 * 0.1) if decoupled else dict(decay=0.1)
        x, *state = adam(x, g, state, step, **decay)
        d = g + (0.0 if decoupled else 0.1) * exact
        exact = exact * (1 - (0.01 * 0.1 if decoupled else 0.0))
        m, v = 0.9 * m + 0.1 * d, 0.999 * v + 0.001 * d * d
        top = np.maximum(top, v)
        root = np.sqrt((top if amsgrad else v) / (1 - 0.999**step))
        exact = exact - 0.01 / (1 - 0.9**step) * m / (root + 1e-8)
    close(x, exact, scale=4)


def test_a_guarded_step_is_left_out_where_an_overflow_was_found():
    r = rng(0)
    x, g = (r.standard_normal(1500).astype(np.float32) for _ in range(2))
    m, state = np.ones(1500, np.float32), [np.ones(1500, np.float32) for _ in range(3)]
    for found in (0, 1):
        after = [
            *sgd(x, g, m, False, 4, 0.1, momentum=0.9, found=found),
            *adam(x, g, state, 2, 4, found=found),
        ]
        changed = [not np.array_equal(a, b) for a, b in zip(after, [x, m, x, *state], strict=True)]
        assert any(changed) == (found == 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16])
@pytest.mark.parametrize("count", [1, 1024, 2500])
def test_squares(dtype, count):
    g = rng(count).standard_normal(count).astype(dtype)
    params = [1, groups(g), 0, 0, 0, count, 0, 0]
    replace = by_four(0, dtype)
    (sums,) = run("optim_squares.wgsl", [g], [np.full(4, 7, np.float32)], params, groups(g), replace, limit=2)
    exact = [np.square(part.astype(np.float64)).sum() for part in np.split(g, range(1024, count, 1024))]
    np.testing.assert_allclose(sums[1 : 1 + groups(g)], exact, rtol=1e-5)
    assert sums[0] == 7
    assert (sums[1 + groups(g) :] == 7).all()


@pytest.mark.parametrize("bad", [None, np.inf, -np.inf, np.nan])
def test_scale(bad):
    x = rng(0).standard_normal(1500).astype(np.float32)
    x[1400] = 1.0 if bad is None else bad
    ins, outs = [np.array([0.25], np.float32)], [np.zeros(1, np.int32), x]
    found, scaled = run("optim_scale.wgsl", ins, outs, [0, 1500, 0, 0], 2, limit=1)
    assert found[0] == (bad is not None)
    finite = np.isfinite(x)
    np.testing.assert_array_equal(scaled[finite], x[finite] * 0.25)


def test_scale_leaves_what_lies_behind_the_end():
    x = rng(0).standard_normal(1504).astype(np.float32)
    x[1502:] = np.inf, 8
    ins, outs = [np.array([0.25], np.float32)], [np.zeros(1, np.int32), x]
    found, scaled = run("optim_scale.wgsl", ins, outs, [0, 1502, 0, 0], 2)
    assert found[0] == 0
    np.testing.assert_array_equal(scaled, np.append(x[:1502] * np.float32(0.25), x[1502:]))
