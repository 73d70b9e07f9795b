// Batched matrix product in 128 x 128 tiles, for results large enough to fill a device with them; otherwise
// matmul.wgsl, whose bindings, parameters and strides it has (tiles_m and tiles_n count tiles of 128).
//
// bindings  0 x (read), 1 y (read), 2 out (write), 3 params
// grid      one workgroup per tile of one batch, batch slowest; linear fold over x, y, z
// workgroup 256 threads, each owning four 4 x 4 blocks 64 apart; 8.25 KiB of workgroup memory
//
// 8 x 8 outputs per thread make a step of k cost 64 multiplications for 16 values read from workgroup memory,
// half of what 4 x 4 needs. Tiles are numbered in bands of eight tile rows, so that workgroups running at the
// same time share rows of x and columns of y in cache. The next tile is fetched into registers meanwhile.
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

const TILE: u32 = 128u;
const DEPTH: u32 = 8u;
const PITCH: u32 = 33u; // vec4s per k: 128 / 4, and one more so that neighbouring k fall in different banks
const BAND: u32 = 8u;

var<workgroup> tile_x: array<vec4<T>, 264>;
var<workgroup> tile_y: array<vec4<T>, 264>;

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

// Write the two blocks of one row.
fn write_pair(base: u32, row: u32, col: u32, low: vec4<T>, high: vec4<T>) {
  write_row(base, row, col, low);
  write_row(base, row, col + 64u, high);
}

// Row and column of a tile, counted in bands.
fn tile_at(tile: u32) -> vec2<u32> {
  let band = tile / (BAND * p.tiles_n);
  let rest = tile % (BAND * p.tiles_n);
  let rows = min(BAND, p.tiles_m - band * BAND);
  return vec2<u32>(band * BAND + rest % rows, rest / rows) * TILE;
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
  let corner = tile_at(group % tiles);
  let row0 = corner.x;
  let col0 = corner.y;
  let outer = batch / p.batch_inner;
  let inner = batch % p.batch_inner;
  let x_base = p.x_off + outer * p.x_outer + inner * p.x_inner;
  let y_base = p.y_off + outer * p.y_outer + inner * p.y_inner;

  // Which quarter-row or quarter-column this thread fetches: neighbouring threads follow the contiguous axis.
  let x_k = select(t / 32u, t % 8u, p.x_cs == 1u);
  let x_4 = select(t % 32u, t / 8u, p.x_cs == 1u);
  let y_k = select(t / 32u, t % 8u, p.y_rs == 1u);
  let y_4 = select(t % 32u, t / 8u, p.y_rs == 1u);
  let row_4 = t / 16u;
  let col_4 = t % 16u;

  var acc0a = vec4<T>();
  var acc0b = vec4<T>();
  var acc1a = vec4<T>();
  var acc1b = vec4<T>();
  var acc2a = vec4<T>();
  var acc2b = vec4<T>();
  var acc3a = vec4<T>();
  var acc3b = vec4<T>();
  var acc4a = vec4<T>();
  var acc4b = vec4<T>();
  var acc5a = vec4<T>();
  var acc5b = vec4<T>();
  var acc6a = vec4<T>();
  var acc6b = vec4<T>();
  var acc7a = vec4<T>();
  var acc7b = vec4<T>();
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
      let xl = tile_x[k * PITCH + row_4];
      let xh = tile_x[k * PITCH + 16u + row_4];
      let yl = tile_y[k * PITCH + col_4];
      let yh = tile_y[k * PITCH + 16u + col_4];
      acc0a += xl.x * yl;
      acc0b += xl.x * yh;
      acc1a += xl.y * yl;
      acc1b += xl.y * yh;
      acc2a += xl.z * yl;
      acc2b += xl.z * yh;
      acc3a += xl.w * yl;
      acc3b += xl.w * yh;
      acc4a += xh.x * yl;
      acc4b += xh.x * yh;
      acc5a += xh.y * yl;
      acc5b += xh.y * yh;
      acc6a += xh.z * yl;
      acc6b += xh.z * yh;
      acc7a += xh.w * yl;
      acc7b += xh.w * yh;
    }
    workgroupBarrier();
  }

  let out_base = batch * p.out_bs;
  let col = col0 + col_4 * 4u;
  write_pair(out_base, row0 + row_4 * 4u + 0u, col, acc0a, acc0b);
  write_pair(out_base, row0 + row_4 * 4u + 1u, col, acc1a, acc1b);
  write_pair(out_base, row0 + row_4 * 4u + 2u, col, acc2a, acc2b);
  write_pair(out_base, row0 + row_4 * 4u + 3u, col, acc3a, acc3b);
  write_pair(out_base, row0 + 64u + row_4 * 4u + 0u, col, acc4a, acc4b);
  write_pair(out_base, row0 + 64u + row_4 * 4u + 1u, col, acc5a, acc5b);
  write_pair(out_base, row0 + 64u + row_4 * 4u + 2u, col, acc6a, acc6b);
  write_pair(out_base, row0 + 64u + row_4 * 4u + 3u, col, acc7a, acc7b);
}
