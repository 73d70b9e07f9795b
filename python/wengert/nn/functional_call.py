"""`functional_call`: a module as a pure function of its parameters, for `grad`, `vmap`, `jvp` and the rest.

The values take the parameters' places for the time of one call. They live in the instance `__dict__`, so the
swap is a dictionary write and the module's own code reads them as it always does.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from wengert._core import Tensor

from .module import Module

__all__ = ["functional_call", "stack_module_state"]


def functional_call(
    module: Module,
    parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    strict: bool = False,
) -> Any:
    """Calls `module` with other values in place of its parameters and buffers.

    Args:
        module: the module; it is the same afterwards.
        parameters: dotted names to tensors; or several such dictionaries, as in `(parameters, buffers)`. A
            parameter shared under several names is replaced under all of them.
        args: the arguments, a tuple; anything else is taken as the only argument.
        kwargs: keyword arguments.
        strict: demand a value for every parameter and buffer.

    Raises:
        KeyError: for a name the module does not have (and, if `strict`, for one that is missing).
        TypeError: for what is no module, and for parameters that are no dictionary, nor a sequence of them.
        ValueError: for a name in several dictionaries.

    Example:
        >>> model = wg.nn.Linear(3, 1)
        >>> x, weights = wg.ones(5, 3), dict(model.named_parameters())
        >>> g = wg.grad(lambda w: wg.nn.functional_call(model, w, x).sum())(weights)
        >>> g["weight"]
        tensor([[5., 5., 5.]])
    """
    if not isinstance(module, Module):
        raise TypeError(f"functional_call: module is a module, got {type(module).__name__}")
    parameters = _merged(parameters)
    places = _places(module)
    unknown = [name for name in parameters if name not in places]
    if unknown:
        raise KeyError(
            f"functional_call: {type(module).__name__} has no {unknown[0]!r}; it has: {', '.join(places)}"
        )
    targets: dict[tuple[int, str], tuple[dict[str, Any], str, Any]] = {}
    replaced = set()
    for name, value in parameters.items():
        owner, leaf = places[name]
        original = owner[leaf]
        replaced.add(id(original))
        for other, key in places.values():
            if other[key] is original:
                targets[id(other), key] = (other, key, value)
    if strict:
        missing = [name for name, (owner, leaf) in places.items() if id(owner[leaf]) not in replaced]
        if missing:
            raise KeyError(
                f"functional_call: no value for {', '.join(missing)} of {type(module).__name__}; strict=True "
                "demands one for every parameter and buffer"
            )
    saved = [(owner, leaf, owner[leaf]) for owner, leaf, _ in targets.values()]
    try:
        for owner, leaf, value in targets.values():
            owner[leaf] = value
        return module(*(args if isinstance(args, tuple) else (args,)), **dict(kwargs or {}))
    finally:
        for owner, leaf, value in saved:
            owner[leaf] = value


def _merged(parameters: Any) -> dict[str, Any]:
    """One dictionary of all that were given."""
    dictionaries = [parameters] if isinstance(parameters, Mapping) else parameters
    is_listed = isinstance(dictionaries, list | tuple)
    if not is_listed or not all(isinstance(each, Mapping) for each in dictionaries):
        raise TypeError(
            "functional_call: parameters is a dictionary of names and tensors, or a tuple of them, got "
            + (
                repr([type(each).__name__ for each in dictionaries])
                if is_listed
                else type(parameters).__name__
            )
        )
    merged: dict[str, Any] = {}
    for dictionary in dictionaries:
        if again := merged.keys() & dictionary.keys():
            raise ValueError(f"functional_call: {min(again)!r} has values in several dictionaries")
        merged.update(dictionary)
    return merged


def _places(module: Module) -> dict[str, tuple[dict[str, Any], str]]:
    """Every dotted name of a parameter or buffer, with the dictionary and key where its value lies."""
    found = {}
    for place, part in module.named_modules(remove_duplicate=False):
        for leaf in [*part._parameter_names, *part._buffer_names]:
            if part.__dict__[leaf] is not None:
                found[f"{place}.{leaf}" if place else leaf] = (part.__dict__, leaf)
    return found


def stack_module_state(models: list[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Returns the parameters and buffers of equal modules, stacked along a new first axis: an ensemble for
    `vmap`.

    Example:
        >>> models = [wg.nn.Linear(2, 1) for _ in range(3)]
        >>> params, buffers = wg.nn.stack_module_state(models)
        >>> params["weight"].shape
        (3, 1, 2)
    """
    import wengert as wg

    if not models:
        raise ValueError("stack_module_state: at least one module expected")

    def stack(rows: list[dict[str, Any]]) -> dict[str, Tensor]:
        if any(row.keys() != rows[0].keys() for row in rows):
            raise ValueError("stack_module_state: the modules have different parameters")
        return {name: wg.stack([row[name].detach() for row in rows]) for name in rows[0]}

    parameters = stack([dict(model.named_parameters()) for model in models])
    for value in parameters.values():
        value.requires_grad_(True)
    return parameters, stack([dict(model.named_buffers()) for model in models])
