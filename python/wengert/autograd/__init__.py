"""Reverse mode on the tape, as PyTorch spells it: `autograd.grad`, `autograd.backward`, recording modes."""

from collections.abc import Sequence
from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert.autograd import graph
from wengert.autograd.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)

__all__ = [
    "backward",
    "enable_grad",
    "grad",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
]

Tensors = Tensor | Sequence[Tensor]


def _list(tensors: Any) -> list[Any]:
    return [tensors] if isinstance(tensors, Tensor) or tensors is None else list(tensors)


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Gradients of (the sum of) `outputs` with respect to `inputs`; no `.grad` changes.

    Args:
        outputs: tensors with a graph.
        inputs: tensors that they depend on, leaves or not.
        grad_outputs: a cotangent per output; may be None for outputs with one element.
        retain_graph: keep what was saved, for another backward. Defaults to `create_graph`.
        create_graph: record the backward itself, for higher derivatives.
        allow_unused: give None for inputs that no output depends on, instead of raising.
        materialize_grads: give zeros for them.

    Raises:
        RuntimeError: for an input that no output depends on, without `allow_unused` and `materialize_grads`.

    Example:
        >>> x = wg.tensor(3.0, requires_grad=True)
        >>> (g,) = wg.autograd.grad(x**2, x, create_graph=True)
        >>> wg.autograd.grad(g, x)
        (tensor(2.),)
    """
    outputs, inputs = _list(outputs), _list(inputs)
    seeds = [None] * len(outputs) if grad_outputs is None else _list(grad_outputs)
    if len(seeds) != len(outputs):
        raise ValueError(f"grad: {len(seeds)} cotangents given for {len(outputs)} outputs")
    retain = create_graph if retain_graph is None else retain_graph
    if materialize_grads and allow_unused is False:
        raise ValueError("grad: materialize_grads=True needs allow_unused=True")
    found = _core._grad(outputs, inputs, seeds, retain, create_graph)
    for i, (g, x) in enumerate(zip(found, inputs)):
        if g is not None:
            continue
        if materialize_grads:
            found[i] = _core.zeros_like(x.detach())
        elif not allow_unused:
            raise RuntimeError(
                f"grad: no output depends on input {i} of shape {tuple(x.shape)}; pass allow_unused=True for None in "
                "its place, or materialize_grads=True for zeros"
            )
    return tuple(found)


def backward(
    tensors: Tensors,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Back-propagates from `tensors` and adds the gradients of all leaves (or of `inputs`) to their `.grad`.

    Args:
        tensors: where to start.
        grad_tensors: a cotangent per tensor; may be None for tensors with one element.
        retain_graph: keep what was saved, for another backward. Defaults to `create_graph`.
        create_graph: record the backward itself, for higher derivatives.
        inputs: the leaves to accumulate into; all of them by default.
    """
    roots = _list(tensors)
    seeds = [None] * len(roots) if grad_tensors is None else _list(grad_tensors)
    if len(seeds) != len(roots):
        raise ValueError(f"backward: {len(seeds)} cotangents given for {len(roots)} tensors")
    if len(roots) == 1:
        roots[0].backward(seeds[0], retain_graph, create_graph, inputs)
        return
    # One walk over all roots: the sum of their products with the cotangents.
    total = None
    for y, g in zip(roots, seeds):
        if g is None and y.numel() != 1:
            raise RuntimeError(
                f"backward: a tensor of shape {tuple(y.shape)} needs its cotangent in grad_tensors, for it is no scalar"
            )
        part = (y if g is None else y * g).sum()
        total = part if total is None else total + part
    if total is not None:
        total.backward(None, retain_graph, create_graph, inputs)
