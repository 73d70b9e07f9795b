// Index of the largest (or smallest) element along the reduced axes, as i32: the first one wins a tie, the
// first NaN wins over all.
//
// bindings  0 x (read), 1 out (write, i32), 2 params
// entries   tree: one workgroup per output; grid count
//           lanes, columns: eight threads per output, neighbours or those of neighbouring outputs; grid
//           ceil(count / 32)
//           serial: one invocation per output; grid ceil(count / 256); linear fold over x, y, z
// workgroup 256 threads; 2 KiB of workgroup memory (tree)
//
// Shapes and strides as in reduce.wgsl, FOURS too, and so a cut axis: then PAIRS_OUT writes of each part the
// key and its index in the whole axis, two words per output, and PAIRS_IN reads them in a second dispatch,
// with offsets and strides in pairs. The index counts the reduced axes in row-major order. The key of an
// element is a word that is larger for one that is better: larger or, with SMALLEST, smaller; that of a NaN,
// which its bits tell, is the largest.
struct Params {
  kept_shape: array<vec4<u32>, 2>, kept_strides: array<vec4<u32>, 2>,
  axis_shape: array<vec4<u32>, 2>, axis_strides: array<vec4<u32>, 2>,
  kept_ndim: u32, axis_ndim: u32, count: u32, length: u32, x_off: u32,
  whole: u32, per_part: u32,
}
//@ words x
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@group(0) @binding(2) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ load4 x
fn load4_x(i: vec4<u32>) -> vec4<T> { return vec4<T>(load_x(i.x), load_x(i.y), load_x(i.z), load_x(i.w)); }
//@ const FOURS
const FOURS: bool = false;
//@ const SMALLEST
const SMALLEST: bool = false;
//@ const PAIRS_IN
const PAIRS_IN: bool = false;
//@ const PAIRS_OUT
const PAIRS_OUT: bool = false;
const IS_FLOAT: bool = T(0.5) != T(0); // an integer has no half

fn keys(v: vec4<T>) -> vec4<u32> {
  let bits = bitcast<vec4<u32>>(v);
  let sign = vec4<u32>(0x80000000u);
  var key = bits;
  if (IS_FLOAT) {
    let whole = select(bits, vec4<u32>(), bits == sign); // -0 is 0
    key = select(whole | sign, ~whole, whole >= sign);
  } else if (bitcast<T>(0x80000000u) < T(0)) {
    key = bits ^ sign;
  }
  if (SMALLEST) { key = ~key; }
  if (IS_FLOAT) { key = select(key, vec4<u32>(0xffffffffu), (bits & ~sign) > vec4<u32>(0x7f800000u)); }
  return key;
}

// The index of none is larger than all others.
const NONE: u32 = 0xffffffffu;
struct Best { key: u32, index: u32 }
var<workgroup> parts: array<Best, 256>;

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

// The winner of two candidates.
fn pick(a: Best, b: Best) -> Best {
  if (b.key > a.key || (b.key == a.key && b.index < a.index)) { return b; }
  return a;
}

// The best of a candidate and the q-th four of `length` elements from `base` on, of which the first has the
// index `start`; later ones win by a larger key only.
fn pick4(old: Best, base: u32, start: u32, length: u32, q: u32) -> Best {
  let i = q * 4u + vec4<u32>(0u, 1u, 2u, 3u);
  let last = length - 1u;
  var at = base + i;
  if (!FOURS) {
    at = base + vec4<u32>(
      axis_offset(i.x), axis_offset(min(i.y, last)), axis_offset(min(i.z, last)), axis_offset(min(i.w, last)),
    );
  }
  let key = keys(load4_x(at));
  var best = old;
  if (key.x > best.key || best.index == NONE) { best = Best(key.x, start + i.x); }
  if (key.y > best.key && i.y <= last) { best = Best(key.y, start + i.y); }
  if (key.z > best.key && i.z <= last) { best = Best(key.z, start + i.z); }
  if (key.w > best.key && i.w <= last) { best = Best(key.w, start + i.w); }
  return best;
}

// The best of fours first, first + step, ... of output i.
fn search(i: u32, first: u32, step: u32) -> Best {
  let base = p.x_off + kept_offset(i);
  var start = 0u;
  var length = p.length;
  if (p.per_part > 0u) {
    start = i / p.per_part * length;
    length = min(length, p.whole - start);
  }
  var best = Best(0u, NONE);
  if (PAIRS_IN) {
    for (var r = first; r < length; r += step) {
      let at = 2u * (base + axis_offset(r));
      best = pick(best, Best(bitcast<u32>(load_x(at)), bitcast<u32>(load_x(at + 1u))));
    }
    return best;
  }
  for (var q = first; q < (length + 3u) / 4u; q += step) { best = pick4(best, base, start, length, q); }
  return best;
}

fn write(i: u32, best: Best) {
  if (PAIRS_OUT) {
    out[2u * i] = best.key;
    out[2u * i + 1u] = best.index;
  } else {
    out[i] = best.index;
  }
}

@compute @workgroup_size(256)
fn tree(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group >= p.count) { return; }
  var best = search(group, t, 256u);
  parts[t] = best;
  workgroupBarrier();
  for (var half = 128u; half > 0u; half /= 2u) {
    if (t < half) {
      best = pick(best, parts[t + half]);
      parts[t] = best;
    }
    workgroupBarrier();
  }
  if (t == 0u) { write(group, best); }
}

@compute @workgroup_size(256)
fn serial(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let i = group * 256u + t;
  if (i < p.count) { write(i, search(i, 0u, 1u)); }
}

// One of eight parts of an output; the parts lie `step` apart in workgroup memory.
fn eighth(i: u32, lane: u32, at: u32, step: u32) {
  var best = Best(0u, NONE);
  if (i < p.count) { best = search(i, lane, 8u); }
  parts[at] = best;
  workgroupBarrier();
  for (var half = 4u; half > 0u; half /= 2u) {
    if (lane < half) {
      best = pick(best, parts[at + half * step]);
      parts[at] = best;
    }
    workgroupBarrier();
  }
  if (lane == 0u && i < p.count) { write(i, best); }
}

@compute @workgroup_size(256)
fn lanes(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group * 32u >= p.count) { return; }
  eighth(group * 32u + t / 8u, t % 8u, t, 1u);
}

@compute @workgroup_size(256)
fn columns(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group * 32u >= p.count) { return; }
  eighth(group * 32u + t % 32u, t / 32u, t, 32u);
}
