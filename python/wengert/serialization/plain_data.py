"""What a file may hold beside tensors, numbers, strings and containers, and how it lies in the file."""

import datetime
import pickle
import sys
import warnings
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

import numpy as np

from wengert import _core
from wengert._core import Tensor
from wengert._results import Along, Size

__all__ = ["CALLED", "FORMAT", "KIND", "NUMBERS", "SAFE", "little", "with_attributes"]

KIND = "wengert.tensor"
# Kinds of NumPy's dtypes that tensors have too.
NUMBERS = "biufc"
FORMAT = "1"
# What PyTorch notes of a module's buffers.
_OF_BUFFERS = {"persistent", "_is_buffer"}


def _array_of(tensor: Tensor) -> Any:
    """A NumPy array, saved as the tensor of its elements."""
    return tensor.numpy().copy()


def _number_of(tensor: Tensor) -> Any:
    """A number of a NumPy type, saved as a tensor."""
    return tensor.numpy()[()]


# The names that files have for them, wherever they are defined.
HOME = "wengert.serialization"
_array_of.__module__ = _number_of.__module__ = HOME

# What a file may name beyond tensors, numbers, strings and containers, which need no name.
SAFE: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("builtins", "complex"): complex,
    ("builtins", "slice"): slice,
    ("builtins", "bytearray"): bytearray,
    ("builtins", "range"): range,
    ("collections", "Counter"): Counter,
    ("collections", "defaultdict"): defaultdict,
    ("collections", "deque"): deque,
    **{("builtins", kind.__name__): kind for kind in (bool, dict, float, int, list, str, tuple)},
    **{
        ("datetime", kind.__name__): kind
        for kind in (datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone)
    },
    ("wengert._core", "_generator"): _core._generator,
    ("wengert._results", "Along"): Along,
    ("wengert._results", "Size"): Size,
    (HOME, "_array_of"): _array_of,
    (HOME, "_number_of"): _number_of,
}

# What of this a file may call; the others are values. Nothing here makes more than it is given.
CALLED = {
    OrderedDict,
    Counter,
    defaultdict,
    deque,
    complex,
    slice,
    range,
    bytearray,
    Along,
    Size,
    _array_of,
    _number_of,
    _core._generator,
}
CALLED |= {kind for (module, _), kind in SAFE.items() if module == "datetime"}


def with_attributes(tensor: Tensor, attributes: Any) -> Tensor:
    """The tensor, which gets the attributes that it had where it is a parameter: others have none here.

    Raises:
        pickle.UnpicklingError: for what names no attributes, or what would hide one of the class.
    """
    if not isinstance(attributes, dict) or not all(isinstance(name, str) for name in attributes):
        raise pickle.UnpicklingError("load: the attributes of a tensor are no dictionary by name")
    if not hasattr(tensor, "__dict__"):
        if lost := sorted(set(attributes) - _OF_BUFFERS):
            warnings.warn(
                f"load: a tensor of shape {tuple(tensor.shape)} had attributes, which only parameters have "
                f"here; left out: {', '.join(lost)[:80]}",
                stacklevel=2,
            )
        return tensor
    for name in attributes:
        if hasattr(type(tensor), name):
            raise pickle.UnpicklingError(
                f"load: a tensor has an attribute {name[:80]!r}, which would hide its own"
            )
    vars(tensor).update(attributes)
    return tensor


def little(data: bytes, itemsize: int, order: str = "little") -> bytes:
    """Elements of the host's byte order in this one, or back."""
    if sys.byteorder == order or itemsize == 1:
        return data
    return np.frombuffer(data, f"V{itemsize}").view(f"u{itemsize}").byteswap().tobytes()
