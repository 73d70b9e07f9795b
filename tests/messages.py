"""What must raise, in whole messages: the form of a table of such calls, and the test over a table."""

from collections.abc import Callable
from typing import Any

import pytest
import wengert as wg

#: What goes wrong, the class of the exception, the whole message.
Situations = dict[str, tuple[Callable[[], Any], type[Exception], str]]


def assert_message(call: Callable[[], Any], kind: type[Exception], message: str) -> None:
    """`call` raises this exception with this whole message, which says nothing of the library's insides."""
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == message
    assert "internal" not in message


def assert_usable() -> None:
    """Whatever happened, the next computation is not affected."""
    x = wg.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert wg.is_grad_enabled()
    assert not wg.is_autocast_enabled()
    assert wg.vmap(wg.grad(lambda x: x.sin()))(wg.zeros(2)).tolist() == [1.0, 1.0]


def message_tests(situations: Situations) -> Callable[[str], None]:
    """A test of every row: its message, and that nothing stays behind."""

    @pytest.mark.parametrize("name", list(situations))
    def test(name: str) -> None:
        assert_message(*situations[name])
        assert_usable()

    return test
