// The positions of true elements: out[k, d] is coordinate d of the k-th of them, in row-major order.
//
// bindings  0 mask (read, bool), 1 ends (read), 2 out (write, i32), 3 params
// grid      ceil(count / 2048) workgroups; linear fold over x, y, z
// workgroup 256 threads, eight neighbouring elements each; 1 KiB of workgroup memory
//
// `ends` is how many there are up to the end of each tile of 2048 elements: the running sum of the counts of
// digit 1 by radix_count.wgsl. The mask is dense and of the given shape.
//@ use totals
struct Params { shape: array<vec4<u32>, 2>, ndim: u32, count: u32 }
@group(0) @binding(0) var<storage, read> mask: array<u32>;
@group(0) @binding(1) var<storage, read> ends: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group * 2048u >= p.count) { return; }
  let first = group * 2048u + t * 8u;
  let end = min(first + 8u, p.count);
  var mine = 0u;
  for (var i = first; i < end; i += 1u) { mine += mask[i]; }
  var row = total_to(t, mine) - mine;
  if (group > 0u) { row += ends[group - 1u]; }
  for (var i = first; i < end; i += 1u) {
    if (mask[i] == 0u) { continue; }
    var rest = i;
    for (var d = p.ndim; d > 0u; d -= 1u) {
      let size = p.shape[(d - 1u) >> 2u][(d - 1u) & 3u];
      out[row * p.ndim + d - 1u] = rest % size;
      rest /= size;
    }
    row += 1u;
  }
}
