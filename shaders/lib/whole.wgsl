// The integer part of a float as the bits of an int32, or the nearest that there is; 0 for NaN.
fn whole(v: f32) -> u32 {
  let size = bitcast<u32>(v) & 0x7fffffffu;
  let end = select(0x7fffffffu, 0x80000000u, bitcast<u32>(v) > 0x7fffffffu);
  return select(select(bitcast<u32>(i32(v)), end, size > 0x4effffffu), 0u, size > 0x7f800000u);
}
fn four_whole(v: vec4<f32>) -> vec4<u32> { return vec4<u32>(whole(v.x), whole(v.y), whole(v.z), whole(v.w)); }
