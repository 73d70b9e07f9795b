"""Modules whose parameters may be shared: `save_model`, `load_model`."""

import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from wengert._core import Tensor

from .reading import load_file
from .writing import groups, save_file, span

if TYPE_CHECKING:
    from wengert.nn import Module

__all__ = ["load_model", "save_model"]


def _doubles(state: Mapping[str, Tensor], preferred: Collection[str] = ()) -> dict[str, str]:
    """Names whose memory another tensor covers, and its name: a preferred one, the first of several."""
    found: dict[str, str] = {}
    for names in groups(state):
        spans = {name: span(state[name]) for name in names}
        whole = min(begin for begin, _ in spans.values()), max(end for _, end in spans.values())
        covering = [name for name in names if spans[name] == whole and state[name].is_contiguous()]
        if not covering:
            raise RuntimeError(
                f"safetensors: {', '.join(map(repr, names))} are parts of one memory, of which none is all; "
                "save a clone() of each"
            )
        kept = next((name for name in covering if name in preferred), covering[0])
        found.update((name, kept) for name in names if name != kept)
    return found


def save_model(
    model: "Module",
    filename: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
    force_contiguous: bool = True,
) -> None:
    """Writes the state dict of a module to a safetensors file, tensors that share memory once.

    Args:
        model: a module.
        filename: the path of the file.
        metadata: texts to save beside the tensors; names that are left out are added, with the name of the
            tensor that stands for them.
        force_contiguous: False raises for tensors that are not contiguous.

    Raises:
        RuntimeError: tensors are parts of one memory, of which none is all.
        ValueError: with `force_contiguous=False`, for a tensor that is not contiguous.

    Example:
        >>> model = wg.nn.Sequential(wg.nn.Linear(2, 2), wg.nn.Linear(2, 2))
        >>> model[1].weight = model[0].weight
        >>> wg.safetensors.save_model(model, "model.safetensors")
        >>> sorted(wg.safetensors.load_file("model.safetensors")), wg.safetensors.load_model(model, "model.safetensors")
        (['0.bias', '0.weight', '1.bias'], ([], []))
    """
    state: dict[str, Any] = dict(model.state_dict())
    doubles = _doubles(state)
    state = {name: x for name, x in state.items() if name not in doubles}
    if force_contiguous:
        state = {name: x.contiguous() for name, x in state.items()}
    if doubles:
        metadata = {**doubles, **(metadata or {})}
    save_file(state, filename, metadata)


def load_model(
    model: "Module", filename: str | os.PathLike[str], strict: bool = True, device: Any = "cpu"
) -> tuple[list[str], list[str]]:
    """Copies the tensors of a safetensors file into a module, whose parameters may share memory.

    Args:
        model: a module, whose parameters and buffers are written to.
        filename: the path of the file.
        strict: False takes a file that lacks names of the module, or has others.
        device: where the tensors of the file lie before they are copied.

    Returns:
        The names of the module that the file lacks, and those of the file that the module lacks.

    Raises:
        RuntimeError: if there are such names and `strict` is True, and for shapes that differ.
        SafetensorError: the file is no safetensors file, is cut off or says what cannot be true.

    Example:
        >>> model = wg.nn.Linear(2, 2)
        >>> wg.safetensors.save_file({"weight": wg.eye(2)}, "model.safetensors")
        >>> wg.safetensors.load_model(model, "model.safetensors", strict=False)
        (['bias'], [])
    """
    state = load_file(filename, device)
    doubles = _doubles(dict(model.state_dict()), state)
    result = model.load_state_dict(state, strict=False)
    missing = sorted(set(result.missing_keys) - set(doubles))
    # A file that has both names of one tensor says two things of it.
    unexpected = sorted({*result.unexpected_keys, *(name for name in doubles if name in state)})
    if strict and (missing or unexpected):
        raise RuntimeError(
            f"load_model: {os.fspath(filename)} does not fit {type(model).__name__}: "
            + "; ".join(
                f"{what} {', '.join(map(repr, names))}"
                for what, names in (("it lacks", missing), ("the module has no", unexpected))
                if names
            )
            + "; strict=False loads the others"
        )
    return missing, unexpected
