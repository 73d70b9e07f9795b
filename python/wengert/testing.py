"""Checks for tests: `assert_close` for values, `gradcheck` for derivatives. Both work on trees of tensors."""

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert import _core
from wengert._core import Tensor
from wengert.transforms import grad, jvp, vjp
from wengert.tree import tree_flatten, tree_unflatten

__all__ = ["assert_close", "gradcheck", "gradgradcheck"]

# Relative and absolute tolerance by dtype; exact for integers.
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
}


def _array(x: Any) -> np.ndarray[Any, Any]:
    if isinstance(x, Tensor):
        x = x.detach().cpu()
        return x.float().numpy() if x.dtype == "bfloat16" else x.numpy()
    return np.asarray(x)


def _tolerance(x: Any, y: Any) -> tuple[float, float]:
    names = [str(getattr(v.dtype, "name", v.dtype)) for v in (x, y) if hasattr(v, "dtype")]
    return max((_TOLERANCES.get(name, (0.0, 0.0)) for name in names), default=_TOLERANCES["float32"])


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_dtype: bool = True,
    msg: str | None = None,
) -> None:
    """Raises AssertionError unless two trees of tensors (or arrays, or numbers) agree.

    Args:
        actual: what was computed.
        expected: what it should be.
        rtol: relative tolerance; by default that of the coarser dtype: 1.3e-6 for float32, 1e-7 for float64.
        atol: absolute tolerance; by default 1e-5 for float32, 1e-7 for float64.
        equal_nan: whether NaN equals NaN.
        check_dtype: whether two tensors must have the same dtype.
        msg: put before the report.

    Example:
        >>> wg.testing.assert_close(wg.tensor([1.0, 2.0]), [1.0, 2.0])
    """
    left, shape = tree_flatten(actual)
    right, other = tree_flatten(expected)
    if len(left) == 1 and isinstance(actual, Tensor) and not isinstance(expected, Tensor):
        right, other = [np.asarray(expected)], shape
    if shape != other:
        raise AssertionError(f"{msg + ': ' if msg else ''}structures differ: {shape} and {other}")
    for i, (x, y) in enumerate(zip(left, right)):
        where = f"leaf {i}: " if len(left) > 1 else ""
        _compare(x, y, rtol, atol, equal_nan, check_dtype, f"{msg + ': ' if msg else ''}{where}")


def _compare(
    x: Any, y: Any, rtol: float | None, atol: float | None, equal_nan: bool, check_dtype: bool, where: str
) -> None:
    if check_dtype and isinstance(x, Tensor) and isinstance(y, Tensor) and x.dtype != y.dtype:
        raise AssertionError(f"{where}dtypes differ: {x.dtype!r} and {y.dtype!r}")
    relative, absolute = _tolerance(x, y)
    relative, absolute = (relative if rtol is None else rtol), (absolute if atol is None else atol)
    a, b = _array(x), _array(y)
    if a.shape != b.shape:
        raise AssertionError(f"{where}shapes differ: {a.shape} and {b.shape}")
    if a.dtype.kind in "biu" and b.dtype.kind in "biu":
        wrong = a != b
        distance = np.abs(a.astype(np.float64) - b.astype(np.float64))
    else:
        a, b = a.astype(np.float64), b.astype(np.float64)
        wrong = ~np.isclose(a, b, rtol=relative, atol=absolute, equal_nan=equal_nan)
        with np.errstate(invalid="ignore"):
            distance = np.abs(a - b)
    if not wrong.any():
        return
    at = np.unravel_index(int(np.argmax(np.where(wrong, np.nan_to_num(distance, nan=np.inf), -1.0))), a.shape)
    raise AssertionError(
        f"{where}{int(wrong.sum())} of {a.size} elements differ (rtol {relative:g}, atol {absolute:g}); the worst, at "
        f"{tuple(int(k) for k in at)}, is {a[at]} instead of {b[at]}"
    )


def _direction(x: Tensor, seed: int) -> Tensor:
    """A fixed direction with no structure, of unit size per element."""
    values = np.random.default_rng(seed).standard_normal(tuple(x.shape))
    return _core.tensor(values, dtype=x.dtype).to(x.device)


