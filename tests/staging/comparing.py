"""Cases: small programs that must do the same with `jit` as without, and what the same means.

A case takes `jit`, which is the identity once and `wg.jit` once, and yields what must be equal. What it
yields is written down at once, so that later writes into the same memory do not hide a difference. With `jit`
a call that raises changes nothing: in cases of this, `transaction` takes the place of the identity.
"""

import dataclasses
import random
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import wengert as wg
from wengert import _core

__all__ = ["CASES", "Case", "calls", "case", "copied", "raised", "recorded", "run", "transaction"]

Body = Callable[[Callable[..., Any]], Iterator[Any]]


@dataclasses.dataclass(frozen=True)
class Case:
    """A case, how many programs it must make (None if it may stay Python), and what `jit` is without."""

    body: Body
    traces: int | None
    plain: Callable[..., Any]


#: All cases by name: the module's subject, and the function.
CASES: dict[str, Case] = {}


def _add(body: Body, name: str, module: str, traces: int | None, plain: Callable[..., Any]) -> None:
    name = f"{module.rpartition('.')[2]}-{name}"
    assert name not in CASES, name
    CASES[name] = Case(body, traces, plain)


def case(body: Body | None = None, *, traces: int | None = None, undoes: bool = False) -> Any:
    """Adds a case; with `traces`, so many programs must be made in all, and nothing may stay Python. In one
    that `undoes`, calls raise and nothing that they did may stay.
    """
    if body is None:
        return lambda body: case(body, traces=traces, undoes=undoes)
    plain = transaction if undoes else lambda function, **settings: function
    _add(body, body.__name__, body.__module__, traces, plain)
    return body


def transaction(function: Callable[..., Any], **settings: Any) -> Callable[..., Any]:
    """The function; if it raises, the tensors of its closure and its arguments are what they were."""

    def call(*args: Any, **kwargs: Any) -> Any:
        found = [*args, *(cell.cell_contents for cell in function.__closure__ or ())]
        tensors = [x for x in found if isinstance(x, wg.Tensor)]
        values = [(x.detach().clone(), x._version) for x in tensors]
        gradients = [x.grad.clone() if x.is_leaf and x.grad is not None else None for x in tensors]
        numbers = wg.get_rng_state()
        try:
            return function(*args, **kwargs)
        except Exception:
            for x, (value, version), gradient in zip(tensors, values, gradients, strict=True):
                x.detach().copy_(value)
                _core._stage_unwritten(x.detach(), version)
                if x.is_leaf and x.requires_grad:
                    x.grad = gradient
            wg.set_rng_state(numbers)
            raise

    return call


def calls(
    name: str, function: Callable[..., Any], arguments: Callable[[], list[Any]], traces: int | None = None
) -> None:
    """Adds a case that calls a function with each of the arguments in turn; a tuple is several of them."""

    def body(jit: Callable[..., Any]) -> Iterator[Any]:
        staged = jit(function)
        for given in arguments():
            yield raised(staged, *(given if isinstance(given, tuple) else (given,)))

    _add(body, name, function.__module__, traces, lambda function, **settings: function)


def raised(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a call returns, or the exception that it raises."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return error


def copied(values: Any) -> Any:
    """A copy of trees of tensors."""
    if isinstance(values, dict):
        return {key: copied(x) for key, x in values.items()}
    if isinstance(values, list | tuple):
        return [copied(x) for x in values]
    return values.detach().clone() if isinstance(values, wg.Tensor) else values


def recorded(value: Any) -> Any:
    """All that can be compared of a value: types, shapes, dtypes and bits."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, wg.Tensor):
        bits = value.detach().resolve_conj()
        bits = bits.float() if bits.dtype == wg.bfloat16 else bits
        facts = (
            kind,
            str(value.dtype),
            tuple(value.shape),
            value.stride(),
            value.requires_grad and value.is_leaf,
        )
        return *facts, bits.numpy().tobytes(), repr(value.tolist())
    if isinstance(value, np.ndarray | np.generic):
        return kind, str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, dict):
        return kind, [(key if isinstance(key, str) else repr(key), recorded(x)) for key, x in value.items()]
    if isinstance(value, list | tuple):
        return kind, [recorded(x) for x in value]
    if isinstance(value, BaseException):
        # Whether an index is checked before the kernel or in it decides whether the text names the axis.
        return kind, re.sub(r"for axis \d+ of", "for an axis of", str(value))
    if dataclasses.is_dataclass(value):
        return kind, [
            (field.name, recorded(getattr(value, field.name))) for field in dataclasses.fields(value)
        ]
    text = repr(value)
    assert " at 0x" not in text, f"a case yields {text}, which is another text in each run"
    return kind, text


def run(body: Body, jit: Callable[..., Any]) -> list[Any]:
    """What a case yields, and where it leaves the random numbers and the settings."""
    wg.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002 (a case may draw from it)
    random.seed(0)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        found = [recorded(value) for value in body(jit)]
    # After several tries jit says that the function stays Python.
    texts = [str(warning.message) for warning in given if not str(warning.message).startswith("jit: ")]
    numbers = wg.rand(2), np.random.rand(), random.random()  # noqa: NPY002
    state = (*numbers, wg.get_default_dtype(), wg.is_grad_enabled())
    return [*found, texts, recorded(state)]
