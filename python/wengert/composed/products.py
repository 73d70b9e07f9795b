"""Products of several tensors: sums in Einstein's notation, chains of matrices."""

from typing import Any

from wengert import _core
from wengert._arguments import operands
from wengert._core import Tensor
from wengert._types import TensorLike

__all__ = [
    "chain_matmul",
    "einsum",
]


def einsum(equation: Any, *operands: TensorLike) -> Tensor:
    """Sums of products in Einstein's notation, as in NumPy; see `wengert._einsum`.

    Example:
        >>> wg.einsum("ij,j->i", wg.tensor([[1.0, 2.0], [3.0, 4.0]]), wg.tensor([1.0, 1.0]))
        tensor([3., 7.])
    """
    from wengert._einsum import einsum as implementation

    return implementation(equation, *operands)


def _has_axes(name: str, which: str, x: Tensor, count: int) -> None:
    if x.ndim != count:
        raise _core.ShapeError(f"{name}: {which} must have {count} axes, got shape {tuple(x.shape)}")


def chain_matmul(*matrices: TensorLike) -> Tensor:
    """Returns the product of several matrices, in the order that needs the fewest multiplications.

    The order is found by dynamic programming over the lengths (Cormen et al., Introduction to Algorithms,
    14.2).

    Example:
        >>> wg.chain_matmul(wg.ones(1, 3), wg.ones(3, 2), wg.ones(2, 1))
        tensor([[6.]])
    """
    factors = operands("chain_matmul", matrices)
    if not factors:
        raise ValueError("chain_matmul: at least one matrix expected")
    for i, x in enumerate(factors):
        _has_axes("chain_matmul", f"matrix {i}", x, 2)
    for i in range(len(factors) - 1):
        if factors[i].shape[1] != factors[i + 1].shape[0]:
            raise _core.ShapeError(
                f"chain_matmul: matrices {i} and {i + 1} of shapes {tuple(factors[i].shape)} and "
                f"{tuple(factors[i + 1].shape)} do not multiply"
            )
    lengths = [factors[0].shape[0], *(x.shape[1] for x in factors)]
    cost: dict[tuple[int, int], tuple[int, int]] = {(i, i): (0, i) for i in range(len(factors))}
    for width in range(1, len(factors)):
        for i in range(len(factors) - width):
            j = i + width
            cost[i, j] = min(
                (cost[i, k][0] + cost[k + 1, j][0] + lengths[i] * lengths[k + 1] * lengths[j + 1], k)
                for k in range(i, j)
            )
    return _product(factors, cost, 0, len(factors) - 1)


def _product(factors: list[Tensor], cost: dict[tuple[int, int], tuple[int, int]], i: int, j: int) -> Tensor:
    """The product of the matrices `i` to `j`, which are parted as the costs say."""
    if i == j:
        return factors[i]
    k = cost[i, j][1]
    return _product(factors, cost, i, k) @ _product(factors, cost, k + 1, j)
