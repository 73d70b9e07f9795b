// Keep one triangle of the last two axes, zero elsewhere: tril keeps col - row <= diagonal, triu (UPPER) col
// - row >= diagonal.
//
// bindings  0 x (read), 1 out (write), 2 params
// grid      ceil(count / 1024) workgroups; linear fold over x, y, z
// workgroup 256 threads, four adjacent elements each; no workgroup memory
//
// ndim is at least 2; diagonal is an i32 in two's complement. Strides are those of x, so any view will do.
// FOURS: the last axis is a multiple of four long; then x may be bound by vectors. The last four elements of
// out are written whole.
struct Params {
  shape: array<vec4<u32>, 2>, x_strides: array<vec4<u32>, 2>,
  ndim: u32, count: u32, x_off: u32, diagonal: i32,
}
//@ words x
@group(0) @binding(0) var<storage, read> x: array<u32>;
//@ words out
@group(0) @binding(1) var<storage, read_write> out: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> p: Params;

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
//@ const UPPER
const UPPER: bool = false;

struct Place { at: u32, above: i32 }

// Where the element at linear index i lies in x, and its col - row.
fn place(i: u32) -> Place {
  var rest = i;
  var found = Place(p.x_off, 0);
  for (var d = p.ndim; d > 0u; d -= 1u) {
    let a = (d - 1u) >> 2u;
    let b = (d - 1u) & 3u;
    let next = rest / p.shape[a][b];
    let c = rest - next * p.shape[a][b];
    rest = next;
    found.at += c * p.x_strides[a][b];
    if (d == p.ndim) { found.above += i32(c); }
    if (d + 1u == p.ndim) { found.above -= i32(c); }
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
  let a = place(first);
  let axis = p.ndim - 1u;
  var at = a.at + STEPS * p.x_strides[axis >> 2u][axis & 3u];
  var above = a.above + vec4<i32>(STEPS);
  if (!FOURS) {
    let last = p.count - 1u;
    let b = place(min(first + 1u, last));
    let c = place(min(first + 2u, last));
    let d = place(min(first + 3u, last));
    at = vec4<u32>(a.at, b.at, c.at, d.at);
    above = vec4<i32>(a.above, b.above, c.above, d.above);
  }
  let diagonal = vec4<i32>(p.diagonal);
  let kept = select(above <= diagonal, above >= diagonal, UPPER);
  var v = vec4<T>();
  if (any(kept)) { v = select(v, load4_x(at), kept); }
  store4_out(first, v);
}
