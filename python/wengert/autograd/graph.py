"""The tape entries behind tensors, what they keep, and how to keep something else: hooks and offloading."""

from collections.abc import Callable
from typing import Any, NamedTuple

from wengert import _core
from wengert._core import Node, Tensor
from wengert.autograd.modes import Region

__all__ = ["GradientEdge", "Node", "get_gradient_edge", "save_on_cpu", "saved_tensors_hooks"]


class GradientEdge(NamedTuple):
    """Output `output_nr` of the tape entry `node`."""

    node: Node
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The tape entry behind a tensor that requires a gradient, leaf or not.

    An entry tells its `op`, `inputs`, `outputs` and `saved` values with shapes, dtypes and bytes, `next_functions`,
    and `sequence_nr`; calling it with cotangents applies its reverse rule.

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
        pack: from a tensor to any object.
        unpack: from that object to a tensor of the same shape and dtype.

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
        self._depths.append(_core._saved_hooks_enter(self.pack, self.unpack))
        return self

    def __exit__(self, *exc: Any) -> None:
        """Ends the region."""
        _core._saved_hooks_exit(self._depths.pop())


class save_on_cpu(saved_tensors_hooks):
    """Keeps what operations on a GPU save in host memory, and brings it back in backward.

    Args:
        pin_memory: accepted for PyTorch's sake.
    """

    def __init__(self, pin_memory: bool = False) -> None:
        """The region does not begin before `with`."""

        def pack(t: Tensor) -> tuple[Any, Tensor]:
            return t.device, t.cpu()

        def unpack(kept: tuple[Any, Tensor]) -> Tensor:
            device, t = kept
            return t.to(device)

        super().__init__(pack, unpack)

    def _again(self) -> "save_on_cpu":
        return save_on_cpu()
