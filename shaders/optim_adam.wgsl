// One step of Adam (Kingma and Ba 2015), AdamW (Loshchilov and Hutter 2019) or AMSGrad on flat f32 buffers,
// in place. One dispatch moves many parameters.
//
// bindings  0 found (read, one word), 1 g (read), 2 x, 3 first, 4 second, 5 largest (read and write, f32),
//           6 params
// grid      the sum over the tensors of ceil(count / 1024) workgroups; linear fold over x, y, z
// workgroup 256 threads, each taking four elements 256 apart, all of one tensor; no workgroup memory
//
// The file handles one tensor; for n of them the host repeats the lines that `tensors` marks: bindings g0 to
// gn, then x0 to xn, and so on, and the cases of `pick` and `put`. tensors[k] holds the first workgroup of
// tensor k, its count, and two floats that depend on its step alone, from f64: size = rate / (1 - beta1^t)
// and root = 1 / sqrt(1 - beta2^t). Without AMSGRAD there is no `largest`. flags: 2 maximise, 4 guarded
// (nothing changes unless found is 0; otherwise any buffer is bound to it). shrink is a factor on x,
// 1 - rate * decay in AdamW, where decay itself is 0; gain1 = 1 - beta1 and gain2 = 1 - beta2.
struct Params {
  flags: u32, decay: f32, shrink: f32, beta1: f32, gain1: f32, beta2: f32, gain2: f32, eps: f32,
  tensors: array<vec4<u32>, TENSORS>,
}
//@ tensors found
@group(0) @binding(0) var<storage, read> found: array<u32>;
//@ tensors g
@group(0) @binding(1) var<storage, read> g0: array<u32>;
//@ tensors x
@group(0) @binding(2) var<storage, read_write> x0: array<u32>;
//@ tensors first
@group(0) @binding(3) var<storage, read_write> first0: array<u32>;
//@ tensors second
@group(0) @binding(4) var<storage, read_write> second0: array<u32>;
//@ tensors largest
@group(0) @binding(5) var<storage, read_write> largest0: array<u32>;
//@ tensors params
@group(0) @binding(6) var<uniform> p: Params;

//@ const TENSORS
const TENSORS: u32 = 1u;
//@ const AMSGRAD
const AMSGRAD: bool = true;
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
