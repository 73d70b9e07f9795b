// Elementwise skeleton with one input: out[i] = op(x[i]), broadcast and strided inputs, dense output.
//
// bindings  0 x (read), 1 out (write), 2 params
// grid      ceil(words / 1024) workgroups, words = ceil(count / EPW); linear fold over x, y, z
// workgroup 256 threads, each taking four words 256 apart; no workgroup memory
//
// The host replaces `op` by a rule's generated body; p.s0 and p.s1 are its attributes. CONTIGUOUS skips
// the index arithmetic when all inputs are dense and of the output's shape. Strides are in elements, 0 on
// broadcast axes; a negative stride wraps as two's complement. With the stub `op` it copies: strided to
// dense, and from one element type to another.
struct Params {
  shape: array<vec4<u32>, 2>,
  x_strides: array<vec4<u32>, 2>,
  ndim: u32, count: u32, x_off: u32,
  s0: f32, s1: f32,
}
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@group(0) @binding(2) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ const CONTIGUOUS
const CONTIGUOUS: bool = false;
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }
//@ fn op
fn op(x: T) -> T { return x; }

// The output element at linear index i.
fn element(i: u32) -> T {
  if (CONTIGUOUS) { return op(load_x(p.x_off + i)); }
  var rest = i;
  var x_i = p.x_off;
  if (p.ndim > 0u) {
    for (var d = p.ndim - 1u; d > 0u; d -= 1u) {
      let size = p.shape[d >> 2u][d & 3u];
      let c = rest % size;
      rest /= size;
      x_i += c * p.x_strides[d >> 2u][d & 3u];
    }
    x_i += rest * p.x_strides[0].x;
  }
  return op(load_x(x_i));
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  for (var j = 0u; j < 4u; j += 1u) {
    let word = group * 1024u + j * 256u + t;
    let i = word * EPW;
    if (i < p.count) {
      var v = vec2<T>(element(i));
      if (EPW == 2u && i + 1u < p.count) { v.y = element(i + 1u); }
      store_out(word, v);
    }
  }
}
