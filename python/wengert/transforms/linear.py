"""Transposes of linear functions."""

import contextlib
import math
from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert.transforms._derivative import LinearMap
from wengert.transforms._flat import Flat, Function, check_float, leaves_of, name_of
from wengert.transforms.reverse import _cotangents
from wengert.tree import tree_unflatten

__all__ = ["linear_transpose"]


def _probe(x: Tensor, start: int) -> Tensor:
    """Numbers of both signs without a pattern, the same each time, shaped as `x`."""
    at = _core.arange(start + 1, start + 1 + x.numel(), dtype=_core.float64, device="cpu")
    values = (at * at * 0.7390851332151607).sin().reshape(x.shape)
    return values.to(x.dtype).to(x.device)


def _inner(a: list[Tensor], b: list[Tensor]) -> float:
    """The inner product of two lists of tensors."""
    return math.fsum(
        float((x.double() * y.double()).sum()) if not x.is_gpu else float((x * y).sum()) for x, y in zip(a, b)
    )


def _apart(a: list[Tensor], b: list[Tensor], factor: float) -> float:
    """The norm of `a - factor * b`, without elements that overflowed."""
    rest = [x.double() - factor * y.double() if not x.is_gpu else x - factor * y for x, y in zip(a, b)]
    rest = [_core.where(x.isfinite(), x, _core.zeros_like(x)) for x in rest]
    return math.sqrt(_inner(rest, rest))


def _check(function: Function, run: Flat, pullback: Any, leaves: list[Tensor], zero: list[Tensor]) -> None:
    """Raises unless `f(0) = 0`, `f(-2x) = -2 f(x)` and `<u, f(x)> = <f' u, x>` at one point.

    A multiple by a power of two has the same rounding errors, however large the numbers were that cancelled
    on the way to a small result. Three times the point has others,
    which tell how far the two inner products may be apart.

    Raises:
        ValueError: a function that is not linear.
    """
    at = [_probe(x, 100 * i) for i, x in enumerate(leaves)]
    out = run(at)
    doubled = _apart(run([-2.0 * x for x in at]), out, -2.0)
    noise = _apart(run([3.0 * x for x in at]), out, 3.0)
    cotangents = [_probe(y, 7 + 100 * i) for i, y in enumerate(out)]
    moved = pullback(cotangents, True)
    left, right = _inner(cotangents, out), _inner(moved, at)
    size = math.sqrt(
        max(_inner(out, out) * _inner(cotangents, cotangents), _inner(moved, moved) * _inner(at, at), 0.0)
    )
    eps = max((_finfo(x.dtype) for x in [*leaves, *out]), default=0.0)
    largest = max((float(y.abs().max()) for y in zero if y.numel()), default=0.0)
    rounding = 64.0 * eps * max(size, 1e-30)
    allowed = rounding + 8.0 * noise * math.sqrt(max(_inner(cotangents, cotangents), 0.0))
    scaled = doubled <= 64.0 * eps * max(math.sqrt(max(_inner(out, out), 0.0)), 1e-30)
    if largest > 0.0 or not (abs(left - right) <= (allowed if scaled else rounding)):
        raise ValueError(
            f"linear_transpose: {name_of(function)} is not linear: "
            + (
                f"at zero its result is not zero but has elements up to {largest:.6g}; subtract that"
                if largest > 0.0
                else f"<u, f(x)> is {left:.6g} and <f'(0)* u, x> is {right:.6g} at a test point; vjp transposes the "
                "derivative at a point of any function"
            )
        )


def _finfo(dtype: Any) -> float:
    from wengert._info import finfo

    return float(finfo(dtype).eps)


def linear_transpose(function: Function, *primals: Any, check: bool = True) -> Function:
    """Returns the transpose of a linear function: `<u, f(x)> = <f* u, x>` for all `x` and `u`.

    Args:
        function: linear in all its arguments together.
        primals: tensors, or trees of them, of the shapes and dtypes of its arguments; their values do not
            matter.
        check: test that the function is linear, by its value at zero and identities at a fixed point, which
            costs three more calls of it. Inside other transforms, where values cannot be seen, nothing is
            tested; nor is what `linearize` returned.

    Returns:
        A function of one cotangent per output, in a tree of the output's structure, that returns a tuple of
        one cotangent per argument. It is linear itself, and can be called any number of times and inside
        other transforms.

    Raises:
        TypeError: for arguments that are not floating point; for a real cotangent of a complex output.
        ValueError: for a function that is not linear, and for cotangents of another structure.
        ShapeError: for cotangents of other shapes.

    Example:
        >>> transpose = wg.linear_transpose(lambda x: 2 * x[1:] - x[:-1], wg.zeros(3))
        >>> transpose(wg.tensor([1.0, 10.0]))
        (tensor([-1., -8., 20.]),)
    """
    leaves, structure = leaves_of(primals, "linear_transpose", "an argument")
    check_float(leaves, "linear_transpose", primals)
    run = Flat(lambda flat: function(*tree_unflatten(structure, flat)), False, "linear_transpose")
    out, pullback = _core._vjp(
        run, [_core.zeros(tuple(x.shape), dtype=x.dtype, device=x.device) for x in leaves]
    )
    out_structure = run.out
    assert out_structure is not None
    if check and not isinstance(function, LinearMap):
        # Inside vmap and jvp values cannot be looked at.
        with contextlib.suppress(TypeError):
            _check(function, run, pullback, leaves, out)

    def transpose(*cotangents: Any) -> Any:
        tree = cotangents[0] if len(cotangents) == 1 else cotangents
        given = _cotangents(tree, out_structure, out, "linear_transpose")
        for g, y in zip(given, out):
            if y.dtype.is_complex and not g.dtype.is_complex:
                raise TypeError(
                    f"linear_transpose: a cotangent of {g.dtype!r} given for an output of {y.dtype!r} and "
                    f"shape {tuple(y.shape)}; make it complex: pass g.to({y.dtype!r})"
                )
        return tree_unflatten(structure, pullback(given, True))

    return transpose
