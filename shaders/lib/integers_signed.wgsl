// The operations of int32, as the trait `Integer` defines them.

fn literal(low: u32, high: u32) -> i32 { return bitcast<i32>(low); }
fn is_true(x: i32) -> bool { return x != 0; }
fn truth(x: bool) -> i32 { return i32(x); }
fn same(x: i32, y: i32) -> bool { return x == y; }
fn less(x: i32, y: i32) -> bool { return x < y; }
fn larger(x: i32, y: i32) -> i32 { return max(x, y); }
fn smaller(x: i32, y: i32) -> i32 { return min(x, y); }
fn plus(x: i32, y: i32) -> i32 { return x + y; }
fn minus(x: i32, y: i32) -> i32 { return x - y; }
fn times(x: i32, y: i32) -> i32 { return x * y; }
fn int_abs(x: i32) -> i32 { return abs(x); }
fn int_sign(x: i32) -> i32 { return sign(x); }
fn floor_div(x: i32, y: i32) -> i32 {
  if (y == 0) { return 0; }
  if (y == -1) { return 0 - x; }
  let q = x / y;
  return select(q, q - 1, q * y != x && (x < 0) != (y < 0));
}
fn remainder(x: i32, y: i32) -> i32 {
  if (y == 0 || y == -1) { return 0; }
  return x - floor_div(x, y) * y;
}
fn int_fmod(x: i32, y: i32) -> i32 {
  if (y == 0 || y == -1) { return 0; }
  return x % y;
}
fn int_shl(x: i32, n: i32) -> i32 {
  if (n < 0 || n > 31) { return 0; }
  return x << u32(n);
}
fn int_shr(x: i32, n: i32) -> i32 {
  if (n < 0 || n > 31) { return x >> 31u; }
  return x >> u32(n);
}
fn int_gcd(x: i32, y: i32) -> i32 {
  var a = x;
  var b = y;
  while (b != 0) {
    let rest = int_fmod(a, b);
    a = b;
    b = rest;
  }
  return select(a, 0 - a, a < 0);
}
fn int_pow(x: i32, n: i32) -> i32 {
  if (n < 0) {
    if (x == 1) { return 1; }
    if (x == -1) { return select(-1, 1, (n & 1) == 0); }
    return 0;
  }
  var result = 1;
  var base = x;
  for (var rest = n; rest > 0; rest >>= 1u) {
    if ((rest & 1) == 1) { result *= base; }
    base *= base;
  }
  return result;
}
