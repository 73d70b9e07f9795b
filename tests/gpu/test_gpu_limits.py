"""Tests of kernels on a GPU with the limits that every adapter has (`WENGERT_GPU_LIMITS=small`): no
subgroups, no immediates, 16 KiB of workgroup memory, bindings of 1 MiB, 64 workgroups along an axis, eight
storage buffers.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import wengert as wg

HERE = Path(__file__).parent

#: Files of tests, and which of their tests, all without.
SELECTED = {
    "test_gpu_pieces.py": "",
    "test_gpu_layouts.py": "",
    # Launches are counted of tensors that are cut there.
    "test_gpu_rows.py": "not read_once",
    "test_gpu_integers.py": "",
    "test_gpu_numbers.py": "",
    "test_gpu_reset.py": "",
    "test_gpu_training.py": "",
    "test_gpu_products.py": "halves",
    "test_gpu_convolution.py": "not float16 and not in_its_launch and not second",
    # One line of more than a binding cannot be sorted or transformed.
    "test_gpu_sorting.py": "not added_up_in_blocks",
    "test_gpu_fft.py": "not long_lines and not any_view",
    "test_gpu_complex.py": "",
    "test_gpu_assignment.py": "",
    "test_gpu_attention.py": "not memory_grows",
    "../staging/test_gpu_fusion.py": "not small_gpu",
    "test_gpu.py": "value_gradient and (matmul or conv or sum or softmax or sort or gather or cumsum or exp)",
}

LIMITS = {
    "max_compute_workgroup_storage_size": 16384,
    "max_storage_buffer_binding_size": 1 << 20,
    "max_storage_buffers_per_shader_stage": 8,
    "max_compute_workgroups_per_dimension": 64,
    "max_immediate_size": 0,
}


def test_an_adapter_has_more() -> None:
    if os.environ.get("WENGERT_GPU_LIMITS") == "small":
        pytest.skip("the limits are small")
    limits = wg.gpu.info()["limits"]
    assert all(limits[name] >= least for name, least in LIMITS.items())


@pytest.mark.parametrize("file", SELECTED)
def test_with_small_limits(file: str) -> None:
    environment = {**os.environ, "WENGERT_GPU_LIMITS": "small"}
    shown = "import wengert as wg; i = wg.gpu.info(); "
    shown += f"print([i['limits'][k] for k in {[*LIMITS]}], i['subgroups'])"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "gpu", "-n", "0", "-p", "no:cacheprovider"]
    command += [str(HERE / file), *(["-k", SELECTED[file]] if SELECTED[file] else [])]
    found = subprocess.run([sys.executable, "-c", shown], env=environment, capture_output=True, text=True)
    assert found.stdout.split(" False")[0] == str([*LIMITS.values()]), found.stderr
    result = subprocess.run(command, env=environment, cwd=HERE.parent.parent, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-1000:]


def test_halves_have_the_same_bits_in_every_way() -> None:
    """Products, convolutions and attention of float16 as float32, and from tiles of float16."""
    program = """if True:
        import numpy as np, wengert as wg, wengert.nn.functional as F
        print(wg.gpu.info()["float16_products"])
        g = np.random.default_rng(0)
        half = lambda *shape: wg.tensor(g.standard_normal(shape).astype("float16"), device="gpu")
        for m, k, n in ((70, 33, 90), (128, 64, 128), (300, 1100, 200), (4, 700, 40), (90, 500, 1)):
            print((half(m, k) @ half(k, n)).cpu().numpy().tobytes().hex())
            made = F.linear(half(m, k), half(n, k), half(n), activation="relu")
            print(made.cpu().numpy().tobytes().hex())
        print(F.conv2d(half(2, 5, 9, 9), half(6, 5, 3, 3)).cpu().numpy().tobytes().hex())
        q, k, v = (half(2, 2, 70, 24).requires_grad_() for _ in range(3))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        for x in (out.detach(), *wg.autograd.grad(out, [q, k, v], half(2, 2, 70, 24))):
            print(x.cpu().numpy().tobytes().hex())
    """
    found = []
    for limits in ("small", "standard"):
        environment = {**os.environ, "WENGERT_GPU_LIMITS": limits}
        result = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True
        )
        assert result.returncode == 0, result.stderr
        found.append(result.stdout.splitlines())
    (small, *want), (way, *got) = found
    assert small == "in float32; the adapter has no float16 in shaders"
    if "shader_f16" not in wg.gpu.info()["features"]:
        pytest.skip(f"products are {way}")
    assert way.startswith("from tiles of float16; ")
    assert got == want


def test_rows_have_the_same_bits_with_subgroups_of_every_size() -> None:
    """Of 4, 8 and 16 threads, as the software adapter takes them from its vectors, and without any."""
    if not wg.gpu.info()["adapter"].startswith("llvmpipe"):
        pytest.skip("the size of its subgroups cannot be chosen")
    program = """if True:
        import hashlib, numpy as np, wengert as wg, wengert.nn.functional as F
        print(wg.gpu.info()["subgroup_size"] if wg.gpu.info()["subgroups"] else None)
        for shape in ((3, 7), (70, 64), (9, 1000), (2, 20_000)):
            draw = lambda *s: wg.tensor(np.random.default_rng(0).standard_normal(s).astype("f"), device="gpu")
            x, w, b = (v.requires_grad_() for v in (draw(*shape), draw(shape[1]), draw(shape[1])))
            y = wg.arange(shape[0], dtype=wg.int32, device="gpu") % shape[1]
            made = [x.softmax(-1), x.log_softmax(-1), F.layer_norm(x, shape[1:], w, b)]
            made += [F.rms_norm(x, shape[1:], w), F.cross_entropy(x, y)]
            made += wg.autograd.grad(sum((v * v).sum() for v in made), [x, w, b])
            print(hashlib.sha256(b"".join(v.detach().cpu().numpy().tobytes() for v in made)).hexdigest())
    """
    found = {}
    for width, limits in (("128", ""), ("256", ""), ("512", ""), ("256", "small")):
        own = {"LP_NATIVE_VECTOR_WIDTH": width, "WENGERT_GPU_LIMITS": limits}
        command = [sys.executable, "-c", program]
        result = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        size, *bits = result.stdout.splitlines()
        found[size] = bits
    assert "None" in found
    assert len(found) > 2, "the driver does not take its vectors from the environment"
    assert all(bits == found["None"] for bits in found.values())


def test_parameters_in_buffers_are_those_of_their_launch() -> None:
    """More launches than the buffers of parameters hold, in flight at once."""
    program = """if True:
        import wengert as wg
        assert "immediates" not in wg.gpu.info()["features"]
        made = [wg.arange(i, i + 7, dtype=wg.int32, device="gpu") for i in range(2000)]
        assert [x.tolist() for x in made] == [list(range(i, i + 7)) for i in range(2000)]
    """
    environment = {**os.environ, "WENGERT_GPU_LIMITS": "small"}
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_parameters_with_the_commands_are_those_of_their_launch() -> None:
    if "immediates" not in wg.gpu.info()["features"]:
        pytest.skip("the adapter has no immediates")
    made = [wg.arange(i, i + 7, dtype=wg.int32, device="gpu") for i in range(2000)]
    assert [x.tolist() for x in made] == [list(range(i, i + 7)) for i in range(2000)]
