// One step of stochastic gradient descent on a flat f32 buffer, in place: weight decay, momentum, dampening,
// Nesterov.
//
// bindings  0 g (read), 1 control (read), 2 x (read and write: the parameters), 3 momentum (read and write,
//           f32), 4 params
// grid      ceil(count / 1024) workgroups; linear fold over x, y, z
// workgroup 256 threads, each taking four elements 256 apart; no workgroup memory
//
// flags: 1 momentum, 2 the first step (the momentum buffer is set, not decayed), 4 Nesterov, 8 maximise.
// Without momentum a buffer of its own, of one word, is bound in its place. `control` lives on the GPU so
// that loss scaling and clipping need no round trip: control[0] is a factor on g (f32), and where control[1]
// is not 0 the step is skipped.
struct Params { count: u32, flags: u32, rate: f32, decay: f32, momentum: f32, dampening: f32 }
@group(0) @binding(0) var<storage, read> g: array<u32>;
@group(0) @binding(1) var<storage, read> control: array<u32>;
@group(0) @binding(2) var<storage, read_write> x: array<u32>;
@group(0) @binding(3) var<storage, read_write> momentum: array<u32>;
@group(0) @binding(4) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ load g
fn load_g(i: u32) -> T { return bitcast<f32>(g[i]); }

// Move element i.
fn update(i: u32) {
  let old = bitcast<f32>(x[i]);
  var d = load_g(i) * bitcast<f32>(control[0]);
  if ((p.flags & 8u) != 0u) { d = -d; }
  d += p.decay * old;
  if ((p.flags & 1u) != 0u) {
    var m = d;
    if ((p.flags & 2u) == 0u) { m = p.momentum * bitcast<f32>(momentum[i]) + (1.0 - p.dampening) * d; }
    momentum[i] = bitcast<u32>(m);
    d = select(m, d + p.momentum * m, (p.flags & 4u) != 0u);
  }
  x[i] = bitcast<u32>(old - p.rate * d);
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
