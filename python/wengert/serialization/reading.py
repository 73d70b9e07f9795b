"""Reading files: `wengert.load`."""

import io
import math
import os
import pickle
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from wengert import _core
from wengert._core import Tensor
from wengert._places import placed
from wengert.serialization.checking import Checking, Trusting, check_pickle, shown
from wengert.serialization.plain_data import FORMAT, KIND, little, with_attributes

__all__ = ["load"]

#: From a tensor on the CPU, and the device that it was saved on, to the tensor where it is to lie.
_Move = Callable[[Tensor, Any], Tensor]


class _Tensors:
    """Resolves references to tensors."""

    def __init__(self, archive: Any, move: _Move) -> None:
        self.archive, self.move = archive, move
        self.objects: dict[int, Tensor] = {}
        self.stored: dict[int, Tensor] = {}

    def persistent_load(self, pid: Any) -> Any:
        """The tensor of a reference."""
        try:
            kind, number, (place, shape, dtype, device), parameter, requires_grad, *attributes = pid
        except (TypeError, ValueError):
            kind = None
        if kind != KIND:
            raise pickle.UnpicklingError(
                f"load: {shown(pid)} is no reference to a tensor; the file is damaged"
            )
        if number not in self.objects:
            stored = self._stored(place, shape, dtype, device)
            self.objects[number] = _as_saved(stored, parameter, requires_grad)
        for named in attributes:
            with_attributes(self.objects[number], named)
        return self.objects[number]

    def _stored(self, place: int, shape: tuple[int, ...], dtype: str, device: Any) -> Tensor:
        if place not in self.stored:
            kind = getattr(_core, dtype, None) if isinstance(dtype, str) else None
            whole = isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)
            if not isinstance(kind, _core.dtype) or not whole:
                raise pickle.UnpicklingError(
                    f"load: no tensor has the dtype {shown(dtype)} and the shape "
                    f"{shape if whole else shown(shape)}"
                )
            expected = math.prod(shape) * kind.itemsize
            try:
                data = _member(self.archive, f"tensors/{place}", expected)
            except KeyError:
                raise pickle.UnpicklingError(f"load: tensor {place} is missing in the file") from None
            tensor = _core._rebuild(Tensor, (little(data, kind.itemsize), list(shape), dtype), False)
            self.stored[place] = self.move(tensor, device)
        return self.stored[place]


def _member(archive: Any, name: str, expected: int | None = None) -> bytes:
    """A part of the file, whose length is looked at before anything is read."""
    info = archive.getinfo(name)
    if info.compress_type != 0 or info.file_size != info.compress_size:
        raise pickle.UnpicklingError(f"load: {name} is compressed, which save never does")
    if expected is not None and info.file_size != expected:
        raise pickle.UnpicklingError(f"load: {name} has {info.file_size} bytes, and its tensor {expected}")
    data: bytes = archive.read(name)
    return data


class _Stopped(Exception):
    """Carries the error of a function `map_location` past those that a damaged file raises."""


def _mapping(map_location: Any) -> _Move:
    """Where `map_location` puts a tensor that lies on the CPU, and was saved on a device."""
    if map_location is None:
        return _moved
    if isinstance(map_location, Mapping):
        places = {_full(saved): _core.device(device) for saved, device in map_location.items()}
        return lambda tensor, saved: _moved(tensor, places.get(_full(saved), saved))
    if callable(map_location):
        return lambda tensor, saved: _moved_by(map_location, tensor, saved)
    device = _core.device(str(map_location))
    return lambda tensor, _: _moved(tensor, device)


def _full(device: Any) -> str:
    """The name of a device with its number."""
    name = str(device)
    return f"{name}:0" if name in ("gpu", "cuda") else name


def _moved_by(function: Callable[[Tensor, str], Tensor | None], tensor: Tensor, saved: str) -> Tensor:
    """The tensor where a function puts it; where it was saved, if the function gives None."""
    try:
        out = function(tensor, saved)
        if out is not None and not isinstance(out, Tensor):
            raise TypeError(
                f"load: map_location(tensor, device) returns the tensor or None, got {type(out).__name__}"
            )
        if out is not None and out.shape != tensor.shape:
            raise ValueError(
                f"load: map_location(tensor, device) returns the tensor itself, moved; got the shape "
                f"{out.shape} for {tensor.shape}"
            )
    except Exception as error:
        raise _Stopped(error) from None
    return _moved(tensor, saved) if out is None else out


def _moved(tensor: Tensor, device: Any) -> Tensor:
    if str(device) == "cpu":
        return tensor
    try:
        return placed(tensor, device)
    except _core.DeviceError as error:
        raise _core.DeviceError(
            f"load: a tensor was saved on '{device}', which is not available here ({error}); load it "
            "elsewhere with map_location='cpu'"
        ) from None


def _as_saved(stored: Tensor, parameter: bool, requires_grad: bool) -> Tensor:
    if parameter:
        from wengert.nn import Parameter

        return Parameter(stored, requires_grad)
    tensor = stored.detach()
    return tensor.requires_grad_() if requires_grad else tensor


