// Layer normalisation of rows, or RMS normalisation: y = (x - mean) * rstd * weight + bias.
//
// bindings  0 x (read), 1 weight (read), 2 bias (read), 3 out (write), 4 mean (write, f32), 5 rstd (write,
//           f32), 6 params
// entries   rows: cols <= 16 * LANES, a row in registers, read once
//           wide: any cols (needs LANES = 256), read three times
// grid      ceil(rows / ROWS) workgroups, ROWS = 256 / LANES; linear fold over x, y, z
// workgroup 256 threads, 1.25 KiB of workgroup memory
//
// flags: 1 weight, 2 bias, 4 RMS (mean taken as 0). Without weight or bias any buffer may be bound in its
// place. The variance is the mean of squared deviations from the finished mean, never a difference of two
// large sums. LANES is 16, 64 or 256, RADIX its square root. Strides between rows are in elements; out_stride
// is a multiple of EPW.
// FOURS: cols, strides and offsets are multiples of four, and rows are bound by vectors.
struct Params { rows: u32, cols: u32, x_off: u32, x_stride: u32, out_stride: u32, flags: u32, eps: f32 }
//@ words x
@group(0) @binding(0) var<storage, read> x: array<u32>;
//@ words weight
@group(0) @binding(1) var<storage, read> weight: array<u32>;
//@ words bias
@group(0) @binding(2) var<storage, read> bias: array<u32>;
//@ words out
@group(0) @binding(3) var<storage, read_write> out: array<u32>;
@group(0) @binding(4) var<storage, read_write> mean: array<u32>;
@group(0) @binding(5) var<storage, read_write> rstd: array<u32>;
@group(0) @binding(6) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ load4 x
fn load4_x(i: vec4<u32>) -> vec4<T> { return vec4<T>(load_x(i.x), load_x(i.y), load_x(i.z), load_x(i.w)); }
//@ load weight
fn load_weight(i: u32) -> T { return bitcast<f32>(weight[i]); }
//@ load4 weight
fn load4_weight(i: vec4<u32>) -> vec4<T> { return four_weights(i); }
//@ load bias
fn load_bias(i: u32) -> T { return bitcast<f32>(bias[i]); }
//@ load4 bias
fn load4_bias(i: vec4<u32>) -> vec4<T> { return four_biases(i); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }
//@ store4 out
fn store4_out(i: u32, v: vec4<T>) { for (var k = 0u; k < 4u; k += 1u) { store_out(i + k, vec2<T>(v[k])); } }
//@ const FOURS
const FOURS: bool = false;
//@ const LANES
const LANES: u32 = 256u;
//@ const RADIX
const RADIX: u32 = 16u; // RADIX * RADIX = LANES
const ROWS: u32 = 256u / LANES;

fn four_weights(i: vec4<u32>) -> vec4<T> {
  return vec4<T>(load_weight(i.x), load_weight(i.y), load_weight(i.z), load_weight(i.w));
}

fn four_biases(i: vec4<u32>) -> vec4<T> {
  return vec4<T>(load_bias(i.x), load_bias(i.y), load_bias(i.z), load_bias(i.w));
}

var<workgroup> part: array<f32, 256>;
var<workgroup> coarse: array<f32, 64>;

// Four adjacent columns of a lane: its items i to i + 3. Neighbouring lanes hold neighbouring fours.
fn col4(i: u32, lane: u32) -> vec4<u32> { return i * LANES + lane * 4u + vec4<u32>(0u, 1u, 2u, 3u); }

fn load_x4(base: u32, c: vec4<u32>, live: bool) -> vec4<f32> {
  var v = vec4<f32>(0.0);
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

fn load_weight4(base: u32, c: vec4<u32>, live: bool) -> vec4<f32> {
  var v = vec4<f32>(0.0);
  if (FOURS) {
    if (live && c.x < p.cols) { v = load4_weight(base + c); }
    return v;
  }
  if (live && c.x < p.cols) { v.x = load_weight(base + c.x); }
  if (live && c.y < p.cols) { v.y = load_weight(base + c.y); }
  if (live && c.z < p.cols) { v.z = load_weight(base + c.z); }
  if (live && c.w < p.cols) { v.w = load_weight(base + c.w); }
  return v;
}

fn load_bias4(base: u32, c: vec4<u32>, live: bool) -> vec4<f32> {
  var v = vec4<f32>(0.0);
  if (FOURS) {
    if (live && c.x < p.cols) { v = load4_bias(base + c); }
    return v;
  }
  if (live && c.x < p.cols) { v.x = load_bias(base + c.x); }
  if (live && c.y < p.cols) { v.y = load_bias(base + c.y); }
  if (live && c.z < p.cols) { v.z = load_bias(base + c.z); }
  if (live && c.w < p.cols) { v.w = load_bias(base + c.w); }
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

fn sum4(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }

// Squared deviations, zero where there is no column.
fn square4(v: vec4<f32>, m: f32, c: vec4<u32>) -> f32 {
  let d = select(vec4<f32>(), v - m, c < vec4<u32>(p.cols));
  return sum4(d * d);
}

// Scale, shift and write four columns.
fn finish4(to: u32, c: vec4<u32>, v: vec4<f32>, m: f32, r: f32) {
  var y = (v - m) * r;
  if ((p.flags & 1u) != 0u) { y *= load_weight4(0u, c, true); }
  if ((p.flags & 2u) != 0u) { y += load_bias4(0u, c, true); }
  store_out4(to, c, y);
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
  let v0 = load_x4(base, c0, live);
  let v1 = load_x4(base, c1, live);
  let v2 = load_x4(base, c2, live);
  let v3 = load_x4(base, c3, live);
  let inverse = 1.0 / f32(p.cols);
  var m = lane_sum((sum4(v0) + sum4(v1)) + (sum4(v2) + sum4(v3)), t) * inverse;
  if ((p.flags & 4u) != 0u) { m = 0.0; }
  let squares = (square4(v0, m, c0) + square4(v1, m, c1)) + (square4(v2, m, c2) + square4(v3, m, c3));
  let r = 1.0 / sqrt(lane_sum(squares, t) * inverse + p.eps);
  if (!live) { return; }
  if (lane == 0u) {
    mean[row] = bitcast<u32>(m);
    rstd[row] = bitcast<u32>(r);
  }
  let to = row * p.out_stride;
  finish4(to, c0, v0, m, r);
  finish4(to, c1, v1, m, r);
  finish4(to, c2, v2, m, r);
  finish4(to, c3, v3, m, r);
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
  let inverse = 1.0 / f32(p.cols);
  var s = 0.0;
  for (var i = 0u; i < items; i += 4u) { s += sum4(load_x4(base, col4(i, t), true)); }
  var m = lane_sum(s, t) * inverse;
  if ((p.flags & 4u) != 0u) { m = 0.0; }
  s = 0.0;
  for (var i = 0u; i < items; i += 4u) {
    let c = col4(i, t);
    s += square4(load_x4(base, c, true), m, c);
  }
  let r = 1.0 / sqrt(lane_sum(s, t) * inverse + p.eps);
  if (t == 0u) {
    mean[group] = bitcast<u32>(m);
    rstd[group] = bitcast<u32>(r);
  }
  for (var i = 0u; i < items; i += 4u) {
    let c = col4(i, t);
    finish4(group * p.out_stride, c, load_x4(base, c, true), m, r);
  }
}
