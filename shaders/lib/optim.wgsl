// What steps of optimisers share, behind `tensors`: the bindings of gradients and parameters. The file behind
// it declares `p`, with `flags` and the table, and `update`, which moves one element. Guarded, by flag 4,
// nothing changes unless found is 0; otherwise any buffer is bound to it.
//@ tensors found
@group(0) @binding(0) var<storage, read> found: array<u32>;
//@ tensors g
@group(0) @binding(1) var<storage, read> g0: array<u32>;
//@ tensors x
@group(0) @binding(2) var<storage, read_write> x0: array<u32>;

//@ alias T
alias T = f32;
//@ load g0
fn load_g0(i: u32) -> T { return bitcast<f32>(g0[i]); }
fn pick_g(k: u32, i: u32) -> T {
  switch k {
    //@ tensors g
    case 0u, default: { return load_g0(i); }
  }
}
fn pick_x(k: u32, i: u32) -> f32 {
  switch k {
    //@ tensors x
    case 0u, default: { return bitcast<f32>(x0[i]); }
  }
}
fn put_x(k: u32, i: u32, v: f32) {
  switch k {
    //@ tensors x
    case 0u, default: { x0[i] = bitcast<u32>(v); }
  }
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let own = share_of(wid.x + groups.x * (wid.y + groups.y * wid.z));
  if ((p.flags & 4u) != 0u && found[0] != 0u) { return; }
  for (var i = own.start + t; i < own.end; i += 256u) { update(own.tensor, i); }
}
