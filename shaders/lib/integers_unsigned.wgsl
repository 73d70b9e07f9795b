// The operations of uint32, as the trait `Integer` defines them.

fn literal(low: u32, high: u32) -> u32 { return low; }
fn is_true(x: u32) -> bool { return x != 0u; }
fn truth(x: bool) -> u32 { return u32(x); }
fn same(x: u32, y: u32) -> bool { return x == y; }
fn less(x: u32, y: u32) -> bool { return x < y; }
fn larger(x: u32, y: u32) -> u32 { return max(x, y); }
fn smaller(x: u32, y: u32) -> u32 { return min(x, y); }
fn plus(x: u32, y: u32) -> u32 { return x + y; }
fn minus(x: u32, y: u32) -> u32 { return x - y; }
fn times(x: u32, y: u32) -> u32 { return x * y; }
fn int_abs(x: u32) -> u32 { return x; }
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
