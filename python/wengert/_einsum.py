"""Einstein summation by matrix products: operands are contracted pairwise, in an order that costs little."""

import functools
from typing import Any

import numpy as np

from wengert import _core
from wengert._arguments import operands as as_tensors
from wengert._core import Tensor


def _parse(equation: str, operands: list[Tensor]) -> tuple[list[str], str]:
    equation = equation.replace(" ", "")
    inputs, arrow, output = equation.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(operands):
        raise ValueError(f"einsum: {len(terms)} terms in '{equation}' for {len(operands)} operands")
    free = iter(c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in equation)
    # Axes behind an ellipsis get letters of their own, aligned from the right.
    wide = max((t.ndim - len(s.replace("...", "")) for s, t in zip(terms, operands) if "..." in s), default=0)
    letters = "".join(next(free) for _ in range(wide))
    full = []
    for s, t in zip(terms, operands):
        count = t.ndim - len(s.replace("...", ""))
        if count < 0 or ("..." not in s and count):
            raise ValueError(f"einsum: term '{s}' does not fit a tensor of shape {tuple(t.shape)}")
        full.append(s.replace("...", letters[wide - count :] if count else ""))
    if not arrow:
        joined = "".join(full)
        output = letters + "".join(
            sorted(c for c in set(joined) if joined.count(c) == 1 and c not in letters)
        )
    else:
        output = output.replace("...", letters)
    unknown = [c for c in output if all(c not in s for s in full)]
    if unknown or len(set(output)) != len(output):
        raise ValueError(f"einsum: output '{output}' must name axes of the operands once each")
    return full, output


def _diagonals(x: Tensor, term: str) -> tuple[Tensor, str]:
    """Repeated letters of one term become one axis."""
    for c in sorted(set(term)):
        while term.count(c) > 1:
            i = term.index(c)
            j = term.index(c, i + 1)
            x = x.diagonal(0, i, j)
            term = "".join(d for k, d in enumerate(term) if k not in (i, j)) + c
    return x, term


def _sum_unused(x: Tensor, term: str, needed: set[str]) -> tuple[Tensor, str]:
    unused = [i for i, c in enumerate(term) if c not in needed]
    return (x.sum(unused), "".join(c for c in term if c in needed)) if unused else (x, term)


def _pair(x: Tensor, s: str, y: Tensor, t: str, needed: set[str]) -> tuple[Tensor, str]:
    """Contracts two operands: batch axes, then a matrix product over the axes that nothing else needs."""
    both = [c for c in s if c in t]
    batch = [c for c in both if c in needed]
    inner = [c for c in both if c not in needed]
    left = [c for c in s if c not in both]
    right = [c for c in t if c not in both]
    sizes: dict[str, int] = {}
    for operand, term in ((x, s), (y, t)):
        for c, d in zip(term, operand.shape):
            if sizes.get(c, 1) != 1 and d not in (1, sizes[c]):
                raise _core.ShapeError(f"einsum: axis '{c}' has lengths {sizes[c]} and {d}")
            sizes[c] = max(d, sizes.get(c, d)) if d != 0 else 0

    def matrix(operand: Tensor, term: str, rows: list[str], columns: list[str]) -> Tensor:
        order = [term.index(c) for c in [*batch, *rows, *columns]]
        operand = operand.permute(order) if operand.ndim else operand
        operand = operand.expand([sizes[c] for c in [*batch, *rows, *columns]])
        lengths = [[sizes[c] for c in group] for group in (batch, rows, columns)]
        products = [1, 1, 1]
        for i, group in enumerate(lengths):
            for d in group:
                products[i] *= d
        return operand.reshape(products)

    out = matrix(x, s, left, inner) @ matrix(y, t, inner, right)
    letters = [*batch, *left, *right]
    return out.reshape([sizes[c] for c in letters]), "".join(letters)


