// Strided write of 16-bit elements.
//
// bindings  0 x (read), 1 out (write), 2 params
// grid      ceil(count / 256) workgroups; linear fold over x, y, z
// workgroup 256 threads, one element each; no workgroup memory
//
// The destination is a view, so an element may share a word with one that must not change: `out` is atomic,
// and half a word is replaced by an `and`, then an `or`, which the other half does not notice.
// No two indices may lead to the same destination, and x must not overlap it.
//@ use strided
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<atomic<u32>>;
@group(0) @binding(2) var<uniform> p: Params;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let i = group * 256u + t;
  if (i >= p.count) { return; }
  let at = places(i);
  let half = (x[at.x >> 1u] >> ((at.x & 1u) << 4u)) & 0xffffu;
  let shift = (at.y & 1u) << 4u;
  atomicAnd(&out[at.y >> 1u], ~(0xffffu << shift));
  atomicOr(&out[at.y >> 1u], half << shift);
}
