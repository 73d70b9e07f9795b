"""Transforms that walk the tape backward: gradients and pullbacks."""

import functools
from collections.abc import Callable
from typing import Any, Concatenate, Literal, overload

from wengert import _core
from wengert._core import Tensor
from wengert.transforms._derivative import PullbackMap
from wengert.transforms._flat import (
    Argnums,
    Flat,
    Function,
    P,
    R,
    X,
    check_float,
    check_function,
    is_position,
    leaves_of,
    name_of,
    of_arguments,
    of_staged,
)
from wengert.tree import TreeDef, tree_unflatten


@overload
def value_and_grad(  # type: ignore[overload-overlap]  # the more exact one comes first
    function: Callable[Concatenate[X, P], R], argnums: Literal[0] = 0, has_aux: bool = False
) -> Callable[Concatenate[X, P], tuple[R, X]]: ...
@overload
def value_and_grad(
    function: Callable[P, R], argnums: Argnums, has_aux: bool = False
) -> Callable[P, tuple[R, Any]]: ...
@of_staged
def value_and_grad(function: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """Returns a function that returns the value of a scalar function and its gradient.

    Args:
        function: returns a scalar tensor of shape (), or with `has_aux` a pair of one and any other data.
        argnums: position of the argument to differentiate, or several of them.
        has_aux: whether the function returns auxiliary data, which comes back beside the value.

    Returns:
        A function with the same arguments that returns `(value, gradient)`, or with `has_aux` `((value, aux),
        gradient)`. The gradient has the structure, shapes and dtypes of the argument; for several `argnums`
        it is a tuple of such.

    Raises:
        TypeError: when that function is called, for a result that is no scalar (use `jacrev`), and for an
            argument to differentiate that is not floating point.
        ValueError: for `argnums` that name no argument, or one twice.

    Example:
        >>> wg.value_and_grad(lambda x: (x * x).sum())(wg.tensor([1.0, 2.0]))
        (tensor(5.), tensor([2., 4.]))
    """

    check_function(function, "value_and_grad")
    is_plain = is_position(argnums) and not has_aux

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if is_plain:
            found = _core._grad_of_argument(function, args, kwargs, argnums, _scalar)
            if found is not None:
                return found
        run, leaves, structure = of_arguments(function, args, kwargs, argnums, has_aux, "grad")
        full, pullback = _core._vjp(run, leaves)
        out = full[: run.count]
        _check_scalar(out, function)
        gradients = pullback([_core.ones_like(out[0])], False)
        value = (out[0], run.take_aux(full)) if has_aux else out[0]
        return value, tree_unflatten(structure, gradients)

    return wrapped


def _check_scalar(out: list[Tensor], function: Function) -> None:
    if len(out) != 1:
        raise TypeError(
            f"grad: {name_of(function)} returned {len(out)} tensors, expected one scalar; use has_aux or vjp"
        )
    if out[0].ndim != 0:
        raise TypeError(
            f"grad: {name_of(function)} returned a tensor of shape {tuple(out[0].shape)}, "
            "expected a scalar of shape (); reduce it, for example with .sum(), or use jacrev for all "
            "derivatives, vmap(grad(f)) for one per example"
        )
    if not out[0].dtype.is_floating_point:
        raise TypeError(f"grad: {name_of(function)} returned {out[0].dtype!r}, which has no derivative")


def _scalar(result: Any, function: Function) -> Tensor:
    """The scalar that a function returned; raises for anything else."""
    out, _ = leaves_of(result, "grad", "the function's result")
    _check_scalar(out, function)
    return out[0]


@overload
def grad(
    function: Callable[Concatenate[X, P], Any], argnums: Literal[0] = 0, has_aux: Literal[False] = False
) -> Callable[Concatenate[X, P], X]: ...
@overload
def grad(function: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[P, Any]: ...
@of_staged
def grad(function: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """Returns a function that returns the gradient of a scalar function.

    Args:
        function: returns a scalar tensor of shape (), or with `has_aux` a pair of one and any other data.
        argnums: position of the argument to differentiate, or several of them.
        has_aux: whether the function returns auxiliary data, which comes back beside the gradient.

    Returns:
        A function with the same arguments that returns the gradient, or with `has_aux` `(gradient, aux)`. The
        gradient has the structure, shapes and dtypes of the argument; for several `argnums` it is a tuple of
        such.

    Raises:
        TypeError: when that function is called, for a result that is no scalar (use `jacrev`), and for an
            argument to differentiate that is not floating point.
        ValueError: for `argnums` that name no argument, or one twice.

    Example:
        >>> wg.grad(wg.grad(lambda x: x**3))(wg.tensor(2.0))
        tensor(12.)
        >>> wg.grad(lambda x, y: x * y, argnums=(0, 1))(2.0, 3.0)
        (tensor(3.), tensor(2.))
    """
    check_function(function, "grad")
    both = value_and_grad(function, argnums, has_aux)
    is_plain = is_position(argnums) and not has_aux

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if is_plain:
            found = _core._grad_of_argument(function, args, kwargs, argnums, _scalar)
            if found is not None:
                return found[1]
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


def _cotangents(tree: Any, structure: TreeDef, out: list[Tensor], name: str) -> list[Tensor]:
    leaves, given = leaves_of(tree, name, "a cotangent")
    if given != structure:
        raise ValueError(
            f"{name}: cotangents of structure {given} given for outputs of structure {structure}"
        )
    for g, y in zip(leaves, out):
        if tuple(g.shape) != tuple(y.shape):
            raise _core.ShapeError(
                f"{name}: a cotangent of shape {tuple(g.shape)} given for an output of shape "
                f"{tuple(y.shape)}; give one of the output's shape"
            )
        if g.dtype.is_complex and not y.dtype.is_complex:
            raise TypeError(
                f"{name}: a cotangent of {g.dtype!r} given for an output of {y.dtype!r} and shape "
                f"{tuple(y.shape)}; the cotangent of a real output is real: pass its .real or .imag"
            )
    return leaves


@overload
def vjp(
    function: Callable[..., R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, Callable[..., tuple[Any, ...]]]: ...
@overload
def vjp(
    function: Function, *primals: Any, has_aux: Literal[True]
) -> tuple[Any, Callable[..., tuple[Any, ...]], Any]: ...
def vjp(function: Function, *primals: Any, has_aux: bool = False) -> Any:
    """Returns the value of a function at a point, and its pullback: from cotangents of the output to those of
    the inputs.

    Args:
        function: takes the primals as positional arguments; returns a tensor, or a tree of them.
        primals: floating point tensors, or trees of them: the point.
        has_aux: whether the function returns auxiliary data, which comes back as a third result.

    Returns:
        `(output, pullback)`, or `(output, pullback, aux)` with `has_aux`. The pullback takes one cotangent
        per output, of the shape of the output; it is converted to the dtype of the output. It returns a tuple
        with one entry per argument, of the structure, shapes and dtypes of the argument. It can be called any
        number of times, and inside other transforms. It is a container of the primals (`wengert.tree`): kept
        as a residual of a custom function, or returned from a transform, it has derivatives; the function
        runs again then.

    Raises:
        TypeError: for integer arguments; from the pullback, for a complex cotangent of a real output.
        ValueError: from the pullback, for cotangents of another structure.
        ShapeError: from the pullback, for cotangents of another shape.

    Example:
        >>> y, pullback = wg.vjp(lambda x: x.sin(), wg.tensor(0.0))
        >>> pullback(wg.tensor(1.0))
        (tensor(1.),)
    """
    leaves, structure = leaves_of(primals, "vjp", "an argument")
    check_float(leaves, "vjp", primals)
    run = Flat(lambda flat: function(*tree_unflatten(structure, flat)), has_aux, "vjp")
    state = _core.get_rng_state()
    full, pullback = _core._vjp(run, leaves)
    out = full[: run.count]

    def pull_by(pullback: Any, out: list[Tensor], out_structure: TreeDef | None) -> Function:
        assert out_structure is not None

        def pull(*cotangents: Any) -> Any:
            tree = cotangents[0] if len(cotangents) == 1 else cotangents
            given = _cotangents(tree, out_structure, out, "vjp")
            return tree_unflatten(structure, pullback(given, True))

        return pull

    def at(leaves: list[Tensor]) -> Function:
        run = Flat(lambda flat: function(*tree_unflatten(structure, flat)), has_aux, "vjp")
        full, pullback = _core._vjp(run, leaves)
        return pull_by(pullback, full[: run.count], run.out)

    pull = PullbackMap(at, leaves)._is(pull_by(pullback, out, run.out), state)
    assert run.out is not None
    result = tree_unflatten(run.out, out)
    return (result, pull, run.take_aux(full)) if has_aux else (result, pull)
