// One step of stochastic gradient descent on flat f32 buffers, in place: weight decay, momentum, dampening,
// Nesterov. One dispatch moves many parameters.
//
// bindings  0 found (read, one word), 1 g (read), 2 x (read and write: the parameter), 3 momentum (read and
//           write, f32), 4 params
// grid      the sum over the tensors of ceil(count / 1024) workgroups; linear fold over x, y, z
// workgroup 256 threads, each taking four elements 256 apart, all of one tensor; no workgroup memory
//
// The file handles one tensor; for n of them the host repeats the lines that `tensors` marks: bindings g0 to
// gn, then x0 to xn, and so on, and the cases of `pick` and `put`. tensors[k] holds the first workgroup of
// tensor k, its count, and whether its momentum is still empty: then it is set, not decayed. flags: 1
// Nesterov, 2 maximise, 4 guarded (nothing changes unless found is 0; otherwise any buffer is bound to it).
// fresh = 1 - dampening, from f64.
struct Params {
  flags: u32, rate: f32, decay: f32, momentum: f32, fresh: f32, none0: u32, none1: u32, none2: u32,
  tensors: array<vec4<u32>, TENSORS>,
}
//@ tensors found
@group(0) @binding(0) var<storage, read> found: array<u32>;
//@ tensors g
@group(0) @binding(1) var<storage, read> g0: array<u32>;
//@ tensors x
@group(0) @binding(2) var<storage, read_write> x0: array<u32>;
//@ tensors momentum
@group(0) @binding(3) var<storage, read_write> momentum0: array<u32>;
//@ tensors params
@group(0) @binding(4) var<uniform> p: Params;

//@ const TENSORS
const TENSORS: u32 = 1u;
//@ const MOMENTUM
const MOMENTUM: bool = true;
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
fn pick_momentum(k: u32, i: u32) -> f32 {
  switch k {
    //@ tensors momentum
    case 0u: { return bitcast<f32>(momentum0[i]); }
    default: { return 0.0; }
  }
}
fn put_momentum(k: u32, i: u32, v: f32) {
  switch k {
    //@ tensors momentum
    case 0u: { momentum0[i] = bitcast<u32>(v); }
    default: {}
  }
}

// Move element i of tensor k.
fn update(k: u32, i: u32) {
  let old = pick_x(k, i);
  var d = pick_g(k, i);
  if ((p.flags & 2u) != 0u) { d = -d; }
  // Zero times an infinite parameter would be NaN.
  if (p.decay != 0.0) { d += p.decay * old; }
  if (MOMENTUM) {
    var m = d;
    if (p.tensors[k].z == 0u) { m = p.momentum * pick_momentum(k, i) + p.fresh * d; }
    put_momentum(k, i, m);
    d = select(m, d + p.momentum * m, (p.flags & 1u) != 0u);
  }
  put_x(k, i, old - p.rate * d);
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  var k = 0u;
  while (k + 1u < TENSORS && p.tensors[k + 1u].x <= group) { k += 1u; }
  let start = (group - p.tensors[k].x) * 1024u;
  let end = min(start + 1024u, p.tensors[k].y);
  if ((p.flags & 4u) != 0u && found[0] != 0u) { return; }
  for (var i = start + t; i < end; i += 256u) { update(k, i); }
}
