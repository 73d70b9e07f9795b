"""Other libraries' names of arguments."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

__all__ = ["also", "noted"]

Function = Callable[..., Any]


def also(**names: str) -> Callable[[Function], Function]:
    """Makes a function take arguments by other names too: `also(true_fn="true_fun")`.

    Overloads say what types they have.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            for other in names.keys() & kwargs.keys():
                own = names[other]
                if own in kwargs:
                    raise TypeError(
                        f"{function.__name__}: {own} and {other} are two names of one argument; give one of "
                        f"them"
                    )
                kwargs[own] = kwargs.pop(other)
            return function(*args, **kwargs)

        return wrapper

    return decorate


@contextlib.contextmanager
def noted(name: str, args: Sequence[Any], keyword: str) -> Iterator[None]:
    """Tells programs for PyTorch, whose functions take the entries of one tuple, how to pass it."""
    try:
        yield
    except TypeError as error:
        if len(args) == 1 and isinstance(args[0], tuple):
            error.add_note(
                f"{name}: its functions got one argument, a tuple, as in JAX; write {keyword}=(...) to give its "
                "entries one by one, as in PyTorch"
            )
        raise
