// Add rows where an index list says: out[o, r, i] = sum of src[o, k, i] over all k with index[k] = r, in
// order of k. The transpose of taking rows; the gradient of an embedding table.
//
// bindings  0 index (read, i32), 1 src (read), 2 out (write), 3 status (atomic words), 4 params
// grid      outer * here * ceil(inner / (256 EPW)) workgroups, the blocks of a row fastest; linear fold over
//           x, y, z
// workgroup 256 threads, one output word each; 32 bytes of workgroup memory
//
// A workgroup owns a block of one output row. It looks at 256 indices at a time, one per thread, which mark
// hits in a bit mask; then all threads add the marked rows in order. Deterministic, and 256 times fewer index
// reads than scatter.wgsl. src and index are dense from their offsets; inner is a multiple of EPW. Indices
// of rows that are not here are skipped.
//@ use places
struct Params {
  outer: u32, length: u32, inner: u32, index_off: u32, src_off: u32, axis_size: u32, first: u32, here: u32,
}
@group(0) @binding(0) var<storage, read> index: array<u32>;
@group(0) @binding(1) var<storage, read> src: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
@group(0) @binding(3) var<storage, read_write> status: array<atomic<u32>>;
@group(0) @binding(4) var<uniform> p: Params;

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

var<workgroup> hits: array<atomic<u32>, 8>;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let blocks = (p.inner + 256u * EPW - 1u) / (256u * EPW);
  let row = group / blocks;
  if (row >= p.outer * p.here) { return; }
  let mine = row % p.here;
  let col = ((group % blocks) * 256u + t) * EPW;
  let base = p.src_off + (row / p.here) * p.length * p.inner + col;
  var total = vec2<T>();
  for (var first = 0u; first < p.length; first += 256u) {
    if (t < 8u) { atomicStore(&hits[t], 0u); }
    workgroupBarrier();
    if (first + t < p.length) {
      let place = place_of(index[p.index_off + first + t]);
      if (place == mine) { atomicOr(&hits[t / 32u], 1u << (t % 32u)); }
    }
    workgroupBarrier();
    for (var w = 0u; w < 8u; w += 1u) {
      var mask = atomicLoad(&hits[w]);
      while (mask != 0u) {
        let at = base + (first + w * 32u + firstTrailingBit(mask)) * p.inner;
        if (col < p.inner) {
          total.x = plus(total.x, load_src(at));
          if (EPW == 2u) { total.y = plus(total.y, load_src(at + 1u)); }
        }
        mask &= mask - 1u;
      }
    }
    workgroupBarrier();
  }
  if (col < p.inner) { store_out((row * p.inner + col) / EPW, total); }
}
