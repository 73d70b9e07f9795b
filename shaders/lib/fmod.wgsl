// `w_fmod(x, y)` is the remainder of `x / y` with the sign of `x`, exactly: long division of the mantissas,
// one bit at a time, which needs neither a fused multiply-add nor a quotient that a float holds.
fn w_mantissa(bits: u32) -> vec2<u32> {
    let exponent = (bits >> 23u) & 0xffu;
    let rest = bits & 0x7fffffu;
    if (exponent > 0u) { return vec2<u32>(rest | 0x800000u, exponent + 32u); }
    let shift = countLeadingZeros(rest) - 8u;
    return vec2<u32>(rest << shift, 33u - shift);
}
fn w_fmod(x: f32, y: f32) -> f32 {
    let a = bitcast<u32>(x) & 0x7fffffffu;
    let b = bitcast<u32>(y) & 0x7fffffffu;
    let sign = bitcast<u32>(x) & 0x80000000u;
    if (a >= 0x7f800000u || b > 0x7f800000u || b == 0u) { return bitcast<f32>(a | b | 0x7fc00000u); }
    if (a < b) { return x; }
    let top = w_mantissa(a);
    let low = w_mantissa(b);
    var rest = top.x;
    for (var e = top.y; e > low.y; e -= 1u) {
        if (rest >= low.x) { rest -= low.x; }
        rest <<= 1u;
    }
    if (rest >= low.x) { rest -= low.x; }
    if (rest == 0u) { return bitcast<f32>(sign); }
    let shift = countLeadingZeros(rest) - 8u;
    rest <<= shift;
    if (low.y > shift + 32u) {
        return bitcast<f32>(sign | ((low.y - shift - 32u) << 23u) | (rest & 0x7fffffu));
    }
    return bitcast<f32>(sign | (rest >> (shift + 33u - low.y)));
}
