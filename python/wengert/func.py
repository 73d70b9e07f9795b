"""PyTorch's `torch.func`: the transforms under its names. All but `grad_and_value` and `functionalize` are
those of `wengert` and `wengert.nn` themselves.
"""

import functools
from collections.abc import Callable
from typing import Any, NoReturn

from wengert.nn import functional_call, stack_module_state
from wengert.transforms import grad, hessian, jacfwd, jacrev, jvp, linearize, value_and_grad, vjp, vmap

__all__ = [
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]
__dir__ = __all__.copy


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Returns `value_and_grad` the other way round: a function that returns `(gradient, value)`, or with
    `has_aux` `(gradient, (value, aux))`.

    Example:
        >>> wg.func.grad_and_value(lambda x: (x * x).sum())(wg.tensor([1.0, 2.0]))
        (tensor([2., 4.]), tensor(5.))
    """
    both = value_and_grad(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return gradient, value

    return wrapped


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> NoReturn:
    """Raises NotImplementedError: it prepares a function for a compiler, and writes in place need no
    preparation here.

    Example:
        >>> try:
        ...     wg.func.functionalize(lambda x: x.add_(1))
        ... except NotImplementedError as error:
        ...     print(str(error)[:14])
        functionalize:
    """
    raise NotImplementedError(
        "functionalize: writes in place are differentiated and batched as they are; use the function itself"
    )
