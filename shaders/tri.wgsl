// Keep one triangle of the last two axes, zero elsewhere: tril keeps col - row <= diagonal, triu (UPPER) col
// - row >= diagonal.
//
// bindings  0 x (read), 1 out (write), 2 params
// grid      ceil(words / 256) workgroups, words = ceil(count / EPW); linear fold over x, y, z
// workgroup 256 threads, one output word each; no workgroup memory
//
// ndim is at least 2; diagonal is an i32 in two's complement. Strides are those of x, so any view will do.
struct Params {
  shape: array<vec4<u32>, 2>, x_strides: array<vec4<u32>, 2>,
  ndim: u32, count: u32, x_off: u32, diagonal: i32,
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
//@ const UPPER
const UPPER: bool = false;

// The output element at linear index i.
fn element(i: u32) -> T {
  var rest = i;
  var x_i = p.x_off;
  var above = 0; // col - row
  for (var d = p.ndim; d > 0u; d -= 1u) {
    let a = (d - 1u) >> 2u;
    let b = (d - 1u) & 3u;
    let c = rest % p.shape[a][b];
    rest /= p.shape[a][b];
    x_i += c * p.x_strides[a][b];
    if (d == p.ndim) { above += i32(c); }
    if (d + 1u == p.ndim) { above -= i32(c); }
  }
  if (select(above <= p.diagonal, above >= p.diagonal, UPPER)) { return load_x(x_i); }
  return T(0);
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
