"""Reverse rules that are not differentiated themselves."""

import functools
from collections.abc import Callable
from typing import Any

from wengert._core import Tensor
from wengert.autograd._context import FunctionCtx
from wengert.autograd._rules import Plan, Rule
from wengert.tree import tree_flatten, tree_unflatten

__all__ = ["is_once", "once_differentiable"]


def is_once(backward: Callable[..., Any] | None) -> bool:
    """Whether a reverse rule is marked by `once_differentiable`."""
    return getattr(backward, "_once", False)


def _is(x: Any) -> bool:
    return isinstance(x, Tensor)


class _Once(Rule):
    """A backward as a function without derivatives, of what it reads and its cotangents."""

    __slots__ = ("attributes", "backward", "materialize", "name", "needs", "template", "tensors", "where")

    def __init__(self, backward: Callable[..., Any], ctx: FunctionCtx, gradients: tuple[Any, ...]) -> None:
        self.backward = backward
        self.needs, self.materialize = ctx.needs_input_grad, ctx._materialize
        self.name = backward.__qualname__.split("<locals>.")[-1]
        leaves, self.attributes = tree_flatten(vars(ctx))
        read = (*gradients, *(ctx._saved or ()), *leaves)
        self.tensors = [t for t in read if isinstance(t, Tensor)]
        # Which gradients and saved values are tensors, and of the attributes what is none.
        named = [(_is(x), None if _is(x) else x) for x in leaves]
        self.where = ([_is(g) for g in gradients], [_is(t) for t in ctx._saved or ()], named)
        self.template: Any = None

    def run(self, inputs: list[Tensor], hidden: bool) -> tuple[list[Tensor], Plan]:
        """The backward, on plain values."""
        values = iter(inputs)
        gradients, saved, named = self.where
        given = [next(values) if there else None for there in gradients]
        ctx = FunctionCtx(self.needs)
        ctx._materialize = self.materialize
        ctx._saved = tuple(next(values) if there else None for there in saved)
        filled = [next(values) if there else x for there, x in named]
        vars(ctx).update(tree_unflatten(self.attributes, filled))
        result = self.backward(ctx, *given)
        many = isinstance(result, (tuple, list))
        items = list(result) if many else [result]
        outputs = [y for y in items if isinstance(y, Tensor)]
        self.template = (many, [(_is(y), None if _is(y) else y) for y in items])
        return outputs, (len(outputs), [], [False] * len(outputs), False, [])

    def refuse(self) -> RuntimeError:
        """The error for a derivative of the backward."""
        return RuntimeError(
            f"{self.name} is marked as once_differentiable, and a derivative of it is asked for; write it "
            "with operations of wengert and take the mark off"
        )

    def vjp(self, saved: Any, cotangents: Any, needs: Any) -> Any:
        """There is none."""
        raise self.refuse()

    def jvp(self, inputs: Any, saved: Any, tangents: Any) -> Any:
        """There is none."""
        raise self.refuse()


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a `backward` that cannot be differentiated itself, because it leaves wengert (for NumPy, say) or
    for speed. It is given plain values; a second derivative raises RuntimeError, and forward mode traces the
    forward.
    """

    @functools.wraps(backward)
    def once(ctx: FunctionCtx, *gradients: Any) -> Any:
        call = _Once(backward, ctx, gradients)
        inputs, call.tensors = call.tensors, []
        outputs = iter(call.call(inputs))
        many, items = call.template
        filled = [next(outputs) if placed else item for placed, item in items]
        return tuple(filled) if many else filled[0]

    once._once = True  # type: ignore[attr-defined]
    return once
