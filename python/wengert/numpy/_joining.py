"""NumPy's functions that join, split, pad and choose, beyond those of the standard."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import wengert as wg
from wengert import _core
from wengert._arguments import axis_of, operand
from wengert._core import Tensor

from ._dtypes import default_float
from ._manipulation import concat
from ._rows import row
from ._searching import unique_all, where

__all__ = [
    "append",
    "apply_along_axis",
    "array_split",
    "block",
    "c_",
    "compress",
    "delete",
    "dsplit",
    "hsplit",
    "insert",
    "mgrid",
    "ogrid",
    "pad",
    "piecewise",
    "r_",
    "select",
    "split",
    "unique",
    "vsplit",
]


def append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    """Joins `values` behind a tensor along an axis; both are flattened where none is given."""
    return concat([operand("append", arr), operand("append", values)], axis)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Splits along an axis, into views.

    Args:
        indices_or_sections: how many parts, the first of which are longer by one where the length does not
            divide; or the places where parts begin.
    """
    if isinstance(indices_or_sections, np.ndarray):
        indices_or_sections = indices_or_sections.tolist()
    return list(wg.tensor_split(operand("split", ary), indices_or_sections, axis))


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Splits along an axis, into views of one length, or at the places where parts begin.

    Raises:
        ValueError: a number of parts that does not divide the length.
    """
    length = operand("split", ary).shape[axis]
    if isinstance(indices_or_sections, int) and length % indices_or_sections:
        raise ValueError(
            f"split: axis {axis} of length {length} does not divide into {indices_or_sections} equal parts; "
            "array_split makes unequal ones"
        )
    return array_split(ary, indices_or_sections, axis)


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Calls a function with each vector along an axis, and joins what it returns along that axis.

    Args:
        args, kwargs: what the function takes besides.
    """
    x = operand("apply_along_axis", arr)
    axis = axis_of("apply_along_axis", axis, x.ndim)
    lines = x.moveaxis(axis, -1)
    made = [operand("apply_along_axis", func1d(v, *args, **kwargs)) for v in lines.reshape(-1, x.shape[axis])]
    out = _core.stack(made).reshape((*lines.shape[:-1], *made[0].shape))
    return out.moveaxis(tuple(range(x.ndim - 1, out.ndim)), tuple(range(axis, axis + made[0].ndim)))


def compress(condition: Any, a: Any, axis: int | None = None) -> Tensor:
    """Returns the slices along an axis, or the elements of the flattened tensor, where a condition holds."""
    x, axis = _along("compress", a, axis)
    places = operand("compress", condition).reshape(-1).nonzero().reshape(-1)
    return x.index_select(axis, places)


hsplit = row(
    "hsplit",
    lambda ary, indices_or_sections: split(ary, indices_or_sections, int(operand("hsplit", ary).ndim > 1)),
    "Splits along the second axis, vectors along their only one; see `split`.",
)
vsplit = row(
    "vsplit",
    lambda ary, indices_or_sections: split(ary, indices_or_sections, 0),
    "Splits along the first axis.",
)
dsplit = row(
    "dsplit",
    lambda ary, indices_or_sections: split(ary, indices_or_sections, 2),
    "Splits along the third axis.",
)


def block(arrays: Any) -> Tensor:
    """Joins nested lists of blocks: the innermost along the last axis, those around them along the one
    before."""
    depth, inner = 0, arrays
    while isinstance(inner, list):
        depth, inner = depth + 1, inner[0]
    return _joined(arrays, depth, -depth)


def _joined(part: Any, depth: int, axis: int) -> Tensor:
    if not isinstance(part, list):
        part = operand("block", part)
        return part.reshape((1,) * (depth - part.ndim) + tuple(part.shape)) if part.ndim < depth else part
    return concat([_joined(p, depth, axis + 1) for p in part], axis)


def delete(arr: Any, obj: Any, axis: int | None = None) -> Tensor:
    """Returns the tensor without the slices at places along an axis, without these elements of the flattened
    one by default.

    Args:
        obj: an integer, a slice, a mask, or a sequence of integers.
    """
    x, axis = _along("delete", arr, axis)
    return _picked(x, axis, np.delete(np.arange(x.shape[axis]), _plain(obj)))


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Tensor:
    """Returns the tensor with values before the slices at places along an axis, before these elements of the
    flattened one by default.

    Args:
        obj: an integer, a slice, or a sequence of integers.
        values: what is inserted; broadcasts to one slice for each place.
    """
    x, axis = _along("insert", arr, axis)
    length = x.shape[axis]
    old = np.insert(np.arange(length), _plain(obj), -1)
    new = np.flatnonzero(old < 0)
    values = operand("insert", values, x).to(x.dtype)
    if np.ndim(obj) == 0 and not isinstance(obj, slice):
        # As in an assignment to one slice: the axis is not among those of the values.
        values = values.unsqueeze(0) if values.ndim else values
        values = values.moveaxis(0, axis) if values.ndim == x.ndim else values
    shape = [*x.shape[:axis], len(new), *x.shape[axis + 1 :]]
    order = np.where(old < 0, length + np.cumsum(old < 0) - 1, old)
    both = _core.cat([x, values.broadcast_to(shape)], axis)
    return _picked(both, axis, order)


def _along(name: str, arr: Any, axis: int | None) -> tuple[Tensor, int]:
    x = operand(name, arr)
    return (x.reshape(-1), 0) if axis is None else (x, axis_of(name, axis, x.ndim))


