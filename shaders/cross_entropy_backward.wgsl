// VJP of cross entropy: dx[r, c] = g[r] * (exp(x[r, c] - top - spread) - [c = labels[r]]), zero on ignored
// rows.
//
// bindings  0 x (read), 1 labels (read, i32: the target classes), 2 terms (read, f32: top and spread of a
//           row, as cross_entropy writes them), 3 g (read, f32), 4 out (write), 5 params
// grid      ceil(rows * fours / 256) workgroups, fours = ceil(cols / 4) per row; linear fold over x, y, z
// workgroup 256 threads, each making four adjacent columns; no workgroup memory
//
// Strides are in elements; out_stride is a multiple of EPW. FOURS: cols, strides and offsets are multiples of
// four, and x and out are bound by vectors.
//@ use row_out
struct Params {
  rows: u32, cols: u32, fours: u32, x_stride: u32, out_stride: u32, ignore_index: i32,
  g_off: u32, g_stride: u32,
}
//@ words x
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> labels: array<i32>;
@group(0) @binding(2) var<storage, read> terms: array<vec2<f32>>;
@group(0) @binding(3) var<storage, read> g: array<f32>;
//@ words out
@group(0) @binding(4) var<storage, read_write> out: array<u32>;
@group(0) @binding(5) var<uniform> p: Params;

//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ load4 x
fn load4_x(i: vec4<u32>) -> vec4<T> { return vec4<T>(load_x(i.x), load_x(i.y), load_x(i.z), load_x(i.w)); }
//@ const FOURS
const FOURS: bool = false;
//@ fn exp_
fn exp_(x: f32) -> f32 { return exp(x); }

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
  let label = labels[row];
  let scale = g[p.g_off + row * p.g_stride];
  let term = terms[row];
  let hit = select(vec4<f32>(), vec4<f32>(1.0), vec4<i32>(c) == vec4<i32>(label));
  let d = load4_x(row * p.x_stride + min(c, vec4<u32>(p.cols - 1u))) - term.x - term.y;
  let e = vec4<f32>(exp_(d.x), exp_(d.y), exp_(d.z), exp_(d.w));
  store_row4(row * p.out_stride, c, select(scale * (e - hit), vec4<f32>(), label == p.ignore_index));
}
