// One step of Adam (Kingma and Ba 2015), AdamW (Loshchilov and Hutter 2019) or AMSGrad on a flat f32 buffer,
// in place.
//
// bindings  0 g (read), 1 control (read), 2 x, 3 first, 4 second, 5 largest (read and write, f32), 6 params
// grid      ceil(count / 1024) workgroups; linear fold over x, y, z
// workgroup 256 threads, each taking four elements 256 apart; no workgroup memory
//
// The bias corrections depend on the step alone and are computed by the host in f64: size = rate / (1 -
// beta1^t), root = 1 / sqrt(1 - beta2^t). flags: 1 AMSGrad (without it a buffer of its own, of one word, is
// bound as largest), 2 decoupled weight decay (AdamW), 8 maximise. gain1 = 1 - beta1 and gain2 = 1 - beta2
// also come from f64. `control` lives on the GPU so that loss scaling and clipping need no round trip:
// control[0] is a factor on g (f32), and where control[1] is not 0 the step is skipped.
struct Params {
  count: u32, flags: u32, rate: f32, decay: f32,
  beta1: f32, gain1: f32, beta2: f32, gain2: f32, eps: f32, size: f32, root: f32,
}
@group(0) @binding(0) var<storage, read> g: array<u32>;
@group(0) @binding(1) var<storage, read> control: array<u32>;
@group(0) @binding(2) var<storage, read_write> x: array<u32>;
@group(0) @binding(3) var<storage, read_write> first: array<u32>;
@group(0) @binding(4) var<storage, read_write> second: array<u32>;
@group(0) @binding(5) var<storage, read_write> largest: array<u32>;
@group(0) @binding(6) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ load g
fn load_g(i: u32) -> T { return bitcast<f32>(g[i]); }

// Move element i.
fn update(i: u32) {
  var value = bitcast<f32>(x[i]);
  var d = load_g(i) * bitcast<f32>(control[0]);
  if ((p.flags & 8u) != 0u) { d = -d; }
  if ((p.flags & 2u) != 0u) { value -= p.rate * p.decay * value; } else { d += p.decay * value; }
  let m = p.beta1 * bitcast<f32>(first[i]) + p.gain1 * d;
  let v = p.beta2 * bitcast<f32>(second[i]) + p.gain2 * d * d;
  first[i] = bitcast<u32>(m);
  second[i] = bitcast<u32>(v);
  var top = v;
  if ((p.flags & 1u) != 0u) {
    top = max(v, bitcast<f32>(largest[i]));
    largest[i] = bitcast<u32>(top);
  }
  x[i] = bitcast<u32>(value - p.size * m / (sqrt(top) * p.root + p.eps));
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  for (var j = 0u; j < 4u; j += 1u) {
    let i = group * 1024u + j * 256u + t;
    if (i < p.count && control[1] == 0u) { update(i); }
  }
}
