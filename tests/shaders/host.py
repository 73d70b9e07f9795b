"""A small second host for `shaders/`, on wgpu-py: runs one file on NumPy arrays, apart from the Rust host.

The two hosts share only the WGSL files and the conventions of `shaders/README.md`; a mistake in a shader and
the same mistake in the Rust host therefore cannot hide each other. Outputs start out poisoned, so a word that
a kernel forgets is seen.
"""

import functools
import os
import pathlib
import re
import struct

import ml_dtypes
import numpy as np
import wgpu

SHADERS = pathlib.Path(__file__).resolve().parents[2] / "shaders"
POISON = 0x7FC0DEAD
BF16 = ml_dtypes.bfloat16
PACKED = (np.dtype(np.float16), np.dtype(BF16))


@functools.cache
def device():
    """The one device of the test process, on a software adapter where WENGERT_GPU asks for one, as in the
    Rust host."""
    in_software = os.environ.get("WENGERT_GPU") == "software"
    adapter = wgpu.gpu.request_adapter_sync(
        power_preference="high-performance", force_fallback_adapter=in_software
    )
    wanted = ("max-storage-buffers-per-shader-stage", "max-storage-buffer-binding-size", "max-buffer-size")
    limits = {name: adapter.limits[name] for name in wanted}
    features = {"subgroup", "shader-f16"} & adapter.features
    return adapter.request_device_sync(required_limits=limits, required_features=features)


@functools.cache
def subgroups():
    """The sizes of subgroups that kernels may assume here: 1 for none, 4, and the size that there is."""
    if "subgroup" not in device().features:
        return [1]
    lines = [
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;",
        "@compute @workgroup_size(256) fn main(@builtin(subgroup_size) size: u32) { out[0] = size; }",
    ]
    buffer = device().create_buffer(size=16, usage=wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC)
    made = device().create_compute_pipeline(
        layout="auto", compute={"module": device().create_shader_module(code="\n".join(lines))}
    )
    entry = {"binding": 0, "resource": {"buffer": buffer}}
    group = device().create_bind_group(layout=made.get_bind_group_layout(0), entries=[entry])
    encoder = device().create_command_encoder()
    step = encoder.begin_compute_pass()
    step.set_pipeline(made)
    step.set_bind_group(0, group)
    step.dispatch_workgroups(1)
    step.end()
    device().queue.submit([encoder.finish()])
    return sorted({1, 4, int(np.frombuffer(device().queue.read_buffer(buffer), np.uint32)[0])})


#: What another thread of a subgroup has, by workgroup memory: subgroups of any size on any adapter.
BY_MEMORY = """
var<private> lane_of_all: u32;
var<workgroup> of_all: array<f32, 256>;
fn other(v: f32, step: u32) -> f32 {
  workgroupBarrier();
  of_all[lane_of_all] = v;
  workgroupBarrier();
  return of_all[lane_of_all ^ step];
}"""


def shuffles(size):
    """The replacement with which subgroups have `size` threads."""
    if size == 1:
        return {}
    of_hardware = "fn other(v: f32, step: u32) -> f32 { return subgroupShuffleXor(v, step); }"
    return {"shuffle SUBGROUP": of_hardware if size in subgroups() else BY_MEMORY}


def load(name, dtype, compute="f32"):
    """The WGSL load function of binding `name` for elements of `dtype`, converted to the compute type."""
    dtype = np.dtype(dtype)
    body = {
        np.dtype(np.float32): f"T(bitcast<f32>({name}[i]))",
        np.dtype(np.int32): f"T(bitcast<i32>({name}[i]))",
        np.dtype(np.uint32): f"T({name}[i])",
        np.dtype(np.bool_): f"T({name}[i])",
        np.dtype(np.float16): f"T(unpack2x16float({name}[i >> 1u])[i & 1u])",
        np.dtype(BF16): f"T(bitcast<f32>(({name}[i >> 1u] >> ((i & 1u) * 16u)) << 16u))",
    }[dtype]
    return f"fn load_{name}(i: u32) -> T {{ return {body}; }}"


