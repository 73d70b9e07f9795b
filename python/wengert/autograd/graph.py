"""The tape entries behind tensors, what they keep, and how to keep something else: hooks and offloading."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from wengert import _core
from wengert._core import Node, Tensor
from wengert.autograd.modes import Region
from wengert.autograd.mutation import allow_mutation_on_saved_tensors

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]
__dir__ = __all__.copy


class GradientEdge(NamedTuple):
    """Output `output_nr` of the tape entry `node`."""

    node: Node
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Returns the tape entry behind a tensor that requires a gradient, leaf or not.

    An entry tells its `op`, `inputs`, `outputs` and `saved` values with shapes, dtypes and bytes,
    `next_functions`, and `sequence_nr`; calling it with cotangents applies its reverse rule.

    Raises:
        RuntimeError: for a tensor without a graph.

    Example:
        >>> x = wg.ones(2, requires_grad=True)
        >>> node = wg.autograd.graph.get_gradient_edge(x.exp()).node
        >>> node.op, node.saved
        ('exp', [<output 0: float32(2,), 8 bytes>])
        >>> node.next_functions[0][0] == wg.autograd.graph.get_gradient_edge(x).node
        True
    """
    edge = _core._gradient_edge(tensor)
    if edge is None:
        raise RuntimeError(
            f"get_gradient_edge: the tensor of shape {tuple(tensor.shape)} does not require a gradient; call "
            "requires_grad_() on it, or on an input before computing it"
        )
    return GradientEdge(*edge)


class saved_tensors_hooks(Region):
    """Keeps `pack(value)` in place of each value that operations save, and `unpack` of it in backward.

    A context and a decorator; it holds at every level of differentiation, inside transforms too.

    Args:
        pack: from a tensor to any object; it must not write to the tensor.
        unpack: from that object to a tensor of the same shape, dtype and device.

    Raises:
        RuntimeError: where `disable_saved_tensors_hooks` forbids it; for a `pack` that writes to its argument
            or an `unpack` that returns something else than was packed.

    Example:
        >>> x = wg.ones(2, requires_grad=True)
        >>> with wg.autograd.graph.saved_tensors_hooks(lambda t: t.half(), lambda h: h.float()):
        ...     y = x.exp()
        >>> y.sum().backward()
    """

    def __init__(self, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Tensor]) -> None:
        """The region does not begin before `with`."""
        self.pack = pack
        self.unpack = unpack
        self._depths: list[int] = []

    def _again(self) -> "saved_tensors_hooks":
        return saved_tensors_hooks(self.pack, self.unpack)

    def __enter__(self) -> "saved_tensors_hooks":
        """Begins the region."""
        if _forbidden.messages:
            raise RuntimeError(_forbidden.messages[-1])
        self._depths.append(_core._saved_hooks_enter(self.pack, self.unpack))
        return self

    def __exit__(self, *exc: Any) -> None:
        """Ends the region."""
        _core._saved_hooks_exit(self._depths.pop())


class save_on_cpu(saved_tensors_hooks):
    """Keeps a copy in host memory of what operations save, and brings it back to its device in backward.

    Tensors on the CPU are copied as well, so that they may be written in place afterwards.

    Args:
        pin_memory: accepted for PyTorch's sake; transfers use wgpu's own staging buffers.

    Example:
        >>> x = wg.ones(2, requires_grad=True)
        >>> with wg.autograd.graph.save_on_cpu():
        ...     y = (x * x).sum()
        >>> y.backward()
        >>> x.grad
        tensor([2., 2.])
    """

    def __init__(self, pin_memory: bool = False) -> None:
        """The region does not begin before `with`."""
        self.pin_memory = pin_memory

        def pack(t: Tensor) -> tuple[Any, Tensor]:
            return t.device, t.cpu() if t.is_gpu else t.clone()

        def unpack(kept: tuple[Any, Tensor]) -> Tensor:
            device, t = kept
            return t.to(device)

        super().__init__(pack, unpack)

    def _again(self) -> "save_on_cpu":
        return save_on_cpu(self.pin_memory)


class _Forbidden(threading.local):
    """What `disable_saved_tensors_hooks` says on this thread, innermost last."""

    def __init__(self) -> None:
        self.messages: list[str] = []


_forbidden = _Forbidden()


