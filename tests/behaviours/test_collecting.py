"""Hooks and Python's garbage collector: looking for cycles costs as much as the tape is long,
and finds them all.
"""

import gc
import weakref
from typing import Any

import pytest
import wengert as wg
from wengert import _core


class Token:
    """Something to watch."""


@pytest.fixture
def automatic() -> Any:
    """Collections as Python starts them, from a clean slate: a full one waits until what is new is a quarter
    of all that is old, so what other tests keep is set aside.
    """
    gc.collect()
    gc.freeze()
    gc.collect()
    enabled = gc.isenabled()
    gc.enable()
    yield
    if not enabled:
        gc.disable()


@pytest.mark.parametrize("hooks", ["each", "one"])
def test_hooks_on_a_long_chain(automatic: None, hooks: str) -> None:
    def walked(count: int) -> int:
        before = _core._entries_walked()
        y = wg.ones(1, requires_grad=True)
        for i in range(count):
            y = y * 1.0
            if hooks == "each" or i == 0:
                y.register_hook(lambda g: g)
        return int(_core._entries_walked() - before)

    walked(2000)
    # A walk is as long as the chain, and there is one whenever the chain has grown by a part of that.
    assert walked(20_000) < 20 * 20_000


def test_cycles_are_found_without_being_asked(automatic: None) -> None:
    alive: list[weakref.ref[Token]] = []
    most = 0
    chain = wg.ones(1, requires_grad=True)
    for i in range(20_000):
        token = Token()
        y = wg.ones(1, requires_grad=True) * 2
        y.register_hook(lambda g, y=y, token=token: g)
        alive.append(weakref.ref(token))
        # A long chain beside it is no reason not to look.
        chain = chain * 1.0
        chain.register_hook(lambda g: g)
        if i % 500 == 499:
            alive = [ref for ref in alive if ref() is not None]
            most = max(most, len(alive))
    assert most < 15_000
    del y, token
    gc.collect()
    assert not [ref for ref in alive if ref() is not None]
