// One step of Adam (Kingma and Ba 2015), AdamW (Loshchilov and Hutter 2019) or AMSGrad on flat f32 buffers,
// in place. One dispatch moves many parameters.
//
// bindings  0 found (read, one word), 1 g (read), 2 x, 3 first, 4 second, 5 largest (read and write, f32),
//           6 params
// grid      the sum over the tensors of ceil(count / 1024) workgroups; linear fold over x, y, z
// workgroup 256 threads, each taking four elements 256 apart, all of one tensor; no workgroup memory
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
@group(0) @binding(3) var<storage, read_write> first0: array<u32>;
//@ tensors second
@group(0) @binding(4) var<storage, read_write> second0: array<u32>;
//@ tensors largest
@group(0) @binding(5) var<storage, read_write> largest0: array<u32>;
//@ tensors params
@group(0) @binding(6) var<uniform> p: Params;

//@ const AMSGRAD
const AMSGRAD: bool = true;
fn pick_first(k: u32, i: u32) -> f32 {
  switch k {
    //@ tensors first
    case 0u, default: { return bitcast<f32>(first0[i]); }
  }
}
fn put_first(k: u32, i: u32, v: f32) {
  switch k {
    //@ tensors first
    case 0u, default: { first0[i] = bitcast<u32>(v); }
  }
}
fn pick_second(k: u32, i: u32) -> f32 {
  switch k {
    //@ tensors second
    case 0u, default: { return bitcast<f32>(second0[i]); }
  }
}
fn put_second(k: u32, i: u32, v: f32) {
  switch k {
    //@ tensors second
    case 0u, default: { second0[i] = bitcast<u32>(v); }
  }
}
fn pick_largest(k: u32, i: u32) -> f32 {
  switch k {
    //@ tensors largest
    case 0u: { return bitcast<f32>(largest0[i]); }
    default: { return 0.0; }
  }
}
fn put_largest(k: u32, i: u32, v: f32) {
  switch k {
    //@ tensors largest
    case 0u: { largest0[i] = bitcast<u32>(v); }
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
  let m = p.beta1 * pick_first(k, i) + p.gain1 * d;
  let v = p.beta2 * pick_second(k, i) + p.gain2 * d * d;
  put_first(k, i, m);
  put_second(k, i, v);
  var top = v;
  if (AMSGRAD) {
    top = max(v, pick_largest(k, i));
    put_largest(k, i, top);
  }
  let size = bitcast<f32>(p.tensors[k].z);
  let root = bitcast<f32>(p.tensors[k].w);
  put_x(k, i, old * p.shrink - size * m / (sqrt(top) * root + p.eps));
}
