// A tile of a matrix product by one workgroup of 256 threads: TILE_M x TILE_N sums over k of a(row, k) *
// b(k, column), k in steps of DEPTH. No entry point; a file with the line `//@ use tile` stands behind this
// text and completes it with what loads and stores blocks of 4 x 4:
//
// Place         what they need to know beside their indices, such as the batch
// block_a       of a(row .., k ..): vector j is step k + j of four rows
// block_b       of b(k .., column ..): vector j is step k + j of four columns
// store_block   vector i is row row + i of four columns
//
// All indices are multiples of four. What loads make of steps past the end must be zeros; of rows and columns
// past the end it is never stored. A block whose quads run along k in memory is loaded by `turned`; A_ALONG_K
// and B_ALONG_K let neighbouring threads follow memory.
//
// A thread owns one 4 x 4 block, two or 2 x 2 of them, a warp of 32 threads 4 x 8: a vector of the tile is
// read by a whole warp in one access. One 4 x 4 block per thread is fetched into registers while the step
// before is multiplied. With BUFFERS = 2 a step is stored while others still read the one before, with one
// barrier instead of two. The quads of a step lie permuted, so that blocks stored along k meet all banks.
// With SUMS_A the sums of a over k are found on the way, from the blocks in registers.
//@ const TILE_M
const TILE_M: u32 = 64u; // a multiple of 32, as TILE_N
//@ const TILE_N
const TILE_N: u32 = 64u; // TILE_M * TILE_N is 4096, 8192 (a side is 128) or 16384 (both are)
//@ const DEPTH
const DEPTH: u32 = 16u; // 8, 16 or 32; DEPTH * (TILE_M + TILE_N) * BUFFERS is at most 4096
//@ const BUFFERS
const BUFFERS: u32 = 2u; // or 1
//@ const A_ALONG_K
const A_ALONG_K: bool = true;
//@ const B_ALONG_K
const B_ALONG_K: bool = false;
//@ const SUMS_A
const SUMS_A: bool = false;

const WIDE_M: bool = TILE_M == 128u && TILE_N > 32u; // two blocks below each other per thread
const WIDE_N: bool = TILE_N == 128u && TILE_M > 32u; // two beside each other
const QUADS_M: u32 = TILE_M / 4u;
const QUADS_N: u32 = TILE_N / 4u;
const QUADS_K: u32 = DEPTH / 4u;
const THREADS_M: u32 = QUADS_M / (1u + u32(WIDE_M));
const THREADS_N: u32 = QUADS_N / (1u + u32(WIDE_N));
const STEP: u32 = DEPTH * (QUADS_M + QUADS_N); // vectors of one step
const FIRST_B: u32 = DEPTH * QUADS_M;
const BLOCKS_A: u32 = QUADS_M * QUADS_K;
const BLOCKS_B: u32 = QUADS_N * QUADS_K;
const BAND: u32 = 8u;

struct Block { v0: vec4<T>, v1: vec4<T>, v2: vec4<T>, v3: vec4<T> }
struct Sums { s00: Block, s01: Block, s10: Block, s11: Block }

var<workgroup> tile: array<vec4<T>, STEP * BUFFERS>;

// Four vectors as columns.
fn turned(x: vec4<T>, y: vec4<T>, z: vec4<T>, w: vec4<T>) -> Block {
  return Block(
    vec4<T>(x.x, y.x, z.x, w.x), vec4<T>(x.y, y.y, z.y, w.y),
    vec4<T>(x.z, y.z, z.z, w.z), vec4<T>(x.w, y.w, z.w, w.w));
}

// The first row and column of a tile. Tiles are numbered in bands of eight rows of them, so that workgroups
// running at the same time share rows of a and columns of b in cache.
fn tile_corner(number: u32, tiles_m: u32, tiles_n: u32) -> vec2<u32> {
  let band = number / (BAND * tiles_n);
  let rest = number % (BAND * tiles_n);
  let rows = min(BAND, tiles_m - band * BAND);
  return vec2<u32>((band * BAND + rest % rows) * TILE_M, rest / rows * TILE_N);
}

// Which block a thread fetches: the quad of rows or columns, the quad of k, and whether it is of b.
struct Part { quad: u32, k: u32, of_b: bool }

fn part_of(t: u32) -> Part {
  let of_b = t >= BLOCKS_A;
  let u = select(t, t - BLOCKS_A, of_b);
  let quads = select(QUADS_M, QUADS_N, of_b);
  if (select(A_ALONG_K, B_ALONG_K, of_b)) { return Part(u / QUADS_K, u % QUADS_K, of_b); }
  return Part(u % quads, u / quads, of_b);
}

