// Reduction over any axes of a strided tensor: out[o] = combine over r of x[o, r].
//
// bindings  0 x (read), 1 out (write), 2 params
// entries   tree: one workgroup per output word (long reductions, few outputs); grid words
//           lanes: eight neighbouring threads per output word (many short rows); grid ceil(words / 32)
//           columns: eight threads per output word, neighbouring threads take neighbouring words (reductions
//           over an outer axis); grid ceil(words / 32)
//           serial: one invocation per output word (the shortest reductions); grid ceil(words / 256)
//           words = ceil(count / EPW); linear fold over x, y, z
// workgroup 256 threads; 2 KiB of workgroup memory (tree)
//
// The host splits the axes into kept and reduced ones, each with its shape and strides of x, and merges
// what it can (no division is done for a single axis). The order is fixed by the shapes: elements are taken
// by fours; `tree` gives thread t the fours t, t + 256, ... and combines neighbours pairwise; all add
// blocks of 64 elements first, which keeps the error of long sums small. FOURS: the reduced axis is dense
// and starts at multiples of four, so that x may be bound by vectors. One axis of `whole` elements may be
// cut into parts of `length`: the first kept axis is then that of the parts, with `per_part` outputs each,
// and the last part is what is left; a second dispatch combines them. FOLD selects what is combined; `init`
// holds the bits of its neutral element, of two words the upper ones (or 1). A NaN, which its bits tell,
// wins over all numbers. With `chain` before this text, x is computed as it is read: its parameters are the
// last.
struct Params {
  kept_shape: array<vec4<u32>, 2>, kept_strides: array<vec4<u32>, 2>,
  axis_shape: array<vec4<u32>, 2>, axis_strides: array<vec4<u32>, 2>,
  kept_ndim: u32, axis_ndim: u32, count: u32, length: u32, x_off: u32, init: u32,
  //@ chain x
  whole: u32, per_part: u32,
}
//@ words x
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@group(0) @binding(2) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ load4 x
fn load4_x(i: vec4<u32>) -> vec4<T> { return vec4<T>(load_x(i.x), load_x(i.y), load_x(i.z), load_x(i.w)); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }
//@ const FOLD
const FOLD: u32 = 0u; // 0 sum, 1 product, 2 maximum, 3 minimum
//@ const FOURS
const FOURS: bool = false;
//@ const IS_FLOAT
const IS_FLOAT: bool = true;

