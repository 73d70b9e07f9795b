// The gradients of attention, of <g, out> or, if SECOND, of <g, tangent of out>, in tiles.
//
// bindings  0 q, 1 k, 2 v, 3 mask (read; any buffer where there is none), 4 g (read), 5 stats (read, f32:
//           four numbers per query, of attention_rows.wgsl), 6 out (write), 7 out2 (write; any writable
//           buffer where it is not wanted), 8 params
// entries   attention_queries: out = dq, for 64 queries, walking the keys
//           attention_keys: out = dk and out2 = dv, for 64 keys, walking the queries that see them, also
//           those of the batch axes in `walked`, which share the keys; WANTS says which: 2 dk, 4 dv
//           attention_mask: out = dmask (f32), for 64 x 64 of its elements, walking all that shares them
// grid      one workgroup per tile and 64 BLOCKS columns (`chunks`) of one element of the batch: chunks
//           fastest, then `tiles`, then elements; of a mask `chunks` are tiles of keys, `tiles` those of
//           queries, 1 where it has one column or row; linear fold over x, y, z
// workgroup 256 threads, 12.75 KiB of workgroup memory
//
// Of weights P = exp(S - log-sum), dropout D, cotangents of weights H = G V' and their mean delta, the
// cotangents of the scores are P (D H - delta), and P D goes to the values. If SECOND, with W the tangents
// of the scores, C = G TV', X = D H W + D C - delta W - mean D H and its mean `middle`, they are P (X -
// middle), with P (D H - delta) for the tangents of the scores and P D (W - mean) for the values. Every
// output is owned by one workgroup, which adds in a fixed order: no atomics, the same bits in every run.
// Tiles outside of causality are left out.
//@ use philox
//@ use attention_tiles
//@ use attention_scores
//@ const SECOND
const SECOND: bool = false;
//@ const WANTS
const WANTS: u32 = 6u;
//@ store out2
fn store_out2(w: u32, v: vec2<T>) { out2[w] = bitcast<u32>(v.x); }

// Number `which` of this thread's four queries as a block: 0 logarithm of the sum, 1 delta, 2 mean, 3 middle.
fn number(which: u32, at: Place, query0: u32, turned: bool, t: u32) -> Block {
  let query = first_query(query0, turned, t);
  let first = (at.row + query) * 4u + which;
  var v = vec4<u32>();
  if (query < p.queries) { v.x = stats[first]; }
  if (query + 1u < p.queries) { v.y = stats[first + 4u]; }
  if (query + 2u < p.queries) { v.z = stats[first + 8u]; }
  if (query + 3u < p.queries) { v.w = stats[first + 12u]; }
  return spread(bitcast<vec4<f32>>(v), turned);
}

// Cotangents of the scores, of their tangents, and of the products of cotangents of the result with values.
struct Derived { direct: Block, adjoint: Block, values: Block }

fn derived(at: Place, query0: u32, key0: u32, turned: bool, t: u32) -> Derived {
  let w = weights(scores(at, query0, key0, turned, t), number(0u, at, query0, turned, t));
  var values = w;
  var h = pairs(G, false, V, false, at, query0, key0, turned, t);
  var cross = Block();
  if (SECOND && (MOVES & 4u) != 0u) { cross = pairs(G, false, V, true, at, query0, key0, turned, t); }
  if (DROPOUT) {
    let keep = kept(at, query0, key0, turned, t);
    values = times(values, keep);
    h = times(h, keep);
    cross = times(cross, keep);
  }
  let delta = number(1u, at, query0, turned, t);
  let adjoint = times(w, h - delta);
  if (!SECOND) { return Derived(adjoint, adjoint, values); }
  let moved = moved_scores(at, query0, key0, turned, t);
  let mean = number(2u, at, query0, turned, t);
  let x = times(h, moved) + cross - times(delta, moved) - times(mean, h);
  return Derived(times(w, x - number(3u, at, query0, turned, t)), adjoint, times(values, moved - mean));
}

@compute @workgroup_size(256)
fn attention_queries(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group >= p.elements * p.tiles * p.chunks) { return; }
  let first = group % p.chunks * COLUMNS;
  let query0 = group / p.chunks % p.tiles * SIDE;
  let at = place(group / (p.chunks * p.tiles), 0u);
  var end = p.keys;
  if (CAUSAL) { end = min(end, query0 + SIDE); }
  var dq = Results();
  for (var key0 = 0u; key0 < end; key0 += SIDE) {
    let d = derived(at, query0, key0, false, t);
    dq = collected(dq, d.direct, rows_of(K, false, at, key0), first, t);
    if (SECOND && (MOVES & 2u) != 0u) {
      dq = collected(dq, d.adjoint, rows_of(K, true, at, key0), first, t);
    }
  }
  dq = Results(dq.a * p.scale, dq.b * p.scale);
  write_results(at.out, query0, p.queries, first, p.depth, dq, t);
}

