// Of the elements that an index sends to a place along an axis, one: best[c with c[axis] replaced by
// index[c]] is the largest number that an element c has.
//
// bindings  0 index (read, i32), 1 x (read), 2 keys (read, i32), 3 best (i32, read and written), 4 status
//           (atomic words), 5 params
// grid      ceil(count / 256) workgroups; linear fold over x, y, z
// workgroup 256 threads, one element each; no workgroup memory
//
// `shape` is that of index and x. MODE says what the number of an element is: its position along the axis, so
// that the last wins; the key of its value, so that the extreme value does; or its position, where the key
// of its value is the one that a run for keys has found. The host fills `best` with what loses to all. The
// largest of whole numbers does not depend on the order in which they come. Indices of places that are not
// here are skipped.
//@ use places
//@ use order
struct Params {
  shape: array<vec4<u32>, 2>, index_strides: array<vec4<u32>, 2>, x_strides: array<vec4<u32>, 2>,
  best_strides: array<vec4<u32>, 2>,
  ndim: u32, count: u32, index_off: u32, x_off: u32, axis: u32,
  axis_size: u32, first: u32, here: u32,
}
@group(0) @binding(0) var<storage, read> index: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read> keys: array<i32>;
@group(0) @binding(3) var<storage, read_write> best: array<atomic<i32>>;
@group(0) @binding(4) var<storage, read_write> status: array<atomic<u32>>;
@group(0) @binding(5) var<uniform> p: Params;

//@ const MODE
const MODE: u32 = 0u; // 0 position, 1 key, 2 position by key

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let i = (wid.x + groups.x * (wid.y + groups.y * wid.z)) * 256u + t;
  if (i >= p.count) { return; }
  var rest = i;
  var index_i = p.index_off;
  var x_i = p.x_off;
  var to = 0u;
  var position = 0u;
  for (var d = p.ndim; d > 0u; d -= 1u) {
    let a = (d - 1u) >> 2u;
    let b = (d - 1u) & 3u;
    let c = rest % p.shape[a][b];
    rest /= p.shape[a][b];
    index_i += c * p.index_strides[a][b];
    x_i += c * p.x_strides[a][b];
    if (d - 1u == p.axis) { position = c; } else { to += c * p.best_strides[a][b]; }
  }
  let place = place_of(index[index_i]);
  if (place == p.here) { return; }
  to += place * p.best_strides[p.axis >> 2u][p.axis & 3u];
  var number = i32(position);
  if (MODE > 0u) {
    let key = bitcast<i32>(extreme_key(x[word_of(x_i)], x_i) ^ 0x80000000u);
    if (MODE == 2u && keys[to] != key) { return; }
    if (MODE == 1u) { number = key; }
  }
  atomicMax(&best[to], number);
}
