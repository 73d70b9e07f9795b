// Batched products, out[b, m, n] = sum over k of x[b, m, k] * y[b, k, n]: parameters, operands, entry points.
// A file with the line `//@ use matmul` stands behind this text, which stands behind those of `tile`; it
// binds out and p, and has `store_quad(at, row, column, v)` for four results of a row, of which `write`
// stores those that there are by `store` (a word) and `store4`.
//
// Strides are in elements. x_rs, x_cs: row and column stride of x, likewise y_rs, y_cs; a transposed operand
// needs no copy. The batch index is split in two levels (outer, inner) so that most broadcasts need no copy
// either: batch = outer * batch_inner + inner. Where an operand's elements along k (A_ALONG_K, B_ALONG_K) or
// across it are adjacent and all its other steps are multiples of four, it may be bound by vectors; out may
// where out_cs is 1 and the others are (FOURS). With EPW = 2 they are even.
//
// main   a tile per workgroup
// thin   for m up to 16: neighbouring threads follow the memory of y, and SLICES of k are added in a tree
// parts  adds what the others have left of a long k: it is cut into parts of part_k steps, a multiple of
//        DEPTH, whose sums they write out_ps apart. They are read as x, in rows that start on vectors
//
// With SUMS_A, of one batch and not thin, the sums of x over k go to `store_sums(at, row, v)`, four rows at a
// time; behind the rows of a part.
struct Params {
  m: u32, n: u32, k: u32,
  batch: u32, batch_inner: u32,
  tiles_m: u32, tiles_n: u32, parts: u32, part_k: u32,
  x_off: u32, x_outer: u32, x_inner: u32, x_rs: u32, x_cs: u32,
  y_off: u32, y_outer: u32, y_inner: u32, y_rs: u32, y_cs: u32,
  out_ps: u32, out_bs: u32, out_rs: u32, out_cs: u32,
  more_off: u32, more_rs: u32, more_cs: u32,
}

//@ words x
@group(0) @binding(0) var<storage, read> x: array<u32>;
//@ words y
@group(0) @binding(1) var<storage, read> y: array<u32>;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ const FOURS
const FOURS: bool = false;
//@ const WHOLE
const WHOLE: bool = false; // m, n and k are multiples of TILE_M, TILE_N and DEPTH
//@ const ROW_QUADS
const ROW_QUADS: u32 = 1u; // ceil(m / 4) of thin
//@ const SINGLE
const SINGLE: bool = false; // m is 1
//@ const SLICES
const SLICES: u32 = 8u; // of thin, whose tiles are as they stand: 8 or, where neighbours follow k, 32 or 256
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ load4 x
fn load4_x(i: vec4<u32>) -> vec4<S> { return vec4<S>(load_x(i.x), load_x(i.y), load_x(i.z), load_x(i.w)); }
//@ load y
fn load_y(i: u32) -> T { return bitcast<f32>(y[i]); }
//@ load4 y
fn load4_y(i: vec4<u32>) -> vec4<S> { return vec4<S>(load_y(i.x), load_y(i.y), load_y(i.z), load_y(i.w)); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }
//@ store4 out
fn store4_out(i: u32, v: vec4<T>) { store_out(i, v.xy); }

// Where the operands and the result of a batch begin.
struct Place { x: u32, y: u32, out: u32 }

const NEXT: vec4<u32> = vec4<u32>(0u, 1u, 2u, 3u);

// Four indices from i on, the last one again where there are no more.
fn four_from(i: u32, count: u32) -> vec4<u32> {
  if (WHOLE) { return i + NEXT; }
  return min(i + NEXT, vec4<u32>(count - 1u));
}

// Zeros past the end of k.
fn within_k(v: Steps, k: u32) -> Steps {
  if (WHOLE || k + 3u < p.k) { return v; }
  let none = vec4<S>();
  let c = select(none, v.v2, k + 2u < p.k);
  return Steps(select(none, v.v0, k < p.k), select(none, v.v1, k + 1u < p.k), c, none);
}

fn block_a(at: Place, row: u32, k: u32) -> Steps {
  if (SINGLE) {
    let v = load4_x(at.x + four_from(k, p.k) * p.x_cs);
    return within_k(turned(v, vec4<S>(), vec4<S>(), vec4<S>()), k);
  }
  let r = at.x + four_from(row, p.m) * p.x_rs;
  let c = four_from(k, p.k) * p.x_cs;
  if (A_ALONG_K) {
    return within_k(turned(load4_x(r.x + c), load4_x(r.y + c), load4_x(r.z + c), load4_x(r.w + c)), k);
  }
  return within_k(Steps(load4_x(r + c.x), load4_x(r + c.y), load4_x(r + c.z), load4_x(r + c.w)), k);
}

fn block_b(at: Place, k: u32, column: u32) -> Steps {
  let r = at.y + four_from(k, p.k) * p.y_rs;
  let c = four_from(column, p.n) * p.y_cs;
  if (B_ALONG_K) {
    return within_k(turned(load4_y(r + c.x), load4_y(r + c.y), load4_y(r + c.z), load4_y(r + c.w)), k);
  }
  return within_k(Steps(load4_y(r.x + c), load4_y(r.y + c), load4_y(r.z + c), load4_y(r.w + c)), k);
}

// Where a result is, of part 0.
fn index_of(at: Place, row: u32, column: u32) -> u32 { return at.out + row * p.out_rs + column * p.out_cs; }

