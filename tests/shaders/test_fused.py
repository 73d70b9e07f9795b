"""fused: any number of inputs and outputs, in order, broadcast, strided, by vectors and one for four."""

import numpy as np
import pytest
from shaders.host import BF16, by_fours, close, load, run
from shaders.views import View, dense, random_values, view


def fused(views, body, outputs, attributes=(), forms=None, parts=None):
    """Runs a chain on views of one (already broadcast) shape; `forms` are those of `test_map.py`. Of what fills
    only a part, `parts` has the first indices and whether it is added."""
    parts = parts or {}
    shape = views[0].array.shape
    count = int(np.prod(shape))
    rows, inputs, replace = [], [], {"fn op": f"fn op(x: In) -> Out {{ {body} }}"}
    for k, v in enumerate(views):
        form, name = (forms or {}).get(k, ""), f"x{k}"
        replace[f"load {name}"] = load(name, v.flat.dtype)
        if form == "vector":
            replace |= by_fours(name, f"read {k}", v.flat.dtype)
        elif form == "one":
            one = f"fn load4_{name}(i: vec4<u32>) -> vec4<T> {{ return vec4<T>(load_{name}(i.x)); }}"
            replace[f"load4 {name}"] = one
        in_order = v.array.flags.c_contiguous and v.array.size == count and k not in parts
        starts, adds = parts.get(k, ([0] * len(shape), False))
        lies = "PART" if k in parts else "IN_ORDER" if in_order else "ADJACENT" if form else "APART"
        replace[f"const {name}"] = f"const LIES_{name}: u32 = {lies};"
        counts = v.array.shape if k in parts else [0] * len(shape)
        own = [] if in_order else [*map(list, zip(shape, v.strides, starts, counts, strict=True))]
        inputs.append([v.offset, len(rows), len(own), -0.0 if adds else 0.0])
        rows += own
    for k, dtype in enumerate(outputs):
        replace |= by_fours(f"y{k}", f"read_write {len(views) + k}", dtype)
    rows = rows or [[0] * 4]
    numbers = [*map(float, attributes)] + [0.0] * (-len(attributes) % 4 or 4 * (not attributes))
    replace["const INPUTS"] = f"const INPUTS: u32 = {len(views)}u;"
    replace["const AXES"] = f"const AXES: u32 = {len(rows)}u;"
    replace["const ATTRIBUTES"] = f"const ATTRIBUTES: u32 = {len(numbers) // 4}u;"
    params = [*inputs, *rows, *numbers, count]
    outs = [(shape, dtype) for dtype in outputs]
    flat = [v.flat for v in views]
    return run("fused.wgsl", flat, outs, params, -(-count // 1024), replace, fours=True, lists=True)


@pytest.mark.parametrize("shape", [(1,), (7,), (4, 5), (3, 2, 8), (1031,), (2, 3, 1, 12)])
def test_many_inputs_and_outputs(shape):
    a, b, c = (view(seed, shape) for seed in (1, 5, 9))
    d = dense(random_values(13, shape, np.float16))
    body = (
        "let s = x.x0 * x.x1 + x.x2; return Out(s, select(0.0, 1.0, s > x.x3), s * p.chain.attributes[0][1]);"
    )
    y, mask, scaled = fused([a, b, c, d], body, [np.float32, np.bool_, np.float16], [3.0, 0.5])
    s = a.array.astype(np.float64) * b.array + c.array
    close(y, s)
    close(scaled, s * 0.5, np.float16)
    near = np.abs(s - d.array.astype(np.float64)) < 1e-5
    np.testing.assert_array_equal(mask[~near], (s > d.array)[~near])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16, np.bool_])
def test_by_vectors_in_order_and_one_for_four(dtype):
    wide = random_values(3, (8 + 6 * 12,), dtype)
    matrix = View(wide, wide[8:].reshape(6, 12), 8)
    row = random_values(4, (16,), dtype)
    spread = View(row, np.broadcast_to(row[4:], (6, 12)), 4)
    column = random_values(5, (6,), dtype)
    ones = View(column, np.broadcast_to(column[:, None], (6, 12)), 0)
    (got,) = fused(
        [matrix, spread, ones],
        "return Out(x.x0 + 2.0 * x.x1 + 4.0 * x.x2);",
        [np.float32],
        forms={0: "vector", 1: "vector", 2: "one"},
    )
    x, y, z = (v.array.astype(np.float64) for v in (matrix, spread, ones))
    close(got, x + 2 * y + 4 * z)


def test_inputs_are_bound_in_order():
    arrays = [dense(random_values(k, (5,), np.float32)) for k in range(6)]
    (got,) = fused(arrays, "return Out(x.x0 - x.x1 + x.x2 - x.x3 + x.x4 - x.x5);", [np.float32])
    close(got, sum((-1) ** k * v.array.astype(np.float64) for k, v in enumerate(arrays)))


PARTS = [
    ((4, 6, 5), (2, 3, 5), (1, 3, 0)),
    ((9,), (4,), (5,)),
    ((9,), (0,), (4,)),
    ((4, 6), (0, 0), (1, 1)),
    ((4, 6), (0, 6), (4, 0)),
]


@pytest.mark.parametrize(("shape", "part", "starts"), PARTS)
def test_parts(shape, part, starts):
    whole = view(1, shape)
    # Of an empty part nothing may be read: behind its end lie other numbers.
    a, b = (
        view(k, part) if np.prod(part) else View(np.full(16, 7.0, np.float32), np.zeros(part, np.float32), 9)
        for k in (2, 3)
    )
    region = tuple(slice(i, i + n) for i, n in zip(starts, part, strict=True))
    negative = np.full(shape, -0.0, np.float32)
    body = "return Out(x.x0 + x.x1, x.x2, x.x3 + x.x1);"
    parts = {1: (starts, True), 2: (starts, False)}
    views = [whole, a, b, dense(negative)]
    added, placed, zeros = fused(views, body, [np.float32] * 3, parts=parts)
    want = whole.array.copy()
    want[region] += a.array
    close(added, want)
    want = np.zeros(shape, np.float32)
    want[region] = b.array
    np.testing.assert_array_equal(placed, want)
    # What is not added to keeps its sign.
    outside = np.ones(shape, bool)
    outside[region] = False
    assert np.signbit(zeros[outside]).all()
    assert not np.signbit(placed[outside]).any()
