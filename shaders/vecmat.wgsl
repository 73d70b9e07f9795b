// Batched product of a vector and a matrix: out[b, n] = sum over k of x[b, k] * y[b, k, n]; with swapped
// operands and a transposed y, of a matrix and a vector. One pass over y, which is what such a product costs.
//
// bindings  0 x (read), 1 y (read), 2 out (write), 3 params
// entries   columns: neighbouring threads take neighbouring n (best when y_cs is 1); 32 words, 8 slices of k
//           rows: neighbouring threads take neighbouring k (best when y_rs is 1); 8 words, 32 slices of k
// grid      batch * ceil(n / (32 EPW)), for rows ceil(n / (8 EPW)), n fastest; linear fold over x, y, z
// workgroup 256 threads; 2 KiB of workgroup memory
//
// Strides and batches as in matmul.wgsl; x_s is the stride of x along k. out_bs is a multiple of EPW. Slice j
// adds k = j, j + slices, ... in order, then slices are added in order: the result depends on shapes alone.
struct Params {
  n: u32, k: u32, batch: u32, batch_inner: u32,
  x_off: u32, x_outer: u32, x_inner: u32, x_s: u32,
  y_off: u32, y_outer: u32, y_inner: u32, y_rs: u32, y_cs: u32,
  out_bs: u32,
}
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> y: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ load y
fn load_y(i: u32) -> T { return bitcast<f32>(y[i]); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }
//@ fn epilogue
fn epilogue(v: T, row: u32, col: u32) -> T { return v; }

var<workgroup> part: array<vec2<T>, 256>;

// The partial products of slice `slice` of `slices` for the word that starts at column col.
fn slice_sum(batch: u32, col: u32, slice: u32, slices: u32) -> vec2<T> {
  var s = vec2<T>();
  if (col >= p.n) { return s; }
  let outer = batch / p.batch_inner;
  let inner = batch % p.batch_inner;
  let second = EPW == 2u && col + 1u < p.n;
  var x_i = p.x_off + outer * p.x_outer + inner * p.x_inner + slice * p.x_s;
  var y_i = p.y_off + outer * p.y_outer + inner * p.y_inner + slice * p.y_rs + col * p.y_cs;
  for (var k = slice; k < p.k; k += slices) {
    let a = load_x(x_i);
    s.x += a * load_y(y_i);
    if (second) { s.y += a * load_y(y_i + p.y_cs); }
    x_i += slices * p.x_s;
    y_i += slices * p.y_rs;
  }
  return s;
}

// Add `count` partial sums, `step` apart, and write the word.
fn finish(batch: u32, col: u32, first: u32, count: u32, step: u32) {
  if (col >= p.n) { return; }
  var s = part[first];
  for (var j = 1u; j < count; j += 1u) { s += part[first + j * step]; }
  store_out((batch * p.out_bs + col) / EPW, vec2<T>(epilogue(s.x, 0u, col), epilogue(s.y, 0u, col + 1u)));
}

@compute @workgroup_size(256)
fn columns(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let blocks = (p.n + 32u * EPW - 1u) / (32u * EPW);
  let batch = group / blocks;
  if (batch >= p.batch) { return; }
  let col = ((group % blocks) * 32u + t % 32u) * EPW;
  part[t] = slice_sum(batch, col, t / 32u, 8u);
  workgroupBarrier();
  if (t < 32u) { finish(batch, col, t, 8u, 32u); }
}

@compute @workgroup_size(256)
fn rows(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let blocks = (p.n + 8u * EPW - 1u) / (8u * EPW);
  let batch = group / blocks;
  if (batch >= p.batch) { return; }
  let first = (group % blocks) * 8u;
  part[t] = slice_sum(batch, (first + t / 32u) * EPW, t % 32u, 32u);
  workgroupBarrier();
  if (t < 8u) { finish(batch, (first + t) * EPW, t * 32u, 32u, 1u); }
}