def store(name, dtype):
    """The WGSL store function of binding `name` for elements of `dtype`."""
    dtype = np.dtype(dtype)
    extra = ""
    if dtype == BF16:
        extra = (
            f"fn bf16_{name}(v: T) -> u32 {{ let b = bitcast<u32>(f32(v)); "
            "return select((b + 0x7fffu + ((b >> 16u) & 1u)) >> 16u, 0x7fc0u, "
            "(b & 0x7fffffffu) > 0x7f800000u); }\n"
        )
    body = {
        np.dtype(np.float32): "bitcast<u32>(f32(v.x))",
        np.dtype(np.int32): "bitcast<u32>(i32(v.x))",
        np.dtype(np.uint32): "u32(v.x)",
        np.dtype(np.bool_): "select(0u, 1u, v.x != T(0))",
        np.dtype(np.float16): "pack2x16float(vec2<f32>(v))",
        np.dtype(BF16): f"bf16_{name}(v.x) | (bf16_{name}(v.y) << 16u)",
    }[dtype]
    return f"{extra}fn store_{name}(w: u32, v: vec2<T>) {{ {name}[w] = {body}; }}"


def types(compute="f32", out=("out", np.float32), **inputs):
    """The replacements that give a file its types: compute type, output (name, dtype), inputs by name."""
    table = {f"load {name}": load(name, dtype) for name, dtype in inputs.items()}
    table["alias T"] = f"alias T = {compute};"
    table[f"store {out[0]}"] = store(*out)
    table["const EPW"] = f"const EPW: u32 = {epw(out[1])}u;"
    return table


def by_fours(name, access, dtype, compute="f32"):
    """The replacements that bind `name` by vectors of four elements; an input ("read") or output."""
    kind = "vec2<u32>" if epw(dtype) == 2 else "vec4<u32>"
    number = int(re.search(r"\d+", access)[0])
    access = access.removesuffix(str(number)).strip()
    words = f"@group(0) @binding({number}) var<storage, {access}> {name}: array<{kind}>;"
    v = f"{name}[i.x / 4u]"
    loaded = {
        np.dtype(np.float32): f"bitcast<vec4<f32>>({v})",
        np.dtype(np.int32): f"bitcast<vec4<i32>>({v})",
        np.dtype(np.uint32): v,
        np.dtype(np.bool_): v,
        np.dtype(np.float16): f"vec4<f32>(unpack2x16float({v}.x), unpack2x16float({v}.y))",
        np.dtype(BF16): f"bitcast<vec4<f32>>(({v}.xxyy >> vec4<u32>(0u, 16u, 0u, 16u)) << vec4<u32>(16u))",
    }[np.dtype(dtype)]
    if access == "read":
        load4 = f"fn load4_{name}(i: vec4<u32>) -> vec4<T> {{ return vec4<T>({loaded}); }}"
        one = f"fn load_{name}(i: u32) -> T {{ return load4_{name}(vec4<u32>(i))[i % 4u]; }}"
        return {f"words {name}": words, f"load4 {name}": load4, f"load {name}": one}
    # The stores of `store`, into words of their own.
    own = store(f"word_{name}", dtype).replace(f"word_{name}[w] =", "return").replace("(w: u32, ", "(")
    own = own.replace("v: vec2<T>)", "v: vec2<T>) -> u32")
    parts = ["v.xy", "v.zw"] if epw(dtype) == 2 else ["v.xx", "v.yy", "v.zz", "v.ww"]
    made = f"{kind}({', '.join(f'store_word_{name}({part})' for part in parts)})"
    four = f"fn store4_{name}(i: u32, v: vec4<T>) {{ {name}[i / 4u] = {made}; }}"
    return {f"words {name}": words, f"store4 {name}": f"{own}\n{four}"}


def has_halves():
    """Whether shaders may have the type f16 here."""
    return "shader-f16" in device().features


def as_halves(*inputs, sums=True):
    """The replacements with which products load operands of float16 as f16: (name, binding, by fours). With
    `sums` they are those of tiles, which have sums of rows beside them."""
    table = {"halves S": "alias S = f16;"}
    if sums:
        table["halves put"] = "fn put_sum(i: u32, v: vec4<T>) { sums[i] = v; }"
        declared = "var<workgroup> sums: array<vec4<f32>, BLOCKS_A>;"
        table["halves sum"] = f"{declared}\nfn sum_at(i: u32) -> vec4<T> {{ return sums[i]; }}"
    for name, number, four in inputs:
        kind = "vec4<f16>" if four else "f16"
        head = f"@group(0) @binding({number}) var<storage, read> {name}: array<{kind}>;"
        one = f"{name}[i / 4u][i % 4u]" if four else f"{name}[i]"
        table |= {f"words {name}": head, f"load {name}": f"fn load_{name}(i: u32) -> S {{ return {one}; }}"}
        if four:
            vector = f"fn load4_{name}(i: vec4<u32>) -> vec4<S> {{ return {name}[i.x / 4u]; }}"
            table[f"load4 {name}"] = vector
    return table


