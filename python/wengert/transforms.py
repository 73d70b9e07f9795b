"""Transforms of functions: gradients, directional derivatives, Jacobians, batching, in any nesting.

Each takes a function of pytrees (see `wengert.tree`) and returns a function or its result. The core differentiates and
batches functions of flat lists of tensors; this file takes arguments apart and puts results together.
Names and defaults are JAX's; PyTorch's keywords (`in_dims`, `out_dims`, `argnums`, `has_aux`) are accepted too.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert.tree import TreeDef, flatten_prefix, tree_flatten, tree_unflatten

__all__ = [
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "value_and_grad",
    "vjp",
    "vmap",
]

Function = Callable[..., Any]
Argnums = int | Sequence[int]


def _as_leaf(x: Any, name: str, what: str) -> Tensor:
    if isinstance(x, Tensor):
        return x
    try:
        return _core.as_tensor(x)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}: {what} is {type(x).__name__}, expected a tensor or a tree of tensors"
        ) from None


def _leaves(tree: Any, name: str, what: str) -> tuple[list[Tensor], TreeDef]:
    leaves, structure = tree_flatten(tree)
    return [
        _as_leaf(x, name, f"{what}, leaf {i}," if len(leaves) > 1 else what) for i, x in enumerate(leaves)
    ], structure


def _check_float(leaves: list[Tensor], name: str) -> None:
    for x in leaves:
        if not x.dtype.is_floating_point:
            raise TypeError(
                f"{name}: only floating point inputs have derivatives, got {x.dtype!r} of shape {tuple(x.shape)}; "
                "convert it with .float(), or leave it out of argnums"
            )


def _select(args: tuple[Any, ...], argnums: Argnums, name: str) -> tuple[tuple[int, ...], Any]:
    """The positions to differentiate, and the arguments there (a tuple only where `argnums` is one)."""
    many = not isinstance(argnums, int)
    positions = tuple(argnums) if not isinstance(argnums, int) else (argnums,)
    for i in positions:
        if not -len(args) <= i < len(args):
            raise ValueError(
                f"{name}: argnums names argument {i}, but {len(args)} positional arguments were given"
            )
    positions = tuple(i % len(args) for i in positions)
    if len(set(positions)) < len(positions):
        raise ValueError(f"{name}: argnums names an argument twice: {argnums}")
    chosen = tuple(args[i] for i in positions)
    return positions, chosen if many else chosen[0]


def _with(args: tuple[Any, ...], positions: tuple[int, ...], values: Any, many: bool) -> list[Any]:
    out = list(args)
    for i, value in zip(positions, values if many else (values,)):
        out[i] = value
    return out


class _Flat:
    """A function of trees as a function of flat lists; remembers the structure of the result.

    Tensors in the auxiliary data are outputs like others to the core, so that they leave the level of the transform as
    values of the level below, with the history that they have there.
    """

    __slots__ = ("aux", "aux_structure", "call", "count", "has_aux", "name", "out")

    def __init__(self, call: Callable[[list[Tensor]], Any], has_aux: bool, name: str) -> None:
        self.call = call
        self.has_aux = has_aux
        self.name = name
        self.out: TreeDef | None = None
        self.count = 0
        self.aux: list[Any] = []
        self.aux_structure: TreeDef | None = None

    def __call__(self, leaves: list[Tensor]) -> list[Tensor]:
        result = self.call(leaves)
        if not self.has_aux:
            out, self.out = _leaves(result, self.name, "the function's result")
            self.count = len(out)
            return out
        if not (isinstance(result, tuple) and len(result) == 2):
            raise TypeError(
                f"{self.name}: with has_aux=True the function returns a pair (output, auxiliary data)"
            )
        result, aux = result
        out, self.out = _leaves(result, self.name, "the function's result")
        self.count = len(out)
        self.aux, self.aux_structure = tree_flatten(aux)
        return out + [x for x in self.aux if isinstance(x, Tensor)]

    def take_aux(self, out: list[Tensor]) -> Any:
        """The auxiliary data, from all that the core returned."""
        if self.aux_structure is None:
            return None
        values = iter(out[self.count :])
        full = [next(values) if isinstance(x, Tensor) else x for x in self.aux]
        self.aux = []
        return tree_unflatten(self.aux_structure, full)


def _name(function: Function) -> str:
    return getattr(function, "__name__", type(function).__name__)


def value_and_grad(function: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that returns the value of a scalar function and its gradient.

    Args:
        function: returns a scalar tensor, or with `has_aux` a pair of one and any other data.
        argnums: position of the argument to differentiate, or several of them.
        has_aux: whether the function returns auxiliary data, which comes back beside the value.

    Returns:
        A function with the same arguments that returns `(value, gradient)`, or `((value, aux), gradient)`. The gradient
        has the structure of the argument, or is a tuple of such for several `argnums`.

    Raises:
        TypeError: for a result that is no scalar (use `jacrev`), for integer arguments.

    Example:
        >>> wg.value_and_grad(lambda x: (x * x).sum())(wg.tensor([1.0, 2.0]))
        (tensor(5.), tensor([2., 4.]))
    """

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        positions, chosen = _select(args, argnums, "grad")
        many = not isinstance(argnums, int)
        leaves, structure = _leaves(chosen, "grad", "an argument")
        _check_float(leaves, "grad")

        def call(flat: list[Tensor]) -> Any:
            return function(*_with(args, positions, tree_unflatten(structure, flat), many), **kwargs)

        run = _Flat(call, has_aux, "grad")
        full, pullback = _core._vjp(run, leaves)
        out = full[: run.count]
        _check_scalar(out, function)
        gradients = pullback([_core.ones_like(out[0])], False)
        value = (out[0], run.take_aux(full)) if has_aux else out[0]
        return value, tree_unflatten(structure, gradients)

    return wrapped


