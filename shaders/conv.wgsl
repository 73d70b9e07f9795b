// Convolution, its transpose by the input and its transpose by the weight, as products of matrices:
// out[row, column] = sum over k of a[row, k] * x[window of column and k], for every group of channels.
//
// bindings  0 a (read), 1 x (read), 2 bias (read), 3 out (write), 4 params
// grid      main: one workgroup per tile of a product, products ordered by (group, phase, part); direct and
//           direct_parts: one thread per quad of columns, ordered by (group, phase, row, quad, part), in
//           direct with one part; linear fold over x, y, z
// workgroup 256 threads; the memory of `tile` in main, none in the others, which are for products of few rows
//
// A column and a k are numbers of four digits, z, y, x within `columns` and `terms`, and an outer one: of a
// convolution (image, place) and (channel, element of the window); of its transpose by the weight the other
// way round, with y in the place of a; of its transpose by the input (image, place), where y is x. The window
// is at `start` plus the digits times their steps; what is outside of `source` counts as zeros. Steps wrap.
//
// PHASED: a transpose by the input with strides. Places as far apart as the stride get products with the same
// elements of the window: these places are a phase, with `columns` and `terms` of its own. It begins at its
// first element of the window, the others follow in steps of `terms[0]`.
//
// A sum is cut into parts, which lie out_part apart in out: stretches of part_k in main, a multiple of DEPTH,
// and every parts-th k in direct_parts. BIAS: the first part of each row has a number added, one for every
// row of every group. FOURS: four columns are adjacent in out, at a multiple of four.
//@ use tile
//@ use tile_threads
struct Params {
  source: array<vec4<u32>, 2>,  // lengths of x; the position of the first window; PHASED: padding
  columns: array<vec4<u32>, 2>, // lengths of digits, columns; steps of the window, of x per outer digit
  terms: array<vec4<u32>, 2>,   // lengths of digits, outer ones; steps of the window, of x per outer digit
  rows: array<vec4<u32>, 2>,    // steps of a per digit of k; of a row, of a group, the number of rows
  to: array<vec4<u32>, 2>,      // lengths of out, its step per outer digit; steps of places, phases
  window: array<vec4<u32>, 2>,  // PHASED: lengths of the window; distances in it
  stride: array<vec4<u32>, 2>,  // PHASED: distances of the places of a phase
  count: u32, tiles_m: u32, tiles_n: u32, parts: u32, part_k: u32,
  a_off: u32, x_off: u32, x_group: u32, out_row: u32, out_group: u32, out_part: u32, bias_off: u32,
}
//@ words a
@group(0) @binding(0) var<storage, read> a: array<u32>;
//@ words x
@group(0) @binding(1) var<storage, read> x: array<u32>;
//@ words bias
@group(0) @binding(2) var<storage, read> bias: array<u32>;
//@ words out
@group(0) @binding(3) var<storage, read_write> out: array<u32>;
@group(0) @binding(4) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ load a
fn load_a(i: u32) -> T { return bitcast<f32>(a[i]); }
//@ load4 a
fn load4_a(i: vec4<u32>) -> vec4<S> { return vec4<S>(load_a(i.x), load_a(i.y), load_a(i.z), load_a(i.w)); }
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ load bias
fn load_bias(i: u32) -> T { return bitcast<f32>(bias[i]); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }
//@ store4 out
fn store4_out(i: u32, v: vec4<T>) { store_out(i, v.xy); }
//@ const BIAS
const BIAS: bool = false;
//@ const FOURS
const FOURS: bool = false;
//@ const PHASED
const PHASED: bool = false;

const NEXT: vec4<u32> = vec4<u32>(0u, 1u, 2u, 3u);
const NONE: u32 = 0x80000000u; // a position that no step leads back from

// A product, and the windows of four of its columns.
struct Place {
  a: u32, x: u32, out: u32, bias: u32, // where group and part begin
  part: u32,
  terms: vec3<u32>, k: u32, // lengths of the digits of k; the number of k
  start: vec3<u32>,         // the position of the window of column 0 at k 0
  phase: vec3<u32>,         // the first place
  at: vec4<u32>,            // where the windows lie in x
  z: vec4<u32>, y: vec4<u32>, x_: vec4<u32>, // and their positions
}

