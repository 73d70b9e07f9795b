// float32 to float16 bits, to nearest, ties to even, with subnormals, infinities and NaN. `pack2x16float`
// leaves the rounding to the driver. A subnormal result is the magnitude in units of 2^-24, rounded by the
// hardware's `round`.
fn to_f16(v: f32) -> u32 {
  let b = bitcast<u32>(v);
  let sign = (b >> 16u) & 0x8000u;
  let m = b & 0x7fffffffu;
  let normal = (m - 0x38000000u + 0xfffu + ((m >> 13u) & 1u)) >> 13u;
  let tiny = u32(round(min(bitcast<f32>(m), 0.0001) * 16777216.0));
  var h = select(min(normal, 0x7c00u), tiny, m < 0x38800000u);
  h = select(h, 0x7c00u, m >= 0x47800000u);
  h = select(h, 0x7e00u, m > 0x7f800000u);
  return sign | h;
}
fn four_to_f16(v: vec4<f32>) -> vec2<u32> {
  return vec2<u32>(to_f16(v.x) | (to_f16(v.y) << 16u), to_f16(v.z) | (to_f16(v.w) << 16u));
}
fn four_of_f16(w: vec2<u32>) -> vec4<f32> { return vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y)); }
