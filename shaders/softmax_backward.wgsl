// VJP of softmax and log-softmax along rows: dx = y * (g - sum(g * y)), and with LOG dx = g - exp(y) *
// sum(g).
//
// bindings  0 y (read: the forward's output), 1 g (read: its cotangent), 2 out (write: dx), 3 terms (SPLIT 1
//           writes, 2 reads; f32), 4 params
// grid      ceil(rows * parts / ROWS) workgroups, in each dispatch; linear fold over x, y, z
// workgroup 256 threads, 4.25 KiB of workgroup memory
//
// Rows live in registers, as lib/rows.wgsl has it. terms holds the sum of each part; where nothing is split,
// any buffer is bound to it. Strides between rows are in elements; out_stride is a multiple of EPW.
//@ use rows
//@ use row_out
struct Params { rows: u32, cols: u32, parts: u32, y_stride: u32, g_stride: u32, out_stride: u32 }
//@ words y
@group(0) @binding(0) var<storage, read> y: array<u32>;
//@ words g
@group(0) @binding(1) var<storage, read> g: array<u32>;
//@ words out
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
@group(0) @binding(3) var<storage, read_write> terms: array<f32>;
@group(0) @binding(4) var<uniform> p: Params;

//@ load y
fn load_y(i: u32) -> T { return bitcast<f32>(y[i]); }
//@ load4 y
fn load4_y(i: vec4<u32>) -> vec4<T> { return vec4<T>(load_y(i.x), load_y(i.y), load_y(i.z), load_y(i.w)); }
//@ load g
fn load_g(i: u32) -> T { return bitcast<f32>(g[i]); }
//@ load4 g
fn load4_g(i: vec4<u32>) -> vec4<T> { return vec4<T>(load_g(i.x), load_g(i.y), load_g(i.z), load_g(i.w)); }
//@ fn exp_
fn exp_(x: f32) -> f32 { return exp(x); }
//@ const LOG
const LOG: bool = false;

fn load_g4(base: u32, c: vec4<u32>) -> vec4<f32> {
  return select(vec4<f32>(), load4_g(base + inside4(c)), here4(c));
}

// What the row sum adds up.
fn term4(y: vec4<f32>, g: vec4<f32>, c: vec4<u32>) -> vec4<f32> {
  if (LOG) { return g; }
  return select(vec4<f32>(), g * y, here4(c));
}

// The gradient, given the row sum.
fn grad4(y: vec4<f32>, g: vec4<f32>, s: f32) -> vec4<f32> {
  if (LOG) { return g - vec4<f32>(exp_(y.x), exp_(y.y), exp_(y.z), exp_(y.w)) * s; }
  return y * (g - s);
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group * ROWS >= p.rows * p.parts) { return; }
  let at = place(group, t);
  //@ slots 0
  let c_0 = col4(0u, at.first);
  //@ slots 0
  let y_0 = load4_y(at.row * p.y_stride + inside4(c_0));
  //@ slots 0
  let g_0 = load_g4(at.row * p.g_stride, c_0);
  var s = 0.0;
  if (SPLIT == 2u) {
    for (var j = t; j < p.parts; j += 256u) { s += terms[at.row * p.parts + j]; }
  } else {
    //@ slots 0
    s += sum4(term4(y_0, g_0, c_0));
  }
  s = lane_sum(s, t, 0u);
  if (!at.live) { return; }
  if (SPLIT == 1u) {
    if (t == 0u) { terms[at.unit] = s; }
    return;
  }
  let to = at.row * p.out_stride;
  //@ slots 0
  store_row4(to, c_0, grad4(y_0, g_0, s));
}
