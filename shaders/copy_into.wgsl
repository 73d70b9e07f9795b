// Strided write of elements of words, or with ADD addition of float32 ones; those of half a word are for
// copy_into_halves.wgsl.
//
// bindings  0 x (read), 1 out (write), 2 params
// grid      ceil(count / 256) workgroups; linear fold over x, y, z
// workgroup 256 threads, one element each; no workgroup memory
//
// No two indices may lead to the same destination, and x must not overlap it.
//@ use strided
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@group(0) @binding(2) var<uniform> p: Params;

//@ const ADD
const ADD: bool = false;

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
  var v = x[at.x];
  if (ADD) { v = bitcast<u32>(bitcast<f32>(out[at.y]) + bitcast<f32>(v)); }
  out[at.y] = v;
}
