"""Files of `torch.save`, both of its formats, read without PyTorch and without running what they say.

The archives of today hold `NAME/data.pkl`, a pickle, and the bytes of each storage in `NAME/data/KEY`. Before
1.6 a file was a row of pickles, a magic number first, with the storages behind the object that is made of
them.
"""

import contextlib
import io
import math
import pickle
from collections.abc import Callable
from typing import Any, BinaryIO, ClassVar

from wengert import _core
from wengert._core import Tensor
from wengert.serialization.checking import Checking, Trusting, check_pickle, is_bytes, shown
from wengert.serialization.plain_data import little, with_attributes

__all__ = ["MAGIC", "is_archive", "read_archive", "read_row"]

#: The beginning of a file of before 1.6: its magic number, pickled.
MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_VERSION = 1001

_STORAGES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
    "UntypedStorage": "uint8",
}
_DTYPES = {
    **{name: name for name in _STORAGES.values()},
    **{name: name for name in ("uint16", "uint32", "uint64")},
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
}


class _Device(str):
    """The name of a device, as PyTorch calls it."""

    __slots__ = ()

    def __new__(cls, kind: str, index: int | None = None) -> "_Device":
        """`device("cuda", 0)` is `"cuda:0"`."""
        if not isinstance(kind, str) or not (index is None or type(index) is int):
            raise pickle.UnpicklingError(f"load: a device is named by {shown(kind)}")
        return super().__new__(cls, kind if index is None else f"{kind}:{index}")


def _tensor(
    storage: Tensor,
    offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool,
    hooks: Any = None,
    metadata: Any = None,
) -> Tensor:
    """A view of a storage; a copy where its numbers are said to be conjugate, or negative."""
    if not isinstance(storage, Tensor) or not all(
        type(n) is int and n >= 0 for n in (offset, *size, *stride)
    ):
        raise pickle.UnpicklingError("load: a tensor is made of what is no storage, or of no whole numbers")
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if math.prod(size) and last >= storage.numel():
        raise pickle.UnpicklingError(
            f"load: a tensor of shape {tuple(size)} ends behind its storage of {storage.numel()} elements"
        )
    if math.prod(n for n, step in zip(size, stride) if step) > storage.numel():
        raise pickle.UnpicklingError(f"load: a tensor of shape {tuple(size)} overlaps itself")
    out = storage.as_strided(size, stride, offset).detach()
    for name, applies in (metadata or {}).items():
        if name not in ("conj", "neg") or not isinstance(applies, bool):
            raise pickle.UnpicklingError(f"load: an unknown property of a tensor, {shown(name)}")
        if applies:
            out = out.conj().clone() if name == "conj" else -out
    return out.requires_grad_() if requires_grad else out


def _tensor_of_dtype(
    storage: Tensor,
    offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool,
    hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    """A view of a storage of bytes as another dtype."""
    if not isinstance(dtype, _core.dtype) or not isinstance(storage, Tensor):
        raise pickle.UnpicklingError("load: a tensor is made of what is no storage, or has no dtype")
    whole = _from_bytes(storage.cpu().numpy().tobytes(), dtype)
    return _tensor(whole.to(storage.device), offset, size, stride, requires_grad, hooks, metadata)


def _parameter(data: Tensor, requires_grad: bool, hooks: Any = None, state: Any = None) -> Tensor:
    from wengert.nn import Parameter

    if not isinstance(data, Tensor):
        raise pickle.UnpicklingError(f"load: a parameter is made of {shown(data)}")
    return _with_state(Parameter(data, requires_grad), state)


def _with_state(tensor: Tensor, state: Any) -> Tensor:
    """The tensor with the attributes of a state: a dictionary, or a pair of one and of what lies in slots."""
    for attributes in state if isinstance(state, tuple) else (state,):
        if attributes is not None:
            with_attributes(tensor, attributes)
    return tensor


def _of_type(make: Any, kind: Any, args: tuple[Any, ...], state: Any) -> Tensor:
    """A tensor with attributes."""
    if not any(make is known for known in (_tensor, _tensor_of_dtype)) or not isinstance(args, tuple):
        raise pickle.UnpicklingError(f"load: a tensor is made by {shown(make)}")
    if kind is not Tensor:
        raise pickle.UnpicklingError(f"load: a tensor is of the class {shown(kind)}")
    return _with_state(make(*args), state)


def _encoded(text: str, encoding: str) -> bytes:
    """Bytes, which the protocol of PyTorch's files has as a text."""
    if not is_bytes((text, encoding)):
        raise pickle.UnpicklingError(f"load: bytes are made of {shown(text)} by {shown(encoding)}")
    return text.encode("latin-1")


def _no_bytes() -> bytes:
    """`b""`."""
    return b""


def _size(lengths: Any = ()) -> tuple[int, ...]:
    """A shape."""
    if not isinstance(lengths, (tuple, list)):
        raise pickle.UnpicklingError(f"load: a shape is made of {shown(lengths)}")
    return tuple(lengths)


def _from_bytes(data: bytes, dtype: Any, is_little: bool = True) -> Tensor:
    """A vector of the numbers that lie in these bytes."""
    count = len(data) // dtype.itemsize
    data = little(data, dtype.itemsize, "little" if is_little else "big")
    tensor: Tensor = _core._rebuild(Tensor, (data[: count * dtype.itemsize], [count], dtype.name), False)
    return tensor


_FUNCTIONS: dict[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_tensor"): lambda storage, offset, size, stride: _tensor(
        storage, offset, size, stride, False
    ),
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_tensor_v3"): _tensor_of_dtype,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _parameter,
    ("torch._tensor", "_rebuild_from_type_v2"): _of_type,
    ("torch", "Size"): _size,
    ("torch", "device"): _Device,
}
# Bytes, in the words of a protocol that has none.
_BYTES: dict[tuple[str, str], Any] = {("_codecs", "encode"): _encoded, ("builtins", "bytes"): _no_bytes}
# What Python 2 called them: PyTorch's files have its names.
_OLD = {"long": "int", "unicode": "str", "xrange": "range"}


