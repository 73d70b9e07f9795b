"""What processes send each other: pickled objects over a socket, with the elements of tensors and arrays
beside.

A message is the number of its parts and their lengths, then the parts: the pickle, and one part for each
large piece of memory (pickle protocol 5, "out-of-band"), which the receiver reads right into the memory of a
new array. Shared memory files were rejected: moving 20 MB took twice as long (Linux), each batch uses a file
descriptor, and there is more to clean up after a process that is killed.
"""

import io
import pickle
import socket
import struct
from typing import Any

import numpy as np

from wengert import _core
from wengert._core import Tensor

__all__ = ["pack", "read", "send", "unpack"]

# What is smaller travels within the pickle.
_LARGE = 4096
# Types whose arrays pickle can hand over without a copy.
_PLAIN = "biufc"


class _Pickler(pickle.Pickler):
    """Pickles tensors as arrays over their memory."""

    def reducer_override(self, obj: Any) -> Any:
        """Tensors on the CPU as arrays; whatever has a history, a class of its own or no array stays as it
        is."""
        if type(obj) is not Tensor or obj.requires_grad or obj.is_gpu:
            return NotImplemented
        array = obj.contiguous().numpy()
        return (_core.as_tensor, (array,)) if array.dtype.kind in _PLAIN else NotImplemented


def pack(message: Any) -> list[Any]:
    """The parts of a message, which share no memory with it: what is sent does not change if the message
    does."""
    parts: list[Any] = []

    def is_small(buffer: pickle.PickleBuffer) -> bool:
        memory = buffer.raw()
        if memory.nbytes >= _LARGE:
            parts.append(bytes(memory))
        return memory.nbytes < _LARGE

    stream = io.BytesIO()
    _Pickler(stream, 5, buffer_callback=is_small).dump(message)
    parts.insert(0, stream.getbuffer())
    return parts


def send(link: socket.socket, parts: list[Any]) -> None:
    """Sends what `pack` made."""
    lengths = [len(part) for part in parts]
    link.sendall(struct.pack(f"<{len(lengths) + 1}Q", len(lengths), *lengths))
    for part in parts:
        link.sendall(part)


def read(link: socket.socket) -> list[Any]:
    """Waits for the parts of a message.

    Raises:
        EOFError: if the other side ended.
    """
    (count,) = struct.unpack("<Q", _read(link, 8))
    lengths = struct.unpack(f"<{count}Q", _read(link, 8 * count))
    return [_read(link, length) for length in lengths]


def unpack(parts: list[Any]) -> Any:
    """The message of these parts, whose arrays lie in their memory."""
    return pickle.loads(parts[0], buffers=parts[1:])


def _read(link: socket.socket, length: int) -> memoryview:
    """The next bytes, in memory of their own, which can be written."""
    memory = memoryview(np.empty(length, np.uint8))  # type: ignore[arg-type]
    place = 0
    while place < length:
        try:
            read = link.recv_into(memory[place:])
        except ConnectionError:
            read = 0
        if read == 0:
            raise EOFError("the other process ended")
        place += read
    return memory
