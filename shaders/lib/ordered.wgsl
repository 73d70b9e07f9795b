// Whether neither `a` nor `b` is NaN, which their bits tell: a compiler may assume that there is none.
fn w_ordered(a: f32, b: f32) -> bool {
    let nan_a = (bitcast<u32>(a) & 0x7fffffffu) > 0x7f800000u;
    let nan_b = (bitcast<u32>(b) & 0x7fffffffu) > 0x7f800000u;
    return !(nan_a | nan_b);
}
