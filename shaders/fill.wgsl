// Tensors without inputs: one value everywhere, start + i * step, and evenly spaced points that hit both
// ends.
//
// bindings  0 out (write), 1 params
// entries   constant: start
//           range: start + i * step
//           linspace: the same, counted from `end` in the second half
// grid      ceil(words / 1024) workgroups, words = ceil(count / EPW); linear fold over x, y, z
// workgroup 256 threads, each taking four words 256 apart; no workgroup memory
//
// start, step and end are the bits of a T (f32 or i32).
struct Params { count: u32, start: u32, step: u32, end: u32 }
@group(0) @binding(0) var<storage, read_write> out: array<u32>;
@group(0) @binding(1) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }

fn constant_at(i: u32) -> T { return bitcast<T>(p.start); }
fn range_at(i: u32) -> T { return bitcast<T>(p.start) + T(i) * bitcast<T>(p.step); }
fn linspace_at(i: u32) -> T {
  if (i * 2u < p.count) { return range_at(i); }
  return bitcast<T>(p.end) - T(p.count - 1u - i) * bitcast<T>(p.step);
}

@compute @workgroup_size(256)
fn constant(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  for (var j = 0u; j < 4u; j += 1u) {
    let word = group * 1024u + j * 256u + t;
    let i = word * EPW;
    if (i < p.count) { store_out(word, vec2<T>(constant_at(i), constant_at(i + 1u))); }
  }
}

@compute @workgroup_size(256)
fn range(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  for (var j = 0u; j < 4u; j += 1u) {
    let word = group * 1024u + j * 256u + t;
    let i = word * EPW;
    if (i < p.count) { store_out(word, vec2<T>(range_at(i), range_at(i + 1u))); }
  }
}

@compute @workgroup_size(256)
fn linspace(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  for (var j = 0u; j < 4u; j += 1u) {
    let word = group * 1024u + j * 256u + t;
    let i = word * EPW;
    if (i < p.count) { store_out(word, vec2<T>(linspace_at(i), linspace_at(i + 1u))); }
  }
}