//@ fn is_nan
fn is_nan(v: T) -> bool { return IS_FLOAT && (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u; }
//@ fn neutral_of
fn neutral_of(init: u32) -> T { return bitcast<T>(init); }
//@ fn plus
fn plus(a: T, b: T) -> T { return a + b; }
//@ fn times
fn times(a: T, b: T) -> T { return a * b; }
//@ fn less
fn less(a: T, b: T) -> bool { return a < b; }

fn combine(a: T, b: T) -> T {
  if (FOLD == 0u) { return plus(a, b); }
  if (FOLD == 1u) { return times(a, b); }
  let is_first = (FOLD == 2u && less(b, a)) || (FOLD == 3u && less(a, b));
  return select(select(select(b, a, is_first), b, is_nan(b)), a, is_nan(a));
}

var<workgroup> part: array<vec2<T>, 256>;

// Offset of output element i along the kept axes.
fn kept_offset(i: u32) -> u32 {
  var rest = i;
  var at = 0u;
  if (p.kept_ndim == 0u) { return at; }
  for (var d = p.kept_ndim - 1u; d > 0u; d -= 1u) {
    let next = rest / p.kept_shape[d >> 2u][d & 3u];
    at += (rest - next * p.kept_shape[d >> 2u][d & 3u]) * p.kept_strides[d >> 2u][d & 3u];
    rest = next;
  }
  return at + rest * p.kept_strides[0].x;
}

// Offset of the i-th reduced element, in row-major order of the reduced axes.
fn axis_offset(i: u32) -> u32 {
  var rest = i;
  var at = 0u;
  if (p.axis_ndim == 0u) { return at; }
  for (var d = p.axis_ndim - 1u; d > 0u; d -= 1u) {
    let next = rest / p.axis_shape[d >> 2u][d & 3u];
    at += (rest - next * p.axis_shape[d >> 2u][d & 3u]) * p.axis_strides[d >> 2u][d & 3u];
    rest = next;
  }
  return at + rest * p.axis_strides[0].x;
}

// The q-th four of `length` elements of one output; neutral past the end.
fn four(base: u32, length: u32, q: u32) -> vec4<T> {
  let i = q * 4u + vec4<u32>(0u, 1u, 2u, 3u);
  var at = base + i;
  if (!FOURS) {
    let j = min(i, vec4<u32>(length - 1u));
    at = base + vec4<u32>(axis_offset(j.x), axis_offset(j.y), axis_offset(j.z), axis_offset(j.w));
  }
  let v = load4_x(at);
  let none = neutral_of(p.init);
  let y = select(none, v.y, i.y < length);
  let z = select(none, v.z, i.z < length);
  return vec4<T>(select(none, v.x, i.x < length), y, z, select(none, v.w, i.w < length));
}

// Combine the fours first, first + step, ... of output i, in blocks of 64 elements.
fn fold(i: u32, first: u32, step: u32) -> T {
  let base = p.x_off + kept_offset(i);
  var length = p.length;
  if (p.per_part > 0u) { length = min(length, p.whole - i / p.per_part * length); }
  let fours = (length + 3u) / 4u;
  var total = neutral_of(p.init);
  var q = first;
  while (q < fours) {
    var block = neutral_of(p.init);
    for (var j = 0u; j < 16u && q < fours; j += 1u) {
      let v = four(base, length, q);
      block = combine(block, combine(combine(v.x, v.y), combine(v.z, v.w)));
      q += step;
    }
    total = combine(total, block);
  }
  return total;
}

@compute @workgroup_size(256)
fn tree(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let i = group * EPW;
  if (i >= p.count) { return; }
  let first = fold(i, t, 256u);
  var v = vec2<T>(first, first);
  if (EPW == 2u && i + 1u < p.count) { v.y = fold(i + 1u, t, 256u); }
  part[t] = v;
  workgroupBarrier();
  for (var half = 128u; half > 0u; half /= 2u) {
    if (t < half) {
      let other = part[t + half];
      v = vec2<T>(combine(v.x, other.x), combine(v.y, other.y));
      part[t] = v;
    }
    workgroupBarrier();
  }
  if (t == 0u) { store_out(group, v); }
}

@compute @workgroup_size(256)
fn serial(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let word = group * 256u + t;
  let i = word * EPW;
  if (i >= p.count) { return; }
  let first = fold(i, 0u, 1u);
  var v = vec2<T>(first, first);
  if (EPW == 2u && i + 1u < p.count) { v.y = fold(i + 1u, 0u, 1u); }
  store_out(word, v);
}

// One of eight parts of an output word; the parts lie `step` apart in workgroup memory.
fn eighth(word: u32, lane: u32, at: u32, step: u32) {
  let i = word * EPW;
  var v = vec2<T>(neutral_of(p.init), neutral_of(p.init));
  if (i < p.count) { v.x = fold(i, lane, 8u); }
  if (EPW == 2u && i + 1u < p.count) { v.y = fold(i + 1u, lane, 8u); }
  part[at] = v;
  workgroupBarrier();
  for (var half = 4u; half > 0u; half /= 2u) {
    if (lane < half) {
      let other = part[at + half * step];
      v = vec2<T>(combine(v.x, other.x), combine(v.y, other.y));
      part[at] = v;
    }
    workgroupBarrier();
  }
  if (lane == 0u && i < p.count) { store_out(word, v); }
}

@compute @workgroup_size(256)
fn lanes(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group * 32u * EPW >= p.count) { return; }
  eighth(group * 32u + t / 8u, t % 8u, t, 1u);
}

@compute @workgroup_size(256)
fn columns(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group * 32u * EPW >= p.count) { return; }
  eighth(group * 32u + t % 32u, t / 32u, t, 32u);
}
