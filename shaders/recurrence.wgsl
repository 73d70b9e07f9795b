// First-order recurrence along one axis: out[i] = decay[i] * out[i - 1] + x[i]; nothing is before the first.
//
// bindings  0 decay (read), 1 x (read), 2 out (write, one word per element), 3 params
// entry     main: one invocation per line; grid ceil(lines / 256) folded over x, y, z
// workgroup 256 threads
//
// A line is one position on the other ("kept") axes. Each tensor has an offset and a step (its stride on the
// axis); a recurrence from the back has negative steps and offsets on the last element. With `resumed` the
// first element follows the one that `out` has before it: long lines are launched in parts. What the products
// and sums lose to rounding is carried along.
//@ use products
struct Params {
  kept_shape: array<vec4<u32>, 2>,
  decay_strides: array<vec4<u32>, 2>, x_strides: array<vec4<u32>, 2>, out_strides: array<vec4<u32>, 2>,
  kept_ndim: u32, lines: u32, length: u32,
  decay_off: u32, decay_step: u32, x_off: u32, x_step: u32, out_off: u32, out_step: u32, resumed: u32,
}
@group(0) @binding(0) var<storage, read> decay: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ load decay
fn load_decay(i: u32) -> T { return bitcast<f32>(decay[i]); }
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let line = (wid.x + groups.x * (wid.y + groups.y * wid.z)) * 256u + t;
  if (line >= p.lines) { return; }
  var rest = line;
  var at = vec3<u32>(p.decay_off, p.x_off, p.out_off);
  for (var d = p.kept_ndim; d > 0u; d -= 1u) {
    let a = (d - 1u) >> 2u;
    let b = (d - 1u) & 3u;
    let strides = vec3<u32>(p.decay_strides[a][b], p.x_strides[a][b], p.out_strides[a][b]);
    at += (rest % p.kept_shape[a][b]) * strides;
    rest /= p.kept_shape[a][b];
  }
  var total = vec2<f32>(0.0, 0.0);
  if (p.resumed != 0u) { total.x = bitcast<f32>(out[at.z - p.out_step]); }
  for (var i = 0u; i < p.length; i += 1u) {
    // The decay of the first may be infinite.
    let factor = select(load_decay(at.x), T(0.0), i == 0u && p.resumed == 0u);
    total = product_plus(factor, total, load_x(at.y), p.lines >> 31u);
    store_out(at.z, vec2<T>(total.x));
    at += vec3<u32>(p.decay_step, p.x_step, p.out_step);
  }
}
