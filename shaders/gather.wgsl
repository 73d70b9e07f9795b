// Read along one axis through an index tensor: out[c] = x[c with c[axis] replaced by index[c]].
//
// bindings  0 x (read), 1 index (read, i32), 2 out (write), 3 status (atomic words), 4 params
// grid      ceil(count / 1024) workgroups; linear fold over x, y, z
// workgroup 256 threads, four adjacent elements each; no workgroup memory
//
// `shape` is the output's. Gather along an axis has index strides of index's own shape; taking rows, out[o,
// k, i] = x[o, index[k], i], is the same with index strides of 0 off the axis. x_strides[axis] is 0: the axis
// has `axis_stride`. An index of a place that is not here gives a 0 in out. FOURS: the last axis is a
// multiple of four; then x may be bound by vectors, if the index is the same along it. The last four elements
// of out are written whole.
//@ use places
struct Params {
  shape: array<vec4<u32>, 2>, x_strides: array<vec4<u32>, 2>, index_strides: array<vec4<u32>, 2>,
  ndim: u32, count: u32, x_off: u32, index_off: u32, axis_stride: u32,
  axis_size: u32, first: u32, here: u32,
}
//@ words x
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> index: array<u32>;
//@ words out
@group(0) @binding(2) var<storage, read_write> out: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> status: array<atomic<u32>>;
@group(0) @binding(4) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ load4 x
fn load4_x(i: vec4<u32>) -> vec4<T> { return vec4<T>(load_x(i.x), load_x(i.y), load_x(i.z), load_x(i.w)); }
//@ store4 out
fn store4_out(i: u32, v: vec4<T>) { out[i >> 2u] = bitcast<vec4<u32>>(v); }
//@ const FOURS
const FOURS: bool = false;
const STEPS: vec4<u32> = vec4<u32>(0u, 1u, 2u, 3u);

// Where the element at linear index i lies in x, were its index 0, and its index.
fn places(i: u32) -> vec2<u32> {
  var rest = i;
  var at = vec2<u32>(p.x_off, p.index_off);
  for (var d = p.ndim; d > 0u; d -= 1u) {
    let a = (d - 1u) >> 2u;
    let b = (d - 1u) & 3u;
    let next = rest / p.shape[a][b];
    at += (rest - next * p.shape[a][b]) * vec2<u32>(p.x_strides[a][b], p.index_strides[a][b]);
    rest = next;
  }
  return at;
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
  let d = p.ndim - 1u;
  let a = places(first);
  var x_at = a.x + STEPS * p.x_strides[d >> 2u][d & 3u];
  var at = a.y + STEPS * p.index_strides[d >> 2u][d & 3u];
  if (!FOURS) {
    let last = p.count - 1u;
    let b = places(min(first + 1u, last));
    let c = places(min(first + 2u, last));
    let d = places(min(first + 3u, last));
    x_at = vec4<u32>(a.x, b.x, c.x, d.x);
    at = vec4<u32>(a.y, b.y, c.y, d.y);
  }
  var k = vec4<u32>(place_of(index[at.x]));
  if (!FOURS || at.y != at.x) {
    k = vec4<u32>(k.x, place_of(index[at.y]), place_of(index[at.z]), place_of(index[at.w]));
  }
  let inside = k < vec4<u32>(p.here);
  var v = vec4<T>();
  if (any(inside)) { v = select(v, load4_x(x_at + select(vec4<u32>(), k, inside) * p.axis_stride), inside); }
  store4_out(first, v);
}
