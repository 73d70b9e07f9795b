// Layer normalisation of rows, or RMS normalisation: y = (x - mean) * rstd * weight + bias.
//
// bindings  0 x (read), 1 weight (read), 2 bias (read), 3 out (write), 4 mean (write, f32), 5 rstd (write,
//           f32), 6 terms (SPLIT 1 writes, 2 reads; f32), 7 params
// grid      ceil(rows * parts / ROWS) workgroups, in each dispatch; linear fold over x, y, z
// workgroup 256 threads, 4.25 KiB of workgroup memory
//
// Rows live in registers, as lib/rows.wgsl has it. RMS: the mean is taken as 0, and none is written. flags: 1
// weight, 2 bias. Without weight, bias or mean, and for `terms` where nothing is split, any buffer may be
// bound in its place. The variance is the mean of squared deviations from the finished mean, never a
// difference of two large sums; terms holds the mean of each part and the squared deviations from it. Strides
// between rows are in elements; out_stride is a multiple of EPW.
//@ use rows
//@ use row_out
struct Params {
  rows: u32, cols: u32, parts: u32, x_stride: u32, out_stride: u32, flags: u32, eps: f32,
}
//@ words x
@group(0) @binding(0) var<storage, read> x: array<u32>;
//@ words weight
@group(0) @binding(1) var<storage, read> weight: array<u32>;
//@ words bias
@group(0) @binding(2) var<storage, read> bias: array<u32>;
//@ words out
@group(0) @binding(3) var<storage, read_write> out: array<u32>;
@group(0) @binding(4) var<storage, read_write> mean: array<f32>;
@group(0) @binding(5) var<storage, read_write> rstd: array<f32>;
@group(0) @binding(6) var<storage, read_write> terms: array<vec2<f32>>;
@group(0) @binding(7) var<uniform> p: Params;

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

//@ const RMS
const RMS: bool = false;

fn four_weights(i: vec4<u32>) -> vec4<T> {
  return vec4<T>(load_weight(i.x), load_weight(i.y), load_weight(i.z), load_weight(i.w));
}
fn four_biases(i: vec4<u32>) -> vec4<T> {
  return vec4<T>(load_bias(i.x), load_bias(i.y), load_bias(i.z), load_bias(i.w));
}

fn load_x4(base: u32, c: vec4<u32>) -> vec4<f32> {
  return select(vec4<f32>(), load4_x(base + inside4(c)), here4(c));
}

// Squared deviations, zero where there is no column.
fn square4(v: vec4<f32>, m: f32, c: vec4<u32>) -> f32 {
  let d = select(vec4<f32>(), v - m, here4(c));
  return sum4(d * d);
}

// Scale, shift and write four columns.
fn finish4(to: u32, c: vec4<u32>, v: vec4<f32>, m: f32, r: f32) {
  var y = (v - m) * r;
  if ((p.flags & 1u) != 0u) { y *= load4_weight(inside4(c)); }
  if ((p.flags & 2u) != 0u) { y += load4_bias(inside4(c)); }
  store_row4(to, c, y);
}

// The number of columns of a part.
fn width_of(part: u32) -> u32 { return min(WIDTH, p.cols - part * WIDTH); }

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group * ROWS >= p.rows * p.parts) { return; }
  let at = place(group, t);
  let parts = at.row * p.parts;
  let base = at.row * p.x_stride;
  //@ slots 0
  let c_0 = col4(0u, at.first);
  //@ slots 0
  let v_0 = load_x4(base, c_0);
  var m = 0.0;
  var count = f32(p.cols);
  if (SPLIT == 1u) { count = f32(width_of(at.unit - parts)); }
  if (!RMS) {
    var sum = 0.0;
    if (SPLIT == 2u) {
      for (var j = t; j < p.parts; j += 256u) { sum += f32(width_of(j)) * terms[parts + j].x; }
    } else {
      //@ slots 0
      sum += sum4(v_0);
    }
    m = lane_sum(sum, t, 0u) / count;
  }
  var squares = 0.0;
  if (SPLIT == 2u) {
    for (var j = t; j < p.parts; j += 256u) {
      let d = terms[parts + j].x - m;
      squares += terms[parts + j].y + f32(width_of(j)) * d * d;
    }
  } else {
    //@ slots 0
    squares += square4(v_0, m, c_0);
  }
  squares = lane_sum(squares, t, 1u);
  if (!at.live) { return; }
  if (SPLIT == 1u) {
    if (t == 0u) { terms[at.unit] = vec2<f32>(m, squares); }
    return;
  }
  let r = 1.0 / sqrt(squares / count + p.eps);
  if (at.first == 0u) {
    if (!RMS) { mean[at.row] = m; }
    rstd[at.row] = r;
  }
  let to = at.row * p.out_stride;
  //@ slots 0
  finish4(to, c_0, v_0, m, r);
}
