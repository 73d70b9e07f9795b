// One step of an optimiser whose rule is one formula per element, on flat f32 buffers, in place. One dispatch
// moves many parameters.
//
// bindings  0 found (read, one word), 1 g (read), 2 x, 3 first, 4 second, 5 third (read and write, f32),
//           6 params
// grid      the sum over the tensors of ceil(count / 1024) workgroups; linear fold over x, y, z
// workgroup 256 threads, each taking four adjacent elements of one tensor; no workgroup memory
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
@group(0) @binding(3) var<storage, read_write> first0: array<vec4<f32>>;
//@ tensors second
@group(0) @binding(4) var<storage, read_write> second0: array<vec4<f32>>;
//@ tensors third
@group(0) @binding(5) var<storage, read_write> third0: array<vec4<f32>>;
//@ tensors params
@group(0) @binding(6) var<uniform> p: Params;

//@ fn op
fn op(s: vec4<f32>, g: f32, a: vec4<f32>, b: vec2<f32>) -> vec4<f32> { return s; }

fn pick_first(k: u32, q: u32) -> vec4<f32> {
  switch k {
    //@ tensors first
    case 0u: { return first0[q]; }
    default: { return vec4<f32>(); }
  }
}
fn put_first(k: u32, q: u32, v: vec4<f32>) {
  switch k {
    //@ tensors first
    case 0u: { first0[q] = v; }
    default: {}
  }
}
fn pick_second(k: u32, q: u32) -> vec4<f32> {
  switch k {
    //@ tensors second
    case 0u: { return second0[q]; }
    default: { return vec4<f32>(); }
  }
}
fn put_second(k: u32, q: u32, v: vec4<f32>) {
  switch k {
    //@ tensors second
    case 0u: { second0[q] = v; }
    default: {}
  }
}
fn pick_third(k: u32, q: u32) -> vec4<f32> {
  switch k {
    //@ tensors third
    case 0u: { return third0[q]; }
    default: { return vec4<f32>(); }
  }
}
fn put_third(k: u32, q: u32, v: vec4<f32>) {
  switch k {
    //@ tensors third
    case 0u: { third0[q] = v; }
    default: {}
  }
}

// Move fours of tensor k.
fn update(k: u32, q: u32, here: vec4<bool>) {
  let old = pick_x(k, q);
  var g = p.sign * pick_g(k, q);
  // Zero times an infinite parameter would be NaN.
  if (p.decay != 0.0) { g += p.decay * old; }
  let first = pick_first(k, q);
  let second = pick_second(k, q);
  let third = pick_third(k, q);
  // A column per element: the parameter, then its state.
  let moved = transpose(mat4x4<f32>(
    op(vec4<f32>(p.shrink * old.x, first.x, second.x, third.x), g.x, p.a, p.b),
    op(vec4<f32>(p.shrink * old.y, first.y, second.y, third.y), g.y, p.a, p.b),
    op(vec4<f32>(p.shrink * old.z, first.z, second.z, third.z), g.z, p.a, p.b),
    op(vec4<f32>(p.shrink * old.w, first.w, second.w, third.w), g.w, p.a, p.b),
  ));
  put_x(k, q, select(old, moved[0], here));
  put_first(k, q, select(first, moved[1], here));
  put_second(k, q, select(second, moved[2], here));
  put_third(k, q, select(third, moved[3], here));
}