def _named(module: str, name: str) -> Any:
    """What a name of PyTorch's stands for; None if it has no meaning here."""
    if (module, name) in _FUNCTIONS:
        return _FUNCTIONS[module, name]
    if module in ("torch", "torch.storage") and name in _STORAGES:
        return getattr(_core, _STORAGES[name])
    if module == "torch" and name in _DTYPES:
        return getattr(_core, _DTYPES[name])
    if (module, name) == ("torch", "Tensor"):
        return Tensor
    return _parameter if (module, name) == ("torch.nn.parameter", "Parameter") else None


class _Reading(Checking):
    """Knows the names in PyTorch's files."""

    def find_class(self, module: str, name: str) -> Any:
        """What a name in the file stands for."""
        if module == "__builtin__":
            module, name = "builtins", _OLD.get(name, name)
        found = _BYTES.get((module, name)) or _named(module, name)
        return super().find_class(module, name) if found is None else found

    def call(self, function: Any, args: tuple[Any, ...]) -> Any:
        """What a call in the file returns."""
        if any(function is known for known in (*_FUNCTIONS.values(), *_BYTES.values())):
            make, given = (args[0], args[2]) if function is _of_type and len(args) == 4 else (function, args)
            # A shape, a text and the numbers of a storage of bytes are copied, and those of conjugate views.
            copies = any(make is known for known in (_size, _encoded, _tensor_of_dtype))
            copies = copies or (make is _tensor and any(given[6:]))
            self.spend(given[:1] if copies else ())
            return function(*args)
        if function in (set, frozenset) and all(isinstance(part, (list, tuple)) for part in args):
            # A step of its own in later protocols of pickle.
            self.spend(args)
            for part in args:
                self.check_keys(part)
            return function(*args)
        return super().call(function, args)


class _Trusting(Trusting):
    """Knows the names of PyTorch, and runs the rest of what the file says."""

    def find_class(self, module: str, name: str) -> Any:
        """What a name in the file stands for."""
        found = _named(module, name)
        return super().find_class(module, name) if found is None else found


def _read(data: bytes, storages: Callable[[Any], Any], size: int, trusted: bool) -> Any:
    """What a pickle says."""
    if trusted:
        return _Trusting(io.BytesIO(data), storages).load()
    check_pickle(data)
    return _Reading(io.BytesIO(data), storages, size).load()


def _storage(pid: Any) -> tuple[Any, str, str, int]:
    """The dtype, key, device and number of elements in a reference to a storage."""
    if isinstance(pid, tuple) and pid[:1] == ("module",):
        raise pickle.UnpicklingError(
            "load: the file holds a whole module of PyTorch, which is not plain data; save its state_dict() "
            "there"
        )
    try:
        kind, dtype, key, location, numel, *_ = pid
    except (TypeError, ValueError):
        kind = None
    named = isinstance(key, (str, int)) and isinstance(location, str) if kind == "storage" else False
    if not named or not isinstance(dtype, _core.dtype) or type(numel) is not int or numel < 0:
        raise pickle.UnpicklingError(f"load: {shown(pid)} is no reference to a storage; the file is damaged")
    return dtype, str(key), location, numel


