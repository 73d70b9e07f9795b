// Convolution, and its transpose with respect to the input, one output element at a time.
//
// bindings  0 x (read), 1 weight (read), 2 out (write), 3 params
// grid      ceil(words / 256) workgroups, words = ceil(count / EPW); linear fold over x, y, z
// workgroup 256 threads, one output word each; no workgroup memory
//
// out[n, g, o, p] = sum over c and k of x[n, g, c, q(p, k)] * weight[g, o, c, k], where q = p * stride + k *
// dilation - padding. TRANSPOSED: the q with q * stride + k * dilation - padding = p, where there is one.
// Positions outside of `input` count as zeros. Three spatial axes, the missing ones in front with length 1; x
// and out are dense as [images, groups * channels, ..], the weight is dense in k. `inner` and `outer` are the
// channels of a group that are summed over and that come out; their steps in the weight are given.
struct Params {
  input: array<vec4<u32>, 2>, kernel: array<vec4<u32>, 2>, output: array<vec4<u32>, 2>,
  stride: array<vec4<u32>, 2>, dilation: array<vec4<u32>, 2>, padding: array<vec4<u32>, 2>,
  count: u32, x_off: u32, w_off: u32, groups: u32, inner: u32, outer: u32,
  w_group: u32, w_inner: u32, w_outer: u32,
}
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> weight: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ const TRANSPOSED
const TRANSPOSED: bool = false;
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ load weight
fn load_weight(i: u32) -> T { return bitcast<f32>(weight[i]); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }

const NONE: u32 = 0xffffffffu;

// The position along axis a of the input that output position i reads with element k of the window; NONE if
// there is none.
fn source(a: u32, i: u32, k: u32) -> u32 {
  if (!TRANSPOSED) {
    let q = i * p.stride[0][a] + k * p.dilation[0][a] - p.padding[0][a];
    return select(NONE, q, q < p.input[0][a]);
  }
  let forward = i + p.padding[0][a];
  let back = k * p.dilation[0][a];
  let q = (forward - back) / p.stride[0][a];
  let exact = forward >= back && q * p.stride[0][a] == forward - back;
  return select(NONE, q, exact && q < p.input[0][a]);
}

// The output element at linear index i.
fn element(i: u32) -> T {
  let height = p.output[0].y;
  let width = p.output[0].z;
  var rest = i;
  let at_x = rest % width;
  rest /= width;
  let at_y = rest % height;
  rest /= height;
  let at_z = rest % p.output[0].x;
  rest /= p.output[0].x;
  let channel = rest % p.outer;
  rest /= p.outer;
  let group = rest % p.groups;
  let image = rest / p.groups;
  let plane = p.input[0].x * p.input[0].y * p.input[0].z;
  let taps = p.kernel[0].x * p.kernel[0].y * p.kernel[0].z;
  let x_base = p.x_off + (image * p.groups + group) * p.inner * plane;
  let w_base = p.w_off + group * p.w_group + channel * p.w_outer;
  var total = T();
  for (var k = 0u; k < taps; k += 1u) {
    let k_x = k % p.kernel[0].z;
    let k_y = (k / p.kernel[0].z) % p.kernel[0].y;
    let k_z = k / (p.kernel[0].z * p.kernel[0].y);
    let q_z = source(0u, at_z, k_z);
    let q_y = source(1u, at_y, k_y);
    let q_x = source(2u, at_x, k_x);
    if (q_z == NONE || q_y == NONE || q_x == NONE) { continue; }
    let start = x_base + (q_z * p.input[0].y + q_y) * p.input[0].z + q_x;
    for (var c = 0u; c < p.inner; c += 1u) {
      total += load_x(start + c * plane) * load_weight(w_base + c * p.w_inner + k);
    }
  }
  return total;
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let word = group * 256u + t;
  let i = word * EPW;
  if (i >= p.count) { return; }
  var v = vec2<T>(element(i));
  if (EPW == 2u && i + 1u < p.count) { v.y = element(i + 1u); }
  store_out(word, v);
}
