"""`wengert.gpu.profile`: how long each kernel takes, by the clock of the GPU; and the ceilings of a GPU."""

import contextlib
import warnings
from collections.abc import Mapping
from numbers import Real
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

from wengert import _core

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["KernelTime", "Launch", "Profile", "ceilings", "profile"]

#: What a share can be of: bytes per second of a copy, operations per second of multiply-adds.
CEILINGS = ("copy", "multiply")
#: What can be said of a profile.
RUNNING = "is still running: the times are read when its block ends"
ENDED = "has ended"


class Launch(NamedTuple):
    """One launch of a kernel.

    Attributes:
        kernel: its name, such as `matmul`.
        variant: its entry point, where the kernel has several, and the dtypes that it is compiled for;
            `user` for a `gpu.kernel`.
        bytes: those of its operands, each counted once.
        flops: floating point operations, where they are known.
        start: when it began, in seconds since the first launch of the profile.
        seconds: how long it ran.
    """

    kernel: str
    variant: str
    bytes: int
    flops: int | None
    start: float
    seconds: float


class KernelTime(NamedTuple):
    """All launches of one kernel and variant.

    Attributes:
        kernel: its name.
        variant: its entry point, where the kernel has several, and its dtypes.
        calls: number of launches.
        seconds: the sum of their times.
        mean: seconds of one launch.
        bytes: the sum of the bytes of their operands.
        flops: the sum of their floating point operations, None where they are not known.
        of_copy: bytes per second divided by the ceiling `copy`; None without ceilings.
        of_multiply: operations per second divided by the ceiling `multiply`, that of float32 whatever the
            dtype; None without ceilings.
    """

    kernel: str
    variant: str
    calls: int
    seconds: float
    mean: float
    bytes: int
    flops: int | None
    of_copy: float | None
    of_multiply: float | None


