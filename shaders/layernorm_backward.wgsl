// VJP of layer (or RMS) normalisation, first of two dispatches: dx, and partial sums of dweight and dbias.
//
// bindings  0 x, 1 g, 2 weight (read), 3 mean, 4 rstd (read, f32: the forward's), 5 out (write: dx), 6
//           partial (write, f32), 7 params
// entries   rows: cols <= 16 * LANES, x and g read once
//           wide: any cols (needs LANES = 256), read twice
// grid      `groups` workgroups, at most ceil(rows / ROWS) of them (ROWS = 256 / LANES); a few per
//           multiprocessor is best
// workgroup 256 threads, 1.25 KiB of workgroup memory
//
// With h = g * weight and n = (x - mean) * rstd: dx = rstd * (h - avg(h) - n * avg(h * n)); avg(h) drops out
// for RMS. Slot s = group * ROWS + (row within the workgroup) walks rows s, s + slots, ... in order and keeps
// its sums of g * n and g in registers (`rows`) or in its own part of `partial` (`wide`), so the result
// depends on shapes alone. `partial` is [slots, 2, cols]; layernorm_columns.wgsl adds the slots up. flags: 1
// weight, 4 RMS, 8 write `partial`. LANES is 16, 64 or 256, RADIX its square root. Strides between rows are
// in elements; out_stride is a multiple of EPW.
// FOURS: cols, strides and offsets are multiples of four, and rows are bound by vectors.
struct Params { rows: u32, cols: u32, x_stride: u32, g_stride: u32, out_stride: u32, flags: u32, groups: u32 }
//@ words x
@group(0) @binding(0) var<storage, read> x: array<u32>;
//@ words g
@group(0) @binding(1) var<storage, read> g: array<u32>;
//@ words weight
@group(0) @binding(2) var<storage, read> weight: array<u32>;
@group(0) @binding(3) var<storage, read> mean: array<u32>;
@group(0) @binding(4) var<storage, read> rstd: array<u32>;
//@ words out
@group(0) @binding(5) var<storage, read_write> out: array<u32>;
@group(0) @binding(6) var<storage, read_write> partial: array<u32>;
@group(0) @binding(7) var<uniform> p: Params;

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
//@ load4 g
fn load4_g(i: vec4<u32>) -> vec4<T> { return vec4<T>(load_g(i.x), load_g(i.y), load_g(i.z), load_g(i.w)); }
//@ load weight
fn load_weight(i: u32) -> T { return bitcast<f32>(weight[i]); }
//@ load4 weight
fn load4_weight(i: vec4<u32>) -> vec4<T> { return four_weights(i); }
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

// Add to (or, the first time, set) one word of this slot's partial sums.
fn add_part(i: u32, v: f32, first: bool) {
  var total = v;
  if (!first) { total += bitcast<f32>(partial[i]); }
  partial[i] = bitcast<u32>(total);
}

fn add_part4(base: u32, c: vec4<u32>, v: vec4<f32>, first: bool) {
  if (c.x < p.cols) { add_part(base + c.x, v.x, first); }
  if (c.y < p.cols) { add_part(base + c.y, v.y, first); }
  if (c.z < p.cols) { add_part(base + c.z, v.z, first); }
  if (c.w < p.cols) { add_part(base + c.w, v.w, first); }
}

// weight, or ones.
fn scale4(c: vec4<u32>) -> vec4<f32> {
  if ((p.flags & 1u) != 0u) { return load_weight4(0u, c, true); }
  return vec4<f32>(1.0);
}

// Normalised x, zero where there is no column.
fn norm4(v: vec4<f32>, m: f32, r: f32, c: vec4<u32>) -> vec4<f32> {
  return select(vec4<f32>(), (v - m) * r, c < vec4<u32>(p.cols));
}

