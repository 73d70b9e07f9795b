"""Arguments that are to be tensors, and what is raised where they are not."""

import contextlib
import functools
import inspect
import math
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any, NoReturn, ParamSpec, TypeGuard, TypeVar

from wengert import _core
from wengert._core import Tensor

__all__ = [
    "check_real",
    "compared",
    "first_beside",
    "is_beyond_int64",
    "no_tensor",
    "number_beside",
    "of_tensors",
    "one_of",
    "operand",
    "operands",
    "refusing",
]

P = ParamSpec("P")
NUMBERS_OR_NONE = (float | None, int | None)
R = TypeVar("R")


def axis_of(name: str, dim: Any, rank: int) -> int:
    """An axis of so many, counted from the front.

    Raises:
        TypeError: `dim` is no integer.
        IndexError: there is no such axis.
    """
    if not isinstance(dim, int) or isinstance(dim, bool):
        raise TypeError(f"{name}: dim must be an integer, got {dim!r}")
    if not -rank <= dim < rank:
        raise IndexError(f"{name}: axis {dim} is out of range for a tensor with {rank} axes")
    return dim % rank


def one_of(dim: Any, axis: Any, default: Any = None) -> Any:
    """What was given as `dim` or as `axis`; raises TypeError where both were."""
    if axis is None:
        return dim
    if dim is not None and dim != default:
        raise TypeError("dim and axis are two names of one argument; give one of them")
    return axis


def operand(function: str, x: Any, beside: Tensor | None = None) -> Tensor:
    """`x` as a tensor; a number, or a list of numbers, in a dtype that loses no digits next
    to the tensor `beside`.

    Raises:
        TypeError: names the function and what was given, for what is no tensor, number, list of numbers or
            array.
    """
    if isinstance(x, Tensor):
        return x
    if beside is not None and type(x) in (bool, int, float, complex):
        return number_beside(x, beside)
    try:
        return _core.as_tensor(x, device="cpu") if beside is None else _beside_tensor(x, beside)
    except TypeError:
        raise TypeError(f"{function}: tensors, arrays or numbers expected, got {type(x).__name__}") from None


def check_real(function: str, **given: Tensor | None) -> None:
    """Raises TypeError for the first of these tensors that is complex."""
    for name, x in given.items():
        if x is not None and x.dtype.is_complex:
            raise TypeError(f"{function}: {name} is {x.dtype}; real numbers expected, give its .real")


# The dtypes of Python's floats and complex numbers.
_NARROW = (_core.float16, _core.bfloat16, _core.float32, _core.complex64)
_DOUBLE = (_core.float64, _core.complex128)


def _beside_tensor(x: Any, beside: Tensor) -> Tensor:
    """What is no tensor as one; a list keeps the digits that the dtype of `beside` has."""
    is_list = isinstance(x, (list, tuple))
    if is_list and beside.dtype == _core.uint64:
        with contextlib.suppress(ValueError, TypeError):
            return _core.tensor(x, dtype=_core.uint64, device="cpu")
    given = _core.as_tensor(x, device="cpu")
    if is_list and given.dtype in _NARROW and beside.dtype in _DOUBLE:
        return _core.tensor(x, dtype=_with(given, beside.dtype), device="cpu")
    return given


def _with(x: Tensor, double: Any) -> Any:
    """The dtype of `x` beside a tensor of double precision with axes."""
    return _core.result_type(x, _core.empty((1,), dtype=double, device="cpu"))


def number_beside(number: complex, x: Tensor) -> Tensor:
    """A number as a 0-d tensor that loses no digits and adapts to the dtype of the operand beside it."""
    if is_beyond_int64(number):
        return _core.tensor(
            float(number) if x.dtype.is_differentiable else number, dtype=x.dtype, device=x.device
        )
    return _core.tensor(number, dtype=_core.result_type(x, number), device=x.device)


def first_beside(function: str, number: Any, args: Any, kwargs: dict[str, Any]) -> Tensor:
    """The first argument of a function, which is no tensor, as one: beside a tensor among the others,
    one of double precision if there is any.
    """
    others = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
    if isinstance(number, (int, float)) and args and isinstance(args[0], Tensor):
        return number_beside(number, args[0])
    return operand(function, number, next((x for x in others if x.dtype in _DOUBLE), None))


def is_beyond_int64(number: Any) -> TypeGuard[int]:
    """Whether this is an integer that int64 does not hold."""
    return isinstance(number, int) and not -(2**63) <= number < 2**63


