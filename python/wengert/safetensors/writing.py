"""Writing files: `save_file`, `save`."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert.serialization.writing import written

from .header import NAMES, write_header

__all__ = ["groups", "save", "save_file", "span"]

#: The names of dtypes in files, in the order of files.
_KINDS = {name: kind for kind, name in NAMES.items()}
_ORDER = list(_KINDS)


def span(tensor: Tensor) -> tuple[int, int]:
    """The first address of a tensor's elements, and the one behind the last."""
    try:
        begin: int = tensor.data_ptr()
    except TypeError:
        raise TypeError(
            "safetensors: a tensor inside vmap or jvp stands for many values at once; save outside of the "
            "transformed function"
        ) from None
    reach = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride()))
    return begin, begin + (reach + 1) * tensor.itemsize


def groups(tensors: Mapping[str, Tensor]) -> list[list[str]]:
    """The names of tensors that share memory, each group of them."""
    spans = sorted((str(x.device), *span(x), name) for name, x in tensors.items() if x.numel())
    found: list[list[str]] = []
    last: tuple[str, int] = ("", 0)
    for device, begin, end, name in spans:
        if device == last[0] and begin < last[1]:
            found[-1].append(name)
            last = device, max(end, last[1])
        else:
            found.append([name])
            last = device, end
    return [sorted(names) for names in found if len(names) > 1]


def _check(tensors: Any, metadata: Any) -> None:
    """Raises for what cannot be saved."""
    if not isinstance(tensors, Mapping):
        raise TypeError(
            f"safetensors: a dictionary of tensors by name expected, got {type(tensors).__name__}"
        )
    if metadata is not None and not (
        isinstance(metadata, Mapping) and all(isinstance(x, str) for pair in metadata.items() for x in pair)
    ):
        raise TypeError(
            "safetensors: metadata is a dictionary of texts by texts; convert other values by str"
        )
    for name, x in tensors.items():
        if not isinstance(name, str) or name == "__metadata__":
            raise TypeError(f"safetensors: {name!r} is no name of a tensor in a file; use another str")
        if not isinstance(x, Tensor):
            raise TypeError(f"safetensors: {name!r} is a {type(x).__name__}, where a tensor is expected")
        if x.dtype.name not in _KINDS:
            raise TypeError(
                f"safetensors: {name!r} is of {x.dtype.name}, which the format has not; save "
                f"wengert.view_as_real of it"
            )
    if shared := groups(tensors):
        raise RuntimeError(
            f"safetensors: tensors share memory: "
            f"{'; '.join(', '.join(map(repr, names)) for names in shared)}; each "
            "would be stored, and they would be apart when loaded; save one of them, a clone() of the "
            "others, or the module by save_model"
        )
    for name, x in tensors.items():
        if not x.is_contiguous():
            raise ValueError(
                f"safetensors: {name!r} of shape {tuple(x.shape)} and strides {x.stride()} is not "
                "contiguous; save its .contiguous()"
            )


def _bytes_of(tensor: Tensor) -> Any:
    """The elements of a contiguous tensor, without a copy where they lie on the CPU."""
    host = tensor.detach().cpu()
    # NumPy has no bfloat16: the elements go as whole numbers.
    array = (host.view(_core.int16) if host.dtype == _core.bfloat16 else host).numpy()
    if sys.byteorder == "big":
        array = array.byteswap()
    return array.reshape(-1).view("u1").data


def _parts(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> Iterator[Any]:
    """The parts of a file in turn: the header, and the elements of each tensor."""
    _check(tensors, metadata)
    order = sorted(tensors, key=lambda name: (_ORDER.index(tensors[name].dtype.name), name))
    described = ((name, _KINDS[tensors[name].dtype.name], tuple(tensors[name].shape)) for name in order)
    try:
        yield write_header(described, None if metadata is None else dict(metadata))
    except UnicodeEncodeError:
        raise ValueError("safetensors: a name, or a text of the metadata, is no Unicode text") from None
    for name in order:
        yield _bytes_of(tensors[name])


def save(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """Returns the bytes of a safetensors file of these tensors. See `save_file`.

    Args:
        tensors: contiguous tensors by name, which do not share memory.
        metadata: texts to save beside them.

    Raises:
        TypeError: for names that are no texts, values that are no tensors, and tensors of complex128.
        ValueError: for a tensor that is not contiguous.
        RuntimeError: for tensors that share memory.

    Example:
        >>> wg.safetensors.save({"a": wg.ones(1)})[8:]
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  \\x00\\x00\\x80?'
    """
    return b"".join(_parts(tensors, metadata))


def save_file(
    tensors: Mapping[str, Tensor],
    filename: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes tensors to a safetensors file.

    The file gets its name when all of it is written: what had the name before stays whole until then, so that
    tensors that lie in it stay as they are, and stays for good if writing fails. Tensors lose their history;
    those on a GPU are copied to the host one by one.

    Args:
        tensors: contiguous tensors by name, which do not share memory.
        filename: the path of the file.
        metadata: texts to save beside them.

    Raises:
        TypeError: for names that are no texts, values that are no tensors, and tensors of complex128.
        ValueError: for a tensor that is not contiguous.
        RuntimeError: for tensors that share memory.

    Example:
        >>> wg.safetensors.save_file({"a": wg.arange(3)}, "model.safetensors")
        >>> wg.safetensors.load_file("model.safetensors")
        {'a': tensor([0, 1, 2])}
    """
    parts: Iterable[Any] = _parts(tensors, metadata)
    with written(filename) as file:
        file.writelines(parts)
