"""Parameters as one flat vector, and back."""

from collections.abc import Iterable

import wengert as wg
from wengert._core import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Returns all elements in one vector, in order; recorded.

    Example:
        >>> wg.nn.utils.parameters_to_vector(wg.nn.Linear(2, 3).parameters()).shape
        (9,)
    """
    return wg.cat([param.reshape(-1) for param in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copies consecutive pieces of `vec` into the parameters.

    Raises:
        ShapeError: if the lengths differ; nothing is written then.

    Example:
        >>> layer = wg.nn.Linear(2, 1)
        >>> wg.nn.utils.vector_to_parameters(wg.tensor([1.0, 2.0, 3.0]), layer.parameters())
        >>> layer.bias.data
        tensor([3.])
    """
    targets = list(parameters)
    total = sum(param.numel() for param in targets)
    if tuple(vec.shape) != (total,):
        raise wg.ShapeError(
            f"vector_to_parameters: a vector of shape ({total},) expected for these parameters, got "
            f"{tuple(vec.shape)}"
        )
    start = 0
    with wg.no_grad():
        for param in targets:
            piece = vec.detach()[start : start + param.numel()]
            param.copy_(piece.reshape(tuple(param.shape)))
            start += param.numel()
