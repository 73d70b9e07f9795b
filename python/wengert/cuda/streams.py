"""Streams and events of CUDA, as programs for PyTorch use them. A GPU has one queue here, in which all work
runs in the order in which it was given, so a stream changes nothing; events measure the time of the host.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Event", "Stream", "StreamContext", "current_stream", "default_stream", "set_stream", "stream"]
__dir__ = __all__.copy


def _wait() -> None:
    from wengert import cuda

    cuda.synchronize()


class Event:
    """A moment in the work of a GPU, by the clock of the host.

    Args:
        enable_timing: whether `elapsed_time` may be asked.
        blocking, interprocess: accepted.

    Example:
        >>> start, end = wg.cuda.Event(enable_timing=True), wg.cuda.Event(enable_timing=True)
        >>> start.record()
        >>> end.record()
        >>> start.elapsed_time(end) >= 0.0
        True
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        """Nothing is recorded yet."""
        self._is_timed = enable_timing
        self._at: float | None = None

    def record(self, stream: Any = None) -> None:
        """Waits for what was queued, and notes the time, if the event measures it.

        Args:
            stream: accepted.
        """
        if self._is_timed:
            _wait()
        self._at = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        """Does nothing: work runs in order.

        Args:
            stream: accepted.
        """

    def query(self) -> bool:
        """Tells whether the work before it is done: waits, and returns True."""
        _wait()
        return True

    def synchronize(self) -> None:
        """Waits for what was queued."""
        _wait()

    def elapsed_time(self, end_event: "Event") -> float:
        """Returns the milliseconds from this event to another one.

        Args:
            end_event: the later one.

        Raises:
            RuntimeError: one of them was not recorded, or does not measure time.
        """
        if not (self._is_timed and end_event._is_timed):
            raise RuntimeError("elapsed_time: both events must be made with enable_timing=True")
        if self._at is None or end_event._at is None:
            raise RuntimeError("elapsed_time: both events must be recorded first")
        return (end_event._at - self._at) * 1e3


class Stream:
    """A queue of work, of which a GPU has one.

    Args:
        device, priority: accepted.

    Example:
        >>> with wg.cuda.stream(wg.cuda.Stream()):
        ...     x = wg.ones(2)
    """

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        """All streams are one."""
        self.device, self.priority = device, priority

    def synchronize(self) -> None:
        """Waits for what was queued."""
        _wait()

    def query(self) -> bool:
        """Tells whether all work is done: waits, and returns True."""
        _wait()
        return True

    def wait_stream(self, stream: Any) -> None:
        """Does nothing: work runs in order.

        Args:
            stream: accepted.
        """

    def wait_event(self, event: Any) -> None:
        """Does nothing: work runs in order.

        Args:
            event: accepted.
        """

    def record_event(self, event: Event | None = None) -> Event:
        """Records an event, a new one by default, and returns it.

        Args:
            event: the event.
        """
        event = Event() if event is None else event
        event.record()
        return event

    def __eq__(self, other: object) -> bool:
        """All streams are one."""
        return isinstance(other, Stream)

    def __hash__(self) -> int:
        """That of all streams."""
        return hash(Stream)

    def __enter__(self) -> "Stream":
        """Changes nothing."""
        return self

    def __exit__(self, *exc: Any) -> None:
        """Changes nothing."""


@contextmanager
def stream(stream: Any) -> Iterator[None]:
    """Runs a block in a stream, which changes nothing.

    Args:
        stream: a stream, or None.

    Example:
        >>> with wg.cuda.stream(None):
        ...     print(wg.ones(1))
        tensor([1.])
    """
    yield


#: The same, by PyTorch's name of the class.
StreamContext: Callable[..., Any] = stream


def current_stream(device: Any = None) -> Stream:
    """Returns the stream.

    Args:
        device: accepted.

    Example:
        >>> wg.cuda.current_stream() == wg.cuda.default_stream()
        True
    """
    return Stream()


#: It is the only one.
default_stream = current_stream


def set_stream(stream: Any) -> None:
    """Does nothing: there is one stream.

    Args:
        stream: accepted.

    Example:
        >>> wg.cuda.set_stream(wg.cuda.Stream())
    """
