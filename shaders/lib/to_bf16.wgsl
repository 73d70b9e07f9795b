// float32 to bfloat16 bits, to nearest, ties to even; a NaN stays one.
fn to_bf16(v: f32) -> u32 {
  let b = bitcast<u32>(v);
  let rounded = (b + 0x7fffu + ((b >> 16u) & 1u)) >> 16u;
  return select(rounded, (b >> 16u) | 0x40u, (b & 0x7fffffffu) > 0x7f800000u);
}
