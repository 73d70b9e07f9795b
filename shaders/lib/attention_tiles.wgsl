// What the passes of attention share, first part: bindings, parameters, products of tiles. No entry point; a
// file with the line `//@ use attention_tiles` stands behind this text.
//
// A tile has 64 rows and 64 columns; thread t owns rows 4 (t / 16) .. + 3 and columns 4 (t % 16) .. + 3, a
// Block whose vector i is row i. Mostly queries are rows and keys are columns; where `turned`, it is the
// other way round, so that the sums over queries run along a tile too. Features are walked 16 at a time and
// a workgroup makes 64 columns of results, or 128 with BLOCKS = 2: sums stay in registers, and lengths and
// features are whatever they are.
//
// Operands lie in tiles as they are loaded, of type S, which may be f16; weights, sums and scales are f32. A
// tangent lies `_t` elements behind its operand, with the same strides.
// `walked` are the batch axes that a workgroup walks by itself, bit i for axis i.
struct Params {
  dims: array<vec4<u32>, 2>,
  q_strides: array<vec4<u32>, 2>,
  k_strides: array<vec4<u32>, 2>,
  v_strides: array<vec4<u32>, 2>,
  mask_strides: array<vec4<u32>, 2>,
  g_strides: array<vec4<u32>, 2>,
  out_strides: array<vec4<u32>, 2>,
  out2_strides: array<vec4<u32>, 2>,
  draw_strides: array<vec4<u32>, 2>,
  rank: u32, walked: u32, elements: u32, sharing: u32, tiles: u32, chunks: u32,
  queries: u32, keys: u32, depth: u32, width: u32,
  q_off: u32, q_rs: u32, q_cs: u32, q_t: u32,
  k_off: u32, k_rs: u32, k_cs: u32, k_t: u32,
  v_off: u32, v_rs: u32, v_cs: u32, v_t: u32,
  mask_off: u32, mask_rs: u32, mask_cs: u32, mask_t: u32, mask_rows: u32, mask_cols: u32,
  g_off: u32, g_rs: u32, g_cs: u32, out_rs: u32, out2_rs: u32,
  scale: f32, drop: f32, keep: f32, seed_low: u32, seed_high: u32, offset_low: u32, offset_high: u32,
}
//@ words q
@group(0) @binding(0) var<storage, read> q: array<u32>;
//@ words k
@group(0) @binding(1) var<storage, read> k: array<u32>;
//@ words v
@group(0) @binding(2) var<storage, read> v: array<u32>;
//@ words mask
@group(0) @binding(3) var<storage, read> mask: array<u32>;
//@ words g
@group(0) @binding(4) var<storage, read> g: array<u32>;
@group(0) @binding(5) var<storage, read> stats: array<u32>;
@group(0) @binding(6) var<storage, read_write> out: array<u32>;
@group(0) @binding(7) var<storage, read_write> out2: array<u32>;
@group(0) @binding(8) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ halves S
alias S = T;
//@ const EPW
const EPW: u32 = 1u;
//@ load q
fn load_q(i: u32) -> T { return bitcast<f32>(q[i]); }
//@ load k
fn load_k(i: u32) -> T { return bitcast<f32>(k[i]); }
//@ load v
fn load_v(i: u32) -> T { return bitcast<f32>(v[i]); }
//@ load mask
fn load_mask(i: u32) -> T { return bitcast<f32>(mask[i]); }
//@ load g
fn load_g(i: u32) -> T { return bitcast<f32>(g[i]); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }
//@ const BLOCKS
const BLOCKS: u32 = 1u; // or 2

alias Block = mat4x4<f32>;

const SIDE: u32 = 64u; // of a tile
const COLUMNS: u32 = SIDE * BLOCKS; // of results
const DEPTH: u32 = 16u;
const PITCH: u32 = 17u; // vec4s per feature: 64 / 4, and one more so that neighbours fall in different banks

// Names of the operands.
const Q: u32 = 0u;
const K: u32 = 1u;
const V: u32 = 2u;
const G: u32 = 3u;

var<workgroup> tile_a: array<vec4<S>, 272>;
var<workgroup> tile_b: array<vec4<S>, 272>;
var<workgroup> part: array<vec4<f32>, 272>; // a part of a tile of weights, or a number per thread

// Where one element of the batch begins in every tensor; `row` and `draw` count queries.
struct Place { q: u32, k: u32, v: u32, mask: u32, g: u32, out: u32, out2: u32, row: u32, draw: u32 }

// The element with number `own` among the axes that workgroups share out, and `other` among those they walk.
fn place(own: u32, other: u32) -> Place {
  var at = Place(p.q_off, p.k_off, p.v_off, p.mask_off, p.g_off, 0u, 0u, 0u, 0u);
  var a = own;
  var b = other;
  var step = p.queries;
  for (var i = p.rank; i > 0u; i -= 1u) {
    let x = (i - 1u) >> 2u;
    let y = (i - 1u) & 3u;
    let n = p.dims[x][y];
    var c = 0u;
    if (((p.walked >> (i - 1u)) & 1u) == 1u) {
      c = b % n;
      b /= n;
    } else {
      c = a % n;
      a /= n;
    }
    at.q += c * p.q_strides[x][y];
    at.k += c * p.k_strides[x][y];
    at.v += c * p.v_strides[x][y];
    at.mask += c * p.mask_strides[x][y];
    at.g += c * p.g_strides[x][y];
    at.out += c * p.out_strides[x][y];
    at.out2 += c * p.out2_strides[x][y];
    at.draw += c * p.draw_strides[x][y];
    at.row += c * step;
    step *= n;
  }
  return at;
}

