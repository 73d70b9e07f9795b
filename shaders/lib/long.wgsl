// Integers of two words, the lower one first, with arithmetic of 32 bits: no portable adapter has wider. The
// functions are those that kernels and rules call for integers of one word (`integers_signed`), as the trait
// `Integer` defines them. The kernel declares SIGNED.

// Two and four numbers, for the vectors of numbers of one word.
struct Two { x: vec2<u32>, y: vec2<u32> }
struct Four { x: vec2<u32>, y: vec2<u32>, z: vec2<u32>, w: vec2<u32> }

fn four_of(v: vec2<u32>) -> Four { return Four(v, v, v, v); }
// Number k of four, and the next one.
fn pick(v: Four, k: u32) -> Two {
  switch k {
    case 0u: { return Two(v.x, v.y); }
    case 1u: { return Two(v.y, v.z); }
    case 2u: { return Two(v.z, v.w); }
    default: { return Two(v.w, v.w); }
  }
}

fn literal(low: u32, high: u32) -> vec2<u32> { return vec2<u32>(low, high); }
fn is_true(x: vec2<u32>) -> bool { return any(x != vec2<u32>()); }
fn truth(x: bool) -> vec2<u32> { return vec2<u32>(u32(x), 0u); }
fn is_negative(x: vec2<u32>) -> bool { return SIGNED && x.y > 0x7fffffffu; }
fn same(x: vec2<u32>, y: vec2<u32>) -> bool { return all(x == y); }
fn below(x: vec2<u32>, y: vec2<u32>) -> bool { return x.y < y.y || (x.y == y.y && x.x < y.x); }
fn less(x: vec2<u32>, y: vec2<u32>) -> bool {
  let turn = vec2<u32>(0u, select(0u, 0x80000000u, SIGNED));
  return below(x ^ turn, y ^ turn);
}
fn larger(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> { return select(x, y, less(x, y)); }
fn smaller(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> { return select(x, y, less(y, x)); }

fn plus(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  let low = x.x + y.x;
  return vec2<u32>(low, x.y + y.y + u32(low < x.x));
}
fn minus(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> { return vec2<u32>(x.x - y.x, x.y - y.y - u32(x.x < y.x)); }
fn negated(x: vec2<u32>) -> vec2<u32> { return minus(vec2<u32>(), x); }
fn int_abs(x: vec2<u32>) -> vec2<u32> { return select(x, negated(x), is_negative(x)); }
fn int_sign(x: vec2<u32>) -> vec2<u32> { return select(truth(is_true(x)), vec2<u32>(~0u), is_negative(x)); }

// The upper word of the product of two words is made of four products of halves.
fn times(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  let a = vec2<u32>(x.x & 0xffffu, x.x >> 16u);
  let b = vec2<u32>(y.x & 0xffffu, y.x >> 16u);
  let middle = a.y * b.x + ((a.x * b.x) >> 16u);
  let rest = a.x * b.y + (middle & 0xffffu);
  let upper = a.y * b.y + (middle >> 16u) + (rest >> 16u);
  return vec2<u32>(x.x * y.x, upper + x.x * y.y + x.y * y.x);
}

// Quotient and remainder without sign, bit by bit; the divisor is not zero.
fn divided(x: vec2<u32>, y: vec2<u32>) -> Two {
  if ((x.y | y.y) == 0u) { return Two(vec2<u32>(x.x / y.x, 0u), vec2<u32>(x.x % y.x, 0u)); }
  var bits = x;
  var rest = vec2<u32>();
  var quotient = vec2<u32>();
  for (var i = 0u; i < 64u; i += 1u) {
    let is_over = rest.y > 0x7fffffffu;
    rest = vec2<u32>((rest.x << 1u) | (bits.y >> 31u), (rest.y << 1u) | (rest.x >> 31u));
    bits = vec2<u32>(bits.x << 1u, (bits.y << 1u) | (bits.x >> 31u));
    quotient = vec2<u32>(quotient.x << 1u, (quotient.y << 1u) | (quotient.x >> 31u));
    if (is_over || !below(rest, y)) {
      rest = minus(rest, y);
      quotient.x |= 1u;
    }
  }
  return Two(quotient, rest);
}
fn floor_div(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  if (!is_true(y)) { return vec2<u32>(); }
  let both = divided(int_abs(x), int_abs(y));
  if (is_negative(x) == is_negative(y)) { return both.x; }
  return minus(negated(both.x), truth(is_true(both.y)));
}
fn remainder(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  if (!is_true(y)) { return vec2<u32>(); }
  return minus(x, times(floor_div(x, y), y));
}
fn int_fmod(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  if (!is_true(y)) { return vec2<u32>(); }
  let rest = divided(int_abs(x), int_abs(y)).y;
  return select(rest, negated(rest), is_negative(x));
}
fn int_gcd(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  var a = int_abs(x);
  var b = int_abs(y);
  while (is_true(b)) {
    let rest = divided(a, b).y;
    a = b;
    b = rest;
  }
  return a;
}
fn int_pow(x: vec2<u32>, n: vec2<u32>) -> vec2<u32> {
  let one = vec2<u32>(1u, 0u);
  var result = one;
  var base = x;
  var rest = n;
  if (is_negative(n)) {
    if (same(x, one)) { return one; }
    if (!same(x, vec2<u32>(~0u))) { return vec2<u32>(); }
    rest = vec2<u32>(n.x & 1u, 0u);
  }
  while (is_true(rest)) {
    if ((rest.x & 1u) == 1u) { result = times(result, base); }
    base = times(base, base);
    rest = vec2<u32>((rest.x >> 1u) | (rest.y << 31u), rest.y >> 1u);
  }
  return result;
}

fn int_shl(x: vec2<u32>, n: vec2<u32>) -> vec2<u32> {
  if (n.y != 0u || n.x > 63u) { return vec2<u32>(); }
  if (n.x > 31u) { return vec2<u32>(0u, x.x << (n.x & 31u)); }
  return vec2<u32>(x.x << n.x, (x.y << n.x) | ((x.x >> 1u) >> (31u - n.x)));
}
fn int_shr(x: vec2<u32>, n: vec2<u32>) -> vec2<u32> {
  let sign = select(0u, ~0u, is_negative(x));
  if (n.y != 0u || n.x > 63u) { return vec2<u32>(sign); }
  let upper = (x.y >> (n.x & 31u)) | ((sign << 1u) << (31u - (n.x & 31u)));
  if (n.x > 31u) { return vec2<u32>(upper, sign); }
  return vec2<u32>((x.x >> n.x) | ((x.y << 1u) << (31u - n.x)), upper);
}

// The nearest float, ties to even; `to_odd`: cut, with the last digit set where something was lost, so that
// fewer digits can be rounded from it.
fn float_of(x: vec2<u32>, to_odd: bool) -> f32 {
  if (!is_true(x)) { return 0.0; }
  let size = int_abs(x);
  let zeros = select(countLeadingZeros(size.y), 32u + countLeadingZeros(size.x), size.y == 0u);
  let bits = int_shl(size, vec2<u32>(zeros, 0u));
  let lost = (bits.y & 0xffu) | u32(bits.x != 0u);
  var digits = bits.y >> 8u;
  if (to_odd) {
    digits |= u32(lost != 0u);
  } else {
    digits += u32(lost + (digits & 1u) > 0x80u);
  }
  let v = f32(digits) * bitcast<f32>((167u - zeros) << 23u);
  return select(v, -v, is_negative(x));
}
fn rounded(x: vec2<u32>) -> f32 { return float_of(x, true); }

// The integer part of a float, or the nearest integer that there is; 0 for NaN. Negative numbers wrap where
// there are none.
fn long_of(v: f32) -> vec2<u32> {
  let b = bitcast<u32>(v);
  let exponent = (b >> 23u) & 0xffu;
  let is_below = b > 0x7fffffffu;
  if ((b & 0x7fffffffu) > 0x7f800000u || exponent < 127u) { return vec2<u32>(); }
  let digits = vec2<u32>((b & 0x7fffffu) | 0x800000u, 0u);
  var size = int_shl(digits, vec2<u32>(exponent - 150u, 0u));
  if (exponent < 150u) { size = vec2<u32>(digits.x >> (150u - exponent), 0u); }
  if (is_below || SIGNED) {
    if (exponent > 189u) { return select(vec2<u32>(~0u, 0x7fffffffu), vec2<u32>(0u, 0x80000000u), is_below); }
  } else if (exponent > 190u) {
    return vec2<u32>(~0u);
  }
  return select(size, negated(size), is_below);
}

// The neutral element whose upper word this is, or 1.
fn neutral_of(init: u32) -> vec2<u32> {
  return select(vec2<u32>(0u - (init & 1u), init), vec2<u32>(1u, 0u), init == 1u);
}
// What kernels do with floats alone.
fn is_nan(x: vec2<u32>) -> bool { return false; }
fn as_float(x: vec2<u32>) -> f32 { return 0.0; }
fn of_float(x: f32) -> vec2<u32> { return vec2<u32>(); }
