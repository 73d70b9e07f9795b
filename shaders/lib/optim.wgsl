// What steps of optimisers share, behind `tensors`: the bindings of gradients and parameters, by vectors of
// four elements. The file behind it declares `p`, with `flags` and the table, and `update`, which moves four
// elements; what lies behind the last of a tensor stays as it is. Guarded, by flag 4, nothing changes unless
// found is 0; otherwise any buffer is bound to it.
//@ tensors found
@group(0) @binding(0) var<storage, read> found: array<u32>;
//@ words g0
@group(0) @binding(1) var<storage, read> g0: array<vec4<u32>>;
//@ tensors x
@group(0) @binding(2) var<storage, read_write> x0: array<vec4<f32>>;

//@ alias T
alias T = f32;
//@ load4 g0
fn load4_g0(i: vec4<u32>) -> vec4<T> { return bitcast<vec4<f32>>(g0[i.x >> 2u]); }
fn pick_g(k: u32, q: u32) -> vec4<T> {
  switch k {
    //@ tensors g
    case 0u, default: { return load4_g0(vec4<u32>(q * 4u)); }
  }
}
fn pick_x(k: u32, q: u32) -> vec4<f32> {
  switch k {
    //@ tensors x
    case 0u, default: { return x0[q]; }
  }
}
fn put_x(k: u32, q: u32, v: vec4<f32>) {
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
  if (!own.here.x || ((p.flags & 4u) != 0u && found[0] != 0u)) { return; }
  update(own.tensor, own.q, own.here);
}
