// Place x in a tensor of `fill`: out[start + step * i] = x[i] on every axis, `fill` elsewhere. It is pad, and
// the transpose of a slice.
//
// bindings  0 x (read), 1 out (write), 2 params
// grid      ceil(words / 256) workgroups, words = ceil(count / EPW); linear fold over x, y, z
// workgroup 256 threads, one output word each; no workgroup memory
//
// `shape` is the output's, x_shape and x_strides are those of x. start may be negative (x is then cropped)
// and step negative (x is then reversed), but not 0; both are i32 in two's complement. fill is the bits of an
// f32 or i32, as T is.
struct Params {
  shape: array<vec4<u32>, 2>, x_shape: array<vec4<u32>, 2>, x_strides: array<vec4<u32>, 2>,
  start: array<vec4<u32>, 2>, step: array<vec4<u32>, 2>,
  ndim: u32, count: u32, x_off: u32, fill: u32,
}
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@group(0) @binding(2) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }

// The output element at linear index i.
fn element(i: u32) -> T {
  var rest = i;
  var x_i = p.x_off;
  for (var d = p.ndim; d > 0u; d -= 1u) {
    let a = (d - 1u) >> 2u;
    let b = (d - 1u) & 3u;
    let c = i32(rest % p.shape[a][b]) - bitcast<i32>(p.start[a][b]);
    rest /= p.shape[a][b];
    let step = bitcast<i32>(p.step[a][b]);
    let k = c / step;
    if (k * step != c || k < 0 || k >= i32(p.x_shape[a][b])) { return bitcast<T>(p.fill); }
    x_i += u32(k) * p.x_strides[a][b];
  }
  return load_x(x_i);
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
  var v = vec2<T>(element(i));
  if (EPW == 2u && i + 1u < p.count) { v.y = element(i + 1u); }
  store_out(word, v);
}
