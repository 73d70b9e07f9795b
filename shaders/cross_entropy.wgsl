// Cross entropy of rows of logits against class indices: loss[r] = log sum exp x[r] - x[r, target[r]]. terms
// holds the largest logit of a row, and the logarithm of the sum relative to it.
//
// bindings  0 x (read), 1 labels (read, i32: the target classes), 2 loss (write, f32), 3 terms (write, f32),
//           4 status (atomic words), 5 params
// grid      ceil(rows / ROWS) workgroups, ROWS = 256 / LANES; linear fold over x, y, z
// workgroup 256 threads, 1.25 KiB of workgroup memory
//
// Each row is read once, by LANES threads that keep a running maximum and sum, so cols has no limit. LANES is
// 16, 64 or 256, RADIX its square root. With smoothing s, loss = (1 - s) * (lse - x[target]) + s * (lse -
// mean(x)), lse the sum of the terms. A target equal to ignore_index gives loss 0. Any other target outside
// [0, cols) gives loss 0, sets status[0] to 1 and status[1] to the target.
struct Params { rows: u32, cols: u32, x_off: u32, x_stride: u32, ignore_index: i32, smoothing: f32 }
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> labels: array<u32>;
@group(0) @binding(2) var<storage, read_write> loss: array<u32>;
@group(0) @binding(3) var<storage, read_write> terms: array<u32>;
@group(0) @binding(4) var<storage, read_write> status: array<atomic<u32>>;
@group(0) @binding(5) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u; // of x
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ fn exp_
fn exp_(x: f32) -> f32 { return exp(x); }
//@ fn log_
fn log_(x: f32) -> f32 { return log(x); }
//@ const LANES
const LANES: u32 = 256u;
//@ const RADIX
const RADIX: u32 = 16u; // RADIX * RADIX = LANES
const ROWS: u32 = 256u / LANES;

var<workgroup> part: array<f32, 256>;
var<workgroup> coarse: array<f32, 64>;

const LOWEST: f32 = -3.4028234e38;

// The four columns of item i, i + 1, i + 2, i + 3 of a lane: neighbouring lanes hold neighbouring words.
fn col4(i: u32, lane: u32) -> vec4<u32> {
  if (EPW == 1u) { return vec4<u32>(i, i + 1u, i + 2u, i + 3u) * LANES + lane; }
  let a = ((i / 2u) * LANES + lane) * 2u;
  let b = a + 2u * LANES;
  return vec4<u32>(a, a + 1u, b, b + 1u);
}

fn load_x4(base: u32, c: vec4<u32>, live: bool) -> vec4<f32> {
  var v = vec4<f32>(LOWEST);
  if (live && c.x < p.cols) { v.x = load_x(base + c.x); }
  if (live && c.y < p.cols) { v.y = load_x(base + c.y); }
  if (live && c.z < p.cols) { v.z = load_x(base + c.z); }
  if (live && c.w < p.cols) { v.w = load_x(base + c.w); }
  return v;
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

@compute @workgroup_size(256)
fn main(
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
  let items = (p.cols + LANES - 1u) / LANES;
  var m = LOWEST;
  var s = 0.0;
  var total = 0.0;
  for (var i = 0u; i < items; i += 4u) {
    let c = col4(i, lane);
    let v = load_x4(base, c, live);
    let here = c < vec4<u32>(p.cols);
    let top = max(m, max4(v));
    s = s * exp_(m - top) + sum4(select(vec4<f32>(), exp4(v - top), here));
    m = top;
    total += sum4(select(vec4<f32>(), v, here));
  }
  let top = lane_max(m, t);
  s = lane_sum(s * exp_(m - top), t);
  total = lane_sum(total, t);
  if (!live || lane != 0u) { return; }
  let spread = log_(s);
  terms[2u * row] = bitcast<u32>(top);
  terms[2u * row + 1u] = bitcast<u32>(spread);
  let target_ = bitcast<i32>(labels[row]);
  var value = 0.0;
  if (target_ >= 0 && u32(target_) < p.cols && target_ != p.ignore_index) {
    value = spread - (load_x(base + u32(target_)) - top);
    if (p.smoothing > 0.0) {
      value = (1.0 - p.smoothing) * value + p.smoothing * (spread - (total / f32(p.cols) - top));
    }
  } else if (target_ != p.ignore_index) {
    atomicStore(&status[0], 1u);
    atomicStore(&status[1], bitcast<u32>(target_));
  }
  loss[row] = bitcast<u32>(value);
}
