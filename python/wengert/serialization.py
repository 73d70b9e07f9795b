"""Files of tensors: `wengert.save` and `wengert.load`.

A file is an uncompressed zip archive: `data.pkl` holds the object, pickled, with a reference in place of each
tensor, and `tensors/0`, `tensors/1`, ... hold the elements of one tensor each, in row-major order, little-endian.
Tensors that are the same object, or that share all their memory, are stored once and share it again when loaded.
Loading only accepts plain data unless told otherwise: a pickle from elsewhere can run any code.
"""

import contextlib
import datetime
import io
import math
import os
import pickle
import sys
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from typing import Any, BinaryIO, ClassVar

import numpy as np

from wengert import _core
from wengert._core import Tensor
from wengert._places import placed
from wengert._results import Along, Size

__all__ = ["load", "save"]

#: From a tensor on the CPU, and the device that it was saved on, to the tensor where it is to lie.
_Move = Callable[[Tensor, Any], Tensor]
_KIND = "wengert.tensor"
# Kinds of NumPy's dtypes that tensors have too.
_NUMBERS = "biufc"
_FORMAT = "1"
# Containers in containers that `load` follows; `save` itself ends at Python's limit of recursion.
_DEPTH = 1000


def _array_of(tensor: Tensor) -> Any:
    """A NumPy array, saved as the tensor of its elements."""
    return tensor.numpy().copy()


def _number_of(tensor: Tensor) -> Any:
    """A number of a NumPy type, saved as a tensor."""
    return tensor.numpy()[()]


# What a file may name beyond tensors, numbers, strings and containers, which need no name.
_SAFE: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("builtins", "complex"): complex,
    ("builtins", "slice"): slice,
    ("builtins", "bytearray"): bytearray,
    ("builtins", "range"): range,
    ("collections", "Counter"): Counter,
    ("collections", "defaultdict"): defaultdict,
    **{("builtins", kind.__name__): kind for kind in (bool, dict, float, int, list, str, tuple)},
    **{
        ("datetime", kind.__name__): kind
        for kind in (datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone)
    },
    ("wengert._results", "Along"): Along,
    ("wengert._results", "Size"): Size,
    (__name__, "_array_of"): _array_of,
    (__name__, "_number_of"): _number_of,
}


# What of this a file may call; the others are values. Nothing here makes more than it is given.
_CALLED = {
    OrderedDict,
    Counter,
    defaultdict,
    complex,
    slice,
    range,
    bytearray,
    Along,
    Size,
    _array_of,
    _number_of,
}
_CALLED |= {kind for (module, _), kind in _SAFE.items() if module == "datetime"}


def _where(tensor: Tensor) -> tuple[Any, ...] | None:
    """What two tensors have in common that share all their memory; None where that cannot be told."""
    try:
        address = tensor.data_ptr()
    except TypeError:
        raise TypeError(
            "save: a tensor inside vmap or jvp stands for many values at once; save outside of the transformed function"
        ) from None
    if address == 0 or tensor.numel() == 0:
        return None
    return address, tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype.name, str(tensor.device)


class _Writer(pickle.Pickler):
    """Replaces tensors by references, and collects them."""

    def __init__(self, file: Any) -> None:
        super().__init__(file, protocol=4)
        self.objects: dict[int, int] = {}
        self.places: dict[tuple[Any, ...], int] = {}
        # Kept alive until the file is written, so that no address is used twice.
        self.kept: list[Tensor] = []
        self.stored: list[Tensor] = []

    def persistent_id(self, obj: Any) -> Any:
        """The reference of a tensor; None for anything else."""
        if not isinstance(obj, Tensor):
            return None
        number = self.objects.setdefault(id(obj), len(self.objects))
        if number == len(self.kept):
            self.kept.append(obj)
        from wengert.nn import Parameter

        return _KIND, number, self._store(obj), isinstance(obj, Parameter), obj.requires_grad and obj.is_leaf

    def reducer_override(self, obj: Any) -> Any:
        """NumPy's arrays and numbers as tensors."""
        kind = type(obj)
        if (
            kind.__module__ == "numpy"
            and hasattr(obj, "dtype")
            and getattr(obj.dtype, "kind", "") in _NUMBERS
        ):
            is_array = isinstance(obj, np.ndarray)
            with contextlib.suppress(TypeError, ValueError):
                return (_array_of if is_array else _number_of), (_core.tensor(np.asarray(obj)),)
        return NotImplemented

    def _store(self, tensor: Tensor) -> tuple[int, tuple[int, ...], str, str]:
        key = _where(tensor) or (id(tensor),)
        place = self.places.setdefault(key, len(self.stored))
        if place == len(self.stored):
            self.stored.append(tensor.detach())
        return place, tuple(tensor.shape), tensor.dtype.name, str(tensor.device)