@functools.lru_cache(maxsize=512)
def _order(terms: tuple[str, ...], output: str, shapes: tuple[tuple[int, ...], ...]) -> list[tuple[int, ...]]:
    """Which operands to contract with each other, step by step: NumPy's greedy search.

    Positions are those in the list of what is left, at whose end each result goes.
    """
    stand_ins = [np.broadcast_to(np.float32(0), shape) for shape in shapes]
    try:
        path, _ = np.einsum_path(f"{','.join(terms)}->{output}", *stand_ins, optimize="greedy")
    except ValueError:  # shapes that do not fit: the contraction itself says which
        return [(0, 1)] * (len(terms) - 1)
    return path[1:]


# Axes that are numbers, in the order in which letters sort.
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _term(axes: Any) -> str:
    """The term of a list of numbers and Ellipsis."""
    for c in axes:
        if c is not Ellipsis and not (isinstance(c, int) and 0 <= c < len(_LETTERS)):
            raise ValueError(
                f"einsum: axes are numbers from 0 to {len(_LETTERS) - 1} or an Ellipsis, got {c!r}"
            )
    return "".join("..." if c is Ellipsis else _LETTERS[c] for c in axes)


def _of_lists(operands: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The equation of operands that are followed by lists of their axes, and at the end by those of the
    output."""
    output = f"->{_term(operands[-1])}" if len(operands) % 2 else ""
    count = len(operands) // 2
    lists = operands[1 : 2 * count : 2]
    if not count or not all(isinstance(axes, (list, tuple)) for axes in lists):
        raise TypeError(
            "einsum: an equation such as 'ij,jk->ik', or operands each followed by a list of axes, expected"
        )
    return ",".join(map(_term, lists)) + output, operands[: 2 * count : 2]


def einsum(equation: Any, *operands: Any) -> Tensor:
    """Returns sums of products in Einstein's notation, as in NumPy.

    Args:
        equation: one term per operand, with a letter per axis, as in `"ij,jk->ik"`; `...` stands for
            broadcast axes. Letters left out of the output are summed over; without `->`, the output has all
            letters that occur once.
        operands: tensors. Without an equation, each is followed by a list of its axes, numbers from 0 to 51,
            and the last may be followed by the axes of the output: `einsum(x, [0, 1], y, [1, 2], [0, 2])`.

    Returns:
        A tensor of the dtype to which the operands promote.

    Raises:
        ValueError: for an equation that does not fit the operands.
        ShapeError: for axes of one letter whose lengths differ.
        TypeError: without an equation or lists of axes.

    Example:
        >>> wg.einsum("ij,j->i", wg.eye(2), wg.tensor([3.0, 4.0]))
        tensor([3., 4.])
    """
    if isinstance(equation, str) and len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not isinstance(equation, str):
        if len(operands) == 0 or not isinstance(operands[0], (list, tuple)):
            raise TypeError(
                f"einsum: an equation such as 'ij,jk->ik' expected first, got {type(equation).__name__}"
            )
        equation, operands = _of_lists((equation, *operands))
    tensors = as_tensors("einsum", operands)
    terms, output = _parse(equation, tensors)
    dtype = tensors[0].dtype
    for x in tensors[1:]:
        dtype = _core.result_type(
            _core.empty(1, dtype=dtype, device="cpu"), _core.empty(1, dtype=x.dtype, device="cpu")
        )
    work = [_diagonals(x.to(dtype), s) for x, s in zip(tensors, terms)]
    order = [tuple(range(len(work)))]
    if len(work) > 2:
        order = _order(tuple(t for _, t in work), output, tuple(tuple(x.shape) for x, _ in work))
    for group in order:
        x, s = work[group[0]]
        others = [work[k] for k in group[1:]]
        work = [pair for k, pair in enumerate(work) if k not in group]
        for k, (y, t) in enumerate(others, 1):
            needed = set(output).union(*[term for _, term in (*others[k:], *work)])
            x, s = _sum_unused(x, s, needed | set(t))
            y, t = _sum_unused(y, t, needed | set(s))
            x, s = _pair(x, s, y, t, needed)
        work.append((x, s))
    [(x, s)] = work
    x, s = _sum_unused(x, s, set(output))
    return x.permute([s.index(c) for c in output]) if s != output else x
