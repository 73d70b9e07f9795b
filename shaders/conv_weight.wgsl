// The gradient of a convolution with respect to its weight:
// out[g, o, c, k] = sum over images n and positions i of
// y[n, g, o, i] * x[n, g, c, i * stride + k * dilation - padding].
//
// bindings  0 x (read), 1 y (read), 2 out (write), 3 params
// grid      one workgroup per output word, words = ceil(count / EPW); linear fold over x, y, z
// workgroup 256 threads, which share the images and positions; 1 KiB of workgroup memory
//
// Positions outside of `input` count as zeros. Three spatial axes, the missing ones in front with length 1;
// all tensors are dense. Every thread adds its products in order, and the threads are added in a tree.
struct Params {
  input: array<vec4<u32>, 2>, kernel: array<vec4<u32>, 2>, output: array<vec4<u32>, 2>,
  stride: array<vec4<u32>, 2>, dilation: array<vec4<u32>, 2>, padding: array<vec4<u32>, 2>,
  count: u32, x_off: u32, y_off: u32, groups: u32, inner: u32, outer: u32, images: u32,
}
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> y: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ load y
fn load_y(i: u32) -> T { return bitcast<f32>(y[i]); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }

var<workgroup> part: array<T, 256>;

// The products of output element i that thread t adds.
fn products(i: u32, t: u32) -> T {
  let taps = p.kernel[0].x * p.kernel[0].y * p.kernel[0].z;
  let k = i % taps;
  let c = (i / taps) % p.inner;
  let o = i / (taps * p.inner);
  let group = o / p.outer;
  let tap = vec3<u32>(
    k / (p.kernel[0].z * p.kernel[0].y), (k / p.kernel[0].z) % p.kernel[0].y, k % p.kernel[0].z);
  let shift = tap * p.dilation[0].xyz - p.padding[0].xyz;
  let places = p.output[0].x * p.output[0].y * p.output[0].z;
  let plane = p.input[0].x * p.input[0].y * p.input[0].z;
  var total = T();
  for (var j = t; j < p.images * places; j += 256u) {
    let image = j / places;
    let at = j % places;
    let place = vec3<u32>(
      at / (p.output[0].z * p.output[0].y), (at / p.output[0].z) % p.output[0].y, at % p.output[0].z);
    let q = place * p.stride[0].xyz + shift;
    if (any(q >= p.input[0].xyz)) { continue; }
    let base = p.x_off + ((image * p.groups + group) * p.inner + c) * plane;
    let value = load_x(base + (q.x * p.input[0].y + q.y) * p.input[0].z + q.z);
    total += value * load_y(p.y_off + (image * p.groups * p.outer + o) * places + at);
  }
  return total;
}

// The sum of all threads' values, known to thread 0.
fn sum(value: T, t: u32) -> T {
  part[t] = value;
  workgroupBarrier();
  for (var half = 128u; half > 0u; half /= 2u) {
    if (t < half) { part[t] += part[t + half]; }
    workgroupBarrier();
  }
  let total = part[0];
  workgroupBarrier();
  return total;
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let word = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let i = word * EPW;
  if (i >= p.count) { return; }
  var v = vec2<T>(sum(products(i, t), t));
  if (EPW == 2u && i + 1u < p.count) { v.y = sum(products(i + 1u, t), t); }
  if (t == 0u) { store_out(word, v); }
}