def save(obj: Any, f: str | os.PathLike[str] | BinaryIO) -> None:
    """Writes an object and the tensors in it to a file: state dicts, or any other object that pickles.

    Args:
        obj: tensors, NumPy arrays, numbers, strings, dates, and containers of them. Of a module save the
            `state_dict()`. Other objects, modules among them, are pickled; `load` refuses them unless it is
            called with `weights_only=False`.
        f: a path, or a file opened for binary writing.

    Tensors keep dtype, device, sharing and whether they are a `Parameter` or require a gradient; they lose
    their history and their `.grad`.

    Raises:
        TypeError: for another `f`, and for a tensor inside `vmap` or `jvp`.
        pickle.PicklingError, AttributeError: for an object that Python cannot pickle, such as a function
            without a name.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> wg.save({"weight": wg.ones(2), "step": 3}, file)
        >>> _ = file.seek(0)
        >>> wg.load(file)
        {'weight': tensor([1., 1.]), 'step': 3}
    """
    import zipfile

    given: Any = f
    if not isinstance(f, (str, os.PathLike)) and (
        not hasattr(f, "write") or isinstance(given, io.TextIOBase)
    ):
        raise TypeError(
            f"save: a path or a file opened for binary writing, as by open(path, 'wb'), expected, got "
            f"{type(f).__name__}"
        )
    pickled = io.BytesIO()
    writer = _Writer(pickled)
    writer.dump(obj)
    with _written(f) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("wengert", _FORMAT)
        archive.writestr("data.pkl", pickled.getvalue())
        for number, tensor in enumerate(writer.stored):
            data = tensor.cpu().__reduce__()[1][1][0]
            archive.writestr(f"tensors/{number}", _little(data, tensor.itemsize))


@contextlib.contextmanager
def _written(f: str | os.PathLike[str] | BinaryIO) -> Iterator[BinaryIO]:
    """An open file. A path is written beside, and gets its name when all is there: what had the name before stays whole
    until then, and where writing fails.
    """
    if not isinstance(f, (str, os.PathLike)):
        yield f
        return
    path = os.path.realpath(f)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:  # a pipe, a device
            yield file
        return
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "wb") as file:
            yield file
        if os.path.exists(path):
            os.chmod(part, os.stat(path).st_mode & 0o7777)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(part)
        raise


def _little(data: bytes, itemsize: int) -> bytes:
    """Elements of the host's byte order as little-endian, or back."""
    if sys.byteorder == "little" or itemsize == 1:
        return data
    return np.frombuffer(data, f"V{itemsize}").view(f"u{itemsize}").byteswap().tobytes()