class disable_saved_tensors_hooks(Region):
    """Makes entering `saved_tensors_hooks` raise a RuntimeError with this message; a context and a decorator.

    For code that could not work with them. Raises the same at once where such hooks are in force already.

    Example:
        >>> with wg.autograd.graph.disable_saved_tensors_hooks("not here"):
        ...     with wg.autograd.graph.save_on_cpu():
        ...         pass
        Traceback (most recent call last):
        RuntimeError: not here
    """

    def __init__(self, error_message: str) -> None:
        """The region does not begin before `with`."""
        self.error_message = error_message

    def _again(self) -> "disable_saved_tensors_hooks":
        return disable_saved_tensors_hooks(self.error_message)

    def __enter__(self) -> "disable_saved_tensors_hooks":
        """Begins the region."""
        if _core._saved_hooks_active():
            raise RuntimeError(self.error_message)
        _forbidden.messages.append(self.error_message)
        return self

    def __exit__(self, *exc: Any) -> None:
        """Ends the region."""
        _forbidden.messages.pop()


class _MultiHandle:
    """Removes the hooks that `register_multi_grad_hook` put on its tensors."""

    def __init__(self, handles: Sequence[Any]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Removes the hook; harmless if it was removed before."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> "_MultiHandle":
        """The handle itself."""
        return self

    def __exit__(self, *exc: Any) -> None:
        """Removes the hook."""
        self.remove()


class _Walks(threading.local):
    """What is remembered of each backward that this thread is in; what one that failed left is forgotten."""

    def __init__(self) -> None:
        self.known: dict[int, Any] = {}

    def current(self, make: Callable[[], Any]) -> Any:
        """What is remembered of the innermost backward, made when it is first asked for."""
        running = _core._backward_ids()
        if running[-1] not in self.known:
            self.known = {walk: known for walk, known in self.known.items() if walk in running}
            self.known[running[-1]] = make()
        return self.known[running[-1]]


class _Arrivals:
    """The gradients that arrived in one backward, for a hook that is called once with all of them."""

    def __init__(self, handles: list[Any], hook: Callable[..., Any], levels: Any) -> None:
        self.hook: Callable[..., Any] | None = hook
        self.levels = levels
        self.gradients: list[Tensor | None] = [None] * len(handles)
        self.left = sum(handle._is_reached() for handle in handles)
        # A gradient that was expected may turn out to be zero, which is not sent.
        _core._at_end_of_backward(self.complete)

    def take(self, place: int, gradient: Tensor) -> None:
        """Takes one gradient; the last one calls the hook."""
        self.gradients[place] = gradient
        self.left -= 1
        if self.left == 0:
            self.complete()

    def complete(self) -> None:
        """Calls the hook, the first time."""
        hook, self.hook = self.hook, None
        gradients, self.gradients = self.gradients, []
        if hook is None:
            return

        def call(seen: tuple[Any, ...]) -> None:
            hook(list(seen))

        self.levels.call(call, gradients)


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all"
) -> _MultiHandle:
    """Calls `fn` once per backward, when the gradients of several tensors are there.

    Args:
        tensors: tensors that require a gradient.
        fn: with `mode="all"`, called with a list of all their gradients (None for those that the backward
            does not reach) as soon as the last is there; with `mode="any"`, called with the first that is
            there.
        mode: `"all"` or `"any"`.

    Returns:
        A handle whose `remove()` takes the hook off again.

    Example:
        >>> x, y = wg.ones(2, requires_grad=True), wg.ones(2, requires_grad=True)
        >>> handle = wg.autograd.graph.register_multi_grad_hook((x, y), lambda grads: print(grads))
        >>> (x * 2 + y * 3).sum().backward()
        [tensor([2., 2.]), tensor([3., 3.])]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook: mode must be 'all' or 'any', got {mode!r}")
    tensors = tuple(tensors)
    # Handles, for they do not keep the tape alive.
    handles: list[Any] = []
    walks = _Walks()
    levels = _core._Levels(list(tensors))

    def all_of(place: int) -> Callable[[Tensor], None]:
        return lambda gradient: walks.current(lambda: _Arrivals(handles, fn, levels)).take(place, gradient)

    def first(gradient: Tensor) -> None:
        pending = walks.current(lambda: [fn])
        if pending:
            pending.pop()(gradient)

    for i, t in enumerate(tensors):
        # Gradients that arrive one by one are put together before the hook looks at them.
        handles.append(_core._watch(t, all_of(i)) if mode == "all" else t.register_hook(first))
    return _MultiHandle(handles)
