// Read along one axis through an index tensor: out[c] = x[c with c[axis] replaced by index[c]].
//
// bindings  0 x (read), 1 index (read, i32), 2 out (write), 3 status (atomic words), 4 params
// grid      ceil(words / 256) workgroups, words = ceil(count / EPW); linear fold over x, y, z
// workgroup 256 threads, one output word each; no workgroup memory
//
// `shape` is the output's. Gather along an axis has index strides of index's own shape; taking rows, out[o,
// k, i] = x[o, index[k], i], is the same with index strides of 0 off the axis. x_strides[axis] is 0: the axis
// has `axis_stride` and `axis_size`. Negative indices count from the end. An index outside gives a 0 in out,
// sets status[0] to 1 and status[1] to that index.
struct Params {
  shape: array<vec4<u32>, 2>, x_strides: array<vec4<u32>, 2>, index_strides: array<vec4<u32>, 2>,
  ndim: u32, count: u32, x_off: u32, index_off: u32, axis_stride: u32, axis_size: u32,
}
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> index: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
@group(0) @binding(3) var<storage, read_write> status: array<atomic<u32>>;
@group(0) @binding(4) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }

// The output element at linear index i.
fn element(i: u32) -> T {
  var rest = i;
  var x_i = p.x_off;
  var index_i = p.index_off;
  for (var d = p.ndim; d > 0u; d -= 1u) {
    let a = (d - 1u) >> 2u;
    let b = (d - 1u) & 3u;
    let c = rest % p.shape[a][b];
    rest /= p.shape[a][b];
    x_i += c * p.x_strides[a][b];
    index_i += c * p.index_strides[a][b];
  }
  let given = bitcast<i32>(index[index_i]);
  let k = select(given, given + i32(p.axis_size), given < 0);
  if (k < 0 || k >= i32(p.axis_size)) {
    atomicStore(&status[0], 1u);
    atomicStore(&status[1], bitcast<u32>(given));
    return T(0);
  }
  return load_x(x_i + u32(k) * p.axis_stride);
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