// Writes four neighbours of a row at i, or as many as there are: results, and the sums that they are made of.
fn write(i: u32, there: u32, v: vec4<T>, sum: vec4<T>) {
  if (FOURS) {
    store4(i, v, sum);
    return;
  }
  store(i / EPW, v.xy, sum.xy);
  if (EPW == 2u) {
    if (there > 2u) { store(i / 2u + 1u, v.zw, sum.zw); }
    return;
  }
  if (there > 1u) { store(i + p.out_cs, v.yy, sum.yy); }
  if (there > 2u) { store(i + 2u * p.out_cs, v.zz, sum.zz); }
  if (there > 3u) { store(i + 3u * p.out_cs, v.ww, sum.ww); }
}

fn store_block(at: Place, row: u32, column: u32, v: Block) {
  store_quad(at, row, column, v.v0);
  store_quad(at, row + 1u, column, v.v1);
  store_quad(at, row + 2u, column, v.v2);
  store_quad(at, row + 3u, column, v.v3);
}

// Where batch `batch` begins, and its part `part` of the result.
fn place_of(batch: u32, part: u32) -> Place {
  let level = vec2<u32>(batch / p.batch_inner, batch % p.batch_inner);
  return Place(
    p.x_off + level.x * p.x_outer + level.y * p.x_inner,
    p.y_off + level.x * p.y_outer + level.y * p.y_inner,
    part * p.out_ps + batch * p.out_bs);
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let tiles = p.tiles_m * p.tiles_n;
  let product = group / tiles;
  if (product >= p.batch * p.parts) { return; }
  let part = product % p.parts;
  let corner = tile_corner(group % tiles, p.tiles_m, p.tiles_n);
  let start = part * p.part_k;
  let at = place_of(product / p.parts, part);
  let sums = multiply_tile(at, t, corner, start, min(p.k, start + p.part_k));
  let row = corner.x + 4u * t;
  if (SUMS_A && corner.y == 0u && t < QUADS_M && row < p.m) { store_sums(at, row, sums); }
}

var<workgroup> slices: array<vec4<T>, 1024>;

// The sum of the blocks of all slices, known to slice 0. Neighbouring slices are `stride` threads apart.
fn sum_of_slices(t: u32, slice: u32, stride: u32, own: Block) -> Block {
  var sum = own;
  for (var half = SLICES / 2u; half > 0u; half /= 2u) {
    workgroupBarrier(); // what was there has been read
    slices[t] = sum.v0;
    slices[t + 256u] = sum.v1;
    slices[t + 512u] = sum.v2;
    slices[t + 768u] = sum.v3;
    workgroupBarrier();
    if (slice < half) {
      let other = t + half * stride;
      sum.v0 += slices[other];
      sum.v1 += slices[other + 256u];
      sum.v2 += slices[other + 512u];
      sum.v3 += slices[other + 768u];
    }
  }
  return sum;
}

fn add_products(s: Block, a: Steps, b: Steps) -> Block {
  let b0 = vec4<T>(b.v0);
  let b1 = vec4<T>(b.v1);
  let b2 = vec4<T>(b.v2);
  let b3 = vec4<T>(b.v3);
  if (SINGLE) {
    return Block(s.v0 + T(a.v0.x) * b0 + T(a.v1.x) * b1 + T(a.v2.x) * b2 + T(a.v3.x) * b3, s.v1, s.v2, s.v3);
  }
  let t = plus(plus(s, vec4<T>(a.v0), b0), vec4<T>(a.v1), b1);
  return plus(plus(t, vec4<T>(a.v2), b2), vec4<T>(a.v3), b3);
}

// The rows of a quad, and as many columns as threads have quads, of one part of k.
@compute @workgroup_size(256)
fn thin(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let product = group / p.tiles_n;
  if (product >= p.batch * p.parts) { return; }
  let part = product % p.parts;
  let at = place_of(product / p.parts, part);
  let quads = 256u / SLICES;
  let slice = select(t / quads, t % SLICES, B_ALONG_K);
  let column = 4u * (group % p.tiles_n * quads + select(t % quads, t / SLICES, B_ALONG_K));
  let end = select(0u, min(p.k, (part + 1u) * p.part_k), column < p.n);
  var s = Sums();
  for (var k = part * p.part_k + 4u * slice; k < end; k += 4u * SLICES) {
    let b = block_b(at, k, column);
    s.s00 = add_products(s.s00, block_a(at, 0u, k), b);
    if (ROW_QUADS > 1u) { s.s01 = add_products(s.s01, block_a(at, 4u, k), b); }
    if (ROW_QUADS > 2u) { s.s10 = add_products(s.s10, block_a(at, 8u, k), b); }
    if (ROW_QUADS > 3u) { s.s11 = add_products(s.s11, block_a(at, 12u, k), b); }
  }
  let stride = select(quads, 1u, B_ALONG_K);
  for (var i = 0u; i < ROW_QUADS; i += 1u) {
    let sum = sum_of_slices(t, slice, stride, s.s00);
    if (slice == 0u) { store_block(at, 4u * i, column, sum); }
    s = Sums(s.s01, s.s10, s.s11, s.s00);
  }
}

// Adds the parts of the results, four per thread.
@compute @workgroup_size(256)
fn parts(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let quad = (wid.x + groups.x * (wid.y + groups.y * wid.z)) * 256u + t;
  let quads = (p.n + 3u) / 4u;
  let row = quad / quads;
  let past = quad - min(quad, p.batch * p.m * quads);
  if (row >= p.batch * p.m && (!SUMS_A || 4u * past >= p.m)) { return; }
  var sum = vec4<T>();
  let from_ = 4u * quad + NEXT;
  for (var part = 0u; part < p.parts; part += 1u) { sum += vec4<T>(load4_x(from_ + part * p.out_ps)); }
  if (SUMS_A && row >= p.batch * p.m) {
    store_sums(Place(), 4u * past, sum);
    return;
  }
  store_quad(place_of(row / p.m, 0u), row % p.m, quad % quads * 4u, sum);
}