class _Tensors:
    """Resolves references to tensors."""

    def __init__(self, archive: Any, move: _Move) -> None:
        self.archive, self.move = archive, move
        self.objects: dict[int, Tensor] = {}
        self.stored: dict[int, Tensor] = {}

    def persistent_load(self, pid: Any) -> Any:
        """The tensor of a reference."""
        try:
            kind, number, (place, shape, dtype, device), parameter, requires_grad = pid
        except (TypeError, ValueError):
            kind = None
        if kind != _KIND:
            raise pickle.UnpicklingError(f"load: {pid!r} is no reference to a tensor; the file is damaged")
        if number not in self.objects:
            stored = self._stored(place, shape, dtype, device)
            self.objects[number] = _as_saved(stored, parameter, requires_grad)
        return self.objects[number]

    def _stored(self, place: int, shape: tuple[int, ...], dtype: str, device: Any) -> Tensor:
        if place not in self.stored:
            kind = getattr(_core, dtype, None) if isinstance(dtype, str) else None
            whole = isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)
            if not isinstance(kind, _core.dtype) or not whole:
                raise pickle.UnpicklingError(
                    f"load: no tensor has the dtype {dtype!r} and the shape {shape!r}"
                )
            expected = math.prod(shape) * kind.itemsize
            try:
                data = _member(self.archive, f"tensors/{place}", expected)
            except KeyError:
                raise pickle.UnpicklingError(f"load: tensor {place} is missing in the file") from None
            tensor = _core._rebuild(Tensor, (_little(data, kind.itemsize), list(shape), dtype), False)
            self.stored[place] = self.move(tensor, device)
        return self.stored[place]


class _Trusting(pickle.Unpickler):
    """Runs what the file says."""

    def __init__(self, file: Any, tensors: _Tensors, _: int) -> None:
        super().__init__(file)
        self.persistent_load = tensors.persistent_load  # type: ignore[method-assign]


# Python's own, whose steps can be looked at; the one in C runs them unseen.
class _Checking(pickle._Unpickler):
    """Refuses names that are not plain data, calls that make more than the file holds, and keys that take long to
    hash.
    """

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(pickle._Unpickler.dispatch)
    stack: list[Any]
    append: Callable[[Any], None]
    pop_mark: Callable[[], list[Any]]

    def __init__(self, file: Any, tensors: _Tensors, size: int) -> None:
        super().__init__(file)
        self.persistent_load = tensors.persistent_load  # type: ignore[method-assign]
        # How many elements and bytes calls may copy: as many as the file has bytes.
        self.left = size

    def find_class(self, module: str, name: str) -> Any:
        """What a name in the file stands for."""
        if (module, name) in _SAFE:
            return _SAFE[module, name]
        if module.split(".")[0] == "wengert":
            found = getattr(_core, name, None)
            if isinstance(found, _core.dtype) or found is _core.device:
                return found
            found = getattr(sys.modules.get(module), name, None)
            if isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields"):
                return found
        raise pickle.UnpicklingError(
            f"load: the file names {module}.{name}, which is not plain data; if you trust whoever wrote the "
            "file, load it with weights_only=False, which runs what it says"
        )

    def call(self, function: Any, args: tuple[Any, ...]) -> Any:
        """What a call in the file returns."""
        is_result = (
            isinstance(function, type) and issubclass(function, tuple) and hasattr(function, "_fields")
        )
        if not is_result and (not callable(function) or function not in _CALLED | {_core.device}):
            raise pickle.UnpicklingError(f"load: the file calls {function!r}, which `save` never does")
        if function is bytearray and args and not isinstance(args[0], (bytes, str)):
            raise pickle.UnpicklingError(f"load: a bytearray of {args[0]!r} is named, not of bytes")
        if function is Counter and args and not isinstance(args[0], dict):
            raise pickle.UnpicklingError("load: a Counter of what is no dictionary")
        for x in args if function is not range else ():
            self.left -= x.nbytes if isinstance(x, Tensor) else len(x) if isinstance(x, Sized) else 0
        if self.left < 0:
            raise pickle.UnpicklingError("load: the file copies more than it holds")
        return function(*args)

    def load_reduce(self) -> None:
        args = self.stack.pop()
        self.stack[-1] = self.call(self.stack[-1], args)

    def load_newobj(self) -> None:
        args = self.stack.pop()
        kind = self.stack[-1]
        if kind not in _CALLED and not (isinstance(kind, type) and issubclass(kind, tuple)):
            raise pickle.UnpicklingError(f"load: the file makes {kind!r}, which `save` never does")
        self.stack[-1] = kind.__new__(kind, *args)

    def refuse(self) -> None:
        raise pickle.UnpicklingError("load: the file has a step that `save` never takes")

    def check_keys(self, keys: Iterable[Any]) -> None:
        """Raises for keys that are nested deep: each level may double what hashing them takes."""
        for key in keys:
            if isinstance(key, (tuple, frozenset)) and _depth(key, _KEY_DEPTH) > _KEY_DEPTH:
                raise pickle.UnpicklingError(f"load: a key is nested more than {_KEY_DEPTH} deep")

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.check_keys([key])
        self.stack[-1][key] = value

    def load_setitems(self) -> None:
        items = self.pop_mark()
        self.check_keys(items[::2])
        for key, value in zip(items[::2], items[1::2]):
            self.stack[-1][key] = value

    def load_dict(self) -> None:
        items = self.pop_mark()
        self.check_keys(items[::2])
        self.append(dict(zip(items[::2], items[1::2])))

    def load_additems(self) -> None:
        items = self.pop_mark()
        self.check_keys(items)
        self.stack[-1].update(items)

    def load_frozenset(self) -> None:
        items = self.pop_mark()
        self.check_keys(items)
        self.append(frozenset(items))


