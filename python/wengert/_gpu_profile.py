"""`wengert.gpu.profile`: how long each kernel takes, by the clock of the GPU; and the ceilings of a GPU."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from wengert import _core

__all__ = ["KernelTime", "Launch", "Profile", "ceilings", "profile"]

#: What a share can be of: bytes per second of a copy, operations per second of multiply-adds.
CEILINGS = ("copy", "multiply")


class Launch(NamedTuple):
    """One launch of a kernel.

    Attributes:
        kernel: its name, such as `matmul`.
        variant: its entry point, where the kernel has several, and the dtypes that it reads and writes.
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
        of_copy: bytes per second, as a share of the GPU's copies; None without ceilings.
        of_multiply: operations per second, as a share of the GPU's multiply-adds; None without ceilings.
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

    Attributes:
        index: the GPU.
        launches: every launch, in order; empty until the block ends.
    """

    def __init__(self, index: int = 0, ceilings: Mapping[str, float] | None = None) -> None:
        """See `wengert.gpu.profile`."""
        self.index = index
        self.launches: list[Launch] = []
        self._ceilings = dict(ceilings or {})
        if not set(self._ceilings) <= set(CEILINGS):
            raise ValueError(
                f"gpu.profile: ceilings= has {sorted(self._ceilings)}, expected {' and '.join(CEILINGS)}, as "
                "gpu.ceilings() returns them"
            )

    def __enter__(self) -> "Profile":
        """Begins to time launches."""
        if not hasattr(_core, "_gpu_profile_begin"):
            raise _core.DeviceError("gpu.profile: this build of wengert has no GPU support")
        _core._gpu_profile_begin(self.index)
        self.launches = []
        return self

    def __exit__(self, *exc: Any) -> None:
        """Waits for the GPU and reads the times."""
        self.launches = [
            Launch(kernel, variant, moved, flops, begin, max(end - begin, 0.0))
            for kernel, variant, moved, flops, begin, end in _core._gpu_profile_end(self.index)
        ]

    @property
    def seconds(self) -> float:
        """The time that all launches took together; the gaps between them do not count."""
        return sum(launch.seconds for launch in self.launches)

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
        """A table of the kernels, the longest first.

        Args:
            most: how many kernels to show; all where None.
        """
        if not self.launches:
            return "no kernel was launched"
        total = self.seconds
        lines = [["kernel", "variant", "calls", "ms", "share", "us each", "GB/s", "GFLOP/s"]]
        if self._ceilings:
            lines[0] += ["of copy", "of multiply"]
        for row in self.kernels[:most]:
            cells = [
                row.kernel,
                row.variant,
                str(row.calls),
                f"{row.seconds * 1e3:.3f}",
                f"{row.seconds / total:.1%}" if total else "-",
                f"{row.mean * 1e6:.1f}",
                _rate(row.bytes, row.seconds),
                _rate(row.flops, row.seconds),
            ]
            if self._ceilings:
                cells += ["-" if x is None else f"{x:.1%}" for x in (row.of_copy, row.of_multiply)]
            lines.append(cells)
        lines.append(["all", "", str(len(self.launches)), f"{total * 1e3:.3f}", *[""] * (len(lines[0]) - 4)])
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
        """The GPU, the sum of all times, the ceilings and the kernels, of lists, numbers and texts alone."""
        return {
            "gpu": _core._gpu_info(self.index)["adapter"],
            "seconds": self.seconds,
            "ceilings": dict(self._ceilings),
            "kernels": [row._asdict() for row in self.kernels],
        }

    def json(self) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    def trace(self, path: str | Path) -> None:
        """Writes the launches on a line of time, for chrome://tracing or ui.perfetto.dev.

        Args:
            path: a file, which is replaced.
        """
        names = {"process_name": _core._gpu_info(self.index)["adapter"], "thread_name": "kernels"}
        place = {"pid": self.index, "tid": 0}
        events: list[dict[str, Any]] = [
            {"name": what, "ph": "M", **place, "args": {"name": name}} for what, name in names.items()
        ]
        for launch in self.launches:
            args = {"variant": launch.variant, "bytes": launch.bytes, "flops": launch.flops}
            times = {"ts": launch.start * 1e6, "dur": launch.seconds * 1e6}
            events.append({"name": launch.kernel, "cat": "kernel", "ph": "X", **times, **place, "args": args})
        text = json.dumps({"displayTimeUnit": "ns", "traceEvents": events})
        Path(path).write_text(text, encoding="utf-8")


def _rate(work: int | None, seconds: float) -> str:
    """Billions per second."""
    return "-" if work is None or not seconds else f"{work / seconds / 1e9:.1f}"


def profile(index: int = 0, *, ceilings: Mapping[str, float] | None = None) -> Profile:
    """Times every kernel that a GPU runs inside a `with` block, by timestamps of the GPU itself.

    Results are the same bits with and without a profile. Kernels run one after another, each in a pass of
    its own, so small ones take longer than outside. Launches of all threads count; copies between host and
    GPU are no kernels.

    Bytes are those of the elements that a launch binds, each operand once: what is updated in place, or
    read again because no cache holds it, counts once. Operations are those of the formula, for products of
    matrices, convolutions and attention (a causal mask does not reduce them); of other kernels they are not
    known.

    Args:
        index: the GPU.
        ceilings: what the GPU can do, from `gpu.ceilings()`; the table then shows each kernel's share.

    Returns:
        A context, which is also the result: `print` shows its table; see `gpu.Profile`.

    Raises:
        DeviceError: in `with`, if there is no such GPU, if it has no clock for kernels
            (`gpu.info()["timestamps"]`), or if it is profiled already.

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
    """What a GPU can do at most, measured: the ceilings for `gpu.profile`. Takes well under a second.

    Args:
        index: the GPU.
        size: bytes of the tensor that is copied; 256 MiB where None, 4 MiB on a software adapter.
        runs: how often each is measured; the fastest counts.

    Returns:
        `copy`, the bytes per second of a copy, read and written together; `multiply`, the floating point
        operations per second of float32 multiply-adds, two each.

    Raises:
        DeviceError: as for `gpu.profile`.
    """
    from wengert._core import ones
    from wengert._gpu_kernel import kernel

    info = _core._gpu_info(index)
    software = info["device_type"] == "software"
    wanted = size or (4 << 20 if software else 256 << 20)
    # A group of the copy moves 16 KiB.
    groups = max(1, min(wanted, info["limits"]["max_storage_buffer_binding_size"], 1 << 30) >> 14)
    threads, rounds = (1 << 14, 16) if software else (1 << 20, 256)
    device = f"gpu:{index}"
    from_here, start = ones(groups << 12, device=device), ones(threads, device=device)
    copy = kernel(COPY, groups=groups, name="copy")
    multiply = kernel(MULTIPLY, groups=threads // 256, constants={"rounds": rounds}, name="multiply")
    work = {"copy": groups << 15, "multiply": FLOPS_OF_A_ROUND * rounds * threads}
    with Profile(index) as found:
        for _ in range(max(1, runs) + 1):
            copy(from_here)
            multiply(start)
    times = {name: [x.seconds for x in found.launches if x.kernel == name] for name in work}
    return {name: work[name] / max(min(times[name]), 1e-9) for name in work}
