"""Whole matrices of derivatives, by batching `vjp` and `jvp` over unit vectors."""

import functools
from collections.abc import Callable
from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert.transforms._flat import (
    Argnums,
    Function,
    P,
    as_jitted,
    check_count,
    check_function,
    flatten_result,
    is_position,
    of_arguments,
    of_staged,
)
from wengert.transforms.forward import jvp
from wengert.transforms.reverse import value_and_grad
from wengert.tree import tree_unflatten

_flatten_rev, _flatten_fwd = flatten_result("jacrev"), flatten_result("jacfwd")


def _basis(leaves: list[Tensor]) -> list[Tensor]:
    """The unit vectors of all elements of all leaves: per leaf a stack with one row per element of any
    leaf."""
    total = sum(x.numel() for x in leaves)
    out, start = [], 0
    for x in leaves:
        n = x.numel()
        rows = _core.eye(n, dtype=x.dtype, device=x.device)
        if total != n:
            rows = _core._pad(rows, [0, 0, start, total - start - n])
        out.append(rows.reshape(total, *x.shape))
        start += n
    return out


def _split(rows: Tensor, leaves: list[Tensor], axis: int) -> list[Tensor]:
    """Cuts the axis that runs over all elements into one part per leaf, with the leaf's shape."""
    parts = rows.split([x.numel() for x in leaves], axis) if len(leaves) > 1 else [rows]
    shape = tuple(rows.shape)
    return [part.reshape(*shape[:axis], *x.shape, *shape[axis + 1 :]) for part, x in zip(parts, leaves)]


@of_staged
def jacrev(
    function: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, chunk_size: int | None = None
) -> Callable[P, Any]:
    """Returns a function that returns the Jacobian, row by row in one batched reverse pass: best for few
    outputs.

    Args:
        function: of trees of tensors.
        argnums: position of the argument to differentiate, or several.
        has_aux: whether the function returns auxiliary data; then the result is `(jacobian, aux)`.
        chunk_size: at most so many rows at once, at least 1, to save memory.

    Returns:
        A function with the same arguments. For an output of shape `o` and an argument of shape `i` it returns
        a tensor of shape `o + i`, in a tree of the output's structure with one of the argument's structure at
        each leaf. Complex outputs of real arguments have complex derivatives; complex arguments are taken for
        those of holomorphic functions.

    Raises:
        TypeError: for arguments to differentiate that are not floating point.
        ValueError: for a `chunk_size` below 1, and for `argnums` that name no argument.

    Example:
        >>> wg.jacrev(lambda x: x**2)(wg.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """

    check_function(function, "jacrev")
    check_count("jacrev", "chunk_size", chunk_size, 1)
    is_plain = is_position(argnums) and not has_aux and chunk_size is None

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if is_plain:
            found = _core._jacrev_of_tensor(function, args, kwargs, argnums, _flatten_rev)
            if found is not None:
                return found
        run, leaves, structure = of_arguments(function, args, kwargs, argnums, has_aux, "jacrev")
        full, pullback = _core._vjp(run, leaves, True)
        out = full[: run.count]
        assert run.out is not None
        basis = _basis(out)
        total = sum(y.numel() for y in out)
        rows = _in_chunks(lambda g: pullback(g, True), basis, total, chunk_size)
        columns = [_split(r, out, 0) for r in rows]
        if any(y.dtype.is_complex for y in out):
            # A real tensor gets the real part of a gradient: the imaginary one is that of a turned cotangent.
            turned = [b * 1j if b.dtype.is_complex else b for b in basis]
            for column, r in zip(columns, _in_chunks(lambda g: pullback(g, True), turned, total, chunk_size)):
                for k, imag in enumerate(_split(r, out, 0)):
                    if out[k].dtype.is_complex and not imag.dtype.is_complex:
                        column[k] = _core.complex(column[k], imag)
        per_output = [tree_unflatten(structure, [c[k] for c in columns]) for k in range(len(out))]
        result = tree_unflatten(run.out, per_output)
        return (result, run.take_aux(full)) if has_aux else result

    return wrapped


def _in_chunks(
    call: Callable[[list[Tensor]], list[Tensor]], basis: list[Tensor], total: int, chunk: int | None
) -> list[Tensor]:
    """`call` for every row of the basis, batched, at most `chunk` rows at once."""
    step = total if chunk is None else chunk
    parts = []
    for start in range(0, max(total, 1), max(step, 1)):
        rows = [b[start : start + step] for b in basis]
        size = min(step, total - start)
        out = _core._vmap(call, rows, [0] * len(rows), size)
        parts.append([y.expand(size, *y.shape) if axis is None else y.movedim(axis, 0) for y, axis in out])
    return parts[0] if len(parts) == 1 else [_core.cat(column) for column in zip(*parts)]


