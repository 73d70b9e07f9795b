"""How a row of a table of keywords is checked: the value is the expected one,
and every keyword is needed for it.
"""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import wengert as wg

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]


def numbers(*shape: int, seed: int = 0) -> Array:
    """Distinct numbers, normally distributed, in float64."""
    return np.random.default_rng((seed, *shape)).standard_normal(shape)


def parts(x: Any) -> list[Any]:
    """The arrays and numbers of a result, tensors as arrays."""
    if isinstance(x, tuple | list):
        return [y for part in x for y in parts(part)]
    return [x.detach().numpy() if isinstance(x, wg.Tensor) else x]


def near(actual: Any, expected: Any, tolerance: float = 1e-9) -> None:
    """Asserts that results have the same parts, shapes and numbers."""
    a, b = parts(actual), parts(expected)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        assert np.shape(x) == np.shape(y)
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def differ(a: Any, b: Any) -> bool:
    """Whether results differ by more than rounding, in number, shape or dtype."""
    a, b = parts(a), parts(b)
    return len(a) != len(b) or any(
        np.shape(x) != np.shape(y)
        or np.result_type(x) != np.result_type(y)
        or not np.allclose(x, y, rtol=1e-7, atol=1e-10, equal_nan=True)
        for x, y in zip(a, b)
    )


def tensors(args: Any) -> Any:
    """Arguments with new tensors for the arrays, which a function may then write."""
    if isinstance(args, tuple | list):
        return type(args)(tensors(a) for a in args)
    return wg.tensor(args) if isinstance(args, np.ndarray) else args


def run(function: Function, args: Any, settings: dict[str, Any]) -> Any:
    """A result from a known state of the generator; arrays among the settings become tensors."""
    wg.manual_seed(0)
    return function(*tensors(args), **dict(zip(settings, tensors([*settings.values()]))))


def check(
    function: Function, args: Any, settings: dict[str, Any], expected: Any, tolerance: float = 1e-9
) -> None:
    """The call gives what is expected, and without any one of its keywords something else, or an error."""
    near(run(function, args, settings), expected, tolerance)
    for keyword in settings:
        rest = {k: v for k, v in settings.items() if k != keyword}
        try:
            without = run(function, args, rest)
        except (TypeError, ValueError, RuntimeError):
            continue
        assert differ(without, expected), f"{keyword} changes nothing"


def of_name(name: str) -> list[Function]:
    """The function and the method of a name, where they exist; a dotted name is a function of a module."""
    if "." in name:
        package, _, last = name.rpartition(".")
        return [getattr(importlib.import_module(f"wengert.{package}"), last)]
    return [getattr(place, name) for place in (wg, wg.Tensor) if hasattr(place, name)]
