"""The package einops with tensors: `import wengert.utils.einops` makes its functions take them.

`rearrange`, `reduce`, `repeat`, `einsum`, `pack`, `unpack` and `parse_shape` of einops then take tensors of
this library as those of any other, record what they do, and work in transforms. `Rearrange` and `Reduce` here
are the layers, as in `einops.layers.torch`. `wengert.utils` imports this module only when asked to, for
einops need not be installed.

Example:
    >>> import einops, wengert.utils.einops
    >>> einops.rearrange(wg.arange(6), "(a b) -> b a", a=2).shape
    Size([3, 2])
"""

from collections.abc import Sequence
from typing import Any

import wengert as wg
from wengert._core import Tensor
from wengert.nn import Module

try:
    from einops._backends import AbstractBackend
    from einops.layers import RearrangeMixin, ReduceMixin
except ImportError as error:
    raise ImportError(
        "wengert.utils.einops connects the package einops, which is not installed or too old; pip install "
        "'einops>=0.6'"
    ) from error

__all__ = ["Rearrange", "Reduce"]


class _Backend(AbstractBackend):
    """What einops asks of a library; it finds the subclasses of its base class by itself."""

    framework_name = "wengert"

    def is_appropriate_type(self, tensor: object) -> bool:
        return isinstance(tensor, Tensor)

    def from_numpy(self, x: Any) -> Tensor:
        return wg.from_numpy(x)

    def to_numpy(self, x: Tensor) -> Any:
        return x.detach().cpu().numpy()

    def arange(self, start: int, stop: int) -> Tensor:
        return wg.arange(start, stop)

    def transpose(self, x: Tensor, axes: Sequence[int]) -> Tensor:
        return x.permute(*axes)

    def reduce(self, x: Tensor, operation: str, axes: Sequence[int]) -> Tensor:
        name = {"min": "amin", "max": "amax"}.get(operation, operation)
        found: Tensor = getattr(x, name)(tuple(axes))
        return found

    def stack_on_zeroth_dimension(self, tensors: Sequence[Tensor]) -> Tensor:
        return wg.stack(tensors)

    def add_axis(self, x: Tensor, new_position: int) -> Tensor:
        return x.unsqueeze(new_position)

    def tile(self, x: Tensor, repeats: Sequence[int]) -> Tensor:
        return x.repeat(*repeats)

    def concat(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        return wg.cat(tensors, axis)

    def is_float_type(self, x: Tensor) -> bool:
        return x.dtype.is_differentiable

    def einsum(self, pattern: str, *x: Tensor) -> Tensor:
        return wg.einsum(pattern, *x)


class Rearrange(RearrangeMixin, Module):
    """A layer that rearranges axes, as `einops.rearrange` does.

    Args:
        pattern: what the axes are called before and after.
        axes_lengths: lengths of axes, by name.

    Example:
        >>> from wengert.utils.einops import Rearrange
        >>> wg.nn.Sequential(Rearrange("n c h w -> n (c h w)"))(wg.ones(2, 3, 4, 4)).shape
        Size([2, 48])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns the tensor, rearranged."""
        found: Tensor = self._apply_recipe(input)
        return found


class Reduce(ReduceMixin, Module):
    """A layer that reduces axes, as `einops.reduce` does.

    Args:
        pattern: what the axes are called before, and which are left after.
        reduction: `"mean"`, `"sum"`, `"max"`, `"min"`, `"prod"`, or a function `(tensor, axes)`.
        axes_lengths: lengths of axes, by name.

    Example:
        >>> from wengert.utils.einops import Reduce
        >>> Reduce("n c (h 2) (w 2) -> n c h w", "max")(wg.ones(2, 3, 4, 4)).shape
        Size([2, 3, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns the tensor, reduced."""
        found: Tensor = self._apply_recipe(input)
        return found
