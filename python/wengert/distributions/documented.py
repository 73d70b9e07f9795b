"""Docstrings that are inherited: an override says what it is only where that differs."""

from typing import Any

__all__ = ["Documented"]


class Documented:
    """A base whose subclasses' methods and properties have its docstrings, unless they have their own."""

    def __init_subclass__(cls, **settings: Any) -> None:
        """Fills in what is missing."""
        super().__init_subclass__(**settings)
        for name, value in vars(cls).items():
            if name.startswith("_") or not hasattr(value, "__doc__") or value.__doc__:
                continue
            inherited = next((vars(c)[name].__doc__ for c in cls.__mro__[1:] if name in vars(c)), None)
            if inherited:
                value.__doc__ = inherited
