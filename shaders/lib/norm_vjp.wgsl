// What the VJPs of layer (or RMS) normalisation read: rows of x and g, in registers, and the weight, bound as
// 0, 1 and 2; and sums over the rows of a workgroup. lib/rows.wgsl stands before it; the file behind it
// declares `p` with cols and flags (1: there is a weight; without one any buffer is bound, and not read).
//@ words x
@group(0) @binding(0) var<storage, read> x: array<u32>;
//@ words g
@group(0) @binding(1) var<storage, read> g: array<u32>;
//@ words weight
@group(0) @binding(2) var<storage, read> weight: array<u32>;

//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ load4 x
fn load4_x(i: vec4<u32>) -> vec4<T> { return vec4<T>(load_x(i.x), load_x(i.y), load_x(i.z), load_x(i.w)); }
//@ load g
fn load_g(i: u32) -> T { return bitcast<f32>(g[i]); }
//@ load4 g
fn load4_g(i: vec4<u32>) -> vec4<T> { return vec4<T>(load_g(i.x), load_g(i.y), load_g(i.z), load_g(i.w)); }
//@ load weight
fn load_weight(i: u32) -> T { return bitcast<f32>(weight[i]); }
//@ load4 weight
fn load4_weight(i: vec4<u32>) -> vec4<T> { return four_weights(i); }

//@ const RMS
const RMS: bool = false;

fn four_weights(i: vec4<u32>) -> vec4<T> {
  return vec4<T>(load_weight(i.x), load_weight(i.y), load_weight(i.z), load_weight(i.w));
}

fn load_g4(base: u32, c: vec4<u32>) -> vec4<f32> {
  return select(vec4<f32>(), load4_g(base + inside4(c)), here4(c));
}

// weight, or ones.
fn scale4(c: vec4<u32>) -> vec4<f32> {
  if ((p.flags & 1u) != 0u) { return load4_weight(inside4(c)); }
  return vec4<f32>(1.0);
}

// Normalised x, zero where there is no column.
fn norm4(base: u32, m: f32, r: f32, c: vec4<u32>) -> vec4<f32> {
  return select(vec4<f32>(), (load4_x(base + inside4(c)) - m) * r, here4(c));
}

var<workgroup> fours: array<vec4<f32>, 256>;

// Sums over the rows of a workgroup, in order: the threads of its first row, which are LANES, have them.
fn down4(own: vec4<f32>, t: u32) -> vec4<f32> {
  if (ROWS == 1u) { return own; }
  var total = own;
  workgroupBarrier();
  fours[t] = own;
  workgroupBarrier();
  for (var r = 1u; r < ROWS && t < LANES; r += 1u) { total += fours[r * LANES + t]; }
  return total;
}
