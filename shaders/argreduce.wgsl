// Index of the largest (or smallest) element along the reduced axes, as i32: the first one wins a tie, the
// first NaN wins over all.
//
// bindings  0 x (read), 1 out (write, i32), 2 params
// entries   tree: one workgroup per output; grid count
//           serial: one invocation per output; grid ceil(count / 256); linear fold over x, y, z
// workgroup 256 threads; 2 KiB of workgroup memory (tree)
//
// Shapes and strides as in reduce.wgsl, and so a cut axis: then PAIRS_OUT writes of each part the value and
// its index in the whole axis, two words per output, and PAIRS_IN reads them in a second dispatch, with
// offsets and strides in pairs. The index counts the reduced axes in row-major order. `better(a, b)`
// says that a strictly beats b: is larger or, with SMALLEST, smaller. `is_nan` looks at bits, since
// comparisons may assume that there is no NaN.
struct Params {
  kept_shape: array<vec4<u32>, 2>, kept_strides: array<vec4<u32>, 2>,
  axis_shape: array<vec4<u32>, 2>, axis_strides: array<vec4<u32>, 2>,
  kept_ndim: u32, axis_ndim: u32, count: u32, length: u32, x_off: u32,
  whole: u32, per_part: u32,
}
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@group(0) @binding(2) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ const SMALLEST
const SMALLEST: bool = false;
//@ const PAIRS_IN
const PAIRS_IN: bool = false;
//@ const PAIRS_OUT
const PAIRS_OUT: bool = false;
const IS_FLOAT: bool = T(0.5) != T(0); // an integer has no half

fn better(a: T, b: T) -> bool { return (!SMALLEST && a > b) || (SMALLEST && a < b); }
fn is_nan(v: T) -> bool { return IS_FLOAT && (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u; }

const NONE: u32 = 0xffffffffu;
struct Best { value: T, index: u32 }
var<workgroup> part_value: array<T, 256>;
var<workgroup> part_index: array<u32, 256>;

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

// The winner of two candidates; NONE loses to anything.
fn pick(a: Best, b: Best) -> Best {
  if (a.index == NONE) { return b; }
  if (b.index == NONE) { return a; }
  let a_nan = is_nan(a.value);
  let b_nan = is_nan(b.value);
  if (a_nan != b_nan) {
    if (a_nan) { return a; }
    return b;
  }
  if (!a_nan) {
    if (better(a.value, b.value)) { return a; }
    if (better(b.value, a.value)) { return b; }
  }
  if (b.index < a.index) { return b; }
  return a;
}

// The best of elements first, first + step, ... of output i.
fn search(i: u32, first: u32, step: u32) -> Best {
  let base = p.x_off + kept_offset(i);
  var start = 0u;
  var length = p.length;
  if (p.per_part > 0u) {
    start = i / p.per_part * length;
    length = min(length, p.whole - start);
  }
  var best = Best(T(0), NONE);
  for (var r = first; r < length; r += step) {
    let at = base + axis_offset(r);
    if (PAIRS_IN) {
      best = pick(best, Best(load_x(2u * at), x[2u * at + 1u]));
    } else {
      best = pick(best, Best(load_x(at), start + r));
    }
  }
  return best;
}

fn write(i: u32, best: Best) {
  if (PAIRS_OUT) {
    out[2u * i] = bitcast<u32>(best.value);
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
  part_value[t] = best.value;
  part_index[t] = best.index;
  workgroupBarrier();
  for (var half = 128u; half > 0u; half /= 2u) {
    if (t < half) {
      best = pick(best, Best(part_value[t + half], part_index[t + half]));
      part_value[t] = best.value;
      part_index[t] = best.index;
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
