// Softmax and log-softmax along the rows of a matrix.
//
// bindings  0 x (read), 1 out (write), 2 terms (SPLIT 1 writes, 2 reads; f32), 3 params
// grid      ceil(rows * parts / ROWS) workgroups, in each dispatch; linear fold over x, y, z
// workgroup 256 threads, 4.25 KiB of workgroup memory
//
// Rows live in registers, as lib/rows.wgsl has it; LOG selects log-softmax. terms holds the largest element
// of each part and the sum of exponentials relative to it; where nothing is split, any buffer is bound to it.
// Strides between rows are in elements; out_stride is a multiple of EPW. Entries of -inf give 0 (or -inf); a
// row of nothing but -inf gives NaN, as everywhere.
//@ use rows
//@ use row_out
struct Params { rows: u32, cols: u32, parts: u32, x_stride: u32, out_stride: u32 }
//@ words x
@group(0) @binding(0) var<storage, read> x: array<u32>;
//@ words out
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@group(0) @binding(2) var<storage, read_write> terms: array<vec2<f32>>;
@group(0) @binding(3) var<uniform> p: Params;

//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ load4 x
fn load4_x(i: vec4<u32>) -> vec4<T> { return vec4<T>(load_x(i.x), load_x(i.y), load_x(i.z), load_x(i.w)); }
//@ fn exp_
fn exp_(x: f32) -> f32 { return exp(x); }
//@ fn log_
fn log_(x: f32) -> f32 { return log(x); }
//@ const LOG
const LOG: bool = false;

fn load_x4(base: u32, c: vec4<u32>) -> vec4<f32> {
  return select(vec4<f32>(LOWEST), load4_x(base + inside4(c)), here4(c));
}

// exp(v - m) where there is a column, zero elsewhere.
fn weight4(v: vec4<f32>, m: f32, c: vec4<u32>) -> vec4<f32> {
  let d = v - m;
  return select(vec4<f32>(), vec4<f32>(exp_(d.x), exp_(d.y), exp_(d.z), exp_(d.w)), here4(c));
}

// Maximum and sum of a row, from those of its parts.
fn of_parts(row: u32, t: u32) -> vec2<f32> {
  var m = LOWEST;
  var s = 0.0;
  for (var j = t; j < p.parts; j += 256u) {
    let term = terms[row * p.parts + j];
    let top = max(m, term.x);
    s = s * exp_(m - top) + term.y * exp_(term.x - top);
    m = top;
  }
  let top = lane_max(m, t, 0u);
  return vec2<f32>(top, lane_sum(s * exp_(m - top), t, 1u));
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
  let base = at.row * p.x_stride;
  //@ slots 0
  let c_0 = col4(0u, at.first);
  //@ slots 0
  let v_0 = load_x4(base, c_0);
  var m = LOWEST;
  var s = 0.0;
  if (SPLIT == 2u) {
    let whole = of_parts(at.row, t);
    m = whole.x;
    s = whole.y;
  } else {
    //@ slots 0
    m = max(m, max4(v_0));
    m = lane_max(m, t, 0u);
  }
  //@ slots 0
  let e_0 = weight4(v_0, m, c_0);
  if (SPLIT != 2u) {
    //@ slots 0
    s += sum4(e_0);
    s = lane_sum(s, t, 1u);
  }
  if (!at.live) { return; }
  if (SPLIT == 1u) {
    if (t == 0u) { terms[at.unit] = vec2<f32>(m, s); }
    return;
  }
  let to = at.row * p.out_stride;
  if (LOG) {
    let shift = log_(s);
    //@ slots 0
    store_row4(to, c_0, v_0 - m - shift);
  } else {
    let scale = 1.0 / s;
    //@ slots 0
    store_row4(to, c_0, e_0 * scale);
  }
}
