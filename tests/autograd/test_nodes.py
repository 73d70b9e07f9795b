"""The tape's entries as Python sees them."""

import pytest
import wengert as wg
from wengert.autograd.graph import get_gradient_edge


def test_what_an_entry_says() -> None:
    x = wg.ones(2, 3, requires_grad=True)
    w = wg.full((3, 4), 2.0, requires_grad=True)
    node = (x @ w).grad_fn
    assert node.name() == "MatmulBackward"
    assert node.op == "matmul"
    assert not node.is_leaf
    assert [v.name for v in node.outputs] == ["output 0"]
    assert node.outputs[0].shape == (2, 4)
    assert node.outputs[0].dtype == wg.float32
    assert node.outputs[0].device == x.device
    assert [v.shape for v in node.inputs] == [(2, 3), (3, 4)]
    assert [(v.name, v.nbytes) for v in node.saved] == [("input 0", 24), ("input 1", 48)]
    assert node.saved_bytes == 72
    assert repr(node.saved[0]) == "<input 0: float32(2, 3), 24 bytes>"
    leaf, position = node.next_functions[1]
    assert leaf.is_leaf
    assert (leaf.op, leaf.name(), position) == ("leaf", "AccumulateGrad", 0)
    assert get_gradient_edge(w) == (leaf, 0)


def test_inputs_without_gradient_are_none() -> None:
    node = (wg.ones(3) * wg.ones(3, requires_grad=True)).grad_fn
    assert node.inputs[0] is None
    assert node.inputs[1].shape == (3,)
    assert node.next_functions[0] == (None, 0)
    assert [v.name for v in node.saved] == ["input 0"]


def test_saved_values_go_with_backward() -> None:
    y = wg.ones(2, requires_grad=True).exp()
    node = y.grad_fn
    assert not node.is_freed
    y.sum().backward()
    assert node.is_freed
    assert node.saved == []


def test_metadata_stays_with_the_entry() -> None:
    y = wg.ones(2, requires_grad=True).exp()
    y.grad_fn.metadata["name"] = "first"
    assert y.grad_fn.metadata == {"name": "first"}
    assert y.sum().grad_fn.metadata == {}


def test_calling_an_entry_applies_its_rule() -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    c = wg.tensor([[1.0], [10.0]])
    node = (x * c).grad_fn
    ones = wg.ones(2, 2)
    gradient, constant = node(ones)
    assert gradient.tolist() == [11.0, 11.0]
    assert constant is None
    assert node(None) == (None, None)
    # Nothing was freed, nothing accumulated.
    assert not node.is_freed
    assert x.grad is None


def test_calls_that_cannot_work() -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    with pytest.raises(RuntimeError) as caught:
        y.grad_fn()
    assert str(caught.value) == "ExpBackward: 0 cotangents given, expected 1, one per output (None for zero)"
    with pytest.raises(wg.ShapeError) as caught:
        y.grad_fn(wg.ones(3))
    assert (
        str(caught.value)
        == "ExpBackward: cotangent 0 has shape (3,), expected (2,) as the output it belongs to"
    )
    with pytest.raises(RuntimeError) as caught:
        get_gradient_edge(x).node(wg.ones(2))
    assert (
        str(caught.value)
        == "the tape entry of a leaf has no reverse rule; its gradient is added to .grad of the leaf"
    )
    with pytest.raises(RuntimeError) as caught:
        get_gradient_edge(wg.ones(2))
    assert str(caught.value) == (
        "get_gradient_edge: the tensor of shape (2,) does not require a gradient; call requires_grad_() on "
        "it, or on an input before computing it"
    )
    y.sum().backward()
    with pytest.raises(RuntimeError, match="the graph was already used and freed"):
        y.grad_fn(wg.ones(2))
