"""`while_loop` and `fori_loop`: values, derivatives in every mode, batches whose examples end at different
steps."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from messages import Situations, message_tests
from support import array, assert_near

F64 = wg.float64


def tensor(x: Any) -> wg.Tensor:
    return wg.tensor(np.asarray(x), dtype=F64)


def root(a: wg.Tensor) -> tuple[wg.Tensor, wg.Tensor]:
    """The square root by Newton's method, and how many steps it took."""
    far = lambda c: (c[0] * c[0] - a).abs() > 1e-12
    return wg.while_loop(far, lambda c: ((c[0] + a / c[0]) / 2, c[1] + 1), (tensor(1.0), 0))


def halved(x: wg.Tensor) -> wg.Tensor:
    return wg.while_loop(lambda x: x > 1, lambda x: x / 2, x)


def power(n: Any, x: wg.Tensor) -> wg.Tensor:
    return wg.fori_loop(0, n, lambda i, y: y * x, wg.ones_like(x))


# ---- while_loop ----------------------------------------------------------------------------------

A = tensor([2.0, 9.0, 0.25, 1.0])
# What jax.lax.while_loop gives for the same function: values, steps, and tangents.
ROOTS = [1.414213562373095, 3.0, 0.5000000000000006, 1.0]
STEPS = [5, 6, 5, 0]
TANGENTS = [0.35355339059327373, 0.16666666666666669, 0.999999999999955, 0.0]


@pytest.mark.parametrize(
    ("dtype", "last"),
    [(wg.uint8, 255), (wg.uint8, 0), (wg.int8, 127), (wg.int8, -128), (wg.int64, 2**63 - 1)],
)
def test_a_range_up_to_the_end_of_its_dtype(dtype: Any, last: int) -> None:
    f = lambda k: wg.fori_loop(k, last, lambda i, s: s + 1, 0)
    least = {wg.uint8: 0, wg.int8: -128, wg.int64: 0}[dtype]
    starts = [max(last - n, least) for n in (3, 1, 0)]
    k = wg.tensor(starts, dtype=dtype)
    assert array(wg.vmap(f)(k)).tolist() == [int(f(a)) for a in k] == [last - a for a in starts]


def test_each_example_of_a_batch_ends_at_its_own_step() -> None:
    values, steps = wg.vmap(root)(A)
    assert_near(values, ROOTS, 1e-15)
    assert steps.tolist() == STEPS
    assert steps.dtype == wg.int64
    for a, value, count in zip(A, values, steps):
        alone = root(a)
        assert (alone[0].item(), alone[1].item()) == (value.item(), count.item())


def test_derivatives_of_a_loop_of_any_length() -> None:
    f = lambda a: root(a)[0]
    ones = wg.ones_like(A)
    assert_near(wg.vmap(wg.grad(f))(A), TANGENTS, 1e-14)
    assert_near(wg.grad(lambda a: wg.vmap(f)(a).sum())(A), TANGENTS, 1e-14)
    assert_near(wg.jvp(wg.vmap(f), (A,), (ones,))[1], TANGENTS, 1e-14)
    assert_near(wg.vmap(wg.jacfwd(f))(A), TANGENTS, 1e-14)
    assert_near(wg.linearize(wg.vmap(f), A)[1](ones), TANGENTS, 1e-14)
    leaf = A.clone().requires_grad_()
    wg.vmap(f)(leaf).sum().backward()
    assert_near(leaf.grad, TANGENTS, 1e-14)
    leaf = tensor(9.0).requires_grad_()
    f(leaf).backward()
    assert_near(leaf.grad, 1 / 6, 1e-14)


def test_second_derivatives_of_a_batch_of_loops() -> None:
    x = tensor([12.0, 3.0, 0.5])
    f = lambda x: halved(x * x)
    want = [2 / 2**8, 2 / 2**4, 2.0]
    for outer in (wg.grad, wg.jacfwd, wg.jacrev):
        for inner in (wg.grad, wg.jacfwd):
            assert_near(wg.vmap(outer(inner(f)))(x), want, 1e-15)
    assert_near(wg.hessian(lambda x: wg.vmap(f)(x).sum())(x), np.diag(want), 1e-15)


