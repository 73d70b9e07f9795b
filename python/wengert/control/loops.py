"""Loops: as long as a condition holds, or over a range of integers."""

from collections.abc import Callable
from typing import Any, TypeVar, TypeVarTuple, overload

from wengert import _core
from wengert._core import Tensor
from wengert.control._carry import Carry, Leaves, settled
from wengert.control._choices import chosen, goes_on, is_idle, position, run_branch, truth
from wengert.control._spelling import also, noted
from wengert.transforms._flat import check_count, check_function

__all__ = ["fori_loop", "while_loop"]
__dir__ = __all__.copy

C = TypeVar("C")
Ts = TypeVarTuple("Ts")


@overload
def while_loop(
    cond_fun: Callable[[Tensor], bool | Tensor], body_fun: Callable[[Tensor], Tensor], init_val: complex
) -> Tensor: ...
@overload
def while_loop(cond_fun: Callable[[C], bool | Tensor], body_fun: Callable[[C], C], init_val: C) -> C: ...
@overload
def while_loop(
    cond_fn: Callable[[*Ts], bool | Tensor],
    body_fn: Callable[[*Ts], Any],
    *,
    carried_inputs: tuple[*Ts],
) -> tuple[*Ts]: ...
@also(cond_fn="cond_fun", body_fn="body_fun")
def while_loop(
    cond_fun: Callable[..., Any],
    body_fun: Callable[..., Any],
    init_val: Any = None,
    *,
    carried_inputs: Any = None,
) -> Any:
    """Computes `val = body_fun(val)` as long as `cond_fun(val)` holds, beginning with `init_val`.

    All derivatives exist, reverse mode too, whatever the number of steps is: each step is recorded. A loop of
    many steps keeps what each of them saves; `scan(save=...)` of a known length keeps less.

    Args:
        cond_fun: a function of the value that returns a bool, or a bool tensor of shape (). Where it differs
            between the examples of a `vmap`, the body runs for all examples until no condition holds any
            more. An example that is done keeps its value, and later steps have no part in its gradient; the
            body still sees that value, and must not raise there.
        body_fun: a function of the value that returns one of the same structure, shapes and dtypes.
        init_val: a tensor, a number, or a tree of these. A number takes the dtype that the first step
            returns in its place, and its own where no step runs.
        carried_inputs: for programs written for PyTorch, instead of `init_val`: a tuple of which `cond_fun`
            and `body_fun` take the entries as their arguments; the latter returns a tuple of new ones.
            PyTorch's names of the functions are `cond_fn` and `body_fn`.

    Returns:
        The last value.

    Raises:
        TypeError: for a condition of another kind, and for a value that changes its dtype.
        ValueError: for a value that changes its structure or device.
        ShapeError: for a value that changes its shape.

    Example:
        >>> halve = lambda x: wg.while_loop(lambda x: x > 1, lambda x: x / 2, x)
        >>> halve(wg.tensor(12.0))
        tensor(0.75)
        >>> wg.vmap(wg.grad(halve))(wg.tensor([12.0, 3.0, 0.5]))
        tensor([0.0625, 0.2500, 1.0000])
    """
    check_function(cond_fun, "while_loop", "cond_fun")
    check_function(body_fun, "while_loop", "body_fun")
    if carried_inputs is None:
        if init_val is None:
            raise TypeError("while_loop: the third argument is the value to begin with, init_val")
        with noted("while_loop", [init_val], "carried_inputs"):
            return _settled(Carry("while_loop", init_val, "the value"), cond_fun, body_fun)
    if init_val is not None:
        raise TypeError("while_loop: init_val and carried_inputs are two forms of one argument; give one")
    if not isinstance(carried_inputs, (tuple, list)):
        raise TypeError(f"while_loop: carried_inputs is a tuple, got {type(carried_inputs).__name__}")

    def body(values: Any) -> Any:
        result = body_fun(*values)
        return tuple(result) if isinstance(result, (tuple, list)) else (result,)

    carry = Carry("while_loop", tuple(carried_inputs), "the value")
    return _settled(carry, lambda values: cond_fun(*values), body)


def _settled(carry: Carry, test: Callable[[Any], Any], body: Callable[[Any], Any]) -> Any:
    """The loop, on the tree of the carry."""
    return settled(lambda: carry.tree(_while(carry, test, body)))


