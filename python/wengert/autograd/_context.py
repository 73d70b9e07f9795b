"""What the forward of an `autograd.Function` leaves to its rules."""

from typing import Any, NamedTuple

from wengert._core import Tensor

__all__ = ["FunctionCtx", "VmapInfo"]


class VmapInfo(NamedTuple):
    """What the static method `vmap` of a `Function` is told of the batch."""

    batch_size: int
    randomness: str


class FunctionCtx:
    """What the forward of a `Function` leaves to its rules. Any attribute can be set on it.

    Tensors among the attributes, also inside lists, tuples, dicts and other containers that `wengert.tree`
    knows, are saved as those given to `save_for_backward` are. Tensors inside other objects are kept as they
    are and are constants to higher derivatives. Attributes that `backward` sets to what
    is no tensor are there in the next backward.

    `needs_input_grad` says per argument whether anything differentiates it, in either mode;
    in `backward`, whether its gradient is wanted.
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
        `save_for_forward` says otherwise. Inputs and outputs cost nothing but their memory. For another
        tensor the inputs are kept in reserve, so that higher derivatives know where it came from;
        `once_differentiable` saves that.
        """
        self._for_backward = _checked(tensors, "save_for_backward")

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for `jvp`, where they are `ctx.saved_tensors`."""
        self._for_forward = _checked(tensors, "save_for_forward")

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What was kept, in `backward` and `jvp`."""
        if self._saved is None:
            raise RuntimeError(
                "ctx.saved_tensors is read outside backward and jvp, the only places that have it"
            )
        return self._saved

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Says which inputs the forward wrote to in place. It must return them."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Says which outputs have no derivative."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Sets whether `backward` and `jvp` are given zeros (the default) or None where nothing depends on an
        output.
        """
        self._materialize = value


def _checked(tensors: tuple[Any, ...], name: str) -> tuple[Tensor | None, ...]:
    for i, t in enumerate(tensors):
        if not (t is None or isinstance(t, Tensor)):
            raise TypeError(
                f"{name}: argument {i} is {type(t).__name__}, expected a tensor or None; keep other objects "
                "as attributes of ctx"
            )
    return tensors