class Profile:
    """The times of what a GPU ran inside a `with` block; `wengert.gpu.profile` makes them.

    It can be used again, for one block after another: each replaces the launches of the one before.

    Attributes:
        index: the GPU.
        launches: every launch, in order; empty until the block ends.
        kernels: the launches summed by kernel and variant.
        seconds: the time of all launches.
    """

    def __init__(self, index: int = 0, ceilings: Mapping[str, float] | None = None) -> None:
        """See `wengert.gpu.profile`."""
        self._index = index
        self._launches: tuple[Launch, ...] = ()
        self._ceilings = _checked_ceilings(ceilings)
        self._state = "was not entered yet: use it in a with statement"

    @property
    def index(self) -> int:
        """The GPU."""
        return self._index

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Every launch, in order; empty until the block ends."""
        return self._launches

    def __enter__(self) -> "Profile":
        """Begins to time launches."""
        if not hasattr(_core, "_gpu_profile_begin"):
            raise _core.DeviceError("gpu.profile: this build of wengert has no GPU support")
        _core._gpu_profile_begin(self._index)
        self._launches = ()
        self._state = RUNNING
        return self

    def __exit__(self, *exc: Any) -> None:
        """Waits for the GPU and reads the times; does nothing where the block has ended already."""
        if self._state is not RUNNING:
            return
        self._state = "failed: its times could not be read"
        self._launches = tuple(
            Launch(kernel, variant, moved, flops, begin, max(end - begin, 0.0))
            for kernel, variant, moved, flops, begin, end in _core._gpu_profile_end(self._index)
        )
        self._state = ENDED

    def __del__(self) -> None:
        """Ends a block that nothing can leave any more, so that the GPU can be profiled again."""
        if getattr(self, "_state", ENDED) is RUNNING:
            warnings.warn(
                f"a gpu.profile of gpu:{self._index} was never left; its times are lost",
                ResourceWarning,
                stacklevel=2,
                source=self,
            )
            # At the end of a process, or in a forked one, there may be no GPU left.
            with contextlib.suppress(Exception):
                _core._gpu_profile_end(self._index)

    def _ended(self) -> None:
        """Raises unless there is something to write."""
        if self._state is not ENDED:
            raise RuntimeError(f"gpu.profile: this profile {self._state}")

    @property
    def seconds(self) -> float:
        """The time that all launches took together; the gaps between them do not count."""
        return sum((launch.seconds for launch in self.launches), 0.0)

    @property
    def kernels(self) -> list[KernelTime]:
        """The launches summed by kernel and variant, the longest first."""
        groups: dict[tuple[str, str], list[Launch]] = {}
        for launch in self.launches:
            groups.setdefault((launch.kernel, launch.variant), []).append(launch)
        return sorted((self._summed(group) for group in groups.values()), key=lambda row: -row.seconds)

    def _summed(self, group: list[Launch]) -> KernelTime:
        seconds = sum(launch.seconds for launch in group)
        moved = sum(launch.bytes for launch in group)
        known = [launch.flops for launch in group if launch.flops is not None]
        flops = sum(known) if len(known) == len(group) else None

        def share(work: int | None, name: str) -> float | None:
            top = self._ceilings.get(name)
            return work / seconds / top if work is not None and top and seconds else None

        return KernelTime(
            *group[0][:2],
            len(group),
            seconds,
            seconds / len(group),
            moved,
            flops,
            share(moved, "copy"),
            share(flops, "multiply"),
        )

    def table(self, most: int | None = None) -> str:
        """Returns a table of the kernels, the longest first.

        Args:
            most: how many kernels to show; all where None. A last line tells what the others took.

        Raises:
            ValueError: if `most` is negative.
        """
        shown = None if most is None else _whole("gpu.profile: most", most, least=0)
        if self._state is not ENDED:
            return f"this profile {self._state}"
        if not self.launches:
            return "no kernel was launched"
        total = self.seconds
        lines = [["kernel", "variant", "calls", "ms", "share", "us each", "GB/s", "GFLOP/s"]]
        if self._ceilings:
            lines[0] += ["% of copy", "% of multiply"]
        kernels = self.kernels
        for row in kernels[:shown]:
            cells = [
                row.kernel,
                row.variant,
                str(row.calls),
                f"{row.seconds * 1e3:.4g}",
                f"{row.seconds / total:.1%}" if total else "-",
                f"{row.mean * 1e6:.4g}",
                _rate(row.bytes, row.seconds),
                _rate(row.flops, row.seconds),
            ]
            if self._ceilings:
                cells += ["-" if x is None else f"{x * 100:.3g}" for x in (row.of_copy, row.of_multiply)]
            lines.append([" ".join(cell.split()) for cell in cells])
        for name, group in (("others", kernels[len(kernels[:shown]) :]), ("all", kernels)):
            if group:
                calls, seconds = sum(row.calls for row in group), sum(row.seconds for row in group)
                sums = [name, f"{len(group)} kernels", str(calls), f"{seconds * 1e3:.4g}"]
                lines.append([*sums, *[""] * (len(lines[0]) - 4)])
        widths = [max(len(cells[i]) for cells in lines) for i in range(len(lines[0]))]
        align = [str.ljust, str.ljust, *[str.rjust] * (len(widths) - 2)]
        return "\n".join(
            "  ".join(pad(cell, width) for pad, cell, width in zip(align, cells, widths)).rstrip()
            for cells in lines
        )

    def __str__(self) -> str:
        """The table."""
        return self.table()

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Returns the adapter, the seconds of all launches, the ceilings and the kernels, as plain lists and
        dicts.

        Raises:
            RuntimeError: before the block has ended; `json` and `trace` likewise.
        """
        self._ended()
        return {
            "gpu": _core._gpu_info(self.index)["adapter"],
            "seconds": self.seconds,
            "ceilings": dict(self._ceilings),
            "kernels": [row._asdict() for row in self.kernels],
        }

    def json(self) -> str:
        """Returns `to_dict` as a text of JSON."""
        import json

        return json.dumps(self.to_dict(), indent=1)

    def trace(self, path: "str | Path") -> None:
        """Writes the launches as a timeline, for chrome://tracing or ui.perfetto.dev.

        Args:
            path: a file, which is replaced.
        """
        self._ended()
        names = {"process_name": _core._gpu_info(self.index)["adapter"], "thread_name": "kernels"}
        place = {"pid": self.index, "tid": 0}
        events: list[dict[str, Any]] = [
            {"name": what, "ph": "M", **place, "args": {"name": name}} for what, name in names.items()
        ]
        for launch in self.launches:
            args = {"variant": launch.variant, "bytes": launch.bytes, "flops": launch.flops}
            times = {"ts": launch.start * 1e6, "dur": launch.seconds * 1e6}
            events.append({"name": launch.kernel, "cat": "kernel", "ph": "X", **times, **place, "args": args})
        import json

        text = json.dumps({"displayTimeUnit": "ns", "traceEvents": events})
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def _rate(work: int | None, seconds: float) -> str:
    """Billions per second."""
    return "-" if work is None or not seconds else f"{work / seconds / 1e9:.3g}"


def _whole(name: str, value: Any, least: int) -> int:
    """An integer of at least `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is an integer, got {value!r}")
    if index(value) < least:
        raise ValueError(f"{name} is at least {least}, got {value}")
    return index(value)


def _checked_ceilings(given: Any) -> dict[str, float]:
    """The ceilings as floats."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"gpu.profile: ceilings= is a dict, as gpu.ceilings() returns it, got {given!r}")
    if not set(given) <= set(CEILINGS):
        raise ValueError(
            f"gpu.profile: ceilings= has {sorted(map(str, given))}, expected {' and '.join(CEILINGS)}, as "
            "gpu.ceilings() returns them"
        )
    out: dict[str, float] = {}
    for name, value in given.items():
        if type(value) is bool or not isinstance(value, Real):
            raise TypeError(f"gpu.profile: ceilings={{'{name}': ...}} is a number, got {value!r}")
        try:
            out[name] = float(value)
        except OverflowError:
            out[name] = float("inf")
        if not 1.0 <= out[name] <= 1e30:
            raise ValueError(f"gpu.profile: ceilings={{'{name}': ...}} is a rate per second, got {value}")
    return out


