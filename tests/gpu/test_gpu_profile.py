"""`gpu.profile`: which kernels it sees and what it tells of them, its table, its trace, its errors."""

import gc
import json
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wengert as wg
import wengert.nn.functional as F

SAXPY = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&out)) { out[id.x] = 2.0 * x[id.x]; }
}
"""


def randn(*shape: int) -> wg.Tensor:
    return wg.randn(*shape).to("gpu")


def program() -> tuple[wg.Tensor, ...]:
    """Two products, a softmax, a layer norm, and the gradients of them all."""
    wg.manual_seed(3)
    x, w = (randn(48, 32).requires_grad_(), randn(32, 32).requires_grad_())
    gain, bias = (wg.ones(32, device="gpu"), wg.zeros(32, device="gpu"))
    y = F.layer_norm((x @ w @ w).softmax(-1), (32,), gain, bias)
    (y * y).sum().backward()
    return y.detach(), x.grad, w.grad


def profiled(work: Callable[[], Any], **kwargs: Any) -> wg.gpu.Profile:
    """The profile of what this does."""
    with wg.gpu.profile(**kwargs) as found:
        work()
    return found


def test_it_sees_the_kernels_of_a_program() -> None:
    found = profiled(program)
    calls = Counter()
    for row in found.kernels:
        calls[row.kernel] += row.calls
    # Two products, and two gradients of each.
    assert (calls["matmul"], calls["softmax"], calls["layer_norm"]) == (6, 1, 1)
    assert calls["softmax_vjp"] == calls["layer_norm_vjp"] == 1
    assert sum(calls.values()) == len(found.launches)
    times = [row.seconds for row in found.kernels]
    assert times == sorted(times, reverse=True)
    assert found.seconds == pytest.approx(sum(row.seconds for row in found.kernels))
    begins = [launch.start for launch in found.launches]
    assert begins == sorted(begins)
    assert all(launch.seconds >= 0 for launch in found.launches)
    assert sum(launch.seconds for launch in found.launches) > 0


def test_every_launch_is_seen_once() -> None:
    x = wg.ones(8, device="gpu")
    before = wg.gpu.memory_stats()["dispatches"]
    # Several batches of commands, a read-back among them, and more than a buffer of timestamps holds.
    count = 5000

    def work() -> None:
        y = x
        for i in range(count):
            y = y + x
            if i % 1000 == 7:
                assert y[0].item() == i + 2

    found = profiled(work)
    assert len(found.launches) == wg.gpu.memory_stats()["dispatches"] - before
    assert sum(row.calls for row in found.kernels if row.kernel == "add") == count
    begins = [launch.start for launch in found.launches]
    assert begins == sorted(begins)


def test_batches_of_one_launch() -> None:
    x = wg.ones(8, device="gpu")
    found = profiled(lambda: [(x + x).tolist() for _ in range(150)])
    begins = [launch.start for launch in found.launches]
    assert len(begins) == len(set(begins)) == 150
    assert begins == sorted(begins)


def test_results_are_the_same_bits() -> None:
    plain = [x.cpu() for x in program()]
    seen: list[wg.Tensor] = []
    profiled(lambda: seen.extend(x.cpu() for x in program()))
    assert all(wg.equal(a, b) for a, b in zip(plain, seen, strict=True))
    assert all(wg.equal(a, b.cpu()) for a, b in zip(plain, program(), strict=True))


@pytest.mark.parametrize(
    ("work", "kernel", "variant", "moved", "flops"),
    [
        (
            lambda: wg.ones(3, 5, 7, device="gpu") @ wg.ones(3, 7, 9, device="gpu"),
            "matmul",
            "thin, float32",
            4 * 3 * (5 * 7 + 7 * 9 + 5 * 9),
            2 * 3 * 5 * 7 * 9,
        ),
        (
            lambda: wg.ones(6, 8, device="gpu") @ wg.ones(8, device="gpu"),
            "matmul",
            "thin, float32",
            4 * (48 + 8 + 6),
            2 * 48,
        ),
        (
            lambda: (
                wg.ones(6, 8, dtype=wg.float16, device="gpu") @ wg.ones(8, 4, dtype=wg.float16, device="gpu")
            ),
            "matmul",
            "thin, float16",
            2 * (48 + 32 + 24),
            2 * 6 * 8 * 4,
        ),
        (
            lambda: F.conv2d(wg.ones(2, 4, 9, 9, device="gpu"), wg.ones(6, 2, 3, 3, device="gpu"), groups=2),
            "conv",
            "float32",
            4 * (2 * 4 * 81 + 6 * 2 * 9 + 2 * 6 * 49),
            2 * (2 * 6 * 49) * 2 * 9,
        ),
        (
            lambda: F.conv_transpose2d(wg.ones(1, 4, 5, 5, device="gpu"), wg.ones(4, 6, 3, 3, device="gpu")),
            "conv",
            "float32",
            4 * (4 * 25 + 4 * 6 * 9 + 6 * 49),
            2 * (4 * 25) * 6 * 9,
        ),
        (
            lambda: F.scaled_dot_product_attention(*(wg.ones(2, 5, 16, device="gpu") for _ in range(3))),
            "attention",
            None,
            4 * (4 * 2 * 5 * 16 + 2 * 5),
            2 * 5 * 5 * 4 * 16,
        ),
        # Only three rows of the table are read.
        (
            lambda: wg.ones(500, 16, device="gpu")[wg.tensor([3, 1, 400], dtype=wg.int32, device="gpu")],
            "gather",
            "float32",
            4 * (3 * 16 * 2 + 3),
            None,
        ),
        (lambda: wg.ones(10, device="gpu").to(wg.float16), "cast", "float32, float16", 40 + 20, None),
        (
            lambda: wg.gpu.kernel(SAXPY, name="double")(wg.ones(10, device="gpu")),
            "double",
            "user",
            80,
            None,
        ),
    ],
)
def test_what_it_tells_of_a_launch(
    work: Callable[[], Any], kernel: str, variant: str | None, moved: int, flops: int | None
) -> None:
    (launch,) = [
        x for x in profiled(work).launches if (x.kernel, variant or x.variant) == (kernel, x.variant)
    ]
    assert (launch.bytes, launch.flops) == (moved, flops)


def test_operations_of_gradients() -> None:
    x, w = randn(2, 4, 9, 9).requires_grad_(), randn(6, 4, 3, 3).requires_grad_()
    found = profiled(lambda: F.conv2d(x, w).sum().backward())
    each = 2 * (2 * 6 * 49) * 4 * 9
    assert [x.flops for x in found.launches if x.kernel.startswith("conv")] == [each] * 3
    q, k, v = (randn(2, 5, 16).requires_grad_() for _ in range(3))
    found = profiled(lambda: F.scaled_dot_product_attention(q, k, v).sum().backward())
    scores = 2 * 5 * 5
    flops = {x.kernel: x.flops for x in found.launches if x.kernel.startswith("attention")}
    # A pass recomputes the scores and finds the cotangents of the weights; then a product for each gradient.
    assert flops == {
        "attention": scores * 2 * 32,
        "attention_rows": None,
        "attention_queries": scores * 2 * 48,
        "attention_keys": scores * 2 * 64,
    }


def test_variants_of_a_kernel_are_apart() -> None:
    x = randn(8)
    half = x.to(wg.float16)
    found = profiled(lambda: (x + x, half + half, x + x))
    rows = {(row.kernel, row.variant): row.calls for row in found.kernels}
    assert rows == {("add", "float32"): 2, ("add", "float16"): 1}


def test_an_operand_that_is_bound_twice_counts_once() -> None:
    x, y = randn(100), randn(100)
    for other, moved in ((x, 800), (y, 1200), (x.expand(3, 100), 400 + 1200), (y.expand(3, 100), 800 + 1200)):
        found = profiled(lambda other=other: x + other)
        assert [launch.bytes for launch in found.launches] == [moved]


def test_texts_of_kernels() -> None:
    x = wg.ones(12, device="gpu")
    (x * x).cpu()
    texts = wg._core._gpu_texts(0)
    assert texts == sorted(texts)
    assert all(f"fn {entry}(" in text for _, entry, text in texts)
    assert any(kernel == "mul" and "fn op(" in text for kernel, _, text in texts), texts


def test_table() -> None:
    found = profiled(program)
    lines = str(found).splitlines()
    assert repr(found) == str(found) == found.table()
    assert lines[0].split() == "kernel variant calls ms share us each GB/s GFLOP/s".split()
    rows = len(found.kernels)
    assert len(lines) == rows + 2
    assert lines[1].startswith(found.kernels[0].kernel)
    assert lines[-1].split()[:4] == ["all", str(rows), "kernels", str(len(found.launches))]
    short = found.table(most=2).splitlines()
    assert [line.split()[:3] for line in short[3:]] == [
        ["others", str(rows - 2), "kernels"],
        ["all", str(rows), "kernels"],
    ]
    assert found.table(most=rows) == found.table(most=rows + 1) == str(found)
    with wg.gpu.profile() as empty:
        pass
    assert (empty.launches, empty.kernels, str(empty.seconds)) == ((), [], "0.0")
    assert str(empty) == "no kernel was launched"
    with pytest.raises(ValueError, match=r"^gpu\.profile: most is at least 0, got -1$"):
        found.table(most=-1)
    with pytest.raises(TypeError, match=r"^gpu\.profile: most is an integer, got 'x'$"):
        found.table(most="x")


def test_before_the_block_ends_there_is_nothing_to_tell(tmp_path: Path) -> None:
    found = wg.gpu.Profile(index=0, ceilings={"copy": 1.0})
    assert str(found) == "this profile was not entered yet: use it in a with statement"
    path = tmp_path / "trace.json"
    for write in (found.to_dict, found.json, lambda: found.trace(path)):
        with pytest.raises(RuntimeError, match=r"^gpu\.profile: this profile was not entered yet"):
            write()
    with found, pytest.raises(RuntimeError, match=r"^gpu\.profile: this profile is still running: the times"):
        found.trace(path)
    assert not path.exists()
    found.trace(path)


def test_only_its_own_block_ends_a_profile() -> None:
    x = wg.ones(4, device="gpu")
    with wg.gpu.profile() as found:
        y = x + x
        wg.gpu.profile().__exit__()
        y = y + x
    assert [launch.kernel for launch in found.launches] == ["add", "add"]
    found.__exit__()
    assert len(found.launches) == 2
    with pytest.raises(AttributeError):
        found.index = 7


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_profile_that_nothing_can_leave_ends() -> None:
    lost = wg.gpu.profile().__enter__()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        del lost
        gc.collect()
    assert [str(w.message) for w in seen if w.category is ResourceWarning] == [
        "a gpu.profile of gpu:0 was never left; its times are lost"
    ]
    assert [x.kernel for x in profiled(lambda: wg.ones(4, device="gpu") * 2).launches][-1] == "mul"


def test_shares_of_the_ceilings() -> None:
    found = profiled(program, ceilings={"copy": 1e9, "multiply": 2e9})
    for row in found.kernels:
        if row.seconds:
            assert row.of_copy == pytest.approx(row.bytes / row.seconds / 1e9)
            assert (row.of_multiply is None) == (row.flops is None)
            assert row.mean == pytest.approx(row.seconds / row.calls)
        if row.seconds and row.flops:
            assert row.of_multiply == pytest.approx(row.flops / row.seconds / 2e9)
    assert found.table().splitlines()[0].endswith("% of copy  % of multiply")
    assert profiled(program).kernels[0].of_copy is None
    measured = wg.gpu.ceilings(index=0, size=1 << 20, runs=2)
    assert measured.keys() == {"copy", "multiply"}
    assert all(0 < value < float("inf") for value in measured.values())


@pytest.mark.parametrize(
    ("kind", "given", "text"),
    [
        (TypeError, {"size": "x"}, "size is an integer, got 'x'"),
        (TypeError, {"size": 1.5}, "size is an integer, got 1.5"),
        (ValueError, {"size": 0}, "size is at least 16384, got 0"),
        (ValueError, {"size": 2**40}, "size is at most 1073741824, got 1099511627776"),
        (ValueError, {"runs": 0}, "runs is at least 1, got 0"),
        (TypeError, {"runs": True}, "runs is an integer, got True"),
    ],
)
def test_what_ceilings_cannot_be_measured_with(
    kind: type[Exception], given: dict[str, Any], text: str
) -> None:
    with pytest.raises(kind, match=rf"^gpu\.ceilings: {text}$"):
        wg.gpu.ceilings(**given)


def test_what_is_written(tmp_path: Path) -> None:
    found = profiled(program, ceilings={"copy": 1e9})
    data = json.loads(found.json())
    assert data == json.loads(json.dumps(found.to_dict()))
    assert data["gpu"] == wg.gpu.info()["adapter"]
    assert data["ceilings"] == {"copy": 1e9}
    assert [row["kernel"] for row in data["kernels"]] == [row.kernel for row in found.kernels]
    found.trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    assert {event["ph"] for event in trace["traceEvents"]} == {"M", "X"}
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert [event["name"] for event in spans] == [launch.kernel for launch in found.launches]
    for event, launch in zip(spans, found.launches, strict=True):
        assert {"name", "ph", "ts", "dur", "pid", "tid"} <= event.keys()
        # Microseconds.
        assert event["ts"] == pytest.approx(launch.start * 1e6)
        assert event["dur"] == pytest.approx(launch.seconds * 1e6)


def test_profiles_do_not_nest() -> None:
    text = (
        r"^gpu\.profile: gpu:0 is being profiled, here or by another thread, and profiles do not nest: leave"
    )
    x = wg.ones(4, device="gpu")
    with wg.gpu.profile(index=0) as outer:
        y = x + x
        with pytest.raises(wg.DeviceError, match=text), wg.gpu.profile():
            pass
        with pytest.raises(wg.DeviceError, match=text), outer:
            pass
        y = y + x
    assert [launch.kernel for launch in outer.launches] == ["add", "add"]
    with outer:
        assert outer.launches == ()
        y = -y
    assert [launch.kernel for launch in outer.launches] == ["neg"]


def test_an_exception_leaves_nothing_behind() -> None:
    x = wg.ones(4, device="gpu")
    found = wg.gpu.profile()

    def failing() -> None:
        with found:
            (x + x).sum(dim=3)

    with pytest.raises(IndexError):
        failing()
    assert [launch.kernel for launch in found.launches] == ["add"]
    assert (x + x).tolist() == [2.0] * 4
    assert [launch.kernel for launch in profiled(lambda: x * x).launches] == ["mul"]


@pytest.mark.parametrize(
    ("kind", "given", "text"),
    [
        (
            ValueError,
            {"speed": 1.0},
            r"has \['speed'\], expected copy and multiply, as gpu\.ceilings\(\) returns",
        ),
        (TypeError, 5, r"is a dict, as gpu\.ceilings\(\) returns it, got 5"),
        (TypeError, {"copy": "1"}, r"\{'copy': \.\.\.\} is a number, got '1'"),
        (TypeError, {"copy": True}, r"\{'copy': \.\.\.\} is a number, got True"),
        (ValueError, {"multiply": -1}, r"\{'multiply': \.\.\.\} is a rate per second, got -1"),
        (ValueError, {"copy": float("nan")}, r"\{'copy': \.\.\.\} is a rate per second, got nan"),
        (ValueError, {"copy": float("inf")}, r"\{'copy': \.\.\.\} is a rate per second, got inf"),
        (ValueError, {"copy": 10**400}, r"\{'copy': \.\.\.\} is a rate per second, got 1000"),
    ],
)
def test_wrong_ceilings(kind: type[Exception], given: Any, text: str) -> None:
    with pytest.raises(kind, match=rf"^gpu\.profile: ceilings= ?{text}"):
        wg.gpu.profile(ceilings=given)
    assert json.loads(profiled(program, ceilings={"copy": np.float32(1e9)}).json())["ceilings"] == {
        "copy": 1e9
    }


def test_a_missing_gpu() -> None:
    with pytest.raises(wg.DeviceError, match=r"^gpu:200 does not exist"), wg.gpu.profile(200):
        pass


def test_no_thread_is_missed() -> None:
    x = wg.ones(8, device="gpu")

    def work() -> None:
        y = x
        for _ in range(300):
            y = y * x

    threads = [threading.Thread(target=work) for _ in range(4)]
    with wg.gpu.profile() as found:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [(row.kernel, row.calls) for row in found.kernels] == [("mul", 1200)]


def test_info() -> None:
    info = wg.gpu.info()
    assert info["timestamps"] is ("timestamp_query" in info["features"])
    assert info["timestamps"] is (info["timestamp_period"] is not None)
    assert info["subgroups"] is ("subgroup" in info["features"])
    assert info["float16"] is ("shader_f16" in info["features"])
    way = info["float16_products"]
    assert way.startswith("in float32; ") or info["float16"]
    if "experimental_cooperative_matrix" not in info["features"]:
        assert "; " in way, way
    low, high = info["subgroup_size"]
    assert not info["subgroups"] or 4 <= low <= high <= 128
    for sizes, dtypes in info["cooperative_matrices"]:
        assert len(sizes) == 3
        assert set(dtypes) <= {"float16", "float32", "int32", "uint32"}
    assert isinstance(info["vendor_id"], int)
    assert isinstance(info["device_id"], int)
    limits = info["limits"]
    # What WebGPU promises.
    assert limits["max_compute_invocations_per_workgroup"] >= 256
    assert limits["max_compute_workgroup_storage_size"] >= 16384
    assert limits["max_storage_buffers_per_shader_stage"] >= 8
    assert min(limits[f"max_compute_workgroup_size_{axis}"] for axis in "xyz") >= 64
