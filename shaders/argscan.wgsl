// Index of the largest (or smallest) element so far along one axis, as i32: the last of equal ones. NaN
// counts as the extreme.
//
// bindings  0 x (read), 1 out (write, i32), 2 params
// entries   serial: one invocation per line (many lines); grid ceil(lines / 256)
//           tree: one workgroup per line (few long lines), 1024 elements at a time; grid lines
//           linear fold over x, y, z
// workgroup 256 threads; 2 KiB of workgroup memory (tree)
//
// Lines and parameters as in scan.wgsl. An element is its key and its index; a later one wins over an earlier
// one with at most its key.
//@ use order
//@ use lines
struct Params {
  kept_shape: array<vec4<u32>, 2>, x_strides: array<vec4<u32>, 2>, out_strides: array<vec4<u32>, 2>,
  kept_ndim: u32, lines: u32, length: u32, x_off: u32, x_step: u32, out_off: u32, out_step: u32,
}
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@group(0) @binding(2) var<uniform> p: Params;

alias A = vec2<u32>; // the key and the index
const INIT: A = A(0u, 0u); // loses to every element behind it

// The winner of an element and one behind it.
fn combine(a: A, b: A) -> A { return select(a, b, b.x >= a.x); }

// Element i of the line, or INIT past its end.
fn item(line: vec2<u32>, i: u32) -> A {
  if (i >= p.length) { return INIT; }
  let at = line.x + i * p.x_step;
  return A(extreme_key(x[word_of(at)], at), i);
}

@compute @workgroup_size(256)
fn serial(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let line = (wid.x + groups.x * (wid.y + groups.y * wid.z)) * 256u + t;
  if (line >= p.lines) { return; }
  let at = line_at(line);
  var best = INIT;
  for (var i = 0u; i < p.length; i += 1u) {
    best = combine(best, item(at, i));
    out[at.y + i * p.out_step] = best.y;
  }
}

var<workgroup> part: array<A, 256>;

@compute @workgroup_size(256)
fn tree(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group >= p.lines) { return; }
  let at = line_at(group);
  var carry = INIT;
  for (var first = 0u; first < p.length; first += 1024u) {
    let start = first + t * 4u;
    var mine = INIT;
    for (var i = start; i < start + 4u; i += 1u) { mine = combine(mine, item(at, i)); }
    part[t] = mine;
    workgroupBarrier();
    for (var step = 1u; step < 256u; step *= 2u) {
      if (t >= step) { mine = combine(part[t - step], mine); }
      workgroupBarrier();
      part[t] = mine;
      workgroupBarrier();
    }
    var best = carry;
    if (t > 0u) { best = combine(carry, part[t - 1u]); }
    for (var i = start; i < min(start + 4u, p.length); i += 1u) {
      best = combine(best, item(at, i));
      out[at.y + i * p.out_step] = best.y;
    }
    carry = combine(carry, part[255]);
    workgroupBarrier();
  }
}
