"""`RemovableHandle`: what registering a hook returns, and how the hook is taken away again."""

import itertools
from typing import Any

__all__ = ["RemovableHandle"]

_IDS = itertools.count()


class RemovableHandle:
    """Removes its hook on `remove()`, or at the end of a `with` block."""

    def __init__(self, registry: dict[int, Any], key: int) -> None:
        """Remembers the place of the hook."""
        self._registry = registry
        self._key = key

    @classmethod
    def add(cls, registry: dict[int, Any], entry: Any, prepend: bool = False) -> "RemovableHandle":
        """Enters `entry` last, or first with `prepend`."""
        key = next(_IDS)
        rest = dict(registry) if prepend else {}
        if prepend:
            registry.clear()
        registry[key] = entry
        registry.update(rest)
        return cls(registry, key)

    def remove(self) -> None:
        """Takes the hook away; a second call does nothing."""
        self._registry.pop(self._key, None)

    def __enter__(self) -> "RemovableHandle":
        """The handle itself."""
        return self

    def __exit__(self, *_: Any) -> None:
        """Removes the hook."""
        self.remove()