def profile(index: int = 0, *, ceilings: Mapping[str, float] | None = None) -> Profile:
    """Times every kernel that a GPU runs inside a `with` block, by timestamps of the GPU itself.

    Results are the same bits with and without a profile. Kernels run one after another, each in a pass of
    its own, so small ones take longer than outside, and the first launch of a kernel takes longer than the
    next: warm up before. Launches of all threads count; copies between host and GPU are no kernels.

    Bytes are the sizes of a launch's operands, each counted once, also where it is read twice or updated in
    place; of a table that is indexed, only the rows that are read. What a cache holds is read faster than
    memory, so a rate may exceed the ceiling. Operations are those of the formula, for products of matrices,
    convolutions and attention (a causal mask does not reduce them); of other kernels they are not known.

    Args:
        index: the GPU.
        ceilings: what the GPU can do, from `gpu.ceilings()`; the table then shows each kernel's share.

    Returns:
        A context, which is also the result: `print` shows its table; see `gpu.Profile`.

    Raises:
        DeviceError: in `with`, if there is no such GPU, if it has no clock for kernels
            (`gpu.info()["timestamps"]`), or if it is profiled already, by whichever thread.
        TypeError, ValueError: if `ceilings` is not what `gpu.ceilings()` returns.

    Example:
        >>> if wg.gpu.is_available():
        ...     x = wg.ones(64, 64, device="gpu")
        ...     with wg.gpu.profile() as found:
        ...         y = (x @ x).softmax(-1)
        ...     assert [launch.kernel for launch in found.launches] == ["matmul", "softmax"]
        ...     found.trace("kernels.json")
    """
    return Profile(index, ceilings)


COPY = """
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;

@compute @workgroup_size(256)
fn copy(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let step = groups.x * 256u;
    let a = x[id.x];
    let b = x[id.x + step];
    let c = x[id.x + 2u * step];
    let d = x[id.x + 3u * step];
    out[id.x] = a;
    out[id.x + step] = b;
    out[id.x + 2u * step] = c;
    out[id.x + 3u * step] = d;
}
"""

#: Four chains of four multiply-adds, often enough in a row that the loop around them costs nothing.
MULTIPLY = """
override rounds: u32;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(256)
fn multiply(@builtin(global_invocation_id) id: vec3<u32>) {
    let m = vec4<f32>(0.999);
    let n = vec4<f32>(0.001);
    var a = vec4<f32>(x[id.x]);
    var b = a + 0.1;
    var c = a + 0.2;
    var d = a + 0.3;
    for (var i = 0u; i < rounds; i += 1u) {
CHAINS    }
    let e = a + b + c + d;
    out[id.x] = e.x + e.y + e.z + e.w;
}
""".replace("CHAINS", "".join(f"        {v} = fma({v}, m, n);\n" for v in "abcd") * 16)
FLOPS_OF_A_ROUND = 2 * 4 * 4 * 16


def ceilings(index: int = 0, *, size: int | None = None, runs: int = 5) -> dict[str, float]:
    """Measures what a GPU can do at most: the ceilings for `gpu.profile`. Takes well under a second.

    It takes a profile itself, so it cannot run inside one.

    Args:
        index: the GPU.
        size: bytes of the tensor that is copied, from 16 KiB to 1 GiB; 256 MiB where None, 4 MiB on a
            software adapter. A GPU that binds less copies less.
        runs: how often each is measured, at least once; the fastest counts.

    Returns:
        `copy`, the bytes per second of a copy, those read plus those written; `multiply`, floating point
        operations per second of float32 multiply-adds, each of which counts as two.

    Raises:
        DeviceError: if there is no such GPU, if it has no clock for kernels, or if it is being profiled.
        TypeError, ValueError: if `size` or `runs` is no integer in its range.
    """
    runs = _whole("gpu.ceilings: runs", runs, least=1)
    if size is not None and _whole("gpu.ceilings: size", size, least=1 << 14) > 1 << 30:
        raise ValueError(f"gpu.ceilings: size is at most {1 << 30}, got {size}")
    from wengert._core import ones
    from wengert._gpu_kernel import kernel

    info = _core._gpu_info(index)
    software = info["device_type"] == "software"
    wanted = size or (4 << 20 if software else 256 << 20)
    # A group of the copy moves 16 KiB.
    groups = min(wanted, info["limits"]["max_storage_buffer_binding_size"]) >> 14
    threads, rounds = (1 << 14, 16) if software else (1 << 20, 256)
    device = f"gpu:{int(index)}"
    from_here, start = ones(groups << 12, device=device), ones(threads, device=device)
    copy = kernel(COPY, groups=groups, name="copy")
    multiply = kernel(MULTIPLY, groups=threads // 256, constants={"rounds": rounds}, name="multiply")
    work = {"copy": groups << 15, "multiply": FLOPS_OF_A_ROUND * rounds * threads}
    with Profile(index) as found:
        for _ in range(runs + 1):
            copy(from_here)
            multiply(start)
    times = {name: [x.seconds for x in found.launches if x.kernel == name] for name in work}
    return {name: work[name] / max(min(times[name]), 1e-9) for name in work}
