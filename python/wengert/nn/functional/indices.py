"""Pools that return the positions of the maxima, too: PyTorch's functions `…_with_indices`."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec

from wengert._core import Tensor

from . import extremes, pooling

__all__ = [
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d_with_indices",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d_with_indices",
    "max_pool1d_with_indices",
    "max_pool2d_with_indices",
    "max_pool3d_with_indices",
]

P = ParamSpec("P")


def _with_indices(pool: Callable[P, Any], example: str, shown: str) -> Callable[P, tuple[Tensor, Tensor]]:
    """The function of a pool that always has `return_indices=True`."""
    place = inspect.unwrap(pool).__code__.co_varnames.index("return_indices")

    @functools.wraps(pool)
    def both(*args: P.args, **kwargs: P.kwargs) -> tuple[Tensor, Tensor]:
        given: Any = args
        if len(given) > place:
            given = (*given[:place], True, *given[place + 1 :])
        else:
            kwargs["return_indices"] = True
        found: tuple[Tensor, Tensor] = pool(*given, **kwargs)
        return found

    both.__name__ = both.__qualname__ = f"{pool.__name__}_with_indices"
    both.__module__ = __name__
    both.__doc__ = f"""Returns the maxima of `nn.functional.{pool.__name__}` and their positions.

    Positions are those in the flattened spatial axes. The parameters are those of that function; `return_indices`
    changes nothing.

    Example:
        >>> wg.nn.functional.{both.__name__}({example})[1]
        tensor({shown})
    """
    signature = inspect.signature(pool).replace(return_annotation=tuple[Tensor, Tensor])
    both.__dict__["__signature__"] = signature
    return both


max_pool1d_with_indices = _with_indices(
    pooling.max_pool1d, "wg.tensor([[1.0, 3.0, 2.0, 0.0]]), 2", "[[1, 2]]"
)
max_pool2d_with_indices = _with_indices(pooling.max_pool2d, "wg.arange(4.0).view(1, 2, 2), 2", "[[[3]]]")
max_pool3d_with_indices = _with_indices(pooling.max_pool3d, "wg.arange(8.0).view(1, 2, 2, 2), 2", "[[[[7]]]]")
adaptive_max_pool1d_with_indices = _with_indices(
    extremes.adaptive_max_pool1d, "wg.tensor([[1.0, 3.0, 2.0]]), 1", "[[1]]"
)
adaptive_max_pool2d_with_indices = _with_indices(
    extremes.adaptive_max_pool2d, "wg.arange(4.0).view(1, 2, 2), 1", "[[[3]]]"
)
adaptive_max_pool3d_with_indices = _with_indices(
    extremes.adaptive_max_pool3d, "wg.arange(8.0).view(1, 2, 2, 2), 1", "[[[[7]]]]"
)
fractional_max_pool2d_with_indices = _with_indices(
    extremes.fractional_max_pool2d, "wg.ones(1, 1, 2), 1, output_size=(1, 2)", "[[[0, 1]]]"
)
fractional_max_pool3d_with_indices = _with_indices(
    extremes.fractional_max_pool3d, "wg.ones(1, 1, 1, 2), 1, output_size=(1, 1, 2)", "[[[[0, 1]]]]"
)
