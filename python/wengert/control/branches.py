"""Branches: one function of several, chosen by a value."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, TypeVarTuple, overload

from wengert._core import Tensor
from wengert.control._carry import alike
from wengert.control._choices import chosen, position, run_branch, truth
from wengert.control._spelling import also, noted
from wengert.transforms._flat import check_function, leaves_of
from wengert.transforms.axes import has_ranks
from wengert.tree import tree_unflatten

__all__ = ["cond", "switch"]
__dir__ = __all__.copy

R = TypeVar("R")
Ts = TypeVarTuple("Ts")


@overload
def cond(
    pred: bool | Tensor, true_fun: Callable[[*Ts], R], false_fun: Callable[[*Ts], R], *args: *Ts
) -> R: ...
@overload
def cond(
    pred: bool | Tensor,
    true_fun: Callable[[*Ts], R],
    false_fun: Callable[[*Ts], R],
    *,
    operands: tuple[*Ts],
) -> R: ...
@overload
def cond(
    pred: bool | Tensor,
    *,
    true_fn: Callable[[*Ts], R],
    false_fn: Callable[[*Ts], R],
    operands: tuple[*Ts] = ...,
) -> R: ...
@also(true_fn="true_fun", false_fn="false_fun")  # type: ignore[misc]
def cond(
    pred: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *args: Any,
    operands: Sequence[Any] = (),
) -> Any:
    """Computes `true_fun(*args)` if the predicate holds, else `false_fun(*args)`.

    Args:
        pred: a bool, or a bool tensor of shape (). Where it differs between the examples of a `vmap`, both
            functions run for all examples, and each example gets its own result: neither may raise, or
            write in place into a tensor from outside; operands are copies. What is not taken has no effect
            on values and gradients, even if it is not finite. Inside `distributed.axis` every tensor counts
            as one that differs, for processes may.
        true_fun, false_fun: functions of the operands that return a tensor, or a tree of tensors; `true_fn`
            and `false_fn` are their names in PyTorch. They may use tensors from outside.
        args: the operands, trees of anything.
        operands: the operands in one tuple, as in PyTorch, by this keyword only: `cond(p, f, g, (x, y))`
            passes one operand, a tuple, as in JAX.

    Returns:
        What the function returns, with tensors for numbers.

    Raises:
        TypeError: for a predicate of another kind, and `operands` that are no tuple; if both ran, for results
            of different dtypes.
        ValueError: if both ran, for results of different structures or devices.
        ShapeError: if both ran, for results of different shapes.

    Example:
        >>> root = lambda x: wg.cond(x > 0, lambda x: x.sqrt(), lambda x: 0 * x, x)
        >>> root(wg.tensor(4.0))
        tensor(2.)
        >>> wg.vmap(wg.grad(root))(wg.tensor([4.0, 0.0, -1.0]))
        tensor([0.25, 0.00, 0.00])
    """
    check_function(true_fun, "cond", "true_fun")
    check_function(false_fun, "cond", "false_fun")
    if not isinstance(operands, (tuple, list)):
        given = type(operands).__name__
        raise TypeError(f"cond: operands is a tuple of operands, got {given}; write operands=(x,)")
    if args and operands:
        raise TypeError("cond: operands are given one by one, or as operands=(...); not both")
    args = args or tuple(operands)
    flag = truth("cond", "the predicate", pred, not has_ranks())
    if isinstance(flag, bool):
        return _of_one("cond", true_fun if flag else false_fun, args)
    with noted("cond", args, "operands"):
        results = [run_branch(flag, true_fun, args), run_branch(~flag, false_fun, args)]
    (first, second), structure = alike("cond", results, ["the true branch", "the false branch"])
    return tree_unflatten(structure, [chosen(flag, x, y) for x, y in zip(first, second)])


def switch(
    index: int | Tensor,
    branches: Sequence[Callable[[*Ts], R]],
    *operands: *Ts,
) -> R:
    """Computes `branches[index](*operands)`.

    Args:
        index: an integer, or an integer tensor of shape (). One below 0 means the first branch, one beyond
            the last means the last. Where it differs between the examples of a `vmap`, all branches run, as
            in `cond`.
        branches: functions of the operands, at least one, that return a tensor or a tree of tensors.
        operands: trees of anything.

    Returns:
        What the branch returns, with tensors for numbers.

    Raises:
        TypeError: for an index of another kind; if all ran, for results of different dtypes.
        ValueError: for no branch; if all ran, for results of different structures or devices.
        ShapeError: if all ran, for results of different shapes.

    Example:
        >>> f = lambda k, x: wg.switch(k, [wg.sin, wg.cos, lambda x: x * x], x)
        >>> f(2, wg.tensor(3.0))
        tensor(9.)
        >>> wg.vmap(f)(wg.tensor([0, 1, 7]), wg.tensor([0.0, 0.0, 3.0]))
        tensor([0., 1., 9.])
    """
    if callable(branches):
        raise TypeError("switch: branches is a list of functions, got one function")
    functions = list(branches)
    if not functions:
        raise ValueError("switch: at least one branch expected, got none")
    for i, function in enumerate(functions):
        check_function(function, "switch", f"branch {i}")
    last = len(functions) - 1
    at: Any = position("switch", "the index", index, not has_ranks())
    if isinstance(at, int) or not last:
        return _of_one("switch", functions[min(max(at, 0), last) if last else 0], operands)
    flags = [at <= 0, *(at == i for i in range(1, last)), at >= last]
    results = [run_branch(flag, function, operands) for flag, function in zip(flags, functions)]
    made, structure = alike("switch", results, [f"branch {i}" for i in range(len(functions))])
    leaves = made[last]
    for flag, branch in zip(flags[-2::-1], made[-2::-1]):
        leaves = [chosen(flag, x, y) for x, y in zip(branch, leaves)]
    return tree_unflatten(structure, leaves)


def _of_one(name: str, function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """The result of one branch, with tensors for numbers."""
    with noted(name, args, "operands"):
        result = function(*args)
    leaves, structure = leaves_of(result, name, "the result of the branch")
    return tree_unflatten(structure, leaves)
