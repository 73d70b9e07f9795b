"""Products of vectors and matrices beside `matmul`."""

import math
from typing import Any

from wengert import _core
from wengert._arguments import axis_of, operand, operands
from wengert._core import Tensor
from wengert._precision import in_low
from wengert._results import beside
from wengert._types import TensorLike

from ._method import method

__all__ = [
    "addbmm",
    "addmm",
    "addmv",
    "addr",
    "baddbmm",
    "chain_matmul",
    "cross",
    "einsum",
    "inner",
    "kron",
    "vdot",
]


def einsum(equation: Any, *operands: TensorLike) -> Tensor:
    """Sums of products in Einstein's notation, as in NumPy; see `wengert._einsum`.

    Example:
        >>> wg.einsum("ij,j->i", wg.tensor([[1.0, 2.0], [3.0, 4.0]]), wg.tensor([1.0, 1.0]))
        tensor([3., 7.])
    """
    from wengert._einsum import einsum as implementation

    return implementation(equation, *operands)


def _scaled(input: Tensor, beta: float, product: Tensor, alpha: float) -> Tensor:
    """`beta * input + alpha * product`; with beta 0, NaN in `input` does not count. Of integers,
    whole factors.
    """
    if not (input.dtype.is_differentiable or product.dtype.is_differentiable):
        beta, alpha = int(beta), int(alpha)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return beside(product, input)
    return (input if beta == 1 else input * beta) + product


def _has_axes(name: str, which: str, x: Tensor, count: int) -> None:
    if x.ndim != count:
        raise _core.ShapeError(f"{name}: {which} must have {count} axes, got shape {tuple(x.shape)}")


