// VJP of cross entropy: dx[r, c] = g[r] * (exp(x[r, c] - top - spread) - [c = target[r]]), zero on ignored
// rows.
//
// bindings  0 x (read), 1 labels (read, i32: the target classes), 2 terms (read, f32: top and spread of a
//           row, as cross_entropy writes them), 3 g (read, f32), 4 out (write), 5 params
// grid      ceil(rows * fours / 256) workgroups, fours = ceil(cols / 4) per row; linear fold over x, y, z
// workgroup 256 threads, each making four adjacent columns; no workgroup memory
//
// g_stride 0 spreads one cotangent over all rows (a summed or averaged loss; scale multiplies it). Strides
// are in elements; out_stride is a multiple of EPW. With smoothing s the one-hot row becomes (1 - s) * [c =
// target] + s / cols. FOURS: cols, strides and offsets are multiples of four, and x and out are bound by
// vectors.
struct Params {
  rows: u32, cols: u32, fours: u32, x_off: u32, x_stride: u32, g_stride: u32, out_stride: u32,
  ignore_index: i32, smoothing: f32, scale: f32,
}
//@ words x
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> labels: array<u32>;
@group(0) @binding(2) var<storage, read> terms: array<u32>;
@group(0) @binding(3) var<storage, read> g: array<u32>;
//@ words out
@group(0) @binding(4) var<storage, read_write> out: array<u32>;
@group(0) @binding(5) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ load4 x
fn load4_x(i: vec4<u32>) -> vec4<T> { return vec4<T>(load_x(i.x), load_x(i.y), load_x(i.z), load_x(i.w)); }
//@ load g
fn load_g(i: u32) -> T { return bitcast<f32>(g[i]); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }
//@ store4 out
fn store4_out(i: u32, v: vec4<T>) { for (var k = 0u; k < 4u; k += 1u) { store_out(i + k, vec2<T>(v[k])); } }
//@ const FOURS
const FOURS: bool = false;
//@ fn exp_
fn exp_(x: f32) -> f32 { return exp(x); }

fn exp4(v: vec4<f32>) -> vec4<f32> { return vec4<f32>(exp_(v.x), exp_(v.y), exp_(v.z), exp_(v.w)); }

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let four = group * 256u + t;
  if (four >= p.rows * p.fours) { return; }
  let row = four / p.fours;
  let c = (four - row * p.fours) * 4u + vec4<u32>(0u, 1u, 2u, 3u);
  let target_ = bitcast<i32>(labels[row]);
  let top = bitcast<f32>(terms[2u * row]);
  let spread = bitcast<f32>(terms[2u * row + 1u]);
  let scale = load_g(row * p.g_stride) * p.scale;
  let hit = select(vec4<f32>(), vec4<f32>(1.0 - p.smoothing), vec4<i32>(c) == vec4<i32>(target_));
  let v = load4_x(p.x_off + row * p.x_stride + min(c, vec4<u32>(p.cols - 1u)));
  var y = scale * (exp4(v - top - spread) - hit - p.smoothing / f32(p.cols));
  y = select(y, vec4<f32>(), vec4<bool>(target_ == p.ignore_index) | (c >= vec4<u32>(p.cols)));
  let to = row * p.out_stride + c.x;
  if (FOURS) {
    store4_out(to, y);
  } else if (EPW == 2u) {
    store_out(to / 2u, y.xy);
    if (c.z < p.cols) { store_out(to / 2u + 1u, y.zw); }
  } else {
    for (var k = 0u; k < 4u && c.x + k < p.cols; k += 1u) { store_out(to + k, vec2<f32>(y[k])); }
  }
}
