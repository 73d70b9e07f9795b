"""`autograd.Function`: functions whose derivatives are written by hand, as PyTorch spells them.

The forward runs on plain values and is not recorded; `backward`, `jvp` and `vmap` are, by whatever differentiates them,
so custom functions nest in every transform and have higher derivatives. A rule that is missing is derived: `jvp` as the
transpose of `backward` and the other way round, or from the forward where there is neither; `vmap` by batching what
the functions do.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from wengert import _core
from wengert._core import Tensor
from wengert.autograd.rules import Plan, Rule, Saving, aval, check_shape, zeros

__all__ = ["Function", "FunctionCtx", "VmapInfo", "once_differentiable"]


class VmapInfo(NamedTuple):
    """What the static method `vmap` of a `Function` is told of the batch."""

    batch_size: int
    randomness: str


class FunctionCtx:
    """What the forward of a `Function` leaves to its rules. Any attribute can be set on it.

    Tensors among the attributes are saved as those given to `save_for_backward` are; tensors inside lists and other
    objects are kept as they are and are constants to higher derivatives.
    """

    __slots__ = (
        "__dict__", "__weakref__", "_constant", "_dirty", "_for_backward", "_for_forward", "_materialize", "_saved",
        "needs_input_grad",
    )  # fmt: skip

    def __init__(self, needs: tuple[bool, ...]) -> None:
        """A context for arguments of which some need a gradient."""
        self.needs_input_grad = needs
        self._for_backward: tuple[Tensor | None, ...] = ()
        self._for_forward: tuple[Tensor | None, ...] | None = None
        self._constant: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._materialize = True
        self._saved: tuple[Tensor | None, ...] | None = None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for `backward`, where they are `ctx.saved_tensors`; also for `jvp`, unless
        `save_for_forward` says otherwise. Inputs and outputs cost nothing but their memory. For another tensor the
        inputs are kept in reserve, so that higher derivatives know where it came from; `once_differentiable` saves
        that.
        """
        self._for_backward = _checked(tensors, "save_for_backward")

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for `jvp`, where they are `ctx.saved_tensors`."""
        self._for_forward = _checked(tensors, "save_for_forward")

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What was kept, in `backward` and `jvp`."""
        if self._saved is None:
            raise RuntimeError("ctx.saved_tensors is read outside backward and jvp, the only places that have it")
        return self._saved

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Says which inputs the forward wrote to in place. It must return them."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Says which outputs have no derivative."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` and `jvp` are given zeros (the default) or None where nothing depends on an output."""
        self._materialize = value


def _checked(tensors: tuple[Any, ...], name: str) -> tuple[Tensor | None, ...]:
    for i, t in enumerate(tensors):
        if not (t is None or isinstance(t, Tensor)):
            raise TypeError(
                f"{name}: argument {i} is {type(t).__name__}, expected a tensor or None; keep other objects as "
                "attributes of ctx"
            )
    return tensors


class Function:
    """A function with derivatives written by hand. Derive from it, define static methods, and call `apply`.

    - `forward(ctx, *args)`, or `forward(*args)` with `setup_context(ctx, inputs, output)`: the value, one tensor or a
      tuple. Runs without recording; what it uses beside its arguments is constant.
    - `backward(ctx, *gradients)`: from one cotangent per output to one gradient per argument of the forward, None for
      those without. Also as `vjp`.
    - `jvp(ctx, *tangents)`: from one tangent per argument (None for what is no tensor) to one per output.
    - `vmap(info, in_dims, *args)`: the outputs of a whole batch and where their batch axes are.

    Raises:
        RuntimeError: in backward, for gradients of the wrong number or shape.
        NotImplementedError: for a rule that is neither defined nor derivable.

    Example:
        >>> class Sigmoid(wg.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         y = 1 / (1 + (-x).exp())
        ...         ctx.save_for_backward(y)
        ...         return y
        ...
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         (y,) = ctx.saved_tensors
        ...         return g * y * (1 - y)
        >>> x = wg.tensor(0.0, requires_grad=True)
        >>> Sigmoid.apply(x).backward()
        >>> x.grad
        tensor(0.2500)
    """

    # Accepted for PyTorch's sake: without a `vmap` the rule is always generated.
    generate_vmap_rule = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Functions are applied by their class."""
        name = type(self).__name__
        raise RuntimeError(f"{name}: an instance of an autograd.Function was called; use {name}.apply(...)")

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The value."""
        raise NotImplementedError("an autograd.Function needs a static method forward(ctx, *args)")

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple[Any, ...], output: Any) -> Any:
        """Fills the context, where the forward has none."""
        raise NotImplementedError("setup_context is called where it is defined only")

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: Any) -> Any:
        """The reverse rule."""
        raise NotImplementedError("backward is called where it is defined only")

    # PyTorch's other name of the reverse rule.
    vjp = backward

    @staticmethod
    def jvp(ctx: FunctionCtx, *tangents: Any) -> Any:
        """The forward rule."""
        raise NotImplementedError("jvp is called where it is defined only")

    @staticmethod
    def vmap(info: VmapInfo, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """The batching rule."""
        raise NotImplementedError("vmap is called where it is defined only")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Calls the function. Tensors among the arguments themselves are differentiated; those inside containers
        are constants.
        """
        batches = cls.vmap is not Function.vmap
        if batches and cls.generate_vmap_rule:
            raise RuntimeError(
                f"{cls.__name__}: generate_vmap_rule=True asks for a generated batching rule, and there is a static "
                "method vmap; keep one of them"
            )
        call = _Call(cls, args)
        backward = _backward_of(cls)
        jvp = cls.jvp is not Function.jvp
        reverse = "transpose" if backward is None and jvp else "own"
        derivable = backward is not None and not getattr(backward, "_once", False)
        forward = "own" if jvp else "transpose" if derivable else "trace"
        tensors = [args[i] for i in call.positions]
        outputs = call.call(tensors, reverse, forward, batches=batches)
        for i, j in call.dirty:
            _core._take_over(tensors[i], outputs[j], cls.__name__)
            outputs[j] = tensors[i]
        return call.assembled(outputs)


def _backward_of(cls: type[Function]) -> Callable[..., Any] | None:
    if cls.backward is not Function.backward:
        return cls.backward
    return None if cls.vjp is Function.vjp else cls.vjp


class _Call(Rule):
    """One call of a `Function`."""

    __slots__ = (
        "arguments", "attributes", "cls", "ctx", "dirty", "for_backward", "for_forward", "inputs", "name", "needs",
        "outputs", "positions", "template",
    )  # fmt: skip

    def __init__(self, cls: type[Function], args: tuple[Any, ...]) -> None:
        self.cls = cls
        self.name = cls.__name__
        self.positions = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        # The tensors' places stay empty: what the tape keeps is decided by the forward.
        self.arguments = [None if isinstance(x, Tensor) else x for x in args]
        recorded = [isinstance(x, Tensor) and _core._is_recorded(x) for x in args]
        self.needs = tuple(recorded)
        self.ctx: FunctionCtx | None = None
        self.dirty: list[tuple[int, int]] = []
        self.template: Any = None
        self.attributes: dict[str, int] = {}
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
        return tuple(filled) if many else filled[0]

    def forward(self, inputs: list[Tensor]) -> tuple[FunctionCtx, Any]:
        """Runs the user's forward: its context and its result."""
        args = self.filled(inputs)
        ctx = FunctionCtx(self.needs)
        if self.cls.setup_context is Function.setup_context:
            return ctx, self.cls.forward(ctx, *args)
        result = self.cls.forward(*args)
        self.cls.setup_context(ctx, args, result)
        return ctx, result

    def split(self, result: Any) -> list[Tensor]:
        """The tensors of a result; remembers where they were."""
        many = isinstance(result, (tuple, list))
        items = list(result) if many else [result]
        placed = [isinstance(y, Tensor) for y in items]
        self.template = (many, [(p, None if p else y) for p, y in zip(placed, items)])
        return [y for y in items if isinstance(y, Tensor)]

    def collect(self, ctx: FunctionCtx, inputs: list[Tensor], outputs: list[Tensor]) -> Saving:
        """What the context wants to be saved."""
        saving = Saving(inputs, outputs)
        place = lambda t: None if t is None else saving.add(t)
        self.for_backward = [place(t) for t in ctx._for_backward]
        later = ctx._for_backward if ctx._for_forward is None else ctx._for_forward
        self.for_forward = [place(t) for t in later]
        named = {k: v for k, v in vars(ctx).items() if isinstance(v, Tensor)}
        self.attributes = {k: saving.add(v) for k, v in named.items()}
        return saving

    def settle(
        self, ctx: FunctionCtx, inputs: list[Tensor], outputs: list[Tensor]
    ) -> tuple[list[Tensor], Plan]:
        """Hidden outputs and plan of the first run."""
        saving = self.collect(ctx, inputs, outputs)
        for name in self.attributes:
            delattr(ctx, name)
        self.ctx = ctx
        constant = {id(t) for t in ctx._constant}
        dirty = {id(t) for t in ctx._dirty}
        self.dirty = [
            (i, j) for j, y in enumerate(outputs) for i, x in enumerate(inputs) if y is x and id(y) in dirty
        ]
        if len(self.dirty) < len(dirty):
            raise RuntimeError(
                f"{self.name}: mark_dirty names a tensor that the forward does not return; it takes inputs that are "
                "outputs too"
            )
        ctx._for_backward, ctx._for_forward, ctx._constant, ctx._dirty = (), None, (), ()
        self.inputs, self.outputs = [aval(x) for x in inputs], [aval(y) for y in outputs]
        once = getattr(_backward_of(self.cls), "_once", False)
        traceable = not once and any(t.dtype.is_floating_point for t in saving.hidden)
        plan = (len(outputs), saving.sources, [id(y) in constant for y in outputs], traceable)
        return saving.hidden, plan

    def run(self, inputs: list[Tensor], hidden: bool) -> tuple[list[Tensor], Plan]:
        """The forward."""
        ctx, result = self.forward(inputs)
        outputs = self.split(result)
        extra, plan = self.settle(ctx, inputs, outputs)
        return (outputs + extra if hidden else outputs), plan

    def retrace(self, inputs: list[Tensor]) -> list[Tensor]:
        """The forward once more, with a context of its own."""
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
        vars(ctx).update((name, saved[i]) for name, i in self.attributes.items())
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
        backward = _backward_of(self.cls)
        if backward is None:
            raise NotImplementedError(
                f"{self.name} has no backward and cannot be differentiated in reverse mode; define a static method "
                "backward(ctx, *gradients), one gradient per output"
            )
        wanted = [False] * len(self.arguments)
        for i, need in zip(self.positions, needs):
            wanted[i] = need
        ctx = self.context(saved, self.for_backward, tuple(wanted))
        given = iter(self.spread(cotangents, self.outputs, ctx))
        gradients = backward(ctx, *[next(given) if placed else None for placed, _ in self.template[1]])
        return self.checked_gradients(gradients, needs)

    def checked_gradients(self, gradients: Any, needs: tuple[bool, ...]) -> list[Tensor | None]:
        """One gradient per tensor from one per argument."""
        who, count = f"{self.name}.backward", len(self.arguments)
        gradients = tuple(gradients) if isinstance(gradients, (tuple, list)) else (gradients,)
        while len(gradients) > count and gradients[-1] is None:
            gradients = gradients[:-1]
        if len(gradients) != count:
            raise RuntimeError(
                f"{who} returned {len(gradients)} gradients, expected {count}: one per argument of forward, None for "
                "an argument without one"
            )
        for i, g in enumerate(gradients):
            if g is not None and i not in self.positions:
                kind = type(self.arguments[i]).__name__
                raise RuntimeError(
                    f"{who} returned a gradient for argument {i}, which is no tensor but {kind}; return None there"
                )
        out: list[Tensor | None] = []
        for i, (shape, dtype, _), need in zip(self.positions, self.inputs, needs):
            g = gradients[i]
            if g is not None:
                check_shape(g, shape, True, who, f"the gradient of argument {i}")
            out.append(g if need and dtype.is_floating_point else None)
        return out

    def jvp(
        self, inputs: list[Tensor], saved: list[Tensor], tangents: list[Tensor | None]
    ) -> list[Tensor | None]:
        """The user's jvp, checked."""
        ctx = self.context(saved, self.for_forward, self.needs)
        moved = self.cls.jvp(ctx, *self.filled(self.spread(tangents, self.inputs, ctx)))
        moved = tuple(moved) if isinstance(moved, (tuple, list)) else (moved,)
        items = self.template[1]
        if len(moved) != len(items):
            raise RuntimeError(
                f"{self.name}.jvp returned {len(moved)} tangents, expected {len(items)}: one per output of forward"
            )
        moved = tuple(t for t, (placed, _) in zip(moved, items) if placed)
        for i, (t, (shape, _, _)) in enumerate(zip(moved, self.outputs)):
            if t is not None:
                check_shape(t, shape, False, f"{self.name}.jvp", f"the tangent of output {i}")
        return list(moved)

    def batch(
        self, values: list[Tensor], axes: list[int | None], size: int
    ) -> tuple[list[Tensor], list[int | None]]:
        """The user's vmap: outputs and their batch axes."""
        info = VmapInfo(size, "error")
        in_dims: list[Any] = [None] * len(self.arguments)
        for i, axis in zip(self.positions, axes):
            in_dims[i] = axis
        found = self.cls.vmap(info, tuple(in_dims), *self.filled(values))
        if not (isinstance(found, tuple) and len(found) == 2):
            raise RuntimeError(f"{self.name}.vmap returned no pair of outputs and the places of their batch axes")
        result, out_dims = found
        outputs = self.split(result)
        many, items = self.template
        dims = list(out_dims) if isinstance(out_dims, (tuple, list)) else [out_dims] * len(items)
        if len(dims) != len(items):
            raise RuntimeError(
                f"{self.name}.vmap returned the places of {len(dims)} batch axes for {len(items)} outputs"
            )
        dims = [d for d, (placed, _) in zip(dims, items) if placed]
        return outputs, [None if d is None else d % y.ndim for d, y in zip(dims, outputs)]

    def describe(self, inputs: list[Tensor], outputs: list[Tensor]) -> tuple[list[Tensor], Plan]:
        """What the rules need of one example whose outputs are known."""
        if self.cls.setup_context is Function.setup_context:
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


# ---- backward functions that are not differentiated -----------------------------------------------------------


def _is(x: Any) -> bool:
    return isinstance(x, Tensor)


class _Once(Rule):
    """A backward as a function without derivatives, of what it reads and its cotangents."""

    __slots__ = ("attributes", "backward", "name", "needs", "template", "tensors", "materialize", "where")

    def __init__(self, backward: Callable[..., Any], ctx: FunctionCtx, gradients: tuple[Any, ...]) -> None:
        self.backward = backward
        self.needs, self.materialize = ctx.needs_input_grad, ctx._materialize
        self.attributes = {k: v for k, v in vars(ctx).items() if not isinstance(v, Tensor)}
        self.name = backward.__qualname__.split("<locals>.")[-1]
        named = {k: v for k, v in vars(ctx).items() if isinstance(v, Tensor)}
        read = (*gradients, *(ctx._saved or ()), *named.values())
        self.tensors = [t for t in read if isinstance(t, Tensor)]
        # Which gradients and saved values are tensors, and the attributes that are.
        self.where = ([_is(g) for g in gradients], [_is(t) for t in ctx._saved or ()], list(named))
        self.template: Any = None

    def run(self, inputs: list[Tensor], hidden: bool) -> tuple[list[Tensor], Plan]:
        """The backward, on plain values."""
        values = iter(inputs)
        gradients, saved, named = self.where
        given = [next(values) if there else None for there in gradients]
        ctx = FunctionCtx(self.needs)
        vars(ctx).update(self.attributes)
        ctx._materialize = self.materialize
        ctx._saved = tuple(next(values) if there else None for there in saved)
        vars(ctx).update((k, next(values)) for k in named)
        result = self.backward(ctx, *given)
        many = isinstance(result, (tuple, list))
        items = list(result) if many else [result]
        outputs = [y for y in items if isinstance(y, Tensor)]
        self.template = (many, [(_is(y), None if _is(y) else y) for y in items])
        return outputs, (len(outputs), [], [False] * len(outputs), False)

    def refuse(self) -> RuntimeError:
        """The error for a derivative of the backward."""
        return RuntimeError(
            f"{self.name} is marked as once_differentiable, and a derivative of it is asked for; write it with "
            "operations of wengert and take the mark off"
        )

    def vjp(self, saved: Any, cotangents: Any, needs: Any) -> Any:
        """There is none."""
        raise self.refuse()

    def jvp(self, inputs: Any, saved: Any, tangents: Any) -> Any:
        """There is none."""
        raise self.refuse()


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a `backward` that cannot be differentiated itself, because it leaves wengert (for NumPy, say) or for
    speed. It is given plain values; a second derivative raises RuntimeError, and forward mode traces the forward.
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
