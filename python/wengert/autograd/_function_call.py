"""One call of an `autograd.Function`: takes arguments and results apart, runs the static methods of the
class, and checks what they return.
"""

from collections.abc import Callable
from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert.autograd._context import FunctionCtx, VmapInfo
from wengert.autograd._once import is_once
from wengert.autograd._rules import Kept, Plan, Rule, Saving, aval, check_like, restored, zeros
from wengert.tree import tree_leaves

__all__ = ["FunctionCall", "backward_of", "is_missing", "missing"]


def missing(method: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a static method of the base class, to be overridden."""
    method._missing = True  # type: ignore[attr-defined]
    return method


def is_missing(method: Callable[..., Any]) -> bool:
    """Whether a class has not overridden this static method."""
    return getattr(method, "_missing", False)


def backward_of(cls: Any) -> Callable[..., Any] | None:
    """The reverse rule of a class, under either name."""
    return next((m for m in (cls.backward, cls.vjp) if not is_missing(m)), None)


class FunctionCall(Rule):
    """One call of the class `cls`."""

    __slots__ = (
        "arguments", "attributes", "cls", "ctx", "dirty", "for_backward", "for_forward", "inputs", "name", "needs",
        "outputs", "positions", "template",
    )  # fmt: skip

    def __init__(self, cls: Any, args: tuple[Any, ...]) -> None:
        self.cls = cls
        self.name = cls.__name__
        self.positions = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        # The tensors' places stay empty: what the tape keeps is decided by the forward.
        self.arguments = [None if isinstance(x, Tensor) else x for x in args]
        self.needs = tuple([isinstance(x, Tensor) and _core._is_differentiated(x) for x in args])
        self.ctx: FunctionCtx | None = None
        self.dirty: list[tuple[int, int]] = []
        self.template: Any = None
        self.attributes: dict[str, Kept] = {}
        self.for_backward: list[int | None] = []
        self.for_forward: list[int | None] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    # ---- forward ----------------------------------------------------------------------------------------

    def filled(self, inputs: list[Any]) -> tuple[Any, ...]:
        """The arguments with these tensors in their places."""
        args = list(self.arguments)
        for i, x in zip(self.positions, inputs):
            args[i] = x
        return tuple(args)

    def assembled(self, outputs: list[Tensor]) -> Any:
        """The result with these tensors in their places."""
        many, items = self.template
        values = iter(outputs)
        filled = [next(values) if placed else item for placed, item in items]
        return many(filled) if many else filled[0]

    def forget(self) -> None:
        """Lets go of what only the caller needs."""
        many, items = self.template
        self.template = (many, [(placed, None) for placed, _ in items])

    def forward(self, inputs: list[Tensor]) -> tuple[FunctionCtx, Any]:
        """Runs the user's forward: its context and its result."""
        args = self.filled(inputs)
        ctx = FunctionCtx(self.needs)
        if is_missing(self.cls.setup_context):
            return ctx, self.cls.forward(ctx, *args)
        result = self.cls.forward(*args)
        self.cls.setup_context(ctx, args, result)
        return ctx, result

    def split(self, result: Any) -> list[Tensor]:
        """The tensors of a result; remembers where they were."""
        many = list if isinstance(result, list) else tuple if isinstance(result, tuple) else None
        items = list(result) if many else [result]
        placed = [isinstance(y, Tensor) for y in items]
        for y, there in zip(items, placed):
            if not there and any(isinstance(leaf, Tensor) for leaf in tree_leaves(y)):
                raise TypeError(
                    f"{self.name}.forward returned {type(y).__name__} with tensors in it, whose gradients "
                    "would be lost; return a tensor or a tuple of tensors"
                )
        self.template = (many, [(p, None if p else y) for p, y in zip(placed, items)])
        return [y for y in items if isinstance(y, Tensor)]

    def collect(self, ctx: FunctionCtx, inputs: list[Tensor], outputs: list[Tensor]) -> Saving:
        """What the context wants to be saved."""
        saving = Saving(inputs, outputs, ctx._dirty)
        self.for_backward = self.for_forward = [saving.add(t) for t in ctx._for_backward]
        if ctx._for_forward is not None:
            self.for_forward = [saving.add(t) for t in ctx._for_forward]
        if named := vars(ctx):
            # What the forward recorded itself, under enable_grad, stays as it is: backward may walk it. When
            # it is traced again, its arguments may be recorded; the first run has decided.
            known = self.attributes
            kept = {name: saving.add_tree(value, recorded=name in known) for name, value in named.items()}
            self.attributes = {k: v for k, v in kept.items() if any(at is not None for at, _ in v[0])}
        return saving

    def settle(
        self, ctx: FunctionCtx, inputs: list[Tensor], outputs: list[Tensor]
    ) -> tuple[list[Tensor], Plan]:
        """Hidden outputs and plan of the first run."""
        saving = self.collect(ctx, inputs, outputs)
        for name in self.attributes:
            delattr(ctx, name)
        self.ctx = ctx
        if ctx._dirty:
            self.find_dirty({id(t) for t in ctx._dirty}, inputs, outputs)
        constant = {id(t) for t in ctx._constant}
        self.inputs, self.outputs = [aval(x) for x in inputs], [aval(y) for y in outputs]
        plan = (
            len(outputs),
            saving.sources,
            [id(y) in constant for y in outputs],
            self.traceable(saving),
            [j for _, j in self.dirty],
        )
        ctx._for_backward, ctx._for_forward, ctx._constant, ctx._dirty = (), None, (), ()
        return saving.hidden, plan

    def find_dirty(self, dirty: set[int], inputs: list[Tensor], outputs: list[Tensor]) -> None:
        """Which input each dirty output is."""
        places = {id(x): i for i, x in enumerate(inputs)}
        self.dirty = [(places[id(y)], j) for j, y in enumerate(outputs) if id(y) in dirty and id(y) in places]
        if len(self.dirty) < len(dirty):
            raise RuntimeError(
                f"{self.name}: mark_dirty names a tensor that the forward does not return; it takes inputs "
                "that are outputs too"
            )

    def traceable(self, saving: Saving) -> bool:
        """Whether hidden outputs have derivatives."""
        floats = any(t.dtype.is_differentiable for t in saving.hidden)
        return floats and not is_once(backward_of(self.cls))

    def run(self, inputs: list[Tensor], hidden: bool) -> tuple[list[Tensor], Plan]:
        """The forward."""
        ctx, result = self.forward(inputs)
        outputs = self.split(result)
        extra, plan = self.settle(ctx, inputs, outputs)
        return (outputs + extra if hidden else outputs), plan

    def retrace(self, inputs: list[Tensor]) -> list[Tensor]:
        """The forward once more, with a context of its own."""
        if self.dirty:
            raise RuntimeError(
                f"{self.name}: its forward writes to its arguments and cannot run again, which a derivative "
                "that it does not define needs; save inputs and outputs only, and define backward and jvp"
            )
        ctx, result = self.forward(inputs)
        items = result if isinstance(result, (tuple, list)) else (result,)
        outputs = [y for y in items if isinstance(y, Tensor)]
        return outputs + self.collect(ctx, inputs, outputs).hidden

    # ---- rules ------------------------------------------------------------------------------------------

    def context(self, saved: list[Tensor], places: list[int | None], needs: tuple[bool, ...]) -> FunctionCtx:
        """The context for one call of a rule."""
        ctx = FunctionCtx(needs)
        if self.ctx is not None:
            vars(ctx).update(vars(self.ctx))
            ctx._materialize = self.ctx._materialize
        vars(ctx).update((name, restored(kept, saved)) for name, kept in self.attributes.items())
        ctx._saved = tuple(None if i is None else saved[i] for i in places)
        return ctx

    def spread(self, values: list[Any], like: list[Any], ctx: FunctionCtx) -> list[Any]:
        """The values with zeros for None, unless the context wants None."""
        if not ctx._materialize:
            return values
        return [zeros(z) if v is None else v for v, z in zip(values, like)]

    def vjp(
        self, saved: list[Tensor], cotangents: list[Tensor | None], needs: tuple[bool, ...]
    ) -> list[Tensor | None]:
        """The user's backward, checked."""
        backward = backward_of(self.cls)
        if backward is None:
            raise NotImplementedError(
                f"{self.name} has no backward and cannot be differentiated in reverse mode; define a static "
                "method backward(ctx, *gradients), one gradient per output"
            )
        wanted = [False] * len(self.arguments)
        for i, need in zip(self.positions, needs):
            wanted[i] = need
        ctx = self.context(saved, self.for_backward, tuple(wanted))
        given = iter(self.spread(cotangents, self.outputs, ctx))
        gradients = backward(ctx, *[next(given) if placed else None for placed, _ in self.template[1]])
        if named := vars(ctx):
            self.remember(named)
        return self.checked_gradients(gradients, needs)

    def remember(self, named: dict[str, Any]) -> None:
        """Keeps the attributes that a backward has set, but not its tensors,
        which belong to that backward.
        """
        plain = {
            name: value
            for name, value in named.items()
            if name not in self.attributes and not any(isinstance(x, Tensor) for x in tree_leaves(value))
        }
        if plain and self.ctx is not None:
            vars(self.ctx).update(plain)

    def checked_gradients(self, gradients: Any, needs: tuple[bool, ...]) -> list[Tensor | None]:
        """One gradient per tensor from one per argument."""
        who, count = f"{self.name}.backward", len(self.arguments)
        gradients = tuple(gradients) if isinstance(gradients, (tuple, list)) else (gradients,)
        while len(gradients) > count and gradients[-1] is None:
            gradients = gradients[:-1]
        if len(gradients) != count:
            raise RuntimeError(
                f"{who} returned {len(gradients)} gradients, expected {count}: one per argument of forward, "
                "None for an argument without one"
            )
        for i, g in enumerate(gradients):
            if g is not None and i not in self.positions:
                kind = type(self.arguments[i]).__name__
                raise RuntimeError(
                    f"{who} returned a gradient for argument {i}, which is no tensor but {kind}; return None "
                    f"there"
                )
        out: list[Tensor | None] = []
        for i, like, need in zip(self.positions, self.inputs, needs):
            g = gradients[i]
            if g is not None:
                check_like(g, like, True, who, f"the gradient of argument {i}")
            out.append(g if need and like[1].is_differentiable else None)
        return out

    def jvp(
        self, inputs: list[Tensor], saved: list[Tensor], tangents: list[Tensor | None]
    ) -> tuple[None, list[Tensor | None]]:
        """The user's jvp, checked."""
        ctx = self.context(saved, self.for_forward, self.needs)
        moved = self.cls.jvp(ctx, *self.filled(self.spread(tangents, self.inputs, ctx)))
        moved = tuple(moved) if isinstance(moved, (tuple, list)) else (moved,)
        items = self.template[1]
        if len(moved) != len(items):
            raise RuntimeError(
                f"{self.name}.jvp returned {len(moved)} tangents, expected {len(items)}: one per output of "
                f"forward"
            )
        moved = tuple(t for t, (placed, _) in zip(moved, items) if placed)
        for i, (t, like) in enumerate(zip(moved, self.outputs)):
            if t is not None:
                check_like(t, like, False, f"{self.name}.jvp", f"the tangent of output {i}")
        return None, list(moved)

    def batch(
        self, values: list[Tensor], axes: list[int | None], size: int, randomness: str
    ) -> tuple[list[Tensor], list[int | None]]:
        """The user's vmap: outputs and their batch axes."""
        info = VmapInfo(size, randomness)
        in_dims: list[Any] = [None] * len(self.arguments)
        for i, axis in zip(self.positions, axes):
            in_dims[i] = axis
        found = self.cls.vmap(info, tuple(in_dims), *self.filled(values))
        if not (isinstance(found, tuple) and len(found) == 2):
            raise RuntimeError(
                f"{self.name}.vmap returned no pair of outputs and the places of their batch axes"
            )
        result, out_dims = found
        outputs = self.split(result)
        _, items = self.template
        dims = list(out_dims) if isinstance(out_dims, (tuple, list)) else [out_dims] * len(items)
        if len(dims) != len(items):
            raise RuntimeError(
                f"{self.name}.vmap returned the places of {len(dims)} batch axes for {len(items)} outputs"
            )
        dims = [d for d, (placed, _) in zip(dims, items) if placed]
        return outputs, [self.axis(i, y, d, size) for i, (y, d) in enumerate(zip(outputs, dims))]

    def axis(self, i: int, y: Tensor, axis: Any, size: int) -> int | None:
        """The place of the batch axis of an output that the user's vmap returned, checked."""
        if axis is None:
            return None
        if not isinstance(axis, int) or isinstance(axis, bool):
            raise TypeError(
                f"{self.name}.vmap returned {axis!r} as the place of the batch axis of output {i}, "
                "expected a number or None"
            )
        if not -y.ndim <= axis < y.ndim:
            raise IndexError(
                f"{self.name}.vmap returned {axis} as the place of the batch axis of output {i}, which has "
                f"{y.ndim} axes; give one of them, or None for an output that is the same for the whole batch"
            )
        if y.shape[axis] != size:
            raise RuntimeError(
                f"{self.name}.vmap returned output {i} of shape {tuple(y.shape)}, expected {size} along axis "
                f"{axis}, the size of the batch"
            )
        return axis % y.ndim

    def describe(self, inputs: list[Tensor], outputs: list[Tensor]) -> tuple[list[Tensor], Plan]:
        """What the rules need of one example whose outputs are known."""
        if is_missing(self.cls.setup_context):
            ctx, result = self.forward(inputs)
            items = result if isinstance(result, (tuple, list)) else (result,)
            return self.settle(ctx, inputs, [y for y in items if isinstance(y, Tensor)])
        ctx = FunctionCtx(self.needs)
        self.cls.setup_context(ctx, self.filled(inputs), self.assembled(outputs))
        return self.settle(ctx, inputs, outputs)

    def advice(self, attribute: str, error: BaseException) -> str:
        """What to define."""
        wanted = "jvp(ctx, *tangents)" if attribute == "jvp" else "backward(ctx, *gradients)"
        return (
            f"{self.name} has no {attribute}, and it could not be derived from what there is "
            f"({type(error).__name__}: {error}); define a static method {wanted}"
        )
