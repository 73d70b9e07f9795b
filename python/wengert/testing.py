"""Checks for tests: `assert_close` for values, `gradcheck` for derivatives. Both work on trees of tensors."""

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._core import Tensor
from wengert.autograd.gradcheck import gradcheck as check_once, gradgradcheck as check_twice
from wengert.tree import tree_flatten

__all__ = ["assert_close", "gradcheck", "gradgradcheck"]
__dir__ = __all__.copy

# Relative and absolute tolerance by dtype; exact for integers.
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
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
        wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
        a, b = a.astype(wide), b.astype(wide)
        wrong = ~np.isclose(a, b, rtol=relative, atol=absolute, equal_nan=equal_nan)
        with np.errstate(invalid="ignore"):
            distance = np.abs(a - b)
    if not wrong.any():
        return
    at = np.unravel_index(int(np.argmax(np.where(wrong, np.nan_to_num(distance, nan=np.inf), -1.0))), a.shape)
    raise AssertionError(
        f"{where}{int(wrong.sum())} of {a.size} elements differ (rtol {relative:g}, atol {absolute:g}); the "
        f"worst, at {tuple(int(k) for k in at)}, is {a[at]} instead of {b[at]}"
    )


def gradcheck(
    function: Callable[..., Any],
    inputs: Any,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    check_forward_ad: bool = True,
) -> bool:
    """Compares derivatives in reverse and in forward mode with central differences.

    `autograd.gradcheck` is the same check with PyTorch's arguments; it leaves forward mode out by default.

    Args:
        function: of tensors, to a tree of tensors.
        inputs: one tensor, or a tuple of arguments (trees too). Checked are the inputs that require a
            gradient, or all that are float64 if none does; the others are held fixed.
        eps: the step of the differences.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: whether a difference raises, instead of giving False.
        check_forward_ad: whether to check forward mode.

    Returns:
        True if all derivatives agree.

    Raises:
        autograd.GradcheckError: for a difference; it names input, entry, analytic and numeric value.
        ValueError: if no input can be checked.

    Example:
        >>> wg.testing.gradcheck(lambda x: x.sin() * x, wg.tensor([0.5, 1.0], dtype=wg.float64))
        True
    """
    return check_once(
        function,
        inputs,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        check_forward_ad=check_forward_ad,
    )


def gradgradcheck(
    function: Callable[..., Any], inputs: Any, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3
) -> bool:
    """Compares second derivatives with central differences of the first, in both modes over reverse mode.

    `autograd.gradgradcheck` is the same check with PyTorch's arguments; it leaves forward over reverse mode
    out by default.

    Args:
        function: of tensors, to a tree of tensors.
        inputs: as those of `gradcheck`.
        eps: the step of the differences.
        atol: absolute tolerance.
        rtol: relative tolerance.

    Returns:
        True; a difference raises.

    Raises:
        autograd.GradcheckError: for a difference.
        ValueError: if no input can be checked.

    Example:
        >>> x = wg.tensor([0.5], dtype=wg.float64, requires_grad=True)
        >>> wg.testing.gradgradcheck(wg.sin, (x,))
        True
    """
    return check_twice(function, inputs, eps=eps, atol=atol, rtol=rtol, check_fwd_over_rev=True)