for _name in ("reduce", "newobj", "setitem", "setitems", "dict", "additems", "frozenset"):
    _Checking.dispatch[getattr(pickle, _name.upper())[0]] = getattr(_Checking, f"load_{_name}")
for _name in ("NEWOBJ_EX", "INST", "OBJ", "EXT1", "EXT2", "EXT4"):
    _Checking.dispatch[getattr(pickle, _name)[0]] = _Checking.refuse


# Tuples in tuples that a key may be.
_KEY_DEPTH = 8


def _depth(key: Any, most: int) -> int:
    """How deep a key is nested, as far as one level more than `most`."""
    if not isinstance(key, (tuple, frozenset)):
        return 0
    parts = {
        id(part): part for part in key
    }.values()  # each once: shared parts would be walked again and again
    return 1 if most < 0 else 1 + max((_depth(part, most - 1) for part in parts), default=0)


def _member(archive: Any, name: str, expected: int | None = None) -> bytes:
    """A part of the file, whose length is looked at before anything is read."""
    info = archive.getinfo(name)
    if info.compress_type != 0 or info.file_size != info.compress_size:
        raise pickle.UnpicklingError(f"load: {name} is compressed, which save never does")
    if expected is not None and info.file_size != expected:
        raise pickle.UnpicklingError(f"load: {name} has {info.file_size} bytes, and its tensor {expected}")
    data: bytes = archive.read(name)
    return data


# Steps of a pickle that add to the container below what they take from the stack.
_FILL = {"APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS", "BUILD"}


def _check_pickle(data: bytes) -> None:
    """Raises for a pickle that would take memory or depth out of all proportion to its length."""
    import pickletools

    # How deep each object on the stack, and each that is noted, goes; None is a mark.
    stack: list[int | None] = []
    notes: dict[int, int | None] = {}
    for count, (code, argument, _) in enumerate(pickletools.genops(data)):
        name = code.name
        if name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            place = len(notes) if name == "MEMOIZE" else int(argument or 0)
            if place > count:
                raise pickle.UnpicklingError(f"load: place {place} of the memo is used after {count} steps")
            notes[place] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(notes.get(int(argument or 0), 0))
        elif name == "MARK":
            stack.append(None)
        elif name == "DUP":
            stack.append(stack[-1])
        else:
            _step(stack, name, code)
            if stack and (stack[-1] or 0) > _DEPTH:
                raise pickle.UnpicklingError(f"load: containers are nested more than {_DEPTH} deep")


def _step(stack: list[int | None], name: str, code: Any) -> None:
    """Replaces what a step of a pickle takes from the stack by what it leaves there."""
    taken: list[int | None] = []
    kinds = [kind.name for kind in code.stack_before]
    if "mark" in kinds:
        while (top := stack.pop()) is not None:
            taken.append(top)
        kinds = kinds[: kinds.index("mark")]
    taken += [stack.pop() for _ in kinds]
    depths = [depth or 0 for depth in taken]
    if name in _FILL:
        deepest = max(depths[-1], max(depths[:-1], default=-1) + 1)
    else:
        deepest = max(depths, default=-1) + 1
    stack += [deepest] * len(code.stack_after)


class _Stopped(Exception):
    """Carries the error of a function `map_location` past those that a damaged file raises."""


