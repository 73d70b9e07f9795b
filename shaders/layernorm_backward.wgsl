// VJP of layer (or RMS) normalisation: dx, and partial sums of dweight and dbias, which
// layernorm_columns.wgsl adds up; or of rows that are split what their parts come to, with which
// layernorm_strips.wgsl goes on.
//
// bindings  0 x, 1 g, 2 weight (read), 3 mean, 4 rstd (read, f32: the forward's), 5 out (write: dx), 6
//           partial (write, f32), 7 params
// grid      `slots` * parts workgroups, slots at most ceil(rows / ROWS); a few per multiprocessor are best
// workgroup 256 threads, 8.25 KiB of workgroup memory
//
// With h = g * weight and n = (x - mean) * rstd: dx = rstd * (h - avg(h) - n * avg(h * n)); avg(h) drops out
// for RMS. Rows live in registers, as lib/rows.wgsl has it. Slot s walks the ROWS rows from s * ROWS on, then
// those from (s + slots) * ROWS on, .. in order, keeps sums of g * n and g of each in registers and adds them
// up at the end, so the result depends on shapes alone. `partial` is [slots, 2, width], width being cols
// rounded up to fours, and for RMS, which has no bias, [slots, 1, width]. With SPLIT 1 it is [rows, parts,
// 4]: the sums of h and h * n over a part, the mean and rstd of its row; dx is not written. RMS: the mean is
// 0, and not read. flags: 1 weight, without which partial is not written. Strides between rows are in
// elements; out_stride is a multiple of EPW.
//@ use rows
//@ use row_out
//@ use norm_vjp
struct Params {
  rows: u32, cols: u32, parts: u32, x_stride: u32, g_stride: u32, out_stride: u32, flags: u32, slots: u32,
}
@group(0) @binding(3) var<storage, read> mean: array<f32>;
@group(0) @binding(4) var<storage, read> rstd: array<f32>;
//@ words out
@group(0) @binding(5) var<storage, read_write> out: array<u32>;
@group(0) @binding(6) var<storage, read_write> partial: array<vec4<f32>>;
@group(0) @binding(7) var<uniform> p: Params;

// Write four sums of a slot, over its rows in order.
fn put_part(at: u32, c: vec4<u32>, own: vec4<f32>, t: u32) {
  let total = down4(own, t);
  if (t < LANES && c.x < p.cols) { partial[(at + c.x) / 4u] = total; }
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group >= p.slots * p.parts) { return; }
  let slot = group / p.parts;
  let part = group - slot * p.parts;
  let first = part * WIDTH + t % LANES * 4u;
  let inverse = 1.0 / f32(p.cols);
  //@ slots 0
  let c_0 = col4(0u, first);
  //@ slots 0
  let k_0 = scale4(c_0);
  //@ slots 0
  var dw_0 = vec4<f32>();
  //@ slots 0
  var db_0 = vec4<f32>();
  var turn = 0u;
  for (var start = slot * ROWS; start < p.rows; start += p.slots * ROWS) {
    let row = min(start + t / LANES, p.rows - 1u);
    var m = 0.0;
    if (!RMS) { m = mean[row]; }
    let r = rstd[row];
    //@ slots 0
    let n_0 = norm4(row * p.x_stride, m, r, c_0);
    //@ slots 0
    let g_0 = load_g4(row * p.g_stride, c_0);
    var sums = vec2<f32>();
    //@ slots 0
    sums += vec2<f32>(sum4(g_0 * k_0), sum4(g_0 * k_0 * n_0));
    sums = lane_sums(sums, t, turn);
    turn = 1u - turn;
    if (SPLIT == 1u) {
      if (t == 0u) { partial[row * p.parts + part] = vec4<f32>(sums, m, r); }
    } else if (row == start + t / LANES) {
      let b = sums.y * inverse;
      var a = sums.x * inverse;
      if (RMS) { a = 0.0; }
      //@ slots 0
      store_row4(row * p.out_stride, c_0, r * (g_0 * k_0 - a - n_0 * b));
      //@ slots 0
      dw_0 += g_0 * n_0;
      //@ slots 0
      db_0 += g_0;
    }
  }
  if (SPLIT == 1u || (p.flags & 1u) == 0u) { return; }
  let width = (p.cols + 3u) / 4u * 4u;
  var to = slot * width;
  if (!RMS) {
    to += to;
    //@ slots 0
    put_part(to + width, c_0, db_0, t);
  }
  //@ slots 0
  put_part(to, c_0, dw_0, t);
}