// The thread's block of the step that begins at k.
fn fetch(at: Place, t: u32, part: Part, corner: vec2<u32>, k: u32) -> Block {
  if (!part.of_b) { return block_a(at, corner.x + 4u * part.quad, k + 4u * part.k); }
  if (t < BLOCKS_A + BLOCKS_B) { return block_b(at, k + 4u * part.k, corner.y + 4u * part.quad); }
  return Block();
}

// How the quads of the k-th four steps are permuted.
fn twist(k: u32) -> u32 { return k * (8u / QUADS_K); }

fn put(t: u32, part: Part, base: u32, v: Block) {
  if (t >= BLOCKS_A + BLOCKS_B) { return; }
  let pitch = select(QUADS_M, QUADS_N, part.of_b);
  let first = base + select(0u, FIRST_B, part.of_b) + 4u * part.k * pitch + (part.quad ^ twist(part.k));
  tile[first] = v.v0;
  tile[first + pitch] = v.v1;
  tile[first + 2u * pitch] = v.v2;
  tile[first + 3u * pitch] = v.v3;
}

fn plus(s: Block, a: vec4<T>, b: vec4<T>) -> Block {
  return Block(s.v0 + a.x * b, s.v1 + a.y * b, s.v2 + a.z * b, s.v3 + a.w * b);
}

// Adds the products of one k, of which the thread's quads are at a and b.
fn multiply(s: ptr<function, Sums>, a: u32, b: u32) {
  let a0 = tile[a];
  let b0 = tile[b];
  var a1 = a0;
  if (WIDE_M) { a1 = tile[a + THREADS_M]; }
  var b1 = b0;
  if (WIDE_N) { b1 = tile[b + THREADS_N]; }
  (*s).s00 = plus((*s).s00, a0, b0);
  if (WIDE_N) { (*s).s01 = plus((*s).s01, a0, b1); }
  if (WIDE_M) { (*s).s10 = plus((*s).s10, a1, b0); }
  if (WIDE_M && WIDE_N) { (*s).s11 = plus((*s).s11, a1, b1); }
}

// The sums of a quad of rows, t % QUADS_M, of which threads have those over the k that they have fetched.
fn sums_of_a(t: u32, part: Part, own: vec4<T>) -> vec4<T> {
  var sum = vec4<T>();
  if (!SUMS_A) { return sum; }
  workgroupBarrier(); // the last step has been read
  if (!part.of_b) { tile[part.k * QUADS_M + part.quad] = own; }
  workgroupBarrier();
  for (var k = 0u; k < QUADS_K; k += 1u) { sum += tile[k * QUADS_M + t % QUADS_M]; }
  return sum;
}

// Computes and stores the tile with this corner, its sums over k from `start`, a multiple of four, to `end`.
// Returns the sums of a that thread t < QUADS_M has, of rows corner.x + 4 t .. + 3, or zeros without SUMS_A.
fn multiply_tile(at: Place, t: u32, corner: vec2<u32>, start: u32, end: u32) -> vec4<T> {
  let part = part_of(t);
  let warp = t / 32u;
  let quad_m = warp / (THREADS_N / 8u) * 4u + t / 8u % 4u;
  let quad_n = warp % (THREADS_N / 8u) * 8u + t % 8u;
  var sums = Sums();
  var base = 0u;
  var next = Block();
  var own = vec4<T>();
  if (start < end) { next = fetch(at, t, part, corner, start); }
  for (var k = start; k < end; k += DEPTH) {
    put(t, part, base, next);
    if (SUMS_A) { own += next.v0 + next.v1 + next.v2 + next.v3; }
    workgroupBarrier();
    if (k + DEPTH < end) { next = fetch(at, t, part, corner, k + DEPTH); }
    for (var j = 0u; j < QUADS_K; j += 1u) {
      let a = base + 4u * j * QUADS_M + (quad_m ^ twist(j));
      let b = base + FIRST_B + 4u * j * QUADS_N + (quad_n ^ twist(j));
      multiply(&sums, a, b);
      multiply(&sums, a + QUADS_M, b + QUADS_N);
      multiply(&sums, a + 2u * QUADS_M, b + 2u * QUADS_N);
      multiply(&sums, a + 3u * QUADS_M, b + 3u * QUADS_N);
    }
    if (BUFFERS == 2u) { base = STEP - base; } else { workgroupBarrier(); }
  }
  let row = corner.x + 4u * quad_m;
  let column = corner.y + 4u * quad_n;
  store_block(at, row, column, sums.s00);
  if (WIDE_N) { store_block(at, row, column + 4u * THREADS_N, sums.s01); }
  if (WIDE_M) { store_block(at, row + 4u * THREADS_M, column, sums.s10); }
  if (WIDE_M && WIDE_N) { store_block(at, row + 4u * THREADS_M, column + 4u * THREADS_N, sums.s11); }
  return sums_of_a(t, part, own);
}