def _while(carry: Carry, test: Callable[[Any], Any], body: Callable[[Any], Any]) -> Leaves:
    leaves = carry.leaves
    # Which examples of a batch still run; None as long as all of them do the same.
    running: Tensor | None = None
    begun = False
    while True:
        value = carry.tree(leaves)
        flag = truth(carry.name, "what the condition returns", test(value))
        if running is not None or isinstance(flag, Tensor):
            running = flag if running is None else running & flag  # type: ignore[assignment]
            assert running is not None
            if not goes_on(running, begun):
                return leaves
            new = run_branch(running, body, [value])
        elif not goes_on(flag, begun):
            return leaves
        else:
            new = body(value)
        leaves, begun = _kept(running, carry.check(new), leaves), True


def _kept(running: Tensor | None, new: Leaves, old: Leaves) -> Leaves:
    """The new values of examples that run, and the old ones of those that are done."""
    return new if running is None else [chosen(running, x, y) for x, y in zip(new, old)]


@overload
def fori_loop(
    lower: int | Tensor,
    upper: int | Tensor,
    body_fun: Callable[[Tensor, Tensor], Tensor],
    init_val: complex,
    *,
    unroll: int | bool | None = None,
) -> Tensor: ...
@overload
def fori_loop(
    lower: int | Tensor,
    upper: int | Tensor,
    body_fun: Callable[[Tensor, C], C],
    init_val: C,
    *,
    unroll: int | bool | None = None,
) -> C: ...
def fori_loop(
    lower: int | Tensor,
    upper: int | Tensor,
    body_fun: Callable[[Tensor, Any], Any],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> Any:
    """Computes `val = body_fun(i, val)` for each `i` from `lower` up to `upper`, without `upper`.

    Args:
        lower, upper: integers, or integer tensors of shape (). Under `vmap` each example may have its own;
            the body then runs as often as the longest range needs, and those that are done keep their values.
        body_fun: a function of an index and the value that returns a value of the same structure, shapes and
            dtypes. The index is a tensor of shape (), of the dtype of a bound that is a tensor, or int64.
        init_val: a tensor, a number, or a tree of these. A number takes the dtype that the first step
            returns in its place, and its own where no step runs.
        unroll: accepted, as JAX has it: steps run one by one.

    Returns:
        The last value; `init_val` if the range is empty.

    Raises:
        TypeError: for bounds of another kind, and for a value that changes its dtype.
        ValueError: for a value that changes its structure or device.
        ShapeError: for a value that changes its shape.

    Example:
        >>> power = lambda n, x: wg.fori_loop(0, n, lambda i, y: y * x, wg.ones_like(x))
        >>> power(3, wg.tensor(2.0))
        tensor(8.)
        >>> wg.vmap(power)(wg.tensor([0, 1, 2]), wg.tensor([5.0, 5.0, 5.0]))
        tensor([ 1.,  5., 25.])
    """
    check_function(body_fun, "fori_loop", "body_fun")
    check_count("fori_loop", "unroll", unroll, 0)
    first: Any = position("fori_loop", "lower", lower)
    last: Any = position("fori_loop", "upper", upper)
    dtype = next((x.dtype for x in (lower, upper) if isinstance(x, Tensor)), _core.int64)
    carry = Carry("fori_loop", init_val, "the value")
    if isinstance(first, int) and isinstance(last, int):
        return settled(lambda: carry.tree(_for(carry, first, last, dtype, body_fun)))
    return settled(lambda: carry.tree(_for_each(carry, first, last, dtype, body_fun)))


def _for(carry: Carry, first: int, last: int, dtype: Any, body: Callable[[Any, Any], Any]) -> Leaves:
    leaves, zero = carry.leaves, _core.tensor(0, dtype=dtype, device="cpu")
    for i in range(first, last):
        if i == first + 1 and is_idle():
            break
        leaves = carry.check(body(zero + i, carry.tree(leaves)))
    return leaves


def _for_each(carry: Carry, first: Any, last: Any, dtype: Any, body: Callable[[Any, Any], Any]) -> Leaves:
    """The loop of a batch whose examples have ranges of their own."""
    leaves, begun = carry.leaves, False
    if isinstance(first, int):
        first = _core.tensor(first, dtype=dtype, device="cpu")
    at = first
    while goes_on(running := at < last, begun):
        # An example that is done sees its last index, which is in range.
        index = at.minimum(last - 1)
        leaves = _kept(running, carry.check(run_branch(running, body, [index, carry.tree(leaves)])), leaves)
        at, begun = at + running, True
    return leaves
