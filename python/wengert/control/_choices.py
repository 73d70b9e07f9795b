"""What decides: predicates and indices, and values chosen by them where the examples of a batch differ."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert import _core
from wengert._core import Tensor
from wengert.autograd.function import Function, VmapInfo
from wengert.transforms.axes import has_ranks
from wengert.tree import tree_map

__all__ = ["anywhere", "chosen", "goes_on", "is_idle", "position", "run_branch", "truth"]

_SIGNED = (_core.int8, _core.int16, _core.int32, _core.int64)
_UNSIGNED = (_core.uint8, _core.uint16, _core.uint32, _core.uint64)


class _Anywhere(Function):
    """Whether a truth value holds for any example of the batches around it: one value for all of them.

    `seen` gets an entry for each batch.
    """

    @staticmethod
    def forward(x: Tensor, seen: list[bool]) -> Tensor:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: Any) -> None:
        return None

    @staticmethod
    def vmap(info: VmapInfo, in_dims: Any, x: Tensor, seen: list[bool]) -> Any:
        seen.append(True)
        return _Anywhere.apply(x.any(in_dims[0]), seen), None


def anywhere(flag: bool | Tensor) -> bool:
    """Whether a truth value holds for any example."""
    return flag if isinstance(flag, bool) else bool(_Anywhere.apply(flag, []))


def goes_on(flag: bool | Tensor, begun: bool) -> bool:
    """Whether a loop whose condition is `flag` goes on. Once it has begun, only the examples that take the
    branch around it count: others may never end. The first step always runs, for it says what the loop
    returns. Ranks do not know of each other who takes it, and their steps may need each other.
    """
    around = _core._branch_taken() if begun and not has_ranks() else None
    return anywhere(flag if around is None or flag is False else around & flag)


def is_idle() -> bool:
    """Whether it is known that no example takes the branch around a loop."""
    return not has_ranks() and _core._is_branch_idle()


def _is_batched(x: Tensor) -> bool:
    """Whether the value may differ between the examples of a batch."""
    seen: list[bool] = []
    _Anywhere.apply(x, seen)
    return bool(seen)


def _described(x: Any) -> str:
    if isinstance(x, Tensor):
        return f"{x.dtype!r} of shape {tuple(x.shape)}"
    return f"{type(x).__name__} {x!r}"


def truth(name: str, what: str, flag: Any, read: bool = True) -> bool | Tensor:
    """A predicate as a truth value of Python, or as a tensor where the examples of a batch differ, or where
    it is not to be read since processes may differ.

    Raises:
        TypeError: it is neither a bool nor a bool tensor of shape ().
    """
    if isinstance(flag, bool):
        return flag
    given = flag
    if isinstance(flag, (np.bool_, np.ndarray)):
        flag = _core.as_tensor(flag, device="cpu")
    if not isinstance(flag, Tensor) or flag.dtype != _core.bool or flag.ndim:
        hint = ""
        if isinstance(flag, Tensor) and flag.dtype == _core.bool:
            hint = "; reduce it with .all() or .any()"
        elif isinstance(flag, (Tensor, int, float)):
            hint = "; compare it with a number, as in x > 0"
        raise TypeError(
            f"{name}: {what} is a bool or a bool tensor of shape (), got {_described(given)}{hint}"
        )
    return _read(bool, flag) if read else flag


def position(name: str, what: str, index: Any, read: bool = True) -> int | Tensor:
    """An integer of Python, or a tensor of one where the examples of a batch differ, or where it is not to be
    read.

    Raises:
        TypeError: it is neither an integer nor an integer tensor of shape ().
    """
    if type(index) is int:
        return index
    given = index
    if isinstance(index, (np.integer, np.ndarray)):
        index = _core.as_tensor(index, device="cpu")
    if not isinstance(index, Tensor) or index.dtype not in (*_SIGNED, *_UNSIGNED) or index.ndim:
        raise TypeError(
            f"{name}: {what} is an integer or an integer tensor of shape (), got {_described(given)}"
        )
    return _read(int, index) if read else index


def _read(kind: Callable[[Any], Any], x: Tensor) -> Any:
    """The value of a tensor, or the tensor where its value differs between examples."""
    if _core._is_staging() and _is_batched(x):
        # To try would end the program that is written down.
        return x
    try:
        return kind(x)
    except TypeError:
        return x


def run_branch(flag: Tensor, function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """Calls a branch that is taken where the flag holds. Elsewhere the operands, and what it reads besides,
    have no derivative: 0 times one that is not finite would be NaN.

    The branch may write into its operands, which are copies. One that it returns as it was is no copy.
    """
    copies: dict[int, tuple[Tensor, Tensor, Tensor]] = {}

    def operand(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        copy, made = _core._branch_operand(x)
        copies[id(copy)] = x, copy, made
        return copy

    def result(y: Any) -> Any:
        if id(y) not in copies:
            return y
        given, copy, made = copies[id(y)]
        return copy if _core._is_written(copy, made) else given

    call = lambda: tree_map(result, function(*tree_map(operand, tuple(args))))
    return _core._in_branch(flag, call)


def chosen(flag: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """`first` where the flag holds, `second` elsewhere; what both have in common is left as it is."""
    return first if first is second else _core._choose(flag, first, second)