// Rows of an operand or of its tangent, from some row on; `count` of them exist.
struct Rows { which: u32, base: u32, count: u32, cols: u32, rs: u32, cs: u32 }

fn rows_of(which: u32, tangent: bool, at: Place, first: u32) -> Rows {
  if (which == Q) {
    let base = at.q + first * p.q_rs + select(0u, p.q_t, tangent);
    return Rows(Q, base, p.queries - first, p.depth, p.q_rs, p.q_cs);
  }
  if (which == K) {
    let base = at.k + first * p.k_rs + select(0u, p.k_t, tangent);
    return Rows(K, base, p.keys - first, p.depth, p.k_rs, p.k_cs);
  }
  if (which == V) {
    let base = at.v + first * p.v_rs + select(0u, p.v_t, tangent);
    return Rows(V, base, p.keys - first, p.width, p.v_rs, p.v_cs);
  }
  return Rows(G, at.g + first * p.g_rs, p.queries - first, p.width, p.g_rs, p.g_cs);
}

fn element(which: u32, i: u32) -> S {
  if (which == Q) { return load_q(i); }
  if (which == K) { return load_k(i); }
  if (which == V) { return load_v(i); }
  return load_g(i);
}

// Rows row .. row + 3 of x at one column, zero outside.
fn down(x: Rows, row: u32, col: u32) -> vec4<S> {
  var v = vec4<S>();
  if (col >= x.cols) { return v; }
  let i = x.base + row * x.rs + col * x.cs;
  if (row < x.count) { v.x = element(x.which, i); }
  if (row + 1u < x.count) { v.y = element(x.which, i + x.rs); }
  if (row + 2u < x.count) { v.z = element(x.which, i + 2u * x.rs); }
  if (row + 3u < x.count) { v.w = element(x.which, i + 3u * x.rs); }
  return v;
}

// Columns col .. col + 3 of x in one row, zero outside.
fn along(x: Rows, row: u32, col: u32) -> vec4<S> {
  var v = vec4<S>();
  if (row >= x.count) { return v; }
  let i = x.base + row * x.rs + col * x.cs;
  if (col < x.cols) { v.x = element(x.which, i); }
  if (col + 1u < x.cols) { v.y = element(x.which, i + x.cs); }
  if (col + 2u < x.cols) { v.z = element(x.which, i + 2u * x.cs); }
  if (col + 3u < x.cols) { v.w = element(x.which, i + 3u * x.cs); }
  return v;
}

// sum + x y': four rows by four columns at one feature, or key.
fn plus(sum: Block, x: vec4<f32>, y: vec4<S>) -> Block {
  let v = vec4<f32>(y);
  return sum + Block(x.x * v, x.y * v, x.z * v, x.w * v);
}

// a b': rows of a times rows of b. Neighbouring threads fetch along the contiguous axis of an operand.
fn products(a: Rows, b: Rows, t: u32) -> Block {
  let a_k = select(t / 16u, t % 16u, a.cs == 1u);
  let a_4 = select(t % 16u, t / 16u, a.cs == 1u) * 4u;
  let b_k = select(t / 16u, t % 16u, b.cs == 1u);
  let b_4 = select(t % 16u, t / 16u, b.cs == 1u) * 4u;
  var sum = Block();
  var next_a = down(a, a_4, a_k);
  var next_b = down(b, b_4, b_k);
  for (var first = 0u; first < a.cols; first += DEPTH) {
    tile_a[a_k * PITCH + a_4 / 4u] = next_a;
    tile_b[b_k * PITCH + b_4 / 4u] = next_b;
    workgroupBarrier();
    next_a = down(a, a_4, first + DEPTH + a_k);
    next_b = down(b, b_4, first + DEPTH + b_k);
    for (var i = 0u; i < DEPTH; i += 1u) {
      sum = plus(sum, vec4<f32>(tile_a[i * PITCH + t / 16u]), tile_b[i * PITCH + t % 16u]);
    }
    workgroupBarrier();
  }
  return sum;
}

