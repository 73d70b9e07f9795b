"""Parameters that are functions of others: `module.weight` computed, each time it is read, from what is
trained.

A parametrized module gets a class of its own, whose attribute is a property; what is trained moves to
`module.parametrizations.weight.original`. Layers, optimisers, hooks and transforms need to know nothing of
it. Names are those of `torch.nn.utils.parametrize`. Read next: `parametrizations.py`, which has the usual
functions.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import wengert as wg
from wengert._core import Tensor

from ..module import Module
from ..modules.container import ModuleDict
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]


class _Cache:
    """Values of parametrized attributes, while somebody asked for that."""

    depth: ClassVar[int] = 0
    values: ClassVar[dict[tuple[int, str], Tensor]] = {}


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Computes each parametrized attribute once inside its region: for modules that read theirs many times in
    a forward.

    Example:
        >>> layer = wg.nn.utils.parametrizations.spectral_norm(wg.nn.Linear(3, 3))
        >>> with wg.nn.utils.parametrize.cached():
        ...     print(layer.weight is layer.weight)
        True
    """
    _Cache.depth += 1
    try:
        yield
    finally:
        _Cache.depth -= 1
        if _Cache.depth == 0:
            _Cache.values.clear()


class ParametrizationList(Module):
    """The functions of one attribute, the first applied first, and what they are applied to.

    `modules` are the functions, `original` the value that the attribute begins with. What is trained is
    `original`, or `original0`, `original1`, … where the first function takes several tensors.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor) -> None:
        """Goes back through the functions' `right_inverse`, where they have one."""
        super().__init__()
        self._functions: list[str] = []
        for module in modules:
            self.append(module)
        with wg.no_grad():
            start = self._back(original, False)
        self.is_tensor = isinstance(start, Tensor)
        self._originals = ["original"] if self.is_tensor else [f"original{i}" for i in range(len(start))]
        for name, value in zip(self._originals, [start] if self.is_tensor else start):
            if not isinstance(original, Parameter):
                self.register_buffer(name, value)
            elif value is original:
                # The same object: an optimiser may have it already.
                self.register_parameter(name, original)
            else:
                self.register_parameter(name, Parameter(value.detach(), original.requires_grad))

    def append(self, module: Module) -> None:
        """Applies one more function, behind all others; the originals stay as they are."""
        name = str(len(self._functions))
        self.register_module(name, module)
        self._functions.append(name)

    def _chain(self) -> list[Module]:
        return [self.__dict__[name] for name in self._functions]

    def __len__(self) -> int:
        """How many functions."""
        return len(self._functions)

    def __getitem__(self, index: int) -> Module:
        """One of the functions."""
        return self._chain()[index]

    def _back(self, value: Any, strict: bool) -> Any:
        """What gives `value`, by the right inverses; functions that have none pass it on,
        or raise if `strict`.
        """
        for module in reversed(self._chain()):
            inverse = getattr(module, "right_inverse", None)
            try:
                if inverse is None:
                    raise NotImplementedError("it has no right_inverse")
                value = inverse(value)
            except NotImplementedError as error:
                if strict:
                    raise RuntimeError(
                        f"the parametrized attribute cannot be assigned: nothing goes back through "
                        f"{type(module).__name__} ({error}); define right_inverse in it, or change the "
                        "original"
                    ) from None
        return value if isinstance(value, Tensor) else tuple(value)

    def forward(self) -> Tensor:
        """Returns the value of the attribute."""
        first, *others = self._chain()
        value = first(*[self.__dict__[name] for name in self._originals])
        for module in others:
            value = module(value)
        return value

    def assign(self, value: Tensor) -> None:
        """Writes what gives `value` into the originals.

        Raises:
            RuntimeError: for a function that has no `right_inverse`.
            ValueError: the right inverses give tensors of another number or shape.
        """
        with wg.no_grad():
            start = self._back(value, True)
            given = [start] if isinstance(start, Tensor) else list(start)
            shapes = [tuple(self.__dict__[name].shape) for name in self._originals]
            if [tuple(x.shape) for x in given] != shapes:
                raise ValueError(
                    f"a value of shape {tuple(value.shape)} comes from originals of shapes "
                    f"{[tuple(x.shape) for x in given]}, expected {shapes}"
                )
            for name, x in zip(self._originals, given):
                self.__dict__[name].copy_(x)


