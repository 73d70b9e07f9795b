// How a workgroup multiplies the steps of a `tile`: each thread its own blocks.
//
// A thread owns one 4 x 4 block, two or 2 x 2 of them, a warp of 32 threads 4 x 8: a vector of the tile is
// read by a whole warp in one access. The quads of a step lie permuted, so that blocks stored along k meet
// all banks.
const PAD: u32 = 0u;
const WIDE_M: bool = TILE_M == 128u && TILE_N > 32u; // two blocks below each other per thread
const WIDE_N: bool = TILE_N == 128u && TILE_M > 32u; // two beside each other
const THREADS_M: u32 = QUADS_M / (1u + u32(WIDE_M));
const THREADS_N: u32 = QUADS_N / (1u + u32(WIDE_N));

// How the quads of the k-th four steps are permuted.
fn twist(k: u32) -> u32 { return k * (8u / QUADS_K); }

// Adds the products of one k, of which the thread's quads are at a and b.
fn multiply(s: ptr<function, Sums>, a: u32, b: u32) {
  let a0 = vec4<T>(tile[a]);
  let b0 = vec4<T>(tile[b]);
  var a1 = a0;
  if (WIDE_M) { a1 = vec4<T>(tile[a + THREADS_M]); }
  var b1 = b0;
  if (WIDE_N) { b1 = vec4<T>(tile[b + THREADS_N]); }
  (*s).s00 = plus((*s).s00, a0, b0);
  if (WIDE_N) { (*s).s01 = plus((*s).s01, a0, b1); }
  if (WIDE_M) { (*s).s10 = plus((*s).s10, a1, b0); }
  if (WIDE_M && WIDE_N) { (*s).s11 = plus((*s).s11, a1, b1); }
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
  var next = Steps();
  var own = vec4<T>();
  if (start < end) { next = fetch(at, t, part, corner, start); }
  for (var k = start; k < end; k += DEPTH) {
    put(t, part, base, next);
    if (SUMS_A) { own += sum_of(next); }
    workgroupBarrier();
    if (k + DEPTH < end) { next = fetch(at, t, part, corner, k + DEPTH); }
    for (var j = 0u; j < QUADS_K; j += 1u) {
      let a = base + 4u * j * PITCH_M + (quad_m ^ twist(j));
      let b = base + FIRST_B + 4u * j * PITCH_N + (quad_n ^ twist(j));
      multiply(&sums, a, b);
      multiply(&sums, a + PITCH_M, b + PITCH_N);
      multiply(&sums, a + 2u * PITCH_M, b + 2u * PITCH_N);
      multiply(&sums, a + 3u * PITCH_M, b + 3u * PITCH_N);
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
