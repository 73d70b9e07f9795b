// Multiply flat f32 buffers by one factor, in place, and note whether any of them held an infinity or a NaN.
// One dispatch scales many tensors.
//
// bindings  0 factor (read, one f32), 1 found (read and write, one word), 2 x (read and write), 3 params
// grid      the sum over the tensors of ceil(count / 1024) workgroups; linear fold over x, y, z
// workgroup 256 threads, each taking four adjacent elements of one tensor; no workgroup memory
//
// found becomes 1 where a value was not finite, which the bits tell. What lies behind the last element of a
// tensor stays as it is.
//@ use tensors
struct Params { tensors: array<vec4<u32>, TENSORS> }
//@ tensors factor
@group(0) @binding(0) var<storage, read> factor: array<u32>;
//@ tensors found
@group(0) @binding(1) var<storage, read_write> found: array<atomic<u32>>;
//@ tensors x
@group(0) @binding(2) var<storage, read_write> x0: array<vec4<u32>>;
//@ tensors params
@group(0) @binding(3) var<uniform> p: Params;

fn pick_x(k: u32, q: u32) -> vec4<u32> {
  switch k {
    //@ tensors x
    case 0u, default: { return x0[q]; }
  }
}
fn put_x(k: u32, q: u32, v: vec4<u32>) {
  switch k {
    //@ tensors x
    case 0u, default: { x0[q] = v; }
  }
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let own = share_of(wid.x + groups.x * (wid.y + groups.y * wid.z), t);
  if (!own.here.x) { return; }
  let bits = pick_x(own.tensor, own.q);
  let wild = (bits & vec4<u32>(0x7f800000u)) == vec4<u32>(0x7f800000u);
  if (any(wild & own.here)) { atomicStore(&found[0], 1u); }
  let scaled = bitcast<vec4<u32>>(bitcast<vec4<f32>>(bits) * bitcast<f32>(factor[0]));
  put_x(own.tensor, own.q, select(bits, scaled, own.here));
}
