// One step of an optimiser whose rule is one formula per element, on flat f32 buffers, in place. One dispatch
// moves many parameters.
//
// bindings  0 found (read, one word), 1 g (read), 2 x, 3 first, 4 second, 5 third (read and write, f32),
//           6 params
// grid      the sum over the tensors of ceil(count / 1024) workgroups; linear fold over x, y, z
// workgroup 256 threads, each taking four elements 256 apart, all of one tensor; no workgroup memory
//
// The host replaces `op` by the rule: from the parameter and its state (s), the gradient and the numbers of
// the step (a, b) to the parameter and its state. A rule that has less state lacks those arrays. flags: 4
// guarded. The gradient that it takes is sign * g + decay * x, the parameter shrink * x.
//@ use tensors
//@ use optim
struct Params {
  flags: u32, decay: f32, shrink: f32, sign: f32,
  a: vec4<f32>, b: vec2<f32>, unused: vec2<f32>,
  tensors: array<vec4<u32>, TENSORS>,
}
//@ tensors first
@group(0) @binding(3) var<storage, read_write> first0: array<u32>;
//@ tensors second
@group(0) @binding(4) var<storage, read_write> second0: array<u32>;
//@ tensors third
@group(0) @binding(5) var<storage, read_write> third0: array<u32>;
//@ tensors params
@group(0) @binding(6) var<uniform> p: Params;

//@ fn op
fn op(s: vec4<f32>, g: f32, a: vec4<f32>, b: vec2<f32>) -> vec4<f32> { return s; }

fn pick_first(k: u32, i: u32) -> f32 {
  switch k {
    //@ tensors first
    case 0u: { return bitcast<f32>(first0[i]); }
    default: { return 0.0; }
  }
}
fn put_first(k: u32, i: u32, v: f32) {
  switch k {
    //@ tensors first
    case 0u: { first0[i] = bitcast<u32>(v); }
    default: {}
  }
}
fn pick_second(k: u32, i: u32) -> f32 {
  switch k {
    //@ tensors second
    case 0u: { return bitcast<f32>(second0[i]); }
    default: { return 0.0; }
  }
}
fn put_second(k: u32, i: u32, v: f32) {
  switch k {
    //@ tensors second
    case 0u: { second0[i] = bitcast<u32>(v); }
    default: {}
  }
}
fn pick_third(k: u32, i: u32) -> f32 {
  switch k {
    //@ tensors third
    case 0u: { return bitcast<f32>(third0[i]); }
    default: { return 0.0; }
  }
}
fn put_third(k: u32, i: u32, v: f32) {
  switch k {
    //@ tensors third
    case 0u: { third0[i] = bitcast<u32>(v); }
    default: {}
  }
}

// Move element i of tensor k.
fn update(k: u32, i: u32) {
  let old = pick_x(k, i);
  var g = p.sign * pick_g(k, i);
  // Zero times an infinite parameter would be NaN.
  if (p.decay != 0.0) { g += p.decay * old; }
  let state = vec4<f32>(p.shrink * old, pick_first(k, i), pick_second(k, i), pick_third(k, i));
  let moved = op(state, g, p.a, p.b);
  put_x(k, i, moved.x);
  put_first(k, i, moved.y);
  put_second(k, i, moved.z);
  put_third(k, i, moved.w);
}
