"""Reading files: `load_file`, `load`, `safe_open`."""

import mmap
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert import _core
from wengert._core import Tensor
from wengert._places import placed

from .header import NAMES, Entry, Header, SafetensorError, read_header

__all__ = ["load", "load_file", "safe_open"]

#: What programs call the library whose tensors they want.
_FRAMEWORKS = ("pt", "torch", "pytorch", "wengert")


def _tensor(data: Any, start: int, name: str, entry: Entry) -> Tensor:
    """A tensor over this part of a file, which is copied where it cannot be written to or is not aligned."""
    if entry.kind not in NAMES:
        raise TypeError(
            f"safetensors: {name!r} is of {entry.kind}, a dtype that wengert has not; convert it where it "
            "was made, or read the other tensors by safe_open"
        )
    dtype = getattr(_core, NAMES[entry.kind])
    if entry.begin == entry.end:
        return _core.full(entry.shape, 0, dtype=dtype, device="cpu")
    raw = np.frombuffer(data, np.uint8, entry.end - entry.begin, start + entry.begin)
    # NumPy has no bfloat16: the elements come as whole numbers.
    array = raw.view(np.uint16 if dtype == _core.bfloat16 else dtype.numpy).reshape(entry.shape)
    if sys.byteorder == "big":
        array = array.byteswap()
    stored = _core.from_numpy(array)
    return stored if stored.dtype == dtype else stored.view(dtype)


def _device(device: Any) -> Any:
    """A device, which PyTorch's users name by its number too."""
    return _core.device(f"gpu:{device}" if type(device) is int else str(device))


class _Slice:
    """A tensor in a file, of which `[...]` reads a part."""

    def __init__(self, tensor: Callable[[], Tensor], entry: Entry, device: Any) -> None:
        self._tensor, self._entry, self._device = tensor, entry, device

    def get_shape(self) -> list[int]:
        """Returns the lengths of the axes."""
        return list(self._entry.shape)

    def get_dtype(self) -> str:
        """Returns the name of the dtype in the file, such as "F32"."""
        return self._entry.kind

    def __getitem__(self, key: Any) -> Tensor:
        return placed(self._tensor()[key], self._device)


class safe_open:
    """Opens a safetensors file, of which tensors are read one by one.

    The file is mapped into memory: a tensor on the CPU is a view of it, and takes memory of its own for what
    is written to it, which the file does not see. It stays valid when the file is closed, deleted or replaced
    by another; only a program that shortens the file itself takes it away. A tensor that other programs
    placed in the file unaligned is copied, and so is one that is read to a GPU.

    Args:
        filename: the path of a file.
        framework: "pt", as for PyTorch, or "wengert".
        device: where the tensors are to lie: a name, or the number of a GPU. Integers that a GPU lacks become
            int32 there, and those without axes stay on the CPU, as by `Module.to`.

    Raises:
        SafetensorError: the file is no safetensors file, is cut off or says what cannot be true; nothing of
            it is read.
        ValueError: for another framework, and if the file is used after it was closed.

    Example:
        >>> wg.safetensors.save_file({"a": wg.eye(3), "b": wg.zeros(2)}, "model.safetensors", {"format": "pt"})
        >>> with wg.safetensors.safe_open("model.safetensors", framework="pt", device="cpu") as f:
        ...     print(f.keys(), f.metadata(), f.get_slice("a")[1:, 1].tolist())
        ['a', 'b'] {'format': 'pt'} [1.0, 0.0]
    """

    def __init__(self, filename: str | os.PathLike[str], framework: str = "pt", device: Any = "cpu") -> None:
        if framework not in _FRAMEWORKS:
            raise ValueError(
                f"safe_open: framework is one of {', '.join(map(repr, _FRAMEWORKS))}, got {framework!r}; for "
                "arrays of NumPy call .numpy() of the tensors"
            )
        self._device = _device(device)
        self._name = os.fspath(filename)
        self._data: mmap.mmap | None = None
        with open(filename, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < 8:
                raise SafetensorError(f"safetensors: a file of {size} bytes is too short to be one")
            data = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
        self._header: Header = read_header(data)
        self._data = data

    def __enter__(self) -> "safe_open":
        return self

    def __exit__(self, *_: object) -> None:
        self._data = None  # tensors keep the memory that they lie in

    def _entry(self, name: str) -> Entry:
        try:
            return self._header.entries[name]
        except KeyError:
            raise SafetensorError(f"safetensors: {self._name} has no tensor {name!r}") from None

    def _read(self, name: str) -> Tensor:
        """A tensor as it lies in the file."""
        if self._data is None:
            raise ValueError(f"safe_open: {self._name} is closed")
        return _tensor(self._data, self._header.start, name, self._entry(name))

    def keys(self) -> list[str]:
        """Returns the names of the tensors, sorted."""
        return sorted(self._header.entries)

    def offset_keys(self) -> list[str]:
        """Returns the names of the tensors in the order in which they lie in the file."""
        return list(self._header.entries)

    def metadata(self) -> dict[str, str] | None:
        """Returns the texts that were saved beside the tensors; None if the file has none."""
        return self._header.metadata

    def get_tensor(self, name: str) -> Tensor:
        """Returns a tensor.

        Raises:
            SafetensorError: the file has none of this name.
            TypeError: the dtype exists in files only, as those of 8 bits do.
        """
        return placed(self._read(name), self._device)

    def get_tensors(self) -> dict[str, Tensor]:
        """Returns all tensors by name."""
        return {name: self.get_tensor(name) for name in self.offset_keys()}

    def get_slice(self, name: str) -> _Slice:
        """Returns what `[...]` reads a part of a tensor from; `get_shape()` and `get_dtype()` tell what it
        is."""
        return _Slice(lambda: self._read(name), self._entry(name), self._device)


def load_file(filename: str | os.PathLike[str], device: Any = "cpu") -> dict[str, Tensor]:
    """Reads the tensors of a safetensors file.

    Those on the CPU lie in the file, which is mapped into memory: reading takes no time until they are used,
    and a write to one does not reach the file. On a GPU they are moved one by one. See `safe_open`.

    Args:
        filename: the path of a file.
        device: where the tensors are to lie: a name, or the number of a GPU.

    Raises:
        SafetensorError: the file is no safetensors file, is cut off or says what cannot be true; nothing of
            it is read.
        TypeError: a tensor has a dtype that exists in files only; read the others by `safe_open`.

    Example:
        >>> wg.safetensors.save_file({"a": wg.arange(3)}, "model.safetensors")
        >>> wg.safetensors.load_file("model.safetensors")
        {'a': tensor([0, 1, 2])}
    """
    with safe_open(filename, "pt", device) as file:
        return file.get_tensors()


def load(data: bytes) -> dict[str, Tensor]:
    """Reads the tensors of a safetensors file whose bytes are given, which are copied.

    Raises:
        SafetensorError: the bytes are no safetensors file, are cut off or say what cannot be true; nothing is
            read.
        TypeError: for what is not bytes, and if a tensor has a dtype that exists in files only.

    Example:
        >>> wg.safetensors.load(wg.safetensors.save({"a": wg.arange(3)}))
        {'a': tensor([0, 1, 2])}
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(
            f"safetensors.load: the bytes of a file expected, got {type(data).__name__}; load_file takes a "
            f"path"
        )
    view = memoryview(data).cast("B").toreadonly()
    header = read_header(view)
    return {name: _tensor(view, header.start, name, entry) for name, entry in header.entries.items()}