def compared(function: str, x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Both as tensors of the dtype in which they are compared.

    A number takes the dtype of a floating point tensor beside it; integers and floats meet in float64,
    but on GPUs.
    """
    x, y = _beside(function, x, y), _beside(function, y, x)
    kind = _core.result_type(x.reshape(-1), y.reshape(-1))
    mixed = kind.is_floating_point and not (x.is_floating_point() and y.is_floating_point())
    if mixed and not (x.is_gpu or y.is_gpu):
        kind = _core.float64
    return x.to(kind), y.to(kind)


def _beside(function: str, x: Any, y: Any) -> Tensor:
    """`x` as a tensor that compares exactly with `y`: an integer in a dtype that holds it,
    whatever that of `y` is.
    """
    if type(x) is int and not -(2**63) <= x < 2**64:
        x = _far(x, isinstance(y, Tensor) and y.dtype.is_differentiable)
    number = type(x) in (int, float)
    if number and isinstance(y, Tensor) and not y.is_floating_point() and not y.is_complex():
        wide = _core.uint64 if is_beyond_int64(x) else _core.int64 if isinstance(x, int) else _core.float64
        wide = wide if not y.is_gpu else _core.int32 if isinstance(x, int) else _core.float32
        return _core.tensor(x, dtype=wide, device=y.device)
    return operand(function, x, y if isinstance(y, Tensor) else None)


def _far(x: int, among_floats: bool) -> float:
    """What stands for an integer that no tensor holds: infinity, unless it is near a float."""
    if among_floats:
        with contextlib.suppress(OverflowError):
            return float(x)
    return math.inf if x > 0 else -math.inf


def operands(function: str, tensors: Any) -> list[Tensor]:
    """The members of a sequence as tensors, numbers without loss next to tensors of double precision.

    Raises as `operand` does, and for what is no sequence.
    """
    if isinstance(tensors, Tensor):
        return list(tensors.unbind(0))
    if not isinstance(tensors, Iterable) or isinstance(tensors, str):
        raise TypeError(f"{function}: a sequence of tensors expected, got {type(tensors).__name__}")
    given = list(tensors)
    parts = [operand(function, x) for x in given]
    double = next((x.dtype for x in parts if x.dtype in _DOUBLE), None)
    if double is None:
        return parts
    return [
        _core.as_tensor(x, dtype=_with(part, double), device="cpu")
        if part.dtype in _NARROW and isinstance(x, (float, complex, list, tuple))
        else part
        for x, part in zip(given, parts, strict=True)
    ]


def no_tensor(function: str, name: str, value: Any) -> TypeError:
    """The error for an argument that must be a tensor."""
    return TypeError(
        f"{function}: {name} must be a tensor, got {type(value).__name__}; convert it with wengert.tensor()"
    )


def of_tensors(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose arguments annotated as tensors must be tensors, and those annotated as numbers
    numbers.

    Nothing is looked at unless the call fails: then an argument of another type is named as the reason. The
    wrapper costs 0.1 us, so functions of one short call check for themselves.
    """

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except (AttributeError, TypeError, RuntimeError) as error:
            _blame(function, error, args, kwargs)

    return checked


def _blame(function: Callable[..., Any], error: Exception, args: Any, kwargs: dict[str, Any]) -> NoReturn:
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        raise error from None
    for name, annotation in inspect.get_annotations(function).items():
        value = given.get(name, error)
        is_wanted = annotation is Tensor or (annotation == Tensor | None and value is not None)
        if is_wanted and not isinstance(value, Tensor) and value is not error:
            raise no_tensor(function.__name__, name, value) from None
        is_number = annotation in (float, int) or (annotation in NUMBERS_OR_NONE and value is not None)
        if is_number and not isinstance(value, Real) and value is not error:
            raise TypeError(
                f"{function.__name__}: {name} must be a number, got {type(value).__name__}"
            ) from None
    raise error


def refusing(
    module: str, reason: str
) -> Callable[[str], Callable[[Callable[P, None]], Callable[P, NoReturn]]]:
    """The decorators of functions that programs import and this library has not: their calls raise, and say
    why.

    Args:
        module: where they are.
        reason: what there is not, and behind a semicolon what to do instead.

    Returns:
        A function of the arguments of an example, which is added to what the function says of itself.
    """

    def of(example: str) -> Callable[[Callable[P, None]], Callable[P, NoReturn]]:
        def decorated(function: Callable[P, None]) -> Callable[P, NoReturn]:
            name = f"{module}.{function.__qualname__.removesuffix('.__init__')}"
            function.__annotations__["return"] = NoReturn

            @functools.wraps(function)
            def refused(*args: P.args, **kwargs: P.kwargs) -> NoReturn:
                raise NotImplementedError(f"{name}: {reason}")

            refused.__doc__ = f"""{inspect.cleandoc(function.__doc__ or "")}

Example:
    >>> try:
    ...     wg.{name}({example})
    ... except NotImplementedError as error:
    ...     print(str(error).split(";")[0])
    {name}: {reason.split(";")[0]}
"""
            return refused

        return decorated

    return of