@of_staged
def jacfwd(
    function: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, chunk_size: int | None = None
) -> Callable[P, Any]:
    """Returns a function that returns the Jacobian, column by column in one batched forward pass: best for
    few inputs.

    Args:
        function: of trees of tensors.
        argnums: position of the argument to differentiate, or several.
        has_aux: whether the function returns auxiliary data; then the result is `(jacobian, aux)`.
        chunk_size: at most so many columns at once, at least 1, to save memory.

    Returns:
        A function with the same arguments. For an output of shape `o` and an argument of shape `i` it returns
        a tensor of shape `o + i`, in a tree of the output's structure with one of the argument's structure at
        each leaf.

    Raises:
        TypeError: for arguments to differentiate that are not floating point.
        ValueError: for a `chunk_size` below 1, and for `argnums` that name no argument.

    Example:
        >>> wg.jacfwd(lambda x: x.sin())(wg.zeros(2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    check_function(function, "jacfwd")
    check_count("jacfwd", "chunk_size", chunk_size, 1)
    is_plain = is_position(argnums) and not has_aux and chunk_size is None

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if is_plain:
            found = _core._jacfwd_of_tensor(function, args, kwargs, argnums, _flatten_fwd)
            if found is not None:
                return found
        run, leaves, structure = of_arguments(function, args, kwargs, argnums, has_aux, "jacfwd")
        aux: list[Any] = []

        def push(tangents: list[Tensor]) -> list[Tensor]:
            out, moved = _core._jvp(run, leaves, tangents)
            if has_aux:
                # The primal part does not depend on the tangents, so it is no part of the batch.
                aux[:] = [run.take_aux(out)]
            return moved[: run.count]

        total = sum(x.numel() for x in leaves)
        columns = _in_chunks(push, _basis(leaves), total, chunk_size)
        assert run.out is not None
        per_output = []
        for column in columns:
            last = column.movedim(0, -1)
            parts = [part.contiguous() for part in _split(last, leaves, last.ndim - 1)]
            per_output.append(tree_unflatten(structure, parts))
        result = tree_unflatten(run.out, per_output)
        return (result, aux[0] if aux else None) if has_aux else result

    return wrapped


@of_staged
def hessian(function: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[P, Any]:
    """Returns a function that returns the matrix of second derivatives of a scalar function: `jacfwd` of
    `jacrev`.

    Args:
        function: returns a scalar tensor, or with `has_aux` a pair of one and any other data.
        argnums: position of the argument to differentiate, or several of them.
        has_aux: whether the function returns auxiliary data; then the result is `(hessian, aux)`.

    Returns:
        A function with the same arguments. For an argument of shape `i` it returns a tensor of shape `i + i`;
        for a tree, a tree of its structure with another one at each leaf.

    Example:
        >>> wg.hessian(lambda x: (x**3).sum())(wg.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(function, argnums, has_aux), argnums, has_aux)


def hvp(function: Function, primals: Any, tangents: Any) -> Any:
    """Returns the Hessian of a scalar function times a vector, without the matrix: forward over reverse.

    Args:
        function: takes the primals as positional arguments, and returns a scalar tensor.
        primals: a tuple with one entry per argument; of a single argument the tuple may be left out.
        tangents: the vector, of the same structure, shapes and dtypes.

    Returns:
        `(value, product)`: the value of the function, and the Hessian times the vector, of the structure of
        the primals (without the tuple, for one argument).

    Raises:
        TypeError: for a result that is no scalar, and for primals that are not floating point.
        ValueError: for tangents of another structure.

    Example:
        >>> wg.hvp(lambda x: (x**3).sum(), (wg.tensor([1.0, 2.0]),), (wg.tensor([1.0, 0.0]),))[1]
        tensor([6., 0.])
    """
    if (jitted := as_jitted(function)) is not None:
        return jitted._derived(_hvp_of, (), {})(primals, tangents)
    if not isinstance(primals, (tuple, list)):
        primals, tangents = (primals,), (tangents,)
    if len(primals) == 1:
        (value, _), (_, product) = jvp(value_and_grad(function), tuple(primals), tuple(tangents))
        return value, product
    both = value_and_grad(function, tuple(range(len(primals))))
    (value, _), (_, product) = jvp(both, tuple(primals), tuple(tangents))
    return value, product


def _hvp_of(function: Function) -> Function:
    return lambda primals, tangents: hvp(function, primals, tangents)


jacobian = jacrev
