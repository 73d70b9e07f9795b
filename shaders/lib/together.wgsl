// Several kernels as one: a workgroup finds by its number which of them it runs. The host puts the
// kernels in front, their parameters into `fields`, a branch for each into `kernels`, and the binding
// behind the rest.
//@ const ENDS
const ENDS: u32 = 1u;
struct Together {
  // Where the workgroups of each kernel end.
  ends: array<vec4<u32>, ENDS>,
  //@ fields
}
@group(0) @binding(0) var<uniform> p: Together;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) place: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let group = place.x + grid.x * (place.y + grid.y * place.z);
  //@ kernels
}
