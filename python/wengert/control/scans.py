"""Scans: a function of a carry and a slice, step by step along an axis; and maps, which carry nothing."""

import contextlib
import operator
from collections.abc import Callable
from math import comb
from typing import Any, Literal, TypeVar, overload

from wengert import _core
from wengert._core import ShapeError, Tensor
from wengert.control._carry import Carry, Kind, Leaves, compare, kind_of, leaves_like, settled
from wengert.control._revolve import DEPTH, chain
from wengert.control._spelling import also
from wengert.transforms._flat import check_count, check_function, leaves_of
from wengert.transforms.batch import vmap
from wengert.tree import TreeDef, tree_unflatten

__all__ = ["map", "scan"]
__dir__ = __all__.copy

C = TypeVar("C")
X = TypeVar("X")
Y = TypeVar("Y")


class _Rows:
    """The slices of a tree of tensors along an axis."""

    __slots__ = ("leaves", "length", "rows", "structure")

    def __init__(self, name: str, xs: Any, dim: int, length: int | None) -> None:
        self.leaves, self.structure = leaves_of(xs, name, "xs")
        self.leaves = [_in_front(name, self.structure, i, x, dim) for i, x in enumerate(self.leaves)]
        lengths = [x.shape[0] for x in self.leaves]
        if not lengths and length is None:
            hint = "; say how many steps to take, as in length=10" if name == "scan" else ""
            raise ValueError(f"{name}: xs has no tensors{hint}")
        self.length: int = lengths[0] if lengths else length  # type: ignore[assignment]
        if any(n != self.length for n in lengths):
            listed = ", ".join(
                f"{n} at {path}" if path else str(n) for n, path in zip(lengths, self.structure._paths())
            )
            raise ShapeError(f"{name}: the tensors of xs have different lengths along axis {dim}: {listed}")
        if length not in (None, self.length):
            raise ShapeError(f"{name}: length={length} for xs of length {self.length} along axis {dim}")
        cut = [x.unbind(0) for x in self.leaves]
        self.rows: list[Leaves] = (
            [list(row) for row in zip(*cut)] if cut else [[] for _ in range(self.length)]
        )

    def tree(self, row: Leaves) -> Any:
        """A slice as the function sees it."""
        return tree_unflatten(self.structure, row)

    def zeros(self) -> Leaves:
        """A slice of zeros, which tells what a function returns where there are no slices."""
        return [_core.zeros(x.shape[1:], dtype=x.dtype, device=x.device) for x in self.leaves]


def _in_front(name: str, structure: TreeDef, i: int, x: Tensor, dim: int) -> Tensor:
    if not -x.ndim <= dim < x.ndim:
        path = structure._paths()[i]
        at = f" at {path}" if path else ""
        raise ShapeError(f"{name}: xs{at} of shape {tuple(x.shape)} has no axis {dim} to go along")
    return x if dim in (0, -x.ndim) else x.movedim(dim, 0)


class _Results:
    """The results of the steps, all of one kind: that of the first."""

    __slots__ = ("first", "name", "structure")

    def __init__(self, name: str) -> None:
        self.name = name
        self.first: list[Kind] | None = None
        self.structure: TreeDef | None = None

    def check(self, y: Any) -> Leaves:
        """The leaves of the result of a step."""
        what = "the result of a step"
        if self.first is None or self.structure is None:
            leaves, self.structure = leaves_of(y, self.name, what)
            self.first = [kind_of(x) for x in leaves]
            return leaves
        leaves, found = leaves_like(y, self.first, self.name, what)
        hint = "all steps return one structure, with equal shapes and dtypes"
        words = ("the result of the first step", "is", "that of another", hint)
        compare(self.name, leaves, self.first, self.structure, found, words)
        return leaves

    def stacked(self, ys: list[Leaves]) -> Any:
        """The results of all steps, along a new first axis."""
        assert self.structure is not None and self.first is not None  # noqa: PT018
        if ys:
            return tree_unflatten(self.structure, [_core.stack(list(column), 0) for column in zip(*ys)])
        none = [_core.zeros((0, *y.shape), dtype=y.dtype, device=y.device) for y in self.first]
        return tree_unflatten(self.structure, none)


