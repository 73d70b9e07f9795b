// One step of Adam (Kingma and Ba 2015), AdamW (Loshchilov and Hutter 2019) or AMSGrad on flat f32 buffers,
// in place. One dispatch moves many parameters.
//
// bindings  0 found (read, one word), 1 g (read), 2 x, 3 first, 4 second, 5 largest (read and write, f32),
//           6 params
// grid      the sum over the tensors of ceil(count / 1024) workgroups; linear fold over x, y, z
// workgroup 256 threads, each taking four adjacent elements of one tensor; no workgroup memory
//
// tensors[k] holds the first workgroup of tensor k, its count, and two floats that depend on its step alone,
// from f64: size = rate / (1 - beta1^t) and root = 1 / sqrt(1 - beta2^t). Without AMSGRAD there is no
// `largest`. flags: 2 maximise, 4 guarded. shrink is a factor on x, 1 - rate * decay in AdamW, where decay
// itself is 0; gain1 = 1 - beta1 and gain2 = 1 - beta2.
//@ use tensors
//@ use optim
struct Params {
  flags: u32, decay: f32, shrink: f32, beta1: f32, gain1: f32, beta2: f32, gain2: f32, eps: f32,
  tensors: array<vec4<u32>, TENSORS>,
}
//@ tensors first
@group(0) @binding(3) var<storage, read_write> first0: array<vec4<f32>>;
//@ tensors second
@group(0) @binding(4) var<storage, read_write> second0: array<vec4<f32>>;
//@ tensors largest
@group(0) @binding(5) var<storage, read_write> largest0: array<vec4<f32>>;
//@ tensors params
@group(0) @binding(6) var<uniform> p: Params;

//@ const AMSGRAD
const AMSGRAD: bool = true;
fn pick_first(k: u32, q: u32) -> vec4<f32> {
  switch k {
    //@ tensors first
    case 0u, default: { return first0[q]; }
  }
}
fn put_first(k: u32, q: u32, v: vec4<f32>) {
  switch k {
    //@ tensors first
    case 0u, default: { first0[q] = v; }
  }
}
fn pick_second(k: u32, q: u32) -> vec4<f32> {
  switch k {
    //@ tensors second
    case 0u, default: { return second0[q]; }
  }
}
fn put_second(k: u32, q: u32, v: vec4<f32>) {
  switch k {
    //@ tensors second
    case 0u, default: { second0[q] = v; }
  }
}
fn pick_largest(k: u32, q: u32) -> vec4<f32> {
  switch k {
    //@ tensors largest
    case 0u: { return largest0[q]; }
    default: { return vec4<f32>(); }
  }
}
fn put_largest(k: u32, q: u32, v: vec4<f32>) {
  switch k {
    //@ tensors largest
    case 0u: { largest0[q] = v; }
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
  let first = pick_first(k, q);
  let second = pick_second(k, q);
  let m = p.beta1 * first + p.gain1 * d;
  let v = p.beta2 * second + p.gain2 * d * d;
  put_first(k, q, select(first, m, here));
  put_second(k, q, select(second, v, here));
  var top = v;
  if (AMSGRAD) {
    let largest = pick_largest(k, q);
    top = max(v, largest);
    put_largest(k, q, select(largest, top, here));
  }
  let size = bitcast<f32>(p.tensors[k].z);
  let root = bitcast<f32>(p.tensors[k].w);
  put_x(k, q, select(old, old * p.shrink - size * m / (sqrt(top) * root + p.eps), here));
}
