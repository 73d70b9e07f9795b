"""Named pairs that operations return."""

from typing import NamedTuple

from wengert._core import Tensor


class Along(NamedTuple):
    """Extrema along an axis and where they are."""

    values: Tensor
    indices: Tensor
