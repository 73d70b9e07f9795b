// Elementwise skeleton with 4 inputs: out[i] = op(x[i], y[i], z[i], w[i]), broadcast and strided inputs,
// dense output.
//
// bindings  0 x, 1 y, 2 z, 3 w (read), 4 out (write), 5 params
// grid      ceil(count / 1024) workgroups; linear fold over x, y, z
// workgroup 256 threads, each making four adjacent elements; no workgroup memory
//
// The host replaces `op` by a rule's generated body; p.s0 and p.s1 are its attributes. CONTIGUOUS skips the
// index arithmetic when all inputs are dense and of the output's shape. Strides are in elements, 0 on
// broadcast axes; a negative stride wraps as two's complement. SPREAD finds the place of each element;
// without it the four are adjacent in an input, and it may be bound by vectors, or one stands for all. The
// last four are written whole, what is past the end into the padding of `out`.
struct Params {
  shape: array<vec4<u32>, 2>,
  x_strides: array<vec4<u32>, 2>,
  y_strides: array<vec4<u32>, 2>,
  z_strides: array<vec4<u32>, 2>,
  w_strides: array<vec4<u32>, 2>,
  ndim: u32, count: u32, x_off: u32, y_off: u32, z_off: u32, w_off: u32,
  s0: f32, s1: f32,
}
//@ words x
@group(0) @binding(0) var<storage, read> x: array<u32>;
//@ words y
@group(0) @binding(1) var<storage, read> y: array<u32>;
//@ words z
@group(0) @binding(2) var<storage, read> z: array<u32>;
//@ words w
@group(0) @binding(3) var<storage, read> w: array<u32>;
//@ words out
@group(0) @binding(4) var<storage, read_write> out: array<vec4<u32>>;
@group(0) @binding(5) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const CONTIGUOUS
const CONTIGUOUS: bool = false;
//@ const SPREAD
const SPREAD: bool = true;
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ load4 x
fn load4_x(i: vec4<u32>) -> vec4<T> { return vec4<T>(load_x(i.x), load_x(i.y), load_x(i.z), load_x(i.w)); }
//@ load y
fn load_y(i: u32) -> T { return bitcast<f32>(y[i]); }
//@ load4 y
fn load4_y(i: vec4<u32>) -> vec4<T> { return vec4<T>(load_y(i.x), load_y(i.y), load_y(i.z), load_y(i.w)); }
//@ load z
fn load_z(i: u32) -> T { return bitcast<f32>(z[i]); }
//@ load4 z
fn load4_z(i: vec4<u32>) -> vec4<T> { return vec4<T>(load_z(i.x), load_z(i.y), load_z(i.z), load_z(i.w)); }
//@ load w
fn load_w(i: u32) -> T { return bitcast<f32>(w[i]); }
//@ load4 w
fn load4_w(i: vec4<u32>) -> vec4<T> { return vec4<T>(load_w(i.x), load_w(i.y), load_w(i.z), load_w(i.w)); }
//@ store4 out
fn store4_out(i: u32, v: vec4<T>) { out[i >> 2u] = bitcast<vec4<u32>>(v); }
//@ fn op
fn op(x: T, y: T, z: T, w: T) -> T { return x; }

// The places that element i of the output is made from.
fn places(i: u32) -> vec4<u32> {
  var at = vec4<u32>(p.x_off, p.y_off, p.z_off, p.w_off);
  if (CONTIGUOUS) { return at + i; }
  var rest = i;
  for (var d = p.ndim; d > 1u; d -= 1u) {
    let a = (d - 1u) >> 2u;
    let b = (d - 1u) & 3u;
    let next = rest / p.shape[a][b];
    let strides = vec4<u32>(p.x_strides[a][b], p.y_strides[a][b], p.z_strides[a][b], p.w_strides[a][b]);
    at += (rest - next * p.shape[a][b]) * strides;
    rest = next;
  }
  return at + rest * vec4<u32>(p.x_strides[0].x, p.y_strides[0].x, p.z_strides[0].x, p.w_strides[0].x);
}

// Makes four elements from element i on.
fn make_four(i: u32) {
  if (i >= p.count) { return; }
  let a = places(i);
  var x_at = a.x + vec4<u32>(0u, 1u, 2u, 3u);
  var y_at = a.y + vec4<u32>(0u, 1u, 2u, 3u);
  var z_at = a.z + vec4<u32>(0u, 1u, 2u, 3u);
  var w_at = a.w + vec4<u32>(0u, 1u, 2u, 3u);
  if (SPREAD) {
    let b = places(min(i + 1u, p.count - 1u));
    let c = places(min(i + 2u, p.count - 1u));
    let d = places(min(i + 3u, p.count - 1u));
    x_at = vec4<u32>(a.x, b.x, c.x, d.x);
    y_at = vec4<u32>(a.y, b.y, c.y, d.y);
    z_at = vec4<u32>(a.z, b.z, c.z, d.z);
    w_at = vec4<u32>(a.w, b.w, c.w, d.w);
  }
  let x4 = load4_x(x_at);
  let y4 = load4_y(y_at);
  let z4 = load4_z(z_at);
  let w4 = load4_w(w_at);
  let low = vec2<T>(op(x4.x, y4.x, z4.x, w4.x), op(x4.y, y4.y, z4.y, w4.y));
  let high = vec2<T>(op(x4.z, y4.z, z4.z, w4.z), op(x4.w, y4.w, z4.w, w4.w));
  store4_out(i, vec4<T>(low.x, low.y, high.x, high.y));
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  make_four(group * 1024u + t * 4u);
}
