"""The dtypes of the standard, how they promote, and the functions that ask about them."""

import functools
from typing import Any

from wengert import _core, _info
from wengert._core import Tensor, dtype

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

# The kinds of the standard, and the dtypes of each by name. A kind made of others follows from them.
KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]

# The dtypes of the standard by name.
DTYPES: dict[str, dtype] = {name: getattr(_core, name) for name in (*KINDS["bool"], *KINDS["numeric"])}

# The two that the standard does not have are floating point numbers as well.
_OF_KIND = KINDS | {kind: (*KINDS[kind], "float16", "bfloat16") for kind in ("real floating", "numeric")}


def default_float() -> dtype:
    """The dtype of floats where nothing else says it."""
    return _core.empty(0).dtype


def isdtype(dtype: Any, kind: Any) -> bool:
    """Tells whether a dtype is of a kind.

    Args:
        kind: a dtype; `"bool"`, `"signed integer"`, `"unsigned integer"`, `"integral"`, `"real floating"`,
            `"complex floating"` or `"numeric"`; or a tuple of those, any of which will do.

    Raises:
        ValueError: another word.

    Example:
        >>> import wengert.numpy as xp
        >>> xp.isdtype(xp.float32, "real floating"), xp.isdtype(xp.bool, ("integral", xp.int64))
        (True, False)
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if not isinstance(kind, str):
        return bool(dtype == kind)
    if kind not in _OF_KIND:
        raise ValueError(
            f"isdtype: {kind!r} is no kind of dtypes; expected one of {', '.join(map(repr, KINDS))}"
        )
    return dtype.name in _OF_KIND[kind]


def finfo(type: Any, /) -> _info.finfo:
    """Returns the limits of a floating point dtype, or of a tensor's: `bits`, `eps`, `max`, `min`,
    `smallest_normal`.
    """
    return _info.finfo(type)


def iinfo(type: Any, /) -> _info.iinfo:
    """Returns the limits of an integer dtype, or of a tensor's: `bits`, `max`, `min`."""
    return _info.iinfo(type)


@functools.cache
def promoted(a: dtype, b: dtype) -> dtype:
    """The dtype of an operation on arrays of two dtypes."""
    return _core.result_type(_core.empty(1, dtype=a), _core.empty(1, dtype=b))


def result_type(*arrays_and_dtypes: Any) -> dtype:
    """Returns the dtype of an operation on all of these: tensors, dtypes and Python numbers.

    The number of axes does not count, unlike in this library's operators, where a number in a 0-d tensor does
    not widen a tensor with axes. Python numbers adapt to the tensors.

    Raises:
        ValueError: neither a tensor nor a dtype among them.

    Example:
        >>> import wengert.numpy as xp
        >>> xp.result_type(xp.ones(3), xp.float64, 2)
        wengert.float64
    """
    numbers, dtypes = [], []
    for x in arrays_and_dtypes:
        if isinstance(x, (bool, int, float, complex)):
            numbers.append(x)
        else:
            dtypes.append(x.dtype if isinstance(x, Tensor) else x)
    if not dtypes:
        raise ValueError("result_type: at least one tensor or dtype expected among the arguments")
    found = functools.reduce(promoted, dtypes)
    for number in numbers:
        found = _core.result_type(_core.empty(1, dtype=found), number)
    return found


def can_cast(from_: Any, to: dtype, /) -> bool:
    """Tells whether promotion leads from one dtype (or that of a tensor) to another.

    Example:
        >>> import wengert.numpy as xp
        >>> xp.can_cast(xp.int32, xp.int64), xp.can_cast(xp.float64, xp.float32)
        (True, False)
    """
    if not isinstance(from_, (dtype, Tensor)) or not isinstance(to, dtype):
        raise TypeError(f"can_cast: a dtype or a tensor, and a dtype, expected, got {from_!r} and {to!r}")
    return _castable(from_.dtype if isinstance(from_, Tensor) else from_, to)


@functools.cache
def _castable(a: dtype, b: dtype) -> bool:
    # The standard promotes within a kind, and from real to complex numbers.
    kinds = ("bool", "integral", ("real floating", "complex floating"))
    return any(isdtype(a, kind) and isdtype(b, kind) for kind in kinds) and promoted(a, b) == b


def astype(x: Tensor, dtype: dtype, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Returns a tensor converted to another dtype, on another device if one is given.

    Args:
        copy: a copy also where nothing changes.
    """
    return x.to(dtype=dtype, device=device, copy=copy)