def _check_scalar(out: list[Tensor], function: Function) -> None:
    if len(out) != 1:
        raise TypeError(
            f"grad: {_name(function)} returned {len(out)} tensors, expected one scalar; use has_aux or vjp"
        )
    if out[0].ndim != 0:
        raise TypeError(
            f"grad: {_name(function)} returned a tensor of shape {tuple(out[0].shape)}, expected a scalar of shape (); "
            "reduce it, for example with .sum(), or use jacrev for all derivatives, vmap(grad(f)) for one per example"
        )
    if not out[0].dtype.is_floating_point:
        raise TypeError(f"grad: {_name(function)} returned {out[0].dtype!r}, which has no derivative")


def grad(function: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that returns the gradient of a scalar function, with the arguments of `value_and_grad`.

    With `has_aux` it returns `(gradient, aux)`.

    Example:
        >>> wg.grad(wg.grad(lambda x: x**3))(wg.tensor(2.0))
        tensor(12.)
    """
    both = value_and_grad(function, argnums, has_aux)

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


def _cotangents(tree: Any, structure: TreeDef, out: list[Tensor], name: str) -> list[Tensor]:
    leaves, given = _leaves(tree, name, "a cotangent")
    if given != structure:
        raise ValueError(
            f"{name}: cotangents of structure {given} given for outputs of structure {structure}"
        )
    for g, y in zip(leaves, out):
        if tuple(g.shape) != tuple(y.shape):
            raise ValueError(
                f"{name}: a cotangent of shape {tuple(g.shape)} given for an output of shape {tuple(y.shape)}"
            )
    return leaves


def vjp(function: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The value of a function at a point, and its pullback: from cotangents of the output to those of the inputs.

    Returns:
        `(output, pullback)`, or `(output, pullback, aux)` with `has_aux`. The pullback returns a tuple: one entry per
        argument; it can be called any number of times, and inside other transforms.

    Example:
        >>> y, pullback = wg.vjp(lambda x: x.sin(), wg.tensor(0.0))
        >>> pullback(wg.tensor(1.0))
        (tensor(1.),)
    """
    leaves, structure = _leaves(primals, "vjp", "an argument")
    _check_float(leaves, "vjp")
    run = _Flat(lambda flat: function(*tree_unflatten(structure, flat)), has_aux, "vjp")
    full, pullback = _core._vjp(run, leaves)
    out, out_structure = full[: run.count], run.out
    assert out_structure is not None

    def pull(*cotangents: Any) -> Any:
        tree = cotangents[0] if len(cotangents) == 1 else cotangents
        given = _cotangents(tree, out_structure, out, "vjp")
        return tree_unflatten(structure, pullback(given, True))

    result = tree_unflatten(out_structure, out)
    return (result, pull, run.take_aux(full)) if has_aux else (result, pull)


def _push(
    function: Function, primals: Any, tangents: Any, has_aux: bool, name: str
) -> tuple[list[Tensor], list[Tensor], _Flat]:
    leaves, structure = _leaves(primals, name, "a primal")
    moved, given = _leaves(tangents, name, "a tangent")
    if given != structure:
        raise ValueError(f"{name}: tangents of structure {given} given for primals of structure {structure}")
    _check_float(leaves, name)
    run = _Flat(lambda flat: function(*tree_unflatten(structure, flat)), has_aux, name)
    out, pushed = _core._jvp(run, leaves, moved)
    return out, pushed, run


def jvp(function: Function, primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """The value of a function at `primals` and its derivative along `tangents`, in one forward pass.

    Args:
        function: takes the primals as positional arguments.
        primals: a tuple (or list) of arguments.
        tangents: the same structure, the direction.
        has_aux: whether the function returns auxiliary data, which comes back as a third result.

    Example:
        >>> wg.jvp(lambda x: x**2, (wg.tensor(3.0),), (wg.tensor(1.0),))
        (tensor(9.), tensor(6.))
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("jvp: primals and tangents are tuples with one entry per argument of the function")
    out, pushed, run = _push(function, tuple(primals), tuple(tangents), has_aux, "jvp")
    assert run.out is not None
    value, moved = (tree_unflatten(run.out, leaves[: run.count]) for leaves in (out, pushed))
    return (value, moved, run.take_aux(out)) if has_aux else (value, moved)


def linearize(function: Function, *primals: Any) -> Any:
    """The value of a function at a point, and the linear map from tangents to tangents there.

    The map runs the function once more for each tangent.

    Example:
        >>> y, push = wg.linearize(lambda x: x**2, wg.tensor(3.0))
        >>> push(wg.tensor(1.0))
        tensor(6.)
    """
    value = function(*primals)

    def push(*tangents: Any) -> Any:
        return jvp(function, primals, tangents)[1]

    return value, push


def _axis(axis: int, ndim: int, what: str) -> int:
    if not -ndim <= axis < ndim:
        raise ValueError(f"vmap: {what} has {ndim} axes and no axis {axis}")
    return axis % ndim


def _batch_size(leaves: list[Any], axes: list[int | None]) -> int:
    sizes = {}
    for i, (x, axis) in enumerate(zip(leaves, axes)):
        if axis is not None:
            sizes[f"leaf {i} of shape {tuple(x.shape)}, axis {axis}"] = x.shape[axis]
    if not sizes:
        raise ValueError("vmap: no argument has a batch axis; at least one entry of in_axes must not be None")
    if len(set(sizes.values())) > 1:
        listed = "; ".join(f"{where}: {size}" for where, size in sizes.items())
        raise ValueError(f"vmap: batch sizes differ: {listed}")
    return next(iter(sizes.values()))


def vmap(
    function: Function,
    in_axes: Any = 0,
    out_axes: Any = 0,
    randomness: str = "error",
    *,
    in_dims: Any = None,
    out_dims: Any = None,
    axis_size: int | None = None,
    chunk_size: int | None = None,
) -> Function:
    """A function that does for a whole batch, at once, what `function` does for one example.

    Args:
        function: of one example.
        in_axes: where the batch axis is in each argument: an integer, None for an argument that all examples share, or
            a tree of these (`in_dims` is another name for it).
        out_axes: where it goes in the results (`out_dims` likewise).
        randomness: `"same"` draws the same random numbers for all examples, `"different"` is drawn outside by passing
            random tensors in; `"error"` behaves as `"same"`.
        axis_size: the batch size, where no argument has it.
        chunk_size: at most so many examples at once, to save memory.

    Raises:
        ValueError: batch sizes that differ, named with their arguments.

    Example:
        >>> wg.vmap(lambda x, w: (x * w).sum(), in_axes=(0, None))(wg.ones(3, 2), wg.ones(2))
        tensor([2., 2., 2.])
    """
    in_axes = in_axes if in_dims is None else in_dims
    out_axes = out_axes if out_dims is None else out_dims
    if randomness not in ("error", "same", "different"):
        raise ValueError(f"vmap: randomness must be 'error', 'same' or 'different', got {randomness!r}")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = _leaves(args, "vmap", "an argument")
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(f"vmap: in_axes has {len(in_axes)} entries for {len(args)} arguments")
        axes = flatten_prefix(in_axes, structure, "vmap in_axes")
        axes = [None if a is None else _axis(a, x.ndim, "an argument") for a, x in zip(axes, leaves)]
        size = (
            axis_size if axis_size is not None and all(a is None for a in axes) else _batch_size(leaves, axes)
        )
        if chunk_size is not None and 0 < chunk_size < size:
            parts = []
            for start in range(0, size, chunk_size):
                n = min(chunk_size, size - start)
                cut = [x if a is None else x.narrow(a, start, n) for x, a in zip(leaves, axes)]
                parts.append(wrapped_once(tree_unflatten(structure, cut), kwargs, axes, n))
            return _join(parts)
        return wrapped_once(args, kwargs, axes, size)

    def wrapped_once(args: Any, kwargs: Any, axes: list[int | None], size: int) -> Any:
        leaves, structure = _leaves(args, "vmap", "an argument")
        run = _Flat(lambda flat: function(*tree_unflatten(structure, flat), **kwargs), False, "vmap")
        return _place(_core._vmap(run, leaves, axes, size), run, size)

    def _join(parts: list[Any]) -> Any:
        structure = tree_flatten(parts[0])[1]
        wanted = flatten_prefix(out_axes, structure, "vmap out_axes")
        columns = zip(*[tree_flatten(part)[0] for part in parts])
        joined = [c[0] if axis is None else _core.cat(list(c), axis) for c, axis in zip(columns, wanted)]
        return tree_unflatten(structure, joined)

    def _place(out: list[tuple[Tensor, int | None]], run: _Flat, size: int) -> Any:
        assert run.out is not None
        wanted = flatten_prefix(out_axes, run.out, "vmap out_axes")
        results = []
        for (y, axis), target in zip(out, wanted):
            if target is None:
                if axis is not None:
                    raise ValueError("vmap: out_axes is None for a result that differs between examples")
                results.append(y)
                continue
            if axis is None:
                y, axis = y.expand(size, *y.shape), 0
            target = _axis(target, y.ndim, "a result")
            results.append(y if axis == target else y.movedim(axis, target))
        return tree_unflatten(run.out, results)

    return wrapped


def _basis(leaves: list[Tensor]) -> list[Tensor]:
    """The unit vectors of all elements of all leaves: per leaf a stack with one row per element of any leaf."""
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


def jacrev(
    function: Function, argnums: Argnums = 0, has_aux: bool = False, chunk_size: int | None = None
) -> Function:
    """A function that returns the Jacobian, row by row in one batched reverse pass: best for few outputs.

    Args:
        function: of trees of tensors.
        argnums: position of the argument to differentiate, or several.
        has_aux: whether the function returns auxiliary data; then the result is `(jacobian, aux)`.
        chunk_size: at most so many rows at once, to save memory.

    Returns:
        For an output of shape `o` and an argument of shape `i`, a tensor of shape `o + i`, in a tree of the output's
        structure with one of the argument's structure at each leaf.

    Example:
        >>> wg.jacrev(lambda x: x**2)(wg.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        positions, chosen = _select(args, argnums, "jacrev")
        many = not isinstance(argnums, int)
        leaves, structure = _leaves(chosen, "jacrev", "an argument")
        _check_float(leaves, "jacrev")

        def call(flat: list[Tensor]) -> Any:
            return function(*_with(args, positions, tree_unflatten(structure, flat), many), **kwargs)

        run = _Flat(call, has_aux, "jacrev")
        full, pullback = _core._vjp(run, leaves)
        out = full[: run.count]
        assert run.out is not None
        basis = _basis(out)
        total = sum(y.numel() for y in out)
        rows = _in_chunks(lambda g: pullback(g, True), basis, total, chunk_size)
        columns = [_split(r, out, 0) for r in rows]
        per_output = [tree_unflatten(structure, [c[k] for c in columns]) for k in range(len(out))]
        result = tree_unflatten(run.out, per_output)
        return (result, run.take_aux(full)) if has_aux else result

    return wrapped


def _in_chunks(
    call: Callable[[list[Tensor]], list[Tensor]], basis: list[Tensor], total: int, chunk: int | None
) -> list[Tensor]:
    """`call` for every row of the basis, batched, at most `chunk` rows at once."""
    step = total if chunk is None else max(1, chunk)
    parts = []
    for start in range(0, max(total, 1), max(step, 1)):
        rows = [b[start : start + step] for b in basis]
        size = min(step, total - start)
        out = _core._vmap(call, rows, [0] * len(rows), size)
        parts.append([y.expand(size, *y.shape) if axis is None else y.movedim(axis, 0) for y, axis in out])
    return parts[0] if len(parts) == 1 else [_core.cat(column) for column in zip(*parts)]


def jacfwd(
    function: Function, argnums: Argnums = 0, has_aux: bool = False, chunk_size: int | None = None
) -> Function:
    """A function that returns the Jacobian, column by column in one batched forward pass: best for few inputs.

    Arguments and result are those of `jacrev`.

    Example:
        >>> wg.jacfwd(lambda x: x.sin())(wg.zeros(2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        positions, chosen = _select(args, argnums, "jacfwd")
        many = not isinstance(argnums, int)
        leaves, structure = _leaves(chosen, "jacfwd", "an argument")
        _check_float(leaves, "jacfwd")

        def call(flat: list[Tensor]) -> Any:
            return function(*_with(args, positions, tree_unflatten(structure, flat), many), **kwargs)

        run = _Flat(call, has_aux, "jacfwd")
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
            per_output.append(tree_unflatten(structure, _split(last, leaves, last.ndim - 1)))
        result = tree_unflatten(run.out, per_output)
        return (result, aux[0] if aux else None) if has_aux else result

    return wrapped


def hessian(function: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that returns the matrix of second derivatives of a scalar function: `jacfwd` of `jacrev`.

    Example:
        >>> wg.hessian(lambda x: (x**3).sum())(wg.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(function, argnums, has_aux), argnums, has_aux)


def hvp(function: Function, primals: Any, tangents: Any) -> Any:
    """The Hessian of a scalar function times a vector, without the matrix: forward over reverse.

    Args:
        function: of the primals, which returns a scalar.
        primals: a tuple of arguments.
        tangents: the vector, of the same structure.

    Returns:
        `(value, product)`; the product has the structure of the primals (without the tuple, for one argument).

    Example:
        >>> wg.hvp(lambda x: (x**3).sum(), (wg.tensor([1.0, 2.0]),), (wg.tensor([1.0, 0.0]),))[1]
        tensor([6., 0.])
    """
    if not isinstance(primals, (tuple, list)):
        primals, tangents = (primals,), (tangents,)
    argnums = tuple(range(len(primals)))
    both = value_and_grad(function, argnums)
    (value, _), (_, product) = jvp(both, tuple(primals), tuple(tangents))
    return value, product[0] if len(primals) == 1 else product


jacobian = jacrev
