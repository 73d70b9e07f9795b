// The second half of a pass of a radix sort: moves keys and positions to where their digit puts them, those
// of one digit in their order. After a pass for each digit, the lowest first, the keys are sorted.
//
// bindings  0 keys (read), 1 positions (read), 2 ends (read), 3 keys_out (write), 4 positions_out (write),
//           5 params
// grid      lines * blocks workgroups, blocks = ceil(length / 2048); linear fold over x, y, z
// workgroup 256 threads, eight neighbouring keys each; 9.1 KiB of workgroup memory
//
// `ends` is the running sum of the counts of radix_count.wgsl. In the tile, a running sum over digits and
// threads of what each thread has of each digit tells the rank of every key. Two digits share a word: that of
// d has digit d in its lower half and d + 8 in its upper one. Before the first pass the positions are those
// of the line, and `positions` is not read.
//@ use totals
struct Params { lines: u32, length: u32, tiles: u32, shift: u32, blocks: u32 }
@group(0) @binding(0) var<storage, read> keys: array<u32>;
@group(0) @binding(1) var<storage, read> positions: array<u32>;
@group(0) @binding(2) var<storage, read> ends: array<u32>;
@group(0) @binding(3) var<storage, read_write> keys_out: array<u32>;
@group(0) @binding(4) var<storage, read_write> positions_out: array<u32>;
@group(0) @binding(5) var<uniform> p: Params;

//@ const FIRST
const FIRST: bool = false;

var<workgroup> ranks: array<u32, 2048>; // word d of thread t at 256 d + t
var<workgroup> shift: array<u32, 16>; // from the rank in the tile to the place in the line

fn digit_of(key: u32) -> u32 { return (key >> p.shift) & 15u; }

// What is before digit d of thread t in the tile, among the digits of its half of the words.
fn rank_of(d: u32, t: u32) -> u32 { return (ranks[(d & 7u) * 256u + t] >> ((d >> 3u) * 16u)) & 0xffffu; }

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let line = group / p.blocks;
  if (line >= p.lines) { return; }
  let tile = group % p.blocks;
  let first = tile * 2048u + t * 8u;
  let end = min(first + 8u, p.length);
  let base = line * p.length;
  for (var d = 0u; d < 8u; d += 1u) { ranks[d * 256u + t] = 0u; }
  for (var i = first; i < end; i += 1u) {
    let d = digit_of(keys[base + i]);
    ranks[(d & 7u) * 256u + t] += 1u << ((d >> 3u) * 16u);
  }
  workgroupBarrier();
  // Each thread adds up eight words, all threads the sums of those; then each word becomes what is before it.
  var mine = 0u;
  for (var k = 0u; k < 8u; k += 1u) { mine += ranks[t * 8u + k]; }
  var before = total_to(t, mine) - mine;
  for (var k = 0u; k < 8u; k += 1u) {
    let own = ranks[t * 8u + k];
    ranks[t * 8u + k] = before;
    before += own;
  }
  workgroupBarrier();
  if (t < 16u) {
    let at = t * p.tiles + tile;
    var start = 0u;
    if (at > 0u) { start = ends[line * 16u * p.tiles + at - 1u]; }
    shift[t] = start - rank_of(t, 0u);
  }
  workgroupBarrier();
  for (var i = first; i < end; i += 1u) {
    let key = keys[base + i];
    let d = digit_of(key);
    let to = base + shift[d] + rank_of(d, t);
    ranks[(d & 7u) * 256u + t] += 1u << ((d >> 3u) * 16u);
    keys_out[to] = key;
    if (FIRST) { positions_out[to] = i; } else { positions_out[to] = positions[base + i]; }
  }
}