def _property(name: str) -> property:
    """The attribute as a function of the originals."""

    def get(module: Module) -> Tensor:
        parts: ParametrizationList = module.__dict__["parametrizations"][name]
        if _Cache.depth == 0:
            return parts()
        key = (id(module), name)
        if key not in _Cache.values:
            _Cache.values[key] = parts()
        return _Cache.values[key]

    def put(module: Module, value: Tensor) -> None:
        module.__dict__["parametrizations"][name].assign(value)

    return property(get, put)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Tells whether a `module` has parametrized attributes, or one of the name `tensor_name`, if that is
    given.

    Example:
        >>> wg.nn.utils.parametrize.is_parametrized(wg.nn.Linear(2, 2))
        False
    """
    parts = module.__dict__.get("parametrizations")
    if not isinstance(parts, ModuleDict):
        return False
    return len(parts) > 0 if tensor_name is None else tensor_name in parts._module_names


def type_before_parametrizations(module: Module) -> type:
    """Returns the class of a module before its attributes were parametrized.

    Example:
        >>> layer = wg.nn.utils.parametrizations.spectral_norm(wg.nn.Linear(3, 3))
        >>> wg.nn.utils.parametrize.type_before_parametrizations(layer).__name__
        'Linear'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Makes an attribute a function of what is trained; returns the module.

    Args:
        module: has a parameter or buffer `tensor_name`, or one that is parametrized already: the function is
            applied to its value then, and the originals stay as they are.
        parametrization: a module whose `forward` gives the attribute; with a method `right_inverse`, which
            may return several tensors, the attribute begins with (about) the value that it has, and can be
            assigned.
        unsafe: allow a function that changes shape or dtype.

    Raises:
        ValueError: no such attribute, or another shape or dtype without `unsafe`.

    Example:
        >>> class Positive(wg.nn.Module):
        ...     def forward(self, x):
        ...         return x.exp()
        ...     def right_inverse(self, y):
        ...         return y.log()
        >>> layer = wg.nn.Linear(1, 1)
        >>> _ = wg.nn.utils.parametrize.register_parametrization(layer, "weight", Positive())
        >>> layer.weight = wg.tensor([[2.0]])
        >>> layer.weight
        tensor([[2.]], grad_fn=<ExpBackward>)
    """
    name = "register_parametrization"
    if not isinstance(parametrization, Module):
        raise TypeError(f"{name}: a Module expected, got {type(parametrization).__name__}")
    again = is_parametrized(module, tensor_name)
    registered = tensor_name in module._parameter_names or tensor_name in module._buffer_names
    if not again and (not registered or module.__dict__[tensor_name] is None):
        raise ValueError(f"{name}: {type(module).__name__} has no parameter or buffer {tensor_name!r}")
    before = getattr(module, tensor_name)
    with wg.no_grad():
        parts = None if again else ParametrizationList([parametrization], before)
        after = parametrization(before) if parts is None else parts()
    if not unsafe and (tuple(after.shape), after.dtype) != (tuple(before.shape), before.dtype):
        raise ValueError(
            f"{name}: {tensor_name!r} would be {after.dtype} of shape {tuple(after.shape)}, expected "
            f"{before.dtype} of shape {tuple(before.shape)} as before; pass unsafe=True to allow that"
        )
    if parts is None:
        module.__dict__["parametrizations"][tensor_name].append(parametrization)
        return module
    if not is_parametrized(module):
        module.__class__ = type(f"Parametrized{type(module).__name__}", (type(module),), {})
        module.parametrizations = ModuleDict()
    delattr(module, tensor_name)
    setattr(type(module), tensor_name, _property(tensor_name))
    module.__dict__["parametrizations"][tensor_name] = parts
    return module


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Makes a parametrized attribute a parameter or buffer again; returns the module.

    Args:
        module: the module.
        tensor_name: its attribute.
        leave_parametrized: keep the value that it has now; otherwise the original, of which there must be
            one.

    Raises:
        ValueError: an attribute that is not parametrized, or several originals without `leave_parametrized`.

    Example:
        >>> layer = wg.nn.utils.parametrizations.spectral_norm(wg.nn.Linear(3, 3))
        >>> layer = wg.nn.utils.parametrize.remove_parametrizations(layer, "weight")
        >>> wg.nn.utils.parametrize.is_parametrized(layer)
        False
    """
    name = "remove_parametrizations"
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"{name}: {tensor_name!r} of {type(module).__name__} is not parametrized")
    parts: ParametrizationList = module.__dict__["parametrizations"][tensor_name]
    original = parts.__dict__[parts._originals[0]]
    if not leave_parametrized and not parts.is_tensor:
        raise ValueError(
            f"{name}: {tensor_name!r} comes from {len(parts._originals)} originals, of which none can take "
            "its place; pass leave_parametrized=True"
        )
    if leave_parametrized:
        with wg.no_grad():
            value = getattr(module, tensor_name).detach()
            if (
                parts.is_tensor
                and tuple(value.shape) == tuple(original.shape)
                and value.dtype == original.dtype
            ):
                original.copy_(value)
            else:
                original = (
                    Parameter(value, original.requires_grad) if isinstance(original, Parameter) else value
                )
    delattr(type(module), tensor_name)
    del module.__dict__["parametrizations"][tensor_name]
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    if isinstance(original, Parameter):
        module.register_parameter(tensor_name, original)
    else:
        module.register_buffer(tensor_name, original)
    return module


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Parametrizes a module as another one is, by the same functions and with the same originals; returns it.

    Args:
        from_module: the module that has them; nothing happens where it has none.
        to_module: the other; attributes that it does not have are made.
        tensor_name: the attribute; by default all that are parametrized.

    Example:
        >>> layer = wg.nn.utils.parametrizations.spectral_norm(wg.nn.Linear(3, 3))
        >>> other = wg.nn.Linear(3, 3)
        >>> other = wg.nn.utils.parametrize.transfer_parametrizations_and_params(layer, other)
        >>> wg.nn.utils.parametrize.is_parametrized(other)
        True
    """
    if not is_parametrized(from_module):
        return to_module
    source = from_module.__dict__["parametrizations"]
    for name in source.keys() if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        for function in source[name]._chain():
            register_parametrization(to_module, name, function, unsafe=True)
        made = to_module.__dict__["parametrizations"][name]
        for original in source[name]._originals:
            setattr(made, original, source[name].__dict__[original])
    return to_module