// The digits of a number: z, y, x, and the outer one.
fn digits(i: u32, lengths: vec3<u32>) -> vec4<u32> {
  let lines = i / lengths.z;
  let planes = lines / lengths.y;
  let outer = planes / lengths.x;
  return vec4<u32>(planes - outer * lengths.x, lines - planes * lengths.y, i - lines * lengths.z, outer);
}

// The digits of a sum.
fn plus_digits(v: vec4<u32>, w: vec4<u32>, lengths: vec3<u32>) -> vec4<u32> {
  let x = v.z + w.z;
  let over_x = u32(x >= lengths.z);
  let y = v.y + w.y + over_x;
  let over_y = u32(y >= lengths.y);
  let z = v.x + w.x + over_y;
  let over_z = u32(z >= lengths.x);
  return vec4<u32>(
    z - over_z * lengths.x, y - over_y * lengths.y, x - over_x * lengths.z, v.w + w.w + over_z);
}

// The digits of the numbers i to i + 3.
struct Four { z: vec4<u32>, y: vec4<u32>, x: vec4<u32>, outer: vec4<u32> }

fn four_from(i: u32, lengths: vec3<u32>) -> Four {
  let one = vec4<u32>(0u, 0u, 1u, 0u);
  let a = digits(i, lengths);
  let b = plus_digits(a, one, lengths);
  let c = plus_digits(b, one, lengths);
  let d = plus_digits(c, one, lengths);
  return Four(
    vec4<u32>(a.x, b.x, c.x, d.x), vec4<u32>(a.y, b.y, c.y, d.y), vec4<u32>(a.z, b.z, c.z, d.z),
    vec4<u32>(a.w, b.w, c.w, d.w));
}

// The index in a dense box, and four of them.
fn within(v: vec3<u32>, lengths: vec3<u32>) -> u32 { return (v.x * lengths.y + v.y) * lengths.z + v.z; }
fn four_within(z: vec4<u32>, y: vec4<u32>, x: vec4<u32>, lengths: vec3<u32>) -> vec4<u32> {
  return (z * lengths.y + y) * lengths.z + x;
}

// Of axis i, what phase r begins with: its first element of the window, the number of them, and its position.
fn phase_of(i: u32, r: u32) -> vec3<u32> {
  let stride = i32(p.stride[0][i]);
  let room = i32(r + p.source[1][i]);
  let far = i32(p.window[1][i]);
  let length = p.window[0][i];
  var k = 0u;
  while (k < length && (room - i32(k) * far) % stride != 0) { k += 1u; }
  let count = (length - k + p.terms[0][i] - 1u) / p.terms[0][i];
  return vec3<u32>(k, count, bitcast<u32>((room - i32(k) * far) / stride));
}

// The product of this number, without windows.
fn place_of(product: u32) -> Place {
  var at = Place();
  at.part = product % p.parts;
  var group = product / p.parts;
  at.terms = p.terms[0].xyz;
  at.k = p.terms[0].w;
  at.start = p.source[1].xyz;
  if (PHASED) {
    let phase = digits(group, p.to[1].xyz);
    let z = phase_of(0u, phase.x);
    let y = phase_of(1u, phase.y);
    let x = phase_of(2u, phase.z);
    group = phase.w;
    at.phase = phase.xyz;
    at.k = z.y * y.y * x.y * at.k;
    at.terms = max(vec3<u32>(z.y, y.y, x.y), vec3<u32>(1u)); // a phase without terms stays zero
    at.start = vec3<u32>(z.z, y.z, x.z);
    at.a = within(vec3<u32>(z.x, y.x, x.x), p.window[0].xyz);
  } else {
    at.k *= at.terms.x * at.terms.y * at.terms.z;
  }
  at.a += p.a_off + group * p.rows[1].y;
  at.x = p.x_off + group * p.x_group;
  at.out = at.part * p.out_part + group * p.out_group;
  at.bias = p.bias_off + group * p.rows[1].z;
  return at;
}

