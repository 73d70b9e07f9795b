// Attention, softmax(scale Q K' + mask) V, and its tangent, in tiles: the scores are never in memory.
//
// bindings  0 q, 1 k, 2 v, 3 mask (read; any buffer where there is none), 4 g (read; tangent: the
//           result), 5 stats (read, f32; tangent: the logarithms of sums), 6 out (write), 7 out2 (write,
//           f32: one number per query), 8 params
// entries   attention: the result, and the logarithm of the sum of exponentials
//           attention_tangent: the tangent of the result along the operands' tangents, and the mean tangent
//           of the scores
// grid      one workgroup per 64 queries and 64 BLOCKS columns of the result (`chunks`) of one element of
//           the batch: chunks fastest, then `tiles` of queries, then elements; linear fold over x, y, z
// workgroup 256 threads, 12.75 KiB of workgroup memory
//
// The online softmax (Milakov and Gimelshein 2018; Rabe and Staats 2021; Dao et al. 2022): a workgroup walks
// the keys, 64 at a time, and multiplies what it has by exp(old maximum - new one) where the maximum grows.
// Tiles of which no query sees a key by causality are left out. A query that sees nothing has result 0 and
// logarithm minus infinity. Every chunk of columns computes the scores anew.
//@ use philox
//@ use attention_tiles
//@ use attention_scores
//@ fn log_
fn log_(x: f32) -> f32 { return log(x); }

const LOWEST: f32 = -3.4028234e38;

fn max4(v: vec4<f32>) -> f32 { return max(max(v.x, v.y), max(v.z, v.w)); }
fn log4(v: vec4<f32>) -> vec4<f32> { return vec4<f32>(log_(v.x), log_(v.y), log_(v.z), log_(v.w)); }

// The largest score that counts in each row of a block.
fn largest(x: Scores) -> vec4<f32> {
  let low = vec4<f32>(LOWEST);
  return vec4<f32>(
    max4(select(low, x.s[0], lives(x.live, 0u))),
    max4(select(low, x.s[1], lives(x.live, 1u))),
    max4(select(low, x.s[2], lives(x.live, 2u))),
    max4(select(low, x.s[3], lives(x.live, 3u))),
  );
}

// Results times a number per query.
fn scaled(x: Results, v: vec4<f32>) -> Results {
  let factor = spread(v, false);
  if (BLOCKS == 1u) { return Results(times(factor, x.a), x.b); }
  return Results(times(factor, x.a), times(factor, x.b));
}

// Writes one number per query, by the first thread of each row of blocks.
fn write_numbers(at: Place, query0: u32, chunk: u32, bits: vec4<u32>, t: u32) {
  let row = query0 + t / 16u * 4u;
  if (chunk > 0u || t % 16u > 0u) { return; }
  if (row < p.queries) { out2[at.row + row] = bits.x; }
  if (row + 1u < p.queries) { out2[at.row + row + 1u] = bits.y; }
  if (row + 2u < p.queries) { out2[at.row + row + 2u] = bits.z; }
  if (row + 3u < p.queries) { out2[at.row + row + 3u] = bits.w; }
}

// The end of the keys that 64 queries see.
fn seen(query0: u32) -> u32 {
  if (CAUSAL) { return min(p.keys, query0 + SIDE); }
  return p.keys;
}

@compute @workgroup_size(256)
fn attention(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group >= p.elements * p.tiles * p.chunks) { return; }
  let chunk = group % p.chunks;
  let query0 = group / p.chunks % p.tiles * SIDE;
  let at = place(group / (p.chunks * p.tiles), 0u);
  let end = seen(query0);
  var top = vec4<f32>(LOWEST);
  var total = vec4<f32>(); // of this thread's columns
  var result = Results();
  for (var key0 = 0u; key0 < end; key0 += SIDE) {
    let s = scores(at, query0, key0, false, t);
    let higher = max(top, row_largest(largest(s), t));
    let factor = exp4(top - higher);
    top = higher;
    var w = weights(s, spread(top, false));
    total = total * factor + row_sums(w);
    if (DROPOUT) { w = times(w, kept(at, query0, key0, false, t)); }
    result = collected(scaled(result, factor), w, rows_of(V, false, at, key0), chunk * COLUMNS, t);
  }
  total = row_total(total, t);
  let nothing = total == vec4<f32>();
  let inverse = select(1.0 / total, vec4<f32>(), nothing);
  write_results(at.out, query0, p.queries, chunk * COLUMNS, p.width, scaled(result, inverse), t);
  let logarithm = bitcast<vec4<u32>>(top + log4(total));
  write_numbers(at, query0, chunk, select(logarithm, vec4<u32>(NEVER), nothing), t);
}

// The logarithms of sums of this thread's four queries.
fn log_sums(at: Place, query0: u32, t: u32) -> vec4<f32> {
  let row = query0 + t / 16u * 4u;
  var v = vec4<u32>();
  if (row < p.queries) { v.x = stats[at.row + row]; }
  if (row + 1u < p.queries) { v.y = stats[at.row + row + 1u]; }
  if (row + 2u < p.queries) { v.z = stats[at.row + row + 2u]; }
  if (row + 3u < p.queries) { v.w = stats[at.row + row + 3u]; }
  return bitcast<vec4<f32>>(v);
}

// The known result at this thread's queries and columns col .. col + 3.
fn known(at: Place, query0: u32, col: u32, t: u32) -> Block {
  let y = rows_of(G, false, at, query0);
  let row = t / 16u * 4u;
  return Block(
    vec4<f32>(along(y, row, col)), vec4<f32>(along(y, row + 1u, col)),
    vec4<f32>(along(y, row + 2u, col)), vec4<f32>(along(y, row + 3u, col)));
}

@compute @workgroup_size(256)
fn attention_tangent(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group >= p.elements * p.tiles * p.chunks) { return; }
  let chunk = group % p.chunks;
  let query0 = group / p.chunks % p.tiles * SIDE;
  let at = place(group / (p.chunks * p.tiles), 0u);
  let end = seen(query0);
  let shift = spread(log_sums(at, query0, t), false);
  var mean = vec4<f32>(); // of this thread's columns
  var result = Results();
  for (var key0 = 0u; key0 < end; key0 += SIDE) {
    var w = weights(scores(at, query0, key0, false, t), shift);
    var moved = times(w, moved_scores(at, query0, key0, false, t));
    mean += row_sums(moved);
    if (DROPOUT) {
      let keep = kept(at, query0, key0, false, t);
      w = times(w, keep);
      moved = times(moved, keep);
    }
    result = collected(result, moved, rows_of(V, false, at, key0), chunk * COLUMNS, t);
    if ((MOVES & 4u) != 0u) {
      result = collected(result, w, rows_of(V, true, at, key0), chunk * COLUMNS, t);
    }
  }
  mean = row_total(mean, t);
  // The normaliser moves too: minus the mean tangent of the scores times the result.
  let minus = spread(mean, false);
  let col = chunk * COLUMNS + t % 16u * 4u;
  result.a -= times(minus, known(at, query0, col, t));
  if (BLOCKS == 2u) { result.b -= times(minus, known(at, query0, col + SIDE, t)); }
  write_results(at.out, query0, p.queries, chunk * COLUMNS, p.width, result, t);
  write_numbers(at, query0, chunk, bitcast<vec4<u32>>(mean), t);
}
