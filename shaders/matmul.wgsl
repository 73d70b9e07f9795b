// Batched matrix product: out[b, m, n] = sum over k of x[b, m, k] * y[b, k, n], any strides on x and y.
//
// bindings  0 x (read), 1 y (read), 2 out (write), 3 params
// grid      one workgroup per 64 x 64 tile of one batch: tiles_n fastest, then tiles_m, then batch; linear
//           fold over x, y, z
// workgroup 256 threads, each owning 4 x 4 outputs; 8.5 KiB of workgroup memory
//
// Strides are in elements. x_rs, x_cs: row and column stride of x, likewise y_rs, y_cs; a transposed operand
// needs no copy. The batch index is split in two levels (outer, inner) so that most broadcasts need no copy
// either: batch = outer * batch_inner + inner. out_rs and out_bs (its row and batch stride) are multiples of
// EPW. One tile of each operand is fetched into registers while the previous one is being multiplied; threads
// run along whichever axis of the operand is contiguous.
struct Params {
  m: u32, n: u32, k: u32,
  batch: u32, batch_inner: u32,
  tiles_m: u32, tiles_n: u32,
  x_off: u32, x_outer: u32, x_inner: u32, x_rs: u32, x_cs: u32,
  y_off: u32, y_outer: u32, y_inner: u32, y_rs: u32, y_cs: u32,
  out_bs: u32, out_rs: u32,
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

const TILE: u32 = 64u;
const DEPTH: u32 = 16u;
const PITCH: u32 = 17u; // vec4s per k: 64 / 4, and one more so that neighbouring k fall in different banks

var<workgroup> tile_x: array<vec4<T>, 272>;
var<workgroup> tile_y: array<vec4<T>, 272>;

// Four elements of x down a column: rows row .. row + 3 at column col, zero outside.
fn fetch_x(base: u32, row: u32, col: u32) -> vec4<T> {
  var v = vec4<T>();
  if (col < p.k) {
    let i = base + row * p.x_rs + col * p.x_cs;
    if (row + 3u < p.m) {
      v = vec4<T>(load_x(i), load_x(i + p.x_rs), load_x(i + 2u * p.x_rs), load_x(i + 3u * p.x_rs));
    } else {
      if (row < p.m) { v.x = load_x(i); }
      if (row + 1u < p.m) { v.y = load_x(i + p.x_rs); }
      if (row + 2u < p.m) { v.z = load_x(i + 2u * p.x_rs); }
    }
  }
  return v;
}

// Four elements of y along a row: columns col .. col + 3 of row row, zero outside.
fn fetch_y(base: u32, row: u32, col: u32) -> vec4<T> {
  var v = vec4<T>();
  if (row < p.k) {
    let i = base + row * p.y_rs + col * p.y_cs;
    if (col + 3u < p.n) {
      v = vec4<T>(load_y(i), load_y(i + p.y_cs), load_y(i + 2u * p.y_cs), load_y(i + 3u * p.y_cs));
    } else {
      if (col < p.n) { v.x = load_y(i); }
      if (col + 1u < p.n) { v.y = load_y(i + p.y_cs); }
      if (col + 2u < p.n) { v.z = load_y(i + 2u * p.y_cs); }
    }
  }
  return v;
}

// Write four neighbouring outputs of one row, word by word.
fn write_row(base: u32, row: u32, col: u32, v: vec4<T>) {
  if (row >= p.m || col >= p.n) { return; }
  let e = vec4<T>(
    epilogue(v.x, row, col),
    epilogue(v.y, row, col + 1u),
    epilogue(v.z, row, col + 2u),
    epilogue(v.w, row, col + 3u),
  );
  let w = (base + row * p.out_rs + col) / EPW;
  if (EPW == 1u) {
    store_out(w, vec2<T>(e.x, e.x));
    if (col + 1u < p.n) { store_out(w + 1u, vec2<T>(e.y, e.y)); }
    if (col + 2u < p.n) { store_out(w + 2u, vec2<T>(e.z, e.z)); }
    if (col + 3u < p.n) { store_out(w + 3u, vec2<T>(e.w, e.w)); }
  } else {
    store_out(w, e.xy);
    if (col + 2u < p.n) { store_out(w + 1u, e.zw); }
  }
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let tiles = p.tiles_m * p.tiles_n;
  let batch = group / tiles;
  if (batch >= p.batch) { return; }
  let tile = group % tiles;
  let row0 = (tile / p.tiles_n) * TILE;
  let col0 = (tile % p.tiles_n) * TILE;
  let outer = batch / p.batch_inner;
  let inner = batch % p.batch_inner;
  let x_base = p.x_off + outer * p.x_outer + inner * p.x_inner;
  let y_base = p.y_off + outer * p.y_outer + inner * p.y_inner;

  // Which quarter-row or quarter-column this thread fetches: neighbouring threads follow the contiguous axis.
  let x_k = select(t / 16u, t % 16u, p.x_cs == 1u);
  let x_4 = select(t % 16u, t / 16u, p.x_cs == 1u);
  let y_k = select(t / 16u, t % 16u, p.y_rs == 1u);
  let y_4 = select(t % 16u, t / 16u, p.y_rs == 1u);
  let row_4 = t / 16u;
  let col_4 = t % 16u;

  var acc0 = vec4<T>();
  var acc1 = vec4<T>();
  var acc2 = vec4<T>();
  var acc3 = vec4<T>();
  var next_x = fetch_x(x_base, row0 + x_4 * 4u, x_k);
  var next_y = fetch_y(y_base, y_k, col0 + y_4 * 4u);
  for (var k0 = 0u; k0 < p.k; k0 += DEPTH) {
    tile_x[x_k * PITCH + x_4] = next_x;
    tile_y[y_k * PITCH + y_4] = next_y;
    workgroupBarrier();
    if (k0 + DEPTH < p.k) {
      next_x = fetch_x(x_base, row0 + x_4 * 4u, k0 + DEPTH + x_k);
      next_y = fetch_y(y_base, k0 + DEPTH + y_k, col0 + y_4 * 4u);
    }
    for (var k = 0u; k < DEPTH; k += 1u) {
      let a = tile_x[k * PITCH + row_4];
      let b = tile_y[k * PITCH + col_4];
      acc0 += a.x * b;
      acc1 += a.y * b;
      acc2 += a.z * b;
      acc3 += a.w * b;
    }
    workgroupBarrier();
  }

  let out_base = batch * p.out_bs;
  let row = row0 + row_4 * 4u;
  let col = col0 + col_4 * 4u;
  write_row(out_base, row, col, acc0);
  write_row(out_base, row + 1u, col, acc1);
  write_row(out_base, row + 2u, col, acc2);
  write_row(out_base, row + 3u, col, acc3);
}
