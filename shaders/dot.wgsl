// Products of matrices of integers, one number after the other: out[c] = sum over k of x[c, k] * y[c, k],
// where x does not depend on the column, nor y on the row.
//
// bindings  0 x (read), 1 y (read), 2 out (write), 3 params
// grid      ceil(count / 256) workgroups; linear fold over x, y, z
// workgroup 256 threads, one element each; no workgroup memory
//
// For integers of two words, whose products are not worth tiles. `shape` is that of the result, `length` that
// of the sums, along which x and y have steps.
struct Params {
  shape: array<vec4<u32>, 2>, x_strides: array<vec4<u32>, 2>, y_strides: array<vec4<u32>, 2>,
  ndim: u32, count: u32, x_off: u32, y_off: u32, length: u32, x_step: u32, y_step: u32,
}
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> y: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;

//@ alias T
alias T = i32;
//@ load x
fn load_x(i: u32) -> T { return bitcast<T>(x[i]); }
//@ load y
fn load_y(i: u32) -> T { return bitcast<T>(y[i]); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }
//@ fn plus
fn plus(a: T, b: T) -> T { return a + b; }
//@ fn times
fn times(a: T, b: T) -> T { return a * b; }

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let i = (wid.x + groups.x * (wid.y + groups.y * wid.z)) * 256u + t;
  if (i >= p.count) { return; }
  var rest = i;
  var at = vec2<u32>(p.x_off, p.y_off);
  for (var d = p.ndim; d > 0u; d -= 1u) {
    let a = (d - 1u) >> 2u;
    let b = (d - 1u) & 3u;
    let next = rest / p.shape[a][b];
    at += (rest - next * p.shape[a][b]) * vec2<u32>(p.x_strides[a][b], p.y_strides[a][b]);
    rest = next;
  }
  var total = T();
  for (var k = 0u; k < p.length; k += 1u) {
    total = plus(total, times(load_x(at.x), load_y(at.y)));
    at += vec2<u32>(p.x_step, p.y_step);
  }
  store_out(i, vec2<T>(total, total));
}
