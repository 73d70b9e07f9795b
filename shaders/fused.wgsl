// A chain of elementwise operations: y0[i] = op(x0[i], x1[i], ...).y0, and so for every output; broadcast and
// strided inputs, dense outputs.
//
// bindings  0 x0 (read), ... one for each input, y0 (write), ... one for each output, params
// grid      ceil(count / 1024) workgroups; linear fold over x, y, z
// workgroup 256 threads, each making four adjacent elements; no workgroup memory
//
// The host repeats what `lists` marks for each input and output, and replaces `op` by the generated body of
// the chain. inputs[k]: the first element of input k, its first row in `axes`, how many rows it has there
// (none if it lies in order), and whether the places of four adjacent elements are apart. A row of `axes` is
// the length of an axis and the stride of the input. Four that are adjacent may be bound by vectors, or one
// stands for all. The last four are written whole, what is past the end into the padding of the output.
//@ const INPUTS
const INPUTS: u32 = 1u;
//@ const AXES
const AXES: u32 = 1u;
//@ const ATTRIBUTES
const ATTRIBUTES: u32 = 1u;
struct Params {
  count: u32, none0: u32, none1: u32, none2: u32,
  inputs: array<vec4<u32>, INPUTS>,
  axes: array<vec4<u32>, AXES>,
  attributes: array<vec4<f32>, ATTRIBUTES>,
}
//@ words x0
@group(0) @binding(0) var<storage, read> x0: array<u32>;
//@ words y0
@group(0) @binding(1) var<storage, read_write> y0: array<vec4<u32>>;
//@ lists params
@group(0) @binding(2) var<uniform> p: Params;

alias T = f32;
//@ load x0
fn load_x0(i: u32) -> T { return bitcast<f32>(x0[i]); }
//@ load4 x0
fn load4_x0(i: vec4u) -> vec4<T> { return vec4<T>(load_x0(i.x), load_x0(i.y), load_x0(i.z), load_x0(i.w)); }
//@ store4 y0
fn store4_y0(i: u32, v: vec4<T>) { y0[i >> 2u] = bitcast<vec4<u32>>(v); }

struct In {
  //@ lists x0
  x0: T,
}
struct Out {
  //@ lists y0
  y0: T,
}
//@ fn op
fn op(x: In) -> Out { return Out(x.x0); }

// The place of element i of input k.
fn place(k: u32, i: u32) -> u32 {
  let input = p.inputs[k];
  if (input.z == 0u) { return input.x + i; }
  var at = input.x;
  var rest = i;
  for (var d = input.y + input.z - 1u; d > input.y; d -= 1u) {
    let axis = p.axes[d];
    let next = rest / axis.x;
    at += (rest - next * axis.x) * axis.y;
    rest = next;
  }
  return at + rest * p.axes[input.y].y;
}

// Those of four elements.
fn places(k: u32, i: u32) -> vec4<u32> {
  let first = place(k, i);
  if (p.inputs[k].w == 0u) { return first + vec4<u32>(0u, 1u, 2u, 3u); }
  let last = p.count - 1u;
  let b = place(k, min(i + 1u, last));
  let c = place(k, min(i + 2u, last));
  return vec4<u32>(first, b, c, place(k, min(i + 3u, last)));
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let i = group * 1024u + t * 4u;
  if (i >= p.count) { return; }
  var x: array<In, 4>;
  //@ lists x0
  { let v = load4_x0(places(0u, i)); x[0].x0 = v.x; x[1].x0 = v.y; x[2].x0 = v.z; x[3].x0 = v.w; }
  let a = op(x[0]);
  let b = op(x[1]);
  let c = op(x[2]);
  let d = op(x[3]);
  //@ lists y0
  store4_y0(i, vec4<T>(a.y0, b.y0, c.y0, d.y0));
}