// The place with the windows of the columns from this one on, whose digits are d. Where there are no more,
// they are outside.
fn with_windows(at_: Place, column: u32, d: Four) -> Place {
  var at = at_;
  let inside = column + NEXT < vec4<u32>(p.columns[0].w);
  at.z = select(vec4<u32>(NONE), at.start.x + d.z * p.columns[1].x, inside);
  at.y = at.start.y + d.y * p.columns[1].y;
  at.x_ = at.start.z + d.x * p.columns[1].z;
  at.at = at.x + d.outer * p.columns[1].w + four_within(at.z, at.y, at.x_, p.source[0].xyz);
  return at;
}

// Four elements of x, zeros for those that are not there.
fn four_of_x(at: vec4<u32>, there: vec4<bool>) -> vec4<S> {
  let i = select(vec4<u32>(p.x_off), at, there);
  return select(vec4<S>(), vec4<S>(load_x(i.x), load_x(i.y), load_x(i.z), load_x(i.w)), there);
}

// What four columns read at a k of these digits; zeros where the window is outside, or all of it is.
fn windows(at: Place, d: vec4<u32>, inside: bool) -> vec4<S> {
  let s = d.xyz * p.terms[1].xyz;
  let lengths = p.source[0].xyz;
  let ok = (at.z + s.x < vec4<u32>(lengths.x)) & (at.y + s.y < vec4<u32>(lengths.y)) &
    (at.x_ + s.z < vec4<u32>(lengths.z)) & vec4<bool>(inside);
  return four_of_x(at.at + (d.w * p.terms[1].w + within(s, lengths)), ok);
}

fn block_a(at: Place, row: u32, k: u32) -> Steps {
  let r = at.a + min(row + NEXT, vec4<u32>(p.rows[1].z - 1u)) * p.rows[1].x;
  let d = four_from(k, at.terms);
  let inside = k + NEXT < vec4<u32>(at.k);
  let along = d.z * p.rows[0].x + d.y * p.rows[0].y + d.x * p.rows[0].z + d.outer * p.rows[0].w;
  let c = select(vec4<u32>(), along, inside);
  let v = turned(load4_a(r.x + c), load4_a(r.y + c), load4_a(r.z + c), load4_a(r.w + c));
  let none = vec4<S>();
  return Steps(
    select(none, v.v0, inside.x), select(none, v.v1, inside.y), select(none, v.v2, inside.z),
    select(none, v.v3, inside.w));
}

// The windows are those of the place, which are of these columns.
fn block_b(at: Place, k: u32, column: u32) -> Steps {
  let d = four_from(k, at.terms);
  let inside = k + NEXT < vec4<u32>(at.k);
  return Steps(
    windows(at, vec4<u32>(d.z.x, d.y.x, d.x.x, d.outer.x), inside.x),
    windows(at, vec4<u32>(d.z.y, d.y.y, d.x.y, d.outer.y), inside.y),
    windows(at, vec4<u32>(d.z.z, d.y.z, d.x.z, d.outer.z), inside.z),
    windows(at, vec4<u32>(d.z.w, d.y.w, d.x.w, d.outer.w), inside.w));
}

// Where four columns, whose digits are d, lie in a row of out, and which of them there are.
struct Targets { i: vec4<u32>, there: vec4<bool> }

fn targets(at: Place, column: u32, d: Four) -> Targets {
  let z = at.phase.x + d.z * p.to[1].x;
  let y = at.phase.y + d.y * p.to[1].y;
  let x = at.phase.z + d.x * p.to[1].z;
  let lengths = p.to[0].xyz;
  let inside = (z < vec4<u32>(lengths.x)) & (y < vec4<u32>(lengths.y)) & (x < vec4<u32>(lengths.z));
  return Targets(
    d.outer * p.to[0].w + four_within(z, y, x, lengths),
    inside & (column + NEXT < vec4<u32>(p.columns[0].w)));
}

// Stores the columns of a row. Those of a word lie beside each other.
fn store_row(at: Place, row: u32, to: Targets, sum: vec4<T>) {
  if (row >= p.rows[1].z) { return; }
  var v = sum;
  if (BIAS && at.part == 0u) { v += T(load_bias(at.bias + row)); }
  let first = at.out + row * p.out_row + to.i;
  if (FOURS) {
    if (to.there.x) { store4_out(first.x, v); }
    return;
  }
  let i = first / EPW;
  if (EPW == 2u) {
    if (to.there.x) { store_out(i.x, v.xy); }
    if (to.there.z) { store_out(i.z, v.zw); }
    return;
  }
  if (to.there.x) { store_out(i.x, v.xx); }
  if (to.there.y) { store_out(i.y, v.yy); }
  if (to.there.z) { store_out(i.z, v.zz); }
  if (to.there.w) { store_out(i.w, v.ww); }
}

