// VJP of softmax and log-softmax along rows: dx = y * (g - sum(g * y)), and with LOG dx = g - exp(y) *
// sum(g).
//
// bindings  0 y (read: the forward's output), 1 g (read: its cotangent), 2 out (write: dx), 3 params
// entries   rows: cols <= 16 * LANES, y and g read once
//           wide: any cols (needs LANES = 256), read twice
// grid      ceil(rows / ROWS) workgroups, ROWS = 256 / LANES; linear fold over x, y, z
// workgroup 256 threads, 1.25 KiB of workgroup memory
//
// LANES is 16, 64 or 256, RADIX its square root. Strides between rows are in elements; out_stride is a
// multiple of EPW.
// FOURS: cols, strides and offsets are multiples of four, and rows are bound by vectors.
struct Params { rows: u32, cols: u32, y_stride: u32, g_stride: u32, out_stride: u32 }
//@ words y
@group(0) @binding(0) var<storage, read> y: array<u32>;
//@ words g
@group(0) @binding(1) var<storage, read> g: array<u32>;
//@ words out
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ load y
fn load_y(i: u32) -> T { return bitcast<f32>(y[i]); }
//@ load4 y
fn load4_y(i: vec4<u32>) -> vec4<T> { return vec4<T>(load_y(i.x), load_y(i.y), load_y(i.z), load_y(i.w)); }
//@ load g
fn load_g(i: u32) -> T { return bitcast<f32>(g[i]); }
//@ load4 g
fn load4_g(i: vec4<u32>) -> vec4<T> { return vec4<T>(load_g(i.x), load_g(i.y), load_g(i.z), load_g(i.w)); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }
//@ store4 out
fn store4_out(i: u32, v: vec4<T>) { for (var k = 0u; k < 4u; k += 1u) { store_out(i + k, vec2<T>(v[k])); } }
//@ fn exp_
fn exp_(x: f32) -> f32 { return exp(x); }
//@ const LOG
const LOG: bool = false;
//@ const FOURS
const FOURS: bool = false;
//@ const LANES
const LANES: u32 = 256u;
//@ const RADIX
const RADIX: u32 = 16u; // RADIX * RADIX = LANES
const ROWS: u32 = 256u / LANES;

var<workgroup> part: array<f32, 256>;
var<workgroup> coarse: array<f32, 64>;

// Four adjacent columns of a lane: its items i to i + 3. Neighbouring lanes hold neighbouring fours.
fn col4(i: u32, lane: u32) -> vec4<u32> { return i * LANES + lane * 4u + vec4<u32>(0u, 1u, 2u, 3u); }

fn load_y4(base: u32, c: vec4<u32>, live: bool) -> vec4<f32> {
  var v = vec4<f32>(0.0);
  if (FOURS) {
    if (live && c.x < p.cols) { v = load4_y(base + c); }
    return v;
  }
  if (live && c.x < p.cols) { v.x = load_y(base + c.x); }
  if (live && c.y < p.cols) { v.y = load_y(base + c.y); }
  if (live && c.z < p.cols) { v.z = load_y(base + c.z); }
  if (live && c.w < p.cols) { v.w = load_y(base + c.w); }
  return v;
}

fn load_g4(base: u32, c: vec4<u32>, live: bool) -> vec4<f32> {
  var v = vec4<f32>(0.0);
  if (FOURS) {
    if (live && c.x < p.cols) { v = load4_g(base + c); }
    return v;
  }
  if (live && c.x < p.cols) { v.x = load_g(base + c.x); }
  if (live && c.y < p.cols) { v.y = load_g(base + c.y); }
  if (live && c.z < p.cols) { v.z = load_g(base + c.z); }
  if (live && c.w < p.cols) { v.w = load_g(base + c.w); }
  return v;
}