// sum + w x: a tile times rows of x, at columns col .. col + 63 of x.
fn gathered(sum: Block, w: Block, x: Rows, col: u32, t: u32) -> Block {
  var s = sum;
  let columns = transpose(w);
  let x_k = select(t % 16u, t / 16u, x.cs == 1u);
  let x_4 = select(t / 16u, t % 16u, x.cs == 1u) * 4u;
  var next = along(x, x_k, col + x_4);
  for (var first = 0u; first < min(x.count, SIDE); first += DEPTH) {
    if (t % 16u / 4u == first / DEPTH) {
      let to = t % 4u * 4u * PITCH + t / 16u;
      part[to] = columns[0];
      part[to + PITCH] = columns[1];
      part[to + 2u * PITCH] = columns[2];
      part[to + 3u * PITCH] = columns[3];
    }
    tile_b[x_k * PITCH + x_4 / 4u] = next;
    workgroupBarrier();
    next = along(x, first + DEPTH + x_k, col + x_4);
    for (var i = 0u; i < DEPTH; i += 1u) {
      s = plus(s, part[i * PITCH + t / 16u], tile_b[i * PITCH + t % 16u]);
    }
    workgroupBarrier();
  }
  return s;
}

// A thread's part of a workgroup's results: 64 columns, and 64 more with BLOCKS = 2.
struct Results { a: Block, b: Block }

// sum + w x for all columns of results, from column `first` on.
fn collected(sum: Results, w: Block, x: Rows, first: u32, t: u32) -> Results {
  let a = gathered(sum.a, w, x, first, t);
  if (BLOCKS == 1u) { return Results(a, sum.b); }
  return Results(a, gathered(sum.b, w, x, first + SIDE, t));
}

fn sum4(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }
fn times(a: Block, b: Block) -> Block { return Block(a[0] * b[0], a[1] * b[1], a[2] * b[2], a[3] * b[3]); }
fn row_sums(a: Block) -> vec4<f32> { return vec4<f32>(sum4(a[0]), sum4(a[1]), sum4(a[2]), sum4(a[3])); }

// One number per query as a block.
fn spread(v: vec4<f32>, turned: bool) -> Block {
  if (turned) { return Block(v, v, v, v); }
  return Block(vec4<f32>(v.x), vec4<f32>(v.y), vec4<f32>(v.z), vec4<f32>(v.w));
}

// The first of the four queries, or keys, that are this thread's rows or columns.
fn first_query(query0: u32, turned: bool, t: u32) -> u32 {
  return query0 + select(t / 16u, t % 16u, turned) * 4u;
}
fn first_key(key0: u32, turned: bool, t: u32) -> u32 {
  return key0 + select(t % 16u, t / 16u, turned) * 4u;
}

// Sums over the sixteen threads of a row of blocks, in a fixed order; all of them get it.
fn row_total(v: vec4<f32>, t: u32) -> vec4<f32> {
  part[t] = v;
  workgroupBarrier();
  var s = part[t & 0xf0u];
  for (var j = 1u; j < 16u; j += 1u) { s += part[(t & 0xf0u) + j]; }
  workgroupBarrier();
  return s;
}

// Likewise the largest.
fn row_largest(v: vec4<f32>, t: u32) -> vec4<f32> {
  part[t] = v;
  workgroupBarrier();
  var s = part[t & 0xf0u];
  for (var j = 1u; j < 16u; j += 1u) { s = max(s, part[(t & 0xf0u) + j]); }
  workgroupBarrier();
  return s;
}

// Queries times keys: of two operands, one of queries and one of keys, or their tangents. Scores are scaled.
fn pairs(
  x: u32, x_t: bool, y: u32, y_t: bool, at: Place, query0: u32, key0: u32, turned: bool, t: u32,
) -> Block {
  let a = rows_of(x, x_t, at, query0);
  let b = rows_of(y, y_t, at, key0);
  var sums = Block();
  if (turned) { sums = products(b, a, t); } else { sums = products(a, b, t); }
  if (x == Q) { return sums * p.scale; }
  return sums;
}

// Writes four neighbouring columns of one row of `out`.
fn write_out(base: u32, row: u32, rows: u32, col: u32, cols: u32, v: vec4<f32>) {
  if (row >= rows || col >= cols) { return; }
  let w = (base + row * p.out_rs + col) / EPW;
  if (EPW == 1u) {
    store_out(w, v.xx);
    if (col + 1u < cols) { store_out(w + 1u, v.yy); }
    if (col + 2u < cols) { store_out(w + 2u, v.zz); }
    if (col + 3u < cols) { store_out(w + 3u, v.ww); }
  } else {
    store_out(w, v.xy);
    if (col + 2u < cols) { store_out(w + 1u, v.zw); }
  }
}

fn write_block(base: u32, row: u32, rows: u32, col: u32, cols: u32, x: Block) {
  write_out(base, row, rows, col, cols, x[0]);
  write_out(base, row + 1u, rows, col, cols, x[1]);
  write_out(base, row + 2u, rows, col, cols, x[2]);
  write_out(base, row + 3u, rows, col, cols, x[3]);
}

// Writes results to `out`: a tile of rows from row0 on, columns from `first` on.
fn write_results(base: u32, row0: u32, rows: u32, first: u32, cols: u32, x: Results, t: u32) {
  let row = row0 + t / 16u * 4u;
  let col = first + t % 16u * 4u;
  write_block(base, row, rows, col, cols, x.a);
  if (BLOCKS == 2u) { write_block(base, row, rows, col + SIDE, cols, x.b); }
}