@compute @workgroup_size(256)
fn rows(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group >= p.groups) { return; }
  let slot = group * ROWS + t / LANES;
  let lane = t % LANES;
  let inverse = 1.0 / f32(p.cols);
  let c0 = col4(0u, lane);
  let c1 = col4(4u, lane);
  let c2 = col4(8u, lane);
  let c3 = col4(12u, lane);
  let k0 = scale4(c0);
  let k1 = scale4(c1);
  let k2 = scale4(c2);
  let k3 = scale4(c3);
  var dw0 = vec4<f32>();
  var db0 = vec4<f32>();
  var dw1 = vec4<f32>();
  var db1 = vec4<f32>();
  var dw2 = vec4<f32>();
  var db2 = vec4<f32>();
  var dw3 = vec4<f32>();
  var db3 = vec4<f32>();
  for (var first = group * ROWS; first < p.rows; first += p.groups * ROWS) {
    let row = first + t / LANES;
    let live = row < p.rows;
    var m = 0.0;
    var r = 0.0;
    if (live) {
      m = bitcast<f32>(mean[row]);
      r = bitcast<f32>(rstd[row]);
    }
    let n0 = norm4(load_x4(row * p.x_stride, c0, live), m, r, c0);
    let n1 = norm4(load_x4(row * p.x_stride, c1, live), m, r, c1);
    let n2 = norm4(load_x4(row * p.x_stride, c2, live), m, r, c2);
    let n3 = norm4(load_x4(row * p.x_stride, c3, live), m, r, c3);
    let g0 = load_g4(row * p.g_stride, c0, live);
    let g1 = load_g4(row * p.g_stride, c1, live);
    let g2 = load_g4(row * p.g_stride, c2, live);
    let g3 = load_g4(row * p.g_stride, c3, live);
    let h0 = g0 * k0;
    let h1 = g1 * k1;
    let h2 = g2 * k2;
    let h3 = g3 * k3;
    var a = lane_sum((sum4(h0) + sum4(h1)) + (sum4(h2) + sum4(h3)), t) * inverse;
    let b = lane_sum((sum4(h0 * n0) + sum4(h1 * n1)) + (sum4(h2 * n2) + sum4(h3 * n3)), t) * inverse;
    if ((p.flags & 4u) != 0u) { a = 0.0; }
    if (live) {
      store_out4(row * p.out_stride, c0, r * (h0 - a - n0 * b));
      dw0 += g0 * n0;
      db0 += g0;
      store_out4(row * p.out_stride, c1, r * (h1 - a - n1 * b));
      dw1 += g1 * n1;
      db1 += g1;
      store_out4(row * p.out_stride, c2, r * (h2 - a - n2 * b));
      dw2 += g2 * n2;
      db2 += g2;
      store_out4(row * p.out_stride, c3, r * (h3 - a - n3 * b));
      dw3 += g3 * n3;
      db3 += g3;
    }
  }
  if ((p.flags & 8u) != 0u) {
    let to = slot * 2u * p.cols;
    add_part4(to, c0, dw0, true);
    add_part4(to + p.cols, c0, db0, true);
    add_part4(to, c1, dw1, true);
    add_part4(to + p.cols, c1, db1, true);
    add_part4(to, c2, dw2, true);
    add_part4(to + p.cols, c2, db2, true);
    add_part4(to, c3, dw3, true);
    add_part4(to + p.cols, c3, db3, true);
  }
}

@compute @workgroup_size(256)
fn wide(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group >= p.groups) { return; }
  let inverse = 1.0 / f32(p.cols);
  let items = (p.cols + LANES - 1u) / LANES;
  let to = group * 2u * p.cols;
  for (var row = group; row < p.rows; row += p.groups) {
    let m = bitcast<f32>(mean[row]);
    let r = bitcast<f32>(rstd[row]);
    var a = 0.0;
    var b = 0.0;
    for (var i = 0u; i < items; i += 4u) {
      let c = col4(i, t);
      let n = norm4(load_x4(row * p.x_stride, c, true), m, r, c);
      let h = load_g4(row * p.g_stride, c, true) * scale4(c);
      a += sum4(h);
      b += sum4(h * n);
    }
    a = lane_sum(a, t) * inverse;
    b = lane_sum(b, t) * inverse;
    if ((p.flags & 4u) != 0u) { a = 0.0; }
    for (var i = 0u; i < items; i += 4u) {
      let c = col4(i, t);
      let n = norm4(load_x4(row * p.x_stride, c, true), m, r, c);
      let g = load_g4(row * p.g_stride, c, true);
      store_out4(row * p.out_stride, c, r * (g * scale4(c) - a - n * b));
      if ((p.flags & 8u) != 0u) {
        add_part4(to, c, g * n, row == group);
        add_part4(to + p.cols, c, g, row == group);
      }
    }
  }
}
