// The order of the elements along one axis: out[i] is the position of the element that comes i-th. Equal
// elements keep their order, NaN counts as the largest.
//
// bindings  0 x (read), 1 given (read, i32), 2 out (write, i32, or keys), 3 kept_keys (write), 4 params
// entries   short: tiles of at most 2048 elements; grid ceil(lines * tiles / (2048 / size))
//           keys: the keys of long lines, which radix_count.wgsl and radix_move.wgsl sort; grid
//           ceil(lines * length / 256); linear fold over x, y, z
// workgroup 256 threads; 16 KiB of workgroup memory (short)
//
// Lines as in scan.wgsl. `short` is a bitonic sort of pairs (key, position) in workgroup memory, where a tile
// takes `size` places, the power of two from `length` on, so that a workgroup sorts 2048 / size of them; it
// writes the first `count` positions. Positions differ, so there is one order of the pairs and it is stable.
// A short line is a tile. Of a longer one, of which little is wanted, the `tiles` tiles write the first of
// their positions, and their keys to kept_keys, dense; a second dispatch finds the first of those: GIVEN,
// lines are keys with positions `given`, dense. `whole` is the length of a line, of which the last tile has
// what is left: behind it are the largest pairs. Unused bindings may hold any buffer. `flip` is 0, or all
// ones for descending order, in which equal elements keep their order too.
//@ use order
//@ use lines
struct Params {
  kept_shape: array<vec4<u32>, 2>, x_strides: array<vec4<u32>, 2>, out_strides: array<vec4<u32>, 2>,
  kept_ndim: u32, lines: u32, length: u32, x_off: u32, x_step: u32, out_off: u32, out_step: u32,
  size: u32, count: u32, flip: u32, tiles: u32, whole: u32,
}
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> given: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
@group(0) @binding(3) var<storage, read_write> kept_keys: array<u32>;
@group(0) @binding(4) var<uniform> p: Params;

//@ const GIVEN
const GIVEN: bool = false;

// The key of element i of a line.
fn key_at(line: u32, i: u32) -> u32 {
  let at = line_at(line).x + i * p.x_step;
  return key_of(x[word_of(at)], at) ^ p.flip;
}

@compute @workgroup_size(256)
fn keys(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let i = (wid.x + groups.x * (wid.y + groups.y * wid.z)) * 256u + t;
  if (i < p.lines * p.length) { out[i] = key_at(i / p.length, i % p.length); }
}

const PLACES: u32 = 2048u;
var<workgroup> key: array<u32, PLACES>;
var<workgroup> position: array<u32, PLACES>;

// Whether the pair at place a comes before the one at place b.
fn is_before(a: u32, b: u32) -> bool {
  return key[a] < key[b] || (key[a] == key[b] && position[a] < position[b]);
}

@compute @workgroup_size(256)
fn short(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let first = (wid.x + groups.x * (wid.y + groups.y * wid.z)) * (PLACES / p.size);
  for (var i = t; i < PLACES; i += 256u) {
    let tile = first + i / p.size;
    let line = tile / p.tiles;
    let at = (tile - line * p.tiles) * p.length + i % p.size;
    key[i] = 0xffffffffu;
    position[i] = 0xffffffffu;
    if (line < p.lines && i % p.size < p.length && at < p.whole) {
      if (GIVEN) {
        key[i] = x[line * p.whole + at];
        position[i] = given[line * p.whole + at];
      } else {
        key[i] = key_at(line, at);
        position[i] = at;
      }
    }
  }
  workgroupBarrier();
  // Runs of `run` places become sorted, every other one backwards, from two sorted halves.
  for (var run = 2u; run <= p.size; run *= 2u) {
    for (var step = run / 2u; step > 0u; step /= 2u) {
      for (var i = t; i < PLACES / 2u; i += 256u) {
        let a = 2u * i - (i & (step - 1u));
        let backwards = (a & run & (p.size - 1u)) != 0u;
        if (is_before(a + step, a) != backwards) {
          let pair = vec2<u32>(key[a], position[a]);
          key[a] = key[a + step];
          position[a] = position[a + step];
          key[a + step] = pair.x;
          position[a + step] = pair.y;
        }
      }
      workgroupBarrier();
    }
  }
  for (var i = t; i < PLACES; i += 256u) {
    let tile = first + i / p.size;
    let at = i % p.size;
    if (tile >= p.lines * p.tiles || at >= p.count) { continue; }
    if (p.tiles > 1u) {
      out[tile * p.count + at] = position[i];
      kept_keys[tile * p.count + at] = key[i];
    } else {
      out[line_at(tile).y + at * p.out_step] = position[i];
    }
  }
}
