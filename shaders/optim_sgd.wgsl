// One step of stochastic gradient descent on flat f32 buffers, in place: weight decay, momentum, dampening,
// Nesterov. One dispatch moves many parameters.
//
// bindings  0 found (read, one word), 1 g (read), 2 x (read and write: the parameter), 3 momentum (read and
//           write, f32), 4 params
// grid      the sum over the tensors of ceil(count / 1024) workgroups; linear fold over x, y, z
// workgroup 256 threads, each taking four adjacent elements of one tensor; no workgroup memory
//
// tensors[k] holds the first workgroup of tensor k, its count, and whether its momentum is still empty: then
// it is set, not decayed. flags: 1 Nesterov, 2 maximise, 4 guarded. fresh = 1 - dampening, from f64.
//@ use tensors
//@ use optim
struct Params {
  flags: u32, rate: f32, decay: f32, momentum: f32, fresh: f32, none0: u32, none1: u32, none2: u32,
  tensors: array<vec4<u32>, TENSORS>,
}
//@ tensors momentum
@group(0) @binding(3) var<storage, read_write> momentum0: array<vec4<f32>>;
//@ tensors params
@group(0) @binding(4) var<uniform> p: Params;

//@ const MOMENTUM
const MOMENTUM: bool = true;
fn pick_momentum(k: u32, q: u32) -> vec4<f32> {
  switch k {
    //@ tensors momentum
    case 0u: { return momentum0[q]; }
    default: { return vec4<f32>(); }
  }
}
fn put_momentum(k: u32, q: u32, v: vec4<f32>) {
  switch k {
    //@ tensors momentum
    case 0u: { momentum0[q] = v; }
    default: {}
  }
}

// Move fours of tensor k.
fn update(k: u32, q: u32, here: vec4<bool>) {
  let old = pick_x(k, q);
  var d = pick_g(k, q);
  if ((p.flags & 2u) != 0u) { d = -d; }
  // Zero times an infinite parameter would be NaN.
  if (p.decay != 0.0) { d += p.decay * old; }
  if (MOMENTUM) {
    var m = d;
    let before = pick_momentum(k, q);
    if (p.tensors[k].z == 0u) { m = p.momentum * before + p.fresh * d; }
    put_momentum(k, q, select(before, m, here));
    d = select(m, d + p.momentum * m, (p.flags & 1u) != 0u);
  }
  put_x(k, q, select(old, old - p.rate * d, here));
}