def epw(dtype):
    """Elements per 32-bit word."""
    return 2 if np.dtype(dtype) in PACKED else 1


def source(file):
    """The text of `file` behind the files of `lib/` that its `//@ use` lines name."""
    text = (SHADERS / file).read_text(encoding="utf-8")
    names = re.findall(r"^//@ use (\w+)$", text, re.MULTILINE)
    return "".join((SHADERS / "lib" / f"{name}.wgsl").read_text(encoding="utf-8") for name in names) + text


def listed(text, inputs, outputs):
    """The source with the marked lines about input `x0` and output `y0` repeated for so many of each, and the
    bindings numbered in order."""
    out, mark = [], None
    for line in text.splitlines():
        own = mark and re.search(r"\b([xy])0$", mark)
        role, count = (own[1], {"x": inputs, "y": outputs}[own[1]]) if own else ("", 1)
        for k in range(count):
            copy = line.replace(f"{role}0", f"{role}{k}").replace("(0u", f"({k}u") if own else line
            out += [mark.replace(f"{role}0", f"{role}{k}"), copy] if own else [copy]
        mark = line if line.strip().startswith("//@ ") else None
        if mark and re.search(r"\b[xy]0$", mark):
            out.pop()
    numbers = iter(range(inputs + outputs + 1))
    return re.sub(r"@binding\(\d+\)", lambda _: f"@binding({next(numbers)})", "\n".join(out))


def expand(file, replace, lists=None):
    """The source of `file`, each line after a `//@ key` marker replaced by `replace[key]` where given.

    A line that `slots 0` marks is repeated for each of SLOTS, one about an input or output of `lists` for each
    of these."""
    unused = set(replace)
    text = listed(source(file), *lists) if lists else source(file)
    lines, out = text.splitlines(), []
    slots = int(re.search(r"(\d+)u;", replace.get("const SLOTS", "1u;"))[1])
    key = None
    for line in lines:
        if key is not None and key in replace:
            line = replace[key]
            unused.discard(key)
        elif key == "const IS_FLOAT" and replace.get("alias T", "alias T = f32;") != "alias T = f32;":
            line = "const IS_FLOAT: bool = false;"
        elif key == "slots 0":
            line = "\n".join(line.replace("_0", f"_{k}").replace("(0u", f"({k}u") for k in range(slots))
        key = line.strip()[4:].strip() if line.strip().startswith("//@ ") else None
        out.append(line)
    assert not unused, f"{file} has no markers {sorted(unused)}"
    if BY_MEMORY in out:
        known = r"(@builtin\(local_invocation_index\) (\w+): u32,\n\) \{)"
        return re.sub(known, r"\1 lane_of_all = \2;", "\n".join(out))
    return "\n".join(["enable f16;"] * ("halves S" in replace) + out)