fn store_block(at: Place, row: u32, column: u32, v: Block) {
  let to = targets(at, column, four_from(column, p.columns[0].xyz));
  store_row(at, row, to, v.v0);
  store_row(at, row + 1u, to, v.v1);
  store_row(at, row + 2u, to, v.v2);
  store_row(at, row + 3u, to, v.v3);
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let tiles = p.tiles_m * p.tiles_n;
  let product = group / tiles;
  if (product >= p.count) { return; }
  let corner = tile_corner(group % tiles, p.tiles_m, p.tiles_n);
  let first = product % p.parts * p.part_k;
  var at = place_of(product);
  // The columns that this thread fetches, the same in every step.
  let column = corner.y + 4u * part_of(t).quad;
  at = with_windows(at, column, four_from(column, p.columns[0].xyz));
  multiply_tile(at, t, corner, first, min(at.k, first + p.part_k));
}

@compute @workgroup_size(256)
fn direct(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let i = (wid.x + groups.x * (wid.y + groups.y * wid.z)) * 256u + t;
  let quads = (p.columns[0].w + 3u) / 4u;
  let line = i / quads;
  let product = line / p.rows[1].z;
  if (product >= p.count) { return; }
  let row = line - product * p.rows[1].z;
  let column = 4u * (i - line * quads);
  let columns = four_from(column, p.columns[0].xyz);
  let at = with_windows(place_of(product), column, columns);
  let steps = p.terms[1].xyz;
  let lengths = p.source[0].xyz;
  let outer = select(0u, p.terms[0].w, at.k > 0u);
  var sum = vec4<T>();
  for (var c = 0u; c < outer; c += 1u) {
    for (var z = 0u; z < at.terms.x; z += 1u) {
      let ok_z = at.z + z * steps.x < vec4<u32>(lengths.x);
      for (var y = 0u; y < at.terms.y; y += 1u) {
        let ok_y = ok_z & (at.y + y * steps.y < vec4<u32>(lengths.y));
        var from_a = at.a + row * p.rows[1].x + c * p.rows[0].w + z * p.rows[0].x + y * p.rows[0].y;
        var from_x = at.at + (c * p.terms[1].w + (z * steps.x * lengths.y + y * steps.y) * lengths.z);
        var x_ = at.x_;
        for (var k = 0u; k < at.terms.z; k += 1u) {
          let ok = ok_y & (x_ < vec4<u32>(lengths.z));
          sum += T(load_a(from_a)) * vec4<T>(four_of_x(from_x, ok));
          from_a += p.rows[0].z;
          from_x += steps.z;
          x_ += steps.z;
        }
      }
    }
  }
  store_row(at, row, targets(at, column, columns), sum);
}

@compute @workgroup_size(256)
fn direct_parts(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let i = (wid.x + groups.x * (wid.y + groups.y * wid.z)) * 256u + t;
  let part = i % p.parts;
  let quads = (p.columns[0].w + 3u) / 4u;
  let column = 4u * (i / p.parts % quads);
  let line = i / p.parts / quads;
  let product = line / p.rows[1].z * p.parts + part;
  if (product >= p.count) { return; }
  let row = line % p.rows[1].z;
  let columns = four_from(column, p.columns[0].xyz);
  let at = with_windows(place_of(product), column, columns);
  let row_a = at.a + row * p.rows[1].x;
  let step = digits(p.parts, at.terms);
  var d = digits(part, at.terms);
  var sum = vec4<T>();
  for (var k = part; k < at.k; k += p.parts) {
    let c = d * p.rows[0];
    sum += T(load_a(row_a + c.x + c.y + c.z + c.w)) * vec4<T>(windows(at, d, true));
    d = plus_digits(d, step, at.terms);
  }
  store_row(at, row, targets(at, column, columns), sum);
}