def test_what_is_done_leaks_nothing() -> None:
    # At the end of an example the step would divide by zero, or take the logarithm of zero.
    def f(x: wg.Tensor) -> wg.Tensor:
        return wg.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, c[1] + c[0].log() / c[0]), (x, x))[1]

    x = tensor([1.0, 2.0, 4.0])
    each = [sum(np.log(k) / k for k in range(1, n + 1)) + n for n in (1, 2, 4)]
    slopes = [sum((1 - np.log(k)) / k**2 for k in range(1, n + 1)) + 1 for n in (1, 2, 4)]
    assert_near(wg.vmap(f)(x), each, 1e-14)
    assert_near(wg.vmap(wg.grad(f))(x), slopes, 1e-14)
    assert_near(wg.jvp(wg.vmap(f), (x,), (wg.ones_like(x),))[1], slopes, 1e-14)
    curved = [sum((2 * np.log(k) - 3) / k**3 for k in range(1, n + 1)) for n in (1, 2, 4)]
    assert_near(wg.vmap(wg.grad(wg.grad(f)))(x), curved, 1e-13)


def test_pytorch_s_form_of_a_loop() -> None:
    out = wg.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 2), carried_inputs=(0, tensor(1.0)))
    assert (out[0].item(), out[1].item()) == (5, 32.0)
    out = wg.while_loop(cond_fn=lambda x: x < 9, body_fn=lambda x: x * 2, carried_inputs=(tensor(1.0),))
    assert [x.item() for x in out] == [16.0]
    assert (
        wg.while_loop(lambda c: c["i"] < 3, lambda c: {"i": c["i"] + 1}, init_val={"i": 0})["i"].item() == 3
    )
    assert wg.while_loop(lambda x: False, lambda x: x, tensor(2.0)).item() == 2.0


def test_batches_in_batches_and_a_condition_that_begins_to_differ() -> None:
    x = tensor([[12.0, 3.0], [0.5, 100.0]])
    want = [[0.75, 0.75], [0.5, 0.78125]]
    assert wg.vmap(wg.vmap(halved))(x).tolist() == want
    assert wg.vmap(lambda row: wg.vmap(halved)(row))(x).tolist() == want
    # All examples take the first two steps.
    far = lambda c: wg.cond(c[0] < 2, lambda: wg.tensor(True), lambda: c[1] > 1)
    f = lambda x: wg.while_loop(far, lambda c: (c[0] + 1, c[1] / 2), (0, x))[1]
    assert wg.vmap(f)(tensor([1.0, 16.0])).tolist() == [0.25, 1.0]
    assert wg.vmap(halved)(tensor([])).shape == (0,)


def test_a_condition_that_differs_only_at_first() -> None:
    x = tensor([1.0, -1.0])
    for last in (False, wg.tensor(False)):
        flags = iter([None, True, wg.tensor(True), last])
        test = lambda x, flags=flags: x > 0 if (flag := next(flags)) is None else flag
        # The second example is done at once, and stays so.
        assert wg.vmap(lambda x, test=test: wg.while_loop(test, lambda x: x + 1, x))(x).tolist() == [
            4.0,
            -1.0,
        ]


def test_a_number_takes_the_dtype_that_it_needs() -> None:
    out = wg.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + tensor(0.5)), (0, 0))
    assert out[1].dtype == F64
    assert (out[0].item(), out[1].item()) == (3, 1.5)
    # A tensor keeps its dtype: nobody asked for another.
    with pytest.raises(TypeError, match=r"the value was wengert.int64 of shape \(\), after a step"):
        wg.while_loop(lambda x: x < 3, lambda x: x + 0.5, wg.tensor(0))


# ---- fori_loop -----------------------------------------------------------------------------------


def test_a_loop_over_a_range() -> None:
    seen: list[Any] = []
    out = wg.fori_loop(2, 5, lambda i, c: seen.append((i.item(), i.dtype)) or c + i, 0)
    assert out.item() == 9
    assert seen == [(2, wg.int64), (3, wg.int64), (4, wg.int64)]
    seen.clear()
    lower = wg.tensor(2, dtype=wg.int32)
    wg.fori_loop(
        lower=lower, upper=3, body_fun=lambda i, c: seen.append((i.item(), i.dtype)) or c, init_val=0
    )
    assert seen == [(2, wg.int32)]
    assert wg.fori_loop(3, 3, lambda i, c: c[0], tensor([1.0])).tolist() == [1.0]
    assert wg.fori_loop(5, -2, lambda i, c: c[0], tensor([1.0])).tolist() == [1.0]


