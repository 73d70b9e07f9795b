"""NumPy's functions of tensors: `np.sin(t)`, `np.concatenate([t, u])`, `array + t`.

Those that this namespace has run here: they return tensors and are differentiated. All others get the
elements as arrays, which a tensor that requires a gradient refuses to become.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import wengert
from wengert._core import Tensor
from wengert.tree import tree_map

# Where the standard keeps the dtype of integers, and NumPy does not.
_PROMOTED = frozenset(["clip"])
# Operators of two operands, the first of which is NumPy's.
_REFLECTED = {
    "add": "__radd__",
    "divide": "__rtruediv__",
    "equal": "__eq__",
    "floor_divide": "__rfloordiv__",
    "greater": "__lt__",
    "greater_equal": "__le__",
    "less": "__gt__",
    "less_equal": "__ge__",
    "matmul": "__rmatmul__",
    "multiply": "__rmul__",
    "not_equal": "__ne__",
    "power": "__rpow__",
    "remainder": "__rmod__",
    "subtract": "__rsub__",
}


def _counterpart(name: str, module: str) -> Callable[..., Any] | None:
    """The function of tensors that does what NumPy's of this name does; None where there is none."""
    from wengert import numpy as xp

    if module == "numpy" and name in _PROMOTED:
        return getattr(wengert, name)
    home = {"numpy": xp, "numpy.linalg": xp.linalg, "numpy.fft": xp.fft}.get(module)
    if home is None or name not in home.__all__ or name in xp._plain.__all__:
        return None
    found: Callable[..., Any] = getattr(home, name)
    # Some are NumPy's own, which would come here again.
    return None if (found.__module__ or "").startswith("numpy") else found


def _run(
    found: Callable[..., Any] | None, plain: Callable[..., Any], args: Any, kwargs: dict[str, Any]
) -> Any:
    """`found` of the arguments if it takes them, else NumPy's function of their elements."""
    refused: Exception | None = None
    if found is not None:
        try:
            inspect.signature(found).bind(*args, **kwargs)
        except TypeError:
            pass
        else:
            try:
                return found(*args, **kwargs)
            except (TypeError, ValueError) as error:
                refused = error
    try:
        args, kwargs = tree_map(lambda x: x.numpy() if isinstance(x, Tensor) else x, (tuple(args), kwargs))
        return plain(*args, **kwargs)
    except Exception:
        # What neither takes is told in our words.
        if refused is not None:
            raise refused from None
        raise


def ufunc(own: Tensor, function: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of single elements, as `Tensor.__array_ufunc__` is asked for it."""
    name = function.__name__
    if method == "__call__" and not kwargs:
        if len(inputs) == 2 and not isinstance(inputs[0], Tensor) and name in _REFLECTED:
            result = getattr(own, _REFLECTED[name])(inputs[0])
            if result is not NotImplemented:
                return result
        return _run(_counterpart(name, "numpy"), function, inputs, kwargs)
    return _run(None, getattr(function, method), inputs, kwargs)


def function(own: Tensor, plain: Any, types: Iterable[type], args: Any, kwargs: dict[str, Any]) -> Any:
    """Any other function of NumPy, as `Tensor.__array_function__` is asked for it."""
    return _run(_counterpart(plain.__name__, plain.__module__), plain, args, kwargs)
