"""Walking the tree of a module, and finding its parts by dotted names. Mixed into `Module`."""

from collections.abc import Iterator
from typing import Any

from wengert._core import Tensor

from .parameter import Parameter
from .registries import Registered

__all__ = ["Walking"]


class Walking:
    """The part of `Module` that finds modules, parameters and buffers."""

    _parameter_names: dict[str, None]
    _buffer_names: dict[str, bool]
    _module_names: dict[str, None]

    def register_module(self, name: str, module: Any) -> None:
        """Comes from `Module`."""
        raise NotImplementedError

    @property
    def _parameters(self) -> Registered:
        """The module's own parameters by name."""
        return Registered(self, "_parameter_names")

    @property
    def _buffers(self) -> Registered:
        """The module's own buffers by name."""
        return Registered(self, "_buffer_names")

    @property
    def _modules(self) -> Registered:
        """The modules right below by name."""
        return Registered(self, "_module_names")

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Returns the direct submodules with their names, each once."""
        seen: set[int] = set()
        for name in self._module_names:
            module = self.__dict__[name]
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator[Any]:
        """Returns the direct submodules."""
        return (module for _, module in self.named_children())

    def named_modules(
        self, memo: set[int] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yields this module and all below, depth first, with dotted names.

        `prefix` is put before all names. A module that is there several times comes once, or with
        `remove_duplicate=False` under each of its names. `memo` is the set of the ids of modules that were
        met already.
        """
        memo = set() if memo is None else memo
        if id(self) in memo:
            return
        if remove_duplicate:
            memo.add(id(self))
        yield prefix, self
        for name in self._module_names:
            module = self.__dict__[name]
            if module is not None:
                yield from module.named_modules(memo, _join(prefix, name), remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """Yields this module and all below, each once unless `remove_duplicate` is False."""
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

    def _named(self, kind: str, prefix: str, recurse: bool, once: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=once) if recurse else [(prefix, self)]
        for place, module in modules:
            for name in module.__dict__[kind]:
                value = module.__dict__[name]
                if value is None or id(value) in seen:
                    continue
                if once:
                    seen.add(id(value))
                yield _join(place, name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Returns all parameters with dotted names; a shared one under its first name.

        `prefix` is put before all names; `recurse=False` leaves out those of submodules,
        `remove_duplicate=False` has a shared one under each of its names.
        """
        return self._named("_parameter_names", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Returns all parameters, each once: what an optimiser takes. `recurse=False` leaves out those of
        submodules.
        """
        return (param for _, param in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Returns all buffers with dotted names; `prefix`, `recurse` and `remove_duplicate` as of
        `named_parameters`.
        """
        return self._named("_buffer_names", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Returns all buffers, each once. `recurse=False` leaves out those of submodules."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Any:
        """Returns the module of the dotted name `target`; the empty name is the module itself."""
        module: Any = self
        for name in filter(None, target.split(".")):
            module = module._member("_module_names", "submodule", name, target)
        return module

    def get_parameter(self, target: str) -> Parameter:
        """Returns the parameter of the dotted name `target`."""
        return self._of_name("_parameter_names", "parameter", target)

    def get_buffer(self, target: str) -> Tensor:
        """Returns the buffer of the dotted name `target`."""
        return self._of_name("_buffer_names", "buffer", target)

    def _of_name(self, kind: str, what: str, target: str) -> Any:
        place, _, name = target.rpartition(".")
        return self.get_submodule(place)._member(kind, what, name, target)

    def _member(self, kind: str, what: str, name: str, target: str) -> Any:
        """What is registered here under a name, on the way to `target`."""
        names = self.__dict__[kind]
        found = self.__dict__[name] if name in names else None
        if name not in names or (found is None and what == "submodule"):
            raise AttributeError(
                f"{type(self).__name__} has no {what} {name!r} (looking for {target!r}); it has: "
                f"{', '.join(names) or 'none'}"
            )
        return found

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Puts a `module` in the place of the one of the dotted name `target`, or of a new name below an
        existing module.

        Raises:
            AttributeError: where there is no such module above it, or with `strict` none of that name.
            ValueError: for the empty name.
        """
        place, _, name = target.rpartition(".")
        if not name or not isinstance(module, Walking):
            raise ValueError(
                f"set_submodule: a dotted name and a Module expected, got {target!r} and "
                f"{type(module).__name__}"
            )
        above = self.get_submodule(place)
        if strict:
            self.get_submodule(target)
        above.register_module(name, module)


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
