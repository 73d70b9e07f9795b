// Multiply flat f32 buffers by one factor, in place, and note whether any of them held an infinity or a NaN.
// One dispatch scales many tensors.
//
// bindings  0 factor (read, one f32), 1 found (read and write, one word), 2 x (read and write), 3 params
// grid      the sum over the tensors of ceil(count / 1024) workgroups; linear fold over x, y, z
// workgroup 256 threads, each taking four elements 256 apart, all of one tensor; no workgroup memory
//
// found becomes 1 where a value was not finite, which the bits tell.
//@ use tensors
struct Params { tensors: array<vec4<u32>, TENSORS> }
//@ tensors factor
@group(0) @binding(0) var<storage, read> factor: array<u32>;
//@ tensors found
@group(0) @binding(1) var<storage, read_write> found: array<atomic<u32>>;
//@ tensors x
@group(0) @binding(2) var<storage, read_write> x0: array<u32>;
//@ tensors params
@group(0) @binding(3) var<uniform> p: Params;

fn pick_x(k: u32, i: u32) -> u32 {
  switch k {
    //@ tensors x
    case 0u, default: { return x0[i]; }
  }
}
fn put_x(k: u32, i: u32, v: u32) {
  switch k {
    //@ tensors x
    case 0u, default: { x0[i] = v; }
  }
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let own = share_of(wid.x + groups.x * (wid.y + groups.y * wid.z));
  for (var i = own.start + t; i < own.end; i += 256u) {
    let bits = pick_x(own.tensor, i);
    if ((bits & 0x7f800000u) == 0x7f800000u) { atomicStore(&found[0], 1u); }
    put_x(own.tensor, i, bitcast<u32>(bitcast<f32>(bits) * bitcast<f32>(factor[0])));
  }
}
