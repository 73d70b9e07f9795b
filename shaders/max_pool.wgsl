// The largest element of every window, and where in its plane it is: the first one wins a tie, the first NaN
// wins over all.
//
// bindings  0 x (read), 1 out (write), 2 index (write, i32), 3 params
// grid      ceil(words / 256) workgroups, words = ceil(count / EPW); linear fold over x, y, z
// workgroup 256 threads, one output word each; no workgroup memory
//
// Element k of the window at i lies at i * stride + k * dilation - padding; what is outside of the input does
// not take part. Three spatial axes, the missing ones in front with length 1; all tensors are dense as
// [planes, ..]. `is_nan` looks at bits, since comparisons may assume that there is no NaN.
struct Params {
  input: array<vec4<u32>, 2>, kernel: array<vec4<u32>, 2>, output: array<vec4<u32>, 2>,
  stride: array<vec4<u32>, 2>, dilation: array<vec4<u32>, 2>, padding: array<vec4<u32>, 2>,
  count: u32, x_off: u32,
}
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@group(0) @binding(2) var<storage, read_write> index: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }
//@ const IS_FLOAT
const IS_FLOAT: bool = true;
//@ fn is_nan
fn is_nan(v: T) -> bool { return IS_FLOAT && (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u; }

//@ fn less
fn less(a: T, b: T) -> bool { return a < b; }

// The output element at linear index i; its position is written.
fn element(i: u32) -> T {
  let places = p.output[0].x * p.output[0].y * p.output[0].z;
  let at = i % places;
  let place = vec3<u32>(
    at / (p.output[0].z * p.output[0].y), (at / p.output[0].z) % p.output[0].y, at % p.output[0].z);
  let start = place * p.stride[0].xyz - p.padding[0].xyz;
  let plane = p.x_off + i / places * (p.input[0].x * p.input[0].y * p.input[0].z);
  var best = T();
  var found = false;
  var where_ = 0u;
  for (var k_z = 0u; k_z < p.kernel[0].x; k_z += 1u) {
    let z = start.x + k_z * p.dilation[0].x;
    if (z >= p.input[0].x) { continue; }
    for (var k_y = 0u; k_y < p.kernel[0].y; k_y += 1u) {
      let y = start.y + k_y * p.dilation[0].y;
      if (y >= p.input[0].y) { continue; }
      let line = (z * p.input[0].y + y) * p.input[0].z;
      for (var k_x = 0u; k_x < p.kernel[0].z; k_x += 1u) {
        let x_ = start.z + k_x * p.dilation[0].z;
        if (x_ >= p.input[0].z) { continue; }
        let value = load_x(plane + line + x_);
        let wins = is_nan(value) || less(best, value);
        if (!found || (wins && !is_nan(best))) {
          best = value;
          where_ = line + x_;
          found = true;
        }
      }
    }
  }
  index[i] = where_;
  return best;
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
