// Products and sums with what they lose to rounding, for long chains of them. A file with the line `//@ use
// products` stands behind this text. A number is a pair: its value, and a correction that is far smaller.
//
// `zero` is a 0 that compilers do not know to be one: they may rewrite (v + e) - v as e, which is what is not
// wanted here.

// The same number, of which a compiler knows nothing.
fn opaque_(v: f32, zero: u32) -> f32 { return bitcast<f32>(bitcast<u32>(v) ^ zero); }

// Whether a number is infinite or none at all: then there is nothing to correct.
fn beyond(v: f32) -> bool { return (bitcast<u32>(v) & 0x7f800000u) == 0x7f800000u; }

// The upper half of the digits; products of halves are exact.
fn head(v: f32) -> f32 { return bitcast<f32>(bitcast<u32>(v) & 0xfffff000u); }

// a * b minus p, its rounded value (T. J. Dekker 1971).
fn lost(a: f32, b: f32, p: f32) -> f32 {
  let a1 = head(a);
  let b1 = head(b);
  let a2 = a - a1;
  let b2 = b - b1;
  return ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2;
}

// The pair of a value and a correction that may be large.
fn paired(v: f32, correction: f32, zero: u32) -> vec2<f32> {
  let e = select(correction, 0.0, beyond(v));
  let s = opaque_(v + e, zero);
  return vec2<f32>(s, select(e - (s - v), 0.0, beyond(s)));
}

// The product of two pairs.
fn product(a: vec2<f32>, b: vec2<f32>, zero: u32) -> vec2<f32> {
  let p = opaque_(a.x * b.x, zero);
  return paired(p, lost(a.x, b.x, p) + (a.x * b.y + a.y * b.x), zero);
}

// d times a pair, plus x (the sum as D. E. Knuth has it).
fn product_plus(d: f32, a: vec2<f32>, x: f32, zero: u32) -> vec2<f32> {
  let p = opaque_(d * a.x, zero);
  let s = opaque_(p + x, zero);
  let v = opaque_(s - p, zero);
  return paired(s, ((p - (s - v)) + (x - v)) + (lost(d, a.x, p) + d * a.y), zero);
}
