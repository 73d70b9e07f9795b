"""PyTorch's options of `linear_cross_entropy`."""

from dataclasses import dataclass
from typing import Any

__all__ = ["LinearCrossEntropyOptions"]


@dataclass
class LinearCrossEntropyOptions:
    """How `nn.functional.linear_cross_entropy` divides its rows, under PyTorch's names.

    Logits of a chunk are computed once more in backward, in the precision of the input, and derivatives of
    every order exist; so the other settings change nothing.

    Args:
        allow_retain_graph: changes nothing.
        batch_chunk_size: the most rows whose logits exist at once; 1024 by default.
        chunking_method: changes nothing.
        acc_policy: changes nothing.
        acc_dtype: changes nothing.

    Example:
        >>> options = wg.nn.LinearCrossEntropyOptions(batch_chunk_size=1)
        >>> x, w, t = wg.zeros(2, 2), wg.zeros(3, 2), wg.tensor([0, 1])
        >>> wg.nn.functional.linear_cross_entropy(x, w, t, options=options)
        tensor(1.0986)
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None
