// The next number after x in the direction of y, by the bits of both: NaN where either is. The host names the
// function of a dtype `op`, with the parts of `to_f16` and `to_bf16` that it needs.
//@ use to_f16
//@ use to_bf16
fn next_bits(a: u32, b: u32, sign: u32, infinity: u32) -> u32 {
  let size_a = a & (sign - 1u);
  let size_b = b & (sign - 1u);
  if (size_a > infinity) { return a; }
  if (size_b > infinity || a == b || (size_a | size_b) == 0u) { return b; }
  if (size_a == 0u) { return (b & sign) | 1u; }
  // Away from 0 if b has the same sign and a larger magnitude.
  return select(a - 1u, a + 1u, ((a ^ b) & sign) == 0u && size_b > size_a);
}
fn next_f32(x: f32, y: f32) -> f32 {
  return bitcast<f32>(next_bits(bitcast<u32>(x), bitcast<u32>(y), 0x80000000u, 0x7f800000u));
}
fn next_f16(x: f32, y: f32) -> f32 {
  return unpack2x16float(next_bits(to_f16(x), to_f16(y), 0x8000u, 0x7c00u)).x;
}
fn next_bf16(x: f32, y: f32) -> f32 {
  return bitcast<f32>(next_bits(to_bf16(x), to_bf16(y), 0x8000u, 0x7f80u) << 16u);
}
