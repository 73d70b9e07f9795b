// Add along one axis through an index tensor, the transpose of gather: out[c] = x[c] and all src[s] whose
// index is c[axis], one after the other.
//
// bindings  0 x (read), 1 index (read, i32), 2 src (read), 3 out (write), 4 status (atomic words), 5 params
// grid      ceil(words / 256) workgroups, words = ceil(count / EPW); linear fold over x, y, z
// workgroup 256 threads, one output word each; no workgroup memory
//
// Deterministic without atomics on values: an invocation owns its output word and walks the `length`
// positions along the axis in order, so equal indices are combined in that order. Work is count * length:
// meant for short index lists, longer ones are sorted first. `shape` and x_strides are the output's;
// src_shape is that of src and index off the axis (its entry on the axis is not used), with the strides of
// each; strides of 0 for index make it take_add. The sum starts from x, or from 0 where FROM_ZERO. With
// `return b` for `plus` the last one wins. Indices of places that are not here are skipped.
//@ use places
struct Params {
  shape: array<vec4<u32>, 2>, src_shape: array<vec4<u32>, 2>, x_strides: array<vec4<u32>, 2>,
  src_strides: array<vec4<u32>, 2>, index_strides: array<vec4<u32>, 2>,
  ndim: u32, count: u32, x_off: u32, src_off: u32, index_off: u32, axis: u32, length: u32,
  axis_size: u32, first: u32, here: u32,
}
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> index: array<u32>;
@group(0) @binding(2) var<storage, read> src: array<u32>;
@group(0) @binding(3) var<storage, read_write> out: array<u32>;
@group(0) @binding(4) var<storage, read_write> status: array<atomic<u32>>;
@group(0) @binding(5) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ load src
fn load_src(i: u32) -> T { return bitcast<f32>(src[i]); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }
//@ const FROM_ZERO
const FROM_ZERO: bool = false;
//@ fn plus
fn plus(a: T, b: T) -> T { return a + b; }

// The output element at linear index i.
fn element(i: u32) -> T {
  var rest = i;
  var x_i = p.x_off;
  var src_i = p.src_off;
  var index_i = p.index_off;
  var mine = 0u;
  var inside = true;
  for (var d = p.ndim; d > 0u; d -= 1u) {
    let a = (d - 1u) >> 2u;
    let b = (d - 1u) & 3u;
    let c = rest % p.shape[a][b];
    rest /= p.shape[a][b];
    x_i += c * p.x_strides[a][b];
    if (d - 1u == p.axis) {
      mine = c;
    } else {
      inside = inside && c < p.src_shape[a][b];
      src_i += c * p.src_strides[a][b];
      index_i += c * p.index_strides[a][b];
    }
  }
  let src_step = p.src_strides[p.axis >> 2u][p.axis & 3u];
  let index_step = p.index_strides[p.axis >> 2u][p.axis & 3u];
  var total = T();
  if (!FROM_ZERO) { total = load_x(x_i); }
  if (!inside) { return total; }
  for (var k = 0u; k < p.length; k += 1u) {
    let to = place_of(index[index_i + k * index_step]);
    if (to == mine) { total = plus(total, load_src(src_i + k * src_step)); }
  }
  return total;
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let word = group * 256u + t;
  let i = word * EPW;
  if (i >= p.count) { return; }
  let first = element(i);
  var v = vec2<T>(first, first);
  if (EPW == 2u && i + 1u < p.count) { v.y = element(i + 1u); }
  store_out(word, v);
}