def _differences(
    flat: Callable[[list[Tensor]], list[Tensor]], at: list[Tensor], eps: float
) -> list[list[Any]]:
    """The Jacobian of every output with respect to every input, by central differences in float64."""
    columns: list[list[Any]] = []
    for i, x in enumerate(at):
        values = np.array(x.detach().cpu().numpy(), dtype=np.float64)
        per_output: list[list[Any]] = []
        for k in range(values.size):
            sides = []
            for step in (eps, -eps):
                moved = values.copy()
                moved.reshape(-1)[k] += step
                inputs = [*at[:i], _core.tensor(moved, dtype=x.dtype).to(x.device), *at[i + 1 :]]
                sides.append([np.array(y.detach().cpu().numpy(), dtype=np.float64) for y in flat(inputs)])
            per_output.append([((hi - lo) / (2 * eps)).reshape(-1) for hi, lo in zip(*sides)])
        count = len(per_output[0]) if per_output else len(flat(at))
        columns.append(
            [np.stack([row[o] for row in per_output], -1) if per_output else None for o in range(count)]
        )
    return columns


def gradcheck(
    function: Callable[..., Any],
    inputs: Any,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    check_forward_ad: bool = True,
) -> bool:
    """Compares reverse and forward mode with central differences, and with each other.

    Args:
        function: of float64 tensors (others among the inputs are held fixed), to a tree of tensors.
        inputs: one tensor, or a tuple of arguments.
        eps: the step of the differences.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: whether a difference raises AssertionError, instead of returning False.
        check_forward_ad: whether forward mode is checked too.

    Example:
        >>> wg.testing.gradcheck(lambda x: x.sin() * x, wg.tensor([0.5, 1.0], dtype=wg.float64))
        True
    """
    args = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    leaves, structure = tree_flatten(args)
    moving = [i for i, x in enumerate(leaves) if isinstance(x, Tensor) and x.dtype == _core.float64]
    if not moving:
        raise ValueError("gradcheck: no input is a float64 tensor; differences need double precision")
    at = [leaves[i].detach() for i in moving]

    def flat(values: list[Tensor]) -> list[Tensor]:
        full = list(leaves)
        for i, value in zip(moving, values):
            full[i] = value
        return [
            y for y in tree_flatten(function(*tree_unflatten(structure, full)))[0] if isinstance(y, Tensor)
        ]

    try:
        _check(flat, at, eps, atol, rtol, check_forward_ad)
    except AssertionError:
        if raise_exception:
            raise
        return False
    return True


def _check(
    flat: Callable[[list[Tensor]], list[Tensor]],
    at: list[Tensor],
    eps: float,
    atol: float,
    rtol: float,
    forward: bool,
) -> None:
    numeric = _differences(flat, at, eps)
    out, pullback = vjp(lambda *xs: flat(list(xs)), *at)
    for o, y in enumerate(out):
        if not y.dtype.is_floating_point:
            continue
        zeros = [_core.zeros_like(z) for z in out]
        for r in range(y.numel()):
            unit = np.zeros(y.numel())
            unit[r] = 1.0
            zeros[o] = _core.tensor(unit, dtype=y.dtype).to(y.device).reshape(tuple(y.shape))
            rows = pullback(list(zeros))
            for i, row in enumerate(rows):
                if at[i].numel():
                    assert_close(
                        row.reshape(-1), numeric[i][o][r], rtol=rtol, atol=atol,
                        msg=f"reverse mode, output {o}, element {r}, input {i}",
                    )  # fmt: skip
    if not forward:
        return
    tangents = [_direction(x, 17 + i) for i, x in enumerate(at)]
    _, pushed = jvp(lambda *xs: flat(list(xs)), tuple(at), tuple(tangents))
    for o, t in enumerate(pushed):
        total = np.zeros(t.numel())
        for i, x in enumerate(at):
            if x.numel():
                total = total + numeric[i][o] @ _array(tangents[i]).reshape(-1)
        if t.dtype.is_floating_point:
            assert_close(t.reshape(-1), total, rtol=rtol, atol=atol, msg=f"forward mode, output {o}")


def gradgradcheck(
    function: Callable[..., Any], inputs: Any, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3
) -> bool:
    """`gradcheck` of the gradient of the sum of a function's outputs, each weighted by fixed numbers."""
    args = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    moving = tuple(i for i, x in enumerate(args) if isinstance(x, Tensor) and x.dtype == _core.float64)

    def weighted(*xs: Any) -> Tensor:
        leaves = [
            y for y in tree_flatten(function(*xs))[0] if isinstance(y, Tensor) and y.dtype.is_floating_point
        ]
        total = (leaves[0] * _direction(leaves[0], 5)).sum()
        for k, y in enumerate(leaves[1:]):
            total = total + (y * _direction(y, 6 + k)).sum()
        return total

    return gradcheck(grad(weighted, moving), args, eps, atol, rtol)
