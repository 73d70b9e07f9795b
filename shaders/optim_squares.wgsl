// Sums of squares of flat buffers, one per 1024 elements: the first half of a norm over many tensors.
//
// bindings  0 g (read), 1 sums (write, f32), 2 params
// grid      the sum over the tensors of ceil(count / 1024) workgroups; linear fold over x, y, z
// workgroup 256 threads, each taking four adjacent elements of one tensor; 1 KiB of workgroup memory
//
// Workgroup i writes sums[base + i], in an order of additions that the counts alone decide; those from
// `groups` on are overshoot.
//@ use tensors
struct Params { base: u32, groups: u32, none0: u32, none1: u32, tensors: array<vec4<u32>, TENSORS> }
//@ words g0
@group(0) @binding(0) var<storage, read> g0: array<vec4<u32>>;
//@ tensors sums
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;
//@ tensors params
@group(0) @binding(2) var<uniform> p: Params;

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

var<workgroup> part: array<f32, 256>;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let own = share_of(group, t);
  part[t] = 0.0;
  if (own.here.x) {
    let v = select(vec4<T>(), pick_g(own.tensor, own.q), own.here);
    part[t] = (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
  }
  for (var width = 128u; width > 0u; width >>= 1u) {
    workgroupBarrier();
    if (t < width) { part[t] += part[t + width]; }
  }
  if (t == 0u && group < p.groups) { sums[p.base + group] = bitcast<u32>(part[0]); }
}
