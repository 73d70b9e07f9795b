// float32 to bfloat16 bits, to nearest, ties to even; a NaN stays one.
fn to_bf16(v: f32) -> u32 {
  let b = bitcast<u32>(v);
  let rounded = (b + 0x7fffu + ((b >> 16u) & 1u)) >> 16u;
  return select(rounded, (b >> 16u) | 0x40u, (b & 0x7fffffffu) > 0x7f800000u);
}
fn four_to_bf16(v: vec4<f32>) -> vec2<u32> {
  return vec2<u32>(to_bf16(v.x) | (to_bf16(v.y) << 16u), to_bf16(v.z) | (to_bf16(v.w) << 16u));
}
fn four_of_bf16(w: vec2<u32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(vec4<u32>(w.x << 16u, w.x & 0xffff0000u, w.y << 16u, w.y & 0xffff0000u));
}
