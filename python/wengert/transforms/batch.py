"""The transform that batches: from one example to all of them at once."""

import functools
from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert.transforms._flat import Flat, Function, flatten_result, leaves_of
from wengert.tree import flatten_prefix, tree_flatten, tree_unflatten

_flatten = flatten_result("vmap")


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
        randomness: `"different"` draws random numbers of its own for each example, `"same"` the same for all, and
            `"error"` raises where random numbers are drawn.
        axis_size: the batch size, where no argument has it.
        chunk_size: at most so many examples at once, to save memory.

    Raises:
        ValueError: batch sizes that differ, named with their arguments.
        RuntimeError: random numbers drawn under `randomness="error"`.

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
    is_plain = type(out_axes) is int and out_axes == 0 and axis_size is None and chunk_size is None

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if is_plain:
            found = _core._vmap_of_tensors(
                function, args, kwargs, in_axes, randomness, _flatten, tree_unflatten
            )
            if found is not None:
                return found
        leaves, structure = leaves_of(args, "vmap", "an argument")
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(f"vmap: in_axes has {len(in_axes)} entries for {len(args)} arguments")
        axes = flatten_prefix(in_axes, structure, "vmap in_axes")
        axes = [None if a is None else _axis(a, x.ndim, "an argument") for a, x in zip(axes, leaves)]
        size = (
            axis_size if axis_size is not None and all(a is None for a in axes) else _batch_size(leaves, axes)
        )
        if chunk_size is not None and 0 < chunk_size < size:
            parts = []
            state = _core.get_rng_state()
            for start in range(0, size, chunk_size):
                if randomness == "same":
                    # All chunks are one batch, which shares its numbers.
                    _core.set_rng_state(state)
                n = min(chunk_size, size - start)
                cut = [x if a is None else x.narrow(a, start, n) for x, a in zip(leaves, axes)]
                parts.append(wrapped_once(tree_unflatten(structure, cut), kwargs, axes, n))
            return _join(parts)
        return wrapped_once(args, kwargs, axes, size)

    def wrapped_once(args: Any, kwargs: Any, axes: list[int | None], size: int) -> Any:
        leaves, structure = leaves_of(args, "vmap", "an argument")
        run = Flat(lambda flat: function(*tree_unflatten(structure, flat), **kwargs), False, "vmap")
        return _place(_core._vmap(run, leaves, axes, size, randomness), run, size)

    def _join(parts: list[Any]) -> Any:
        structure = tree_flatten(parts[0])[1]
        wanted = flatten_prefix(out_axes, structure, "vmap out_axes")
        columns = zip(*[tree_flatten(part)[0] for part in parts])
        joined = [c[0] if axis is None else _core.cat(list(c), axis) for c, axis in zip(columns, wanted)]
        return tree_unflatten(structure, joined)

    def _place(out: list[tuple[Tensor, int | None]], run: Flat, size: int) -> Any:
        assert run.out is not None
        wanted = flatten_prefix(out_axes, run.out, "vmap out_axes")
        results = []
        for (y, axis), target in zip(out, wanted):
            if target is None:
                if axis is not None:
                    raise ValueError(
                        "vmap: out_axes is None for a result that differs between examples; name the place of its "
                        "batch axis, as in out_axes=0"
                    )
                results.append(y)
                continue
            if axis is None:
                y, axis = y.expand(size, *y.shape), 0
            target = _axis(target, y.ndim, "a result")
            results.append(y if axis == target else y.movedim(axis, target))
        return tree_unflatten(run.out, results)

    return wrapped
