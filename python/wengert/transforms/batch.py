"""The transform that batches: from one example to all of them at once."""

import functools
from collections.abc import Callable
from functools import partial
from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert.transforms._flat import (
    Flat,
    Function,
    P,
    R,
    as_leaf,
    check_count,
    check_function,
    flatten_result,
    of_staged,
    place,
)
from wengert.transforms.axes import Axis, name_axes
from wengert.tree import TreeDef, tree_flatten, tree_unflatten

_flatten = flatten_result("vmap")


class _NotGiven:
    """The default of an argument of which None is a value."""

    def __repr__(self) -> str:
        return "..."


_NOT_GIVEN: Any = _NotGiven()


def _find_axis(axis: int, ndim: int, what: Callable[[], str], instead: str = "") -> int:
    if not -ndim <= axis < ndim:
        raise ValueError(f"vmap: {what()} has {ndim} axes and no axis {axis}{instead}")
    return axis % ndim


def _find_axes(given: Any, structure: TreeDef, name: str) -> list[int | None]:
    """The batch axis of each leaf, from a tree of integers and None."""
    if type(given) in (tuple, list) and len(given) == 1 and structure._is_leaf:
        # One result is what a tuple of one names as well.
        given = given[0]
    axes = _core._flatten_prefix(given, structure, f"vmap {name}")
    for axis in axes:
        if axis is not None and (not isinstance(axis, int) or isinstance(axis, bool)):
            raise ValueError(
                f"vmap {name}: {given!r} does not fit the structure {structure}; an axis is an integer or "
                f"None, got {axis!r}"
            )
    return axes


def _argument(path: str) -> str:
    """What messages call a leaf of the arguments: `argument 1 at ['w']`."""
    number, rest = path.removeprefix("[").split("]", 1)
    return f"argument {number} at {rest}" if rest else f"argument {number}"


def _batch_size(
    leaves: list[Any], axes: list[int | None], axis_size: int | None, name: str, where: Callable[[int], str]
) -> int:
    """The number of examples; `name` is that of the argument with the axes, and `where` names a leaf."""
    found = [(i, x.shape[axis]) for i, (x, axis) in enumerate(zip(leaves, axes)) if axis is not None]
    sizes = {size for _, size in found} | ({axis_size} if axis_size is not None else set())
    if not sizes:
        raise ValueError(f"vmap: no argument has a batch axis; at least one entry of {name} must not be None")
    if len(sizes) > 1:
        listed = [f"axis_size: {axis_size}"] if axis_size is not None else []
        listed += [
            f"{where(i)} of shape {tuple(leaves[i].shape)}, axis {axes[i]}: {size}" for i, size in found
        ]
        raise ValueError(f"vmap: batch sizes differ: {'; '.join(listed)}")
    return sizes.pop()


