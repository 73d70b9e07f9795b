// Cross entropy of rows of logits against class indices: loss[r] = log sum exp x[r] - x[r, labels[r]].
//
// bindings  0 x (read), 1 labels (read, i32: the target classes), 2 loss (write, f32), 3 terms (write, f32),
//           4 status (atomic words), 5 pairs (SPLIT 1 writes, 2 reads; f32), 6 params
// grid      ceil(rows / ROWS) workgroups, in a split rows * parts and then rows; linear fold over x, y, z
// workgroup 256 threads, 4.25 KiB of workgroup memory
//
// terms holds the largest logit of a row, and the logarithm of the sum relative to it. Each row is read once,
// with a running maximum and sum, in blocks that lie in the registers of LANES threads, as lib/rows.wgsl has
// it; a part of a row is `length` columns, a multiple of such blocks. pairs holds the maximum and the sum of
// each part; where nothing is split, any buffer is bound to it. A target equal to ignore_index gives loss 0.
// Any other target outside [0, cols) gives loss 0, sets status[0] to 1 and status[1] to the target.
//@ use rows
struct Params { rows: u32, cols: u32, parts: u32, length: u32, x_stride: u32, ignore_index: i32 }
//@ words x
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> labels: array<i32>;
@group(0) @binding(2) var<storage, read_write> loss: array<f32>;
@group(0) @binding(3) var<storage, read_write> terms: array<vec2<f32>>;
@group(0) @binding(4) var<storage, read_write> status: array<atomic<u32>>;
@group(0) @binding(5) var<storage, read_write> pairs: array<vec2<f32>>;
@group(0) @binding(6) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ load4 x
fn load4_x(i: vec4<u32>) -> vec4<T> { return vec4<T>(load_x(i.x), load_x(i.y), load_x(i.z), load_x(i.w)); }
//@ fn exp_
fn exp_(x: f32) -> f32 { return exp(x); }
//@ fn log_
fn log_(x: f32) -> f32 { return log(x); }

fn load_x4(base: u32, c: vec4<u32>) -> vec4<f32> {
  return select(vec4<f32>(LOWEST), load4_x(base + inside4(c)), here4(c));
}

// The sum of exp(v - m) where there is a column.
fn weight(v: vec4<f32>, m: f32, c: vec4<u32>) -> f32 {
  let d = v - m;
  return sum4(select(vec4<f32>(), vec4<f32>(exp_(d.x), exp_(d.y), exp_(d.z), exp_(d.w)), here4(c)));
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let units = p.rows * select(1u, p.parts, SPLIT == 1u);
  if (group * ROWS >= units) { return; }
  let unit = min(group * ROWS + t / LANES, units - 1u);
  var row = unit;
  var m = LOWEST;
  var s = 0.0;
  if (SPLIT == 2u) {
    for (var j = t; j < p.parts; j += 256u) {
      let pair = pairs[row * p.parts + j];
      let top = max(m, pair.x);
      s = s * exp_(m - top) + pair.y * exp_(pair.x - top);
      m = top;
    }
  } else {
    if (SPLIT == 1u) { row = unit / p.parts; }
    let base = row * p.x_stride;
    let start = (unit - row * p.parts) * select(0u, p.length, SPLIT == 1u);
    for (var at = start; at < min(start + p.length, p.cols); at += WIDTH) {
      //@ slots 0
      let c_0 = col4(0u, at + t % LANES * 4u);
      //@ slots 0
      let v_0 = load_x4(base, c_0);
      var top = m;
      //@ slots 0
      top = max(top, max4(v_0));
      s *= exp_(m - top);
      //@ slots 0
      s += weight(v_0, top, c_0);
      m = top;
    }
  }
  let top = lane_max(m, t, 0u);
  s = lane_sum(s * exp_(m - top), t, 1u);
  if (t % LANES != 0u || group * ROWS + t / LANES != unit) { return; }
  if (SPLIT == 1u) {
    pairs[unit] = vec2<f32>(top, s);
    return;
  }
  let spread = log_(s);
  terms[row] = vec2<f32>(top, spread);
  let label = labels[row];
  var value = 0.0;
  if (label >= 0 && u32(label) < p.cols && label != p.ignore_index) {
    value = spread - (load_x(row * p.x_stride + u32(label)) - top);
  } else if (label != p.ignore_index) {
    atomicStore(&status[0], 1u);
    atomicStore(&status[1], bitcast<u32>(label));
  }
  loss[row] = value;
}
