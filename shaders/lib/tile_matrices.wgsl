// How a workgroup multiplies the steps of a `tile` of halves where the hardware multiplies small matrices, in
// the place of `tile_threads`: the SUBGROUP threads of a subgroup share 1 x 2, 2 x 2 or 2 x 4 matrices of
// sums in float32. WGSL has no arrays of them. The host writes the types for a SIDE of 16.
//
// No other operation of subgroups stands here, since drivers are known that fail where both are in a text.
//@ const SIDE
const SIDE: u32 = 8u; // or 16, of which DEPTH and the sides of the tile are multiples
//@ const SUBGROUP
const SUBGROUP: u32 = 8u;
alias Left = coop_mat8x8<f16, A>;
alias Right = coop_mat8x8<f16, B>;
alias Sum = coop_mat8x8<f32, C>;

const PAD: u32 = 2u; // rows begin at multiples of 16 bytes, one behind the other in other banks
const MATRICES: u32 = TILE_M * TILE_N * SUBGROUP / (256u * SIDE * SIDE); // of a subgroup: 2, 4 or 8
const ROWS: u32 = 1u + u32(MATRICES > 2u);
const COLUMNS: u32 = MATRICES / ROWS;
const ACROSS: u32 = TILE_N / (COLUMNS * SIDE); // subgroups
const QUADS: u32 = SIDE / 4u;

// A matrix of sums of each subgroup, by rows, on its way to the threads.
var<workgroup> stage: array<vec4<f32>, 256u / SUBGROUP * SIDE * QUADS>;

fn twist(k: u32) -> u32 { return 0u; }

// Stores a subgroup's sums from this row and column on.
fn store_matrix(at: Place, t: u32, row: u32, column: u32, sums: Sum) {
  let own = t / SUBGROUP * SIDE * QUADS;
  workgroupBarrier(); // what was there has been read
  coopStoreT(sums, &stage[own], QUADS);
  workgroupBarrier();
  for (var i = t % SUBGROUP; i < QUADS * QUADS; i += SUBGROUP) {
    let first = own + i / QUADS * SIDE + i % QUADS;
    let v = Block(stage[first], stage[first + QUADS], stage[first + 2u * QUADS], stage[first + 3u * QUADS]);
    store_block(at, row + i / QUADS * 4u, column + i % QUADS * 4u, v);
  }
}

// As in `tile_threads`.
fn multiply_tile(at: Place, t: u32, corner: vec2<u32>, start: u32, end: u32) -> vec4<T> {
  let part = part_of(t);
  let row = t / SUBGROUP / ACROSS * ROWS * SIDE;
  let column = t / SUBGROUP % ACROSS * COLUMNS * SIDE;
  var c00 = Sum();
  var c01 = Sum();
  var c02 = Sum();
  var c03 = Sum();
  var c10 = Sum();
  var c11 = Sum();
  var c12 = Sum();
  var c13 = Sum();
  var base = 0u;
  var next = Steps();
  var own = vec4<T>();
  if (start < end) { next = fetch(at, t, part, corner, start); }
  for (var k = start; k < end; k += DEPTH) {
    put(t, part, base, next);
    if (SUMS_A) { own += sum_of(next); }
    workgroupBarrier();
    if (k + DEPTH < end) { next = fetch(at, t, part, corner, k + DEPTH); }
    for (var j = 0u; j < DEPTH; j += SIDE) {
      let a = base + j * PITCH_M + row / 4u;
      let b = base + FIRST_B + j * PITCH_N + column / 4u;
      let a0 = coopLoad<Left>(&tile[a], PITCH_M);
      let b0 = coopLoadT<Right>(&tile[b], PITCH_N);
      let b1 = coopLoadT<Right>(&tile[b + QUADS], PITCH_N);
      var b2 = b0;
      var b3 = b1;
      c00 = coopMultiplyAdd(a0, b0, c00);
      c01 = coopMultiplyAdd(a0, b1, c01);
      if (COLUMNS == 4u) {
        b2 = coopLoadT<Right>(&tile[b + 2u * QUADS], PITCH_N);
        b3 = coopLoadT<Right>(&tile[b + 3u * QUADS], PITCH_N);
        c02 = coopMultiplyAdd(a0, b2, c02);
        c03 = coopMultiplyAdd(a0, b3, c03);
      }
      if (ROWS == 2u) {
        let a1 = coopLoad<Left>(&tile[a + QUADS], PITCH_M);
        c10 = coopMultiplyAdd(a1, b0, c10);
        c11 = coopMultiplyAdd(a1, b1, c11);
        if (COLUMNS == 4u) {
          c12 = coopMultiplyAdd(a1, b2, c12);
          c13 = coopMultiplyAdd(a1, b3, c13);
        }
      }
    }
    if (BUFFERS == 2u) { base = STEP - base; } else { workgroupBarrier(); }
  }
  let r = corner.x + row;
  let c = corner.y + column;
  store_matrix(at, t, r, c, c00);
  store_matrix(at, t, r, c + SIDE, c01);
  if (COLUMNS == 4u) {
    store_matrix(at, t, r, c + 2u * SIDE, c02);
    store_matrix(at, t, r, c + 3u * SIDE, c03);
  }
  if (ROWS == 2u) {
    store_matrix(at, t, r + SIDE, c, c10);
    store_matrix(at, t, r + SIDE, c + SIDE, c11);
    if (COLUMNS == 4u) {
      store_matrix(at, t, r + SIDE, c + 2u * SIDE, c12);
      store_matrix(at, t, r + SIDE, c + 3u * SIDE, c13);
    }
  }
  return sums_of_a(t, part, own);
}
