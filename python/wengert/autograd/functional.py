"""Derivatives of functions under the names of `torch.autograd.functional`: one call with function, inputs and
vector.

They are the transforms of `wengert` in that form. Inputs and outputs are tensors or tuples of tensors.
"""

from collections.abc import Callable
from typing import Any

from wengert._core import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
__dir__ = __all__.copy

Function = Callable[..., Any]
_STRATEGIES = ("reverse-mode", "forward-mode")


def _tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _like(inputs: Any, found: tuple[Any, ...]) -> Any:
    """A tuple, or its only member where the inputs were one tensor."""
    return found if isinstance(inputs, (tuple, list)) else found[0]


def _result(found: Any, create_graph: bool) -> Any:
    """Cut from the tape unless it is to be differentiated again."""
    from wengert.tree import tree_map

    return found if create_graph else tree_map(lambda x: x.detach(), found)


def _check(name: str, func: Function, inputs: Any, strict: bool) -> None:
    """Raises, if `strict`, where outputs and inputs have nothing to do with each other."""
    if strict:
        from wengert.transforms._dependence import check_dependence

        check_dependence(name, func, _tuple(inputs), every=True)


def _vector(name: str, v: Any, like: Any) -> Any:
    """The vector, of the structure and the shapes of `like`; ones for a single element."""
    parts = _tuple(like)
    if v is None:
        if len(parts) != 1 or parts[0].numel() != 1:
            shapes = ", ".join(str(tuple(x.shape)) for x in parts)
            raise ValueError(
                f"{name}: v may be left out for one element only; pass tensors of shapes {shapes}"
            )
        return _like(like, (parts[0].detach() * 0 + 1,))
    given = _tuple(v)
    if [tuple(x.shape) for x in given] != [tuple(x.shape) for x in parts]:
        raise ValueError(
            f"{name}: v has shapes {', '.join(str(tuple(x.shape)) for x in given)}, expected "
            f"{', '.join(str(tuple(x.shape)) for x in parts)}"
        )
    return _like(like, given)


def jacobian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
    strict: bool = False,
) -> Any:
    """Returns the Jacobian of `func(*inputs)`: per output and input a tensor with the axes of both.

    Args:
        func: of as many tensors as there are inputs, to a tensor or a tuple of them.
        inputs: a tensor or a tuple of them.
        create_graph: keep the result on the tape.
        vectorize: accepted; all rows, or columns, are always one batch.
        strategy: `"reverse-mode"` (rows, `jacrev`) or `"forward-mode"` (columns, `jacfwd`).
        strict: whether to raise for an output that depends on no input, and an input on which no output
            depends; otherwise such derivatives are zeros. The function runs once more for that.

    Raises:
        RuntimeError: with `strict`, an output depends on no input, or no output on some input.

    Example:
        >>> wg.autograd.functional.jacobian(lambda x: x**2, wg.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    import wengert as wg

    _check("jacobian", func, inputs, strict)
    if strategy not in _STRATEGIES:
        raise ValueError(f"jacobian: strategy must be one of {', '.join(_STRATEGIES)}, got {strategy!r}")
    parts = _tuple(inputs)
    transform = wg.jacrev if strategy == "reverse-mode" else wg.jacfwd
    many = isinstance(inputs, (tuple, list))
    return _result(transform(func, tuple(range(len(parts))) if many else 0)(*parts), create_graph)


def hessian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
    strict: bool = False,
) -> Any:
    """Returns the Hessian of a function with one element: per pair of inputs a tensor with the axes of both.

    The arguments are those of `jacobian`; `outer_jacobian_strategy` says how its gradient is differentiated,
    and `strict` is of the function itself.

    Example:
        >>> wg.autograd.functional.hessian(lambda x: (x**3).sum(), wg.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    import wengert as wg

    _check("hessian", func, inputs, strict)
    if outer_jacobian_strategy not in _STRATEGIES:
        raise ValueError(
            f"hessian: outer_jacobian_strategy must be one of {', '.join(_STRATEGIES)}, got "
            f"{outer_jacobian_strategy!r}"
        )
    parts = _tuple(inputs)
    at: Any = tuple(range(len(parts))) if isinstance(inputs, (tuple, list)) else 0
    outer = wg.jacrev if outer_jacobian_strategy == "reverse-mode" else wg.jacfwd
    return _result(outer(wg.grad(_scalar(func), at), at)(*parts), create_graph)


def _scalar(func: Function) -> Function:
    """The function with its one element as a number; the shape of several is left for the transform to
    refuse."""

    def scalar(*inputs: Any) -> Any:
        out = func(*inputs)
        return out.reshape(()) if isinstance(out, Tensor) and out.numel() == 1 else out

    return scalar


def vjp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Returns `func(*inputs)`, and the product of `v` with the Jacobian, of the shapes of the inputs.

    Args:
        v: of the shapes of the outputs; it may be left out where that is one element.
        create_graph: keep the results on the tape.
        strict: as in `jacobian`.

    Example:
        >>> wg.autograd.functional.vjp(lambda x: x**2, wg.tensor([1.0, 2.0]), wg.ones(2))
        (tensor([1., 4.]), tensor([2., 4.]))
    """
    import wengert as wg

    _check("vjp", func, inputs, strict)
    out, pull = wg.vjp(func, *_tuple(inputs))
    found = _tuple(pull(_vector("vjp", v, out)))
    return _result((out, _like(inputs, found)), create_graph)


def jvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Returns `func(*inputs)`, and the product of the Jacobian with `v`, of the shapes of the outputs.

    Args:
        v: of the shapes of the inputs; it may be left out where that is one element.
        create_graph: keep the results on the tape.
        strict: as in `jacobian`.

    Example:
        >>> wg.autograd.functional.jvp(lambda x: x**2, wg.tensor([1.0, 2.0]), wg.ones(2))
        (tensor([1., 4.]), tensor([2., 4.]))
    """
    import wengert as wg

    _check("jvp", func, inputs, strict)
    return _result(wg.jvp(func, _tuple(inputs), _tuple(_vector("jvp", v, inputs))), create_graph)


def hvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Returns the value of a function with one element, and the product of its Hessian with `v`, of the
    shapes of the inputs; the arguments are those of `vjp`.

    Example:
        >>> wg.autograd.functional.hvp(lambda x: (x**3).sum(), wg.tensor([1.0, 2.0]), wg.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    import wengert as wg

    _check("hvp", func, inputs, strict)
    parts = _tuple(inputs)
    push = wg.value_and_grad(_scalar(func), tuple(range(len(parts))))
    vector = _tuple(_vector("hvp", v, inputs))
    (value, _), (_, found) = wg.jvp(push, parts, vector)
    return _result((value, _like(inputs, found)), create_graph)


def vhp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Returns the value of a function with one element, and the product of `v` with its Hessian, by two
    reverse passes; the arguments are those of `vjp`.

    Example:
        >>> wg.autograd.functional.vhp(lambda x: (x**3).sum(), wg.tensor([1.0, 2.0]), wg.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    import wengert as wg

    _check("vhp", func, inputs, strict)
    parts = _tuple(inputs)
    slopes = wg.grad(_scalar(func), tuple(range(len(parts))))
    _, pull = wg.vjp(slopes, *parts)
    found = pull(_tuple(_vector("vhp", v, inputs)))
    return _result((func(*parts), _like(inputs, _tuple(found))), create_graph)