@of_staged
def vmap(
    function: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    randomness: str = "error",
    *,
    in_dims: Any = _NOT_GIVEN,
    out_dims: Any = _NOT_GIVEN,
    axis_size: int | None = None,
    chunk_size: int | None = None,
    axis_name: str | None = None,
) -> Callable[P, R]:
    """Returns a function that does for a whole batch, at once, what `function` does for one example.

    Args:
        function: of one example.
        in_axes: where the batch axis is in each argument: an integer, None for an argument that all examples
            share (which may be of any type), or a tree of these; a prefix of the argument's tree is enough.
            `in_dims` is another name for it.
        out_axes: where the batch axis goes in the results: an integer, None for a result that is the same for
            all examples, or a tree of these. `out_dims` is another name for it.
        randomness: `"different"` draws random numbers of its own for each example, `"same"` the same for all,
            and `"error"` raises where random numbers are drawn.
        axis_size: the batch size; needed only where no argument has a batch axis, else it must be theirs.
        chunk_size: at most so many examples at once, at least 1, to save memory.
        axis_name: a name for the batch axis, by which `psum`, `pmean`, `all_gather` and `axis_index` find it.

    Returns:
        A function with the same arguments, batched; keyword arguments are the same for all examples.

    Tensors can be written in place inside. What is written into a batched argument, or into another argument
    with values that differ between examples, stays inside. One value for all examples, written into an
    argument that they share, changes the caller's tensor.

    A mask may select another number of elements in each example, so what it selects has no shape. You can
    apply functions of one element to it, reduce it by `sum`, `mean`, `var`, `std`, `prod`, `norm`,
    `logsumexp`, `amax`, `amin`, `any` or `all`, count it by `numel()`, and write it back by the same mask:
    `x[x > 0].sum()`, `x[x > 0] *= 2`.

    Raises:
        ValueError: batch sizes that differ, named with their arguments; axes that do not fit arguments or
            results; a name together with `chunk_size`.
        TypeError: values of examples that Python would have to look at, as `if x > 0` does; what needs the
            number of elements that a mask selects.
        RuntimeError: random numbers drawn under `randomness="error"`; a tensor from outside that was written
            with values that differ between examples.

    Example:
        >>> wg.vmap(lambda x, w: (x * w).sum(), in_axes=(0, None))(wg.ones(3, 2), wg.ones(2))
        tensor([2., 2., 2.])
    """
    check_function(function, "vmap")
    for first, second, both in (
        ("in_axes", "in_dims", in_dims is not _NOT_GIVEN and in_axes != 0),
        ("out_axes", "out_dims", out_dims is not _NOT_GIVEN and out_axes != 0),
    ):
        if both:
            raise TypeError(f"vmap: {first} and {second} are two names of one argument; give one of them")
    spelled = "in_axes" if in_dims is _NOT_GIVEN else "in_dims"
    in_axes = in_axes if in_dims is _NOT_GIVEN else in_dims
    spelled_out = "out_axes" if out_dims is _NOT_GIVEN else "out_dims"
    out_axes = out_axes if out_dims is _NOT_GIVEN else out_dims
    if randomness not in ("error", "same", "different"):
        raise ValueError(f"vmap: randomness must be 'error', 'same' or 'different', got {randomness!r}")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if axis_name is not None and not isinstance(axis_name, str):
        raise TypeError(f"vmap: axis_name is a string, got {axis_name!r}")
    check_count("vmap", "chunk_size", chunk_size, 1)
    check_count("vmap", "axis_size", axis_size, 0)
    if axis_name is not None and chunk_size is not None:
        raise ValueError("vmap: axis_name needs all examples at once; leave out chunk_size")
    plain_settings = axis_size is None and chunk_size is None and axis_name is None
    is_plain = type(out_axes) is int and out_axes == 0 and plain_settings

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if is_plain:
            found = _core._vmap_of_tensors(function, args, kwargs, in_axes, randomness, _flatten)
            if found is not None:
                return found
        given, structure = tree_flatten(args)
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(f"vmap: {spelled} has {len(in_axes)} entries for {len(args)} arguments")
        axes = _find_axes(in_axes, structure, spelled)
        # What all examples share may be anything; it goes to the function as it is.
        batched = [i for i, a in enumerate(axes) if a is not None or isinstance(given[i], Tensor)]
        leaves = [as_leaf(given[i], "vmap", partial(place, args, i, "an argument")) for i in batched]
        axes = [axes[i] for i in batched]

        def filled(leaves: list[Tensor]) -> Any:
            full = list(given)
            for i, x in zip(batched, leaves):
                full[i] = x
            return tree_unflatten(structure, full)

        where = lambda i: _argument(structure._paths()[batched[i]])
        shared = f"; give None in {spelled} for what all examples share"
        axes = [
            None if a is None else _find_axis(a, x.ndim, partial(where, i), shared)
            for i, (a, x) in enumerate(zip(axes, leaves))
        ]
        size = _batch_size(leaves, axes, axis_size, spelled, where)
        if chunk_size is not None and chunk_size < size:
            parts = []
            state = _core.get_rng_state()
            for start in range(0, size, chunk_size):
                if randomness == "same":
                    # All chunks are one batch, which shares its numbers.
                    _core.set_rng_state(state)
                n = min(chunk_size, size - start)
                cut = [x if a is None else x.narrow(a, start, n) for x, a in zip(leaves, axes)]
                parts.append(wrapped_once(filled, cut, kwargs, axes, n))
            return _join(parts)
        return wrapped_once(filled, leaves, kwargs, axes, size)

    def wrapped_once(
        filled: Function, leaves: list[Tensor], kwargs: Any, axes: list[int | None], size: int
    ) -> Any:
        if axis_name is None:
            run = Flat(lambda flat: function(*filled(flat), **kwargs), False, "vmap")
            return _normalize_axis(_core._vmap(run, leaves, axes, size, randomness), run, size)

        def with_axis(flat: list[Tensor]) -> Any:
            with name_axes({axis_name: Axis(size, flat[-1])}):
                return function(*filled(flat[:-1]), **kwargs)

        on_gpu = bool(leaves) and leaves[0].is_gpu
        index = _core.arange(0, size, dtype=_core.int32 if on_gpu else _core.int64, device="cpu")
        index = index.to(leaves[0].device) if on_gpu else index
        run = Flat(with_axis, False, "vmap")
        return _normalize_axis(_core._vmap(run, [*leaves, index], [*axes, 0], size, randomness), run, size)

    def _join(parts: list[Any]) -> Any:
        structure = tree_flatten(parts[0])[1]
        wanted = _find_axes(out_axes, structure, spelled_out)
        columns = zip(*[tree_flatten(part)[0] for part in parts])
        joined = [c[0] if axis is None else _core.cat(list(c), axis) for c, axis in zip(columns, wanted)]
        return tree_unflatten(structure, joined)

    def _normalize_axis(out: list[tuple[Tensor, int | None]], run: Flat, size: int) -> Any:
        assert run.out is not None
        wanted = _find_axes(out_axes, run.out, spelled_out)
        results = []
        for (y, axis), target in zip(out, wanted):
            if target is None:
                if axis is not None:
                    raise ValueError(
                        "vmap: out_axes is None for a result that differs between examples; name the place "
                        "of its batch axis, as in out_axes=0"
                    )
                results.append(y)
                continue
            if axis is None:
                y, axis = y.expand(size, *y.shape), 0
            target = _find_axis(target, y.ndim, lambda: "a result")
            results.append(y if axis == target else y.movedim(axis, target))
        return tree_unflatten(run.out, results)

    return wrapped
