// Strided write of 16-bit elements: out[offset and strides of i] = x[offset and strides of i] for every index
// i of `shape`.
//
// bindings  0 x (read), 1 out (write), 2 params
// grid      ceil(count / 256) workgroups; linear fold over x, y, z
// workgroup 256 threads, one element each; no workgroup memory
//
// The destination is a view, so an element may share a word with one that must not change: `out` is atomic,
// and half a word is replaced by an `and`, then an `or`, which the other half does not notice.
// No two indices may lead to the same destination, and x must not overlap it.
struct Params {
  shape: array<vec4<u32>, 2>, out_strides: array<vec4<u32>, 2>, x_strides: array<vec4<u32>, 2>,
  ndim: u32, count: u32, out_off: u32, x_off: u32,
}
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
  var rest = i;
  var to = p.out_off;
  var from_i = p.x_off;
  for (var d = p.ndim; d > 0u; d -= 1u) {
    let a = (d - 1u) >> 2u;
    let b = (d - 1u) & 3u;
    let c = rest % p.shape[a][b];
    rest /= p.shape[a][b];
    to += c * p.out_strides[a][b];
    from_i += c * p.x_strides[a][b];
  }
  let half = (x[from_i >> 1u] >> ((from_i & 1u) << 4u)) & 0xffffu;
  let shift = (to & 1u) << 4u;
  atomicAnd(&out[to >> 1u], ~(0xffffu << shift));
  atomicOr(&out[to >> 1u], half << shift);
}
