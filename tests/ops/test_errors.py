"""Whole messages of what must raise, and that nothing stays behind."""

import warnings

import pytest
from messages import message_tests
from situations import SITUATIONS, leaf, ones
from wengert.nn import functional as F

test_message = message_tests(SITUATIONS)


@pytest.mark.parametrize("name", list(SITUATIONS))
def test_messages_are_complete_sentences_without_internals(name: str) -> None:
    message = SITUATIONS[name][2]
    assert "internal" not in message
    assert "panicked" not in message
    assert len(message) > 20


def test_gradient_of_a_non_leaf_warns() -> None:
    y = leaf(2) * 2
    with pytest.warns(UserWarning, match=r"retain_grad\(\)"):
        assert y.grad is None
    y.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y.grad is None


def test_mse_of_shapes_that_only_broadcast_warns() -> None:
    with pytest.warns(UserWarning, match=r"\(3, 1\).*\(3,\)"):
        F.mse_loss(ones(3, 1), ones(3))
