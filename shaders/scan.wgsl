// Inclusive scan along one axis: out[i] = x[0] combined with x[1] .. x[i] (cumulative sum or product).
//
// bindings  0 x (read), 1 out (write, one word per element), 2 blocks (`ends` writes, `tree` reads), 3 params
// entries   serial: one invocation per line (many lines); grid ceil(lines / 256)
//           tree: one workgroup per block of a line (few long lines), 1024 elements at a time; grid lines *
//           own
//           ends: before that, what each block comes to, where there are several; grid lines * own
//           linear fold over x, y, z
// workgroup 256 threads; 1 KiB of workgroup memory (tree), or 3 with PAIRED
//
// A line is one position on the other ("kept") axes, which have strides for x and for out; x_step and
// out_step are the strides on the scanned axis. A reversed scan, the VJP of a sum, has both steps negative
// and both offsets on the last element. 16-bit inputs give a 32-bit result, which map1 casts. A line has
// `count` blocks of `each` elements, the last what is left; `own` of them, from block `first` on, are in this
// launch, and `length` is that of what they have of a line: a tensor may take several. `blocks` may be any
// buffer where lines are not cut. The order is fixed by the lengths and the entry. FOLD selects what is
// combined. With PAIRED, for products of floats, a number is a pair of `lib/products.wgsl` times a power of
// two, so that digits and range suffice for long ones: those of parts may be far larger or smaller than those
// of the whole.
//@ use products
//@ use lines
struct Params {
  kept_shape: array<vec4<u32>, 2>, x_strides: array<vec4<u32>, 2>, out_strides: array<vec4<u32>, 2>,
  kept_ndim: u32, lines: u32, length: u32, x_off: u32, x_step: u32, out_off: u32, out_step: u32,
  count: u32, each: u32, first: u32, own: u32,
}
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@group(0) @binding(2) var<storage, read_write> blocks: array<A>;
@group(0) @binding(3) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }
//@ const FOLD
const FOLD: u32 = 0u; // 0 sum, 1 product
//@ const PAIRED
const PAIRED: bool = false;
// With PAIRED the number (x + y) * 2^e, x of 2 to 4 or 0, infinite or NaN; otherwise x.
struct A { x: T, y: f32, e: i32 }

//@ fn truth
fn truth(x: bool) -> T { return T(x); }
//@ fn plus
fn plus(a: T, b: T) -> T { return a + b; }
//@ fn times
fn times(a: T, b: T) -> T { return a * b; }
//@ fn as_float
fn as_float(x: T) -> f32 { return f32(x); }
//@ fn of_float
fn of_float(x: f32) -> T { return T(x); }

// A pair times 2^e.
fn scaled(v: vec2<f32>, e: i32) -> A {
  let own = (bitcast<u32>(v.x) >> 23u) & 255u;
  if (own == 0u || own == 255u) { return A(of_float(v.x), v.y, e); }
  let factor = bitcast<f32>((255u - own) << 23u);
  return A(of_float(v.x * factor), v.y * factor, clamp(e + i32(own) - 128, -0x10000000, 0x10000000));
}

fn alone(x: T) -> A {
  if (!PAIRED) { return A(x, 0.0, 0); }
  let v = as_float(x);
  // Subnormal numbers times 2^64.
  let is_tiny = abs(v) < 1.17549435e-38;
  return scaled(vec2<f32>(select(v, v * 18446744073709551616.0, is_tiny), 0.0), select(0, -64, is_tiny));
}

// 2^e.
fn power(e: i32) -> f32 { return bitcast<f32>(u32(e + 127) << 23u); }

fn value_of(a: A) -> T {
  if (!PAIRED) { return a.x; }
  let e = clamp(a.e, -252, 252);
  return of_float(as_float(a.x) * power(e / 2) * power(e - e / 2));
}

// What combines with every number to that number.
fn neutral() -> A { return alone(truth(FOLD == 1u)); }

