// Discrete Fourier transforms of lines of N complex numbers, a power of two up to 2048, by Stockham's
// passes of radix 4 (W. T. Cochran et al., Proc. IEEE 55, 1967): each reads in the order of the numbers and
// writes in that of the next pass, so that nothing is permuted. The inverse is the transform between two
// conjugations.
//
// bindings: x, table, out, p. grid: one workgroup of 256 threads per 2048 numbers, which are those of as many
// lines as they fill. A number is two floats.
// table: the twiddle factors exp(-2 pi i t / 2048) for t < 2048, and behind them exp(-2 pi i t / n) for a
// line of n numbers that is transformed in two launches: the first multiplies element k of line m by
// exp(-2 pi i m k / n).
struct Params {
  lines: u32, middle: u32, inner: u32,
  x_outer: u32, x_middle: u32, x_inner: u32, x_step: u32,
  out_outer: u32, out_middle: u32, out_inner: u32, out_step: u32,
  scale: f32,
}
@group(0) @binding(0) var<storage, read> x: array<vec2<f32>>;
@group(0) @binding(1) var<storage, read> table: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> out: array<vec2<f32>>;
@group(0) @binding(3) var<uniform> p: Params;

//@ const BITS
const BITS: u32 = 11u; // N = 1 << BITS
//@ const WHOLE
const WHOLE: u32 = 0u; // n = 1 << WHOLE of two launches; 0 for one
//@ const INVERSE
const INVERSE: bool = false;
//@ const ACROSS_X
const ACROSS_X: bool = false; // whether neighbours in x are of different lines
//@ const ACROSS_OUT
const ACROSS_OUT: bool = false;

const LINES: u32 = 2048u >> BITS; // of a workgroup
var<workgroup> points: array<vec2<f32>, 2048>;

fn product(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
  return vec2<f32>(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// Where number e of a workgroup stands in `points`, by lines.
fn place(e: u32, across: bool) -> u32 {
  if (across) { return ((e % LINES) << BITS) | (e / LINES); }
  return e;
}

// The outer, middle and inner index of a line.
fn index_of(line: u32) -> vec3<u32> {
  let rest = line / p.inner;
  return vec3<u32>(rest / p.middle, rest % p.middle, line % p.inner);
}

// The numbers of a pass that this thread combines, of every `radix` places one: the first one's place.
fn first_of(b: u32, log_radix: u32) -> u32 {
  let log_quarter = BITS - log_radix;
  return ((b >> log_quarter) << BITS) | (b & ((1u << log_quarter) - 1u));
}

fn pass_of_two(t: u32) {
  var v: array<vec2<f32>, 8>;
  for (var i = 0u; i < 4u; i += 1u) {
    let at = first_of(t + 256u * i, 1u);
    v[2u * i] = points[at];
    v[2u * i + 1u] = points[at + ((1u << BITS) >> 1u)];
  }
  workgroupBarrier();
  for (var i = 0u; i < 4u; i += 1u) {
    let at = 2u * (t + 256u * i); // 2 j of its line
    points[at] = v[2u * i] + v[2u * i + 1u];
    points[at + 1u] = v[2u * i] - v[2u * i + 1u];
  }
  workgroupBarrier();
}

// The pass that makes transforms of 4 << log_done numbers of those of 1 << log_done.
fn pass_of_four(t: u32, log_done: u32) {
  let quarter = (1u << BITS) >> 2u;
  let done = 1u << log_done;
  var v: array<vec2<f32>, 8>;
  for (var i = 0u; i < 2u; i += 1u) {
    let at = first_of(t + 256u * i, 2u);
    let k = (at & (done - 1u)) << (9u - log_done);
    let a = points[at];
    let b = product(points[at + quarter], table[k]);
    let c = product(points[at + 2u * quarter], table[2u * k]);
    let d = product(points[at + 3u * quarter], table[3u * k]);
    let turned = vec2<f32>(b.y - d.y, d.x - b.x); // (b - d) / i
    v[4u * i] = (a + c) + (b + d);
    v[4u * i + 1u] = (a - c) + turned;
    v[4u * i + 2u] = (a + c) - (b + d);
    v[4u * i + 3u] = (a - c) - turned;
  }
  workgroupBarrier();
  for (var i = 0u; i < 2u; i += 1u) {
    let b = t + 256u * i;
    let j = b & (quarter - 1u);
    let k = j & (done - 1u);
    let at = ((b / max(quarter, 1u)) << BITS) + ((j - k) << 2u) + k;
    for (var r = 0u; r < 4u; r += 1u) { points[at + r * done] = v[4u * i + r]; }
  }
  workgroupBarrier();
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let first = (wid.x + groups.x * (wid.y + groups.y * wid.z)) * LINES;
  for (var i = 0u; i < 8u; i += 1u) {
    let at = place(t + 256u * i, ACROSS_X);
    let line = first + (at >> BITS);
    var v = vec2<f32>(0.0);
    if (line < p.lines) {
      let l = index_of(line);
      let k = at & ((1u << BITS) - 1u);
      v = x[l.x * p.x_outer + l.y * p.x_middle + l.z * p.x_inner + k * p.x_step];
    }
    points[at] = select(v, vec2<f32>(v.x, -v.y), INVERSE);
  }
  workgroupBarrier();
  if ((BITS & 1u) == 1u) { pass_of_two(t); }
  for (var done = BITS & 1u; done < BITS; done += 2u) { pass_of_four(t, done); }
  for (var i = 0u; i < 8u; i += 1u) {
    let at = place(t + 256u * i, ACROSS_OUT);
    let line = first + (at >> BITS);
    if (line >= p.lines) { continue; }
    let l = index_of(line);
    let k = at & ((1u << BITS) - 1u);
    var v = points[at];
    if (WHOLE > 0u) {
      let turn = l.y * k;
      v = product(v, product(table[2048u + (turn & 2047u)], table[(turn >> 11u) << (22u - WHOLE)]));
    }
    v = select(v, vec2<f32>(v.x, -v.y), INVERSE) * p.scale;
    out[l.x * p.out_outer + l.y * p.out_middle + l.z * p.out_inner + k * p.out_step] = v;
  }
}
