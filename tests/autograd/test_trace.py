"""`trace_backward` on networks worked out by hand."""

import numpy as np
import pytest
import wengert as wg


def leaf(value: object) -> wg.Tensor:
    """A leaf that requires a gradient."""
    return wg.tensor(value, requires_grad=True)


def test_square_of_a_line() -> None:
    x, w, b = leaf(2.0), leaf(3.0), leaf(1.0)
    h = x * w + b
    y = h**2
    trace = wg.trace_backward(y)
    assert str(trace) == (
        "value  operation  local derivative  times upstream  equals downstream\n"
        "y      square     dy/dh = 14        * 1             = 14 to h\n"
        "h      add        dh/dv1 = 1        * 14            = 14 to v1\n"
        "h      add        dh/db = 1         * 14            = 14 to b\n"
        "v1     mul        dv1/dx = 3        * 14            = 42 to x\n"
        "v1     mul        dv1/dw = 2        * 14            = 28 to w\n"
        "dy/dx = 42\n"
        "dy/dw = 28\n"
        "dy/db = 14"
    )
    assert [(r.output, r.op, r.input, float(r.local)) for r in trace.rows] == [
        ("y", "square", "h", 14.0),
        ("h", "add", "v1", 1.0),
        ("h", "add", "b", 1.0),
        ("v1", "mul", "x", 3.0),
        ("v1", "mul", "w", 2.0),
    ]
    for row in trace.rows:
        assert row.downstream == row.local * row.upstream
    # Nothing was freed or accumulated.
    assert x.grad is None
    y.backward()
    assert (x.grad.item(), w.grad.item(), b.grad.item()) == (42.0, 28.0, 14.0)


def test_sine_of_a_square() -> None:
    x = leaf(1.5)
    square = x**2
    y = square.sin()
    trace = wg.trace_backward(y)
    assert str(trace) == (
        "value   operation  local derivative      times upstream  equals downstream\n"
        "y       sin        dy/dsquare = -0.6282  * 1             = -0.6282 to square\n"
        "square  square     dsquare/dx = 3        * -0.6282       = -1.8845 to x\n"
        "dy/dx = -1.8845"
    )
    assert trace.gradients["x"] == pytest.approx(-1.88452087, rel=1e-6)


def test_a_layer_with_relu() -> None:
    x, W, b = leaf([2.0, 3.0]), leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([0.5, -0.5])
    z = W @ x + b
    h = z.relu()
    loss = h.sum()
    trace = wg.trace_backward(loss)
    assert trace.gradients["x"].tolist() == [4.0, 6.0]
    assert trace.gradients["W"].tolist() == [[2.0, 3.0], [2.0, 3.0]]
    assert trace.gradients["b"].tolist() == [1.0, 1.0]
    relu = next(r for r in trace.rows if r.op == "relu")
    assert relu.diagonal
    assert relu.local.tolist() == [1.0, 1.0]
    # Every row is the chain rule: upstream contracted with the Jacobian.
    for row in trace.rows:
        if row.diagonal:
            expected = row.local * row.upstream
        else:
            expected = np.tensordot(row.upstream, row.local, axes=row.upstream.ndim)
        np.testing.assert_allclose(row.downstream, expected)


def test_sigmoid_between_two_weights() -> None:
    x, w1, w2 = leaf(0.5), leaf(2.0), leaf(-1.5)
    s = (w1 * x).sigmoid()
    loss = (w2 * s) ** 2
    trace = wg.trace_backward(loss)
    value = 1 / (1 + np.exp(-1.0))
    np.testing.assert_allclose(trace.gradients["w2"], 2 * -1.5 * value * value, rtol=1e-6)
    np.testing.assert_allclose(trace.gradients["w1"], 2 * 2.25 * value * value * (1 - value) * 0.5, rtol=1e-6)
    local = next(r.local for r in trace.rows if r.op == "sigmoid")
    np.testing.assert_allclose(local, value * (1 - value), rtol=1e-6)


def test_a_value_used_twice_adds_up() -> None:
    x = leaf(3.0)
    a = x * x
    y = a + x
    trace = wg.trace_backward(y)
    assert [(r.input, float(r.downstream)) for r in trace.rows if r.input == "x"] == [
        ("x", 1.0),
        ("x", 3.0),
        ("x", 3.0),
    ]
    assert trace.gradients["x"] == 7.0


def test_names_given_and_made() -> None:
    p = leaf(2.0)
    trace = wg.trace_backward((p * 3).exp(), names={"theta": p})
    assert [(r.output, r.input) for r in trace.rows] == [("v1", "v2"), ("v2", "theta")]
    assert list(trace.gradients) == ["theta"]


def test_cotangent() -> None:
    x = leaf([1.0, 2.0])
    trace = wg.trace_backward(x**2, gradient=wg.tensor([1.0, 10.0]))
    assert trace.gradients["x"].tolist() == [2.0, 40.0]
    with pytest.raises(ValueError) as caught:
        wg.trace_backward(x**2, gradient=wg.ones(3))
    assert str(caught.value) == "trace_backward: gradient= has shape (3,), expected (2,) as the loss"


def test_limits_are_said() -> None:
    x = wg.ones(5, 5, requires_grad=True)
    y = x
    for _ in range(4):
        y = y * 2
    trace = wg.trace_backward(y.sum(), max_rows=3)
    assert len(trace.rows) == 3
    assert trace.notices == [
        "3 local derivatives have more than 16 elements on a side and are not shown; raise max_elements to "
        "see them",
        "the first 3 rows are shown, 2 are left out; raise max_rows",
    ]
    assert "(5, 5) of norm 5" in str(trace)
    assert str(trace).endswith("\n".join(trace.notices))
    assert trace.gradients["x"].tolist() == np.full((5, 5), 16.0).tolist()
    assert wg.trace_backward(y.sum(), max_elements=25).notices == []


def test_operations_with_several_outputs() -> None:
    x = leaf([1.0, 3.0])
    values, _ = x.max(0)
    trace = wg.trace_backward(values * 2)
    assert trace.gradients["x"].tolist() == [0.0, 2.0]
    norm = wg.nn.functional.layer_norm(wg.ones(2, 3, requires_grad=True), (3,))
    assert wg.trace_backward(norm.sum()).rows


def test_what_cannot_be_traced() -> None:
    with pytest.raises(RuntimeError) as caught:
        wg.trace_backward(wg.ones(2))
    assert str(caught.value) == (
        "trace_backward: the tensor of shape (2,) has no graph: none of its inputs requires a gradient, or "
        "it was detached; call requires_grad_() on an input before computing it"
    )
    y = leaf(1.0).exp()
    y.backward()
    with pytest.raises(RuntimeError, match="already used and freed"):
        wg.trace_backward(y)


def test_lines_inside_a_region() -> None:
    with wg.debug():
        y = leaf(1.0).exp()
    (row,) = wg.trace_backward(y).rows
    assert row.location.file == __file__
