"""Where the time of a program goes: operations, and parts that it names itself, by calls and by time on the
host.

What is timed is each kernel on the thread that calls it. A GPU is only given its work there: its own times
are told by `wengert.gpu.profile`.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wengert.autograd.modes import Region
from wengert.counting import FlopCounter

__all__ = ["EventList", "FunctionEventAvg", "profile", "record_function"]


@dataclass(frozen=True)
class FunctionEventAvg:
    """All runs of one operation, or of one part of the program. Times are in microseconds."""

    key: str
    #: How often it ran.
    count: int
    #: With all that ran inside.
    cpu_time_total: float
    #: Without the operations that ran inside.
    self_cpu_time_total: float
    #: Floating point operations.
    flops: int = 0
    #: Whether a program named it, by `record_function`.
    is_user_annotation: bool = False

    @property
    def cpu_time(self) -> float:
        """The mean time of a run."""
        return self.cpu_time_total / self.count


_COLUMNS: dict[str, Callable[[FunctionEventAvg], Any]] = {
    "cpu_time_total": lambda row: row.cpu_time_total,
    "self_cpu_time_total": lambda row: row.self_cpu_time_total,
    "cpu_time": lambda row: row.cpu_time,
    "count": lambda row: row.count,
    "flops": lambda row: row.flops,
}


class EventList(list[FunctionEventAvg]):
    """Rows of a profile, the longest first; `table` and `print` show them."""

    def table(self, sort_by: str | None = None, row_limit: int = 100, **_: Any) -> str:
        """Returns the rows as text.

        Args:
            sort_by: the column whose largest come first: "cpu_time_total", "self_cpu_time_total", "cpu_time",
                "count" or "flops"; those with "cuda" or "device" for "cpu" are times on the host too.
            row_limit: how many rows to show; all if negative.

        Raises:
            ValueError: for another column.
        """
        rows: list[FunctionEventAvg] = list(self)
        if sort_by is not None:
            name = sort_by.replace("cuda", "cpu").replace("device", "cpu")
            if name not in _COLUMNS:
                raise ValueError(f"table: sort_by is one of {', '.join(_COLUMNS)}, got {sort_by!r}")
            rows.sort(key=_COLUMNS[name], reverse=True)
        whole = sum(row.self_cpu_time_total for row in rows) or 1.0
        lines = [("name", "self", "self %", "total", "mean", "calls", "flops")]
        for row in rows if row_limit < 0 else rows[:row_limit]:
            times = (_text(t) for t in (row.self_cpu_time_total, row.cpu_time_total, row.cpu_time))
            own, total, mean = times
            share = f"{100 * row.self_cpu_time_total / whole:.1f} %"
            lines.append((row.key, own, share, total, mean, str(row.count), f"{row.flops:,}"))
        widths = [max(len(cells[i]) for cells in lines) for i in range(len(lines[0]))]
        return "\n".join(
            "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths)))
            for cells in lines
        )

    def __str__(self) -> str:
        """The table."""
        return self.table()


def _text(microseconds: float) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3f} {unit}"
    return f"{microseconds:.3f} us"


class _Open(threading.local):
    """The profiles that this thread is in."""

    def __init__(self) -> None:
        self.profiles: list[profile] = []


_open = _Open()


class profile:
    """Times what runs inside, on this thread; a context. `key_averages().table()` shows it.

    The times of operations are those of their kernels; what Python does between them is in that of the
    `record_function` around it alone. Watching costs about a microsecond for each operation.

    Args:
        enabled: False times nothing.
        use_cuda: accepted for PyTorch's sake; so are further keywords (`record_shapes`, `with_stack`, …), of
            which nothing is kept.

    Example:
        >>> x = wg.ones(8, 8)
        >>> with wg.autograd.profiler.profile() as prof:
        ...     y = x @ x
        >>> [(row.key, row.count, row.flops) for row in prof.key_averages()]
        [('matmul', 1, 1024)]
    """

    def __init__(self, enabled: bool = True, *, use_cuda: bool = False, **_: Any) -> None:
        """Nothing is timed before `with`."""
        self.enabled = enabled
        self._counter = FlopCounter()
        # Calls, time, and time of operations inside, of each named part.
        self._parts: dict[str, tuple[int, float, float]] = {}
        self._begin = 0.0
        self._seconds = 0.0

    def __enter__(self) -> "profile":
        """Begins to time."""
        if self.enabled:
            self._counter.__enter__()
            _open.profiles.append(self)
            self._begin = time.perf_counter()
        return self

    def __exit__(self, *exc: Any) -> None:
        """Ends; what was timed stays."""
        if self.enabled:
            self._seconds += time.perf_counter() - self._begin
            _open.profiles.remove(self)
            self._counter.__exit__(*exc)

    def _inside(self) -> float:
        """The seconds that operations took so far."""
        return sum(row.seconds for row in self._counter.rows)

    def _add(self, name: str, seconds: float, inside: float) -> None:
        calls, total, held = self._parts.get(name, (0, 0.0, 0.0))
        self._parts[name] = (calls + 1, total + seconds, held + inside)

    def key_averages(self, group_by_input_shape: bool = False, **_: Any) -> EventList:
        """Returns one row for each operation and each named part, the longest first; what backward runs has
        rows of its own, such as `linear (backward)`.

        Args:
            group_by_input_shape: accepted; shapes are not kept.
        """
        rows = EventList()
        sums: dict[str, tuple[int, float, int]] = {}
        for row in self._counter.rows:
            key = f"{row.op} (backward)" if row.backward else row.op
            calls, seconds, flops = sums.get(key, (0, 0.0, 0))
            sums[key] = (calls + row.calls, seconds + row.seconds, flops + row.flops)
        for op, (calls, seconds, flops) in sums.items():
            rows.append(FunctionEventAvg(op, calls, seconds * 1e6, seconds * 1e6, flops))
        for name, (calls, seconds, held) in self._parts.items():
            own = max(seconds - held, 0.0) * 1e6
            rows.append(FunctionEventAvg(name, calls, seconds * 1e6, own, is_user_annotation=True))
        rows.sort(key=lambda row: -row.cpu_time_total)
        return rows

    def total_average(self) -> FunctionEventAvg:
        """Returns the sum of all operations."""
        rows = [row for row in self.key_averages() if not row.is_user_annotation]
        time, flops = sum(row.cpu_time_total for row in rows), sum(row.flops for row in rows)
        return FunctionEventAvg("Total", max(sum(row.count for row in rows), 1), time, time, flops)

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all operations, in microseconds."""
        return self.total_average().self_cpu_time_total

    def table(self, sort_by: str | None = None, row_limit: int = 100, **settings: Any) -> str:
        """Returns what `key_averages().table()` does.

        Args:
            sort_by: the column whose largest come first.
            row_limit: how many rows to show.
        """
        return self.key_averages().table(sort_by, row_limit, **settings)

    def export_chrome_trace(self, path: str) -> None:
        """Raises NotImplementedError: sums are kept, not the single runs that such a file holds."""
        raise NotImplementedError(
            "export_chrome_trace: a profile keeps sums by operation and no single runs; print "
            "key_averages().table()"
        )

    def __str__(self) -> str:
        """The table."""
        return self.table()


class record_function(Region):
    """Names a part of a program in the profiles around it; a context and a decorator. Costs little outside of
    one.

    Args:
        name: what the row is called.
        args: accepted for PyTorch's sake.

    Example:
        >>> with wg.autograd.profiler.profile() as prof:
        ...     with wg.autograd.profiler.record_function("twice"):
        ...         x = wg.ones(2) * 2
        >>> [row.key for row in prof.key_averages() if row.is_user_annotation]
        ['twice']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        """The part does not begin before `with`."""
        self.name = name
        self._begun: list[tuple[float, list[tuple[profile, float]]]] = []

    def _again(self) -> "record_function":
        return record_function(self.name)

    def __enter__(self) -> "record_function":
        """Begins the part."""
        self._begun.append((time.perf_counter(), [(p, p._inside()) for p in _open.profiles]))
        return self

    def __exit__(self, *exc: Any) -> None:
        """Ends the part."""
        begin, profiles = self._begun.pop()
        seconds = time.perf_counter() - begin
        for p, before in profiles:
            p._add(self.name, seconds, p._inside() - before)


def __dir__() -> list[str]:
    """What is public."""
    return __all__
