// Sign, division, power, shifts and common divisor of uint32, as the trait `Integer` defines them.

fn int_sign(x: u32) -> u32 { return min(x, 1u); }
fn floor_div(x: u32, y: u32) -> u32 {
  if (y == 0u) { return 0u; }
  return x / y;
}
fn remainder(x: u32, y: u32) -> u32 {
  if (y == 0u) { return 0u; }
  return x % y;
}
fn int_fmod(x: u32, y: u32) -> u32 { return remainder(x, y); }
fn int_shl(x: u32, n: u32) -> u32 { return select(0u, x << (n & 31u), n < 32u); }
fn int_shr(x: u32, n: u32) -> u32 { return select(0u, x >> (n & 31u), n < 32u); }
fn int_gcd(x: u32, y: u32) -> u32 {
  var a = x;
  var b = y;
  for (; b != 0u; ) {
    let rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}
fn int_pow(x: u32, n: u32) -> u32 {
  var result = 1u;
  var base = x;
  for (var rest = n; rest > 0u; rest >>= 1u) {
    if ((rest & 1u) == 1u) { result *= base; }
    base *= base;
  }
  return result;
}
