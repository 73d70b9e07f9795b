"""Transforms that push tangents forward: directional derivatives and linear maps."""

from collections.abc import Callable
from typing import Any, Literal, overload

from wengert import _core
from wengert._core import Tensor
from wengert.transforms._dependence import check_dependence
from wengert.transforms._derivative import LinearMap
from wengert.transforms._flat import (
    Flat,
    Function,
    R,
    as_jitted,
    check_float,
    flatten_result,
    leaves_of,
)
from wengert.tree import TreeDef, tree_flatten, tree_structure, tree_unflatten

_flatten = flatten_result("jvp")


def _push(
    function: Function, primals: Any, tangents: Any, has_aux: bool, name: str
) -> tuple[list[Tensor], list[Tensor], Flat]:
    leaves, structure = leaves_of(primals, name, "a primal")
    moved, given = leaves_of(tangents, name, "a tangent")
    if given != structure:
        raise ValueError(f"{name}: tangents of structure {given} given for primals of structure {structure}")
    check_float(leaves, name, primals)
    run = Flat(lambda flat: function(*tree_unflatten(structure, flat)), has_aux, name)
    out, pushed = _core._jvp(run, leaves, moved)
    return out, pushed, run


@overload
def jvp(
    function: Callable[..., R],
    primals: Any,
    tangents: Any,
    has_aux: Literal[False] = False,
    *,
    strict: bool = False,
) -> tuple[R, R]: ...
@overload
def jvp(
    function: Function, primals: Any, tangents: Any, has_aux: Literal[True], *, strict: bool = False
) -> tuple[Any, Any, Any]: ...
def jvp(
    function: Function, primals: Any, tangents: Any, has_aux: bool = False, *, strict: bool = False
) -> Any:
    """Returns the value of a function at `primals` and its derivative along `tangents`, in one forward pass.

    Args:
        function: takes the primals as positional arguments; returns a tensor, or a tree of them.
        primals: a tuple (or list) with one entry per argument: floating point tensors, or trees of them.
        tangents: the direction: a tuple of the same structure, shapes and dtypes.
        has_aux: whether the function returns auxiliary data, which comes back as a third result.
        strict: whether to raise for an output that depends on no primal, whose tangent is zeros otherwise.
            The function runs once more for that.

    Returns:
        `(value, tangent)`, both of the structure that the function returns, or `(value, tangent, aux)` with
        `has_aux`.

    Raises:
        TypeError: for primals that are no tuple, or not floating point, and tangents of other dtypes.
        ValueError: for tangents of another structure.
        ShapeError: for tangents of other shapes.
        RuntimeError: with `strict`, an output depends on no primal.

    Example:
        >>> wg.jvp(lambda x: x**2, (wg.tensor(3.0),), (wg.tensor(1.0),))
        (tensor(9.), tensor(6.))
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("jvp: primals and tangents are tuples with one entry per argument of the function")
    if (jitted := as_jitted(function)) is not None and not strict:
        return jitted._derived(_jvp_of, (has_aux,), {})(primals, tangents)
    if strict:
        check_dependence("jvp", function, tuple(primals), has_aux)
    if not has_aux:
        found = _core._jvp_of_tensors(function, tuple(primals), tuple(tangents), _flatten)
        if found is not None:
            return found
    out, pushed, run = _push(function, tuple(primals), tuple(tangents), has_aux, "jvp")
    assert run.out is not None
    value, moved = (tree_unflatten(run.out, leaves[: run.count]) for leaves in (out, pushed))
    return (value, moved, run.take_aux(out)) if has_aux else (value, moved)


def _jvp_of(function: Function, has_aux: bool) -> Function:
    push: Any = jvp
    return lambda primals, tangents: push(function, primals, tangents, has_aux)


@overload
def linearize(
    function: Callable[..., R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, Callable[..., R]]: ...
@overload
def linearize(
    function: Function, *primals: Any, has_aux: Literal[True]
) -> tuple[Any, Callable[..., Any], Any]: ...
def linearize(function: Function, *primals: Any, has_aux: bool = False) -> Any:
    """Returns the value of a function at a point, and the linear map from tangents to tangents there.

    The function runs once, here; its derivative is kept as the list of linear operations that a tangent goes
    through, with their coefficients. A call of the map runs that list and nothing else: none of the
    function's own operations, and no random draw, so all tangents belong to the same value. The map keeps the
    coefficients, about what a pullback of `vjp` keeps, for as long as it lives.

    Args:
        function: takes the primals as positional arguments.
        primals: tensors, or trees of them.
        has_aux: whether the function returns auxiliary data, which comes back as a third result.

    Returns:
        `(value, push)`, or `(value, push, aux)` with `has_aux`. `push(*tangents)` takes one tangent per
        primal and returns the tangent of the value, zeros where nothing moves it; it can be called any number
        of times, and inside other transforms. It is a container of the primals, as the pullback of `vjp` is.

    Raises:
        TypeError: for integer primals; from a function that branches on values that depend on the primals.
        RuntimeError: from the map, if a tensor that it keeps was written in place after the function had run.

    Example:
        >>> y, push = wg.linearize(lambda x: x**2, wg.tensor(3.0))
        >>> push(wg.tensor(1.0))
        tensor(6.)
    """
    leaves, structure = leaves_of(primals, "linearize", "a primal")
    check_float(leaves, "linearize", primals)
    point = tree_unflatten(structure, leaves)

    def push_by(linear: Callable[[list[Tensor]], list[Tensor]], out: TreeDef) -> Function:
        def push(*tangents: Any) -> Any:
            moved, given = leaves_of(tangents, "linearize", "a tangent")
            if given != structure:
                raise ValueError(
                    f"linearize: tangents of structure {given} given for primals of structure {structure}"
                )
            return tree_unflatten(out, linear(moved))

        return push

    def at(leaves: list[Tensor]) -> Function:
        value, _, linear = _linear_at(function, tree_unflatten(structure, leaves), has_aux)
        return push_by(linear, tree_structure(value))

    state = _core.get_rng_state()
    jitted = None if _core._in_transform() or _core._get_debug_modes() else as_jitted(function)
    if jitted is None or jitted._check:
        value, aux, linear = _linear_at(function, point, has_aux)
    else:
        value, aux, coefficients, steps = jitted._derived(_parts_of, (has_aux,), {})(*point)
        linear = steps.at(coefficients)
    push = LinearMap(at, leaves)._is(push_by(linear, tree_structure(value)), state)
    return (value, push, aux) if has_aux else (value, push)


def _linear_at(function: Function, primals: Any, has_aux: bool) -> tuple[Any, Any, Any]:
    """The value of a function, its auxiliary data, and its derivative as a map of lists."""
    leaves, structure = tree_flatten(primals)
    run = Flat(lambda flat: function(*tree_unflatten(structure, flat)), has_aux, "linearize")
    full, linear = _core._linearize(run, leaves)
    linear.keep(run.count)
    assert run.out is not None
    return tree_unflatten(run.out, full[: run.count]), run.take_aux(full), linear


def _parts_of(function: Function, has_aux: bool) -> Function:
    """What a program makes: the value, the auxiliary data and the coefficients; the steps are always the same."""

    def parts(*primals: Any) -> Any:
        value, aux, linear = _linear_at(function, primals, has_aux)
        return value, aux, linear.coefficients(), linear.at([])

    return parts