fn combine(a: A, b: A) -> A {
  if (PAIRED) {
    let v = product(vec2<f32>(as_float(a.x), a.y), vec2<f32>(as_float(b.x), b.y), p.lines >> 31u);
    return scaled(v, a.e + b.e);
  }
  if (FOLD == 0u) { return A(plus(a.x, b.x), 0.0, 0); }
  return A(times(a.x, b.x), 0.0, 0);
}

var<workgroup> part: array<T, 256>;
var<workgroup> corrections: array<f32, 256>; // unused without PAIRED, as the next
var<workgroup> exponents: array<i32, 256>;

fn give(t: u32, a: A) {
  part[t] = a.x;
  if (PAIRED) {
    corrections[t] = a.y;
    exponents[t] = a.e;
  }
}

fn taken(t: u32) -> A {
  if (PAIRED) { return A(part[t], corrections[t], exponents[t]); }
  return A(part[t], 0.0, 0);
}

// What all threads have comes to.
fn all_of(mine: A, t: u32) -> A {
  give(t, mine);
  workgroupBarrier();
  for (var half = 128u; half > 0u; half /= 2u) {
    if (t < half) { give(t, combine(taken(t), taken(t + half))); }
    workgroupBarrier();
  }
  let found = taken(0u);
  workgroupBarrier();
  return found;
}

fn put(i: u32, a: A) {
  let v = value_of(a);
  store_out(i, vec2<T>(v, v));
}

@compute @workgroup_size(256)
fn serial(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let line = group * 256u + t;
  if (line >= p.lines) { return; }
  var at = line_at(line);
  var total = neutral();
  for (var i = 0u; i < p.length; i += 1u) {
    total = combine(total, alone(load_x(at.x)));
    put(at.y, total);
    at += vec2<u32>(p.x_step, p.out_step);
  }
}

// Element i of the line, or the neutral one from `end` on.
fn item(at: vec2<u32>, i: u32, end: u32) -> A {
  if (i < end) { return alone(load_x(at.x + i * p.x_step)); }
  return neutral();
}

// Writes element i of the line, if it is one before `end`.
fn put_item(at: vec2<u32>, i: u32, end: u32, a: A) {
  if (i < end) { put(at.y + i * p.out_step, a); }
}

@compute @workgroup_size(256)
fn ends(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group >= p.lines * p.own) { return; }
  let line = group / p.own;
  let block = group - line * p.own;
  let at = line_at(line);
  let end = min((block + 1u) * p.each, p.length);
  var mine = neutral();
  for (var i = block * p.each + t; i < end; i += 256u) { mine = combine(mine, item(at, i, end)); }
  let found = all_of(mine, t);
  if (t == 0u) { blocks[line * p.count + p.first + block] = found; }
}

@compute @workgroup_size(256)
fn tree(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group >= p.lines * p.own) { return; }
  let line = group / p.own;
  let block = group - line * p.own;
  let at = line_at(line);
  let end = min((block + 1u) * p.each, p.length);
  var carry = neutral();
  if (p.count > 1u) {
    for (var j = t; j < p.first + block; j += 256u) { carry = combine(carry, blocks[line * p.count + j]); }
    carry = all_of(carry, t);
  }
  for (var first = block * p.each; first < end; first += 1024u) {
    let i = first + t * 4u;
    let head_of_four = item(at, i, end);
    let second = combine(head_of_four, item(at, i + 1u, end));
    let third = combine(second, item(at, i + 2u, end));
    let fourth = combine(third, item(at, i + 3u, end));
    var mine = fourth;
    give(t, mine);
    workgroupBarrier();
    for (var step = 1u; step < 256u; step *= 2u) {
      if (t >= step) { mine = combine(taken(t - step), mine); }
      workgroupBarrier();
      give(t, mine);
      workgroupBarrier();
    }
    var before = carry;
    if (t > 0u) { before = combine(carry, taken(t - 1u)); }
    put_item(at, i, end, combine(before, head_of_four));
    put_item(at, i + 1u, end, combine(before, second));
    put_item(at, i + 2u, end, combine(before, third));
    put_item(at, i + 3u, end, combine(before, fourth));
    carry = combine(carry, taken(255u));
    workgroupBarrier();
  }
}
