"""Scans of an associative function: all prefixes, in sweeps whose number grows with the logarithm of the
length."""

import functools
from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

from wengert import _core
from wengert._core import ShapeError, Tensor
from wengert.control._carry import Leaves, compare, leaves_like
from wengert.control._spelling import also
from wengert.transforms._flat import check_function, leaves_of
from wengert.transforms.batch import vmap
from wengert.tree import TreeDef, tree_unflatten

__all__ = ["associative_scan"]
__dir__ = __all__.copy

T = TypeVar("T")
Function = Callable[..., Any]
Combine = Callable[[Leaves, Leaves], Leaves]
Mode = Literal["pointwise", "generic"]


def _in_either_order(function: Function) -> Function:
    """Takes PyTorch's order of arguments too: (combine_fn, xs, dim, reverse, combine_mode)."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if len(args) > 2 and type(args[2]) is int:
            # The third argument of JAX is a truth value, that of PyTorch an axis.
            given = dict(zip(("axis", "reverse", "combine_mode"), args[2:]))
            for name in given.keys() & kwargs.keys():
                raise TypeError(f"associative_scan: {name} is given twice")
            args, kwargs = args[:2], {**given, **kwargs}
        return function(*args, **kwargs)

    return wrapper


@overload
def associative_scan(
    fn: Callable[[T, T], T], elems: T, reverse: bool = False, axis: int = 0, *, combine_mode: Mode = ...
) -> T: ...
@overload
def associative_scan(
    combine_fn: Callable[[T, T], T], xs: T, dim: int, reverse: bool = False, combine_mode: Mode = ...
) -> T: ...
@also(combine_fn="fn", xs="elems", dim="axis")
@_in_either_order
def associative_scan(
    fn: Callable[..., Any],
    elems: Any,
    reverse: bool = False,
    axis: int = 0,
    *,
    combine_mode: Mode = "pointwise",
) -> Any:
    """Computes all prefixes of `elems` along an axis by an associative function: `a`, `fn(a, b)`,
    `fn(fn(a, b), c)`, …

    At most `2 log2(n)` calls of `fn` combine fewer than `2 n` pairs in all (G. Blelloch, "Prefix sums and
    their applications", 1990): neighbours are combined to half as many elements, whose prefixes are every
    other result.

    Args:
        fn: an associative function of two trees like `elems`: `fn(a, fn(b, c))` is `fn(fn(a, b), c)`. It
            combines many pairs at once, element by element along the axis. `combine_fn` is its name in
            PyTorch.
        elems: a tensor, or a tree of tensors, of one length along the axis. `xs` is its name in PyTorch.
        reverse: whether to begin at the end: the results are then those of the suffixes, combined from the
            last element on.
        axis: the axis; of a tree, counted in its first tensor. `dim` is its name in PyTorch, where it is the
            third argument: an integer in the place of `reverse` is the axis, and `reverse` and `combine_mode`
            follow it.
        combine_mode: `"pointwise"` gives `fn` many pairs at once; `"generic"` writes it for one pair, without
            the axis, and `vmap` does the rest.

    Returns:
        The prefixes, of the structure, shapes and dtypes of `elems`. Sums are rounded in another order than
        by `cumsum`.

    Raises:
        ShapeError: for tensors of different lengths, and if `fn` changes a shape.
        ValueError: for no tensors, an axis that does not exist, another mode, and if `fn` changes the
            structure.
        TypeError: if `fn` changes a dtype, and for a `reverse` or an axis of another kind.

    Example:
        >>> wg.associative_scan(wg.maximum, wg.tensor([1.0, 3.0, 2.0, 5.0]))
        tensor([1., 3., 3., 5.])

        The recurrence `h[i] = a[i] h[i-1] + b[i]`:

        >>> combine = lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1])
        >>> a, b = wg.tensor([0.5, 0.5, 0.5]), wg.tensor([8.0, 4.0, 2.0])
        >>> wg.associative_scan(combine, (a, b))[1]
        tensor([8., 8., 6.])
    """
    check_function(fn, "associative_scan")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"associative_scan: combine_mode is 'pointwise' or 'generic', got {combine_mode!r}")
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise TypeError(f"associative_scan: axis is an integer, got {axis!r}")
    if not isinstance(reverse, bool):
        raise TypeError(f"associative_scan: reverse is True or False, got {reverse!r}")
    leaves, structure = leaves_of(elems, "associative_scan", "elems")
    if not leaves:
        raise ValueError("associative_scan: elems has no tensors")
    axis = _checked(leaves, structure, axis)
    function = fn if combine_mode == "pointwise" else vmap(fn, axis, axis)

    def combine(first: Leaves, second: Leaves) -> Leaves:
        result = function(tree_unflatten(structure, first), tree_unflatten(structure, second))
        made, found = leaves_like(result, first, "associative_scan", "the function's result")
        hint = "the function returns the structure, shapes and dtypes of what it combines"
        words = ("elems", "was", "after the function it is", hint)
        compare("associative_scan", made, first, structure, found, words)
        return made

    if reverse:
        leaves = [x.flip(axis) for x in leaves]
    leaves = _prefixes(combine, leaves, axis)
    if reverse:
        leaves = [x.flip(axis) for x in leaves]
    return tree_unflatten(structure, leaves)


def _checked(leaves: Leaves, structure: TreeDef, axis: int) -> int:
    """The axis, counted from the front; all tensors have it, of one length."""
    rank = leaves[0].ndim
    if not -rank <= axis < rank:
        raise ValueError(
            f"associative_scan: elems of shape {tuple(leaves[0].shape)} has no axis {axis} to go along"
        )
    axis %= rank
    lengths = [x.shape[axis] if axis < x.ndim else None for x in leaves]
    if any(n != lengths[0] for n in lengths):
        listed = ", ".join(f"{tuple(x.shape)} at {path}" for x, path in zip(leaves, structure._paths()))
        raise ShapeError(
            f"associative_scan: the tensors have different lengths along axis {axis}: shapes {listed}"
        )
    return axis


def _prefixes(combine: Combine, leaves: Leaves, axis: int) -> Leaves:
    """All prefixes: of pairs of neighbours first, which are the results at odd places."""
    n = leaves[0].shape[axis]
    if n < 2:
        return leaves
    half = n // 2
    pairs = [x.narrow(axis, 0, 2 * half).unflatten(axis, (half, 2)).unbind(axis + 1) for x in leaves]
    odd = _prefixes(combine, combine([p[0] for p in pairs], [p[1] for p in pairs]), axis)
    even = [p[0].narrow(axis, 0, 1) for p in pairs]
    if n > 2:
        # Each further element at an even place, after all that stand before it.
        further = [p[0].narrow(axis, 1, half - 1) for p in pairs]
        if n % 2:
            further = [_core.cat([x, y.narrow(axis, n - 1, 1)], axis) for x, y in zip(further, leaves)]
        before = [x.narrow(axis, 0, (n - 1) // 2) for x in odd]
        even = [_core.cat([x, y], axis) for x, y in zip(even, combine(before, further))]
    return [_woven(x, y, axis, n) for x, y in zip(even, odd)]


def _woven(even: Tensor, odd: Tensor, axis: int, n: int) -> Tensor:
    """Elements of both in turn."""
    half = n // 2
    woven = _core.stack([even.narrow(axis, 0, half), odd], axis + 1).flatten(axis, axis + 1)
    return _core.cat([woven, even.narrow(axis, half, 1)], axis) if n % 2 else woven
