"""Writing files: `wengert.save`."""

import contextlib
import io
import os
import pickle
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from wengert import _core
from wengert._core import Tensor
from wengert.serialization.plain_data import FORMAT, KIND, NUMBERS, _array_of, _number_of, little

__all__ = ["save", "written"]


def _where(tensor: Tensor) -> tuple[Any, ...] | None:
    """What two tensors have in common that share all their memory; None where that cannot be told."""
    try:
        address = tensor.data_ptr()
    except TypeError:
        raise TypeError(
            "save: a tensor inside vmap or jvp stands for many values at once; save outside of the "
            "transformed function"
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
        is_new = number == len(self.kept)
        if is_new:
            self.kept.append(obj)
        from wengert.nn import Parameter

        is_parameter = isinstance(obj, Parameter)
        found = KIND, number, self._store(obj), is_parameter, obj.requires_grad and obj.is_leaf
        # Once, for attributes may lead back to the parameter.
        return (*found, vars(obj)) if is_parameter and is_new and vars(obj) else found

    def reducer_override(self, obj: Any) -> Any:
        """NumPy's arrays and numbers as tensors."""
        kind = type(obj)
        if kind.__module__ == "numpy" and hasattr(obj, "dtype") and getattr(obj.dtype, "kind", "") in NUMBERS:
            is_array = isinstance(obj, np.ndarray)
            with contextlib.suppress(TypeError, ValueError):
                return (_array_of if is_array else _number_of), (_core.tensor(np.asarray(obj), device="cpu"),)
        return NotImplemented

    def _store(self, tensor: Tensor) -> tuple[int, tuple[int, ...], str, str]:
        key = _where(tensor) or (id(tensor),)
        place = self.places.setdefault(key, len(self.stored))
        if place == len(self.stored):
            self.stored.append(tensor.detach())
        index = tensor.device.index
        device = "cpu" if index is None else f"gpu:{index}"  # however this program calls it
        return place, tuple(tensor.shape), tensor.dtype.name, device


def save(
    obj: Any,
    f: str | os.PathLike[str] | BinaryIO,
    *,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Writes an object and the tensors in it to a file: state dicts, or any other object that pickles.

    Args:
        obj: tensors, NumPy arrays, numbers, strings, dates, generators, and containers of them. Of a module
            save the `state_dict()`. Other objects, modules among them, are pickled; `load` refuses them
            unless it is called with `weights_only=False`.
        f: a path, or a file opened for binary writing.
        pickle_protocol: accepted, as PyTorch has it: there is one format. So is
            `_use_new_zipfile_serialization`.

    Tensors keep dtype, device, sharing and whether they are a `Parameter`, with its attributes, or require a
    gradient; they lose their history and their `.grad`.

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
    with written(f) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("wengert", FORMAT)
        archive.writestr("data.pkl", pickled.getvalue())
        for number, tensor in enumerate(writer.stored):
            data = tensor.cpu().__reduce__()[1][1][0]
            archive.writestr(f"tensors/{number}", little(data, tensor.itemsize))


@contextlib.contextmanager
def written(f: str | os.PathLike[str] | BinaryIO) -> Iterator[BinaryIO]:
    """An open file. A path is written beside, and gets its name when all is there: what had the name before
    stays whole until then, and where writing fails.
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
