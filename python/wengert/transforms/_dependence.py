"""Which outputs of a function depend on its inputs: what `strict` asks of a derivative."""

from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert.transforms._flat import Function, leaves_of
from wengert.tree import tree_flatten, tree_unflatten

__all__ = ["check_dependence"]


def check_dependence(
    name: str, function: Function, inputs: tuple[Any, ...], has_aux: bool = False, every: bool = False
) -> None:
    """Runs the function on leaves, and looks at what its outputs lead to.

    Args:
        name: the function of the library, for the message.
        function: the user's.
        inputs: its arguments, trees of tensors.
        has_aux: whether its second result is no output.
        every: whether each input must reach an output too.

    Raises:
        RuntimeError: an output depends on no input, or, with `every`, no output on some input.
    """
    from wengert.autograd import grad
    from wengert.autograd.modes import enable_grad

    leaves, structure = leaves_of(inputs, name, "an input")
    with enable_grad():
        fresh = [x.detach().requires_grad_() if x.dtype.is_differentiable else x for x in leaves]
        found = function(*tree_unflatten(structure, fresh))
    outputs = [x for x in tree_flatten(found[0] if has_aux else found)[0] if isinstance(x, Tensor)]
    for k, out in enumerate(outputs):
        if not out.requires_grad:
            raise RuntimeError(
                f"{name}: output {k} of shape {tuple(out.shape)} does not depend on any input; leave strict "
                "out for a derivative of zeros"
            )
    if not every:
        return
    wanted = [x for x in fresh if x.requires_grad]
    slopes = grad(outputs, wanted, [_core.ones_like(y.detach()) for y in outputs], allow_unused=True)
    for k, slope in enumerate(slopes):
        if slope is None:
            raise RuntimeError(
                f"{name}: no output depends on input {k} of shape {tuple(wanted[k].shape)}; leave strict out "
                "for a derivative of zeros"
            )
