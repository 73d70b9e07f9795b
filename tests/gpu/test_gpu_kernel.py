"""`gpu.kernel`: WGSL of users, with derivatives, under transforms, and what is said when it is wrong."""

from typing import Any

import numpy as np
import pytest
import wengert as wg
from messages import assert_message

SAXPY = """
override factor: f32 = 2.0;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if (id.x < arrayLength(&out)) { out[id.x] = factor * x[id.x] + y[id.x]; }
}
"""

SOFTSIGN = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if (id.x < arrayLength(&out)) { out[id.x] = x[id.x] / (1.0 + abs(x[id.x])); }
}
"""

MATMUL = """
override n: u32;
override k: u32;
@group(0) @binding(3) var<storage, read> a: array<f32>;
@group(0) @binding(5) var<storage, read> b: array<f32>;
@group(0) @binding(7) var<storage, read_write> c: array<f32>;
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if (id.x >= n || id.y * n >= arrayLength(&c)) { return; }
    var sum = 0.0;
    for (var i = 0u; i < k; i++) { sum += a[id.y * k + i] * b[i * n + id.x]; }
    c[id.y * n + id.x] = sum;
}
"""

TWO = """
@group(0) @binding(0) var<storage, read> x: array<i32>;
@group(0) @binding(1) var<storage, read_write> total: array<atomic<i32>>;
@group(0) @binding(2) var<storage, read_write> parity: array<i32>;
@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if (id.x < arrayLength(&x)) { atomicAdd(&total[0], x[id.x]); parity[id.x] = x[id.x] & 1; }
}
"""

gpu = pytest.mark.gpu


def on_gpu(values: Any) -> wg.Tensor:
    return wg.tensor(values, dtype=wg.float32).to("gpu")


def softsign() -> Any:
    """The function with a reverse rule."""
    kernel = wg.gpu.kernel(SOFTSIGN, name="softsign")
    kernel.defvjp(lambda x: (kernel(x), x), lambda x, g: (g / (1 + x.abs()).square(),))
    return kernel


def test_what_a_shader_says_of_itself() -> None:
    kernel = wg.gpu.kernel(SAXPY, name="saxpy")
    assert kernel.inputs == [("x", "float32"), ("y", "float32")]
    assert kernel.outputs == [("out", "float32")]
    assert kernel.workgroup_size == (64, 1, 1)
    assert repr(kernel) == "<gpu.kernel saxpy(x: float32, y: float32) -> out: float32>"


@gpu
def test_values_by_position_and_by_name() -> None:
    kernel = wg.gpu.kernel(SAXPY, constants={"factor": 3})
    x, y = on_gpu(np.arange(150.0)), on_gpu(np.ones(150))
    expected = 3 * np.arange(150.0) + 1
    assert np.array_equal(kernel(x, y).cpu().numpy(), expected)
    assert np.array_equal(kernel(y=y, x=x).cpu().numpy(), expected)
    assert np.array_equal(wg.gpu.kernel(SAXPY)(x, x).cpu().numpy(), 3 * np.arange(150.0))


@gpu
def test_views_arrive_contiguous_and_alone() -> None:
    kernel = wg.gpu.kernel(SAXPY, "x")
    base = on_gpu(np.arange(24.0).reshape(4, 6))
    x, y = base.T[1:], base[1:, ::2].flatten()[:1].expand(5, 4)
    found = kernel(x, y)
    assert found.shape == (5, 4)
    assert np.array_equal(found.cpu().numpy(), 2 * np.arange(24.0).reshape(4, 6).T[1:] + 6)


@gpu
def test_shapes_groups_and_constants() -> None:
    a, b = np.random.default_rng(0).normal(size=(5, 11)), np.random.default_rng(1).normal(size=(11, 9))
    kernel = wg.gpu.kernel(
        MATMUL,
        lambda a, b: (a.shape[0], b.shape[1]),
        groups=lambda a, b: (-(-b.shape[1] // 8), -(-a.shape[0] // 8)),
        constants={"n": 9, "k": 11},
    )
    np.testing.assert_allclose(kernel(on_gpu(a), on_gpu(b)).cpu().numpy(), a @ b, rtol=1e-5)
    assert kernel.workgroup_size == (8, 8, 1)


DOUBLED = """
@compute @workgroup_size(64)
fn doubled(@builtin(global_invocation_id) id: vec3u) {
    if (id.x < arrayLength(&out)) { out[id.x] = 2.0 * (factor * x[id.x] + y[id.x]); }
}
"""


@gpu
def test_settings_of_the_class() -> None:
    """The class takes what `kernel` takes."""
    x, y = on_gpu(np.arange(150.0)), on_gpu(np.ones(150))
    expected = 2 * (3 * np.arange(150.0) + 1)
    kernel = wg.gpu.Kernel(SAXPY + DOUBLED, entry="doubled", constants={"factor": 3}, name="twice")
    assert np.array_equal(kernel(x, y).cpu().numpy(), expected)
    assert repr(kernel).startswith("<gpu.kernel twice(")
    assert np.array_equal(
        wg.gpu.kernel(SAXPY + DOUBLED, entry="main")(x, y).cpu().numpy(), 2 * np.arange(150.0) + 1
    )
    first = wg.gpu.Kernel(SAXPY, groups=1)
    assert np.array_equal(first(x, y).cpu().numpy()[:65], [*(2 * np.arange(64.0) + 1), 0.0])
    assert wg.gpu.Kernel(SAXPY, outputs=(30,), groups=1)(x, y).shape == (30,)


@gpu
def test_several_outputs_begin_as_zeros() -> None:
    kernel = wg.gpu.kernel(TWO, {"total": (1,), "parity": "x"}, groups=3)
    for _ in range(3):
        total, parity = kernel(wg.arange(40, dtype=wg.int32).to("gpu"))
        assert total.cpu().tolist() == [780]
        assert parity.cpu().tolist() == [0, 1] * 20


@gpu
def test_out_of_bounds_does_no_harm() -> None:
    wild = SAXPY.replace("if (id.x < arrayLength(&out)) { out[id.x]", "{ out[id.x * 1000u]")
    guard = on_gpu(np.full(64, 7.0))
    wg.gpu.kernel(wild, groups=100)(on_gpu(np.ones(64)), on_gpu(np.ones(64))).cpu()
    assert guard.cpu().tolist() == [7.0] * 64


@gpu
def test_empty() -> None:
    assert wg.gpu.kernel(SOFTSIGN)(wg.zeros(0, 3, device="gpu")).shape == (0, 3)


@gpu
def test_reverse_rule_under_every_transform() -> None:
    f = softsign()
    x = np.array([-2.0, -0.5, 0.0, 1.0, 3.0])
    slope = 1 / (1 + np.abs(x)) ** 2
    t = on_gpu(x).requires_grad_()
    y = f(t)
    assert y.grad_fn.op == "softsign"
    y.sum().backward()
    np.testing.assert_allclose(t.grad.cpu().numpy(), slope, rtol=1e-6)
    np.testing.assert_allclose(wg.grad(lambda x: f(x).sum())(on_gpu(x)).cpu().numpy(), slope, rtol=1e-6)
    _, tangent = wg.jvp(f, (on_gpu(x),), (on_gpu(np.ones(5)),))
    np.testing.assert_allclose(tangent.cpu().numpy(), slope, rtol=1e-6)
    each = wg.vmap(wg.grad(lambda x: f(x)))(on_gpu(x))
    np.testing.assert_allclose(each.cpu().numpy(), slope, rtol=1e-6)
    second = wg.grad(lambda x: wg.grad(lambda x: f(x).sum())(x).sum())(on_gpu(x))
    np.testing.assert_allclose(second.cpu().numpy(), -2 * np.sign(x) / (1 + np.abs(x)) ** 3, rtol=1e-5)


@gpu
def test_forward_rule() -> None:
    f = wg.gpu.kernel(SOFTSIGN, name="softsign")

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return f(x), t / (1 + x.abs()).square()

    x = np.array([-2.0, 0.5])
    found = wg.grad(lambda x: f(x).sum())(on_gpu(x))
    np.testing.assert_allclose(found.cpu().numpy(), 1 / (1 + np.abs(x)) ** 2, rtol=1e-6)


@gpu
def test_vmap_runs_once_per_example() -> None:
    kernel = wg.gpu.kernel(SAXPY)
    x, y = np.arange(12.0).reshape(3, 4), np.arange(4.0)
    found = wg.vmap(kernel, in_dims=(0, None))(on_gpu(x), on_gpu(y))
    assert np.array_equal(found.cpu().numpy(), 2 * x + y)
    columns = wg.vmap(kernel, in_dims=(1, 0), out_dims=1)(on_gpu(x), on_gpu(np.ones((4, 3))))
    assert np.array_equal(columns.cpu().numpy(), 2 * x + 1)
    twice = wg.vmap(wg.vmap(wg.gpu.kernel(SAXPY)))(on_gpu(np.ones((2, 3, 4))), on_gpu(np.ones((2, 3, 4))))
    assert twice.cpu().tolist() == [[[3.0] * 4] * 3] * 2


@gpu
def test_a_batching_rule_of_the_user() -> None:
    kernel = wg.gpu.kernel(SOFTSIGN)
    calls = []

    class Softsign(wg.autograd.Function):
        @staticmethod
        def forward(x: wg.Tensor) -> wg.Tensor:
            return kernel(x)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: wg.Tensor) -> wg.Tensor:
            (x,) = ctx.saved_tensors
            return g / (1 + x.abs()).square()

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: wg.Tensor) -> Any:
            calls.append(tuple(x.shape))
            return kernel(x), in_dims[0]

    found = wg.vmap(Softsign.apply)(on_gpu(np.ones((3, 2))))
    assert found.cpu().tolist() == [[0.5, 0.5]] * 3
    assert calls == [(3, 2)]


@gpu
def test_without_a_rule_the_derivative_says_so() -> None:
    kernel = wg.gpu.kernel(SOFTSIGN, name="softsign")
    x = on_gpu(np.ones(2)).requires_grad_()
    y = kernel(x)
    message = (
        "gpu.kernel softsign has no derivative; define one with its defvjp(fwd, bwd) or defjvp(jvp), or "
        "detach() its inputs"
    )
    with pytest.raises(NotImplementedError) as caught:
        y.sum().backward()
    assert message in str(caught.value)
    with pytest.raises(NotImplementedError, match="has no derivative"):
        wg.jvp(kernel, (on_gpu([1.0]),), (on_gpu([1.0]),))
    with wg.no_grad():
        assert kernel(x).cpu().tolist() == [0.5, 0.5]


def test_tensors_on_the_cpu_are_refused() -> None:
    with pytest.raises(wg.DeviceError) as caught:
        wg.gpu.kernel(SOFTSIGN, name="softsign")(wg.ones(3))
    assert str(caught.value) == (
        "gpu.kernel softsign: input x is on the cpu, and WGSL runs on a GPU alone; move it with .to('gpu')"
    )


@gpu
def test_inputs_of_another_dtype_are_refused() -> None:
    with pytest.raises(TypeError) as caught:
        wg.gpu.kernel(SOFTSIGN, name="softsign")(wg.ones(3, dtype=wg.int32).to("gpu"))
    assert str(caught.value) == (
        "gpu.kernel softsign: input x is int32, but the shader declares elements of float32; convert it with "
        ".to(wengert.float32)"
    )


@gpu
def test_too_many_workgroups_are_refused() -> None:
    most = wg.gpu.info()["limits"]["max_compute_workgroups_per_dimension"]
    with pytest.raises(ValueError) as caught:
        wg.gpu.kernel(SOFTSIGN, groups=most + 1)(on_gpu([1.0]))
    assert str(caught.value) == (
        f"gpu.kernel kernel: {most + 1} workgroups along one axis, but gpu:0 takes at most {most}; use more "
        "axes or larger workgroups"
    )


def test_a_shader_that_does_not_parse_names_the_line() -> None:
    with pytest.raises(ValueError) as caught:
        wg.gpu.kernel(SOFTSIGN.replace("abs(x[id.x])", "abs(x[id.x]"), name="softsign")
    message = str(caught.value)
    assert message.startswith("gpu.kernel softsign: the shader does not parse\n")
    assert "wgsl:6:" in message
    assert "out[id.x] = x[id.x] / (1.0 + abs(x[id.x]" in message


def test_a_shader_that_is_not_valid_names_the_line() -> None:
    with pytest.raises(ValueError) as caught:
        wg.gpu.kernel(SOFTSIGN.replace("out[id.x] = ", "x[id.x] = "), name="softsign")
    message = str(caught.value)
    assert message.startswith("gpu.kernel softsign: the shader ")
    assert "wgsl:6:" in message


WRONG = {
    "no output": (
        SOFTSIGN.replace("read_write> out", "read> out").replace(
            "out[id.x] = x[id.x] / (1.0 + abs(x[id.x]));", ""
        ),
        {},
        ValueError,
        "gpu.kernel k: the shader declares no output; declare one as "
        "`@group(0) @binding(1) var<storage, read_write> "
        "out: array<f32>;`",
    ),
    "uniform": (
        SOFTSIGN.replace("var<storage, read> x: array<f32>", "var<uniform> x: array<vec4f, 4>").replace(
            "x[id.x] / (1.0 + abs(x[id.x]))", "x[0].x"
        ),
        {},
        ValueError,
        "gpu.kernel k: variable x is no storage buffer, and nothing would be bound to it; declare numbers as "
        "`override x: f32;` and pass constants=, or pass a tensor",
    ),
    "group": (
        SOFTSIGN.replace("@group(0) @binding(1)", "@group(1) @binding(1)"),
        {},
        ValueError,
        "gpu.kernel k: variable out is not in group 0; declare it with @group(0)",
    ),
    "gaps": (
        SOFTSIGN.replace("x: array<f32>", "x: array<vec3f>").replace("x[id.x]", "x[id.x].x"),
        {},
        ValueError,
        "gpu.kernel k: variable x is no array of f32, i32, u32 or f16 (or vectors of them without gaps)",
    ),
    "entry": (
        SOFTSIGN,
        {"entry": "start"},
        ValueError,
        "gpu.kernel k: no compute entry point is named 'start'; there are main",
    ),
    "constant": (
        SOFTSIGN,
        {"constants": {"factor": 1}},
        ValueError,
        "gpu.kernel k: constants: pipeline-overridable constant 'factor' not found in the shader",
    ),
    "missing constant": (
        SAXPY.replace("factor: f32 = 2.0", "factor: f32"),
        {},
        ValueError,
        "gpu.kernel k: constants: Missing value for pipeline-overridable constant with identifier string: "
        "'factor'",
    ),
    "outputs": (
        TWO,
        {"outputs": {"total": (1,)}},
        TypeError,
        "gpu.kernel k: outputs= names ['total'], but the writable buffers of the shader are ['parity', "
        "'total']",
    ),
    "one shape for two": (
        TWO,
        {"outputs": (1,)},
        TypeError,
        "gpu.kernel k: it has 2 outputs (total, parity); pass outputs= as a dict with the shape of each",
    ),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_declarations_that_cannot_be_bound(name: str) -> None:
    source, options, kind, message = WRONG[name]
    assert_message(lambda: wg.gpu.kernel(source, name="k", **options), kind, message)


def test_calls_with_wrong_arguments() -> None:
    kernel = wg.gpu.kernel(SAXPY, name="saxpy")
    with pytest.raises(TypeError) as caught:
        kernel(wg.ones(2))
    assert str(caught.value) == "gpu.kernel saxpy: it takes 2 inputs (x, y), got 1 by position and [] by name"
    with pytest.raises(TypeError) as caught:
        kernel(wg.ones(2), 3.0)
    message = "gpu.kernel saxpy: input y is float, expected a tensor; numbers go to constants="
    assert str(caught.value) == message