def is_archive(names: list[str]) -> bool:
    """Tells whether an archive with these members is one of `torch.save`."""
    return any(name.count("/") == 1 and name.endswith("/data.pkl") for name in names)


def read_archive(
    archive: Any, member: Callable[..., bytes], move: Callable[[Tensor, Any], Tensor], trusted: bool
) -> Any:
    """Reads an archive of PyTorch 1.6 or later; `member` reads a part of it."""
    root = next(name for name in archive.namelist() if is_archive([name])).removesuffix("data.pkl")
    data = member(archive, f"{root}data.pkl")
    is_little = True
    with contextlib.suppress(KeyError):
        is_little = member(archive, f"{root}byteorder") != b"big"
    storages: dict[str, Tensor] = {}

    def load(pid: Any) -> Tensor:
        dtype, key, location, numel = _storage(pid)
        if key not in storages:
            try:
                own = member(archive, f"{root}data/{key}", numel * dtype.itemsize)
            except KeyError:
                raise pickle.UnpicklingError(f"load: storage {key} is missing in the file") from None
            storages[key] = move(_from_bytes(own, dtype, is_little), location)
        return storages[key]

    size = len(data) + sum(info.file_size for info in archive.infolist())
    return _read(data, load, size, trusted)


class _Anything:
    """Stands for all that a pickle makes while only its references are looked at."""

    def append(self, _: Any) -> None:
        """Takes an element."""

    def extend(self, _: Any) -> None:
        """Takes elements."""


class _Referring(_Reading):
    """Collects the references to storages, and makes and calls nothing."""

    def find_class(self, module: str, name: str) -> Any:
        """What a name in the file stands for: a dtype, or anything."""
        found = _named(module, name)
        return found if isinstance(found, _core.dtype) else _Anything()

    def load_reduce(self) -> None:
        self.stack.pop()
        self.stack[-1] = _Anything()

    load_newobj = load_reduce

    def load_build(self) -> None:
        self.stack.pop()

    def load_setitem(self) -> None:
        del self.stack[-2:]

    def load_setitems(self) -> None:
        self.pop_mark()

    load_additems = load_setitems

    def load_dict(self) -> None:
        self.pop_mark()
        self.append(_Anything())

    load_frozenset = load_dict

    def load_newobj_ex(self) -> None:
        del self.stack[-3:]
        self.append(_Anything())

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(_Reading.dispatch)


for _step in (
    "reduce",
    "newobj",
    "newobj_ex",
    "build",
    "setitem",
    "setitems",
    "additems",
    "dict",
    "frozenset",
):
    _Referring.dispatch[getattr(pickle, _step.upper())[0]] = getattr(_Referring, f"load_{_step}")


def read_row(file: BinaryIO, move: Callable[[Tensor, Any], Tensor], trusted: bool) -> Any:
    """Reads a file of before PyTorch 1.6."""
    start = file.tell()
    size = file.seek(0, io.SEEK_END) - start
    file.seek(start + len(MAGIC))
    referred: dict[str, tuple[Any, str, int]] = {}
    storages: dict[str, Tensor] = {}

    def refer(pid: Any) -> None:
        dtype, key, location, numel = _storage(pid)
        referred[key] = dtype, location, numel

    part = lambda: _Reading(file, refer, size).load()
    if part() != _VERSION:
        raise pickle.UnpicklingError("load: an unknown version of PyTorch's format of before 1.6")
    about = part()
    is_little = not isinstance(about, dict) or bool(about.get("little_endian", True))
    place = file.tell()
    _Referring(file, refer, size).load()
    data_at = file.tell()
    for key in part():
        dtype, location, numel = referred.get(str(key), (None, "", -1))
        (count,) = _from_bytes(file.read(8), _core.int64, is_little).tolist()
        if dtype is None or count != numel:
            raise pickle.UnpicklingError(
                f"load: storage {key!r} of {count} elements is not the one referred to"
            )
        data = file.read(numel * dtype.itemsize)
        if len(data) < numel * dtype.itemsize:
            raise pickle.UnpicklingError(f"load: the file ends in storage {key!r}")
        storages[str(key)] = move(_from_bytes(data, dtype, is_little), location)
    file.seek(place)
    data = file.read(data_at - place)
    return _read(data, lambda pid: storages[_storage(pid)[1]], size, trusted)