fn store_out4(base: u32, c: vec4<u32>, v: vec4<f32>) {
  if (FOURS) {
    if (c.x < p.cols) { store4_out(base + c.x, v); }
    return;
  }
  if (EPW == 1u) {
    if (c.x < p.cols) { store_out(base + c.x, vec2<f32>(v.x)); }
    if (c.y < p.cols) { store_out(base + c.y, vec2<f32>(v.y)); }
    if (c.z < p.cols) { store_out(base + c.z, vec2<f32>(v.z)); }
    if (c.w < p.cols) { store_out(base + c.w, vec2<f32>(v.w)); }
  } else {
    if (c.x < p.cols) { store_out((base + c.x) / 2u, v.xy); }
    if (c.z < p.cols) { store_out((base + c.z) / 2u, v.zw); }
  }
}

fn exp4(v: vec4<f32>) -> vec4<f32> { return vec4<f32>(exp_(v.x), exp_(v.y), exp_(v.z), exp_(v.w)); }
fn sum4(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }

// Sum over the LANES threads of a row, in a fixed order; every thread gets it.
fn lane_sum(v: f32, t: u32) -> f32 {
  part[t] = v;
  workgroupBarrier();
  let row = t / LANES;
  let lane = t % LANES;
  if (lane < RADIX) {
    var s = part[row * LANES + lane];
    for (var j = 1u; j < RADIX; j += 1u) { s += part[row * LANES + j * RADIX + lane]; }
    coarse[row * RADIX + lane] = s;
  }
  workgroupBarrier();
  var s = coarse[row * RADIX];
  for (var j = 1u; j < RADIX; j += 1u) { s += coarse[row * RADIX + j]; }
  return s;
}

// What the row sum adds up.
fn term4(y: vec4<f32>, g: vec4<f32>) -> vec4<f32> {
  if (LOG) { return g; }
  return g * y;
}

// The gradient, given the row sum.
fn grad4(y: vec4<f32>, g: vec4<f32>, s: f32) -> vec4<f32> {
  if (LOG) { return g - exp4(y) * s; }
  return y * (g - s);
}

@compute @workgroup_size(256)
fn rows(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group * ROWS >= p.rows) { return; }
  let row = group * ROWS + t / LANES;
  let lane = t % LANES;
  let live = row < p.rows;
  let y_base = row * p.y_stride;
  let g_base = row * p.g_stride;
  let c0 = col4(0u, lane);
  let c1 = col4(4u, lane);
  let c2 = col4(8u, lane);
  let c3 = col4(12u, lane);
  let y0 = load_y4(y_base, c0, live);
  let y1 = load_y4(y_base, c1, live);
  let y2 = load_y4(y_base, c2, live);
  let y3 = load_y4(y_base, c3, live);
  let g0 = load_g4(g_base, c0, live);
  let g1 = load_g4(g_base, c1, live);
  let g2 = load_g4(g_base, c2, live);
  let g3 = load_g4(g_base, c3, live);
  let s01 = sum4(term4(y0, g0)) + sum4(term4(y1, g1));
  let s23 = sum4(term4(y2, g2)) + sum4(term4(y3, g3));
  let s = lane_sum(s01 + s23, t);
  if (!live) { return; }
  let to = row * p.out_stride;
  store_out4(to, c0, grad4(y0, g0, s));
  store_out4(to, c1, grad4(y1, g1, s));
  store_out4(to, c2, grad4(y2, g2, s));
  store_out4(to, c3, grad4(y3, g3, s));
}

@compute @workgroup_size(256)
fn wide(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group >= p.rows) { return; }
  let y_base = group * p.y_stride;
  let g_base = group * p.g_stride;
  let items = (p.cols + LANES - 1u) / LANES;
  var s = 0.0;
  for (var i = 0u; i < items; i += 4u) {
    let c = col4(i, t);
    s += sum4(term4(load_y4(y_base, c, true), load_g4(g_base, c, true)));
  }
  s = lane_sum(s, t);
  let to = group * p.out_stride;
  for (var i = 0u; i < items; i += 4u) {
    let c = col4(i, t);
    store_out4(to, c, grad4(load_y4(y_base, c, true), load_g4(g_base, c, true), s));
  }
}
