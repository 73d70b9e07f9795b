// What the passes of attention share, second part: masks, weights and dropout of a tile. Stands behind
// attention_tiles.wgsl.
//
// MASK: 0 none, 1 true takes part, 2 added to the scores. MOVES says which operands have tangents: 1
// queries, 2 keys, 4 values, 8 mask. Score (i, j) of batch element b is dropped by number (b * queries + i)
// * keys + j of a Philox stream; `draw_strides` count those b. A score of minus infinity does not count; it
// is told by its bits.
//@ fn exp_
fn exp_(x: f32) -> f32 { return exp(x); }
//@ const MASK
const MASK: u32 = 0u;
//@ const CAUSAL
const CAUSAL: bool = false;
//@ const DROPOUT
const DROPOUT: bool = false;
//@ const MOVES
const MOVES: u32 = 0u;

const NEVER: u32 = 0xff800000u; // the bits of minus infinity

fn exp4(v: vec4<f32>) -> vec4<f32> { return vec4<f32>(exp_(v.x), exp_(v.y), exp_(v.z), exp_(v.w)); }

// Four queries and four keys of one row of a block, and whether their scores count as far as positions say.
struct Pairs { query: vec4<u32>, key: vec4<u32>, live: vec4<bool> }

fn row_pairs(query0: u32, key0: u32, turned: bool, i: u32, t: u32) -> Pairs {
  let four = vec4<u32>(0u, 1u, 2u, 3u);
  let query = first_query(query0, turned, t) + select(vec4<u32>(i), four, turned);
  let key = first_key(key0, turned, t) + select(four, vec4<u32>(i), turned);
  var live = (query < vec4<u32>(p.queries)) & (key < vec4<u32>(p.keys));
  if (CAUSAL) { live = live & (key <= query); }
  return Pairs(query, key, live);
}

// The mask, or its tangent, at the pairs that count.
fn mask4(base: u32, at: Pairs) -> vec4<f32> {
  let i = vec4<u32>(base) + at.query * p.mask_rs + at.key * p.mask_cs;
  var v = vec4<f32>();
  if (at.live.x) { v.x = T(load_mask(i.x)); }
  if (at.live.y) { v.y = T(load_mask(i.y)); }
  if (at.live.z) { v.z = T(load_mask(i.z)); }
  if (at.live.w) { v.w = T(load_mask(i.w)); }
  return v;
}

// Scores, and a bit for each that counts: bit 4 row + column.
struct Scores { s: Block, live: u32 }

fn lives(live: u32, i: u32) -> vec4<bool> {
  return (vec4<u32>(live >> (4u * i)) & vec4<u32>(1u, 2u, 4u, 8u)) != vec4<u32>();
}

// One row of scores, masked.
fn masked(s: vec4<f32>, at: Place, query0: u32, key0: u32, turned: bool, i: u32, t: u32) -> vec4<f32> {
  if (MASK != 2u) { return s; }
  return s + mask4(at.mask, row_pairs(query0, key0, turned, i, t));
}

// The bits of one row.
fn counts(s: vec4<f32>, at: Place, query0: u32, key0: u32, turned: bool, i: u32, t: u32) -> u32 {
  let these = row_pairs(query0, key0, turned, i, t);
  var live = these.live & (bitcast<vec4<u32>>(s) != vec4<u32>(NEVER));
  if (MASK == 1u) { live = live & (mask4(at.mask, these) > vec4<f32>()); }
  let bits = select(vec4<u32>(), vec4<u32>(1u, 2u, 4u, 8u), live);
  return (bits.x | bits.y | bits.z | bits.w) << (4u * i);
}

fn scores(at: Place, query0: u32, key0: u32, turned: bool, t: u32) -> Scores {
  let x = pairs(Q, false, K, false, at, query0, key0, turned, t);
  let s = Block(
    masked(x[0], at, query0, key0, turned, 0u, t),
    masked(x[1], at, query0, key0, turned, 1u, t),
    masked(x[2], at, query0, key0, turned, 2u, t),
    masked(x[3], at, query0, key0, turned, 3u, t),
  );
  let low = counts(s[0], at, query0, key0, turned, 0u, t) | counts(s[1], at, query0, key0, turned, 1u, t);
  let high = counts(s[2], at, query0, key0, turned, 2u, t) | counts(s[3], at, query0, key0, turned, 3u, t);
  return Scores(s, low | high);
}

// exp(score - shift), 0 where the score does not count.
fn weights(x: Scores, shift: Block) -> Block {
  return Block(
    select(vec4<f32>(), exp4(x.s[0] - shift[0]), lives(x.live, 0u)),
    select(vec4<f32>(), exp4(x.s[1] - shift[1]), lives(x.live, 1u)),
    select(vec4<f32>(), exp4(x.s[2] - shift[2]), lives(x.live, 2u)),
    select(vec4<f32>(), exp4(x.s[3] - shift[3]), lives(x.live, 3u)),
  );
}

// The tangents of the scores: scale (TQ K' + Q TK') + tmask.
fn moved_scores(at: Place, query0: u32, key0: u32, turned: bool, t: u32) -> Block {
  var w = Block();
  if ((MOVES & 2u) != 0u) { w = pairs(Q, false, K, true, at, query0, key0, turned, t); }
  if ((MOVES & 1u) != 0u) { w += pairs(Q, true, K, false, at, query0, key0, turned, t); }
  if ((MOVES & 8u) != 0u) {
    let base = at.mask + p.mask_t;
    w += Block(
      mask4(base, row_pairs(query0, key0, turned, 0u, t)),
      mask4(base, row_pairs(query0, key0, turned, 1u, t)),
      mask4(base, row_pairs(query0, key0, turned, 2u, t)),
      mask4(base, row_pairs(query0, key0, turned, 3u, t)),
    );
  }
  return w;
}

// The four words of a counter of dropout's stream.
fn drawn(low: u32, high: u32) -> vec4<u32> {
  return philox(vec4<u32>(low, high, 0u, 0u), vec2<u32>(p.seed_low, p.seed_high));
}

// What dropout multiplies the weights of keys key .. key + 3 by, for the query with number `row`.
fn kept4(row: u32, key: u32) -> vec4<f32> {
  let start = multiply(row, p.keys);
  let low = start.x + key;
  let high = start.y + select(0u, 1u, low < key);
  let block = (low >> 2u) | (high << 30u);
  let counter = p.offset_low + block;
  let carried = p.offset_high + (high >> 2u) + select(0u, 1u, counter < block);
  let a = drawn(counter, carried);
  var words = a;
  if ((low & 3u) != 0u) {
    let b = drawn(counter + 1u, carried + select(0u, 1u, counter == 0xffffffffu));
    switch (low & 3u) {
      case 1u: { words = vec4<u32>(a.yzw, b.x); }
      case 2u: { words = vec4<u32>(a.zw, b.xy); }
      default: { words = vec4<u32>(a.w, b.xyz); }
    }
  }
  let number = vec4<f32>(words >> vec4<u32>(8u)) * 0x1p-24;
  return select(vec4<f32>(), vec4<f32>(p.keep), number >= vec4<f32>(p.drop));
}

// Dropout's factors of a block.
fn kept(at: Place, query0: u32, key0: u32, turned: bool, t: u32) -> Block {
  let row = at.draw + first_query(query0, turned, t);
  let key = first_key(key0, turned, t);
  let d = Block(kept4(row, key), kept4(row + 1u, key), kept4(row + 2u, key), kept4(row + 3u, key));
  if (turned) { return transpose(d); }
  return d;
}
