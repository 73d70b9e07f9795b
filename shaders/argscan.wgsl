// Index of the largest (or smallest) element so far along one axis, as i32: the last of equal ones. NaN
// counts as the extreme.
//
// bindings  0 x (read), 1 out (write, i32), 2 blocks (`best` writes, `tree` reads), 3 params
// entries   serial: one invocation per line (many lines); grid ceil(lines / 256)
//           tree: one workgroup per block of a line (few long lines), 1024 elements at a time; grid lines *
//           own
//           best: before that, the extreme of each block, where there are several; grid lines * own
//           linear fold over x, y, z
// workgroup 256 threads; 2 KiB of workgroup memory (tree)
//
// Lines, blocks and parameters as in scan.wgsl. An element is its key and its index; a later one wins over an
// earlier one with at most its key. `blocks` may be any buffer where lines are not cut.
//@ use order
//@ use lines
struct Params {
  kept_shape: array<vec4<u32>, 2>, x_strides: array<vec4<u32>, 2>, out_strides: array<vec4<u32>, 2>,
  kept_ndim: u32, lines: u32, length: u32, x_off: u32, x_step: u32, out_off: u32, out_step: u32,
  count: u32, each: u32, first: u32, own: u32,
}
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@group(0) @binding(2) var<storage, read_write> blocks: array<vec2<u32>>;
@group(0) @binding(3) var<uniform> p: Params;

alias A = vec2<u32>; // the key and the index
const INIT: A = A(0u, 0u); // loses to every element behind it

// The winner of two elements.
fn combine(a: A, b: A) -> A { return select(a, b, b.x > a.x || (b.x == a.x && b.y >= a.y)); }

// Element i of the line, or INIT past the end.
fn item(line: vec2<u32>, i: u32, end: u32) -> A {
  if (i >= end) { return INIT; }
  let at = line.x + i * p.x_step;
  return A(extreme_key(x[word_of(at)], at), p.first * p.each + i);
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
    best = combine(best, item(at, i, p.length));
    out[at.y + i * p.out_step] = best.y;
  }
}

var<workgroup> part: array<A, 256>;

// The winner of what all threads have.
fn best_of(own: A, t: u32) -> A {
  part[t] = own;
  workgroupBarrier();
  for (var half = 128u; half > 0u; half /= 2u) {
    if (t < half) { part[t] = combine(part[t], part[t + half]); }
    workgroupBarrier();
  }
  let found = part[0];
  workgroupBarrier();
  return found;
}

@compute @workgroup_size(256)
fn best(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group >= p.lines * p.own) { return; }
  let line = group / p.own;
  let at = line_at(line);
  let start = group % p.own * p.each;
  let end = min(start + p.each, p.length);
  var mine = INIT;
  for (var i = start + t; i < end; i += 256u) { mine = combine(mine, item(at, i, end)); }
  let found = best_of(mine, t);
  if (t == 0u) { blocks[line * p.count + p.first + group % p.own] = found; }
}

@compute @workgroup_size(256)
fn tree(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group >= p.lines * p.own) { return; }
  let line = group / p.own;
  let at = line_at(line);
  let block = group % p.own;
  let end = min((block + 1u) * p.each, p.length);
  var carry = INIT;
  if (p.count > 1u) {
    for (var j = t; j < p.first + block; j += 256u) { carry = combine(carry, blocks[line * p.count + j]); }
    carry = best_of(carry, t);
  }
  for (var first = block * p.each; first < end; first += 1024u) {
    let start = first + t * 4u;
    var mine = INIT;
    for (var i = start; i < start + 4u; i += 1u) { mine = combine(mine, item(at, i, end)); }
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
    for (var i = start; i < min(start + 4u, end); i += 1u) {
      best = combine(best, item(at, i, end));
      out[at.y + i * p.out_step] = best.y;
    }
    carry = combine(carry, part[255]);
    workgroupBarrier();
  }
}