def _mapping(map_location: Any) -> _Move:
    """Where `map_location` puts a tensor that lies on the CPU, and was saved on a device."""
    if map_location is None:
        return _moved
    if isinstance(map_location, Mapping):
        places = [(saved, _core.device(device)) for saved, device in map_location.items()]
        return lambda tensor, saved: _moved(
            tensor, next((device for key, device in places if key == _core.device(saved)), saved)
        )
    if callable(map_location):
        return lambda tensor, saved: _moved_by(map_location, tensor, saved)
    device = _core.device(str(map_location))
    return lambda tensor, _: _moved(tensor, device)


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
                f"load: map_location(tensor, device) returns the tensor itself, moved; got the shape {out.shape} for "
                f"{tensor.shape}"
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
            f"load: a tensor was saved on '{device}', which is not available here ({error}); load it elsewhere "
            "with map_location='cpu'"
        ) from None


def _as_saved(stored: Tensor, parameter: bool, requires_grad: bool) -> Tensor:
    if parameter:
        from wengert.nn import Parameter

        return Parameter(stored, requires_grad)
    tensor = stored.detach()
    return tensor.requires_grad_() if requires_grad else tensor


def load(f: str | os.PathLike[str] | BinaryIO, map_location: Any = None, weights_only: bool = True) -> Any:
    """Reads what `save` wrote.

    Args:
        f: a path, or a file opened for binary reading.
        map_location: the device that all tensors go to, as by `Module.to`; or a dictionary from the devices
            that tensors were saved on to those that they go to; or a function `(tensor, device)` of a tensor
            on the CPU and the name of the device that it was saved on, which returns the tensor moved, or
            None. By default each tensor goes to the device that it was saved on; so do those that the
            dictionary does not name, and those for which the function returns None.
        weights_only: accept only tensors, arrays, numbers, strings, dates and containers of them. False
            unpickles anything, which may run code from the file: use it only for files that you trust.

    Returns:
        The object that was saved.

    Raises:
        pickle.UnpicklingError: if the file is not one of `save`'s, is damaged, or holds more than plain data.
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

    # What trusted pickles name is looked up in the program, which may lack it.
    passed: tuple[type[Exception], ...] = (pickle.UnpicklingError, _core.DeviceError, MemoryError)
    if trusted:
        passed += (ImportError, AttributeError)
    try:
        with zipfile.ZipFile(file) as archive:
            if _member(archive, "wengert") != _FORMAT.encode():
                raise pickle.UnpicklingError("load: the file is of a later format; update wengert")
            data = _member(archive, "data.pkl")
            if not trusted:
                _check_pickle(data)
            size = len(data) + sum(info.file_size for info in archive.infolist())
            reader = _Trusting if trusted else _Checking
            return reader(io.BytesIO(data), _Tensors(archive, move), size).load()
    except _Stopped as stopped:
        raise stopped.args[0] from stopped.args[0].__cause__
    except passed:
        raise
    except Exception as error:
        raise pickle.UnpicklingError(
            f"load: {_origin(file) or 'not a file that wengert.save wrote, or a damaged one'} "
            f"({type(error).__name__}: {error})"
        ) from error


# What files of `torch.save` began with before they were archives: a pickle of its magic number.
_TORCH = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."


def _origin(file: BinaryIO) -> str | None:
    """What wrote a file that is not one of `save`'s, and what reads it; None if it is unknown."""
    import zipfile

    try:
        file.seek(0)
        head, names = file.read(16), []
        if zipfile.is_zipfile(file):
            names = zipfile.ZipFile(file).namelist()
    except Exception:
        return None
    if head.startswith(_TORCH) or any(name.endswith("/data.pkl") for name in names):
        return "a file of torch.save; read it with torch.load, and hand its tensors over as arrays, x.numpy()"
    if head.startswith(b"\x93NUMPY") or any(name.endswith(".npy") for name in names):
        return "a file of numpy.save or numpy.savez; read it with numpy.load"
    if head.startswith(b"\x80"):
        return "a plain pickle; read it with pickle.load, if you trust it"
    return None
