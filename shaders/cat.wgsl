// Join two tensors along an axis: out[c] = x[c] where c[axis] < split, y[c with split taken off c[axis]]
// elsewhere.
//
// bindings  0 x (read), 1 y (read), 2 out (write), 3 params
// grid      ceil(words / 256) workgroups, words = ceil(count / EPW); linear fold over x, y, z
// workgroup 256 threads, one output word each; no workgroup memory
//
// `shape` is the output's, `split` the size of x on the axis. More than two tensors are joined pairwise.
struct Params {
  shape: array<vec4<u32>, 2>, x_strides: array<vec4<u32>, 2>, y_strides: array<vec4<u32>, 2>,
  ndim: u32, count: u32, x_off: u32, y_off: u32, axis: u32, split: u32,
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

// The output element at linear index i.
fn element(i: u32) -> T {
  var rest = i;
  var x_i = p.x_off;
  var y_i = p.y_off;
  var first = true;
  for (var d = p.ndim; d > 0u; d -= 1u) {
    let a = (d - 1u) >> 2u;
    let b = (d - 1u) & 3u;
    let c = rest % p.shape[a][b];
    rest /= p.shape[a][b];
    x_i += c * p.x_strides[a][b];
    if (d - 1u == p.axis) {
      first = c < p.split;
      y_i += (c - p.split) * p.y_strides[a][b];
    } else {
      y_i += c * p.y_strides[a][b];
    }
  }
  if (first) { return load_x(x_i); }
  return load_y(y_i);
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
