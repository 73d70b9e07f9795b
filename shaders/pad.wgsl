// Place x in a tensor of `fill`: out[start + step * i] = x[i] on every axis, `fill` elsewhere. It is pad, and
// the transpose of a slice.
//
// bindings  0 x (read), 1 out (write), 2 params
// grid      ceil(count / 1024) workgroups; linear fold over x, y, z
// workgroup 256 threads, four adjacent elements each; no workgroup memory
//
// `shape` is the output's, x_shape and x_strides are those of x. start may be negative (x is then cropped)
// and step negative (x is then reversed), but not 0; both are i32 in two's complement. fill is the bits of an
// f32 or i32, as T is. FOURS: the last axis is a multiple of four long. The last four elements of out are
// written whole.
struct Params {
  shape: array<vec4<u32>, 2>, x_shape: array<vec4<u32>, 2>, x_strides: array<vec4<u32>, 2>,
  start: array<vec4<u32>, 2>, step: array<vec4<u32>, 2>,
  ndim: u32, count: u32, x_off: u32, fill: u32,
}
@group(0) @binding(0) var<storage, read> x: array<u32>;
//@ words out
@group(0) @binding(1) var<storage, read_write> out: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
fn load4_x(i: vec4<u32>) -> vec4<T> { return vec4<T>(load_x(i.x), load_x(i.y), load_x(i.z), load_x(i.w)); }
//@ store4 out
fn store4_out(i: u32, v: vec4<T>) { out[i >> 2u] = bitcast<vec4<u32>>(v); }
//@ const FOURS
const FOURS: bool = false;
const STEPS: vec4<u32> = vec4<u32>(0u, 1u, 2u, 3u);


struct Place { at: u32, inside: bool }

// What coordinate c of out on an axis adds to a place in x.
fn along(axis: u32, c: u32) -> Place {
  let a = axis >> 2u;
  let b = axis & 3u;
  let step = bitcast<i32>(p.step[a][b]);
  var k = i32(c) - bitcast<i32>(p.start[a][b]);
  var inside = true;
  if (step != 1) {
    let whole = k / step;
    inside = whole * step == k;
    k = whole;
  }
  return Place(u32(k) * p.x_strides[a][b], inside && k >= 0 && k < i32(p.x_shape[a][b]));
}

// Where the element at linear index i over the first axes lies in x.
fn place(i: u32, axes: u32) -> Place {
  var rest = i;
  var found = Place(p.x_off, true);
  for (var d = axes; d > 0u && found.inside; d -= 1u) {
    let length = p.shape[(d - 1u) >> 2u][(d - 1u) & 3u];
    let next = rest / length;
    let part = along(d - 1u, rest - next * length);
    found = Place(found.at + part.at, part.inside);
    rest = next;
  }
  return found;
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let first = (group * 256u + t) * 4u;
  if (first >= p.count) { return; }
  let axis = p.ndim - 1u;
  var at = vec4<u32>();
  var inside = vec4<bool>();
  if (FOURS) {
    let length = p.shape[axis >> 2u][axis & 3u];
    let line = place(first / length, axis);
    for (var k = 0u; k < 4u; k += 1u) {
      let part = along(axis, first % length + k);
      at[k] = line.at + part.at;
      inside[k] = line.inside && part.inside;
    }
  } else {
    for (var k = 0u; k < 4u; k += 1u) {
      let found = place(min(first + k, p.count - 1u), p.ndim);
      at[k] = found.at;
      inside[k] = found.inside;
    }
  }
  var v = vec4<T>(bitcast<T>(p.fill));
  if (any(inside)) { v = select(v, load4_x(select(vec4<u32>(p.x_off), at, inside)), inside); }
  store4_out(first, v);
}
