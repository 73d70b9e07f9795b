// VJP of layer (or RMS) normalisation for rows that are split, the second dispatch: dx, dweight and dbias. A
// workgroup owns a strip of 4 * LANES columns and goes through all rows, ROWS at a time.
//
// bindings  0 x, 1 g, 2 weight (read), 3 terms (read, f32, [rows, parts, 4]: partial of
//           layernorm_backward.wgsl), 4 out (write: dx), 5 dweight, 6 dbias (write), 7 params
// grid      ceil(cols / (4 * LANES)) workgroups; linear fold over x, y, z
// workgroup 256 threads, 8.25 KiB of workgroup memory
//
// Each thread adds up g * n and g of its four columns over the rows that it meets, in order, then the first
// row of threads those of the others: the result depends on shapes alone. The last four elements of dweight
// and dbias are written whole. Without a weight (flags 1) any buffer is bound to both, for RMS to dbias.
//@ use rows
//@ use row_out
//@ use norm_vjp
struct Params {
  rows: u32, cols: u32, parts: u32, x_stride: u32, g_stride: u32, out_stride: u32, flags: u32,
}
@group(0) @binding(3) var<storage, read> terms: array<vec4<f32>>;
//@ words out
@group(0) @binding(4) var<storage, read_write> out: array<u32>;
//@ words dweight
@group(0) @binding(5) var<storage, read_write> dweight: array<vec4<u32>>;
//@ words dbias
@group(0) @binding(6) var<storage, read_write> dbias: array<vec4<u32>>;
@group(0) @binding(7) var<uniform> p: Params;

//@ store4 dweight
fn store4_dweight(i: u32, v: vec4<T>) { dweight[i >> 2u] = bitcast<vec4<u32>>(v); }
//@ store4 dbias
fn store4_dbias(i: u32, v: vec4<T>) { dbias[i >> 2u] = bitcast<vec4<u32>>(v); }

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let strip = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (strip * LANES * 4u >= p.cols) { return; }
  let lane = t % LANES;
  let c = col4(0u, (strip * LANES + lane) * 4u);
  let k = scale4(c);
  let inverse = 1.0 / f32(p.cols);
  var dw = vec4<f32>();
  var db = vec4<f32>();
  var turn = 0u;
  for (var start = 0u; start < p.rows; start += ROWS) {
    let row = min(start + t / LANES, p.rows - 1u);
    var own = vec2<f32>();
    for (var j = lane; j < p.parts; j += LANES) { own += terms[row * p.parts + j].xy; }
    let sums = lane_sums(own, t, turn);
    turn = 1u - turn;
    if (row == start + t / LANES) {
      let statistics = terms[row * p.parts].zw;
      let n = norm4(row * p.x_stride, statistics.x, statistics.y, c);
      let g = load_g4(row * p.g_stride, c);
      let b = sums.y * inverse;
      var a = sums.x * inverse;
      if (RMS) { a = 0.0; }
      store_row4(row * p.out_stride, c, statistics.y * (g * k - a - n * b));
      dw += g * n;
      db += g;
    }
  }
  if ((p.flags & 1u) == 0u) { return; }
  dw = down4(dw, t);
  if (!RMS) { db = down4(db, t); }
  if (t >= LANES || c.x >= p.cols) { return; }
  store4_dweight(c.x, dw);
  if (!RMS) { store4_dbias(c.x, db); }
}
