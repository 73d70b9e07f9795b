"""Random settings and shapes of layers and losses, keyword by keyword, against their definitions in NumPy.

What a layer makes of its inputs is compared with `layer_reference.py` and `conv_reference.py`, alone and in a
batch, and its derivatives, backwards and forwards, with differences of the definition.
Each family draws a call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from hypothesis import given, strategies as st
from samples import layer_calls, loss_calls
from samples.layer_draws import Call, Source
from support import examples

FAMILIES = [
    layer_calls.activations,
    layer_calls.similarities,
    layer_calls.paddings,
    layer_calls.poolings,
    layer_calls.norms,
    layer_calls.resamplings,
    layer_calls.recurrences,
    loss_calls.elementwise_losses,
    loss_calls.class_losses,
    loss_calls.margins,
    loss_calls.maps,
    loss_calls.tables,
    loss_calls.moves,
]


def check(call: Call, rng: np.random.Generator) -> None:
    """Value and shape, and the gradient along one direction against differences of the definition."""
    inputs = [wg.tensor(x, requires_grad=True) for x in call.inputs]
    before = [x.copy() for x in call.inputs]
    out = call.function(*inputs)
    want = np.asarray(call.definition(*call.inputs))
    assert tuple(out.shape) == want.shape, call.text
    np.testing.assert_allclose(out.detach().numpy(), want, rtol=1e-9, atol=1e-9, err_msg=call.text)
    for x, y in zip(inputs, before):
        np.testing.assert_array_equal(x.detach().numpy(), y, err_msg=call.text)
    if not out.numel() or not call.smooth:
        return
    u = rng.normal(size=want.shape)
    (out * wg.tensor(u)).sum().backward()
    directions = [rng.normal(size=x.shape) for x in call.inputs]
    slope = sum((x.grad.numpy() * v).sum() for x, v in zip(inputs, directions))
    both = []
    for h in (1e-6, -1e-6):
        moved = [x + h * v for x, v in zip(call.inputs, directions)]
        both.append((np.asarray(call.definition(*moved)) * u).sum())
    difference = (both[0] - both[1]) / 2e-6
    size = 1 + abs(difference) + float(np.abs(want * u).sum())
    assert abs(slope - difference) < 2e-5 * size, (call.text, slope, difference)
    plain = [x.detach() for x in inputs]
    _, tangent = wg.jvp(call.function, tuple(plain), tuple(map(wg.tensor, directions)))
    assert abs(float((tangent.detach().numpy() * u).sum()) - slope) < 1e-8 * size, (call.text, "jvp")


def check_in_a_batch(call: Call) -> None:
    """Two examples at once, the second of them a little smaller."""
    pairs = [np.stack([x, 0.9 * x]) for x in call.inputs]
    out = wg.vmap(call.function)(*map(wg.tensor, pairs))
    want = np.stack([call.definition(*[x[i] for x in pairs]) for i in range(2)])
    np.testing.assert_allclose(out.detach().numpy(), want, rtol=1e-9, atol=1e-9, err_msg=call.text)


@pytest.mark.parametrize("family", FAMILIES, ids=[f.__name__ for f in FAMILIES])
@examples(25)
@given(seed=st.integers(0, 2**32 - 1))
def test_layers_are_what_their_definitions_say(family: Callable[[Source], Any], seed: int) -> None:
    source = Source(seed)
    call = family(source)
    check(call, source.rng)
    if source.one(True, False):
        check_in_a_batch(call)
