// `a != b`, true where either is NaN even if the compiler assumes that there is none: it reads bits.
fn w_ne(a: f32, b: f32) -> bool {
    let nan_a = (bitcast<u32>(a) & 0x7fffffffu) > 0x7f800000u;
    let nan_b = (bitcast<u32>(b) & 0x7fffffffu) > 0x7f800000u;
    return (a != b) | nan_a | nan_b;
}