def test_steps_of_a_range_are_not_unrolled() -> None:
    assert wg.fori_loop(0, 3, lambda i, x: x * 2, ONE, unroll=2).item() == 8
    with pytest.raises(ValueError, match=r"^fori_loop: unroll is an integer of at least 0, or None, got -1$"):
        wg.fori_loop(0, 3, lambda i, x: x, ONE, unroll=-1)


def test_a_tuple_for_functions_of_several_arguments_is_explained() -> None:
    state = (ONE, ONE)
    calls: list[Callable[[], Any]] = [
        lambda: wg.cond(True, lambda x, y: x, lambda x, y: y, state),  # type: ignore[call-overload]
        lambda: wg.switch(0, [lambda x, y: x], state),  # type: ignore[list-item, misc]
        lambda: wg.while_loop(lambda x, y: x > 0, lambda x, y: (x, y), state),  # type: ignore[call-overload]
    ]
    for call, keyword in zip(calls, ("operands", "operands", "carried_inputs")):
        with pytest.raises(TypeError, match="missing 1 required positional argument") as raised:
            call()
        assert f"write {keyword}=(...) to give its entries one by one" in raised.value.__notes__[0]


def test_ranges_that_differ_between_examples() -> None:
    x = tensor([5.0, 5.0, 5.0, 2.0])
    n = wg.tensor([0, 1, 2, 5])
    assert wg.vmap(power)(n, x).tolist() == [1.0, 5.0, 25.0, 32.0]
    assert wg.vmap(wg.grad(power, argnums=1))(n, x).tolist() == [0.0, 1.0, 10.0, 80.0]
    assert wg.vmap(wg.grad(wg.grad(power, argnums=1), argnums=1))(n, x).tolist() == [0.0, 0.0, 2.0, 160.0]
    assert wg.jvp(lambda x: wg.vmap(power)(n, x), (x,), (wg.ones_like(x),))[1].tolist() == [
        0.0,
        1.0,
        10.0,
        80.0,
    ]
    # No index is out of range, not even that of examples that are done.
    table = wg.arange(4.0)
    rest = lambda k: wg.fori_loop(k, 4, lambda i, c: c + table[i], 0.0)
    assert wg.vmap(rest)(wg.tensor([0, 1, 3, 4])).tolist() == [6.0, 6.0, 3.0, 0.0]
    first = lambda k: wg.fori_loop(0, k, lambda i, c: c + table[i], 0.0)
    assert wg.vmap(first)(wg.tensor([0, 1, 3, 4], dtype=wg.int32)).tolist() == [0.0, 0.0, 3.0, 6.0]


def test_derivatives_of_a_range() -> None:
    w = tensor([[0.5, -0.25], [0.125, 0.75]])
    f = lambda w: wg.fori_loop(0, 6, lambda i, h: (w @ h + i).sin(), tensor([1.0, 2.0])).sum()

    def steps(w: Any) -> float:
        h = np.array([1.0, 2.0])
        for i in range(6):
            h = np.sin(w @ h + i)
        return float(h.sum())

    point, step = array(w), 1e-6
    want = np.zeros((2, 2))
    for at in np.ndindex(2, 2):
        move = np.zeros((2, 2))
        move[at] = step
        want[at] = (steps(point + move) - steps(point - move)) / (2 * step)
    assert_near(f(w), steps(point), 1e-14)
    for found in (wg.grad(f)(w), wg.jacfwd(f)(w)):
        assert_near(found, want, 1e-8)
    assert_near(wg.hessian(f)(w), wg.jacrev(wg.jacrev(f))(w), 1e-12)


def test_programs_take_the_steps_of_the_value() -> None:
    turned = lambda x: wg.fori_loop(0, 5, lambda i, c: (c * x + i).sin(), x)
    each = wg.jit(wg.vmap(halved))
    alone, ranged = wg.jit(halved), wg.jit(turned)
    for x in ([12.0, 3.0], [9.0, 3.5], [0.25, 0.5], [12.5, 2.5]):
        assert wg.equal(each(tensor(x)), wg.vmap(halved)(tensor(x)))
        assert wg.equal(alone(tensor(x[0])), halved(tensor(x[0])))
        assert wg.equal(ranged(tensor(x)), turned(tensor(x)))
    assert (each.traces, alone.traces, ranged.traces) == (2, 2, 1)
    assert (each.why(), alone.why(), ranged.why()) == ([], [], [])