@functools.cache
def bind_layout(inputs, outputs):
    """Inputs, outputs, then the parameter block: the one binding scheme of all files."""
    kinds = ["read-only-storage"] * inputs + ["storage"] * outputs + ["uniform"]
    entries = [
        {"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kind}}
        for i, kind in enumerate(kinds)
    ]
    return device().create_bind_group_layout(entries=entries)


@functools.lru_cache(maxsize=512)
def pipeline(source, entry, inputs, outputs):
    """The compute pipeline of one expanded source."""
    module = device().create_shader_module(code=source)
    layout = device().create_pipeline_layout(bind_group_layouts=[bind_layout(inputs, outputs)])
    return device().create_compute_pipeline(layout=layout, compute={"module": module, "entry_point": entry})


def encode(array):
    """The words of an array: packed for 16-bit floats, one word per element otherwise."""
    array = np.ascontiguousarray(array).reshape(-1)
    if array.dtype in PACKED:
        half = array.view(np.uint16)
        half = np.concatenate([half, np.full(len(half) % 2, 0xDEAD, np.uint16)])
        return half.view(np.uint32)
    if array.dtype == np.bool_:
        return array.astype(np.uint32)
    assert array.dtype.itemsize == 4, array.dtype
    return array.view(np.uint32)


def decode(words, shape, dtype):
    """The array that `words` hold."""
    count = int(np.prod(shape))
    if np.dtype(dtype) in PACKED:
        return words.view(np.uint16)[:count].view(dtype).reshape(shape)
    if np.dtype(dtype) == np.bool_:
        assert np.isin(words[:count], (0, 1)).all()
        return words[:count].astype(np.bool_).reshape(shape)
    return words[:count].view(dtype).reshape(shape)


def axes(values):
    """Eight words for an `array<vec4<u32>, 2>`: values, then zeros; negative strides wrap."""
    values = list(values)
    assert len(values) <= 8
    return [int(v) & 0xFFFFFFFF for v in values] + [0] * (8 - len(values))


def words(params):
    """The parameter block: ints in two's complement, floats as f32 bits, lists flattened; 16-byte padded."""
    out = b""
    for value in params:
        if isinstance(value, (list, tuple)):
            out += words(value)[: 4 * len(value)]
        elif isinstance(value, (float, np.floating)):
            out += struct.pack("<f", value)
        else:
            out += struct.pack("<I", int(value) & 0xFFFFFFFF)
    return out + b"\0" * (-len(out) % 16)


def fold(groups, limit):
    """A grid of at least `groups` workgroups with no side above `limit`."""
    side_x = min(groups, limit)
    rest = -(-groups // side_x)
    side_y = min(rest, limit)
    return side_x, side_y, -(-rest // side_y)


def run(file, ins, outs, params, groups, replace=None, entry="main", limit=65535, fours=False, lists=False):
    """Run one file on arrays `ins`; `outs` are (shape, dtype), or arrays to update. Returns the outputs.

    With `fours` the last four elements of an output may be written whole; with `lists` the file has lists of
    inputs and outputs.
    """
    text = expand(file, dict(replace or {}), (len(ins), len(outs)) if lists else None)
    dev, pipe = device(), pipeline(text, entry, len(ins), len(outs))
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
    buffers, results = [], []
    for array in ins:
        data = encode(array)
        data = np.concatenate([data, np.full(-data.size % 4 or 4 * (not data.size), POISON, np.uint32)])
        buffers.append(dev.create_buffer_with_data(data=data, usage=usage))
    for spec in outs:
        if isinstance(spec, np.ndarray):
            data, spec = encode(spec), (spec.shape, spec.dtype)
            # Finite, so that arithmetic changes it.
            data = np.concatenate([data, np.full(-data.size % 4, 0x3FC0DEAD, np.uint32)])
        else:
            count = -(-int(np.prod(spec[0])) // epw(spec[1]))
            data = np.full(count // 4 * 4 + 8, POISON, np.uint32)
        buffers.append(dev.create_buffer_with_data(data=data, usage=usage))
        results.append((buffers[-1], spec, data))
    buffers.append(dev.create_buffer_with_data(data=words(params), usage=wgpu.BufferUsage.UNIFORM))
    entries = [
        {"binding": i, "resource": {"buffer": b, "offset": 0, "size": b.size}} for i, b in enumerate(buffers)
    ]
    bind = dev.create_bind_group(layout=bind_layout(len(ins), len(outs)), entries=entries)
    encoder = dev.create_command_encoder()
    step = encoder.begin_compute_pass()
    step.set_pipeline(pipe)
    step.set_bind_group(0, bind)
    step.dispatch_workgroups(*fold(max(groups, 1), limit))
    step.end()
    dev.queue.submit([encoder.finish()])
    out = []
    for buffer, (shape, dtype), before in results:
        data = np.frombuffer(dev.queue.read_buffer(buffer), np.uint32)
        used = -(-int(np.prod(shape)) // epw(dtype))
        used += -used % (4 // epw(dtype)) if fours else 0
        assert (data[used:] == before[used:]).all(), "wrote past the end"
        out.append(decode(data, shape, dtype).copy())
    return out


def close(got, want, dtype=np.float32, scale=1.0, rtol=None):
    """Compare with a float64 reference, within a few units of `dtype`'s precision."""
    unit = {np.dtype(np.float32): 2e-6, np.dtype(np.float16): 2e-3, np.dtype(BF16): 1.6e-2}[np.dtype(dtype)]
    got = np.asarray(got).astype(np.float64)
    np.testing.assert_allclose(got, want, rtol=rtol or unit * 2, atol=unit * scale)


def rng(seed):
    """A generator for test data."""
    return np.random.default_rng(seed)