def load(
    f: str | os.PathLike[str] | BinaryIO,
    map_location: Any = None,
    weights_only: bool = True,
    *,
    mmap: bool | None = None,
    encoding: str = "utf-8",
) -> Any:
    """Reads what `save` wrote, and files of `torch.save`, without PyTorch.

    Args:
        f: a path, or a file opened for binary reading.
        map_location: the device that all tensors go to, as by `Module.to`; or a dictionary from the devices
            that tensors were saved on to those that they go to; or a function `(tensor, device)` of a tensor
            on the CPU and the name of the device that it was saved on, which returns the tensor moved, or
            None. By default each tensor goes to the device that it was saved on; so do those that the
            dictionary does not name, and those for which the function returns None.
        weights_only: accept only tensors, arrays, numbers, strings, dates and containers of them. False
            unpickles anything, which may run code from the file: use it only for files that you trust.
        mmap, encoding: accepted, as PyTorch has them: files are read once, and strings of Python 2 are none
            of their data.

    Returns:
        The object that was saved.

    Raises:
        pickle.UnpicklingError: if the file is not one of `save`'s or `torch.save`'s, is damaged, or holds
            more than plain data.
        DeviceError: if a device is not there; give `map_location`.
        ValueError: for a `map_location` that names no device.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> wg.save(wg.ones(2), file)
        >>> _ = file.seek(0)
        >>> wg.load(file, map_location={"gpu:0": "cpu"})
        tensor([1., 1.])
    """
    move = _mapping(map_location)
    given: Any = f
    if not isinstance(f, (str, os.PathLike)) and (not hasattr(f, "seek") or isinstance(given, io.TextIOBase)):
        raise TypeError(
            f"load: a path or a file opened for binary reading, as by open(path, 'rb'), expected, got "
            f"{type(f).__name__}"
        )
    if not isinstance(f, (str, os.PathLike)):
        return _read(f, move, not weights_only)
    with open(f, "rb") as file:
        return _read(file, move, not weights_only)


def _read(file: BinaryIO, move: _Move, trusted: bool) -> Any:
    """What an open file holds."""
    import zipfile

    from wengert.serialization import pytorch

    # What trusted pickles name is looked up in the program, which may lack it.
    passed: tuple[type[Exception], ...] = (pickle.UnpicklingError, _core.DeviceError, MemoryError)
    if trusted:
        passed += (ImportError, AttributeError)
    try:
        if _begins_with(file, pytorch.MAGIC):
            return pytorch.read_row(file, _of_pytorch(move), trusted)
        file.seek(0, io.SEEK_END)
        length = file.tell()
        with zipfile.ZipFile(file) as archive:
            if sum(info.compress_size for info in archive.infolist()) > length:
                raise pickle.UnpicklingError("load: the parts of the file overlap")
            if pytorch.is_archive(archive.namelist()):
                return pytorch.read_archive(archive, _member, _of_pytorch(move), trusted)
            if _member(archive, "wengert") != FORMAT.encode():
                raise pickle.UnpicklingError("load: the file is of a later format; update wengert")
            data = _member(archive, "data.pkl")
            find = _Tensors(archive, move).persistent_load
            if trusted:
                return Trusting(io.BytesIO(data), find).load()
            check_pickle(data)
            size = len(data) + sum(info.file_size for info in archive.infolist())
            return Checking(io.BytesIO(data), find, size).load()
    except _Stopped as stopped:
        raise stopped.args[0] from stopped.args[0].__cause__
    except passed:
        raise
    except Exception as error:
        raise pickle.UnpicklingError(
            f"load: {_origin(file) or 'not a file of wengert.save or torch.save, or a damaged one'} "
            f"({type(error).__name__}: {error})"
        ) from error


def _of_pytorch(move: _Move) -> _Move:
    """The same for tensors of a device that may have no name here."""

    def moved(tensor: Tensor, saved: str) -> Tensor:
        try:
            return move(tensor, saved)
        except ValueError as error:
            raise _core.DeviceError(
                f"load: a tensor was saved on {saved[:40]!r} ({error}); load it elsewhere with "
                f"map_location='cpu'"
            ) from None

    return moved


def _begins_with(file: BinaryIO, start: bytes) -> bool:
    """Whether a file begins with these bytes; it is read from where it stands, afterwards too."""
    place = file.tell()
    found = file.read(len(start)) == start
    file.seek(place)
    return found


def _origin(file: BinaryIO) -> str | None:
    """What wrote a file that is not one of `save`'s, and what reads it; None if it is unknown."""
    import zipfile

    from wengert.serialization import pytorch

    try:
        file.seek(0)
        head, names = file.read(16), []
        if zipfile.is_zipfile(file):
            names = zipfile.ZipFile(file).namelist()
    except Exception:
        return None
    if head.startswith(pytorch.MAGIC) or pytorch.is_archive(names):
        return "a damaged file of torch.save"
    if head.startswith(b"\x93NUMPY") or any(name.endswith(".npy") for name in names):
        return "a file of numpy.save or numpy.savez; read it with numpy.load"
    if head.startswith(b"\x80"):
        return "a plain pickle; read it with pickle.load, if you trust it"
    if head[6:9] == b"\0\0{":
        return "a file of safetensors; read it with wengert.safetensors.load_file"
    return None