// Writes four neighbouring columns of one row of `out2`.
fn write_out2(base: u32, row: u32, col: u32, v: vec4<f32>) {
  if (row >= p.keys || col >= p.width) { return; }
  let w = (base + row * p.out2_rs + col) / EPW;
  if (EPW == 1u) {
    store_out2(w, v.xx);
    if (col + 1u < p.width) { store_out2(w + 1u, v.yy); }
    if (col + 2u < p.width) { store_out2(w + 2u, v.zz); }
    if (col + 3u < p.width) { store_out2(w + 3u, v.ww); }
  } else {
    store_out2(w, v.xy);
    if (col + 2u < p.width) { store_out2(w + 1u, v.zw); }
  }
}

fn write_block2(base: u32, row: u32, col: u32, x: Block) {
  write_out2(base, row, col, x[0]);
  write_out2(base, row + 1u, col, x[1]);
  write_out2(base, row + 2u, col, x[2]);
  write_out2(base, row + 3u, col, x[3]);
}

@compute @workgroup_size(256)
fn attention_keys(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group >= p.elements * p.tiles * p.chunks) { return; }
  let first = group % p.chunks * COLUMNS;
  let key0 = group / p.chunks % p.tiles * SIDE;
  let own = group / (p.chunks * p.tiles);
  var dk = Results();
  var dv = Results();
  for (var other = 0u; other < p.sharing; other += 1u) {
    let at = place(own, other);
    // Queries before the first key see none of these.
    for (var query0 = select(0u, key0, CAUSAL); query0 < p.queries; query0 += SIDE) {
      let d = derived(at, query0, key0, true, t);
      if ((WANTS & 2u) != 0u) {
        dk = collected(dk, d.direct, rows_of(Q, false, at, query0), first, t);
        if (SECOND && (MOVES & 1u) != 0u) {
          dk = collected(dk, d.adjoint, rows_of(Q, true, at, query0), first, t);
        }
      }
      if ((WANTS & 4u) != 0u) { dv = collected(dv, d.values, rows_of(G, false, at, query0), first, t); }
    }
  }
  let at = place(own, 0u);
  dk = Results(dk.a * p.scale, dk.b * p.scale);
  if ((WANTS & 2u) != 0u) { write_results(at.out, key0, p.keys, first, p.depth, dk, t); }
  if ((WANTS & 4u) != 0u) {
    let row = key0 + t / 16u * 4u;
    let col = first + t % 16u * 4u;
    write_block2(at.out2, row, col, dv.a);
    if (BLOCKS == 2u) { write_block2(at.out2, row, col + SIDE, dv.b); }
  }
}

// Sums over the sixteen threads of a column of blocks, in a fixed order; all of them get it.
fn column_total(v: vec4<f32>, t: u32) -> vec4<f32> {
  part[t] = v;
  workgroupBarrier();
  var s = part[t % 16u];
  for (var j = 1u; j < 16u; j += 1u) { s += part[j * 16u + t % 16u]; }
  workgroupBarrier();
  return s;
}

// Writes four neighbouring elements of the mask's gradient.
fn write_mask(base: u32, row: u32, col: u32, v: vec4<f32>) {
  if (row >= p.mask_rows) { return; }
  let i = base + row * p.out_rs + col;
  if (col < p.mask_cols) { out[i] = bitcast<u32>(v.x); }
  if (col + 1u < p.mask_cols) { out[i + 1u] = bitcast<u32>(v.y); }
  if (col + 2u < p.mask_cols) { out[i + 2u] = bitcast<u32>(v.z); }
  if (col + 3u < p.mask_cols) { out[i + 3u] = bitcast<u32>(v.w); }
}

@compute @workgroup_size(256)
fn attention_mask(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group >= p.elements * p.tiles * p.chunks) { return; }
  let first_col = group % p.chunks * SIDE;
  let first_row = group / p.chunks % p.tiles * SIDE;
  let own = group / (p.chunks * p.tiles);
  // A mask of one row, or column, gets the sum over all queries, or keys.
  let one_row = p.mask_rows == 1u;
  let one_col = p.mask_cols == 1u;
  let last_row = select(min(first_row + SIDE, p.queries), p.queries, one_row);
  let last_col = select(min(first_col + SIDE, p.keys), p.keys, one_col);
  var sum = Block();
  for (var other = 0u; other < p.sharing; other += 1u) {
    let at = place(own, other);
    for (var query0 = first_row; query0 < last_row; query0 += SIDE) {
      for (var key0 = first_col; key0 < last_col; key0 += SIDE) {
        if (!CAUSAL || key0 < query0 + SIDE) { sum += derived(at, query0, key0, false, t).direct; }
      }
    }
  }
  let zero = vec4<f32>();
  if (one_row) { sum = Block(column_total(sum[0] + sum[1] + sum[2] + sum[3], t), zero, zero, zero); }
  if (one_col) { sum = transpose(Block(row_total(row_sums(sum), t), zero, zero, zero)); }
  let at = place(own, 0u);
  let row = first_row + t / 16u * 4u;
  let col = first_col + t % 16u * 4u;
  write_mask(at.out, row, col, sum[0]);
  write_mask(at.out, row + 1u, col, sum[1]);
  write_mask(at.out, row + 2u, col, sum[2]);
  write_mask(at.out, row + 3u, col, sum[3]);
}
