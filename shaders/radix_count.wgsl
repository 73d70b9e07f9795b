// The first half of a pass of a radix sort: how often each digit is in each tile of 2048 keys. The digit is
// the four bits of a key from `shift` on.
//
// bindings  0 keys (read), 1 counts (write), 2 params
// grid      lines * tiles workgroups; linear fold over x, y, z
// workgroup 256 threads; 1 KiB of workgroup memory
//
// counts[line, digit, tile], so that the running sum of a line's counts, in their order, tells where in the
// sorted line each digit of each tile ends. Tiles that start behind the end of a line count nothing. Sixteen
// threads share a counter; a sum of whole numbers does not depend on the order of its terms.
struct Params { lines: u32, length: u32, tiles: u32, shift: u32 }
@group(0) @binding(0) var<storage, read> keys: array<u32>;
@group(0) @binding(1) var<storage, read_write> counts: array<u32>;
@group(0) @binding(2) var<uniform> p: Params;

var<workgroup> part: array<atomic<u32>, 256>;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let line = group / p.tiles;
  if (line >= p.lines) { return; }
  let tile = group % p.tiles;
  atomicStore(&part[t], 0u);
  workgroupBarrier();
  for (var k = 0u; k < 8u; k += 1u) {
    let i = tile * 2048u + k * 256u + t;
    if (i < p.length) {
      let digit = (keys[line * p.length + i] >> p.shift) & 15u;
      atomicAdd(&part[digit * 16u + (t & 15u)], 1u);
    }
  }
  workgroupBarrier();
  if (t < 16u) {
    var total = 0u;
    for (var k = 0u; k < 16u; k += 1u) { total += atomicLoad(&part[t * 16u + k]); }
    counts[(line * 16u + t) * p.tiles + tile] = total;
  }
}
