// Softmax and log-softmax along the rows of a matrix.
//
// bindings  0 x (read), 1 out (write), 2 params
// entries   rows: cols <= 16 * LANES; a row lives in the registers of LANES threads, read and written once
//           wide: any cols (needs LANES = 256); one row per workgroup, read twice (maximum and sum first)
// grid      ceil(rows / ROWS) workgroups, ROWS = 256 / LANES; linear fold over x, y, z
// workgroup 256 threads, 1.25 KiB of workgroup memory
//
// LANES is 16, 64 or 256, RADIX its square root. Strides between rows are in elements; out_stride is a
// multiple of EPW. FOURS: cols, strides and offsets are multiples of four, and rows are bound by vectors. LOG
// selects log-softmax. Entries of -inf give 0 (or -inf); a row of nothing but -inf gives
// NaN, as everywhere.
struct Params { rows: u32, cols: u32, x_off: u32, x_stride: u32, out_stride: u32 }
//@ words x
@group(0) @binding(0) var<storage, read> x: array<u32>;
//@ words out
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@group(0) @binding(2) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ load4 x
fn load4_x(i: vec4<u32>) -> vec4<T> { return vec4<T>(load_x(i.x), load_x(i.y), load_x(i.z), load_x(i.w)); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }
//@ store4 out
fn store4_out(i: u32, v: vec4<T>) { for (var k = 0u; k < 4u; k += 1u) { store_out(i + k, vec2<T>(v[k])); } }
//@ fn exp_
fn exp_(x: f32) -> f32 { return exp(x); }
//@ fn log_
fn log_(x: f32) -> f32 { return log(x); }
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

const LOWEST: f32 = -3.4028234e38;

// Four adjacent columns of a lane: its items i to i + 3. Neighbouring lanes hold neighbouring fours.
fn col4(i: u32, lane: u32) -> vec4<u32> { return i * LANES + lane * 4u + vec4<u32>(0u, 1u, 2u, 3u); }

fn load_x4(base: u32, c: vec4<u32>, live: bool) -> vec4<f32> {
  var v = vec4<f32>(LOWEST);
  if (FOURS) {
    if (live && c.x < p.cols) { v = load4_x(base + c); }
    return v;
  }
  if (live && c.x < p.cols) { v.x = load_x(base + c.x); }
  if (live && c.y < p.cols) { v.y = load_x(base + c.y); }
  if (live && c.z < p.cols) { v.z = load_x(base + c.z); }
  if (live && c.w < p.cols) { v.w = load_x(base + c.w); }
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
fn max4(v: vec4<f32>) -> f32 { return max(max(v.x, v.y), max(v.z, v.w)); }

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

// Maximum over the LANES threads of a row; every thread gets it.
fn lane_max(v: f32, t: u32) -> f32 {
  part[t] = v;
  workgroupBarrier();
  let row = t / LANES;
  let lane = t % LANES;
  if (lane < RADIX) {
    var s = part[row * LANES + lane];
    for (var j = 1u; j < RADIX; j += 1u) { s = max(s, part[row * LANES + j * RADIX + lane]); }
    coarse[row * RADIX + lane] = s;
  }
  workgroupBarrier();
  var s = coarse[row * RADIX];
  for (var j = 1u; j < RADIX; j += 1u) { s = max(s, coarse[row * RADIX + j]); }
  return s;
}

// exp(v - m) where the column exists, zero elsewhere.
fn weight4(v: vec4<f32>, m: f32, c: vec4<u32>) -> vec4<f32> {
  return select(vec4<f32>(), exp4(v - m), c < vec4<u32>(p.cols));
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
  let base = p.x_off + row * p.x_stride;
  let c0 = col4(0u, lane);
  let c1 = col4(4u, lane);
  let c2 = col4(8u, lane);
  let c3 = col4(12u, lane);
  var v0 = load_x4(base, c0, live);
  var v1 = load_x4(base, c1, live);
  var v2 = load_x4(base, c2, live);
  var v3 = load_x4(base, c3, live);
  let m = lane_max(max(max(max4(v0), max4(v1)), max(max4(v2), max4(v3))), t);
  let e0 = weight4(v0, m, c0);
  let e1 = weight4(v1, m, c1);
  let e2 = weight4(v2, m, c2);
  let e3 = weight4(v3, m, c3);
  let s = lane_sum((sum4(e0) + sum4(e1)) + (sum4(e2) + sum4(e3)), t);
  if (!live) { return; }
  let to = row * p.out_stride;
  if (LOG) {
    let shift = log_(s);
    store_out4(to, c0, v0 - m - shift);
    store_out4(to, c1, v1 - m - shift);
    store_out4(to, c2, v2 - m - shift);
    store_out4(to, c3, v3 - m - shift);
  } else {
    let scale = 1.0 / s;
    store_out4(to, c0, e0 * scale);
    store_out4(to, c1, e1 * scale);
    store_out4(to, c2, e2 * scale);
    store_out4(to, c3, e3 * scale);
  }
}

@compute @workgroup_size(256)
fn wide(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group >= p.rows) { return; }
  let base = p.x_off + group * p.x_stride;
  let items = (p.cols + LANES - 1u) / LANES;
  var m = LOWEST;
  var s = 0.0;
  for (var i = 0u; i < items; i += 4u) {
    let c = col4(i, t);
    let v = load_x4(base, c, true);
    let top = max(m, max4(v));
    s = s * exp_(m - top) + sum4(weight4(v, top, c));
    m = top;
  }
  let top = lane_max(m, t);
  s = lane_sum(s * exp_(m - top), t);
  let scale = 1.0 / s;
  let shift = log_(s);
  let to = group * p.out_stride;
  for (var i = 0u; i < items; i += 4u) {
    let c = col4(i, t);
    let v = load_x4(base, c, true) - top;
    if (LOG) { store_out4(to, c, v - shift); } else { store_out4(to, c, exp4(v) * scale); }
  }
}
