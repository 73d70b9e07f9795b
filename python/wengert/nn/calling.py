"""A call of a module that has hooks, or while all modules have.

The backward hooks of a module need to see all gradients of its inputs, and of its outputs, at once. So its
inputs go through one entry of the tape that changes nothing (`_bundle`), and its outputs through another;
the hooks hang on these two.
"""

from typing import Any

from wengert import _core
from wengert._caller import warn
from wengert._core import Tensor

from .hooks import EVERYWHERE, Registry, hooks_of

__all__ = ["call_with_hooks"]


def call_with_hooks(module: Any, registry: Registry, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs `module.forward` with the hooks around it."""
    called: set[int] = set()
    out = None
    try:
        args, kwargs = _before(module, registry, args, kwargs)
        backward = None
        if any(kind in hooks for hooks in (EVERYWHERE, registry) for kind in ("backward", "backward_pre")):
            backward = _Backward(module, registry)
            args = backward.take_inputs(args)
        out = module.forward(*args, **kwargs)
        for key, hook in hooks_of(registry, "forward"):
            called.add(key)
            changed = (
                hook.call(module, args, kwargs, out) if hook.with_kwargs else hook.call(module, args, out)
            )
            out = out if changed is None else changed
        return out if backward is None else backward.take_outputs(out)
    except Exception:
        _always(module, registry, args, kwargs, out, called)
        raise


def _before(
    module: Any, registry: Registry, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments after the hooks before `forward`."""
    for _, hook in hooks_of(registry, "forward_pre"):
        if not hook.with_kwargs:
            changed = hook.call(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
            continue
        changed = hook.call(module, args, kwargs)
        if changed is None:
            continue
        if not (isinstance(changed, tuple) and len(changed) == 2):
            raise RuntimeError(
                f"{type(module).__name__}: a forward pre-hook with kwargs returned {type(changed).__name__}, "
                "expected None or a pair (args, kwargs)"
            )
        args, kwargs = changed
    return args, kwargs


def _always(
    module: Any, registry: Registry, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, called: set[int]
) -> None:
    """Runs the hooks that run even after an exception, unless they ran before it."""
    for key, hook in hooks_of(registry, "forward"):
        if not hook.always_call or key in called:
            continue
        try:
            changed = (
                hook.call(module, args, kwargs, out) if hook.with_kwargs else hook.call(module, args, out)
            )
            out = out if changed is None else changed
        except Exception as error:
            warn(
                f"{type(module).__name__}: a forward hook with always_call=True raised {error!r}, which "
                "gives way to the exception that was raised before"
            )


def _as_tuple(gradients: Any) -> tuple[Any, ...]:
    return gradients if isinstance(gradients, tuple) else (gradients,)


class _Backward:
    """The backward hooks of one call of a module."""

    def __init__(self, module: Any, registry: Registry) -> None:
        self.module = module
        self.registry = registry
        self.inputs: list[int] | None = None
        self.input_count = 0
        # Which `vmap` the values are in, and the gradient of the outputs as the tape has it.
        self.input_levels = self.output_levels = _core._Levels([])
        self.grad_output: tuple[Any, ...] = ()
        self.outputs: list[int] = []
        self.output_count = 0

    def take_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Returns the arguments, of which tensors went through an entry whose hook sees their gradients."""
        self.input_count = len(args)
        args, places, node = _through_entry(args)
        if node is not None:
            self.inputs = places
            self.input_levels = _core._Levels([args[i] for i in places])
            node.register_hook(self.after)
        return args

    def take_outputs(self, out: Any) -> Any:
        """Returns the result, which went through an entry whose hook sees its gradient."""
        many = isinstance(out, tuple)
        if not many and not isinstance(out, Tensor):
            warn(
                f"{type(self.module).__name__}: backward hooks need a tensor or a tuple of tensors as the "
                f"result of forward, got {type(out).__name__}; they are not called"
            )
            return out
        passed, places, node = _through_entry(_as_tuple(out))
        if node is not None:
            self.outputs, self.output_count = places, len(passed)
            self.output_levels = _core._Levels([passed[i] for i in places])
            node.register_prehook(self.before)
        return passed if many else passed[0]

    def before(self, gradients: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Runs the hooks before the backward of the module, inside the `vmap` that its outputs are in."""
        changed = self.output_levels.call(self._before, gradients)
        self.grad_output = gradients if changed is None else changed
        return changed

    def _before(self, gradients: tuple[Any, ...]) -> tuple[Any, ...] | None:
        given = grad_output = _spread(gradients, self.outputs, self.output_count)
        for _, hook in hooks_of(self.registry, "backward_pre"):
            changed = hook.call(self.module, grad_output)
            if changed is None:
                continue
            changed = _as_tuple(changed)
            if len(changed) != len(grad_output):
                raise RuntimeError(
                    f"{type(self.module).__name__}: a backward pre-hook returned {len(changed)} gradients, "
                    f"expected {len(grad_output)}, one (or None) per output"
                )
            grad_output = changed
        if self.inputs is None:
            self._without_inputs(grad_output)
        return None if grad_output is given else tuple(grad_output[i] for i in self.outputs)

    def _without_inputs(self, grad_output: tuple[Any, ...]) -> None:
        """Runs the hooks of a module none of whose inputs has a gradient."""
        nothing = (None,) * self.input_count
        for _, hook in hooks_of(self.registry, "backward"):
            changed = hook.call(self.module, nothing, grad_output)
            if changed is not None and any(g is not None for g in _as_tuple(changed)):
                raise RuntimeError(
                    f"{type(self.module).__name__}: a backward hook returned a gradient, but no input of the "
                    "module requires one; return None"
                )

    def after(self, grad_inputs: tuple[Any, ...], _: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Runs the hooks after the backward of the module, inside the `vmap` that its values are in."""
        outputs, self.grad_output = self.grad_output, ()
        levels = self.input_levels + self.output_levels if outputs else self.input_levels
        return levels.call(self._after, grad_inputs + outputs)

    def _after(self, gradients: tuple[Any, ...]) -> tuple[Any, ...] | None:
        places = self.inputs or []
        given = grad_input = _spread(gradients, places, self.input_count)
        grad_output = _spread(gradients[len(places) :], self.outputs, self.output_count)
        for _, hook in hooks_of(self.registry, "backward"):
            changed = hook.call(self.module, grad_input, grad_output)
            if changed is None:
                continue
            changed = _as_tuple(changed)
            if len(changed) != len(grad_input):
                raise RuntimeError(
                    f"{type(self.module).__name__}: a backward hook returned {len(changed)} gradients, "
                    f"expected {len(grad_input)}, one (or None) per argument"
                )
            grad_input = changed
        return None if grad_input is given else tuple(grad_input[i] for i in places)


def _spread(gradients: tuple[Any, ...], places: list[int], count: int) -> tuple[Any, ...]:
    """The gradients at their places among `count`, None elsewhere."""
    out: list[Any] = [None] * count
    for i, g in zip(places, gradients):
        out[i] = g
    return tuple(out)


def _through_entry(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[int], Any]:
    """The values, the places of those that went through one entry of the tape, and the entry (None
    without)."""
    places = [i for i, x in enumerate(values) if isinstance(x, Tensor) and x.dtype.is_differentiable]
    if not any(values[i].requires_grad for i in places):
        return values, places, None
    passed = _core._bundle([values[i] for i in places])
    # Without one where recording is off.
    node = next((x.grad_fn for x in passed if x.grad_fn is not None), None)
    out = list(values)
    for i, x in zip(places, passed):
        out[i] = x
    return tuple(out), places, node
