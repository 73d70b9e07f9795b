"""What a file may hold beside tensors, numbers, strings and containers, and how it lies in the file."""

import datetime
import sys
from collections import Counter, OrderedDict, defaultdict
from typing import Any

import numpy as np

from wengert._core import Tensor
from wengert._results import Along, Size

__all__ = ["CALLED", "FORMAT", "KIND", "NUMBERS", "SAFE", "little"]

KIND = "wengert.tensor"
# Kinds of NumPy's dtypes that tensors have too.
NUMBERS = "biufc"
FORMAT = "1"


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
    **{("builtins", kind.__name__): kind for kind in (bool, dict, float, int, list, str, tuple)},
    **{
        ("datetime", kind.__name__): kind
        for kind in (datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone)
    },
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
    complex,
    slice,
    range,
    bytearray,
    Along,
    Size,
    _array_of,
    _number_of,
}
CALLED |= {kind for (module, _), kind in SAFE.items() if module == "datetime"}


def little(data: bytes, itemsize: int, order: str = "little") -> bytes:
    """Elements of the host's byte order in this one, or back."""
    if sys.byteorder == order or itemsize == 1:
        return data
    return np.frombuffer(data, f"V{itemsize}").view(f"u{itemsize}").byteswap().tobytes()
