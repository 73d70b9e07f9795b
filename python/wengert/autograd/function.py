"""`autograd.Function`: functions whose derivatives are written by hand, as PyTorch spells them.

The forward runs on plain values and is not recorded; `backward`, `jvp` and `vmap` are, by whatever
differentiates them, so custom functions nest in every transform and have higher derivatives. A rule that is
missing is derived: `jvp` as the transpose of `backward` and the other way round, or from the forward where
there is neither; `vmap` by batching what the functions do.
"""

from typing import Any

from wengert import _core
from wengert.autograd._context import FunctionCtx, VmapInfo
from wengert.autograd._function_call import FunctionCall, backward_of, is_missing, missing
from wengert.autograd._once import is_once, once_differentiable
from wengert.autograd._rules import places_with_defaults, positional

__all__ = ["Function", "FunctionCtx", "VmapInfo", "once_differentiable"]


class Function:
    """A function with derivatives written by hand. Derive from it, define static methods, and call `apply`.

    - `forward(ctx, *args)`, or `forward(*args)` with `setup_context(ctx, inputs, output)`: the value, one
      tensor or a tuple or list. Runs without recording; what it uses beside its arguments is constant. A
      result that is an argument, or a view of one, cannot be written in place while recording.
    - `backward(ctx, *gradients)`: from one cotangent per output to one gradient per argument of the forward,
      None for those without. Also as `vjp`.
    - `jvp(ctx, *tangents)`: from one tangent per argument (None for what is no tensor) to one per output.
    - `vmap(info, in_dims, *args)`: the outputs of a whole batch and where their batch axes are.

    Where a derivative is asked for that no rule gives (forward mode without `jvp` and `backward`, higher
    derivatives of what is neither input nor output and was saved), the forward runs again, on the same random
    numbers.

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
        tensor(0.25)
    """

    # Accepted for PyTorch's sake: without a `vmap` the rule is always generated.
    generate_vmap_rule = False
    # The forward, and how many arguments it takes where some have defaults.
    _places: tuple[Any, int] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Functions are applied by their class."""
        name = type(self).__name__
        raise RuntimeError(f"{name}: an instance of an autograd.Function was called; use {name}.apply(...)")

    @staticmethod
    @missing
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the value."""
        raise NotImplementedError("an autograd.Function needs a static method forward(ctx, *args)")

    @staticmethod
    @missing
    def setup_context(ctx: FunctionCtx, inputs: tuple[Any, ...], output: Any) -> Any:
        """Fills the context, where the forward has none."""
        raise NotImplementedError("setup_context is called where it is defined only")

    @staticmethod
    @missing
    def backward(ctx: FunctionCtx, *gradients: Any) -> Any:
        """Applies the reverse rule."""
        raise NotImplementedError("backward is called where it is defined only")

    # PyTorch's other name of the reverse rule.
    vjp = backward

    @staticmethod
    @missing
    def jvp(ctx: FunctionCtx, *tangents: Any) -> Any:
        """Applies the forward rule."""
        raise NotImplementedError("jvp is called where it is defined only")

    @staticmethod
    @missing
    def vmap(info: VmapInfo, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """Applies the batching rule."""
        raise NotImplementedError("vmap is called where it is defined only")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Calls the function. Tensors among the arguments themselves are differentiated; those inside
        containers are constants. With a `setup_context`, arguments may be given by their names, and defaults
        are filled in: the rules count them as arguments.
        """
        if not is_missing(cls.setup_context):
            args = cls._arguments(args, kwargs)
        elif kwargs:
            raise TypeError(
                f"{cls.__name__}.apply: arguments {sorted(kwargs)} are given by name, which takes a "
                "setup_context; give them by position"
            )
        batches = not is_missing(cls.vmap)
        if batches and cls.generate_vmap_rule:
            raise RuntimeError(
                f"{cls.__name__}: generate_vmap_rule=True asks for a generated batching rule, and there is a "
                "static method vmap; keep one of them"
            )
        call = FunctionCall(cls, args)
        backward = backward_of(cls)
        jvp = not is_missing(cls.jvp)
        reverse = "transpose" if backward is None and jvp else "own"
        derivable = backward is not None and not is_once(backward)
        forward = "own" if jvp else "transpose" if derivable else "trace"
        tensors = [args[i] for i in call.positions]
        outputs = call.call(tensors, reverse, forward, batches=batches)
        for i, j in call.dirty:
            _core._take_over(tensors[i], outputs[j], cls.__name__)
            outputs[j] = tensors[i]
        result = call.assembled(outputs)
        call.forget()
        return result

    @classmethod
    def _arguments(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments of the forward by position."""
        known = cls.__dict__.get("_places")
        if known is None or known[0] is not cls.forward:
            known = (cls.forward, places_with_defaults(cls.forward))
            cls._places = known
        return positional(cls.forward, args, kwargs, known[1], f"{cls.__name__}.apply")
