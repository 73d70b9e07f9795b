// `w_turns(x)` is `(r, n)` with `x = r + n * pi/2` and `|r| <= pi/4`.
//
// Small angles: `n` times pi/2 in pieces of 11 bits (Cody and Waite), whose products are exact and are hidden
// from the compiler by clearing a bit that is 0 anyway, so that it cannot gather the pieces. Large ones: the
// bits of 2/pi that matter, times the mantissa, in fixed point (Payne and Hanek): 2 bits before the point, 62
// behind.
fn w_mulhi(a: u32, b: u32) -> u32 {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let cross = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
    let other = (a & 0xffffu) * (b >> 16u) + (cross & 0xffffu);
    return (a >> 16u) * (b >> 16u) + (cross >> 16u) + (other >> 16u);
}
fn w_pin(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) & 0xfffffffeu);
}
fn w_turns(x: f32) -> vec2<f32> {
    let bits = bitcast<u32>(x);
    if (abs(x) < 3000.0) {
        let n = round(x * 0.63661977f);
        let r = ((x - w_pin(n * 1.5703125f)) - w_pin(n * 0.00048351288f)) - w_pin(n * 3.138557e-7f);
        return vec2<f32>(r - n * 6.0771005e-11f, n);
    }
    let exponent = (bits >> 23u) & 0xffu;
    if (exponent == 0xffu) {
        return vec2<f32>(bitcast<f32>(bits | 0x7fc00000u), 0.0);
    }
    var table = array<u32, 8>(
        0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu
    );
    let mantissa = (bits & 0x7fffffu) | 0x800000u;
    let first = exponent - 120u;
    let word = first >> 5u;
    let left = first & 31u;
    // A shift by 32 is not defined, so the right shift is done in two steps.
    let right = 31u - left;
    let top = (table[word] << left) | ((table[word + 1u] >> 1u) >> right);
    let middle = (table[word + 1u] << left) | ((table[word + 2u] >> 1u) >> right);
    let bottom = (table[word + 2u] << left) | ((table[word + 3u] >> 1u) >> right);
    var low = mantissa * middle;
    let carried = low + w_mulhi(mantissa, bottom);
    var high = mantissa * top + w_mulhi(mantissa, middle) + select(0u, 1u, carried < low);
    low = carried;
    let n = (high + 0x20000000u) >> 30u;
    high -= n << 30u;
    let below = (high & 0x80000000u) != 0u;
    if (below) {
        low = ~low + 1u;
        high = ~high + select(0u, 1u, low == 0u);
    }
    let turn = (f32(high) * 9.3132257e-10f + f32(low) * 2.1684043e-19f) * 1.5707964f;
    let minus = (bits & 0x80000000u) != 0u;
    return vec2<f32>(select(turn, -turn, below != minus), select(f32(n), -f32(n), minus));
}
