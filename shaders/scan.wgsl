// Inclusive scan along one axis: out[i] = x[0] combined with x[1] .. x[i] (cumulative sum or product).
//
// bindings  0 x (read), 1 out (write, one word per element), 2 params
// entries   serial: one invocation per line (many lines); grid ceil(lines / 256)
//           tree: one workgroup per line (few long lines), 1024 elements at a time; grid lines
//           linear fold over x, y, z
// workgroup 256 threads; 1 KiB of workgroup memory (tree), or 2 with PAIRED
//
// A line is one position on the other ("kept") axes, which have strides for x and for out; x_step and
// out_step are the strides on the scanned axis. A reversed scan, the VJP of a sum, has both steps negative
// and both offsets on the last element. 16-bit inputs give a 32-bit result, which map1 casts. The order is
// fixed by `length` and the entry. FOLD selects what is combined. With PAIRED, for long products of floats, a
// number is a pair of `lib/products.wgsl`; otherwise the second half of A is not used.
//@ use products
//@ use lines
struct Params {
  kept_shape: array<vec4<u32>, 2>, x_strides: array<vec4<u32>, 2>, out_strides: array<vec4<u32>, 2>,
  kept_ndim: u32, lines: u32, length: u32, x_off: u32, x_step: u32, out_off: u32, out_step: u32,
}
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@group(0) @binding(2) var<uniform> p: Params;

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
alias A = vec2<T>;

//@ fn truth
fn truth(x: bool) -> T { return T(x); }
//@ fn plus
fn plus(a: T, b: T) -> T { return a + b; }
//@ fn times
fn times(a: T, b: T) -> T { return a * b; }
//@ fn compensated
fn compensated(a: A, b: A) -> A { return A(product(vec2<f32>(a), vec2<f32>(b), p.lines >> 31u)); }

fn alone(x: T) -> A { return A(x, truth(false)); }
// What combines with every number to that number.
fn neutral() -> A { return alone(truth(FOLD == 1u)); }

fn combine(a: A, b: A) -> A {
  if (PAIRED) { return compensated(a, b); }
  if (FOLD == 0u) { return alone(plus(a.x, b.x)); }
  return alone(times(a.x, b.x));
}

var<workgroup> part: array<T, 256>;
var<workgroup> correction: array<T, 256>; // unused without PAIRED

fn give(t: u32, a: A) {
  part[t] = a.x;
  if (PAIRED) { correction[t] = a.y; }
}

fn taken(t: u32) -> A {
  if (PAIRED) { return A(part[t], correction[t]); }
  return alone(part[t]);
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
    store_out(at.y, total);
    at += vec2<u32>(p.x_step, p.out_step);
  }
}

// Element i of the line, or the neutral one past its end.
fn item(at: vec2<u32>, i: u32) -> A {
  if (i < p.length) { return alone(load_x(at.x + i * p.x_step)); }
  return neutral();
}

// Writes element i of the line, if there is one.
fn put(at: vec2<u32>, i: u32, a: A) {
  if (i < p.length) { store_out(at.y + i * p.out_step, a); }
}

@compute @workgroup_size(256)
fn tree(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group >= p.lines) { return; }
  let at = line_at(group);
  var carry = neutral();
  for (var first = 0u; first < p.length; first += 1024u) {
    let i = first + t * 4u;
    let head_of_four = item(at, i);
    let second = combine(head_of_four, item(at, i + 1u));
    let third = combine(second, item(at, i + 2u));
    let fourth = combine(third, item(at, i + 3u));
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
    put(at, i, combine(before, head_of_four));
    put(at, i + 1u, combine(before, second));
    put(at, i + 2u, combine(before, third));
    put(at, i + 3u, combine(before, fourth));
    carry = combine(carry, taken(255u));
    workgroupBarrier();
  }
}