@overload
def scan(
    f: Callable[[C, X], tuple[C, Y]],
    init: C | complex,
    xs: X,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    dim: int = 0,
    save: Literal["residuals", "carries"] | int = "residuals",
) -> tuple[C, Y]: ...
@overload
def scan(
    f: Callable[[C, None], tuple[C, Y]],
    init: C | complex,
    xs: None = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    save: Literal["residuals", "carries"] | int = "residuals",
) -> tuple[C, Y]: ...
@overload
def scan(
    *,
    combine_fn: Callable[[C, X], tuple[C, Y]],
    init: C | complex,
    xs: X,
    dim: int = 0,
    reverse: bool = False,
    length: int | None = None,
    save: Literal["residuals", "carries"] | int = "residuals",
) -> tuple[C, Y]: ...
@also(combine_fn="f")
def scan(
    f: Callable[..., Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    dim: int = 0,
    save: Any = "residuals",
) -> Any:
    """Computes `carry, y = f(carry, x)` for each slice `x` of `xs` in turn, beginning with the carry `init`.

    Args:
        f: a function of the carry and a slice that returns a pair: the next carry, of the same structure,
            shapes and dtypes, and a result of any structure (None for none). `combine_fn` is its name in
            PyTorch.
        init: a tensor, a number, or a tree of these.
        xs: a tensor, or a tree of tensors of one length along the axis; None for slices that are None.
        length: the number of steps, needed only where `xs` has no tensors.
        reverse: whether to go from the last slice to the first; each result stands in the place of its slice.
        unroll: accepted, as JAX has it: steps run one by one.
        dim: the axis of `xs` to go along; results are stacked along the first axis whatever it is.
        save: what backward finds. `"residuals"` keeps what the operations of all steps save. `"carries"`
            keeps the carry before each step, and backward runs each step again. A number is the bytes that
            kept carries may take: as many are kept as go into it, and backward runs steps again from the last
            carry before them, by the schedule that needs the fewest (Griewank and Walther 2000, "Algorithm
            799: revolve"): s carries are enough for `(s+r)!/(s! r!)` steps, each of which runs again at most
            r times. Under `vmap` the bytes are those of one example. Values and gradients have the same bits
            in all three (their own derivatives may be summed in another order); `f` must do the same each
            time.

    Returns:
        `(carry, ys)`: the last carry, and the results of all steps stacked along a new first axis. Without
        steps the carry is `init`, and `f` runs once on zeros to tell what results would be.

    Raises:
        ShapeError: for tensors of different lengths in `xs`, for a carry that changes its shape, and for
            results of different shapes.
        ValueError: without tensors in `xs` and without `length`; for another `save`; for bytes that hold no
            carry, or too few for so many steps (with 100 runs of each); for a carry that changes its
            structure or device.
        TypeError: if `f` returns no pair, and for a carry that changes its dtype.

    Example:
        >>> total, sums = wg.scan(lambda c, x: (c + x, c + x), 0.0, wg.tensor([1.0, 2.0, 3.0]))
        >>> total, sums
        (tensor(6.), tensor([1., 3., 6.]))
        >>> f = lambda x: wg.scan(lambda c, _: (c.sin(), None), x, length=100, save=20)[0]
        >>> wg.grad(f)(wg.tensor(1.0))
        tensor(0.0037)
    """
    check_function(f, "scan")
    check_count("scan", "length", length, 0)
    check_count("scan", "unroll", unroll, 0)
    steps = _Rows("scan", xs, dim, length)
    save = _checked_save(save)
    carry = Carry("scan", init, "the carry")

    def run() -> tuple[Any, Any]:
        results = _Results("scan")

        def step(leaves: Leaves, row: Leaves) -> tuple[Leaves, Leaves]:
            pair = f(carry.tree(leaves), steps.tree(row))
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(
                    f"scan: the function returns a pair (carry, result), got {type(pair).__name__}; write "
                    f"None "
                    "for no result"
                )
            return carry.check(pair[0]), results.check(pair[1])

        rows = steps.rows[::-1] if reverse else steps.rows
        leaves, ys = carry.leaves, []
        if not rows:
            step(leaves, steps.zeros())
        elif (slots := _slots(save, len(rows), leaves)) is None:
            for row in rows:
                leaves, y = step(leaves, row)
                ys.append(y)
        else:
            leaves, ys = chain(step, leaves, rows, slots)
        return carry.tree(leaves), results.stacked(ys[::-1] if reverse else ys)

    return settled(run)


def _checked_save(save: Any) -> str | int:
    """One of the words, or a number of bytes. Raises ValueError for all else."""
    if isinstance(save, str) and save in ("residuals", "carries"):
        return save
    number = 0
    if not isinstance(save, bool) and hasattr(save, "__index__"):
        with contextlib.suppress(TypeError):
            number = operator.index(save)
    if number < 1:
        raise ValueError(
            f"scan: save is 'residuals', 'carries' or a number of bytes, at least 1, got {save!r}"
        )
    return number


def _slots(save: Any, length: int, carry: Leaves) -> int | None:
    """How many carries are kept; None where everything is."""
    if save == "residuals":
        return None
    size = sum(x.numel() * x.element_size() for x in carry)
    if save == "carries" or not size:
        return length
    slots: int = save // size
    if comb(slots + DEPTH, slots) >= length and slots:
        return slots
    least = next(n for n in range(1, length + 1) if comb(n + DEPTH, n) >= length)
    what = f"save={save} is less than the {size} bytes of one carry"
    if slots:
        what = (
            f"save={save} keeps {slots} of the carries, of {size} bytes each, so that some of the {length} "
            f"steps would run again more than {DEPTH} times"
        )
    raise ValueError(f"scan: {what}; give at least {least * size} bytes, save={least * size}")


def map(f: Callable[..., Y], xs: Any, *args: Any, batch_size: int | None = None) -> Y:
    """Computes `f(x, *args)` for each slice `x` of `xs` along the first axis, and stacks the results.

    Args:
        f: a function that returns a tensor, or a tree of tensors.
        xs: a tensor, or a tree of tensors of one length along the first axis.
        args: further arguments, the same for all slices, as in PyTorch; anything.
        batch_size: how many slices to compute at once, by `vmap`, in which random numbers differ between
            slices; by default one after another.

    Returns:
        The results of all slices, stacked along a new first axis. Without slices `f` runs once on zeros to
        tell what results would be.

    Raises:
        ShapeError: for tensors of different lengths in `xs`, and for results of different shapes.
        ValueError: for no tensors in `xs`, a `batch_size` below 1, and results of different structures.
        TypeError: for results of different dtypes.

    Example:
        >>> wg.control.map(lambda x: x.cumsum(0), wg.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([[1., 3.],
                [3., 7.]])
        >>> wg.control.map(lambda x, y: x * y, wg.arange(5.0), 2.0, batch_size=2)
        tensor([0., 2., 4., 6., 8.])
    """
    check_function(f, "map")
    check_count("map", "batch_size", batch_size, 1)
    steps = _Rows("map", xs, 0, None)
    if batch_size is not None and steps.length:
        axes = (0, *[None] * len(args))
        batched: Callable[..., Y] = vmap(f, axes, 0, "different", chunk_size=batch_size)
        return batched(steps.tree(steps.leaves), *args)
    results = _Results("map")
    rows = steps.rows or [steps.zeros()]
    ys = [results.check(f(steps.tree(row), *args)) for row in rows]
    found: Y = results.stacked(ys if steps.rows else [])
    return found
