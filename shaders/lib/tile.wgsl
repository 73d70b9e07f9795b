// A tile of a matrix product by one workgroup of 256 threads: TILE_M x TILE_N sums over k of a(row, k) *
// b(k, column), k in steps of DEPTH. No entry point: `tile_threads` or `tile_matrices` stands behind this
// text and multiplies, behind it a file with the line `//@ use tile`, which completes both with what loads
// and stores blocks of 4 x 4:
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
// One 4 x 4 block per thread is fetched into registers while the step before is multiplied. With BUFFERS = 2
// a step is stored while others still read the one before, with one barrier instead of two. Operands lie in
// the tile as they are loaded, of type S: where that is f16 they take half of the bytes, and products, which
// are exact in float32, and sums have the same bits.
// With SUMS_A the sums of a over k are found on the way, from the blocks in registers.
//@ halves S
alias S = T;
//@ const TILE_M
const TILE_M: u32 = 64u; // a multiple of 32, as TILE_N
//@ const TILE_N
const TILE_N: u32 = 64u; // TILE_M * TILE_N is 4096, 8192 (a side is 128) or 16384 (both are)
//@ const DEPTH
const DEPTH: u32 = 16u; // 8, 16 or 32; DEPTH * (TILE_M + TILE_N) * BUFFERS is at most 4096, of halves 8192
//@ const BUFFERS
const BUFFERS: u32 = 2u; // or 1
//@ const A_ALONG_K
const A_ALONG_K: bool = true;
//@ const B_ALONG_K
const B_ALONG_K: bool = false;
//@ const SUMS_A
const SUMS_A: bool = false;

const QUADS_M: u32 = TILE_M / 4u;
const QUADS_N: u32 = TILE_N / 4u;
const QUADS_K: u32 = DEPTH / 4u;
const PITCH_M: u32 = QUADS_M + PAD; // vectors from one k to the next
const PITCH_N: u32 = QUADS_N + PAD;
const STEP: u32 = DEPTH * (PITCH_M + PITCH_N); // vectors of one step
const FIRST_B: u32 = DEPTH * PITCH_M;
const BLOCKS_A: u32 = QUADS_M * QUADS_K;
const BLOCKS_B: u32 = QUADS_N * QUADS_K;
const BAND: u32 = 8u;

struct Block { v0: vec4<T>, v1: vec4<T>, v2: vec4<T>, v3: vec4<T> }
struct Sums { s00: Block, s01: Block, s10: Block, s11: Block }
struct Steps { v0: vec4<S>, v1: vec4<S>, v2: vec4<S>, v3: vec4<S> }

var<workgroup> tile: array<vec4<S>, STEP * BUFFERS>;
// Sums of a, in the place of the tile or, if that is of halves, beside it.
//@ halves put
fn put_sum(i: u32, v: vec4<T>) { tile[i] = v; }
//@ halves sum
fn sum_at(i: u32) -> vec4<T> { return tile[i]; }

// Four vectors as columns.
fn turned(x: vec4<S>, y: vec4<S>, z: vec4<S>, w: vec4<S>) -> Steps {
  return Steps(
    vec4<S>(x.x, y.x, z.x, w.x), vec4<S>(x.y, y.y, z.y, w.y),
    vec4<S>(x.z, y.z, z.z, w.z), vec4<S>(x.w, y.w, z.w, w.w));
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
fn fetch(at: Place, t: u32, part: Part, corner: vec2<u32>, k: u32) -> Steps {
  if (!part.of_b) { return block_a(at, corner.x + 4u * part.quad, k + 4u * part.k); }
  if (t < BLOCKS_A + BLOCKS_B) { return block_b(at, k + 4u * part.k, corner.y + 4u * part.quad); }
  return Steps();
}

fn put(t: u32, part: Part, base: u32, v: Steps) {
  if (t >= BLOCKS_A + BLOCKS_B) { return; }
  let pitch = select(PITCH_M, PITCH_N, part.of_b);
  let first = base + select(0u, FIRST_B, part.of_b) + 4u * part.k * pitch + (part.quad ^ twist(part.k));
  tile[first] = v.v0;
  tile[first + pitch] = v.v1;
  tile[first + 2u * pitch] = v.v2;
  tile[first + 3u * pitch] = v.v3;
}

fn plus(s: Block, a: vec4<T>, b: vec4<T>) -> Block {
  return Block(s.v0 + a.x * b, s.v1 + a.y * b, s.v2 + a.z * b, s.v3 + a.w * b);
}

fn sum_of(v: Steps) -> vec4<T> { return vec4<T>(v.v0) + vec4<T>(v.v1) + vec4<T>(v.v2) + vec4<T>(v.v3); }

// The sums of a quad of rows, t % QUADS_M, of which threads have those over the k that they have fetched.
fn sums_of_a(t: u32, part: Part, own: vec4<T>) -> vec4<T> {
  var sum = vec4<T>();
  if (!SUMS_A) { return sum; }
  workgroupBarrier(); // the last step has been read
  if (!part.of_b) { put_sum(part.k * QUADS_M + part.quad, own); }
  workgroupBarrier();
  for (var k = 0u; k < QUADS_K; k += 1u) { sum += sum_at(k * QUADS_M + t % QUADS_M); }
  return sum;
}