def test_programs_index_lists_and_tensors_by_the_step() -> None:
    layers = [wg.sin, wg.cos, wg.exp]
    f = lambda x: wg.fori_loop(0, 3, lambda i, c: layers[i](c) + x[i] if i != 1 else c / 2, x[0])
    step = wg.jit(wg.grad(f))
    for scale in (1.0, 2.0, -3.0):
        x = tensor([0.5, 1.0, -2.0]) * scale
        assert wg.equal(step(x), wg.grad(f)(x))
        assert_near(f(x), np.exp(np.sin(array(x[0])) / 2 + array(x[0]) / 2) + array(x[2]), 1e-15)
    assert (step.traces, step.why()) == (1, [])


# ---- messages ------------------------------------------------------------------------------------

ONE = tensor(1.0)
HINT = "each step returns the value with the structure, shapes and dtypes that it had"
CONDITION = "while_loop: what the condition returns is a bool or a bool tensor of shape (), got "
SITUATIONS: Situations = {
    "a condition that is a number": (
        lambda: wg.while_loop(lambda x: x, lambda x: x, ONE),
        TypeError,
        CONDITION + "wengert.float64 of shape (); compare it with a number, as in x > 0",
    ),
    "a condition of many": (
        lambda: wg.while_loop(lambda x: x > 0, lambda x: x, tensor([1.0, 2.0])),
        TypeError,
        CONDITION + "wengert.bool of shape (2,); reduce it with .all() or .any()",
    ),
    "another shape": (
        lambda: wg.while_loop(
            lambda c: True, lambda c: {"a": c["a"], "b": c["b"][None]}, {"a": ONE, "b": ONE}
        ),
        wg.ShapeError,
        "while_loop: the value at ['b'] was wengert.float64 of shape (), after a step it is wengert.float64 "
        "of shape "
        f"(1,); {HINT}",
    ),
    "another dtype": (
        lambda: wg.fori_loop(0, 2, lambda i, x: x.float(), ONE),
        TypeError,
        "fori_loop: the value was wengert.float64 of shape (), after a step it is wengert.float32 of shape "
        "(); "
        f"{HINT}",
    ),
    "another structure": (
        lambda: wg.fori_loop(0, 2, lambda i, x: (x, i), ONE),
        ValueError,
        f"fori_loop: the value was TreeDef(*), after a step it is TreeDef((*, *)); {HINT}",
    ),
    "no tensor": (
        lambda: wg.fori_loop(0, 2, lambda i, x: None, ONE),
        ValueError,
        f"fori_loop: the value was TreeDef(*), after a step it is TreeDef(None); {HINT}",
    ),
    "a text to begin with": (
        lambda: wg.fori_loop(0, 2, lambda i, x: x, "text"),
        TypeError,
        "fori_loop: the value is str, expected a tensor or a tree of tensors",
    ),
    "a float as a bound": (
        lambda: wg.fori_loop(0, 2.5, lambda i, x: x, ONE),  # type: ignore[arg-type]
        TypeError,
        "fori_loop: upper is an integer or an integer tensor of shape (), got float 2.5",
    ),
    "many bounds": (
        lambda: wg.fori_loop(wg.tensor([1, 2]), 3, lambda i, x: x, ONE),
        TypeError,
        "fori_loop: lower is an integer or an integer tensor of shape (), got wengert.int64 of shape (2,)",
    ),
    "two values to begin with": (
        lambda: wg.while_loop(lambda x: x > 0, lambda x: x, ONE, carried_inputs=(ONE,)),  # type: ignore[call-overload]
        TypeError,
        "while_loop: init_val and carried_inputs are two forms of one argument; give one",
    ),
    "a value instead of a tuple": (
        lambda: wg.while_loop(lambda x: x > 0, lambda x: x, carried_inputs=ONE),  # type: ignore[call-overload]
        TypeError,
        "while_loop: carried_inputs is a tuple, got Tensor",
    ),
    "nothing to begin with": (
        lambda: wg.while_loop(lambda x: x > 0, lambda x: x),  # type: ignore[call-overload]
        TypeError,
        "while_loop: the third argument is the value to begin with, init_val",
    ),
    "no function": (
        lambda: wg.while_loop(True, lambda x: x, ONE),  # type: ignore[call-overload]
        TypeError,
        "while_loop: a function as cond_fun expected, got bool",
    ),
}

test_messages = message_tests(SITUATIONS)
