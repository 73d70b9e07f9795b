"""Kinds of arguments, for annotations: what functions take where a tensor, a dtype, a device or lengths are
meant."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from wengert._core import Tensor, device as device_, dtype as dtype_

DTypeLike: TypeAlias = dtype_ | np.dtype[Any] | type[Any] | str
DeviceLike: TypeAlias = device_ | str
#: What stands beside a tensor: a tensor, an array, or a number.
Operand: TypeAlias = Tensor | np.ndarray[Any, Any] | complex
#: A tensor, an array, a number, or nested lists of numbers.
TensorLike: TypeAlias = Tensor | np.ndarray[Any, Any] | complex | list[Any] | tuple[Any, ...]
Sizes: TypeAlias = int | Sequence[int]
Dims: TypeAlias = int | Sequence[int] | None