def _picked(x: Tensor, axis: int, places: np.ndarray[Any, Any]) -> Tensor:
    """The slices along an axis at places."""
    return x.index_select(
        axis, _core.as_tensor(places.astype(np.int32 if x.is_gpu else np.int64), device=x.device)
    )


def _plain(obj: Any) -> Any:
    return obj.tolist() if isinstance(obj, Tensor) else obj


def pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Tensor:
    """Returns the tensor with more elements before and behind it along each axis.

    Args:
        pad_width: how many, as a number for all, a pair (before, behind) for all, or one pair for each axis.
        mode: `"constant"`, or what the new elements repeat, as NumPy names it: `"edge"`, `"reflect"`,
            `"symmetric"` or `"wrap"`.
        constant_values: what the new elements are with `"constant"`, given as `pad_width` is.

    Raises:
        ValueError: another mode.
    """
    x = operand("pad", array)
    modes = ("constant", "edge", "reflect", "symmetric", "wrap")
    if mode not in modes:
        raise ValueError(f"pad: mode must be one of {', '.join(map(repr, modes))}, got {mode!r}")
    widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)).tolist()
    values = np.broadcast_to(np.asarray(constant_values), (x.ndim, 2)).tolist()
    for axis, (width, ends) in enumerate(zip(widths, values)):
        if mode == "constant":
            shapes = ([*x.shape[:axis], n, *x.shape[axis + 1 :]] for n in width)
            before, behind = (_core.full(s, v, dtype=x.dtype, device=x.device) for s, v in zip(shapes, ends))
            x = _core.cat([before, x, behind], axis)
        elif any(width):
            places: Any = np.pad(np.arange(x.shape[axis]), width, mode=mode)  # type: ignore[call-overload]
            x = _picked(x, axis, places)
    return x


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any]) -> Tensor:
    """Returns, where a condition holds, the function at its place of the elements; zero where none holds.

    Args:
        funclist: functions or numbers, one more than conditions where the last is for all other elements.
    """
    x = operand("piecewise", x)
    conditions = [
        operand("piecewise", c) for c in (condlist if isinstance(condlist, (list, tuple)) else [condlist])
    ]
    values = [f(x) if callable(f) else f for f in funclist]
    rest = values.pop() if len(values) > len(conditions) else 0
    out = operand("piecewise", rest, x).to(x.dtype).broadcast_to(x.shape)
    # The last condition that holds counts.
    for condition, value in zip(conditions, values, strict=True):
        out = where(condition, value, out)
    return out


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
    """Returns elements of the choice of the first condition that holds, `default` where none does."""
    out = default
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        out = where(condition, choice, out)
    return out


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Any:
    """Returns the distinct elements, ascending, or the distinct slices along an axis; and what is asked for
    of where each occurs first, which each element is, and how often each occurs.

    Raises:
        NotImplementedError: `return_index` with an axis.
    """
    if axis is None:
        found = unique_all(operand("unique", ar))
        wanted = (True, return_index, return_inverse, return_counts)
        parts = tuple(part for part, is_wanted in zip(found, wanted) if is_wanted)
        return parts if len(parts) > 1 else parts[0]
    if return_index:
        raise NotImplementedError(
            "unique: return_index takes no axis; find the first of equal slices by comparing"
        )
    return wg.unique(operand("unique", ar), True, return_inverse, return_counts, axis)


class _Joined:
    """`r_` and `c_`: what stands in the brackets, joined along an axis; slices are ranges of numbers."""

    def __init__(self, name: str, part: Callable[[Tensor], Tensor], axis: int) -> None:
        self._name, self._part, self._axis = name, part, axis

    def __repr__(self) -> str:
        """Its name."""
        return f"wengert.numpy.{self._name}"

    def __getitem__(self, key: Any) -> Tensor:
        """Numbers, tensors, arrays, lists, and slices: `1:4`, `0:1:0.25`, `0:1:5j`."""
        parts = []
        for item in key if isinstance(key, tuple) else (key,):
            if isinstance(item, str):
                raise TypeError(
                    f"{self._name}: directives such as {item!r} are not taken; use concatenate or stack"
                )
            made = _made(np.r_[item]) if isinstance(item, slice) else operand(self._name, item)
            parts.append(self._part(wg.atleast_1d(made)))
        return concat(parts, self._axis)


def _made(array: Any) -> Tensor:
    """A tensor of numbers that NumPy made of slices, in the default dtype."""
    made = _core.as_tensor(array)
    return made.to(default_float()) if made.is_floating_point() else made


class _Grid:
    """`mgrid` and `ogrid`: the coordinates of a grid, whose axes the slices in the brackets tell."""

    def __init__(self, name: str) -> None:
        self._name, self._grid = name, getattr(np, name)

    def __repr__(self) -> str:
        """Its name."""
        return f"wengert.numpy.{self._name}"

    def __getitem__(self, key: Any) -> Any:
        """Slices of numbers: `0:3`, `0:1:0.25`, `0:1:5j`."""
        found = self._grid[key]
        return tuple(map(_made, found)) if isinstance(found, tuple) else _made(found)


r_ = _Joined("r_", lambda x: x, 0)
mgrid, ogrid = _Grid("mgrid"), _Grid("ogrid")
c_ = _Joined("c_", lambda x: x.unsqueeze(1) if x.ndim == 1 else x, -1)
