// A chain of elementwise operations whose inputs broadcast and have any strides: outputs 0, 1, ... of
// element i are op(x0[i], x1[i], ...).y0, .y1, ... A file stands behind it that has them stored or read, as
// fused.wgsl or, in place of an input, reduce.wgsl; the parameters of that, `p`, have `chain` in them.
//
// The host repeats what `lists` marks for each input and output, and replaces `op` by the generated body of
// the chain, and says how each input lies. Four elements that are adjacent may be bound by vectors, or one
// stands for all.

// One after another, as those of the chain; such an input has no axes.
const IN_ORDER: u32 = 0u;
// By strides: four adjacent elements of the chain are adjacent there, or one of them stands for all;
const ADJACENT: u32 = 1u;
// or they lie apart.
const APART: u32 = 2u;
// By strides, and only in a part of the chain, perhaps in none of it: elsewhere stands `outside`.
const PART: u32 = 3u;

struct Input {
  // Its first element.
  start: u32,
  // Its first axis in `axes`, and how many it has.
  axis: u32,
  rank: u32,
  // -0 where a part is added to something, which stays as it is elsewhere, else 0.
  outside: f32,
}
// An axis of the chain as an input has it.
struct Axis {
  length: u32,
  stride: u32,
  // The indices of a part.
  first: u32,
  count: u32,
}

//@ const INPUTS
const INPUTS: u32 = 1u;
//@ const AXES
const AXES: u32 = 1u;
//@ const ATTRIBUTES
const ATTRIBUTES: u32 = 1u;
struct Chain {
  inputs: array<Input, INPUTS>,
  axes: array<Axis, AXES>,
  attributes: array<vec4<f32>, ATTRIBUTES>,
}
//@ words x0
@group(0) @binding(0) var<storage, read> x0: array<u32>;

//@ load x0
fn load_x0(i: u32) -> f32 { return bitcast<f32>(x0[i]); }
//@ load4 x0
fn load4_x0(i: vec4u) -> vec4f { return vec4f(load_x0(i.x), load_x0(i.y), load_x0(i.z), load_x0(i.w)); }

//@ const x0
const LIES_x0: u32 = APART;

struct In {
  //@ lists x0
  x0: f32,
}
struct Out {
  //@ lists y0
  y0: f32,
}
//@ fn op
fn op(x: In) -> Out { return Out(x.x0); }

// The place of element i of input k.
fn place(k: u32, i: u32) -> u32 {
  let input = p.chain.inputs[k];
  var at = input.start;
  var rest = i;
  for (var d = input.axis + input.rank - 1u; d > input.axis; d -= 1u) {
    let axis = p.chain.axes[d];
    let next = rest / axis.length;
    at += (rest - next * axis.length) * axis.stride;
    rest = next;
  }
  return at + rest * p.chain.axes[input.axis].stride;
}

// Those of four elements.
fn four_places(k: u32, i: vec4<u32>) -> vec4<u32> { return place(k, i.x) + vec4<u32>(0u, 1u, 2u, 3u); }
fn places(k: u32, i: vec4<u32>) -> vec4<u32> {
  return vec4<u32>(place(k, i.x), place(k, i.y), place(k, i.z), place(k, i.w));
}

// The place of element i of input k, a part, and whether it is there; else that of the first word.
fn part_place(k: u32, i: u32) -> vec2<u32> {
  let input = p.chain.inputs[k];
  var found = vec2<u32>(input.start, 1u);
  var rest = i;
  for (var d = input.axis + input.rank; d > input.axis; d -= 1u) {
    let axis = p.chain.axes[d - 1u];
    let next = rest / axis.length;
    let at = rest - next * axis.length - axis.first;
    found.x += at * axis.stride;
    found.y = select(0u, found.y, at < axis.count);
    rest = next;
  }
  return found * found.y;
}

// Those of four elements: places, and which of them there are.
fn part_places(k: u32, i: vec4<u32>) -> array<vec4<u32>, 2> {
  let a = part_place(k, i.x);
  let b = part_place(k, i.y);
  let c = part_place(k, i.z);
  let d = part_place(k, i.w);
  return array<vec4<u32>, 2>(vec4<u32>(a.x, b.x, c.x, d.x), vec4<u32>(a.y, b.y, c.y, d.y));
}

fn outside(k: u32) -> f32 { return p.chain.inputs[k].outside; }

fn start_of(k: u32) -> u32 { return p.chain.inputs[k].start; }

// The outputs of four elements.
fn outputs(i: vec4<u32>) -> array<Out, 4> {
  var x: array<In, 4>;
  //@ lists x0
  var at_x0 = start_of(0u) + i;
  //@ lists x0
  if (LIES_x0 == ADJACENT) { at_x0 = four_places(0u, i); }
  //@ lists x0
  if (LIES_x0 == APART) { at_x0 = places(0u, i); }
  //@ lists x0
  var there_x0 = vec4<bool>(true);
  //@ lists x0
  if (LIES_x0 == PART) { let a = part_places(0u, i); at_x0 = a[0]; there_x0 = a[1] != vec4<u32>(); }
  //@ lists x0
  let v_x0 = select(vec4<f32>(outside(0u)), load4_x0(at_x0), there_x0);
  //@ lists x0
  { let v = v_x0; x[0].x0 = v.x; x[1].x0 = v.y; x[2].x0 = v.z; x[3].x0 = v.w; }
  return array<Out, 4>(op(x[0]), op(x[1]), op(x[2]), op(x[3]));
}
// In place of an input.
//@ load4 chain
fn load4_chain(i: vec4u) -> vec4f { let o = outputs(i); return vec4f(o[0].y0, o[1].y0, o[2].y0, o[3].y0); }