@method
@in_low
def addmm(input: Tensor, mat1: TensorLike, mat2: TensorLike, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Returns `beta * input + alpha * (mat1 @ mat2)`; with `beta` 0, NaN and infinities in `input` do not count.

    Of integers, `beta` and `alpha` lose their fractions, here and in the functions below.

    Example:
        >>> wg.addmm(wg.ones(1, 1), wg.ones(1, 2), wg.ones(2, 1))
        tensor([[3.]])
    """
    input, mat1, mat2 = operands("addmm", (input, mat1, mat2))
    return _scaled(input, beta, mat1.matmul(mat2), alpha)


@method
@in_low
def baddbmm(
    input: Tensor, batch1: TensorLike, batch2: TensorLike, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """Returns `beta * input + alpha * (batch1 @ batch2)` of batches of matrices.

    Example:
        >>> wg.baddbmm(wg.ones(1, 1, 1), wg.ones(1, 1, 2), wg.ones(1, 2, 1))
        tensor([[[3.]]])
    """
    input, batch1, batch2 = operands("baddbmm", (input, batch1, batch2))
    return _scaled(input, beta, batch1.bmm(batch2), alpha)


@method
@in_low
def addbmm(
    input: Tensor, batch1: TensorLike, batch2: TensorLike, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """Returns `beta * input + alpha * sum(batch1 @ batch2)`, summed over the batch.

    Example:
        >>> wg.addbmm(wg.zeros(1, 1), wg.ones(3, 1, 2), wg.ones(3, 2, 1))
        tensor([[6.]])
    """
    input, left, right = operands("addbmm", (input, batch1, batch2))
    _has_axes("addbmm", "batch1", left, 3)
    _has_axes("addbmm", "batch2", right, 3)
    # One product over batch and inner axis together.
    if left.shape[0] != right.shape[0] or left.shape[2] != right.shape[1]:
        raise _core.ShapeError(
            f"addbmm: batches of matrices of shapes {tuple(left.shape)} and {tuple(right.shape)} do not multiply; "
            "expected (b, n, m) and (b, m, p)"
        )
    inner = left.shape[0] * left.shape[2]
    rows = left.permute(1, 0, 2).reshape(left.shape[1], inner)
    return _scaled(input, beta, rows @ right.reshape(inner, right.shape[2]), alpha)


@method
@in_low
def addmv(input: Tensor, mat: TensorLike, vec: TensorLike, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Returns `beta * input + alpha * (mat @ vec)`.

    Example:
        >>> wg.addmv(wg.ones(1), wg.ones(1, 2), wg.tensor([2.0, 3.0]))
        tensor([6.])
    """
    input, mat, vec = operands("addmv", (input, mat, vec))
    return _scaled(input, beta, mat.mv(vec), alpha)


@method
@in_low
def addr(input: Tensor, vec1: TensorLike, vec2: TensorLike, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Returns `beta * input + alpha * outer(vec1, vec2)`.

    Example:
        >>> wg.addr(wg.zeros(2, 2), wg.tensor([1.0, 2.0]), wg.tensor([3.0, 4.0]))
        tensor([[3., 4.],
                [6., 8.]])
    """
    input, vec1, vec2 = operands("addr", (input, vec1, vec2))
    return _scaled(input, beta, vec1.outer(vec2), alpha)


@method
def vdot(input: Tensor, other: TensorLike) -> Tensor:
    """Returns the inner product of two vectors, `sum(conj(input) * other)`.

    Example:
        >>> wg.vdot(wg.tensor([1j, 2 + 0j]), wg.tensor([1j, 1 + 0j]))
        tensor(3.+0.j)
    """
    return input.conj().dot(operand("vdot", other, input))


def _matrix(x: Tensor) -> Tensor:
    """All axes but the last as one."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


@method
def inner(input: Tensor, other: TensorLike) -> Tensor:
    """Sums products over the last axis of both.

    Example:
        >>> wg.inner(wg.tensor([1.0, 2.0]), wg.tensor([3.0, 4.0]))
        tensor(11.)
    """
    other = operand("inner", other, input)
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise _core.ShapeError(
            f"inner: the last axes of shapes {tuple(input.shape)} and {tuple(other.shape)} differ in length"
        )
    rows = _matrix(input) @ _matrix(other).mT
    return rows.reshape(*input.shape[:-1], *other.shape[:-1])


@method
def kron(input: Tensor, other: TensorLike) -> Tensor:
    """Returns the Kronecker product: every element of `input` times all of `other`, block by block.

    Example:
        >>> wg.kron(wg.tensor([1.0, 10.0]), wg.tensor([1.0, 2.0]))
        tensor([ 1.,  2., 10., 20.])
    """
    other = operand("kron", other, input)
    rank = max(input.ndim, other.ndim)
    a = input.reshape([1] * (rank - input.ndim) + list(input.shape))
    b = other.reshape([1] * (rank - other.ndim) + list(other.shape))
    blocks = a.reshape([d for n in a.shape for d in (n, 1)]) * b.reshape([d for n in b.shape for d in (1, n)])
    return blocks.reshape([n * m for n, m in zip(a.shape, b.shape)])


@method
def cross(input: Tensor, other: TensorLike, dim: int | None = None) -> Tensor:
    """Returns the cross product of vectors of length 3 along `dim`, by default the first axis of that length;
    the other axes broadcast.

    Raises:
        ShapeError: the two have different numbers of axes, no axis of length 3, or do not broadcast.

    Example:
        >>> wg.cross(wg.tensor([1.0, 0.0, 0.0]), wg.tensor([0.0, 1.0, 0.0]))
        tensor([0., 0., 1.])
    """
    a, b = operands("cross", (input, other))
    same_rank("cross", a, b)
    if dim is None:
        pairs = zip(a.shape, b.shape)
        dim = next((k for k, (n, m) in enumerate(pairs) if n == m == 3), -1)
    return cross_along(a, b, dim)


def same_rank(name: str, a: Tensor, b: Tensor) -> None:
    """Raises unless both have as many axes."""
    if a.ndim != b.ndim:
        raise _core.ShapeError(
            f"{name}: as many axes expected of both, got shapes {tuple(a.shape)} and {tuple(b.shape)}; "
            "unsqueeze() adds one"
        )


def cross_along(a: Tensor, b: Tensor, dim: int) -> Tensor:
    """The cross product along an axis; axes that one of the two has not are broadcast as well."""
    for x in (a, b):
        axis_of("cross", dim, max(x.ndim, 1))
    if a.ndim == 0 or b.ndim == 0 or a.shape[dim] != 3 or b.shape[dim] != 3:
        raise _core.ShapeError(
            f"cross: length 3 along axis {dim} expected, got shapes {tuple(a.shape)} and {tuple(b.shape)}"
        )
    return _core._cross(*_core_broadcast(a, b, dim), dim)


def _core_broadcast(a: Tensor, b: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Both with as many axes; an axis counted from the front must be that of both."""
    if dim >= 0 and a.ndim != b.ndim:
        raise _core.ShapeError(
            f"cross: axis {dim} is not the same in shapes {tuple(a.shape)} and {tuple(b.shape)}; count it from the end"
        )
    rank = max(a.ndim, b.ndim)
    return tuple(x.reshape([1] * (rank - x.ndim) + list(x.shape)) for x in (a, b))  # type: ignore[return-value]


def chain_matmul(*matrices: TensorLike) -> Tensor:
    """Returns the product of several matrices, in the order that needs the fewest multiplications.

    The order is found by dynamic programming over the lengths (Cormen et al., Introduction to Algorithms, 14.2).

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

    def product(i: int, j: int) -> Tensor:
        return factors[i] if i == j else product(i, cost[i, j][1]) @ product(cost[i, j][1] + 1, j)

    return product(0, len(factors) - 1)
