// Add rows where an index list says, as scatter_rows.wgsl, for lists that are sorted: linear in their length.
//
// bindings  0 index (read, i32), 1 order (read, i32), 2 starts (read, i32), 3 src (read), 4 out (write),
//           5 status (atomic words), 6 params
// grid      ceil(words / 256) workgroups, words = outer * here * inner / EPW; linear fold over x, y, z
// workgroup 256 threads, one output word each; no workgroup memory
//
// The places of those that select row r, in their order, are order[starts[r]] to order[starts[r + 1] - 1];
// behind starts[here] are those of rows that are not here, and last those of none, of which one is reported.
// src is dense from its offset; inner is a multiple of EPW. The sums have the order of scatter_rows.wgsl and
// its bits.
//@ use places
struct Params {
  outer: u32, length: u32, inner: u32, index_off: u32, src_off: u32, axis_size: u32, first: u32, here: u32,
}
@group(0) @binding(0) var<storage, read> index: array<u32>;
@group(0) @binding(1) var<storage, read> order: array<u32>;
@group(0) @binding(2) var<storage, read> starts: array<u32>;
@group(0) @binding(3) var<storage, read> src: array<u32>;
@group(0) @binding(4) var<storage, read_write> out: array<u32>;
@group(0) @binding(5) var<storage, read_write> status: array<atomic<u32>>;
@group(0) @binding(6) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ load src
fn load_src(i: u32) -> T { return bitcast<f32>(src[i]); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }
//@ fn plus
fn plus(a: T, b: T) -> T { return a + b; }

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let word = group * 256u + t;
  if (word == 0u && starts[p.here] < p.length) { _ = place_of(index[p.index_off + order[p.length - 1u]]); }
  let width = p.inner / EPW;
  let row = word / width;
  if (row >= p.outer * p.here) { return; }
  let base = p.src_off + (row / p.here) * p.length * p.inner + (word - row * width) * EPW;
  let mine = row % p.here;
  let end = starts[mine + 1u];
  var total = vec2<T>();
  for (var i = starts[mine]; i < end; i += 1u) {
    let at = base + order[i] * p.inner;
    total.x = plus(total.x, load_src(at));
    if (EPW == 2u) { total.y = plus(total.y, load_src(at + 1u)); }
  }
  store_out(word, total);
}
