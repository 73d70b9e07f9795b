// How the elements of each dtype lie in 32-bit words. The host copies the line of a dtype into a kernel
// under the name of a binding: `load_f16` of `x` becomes `load_w` of `w`. T is the type of the arithmetic.
//@ use to_f16
//@ use to_bf16
//@ use whole
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;

//@ alias T
alias T = f32;
//@ load f32
fn load_f32(i: u32) -> T { return T(bitcast<f32>(x[i])); }
//@ load i32
fn load_i32(i: u32) -> T { return T(bitcast<i32>(x[i])); }
//@ load u32
fn load_u32(i: u32) -> T { return T(x[i]); }
//@ load bool
fn load_bool(i: u32) -> T { return T(x[i]); }
//@ load f16
fn load_f16(i: u32) -> T { return T(unpack2x16float((x[i >> 1u] >> ((i & 1u) << 4u)) & 0xffffu).x); }
//@ load bf16
fn load_bf16(i: u32) -> T { return T(bitcast<f32>(((x[i >> 1u] >> ((i & 1u) << 4u)) & 0xffffu) << 16u)); }
//@ load u8
fn load_u8(i: u32) -> T { return T(x[i]); }
//@ load u16
fn load_u16(i: u32) -> T { return T(x[i]); }
//@ load i8
fn load_i8(i: u32) -> T { return T(bitcast<i32>(x[i])); }
//@ load i16
fn load_i16(i: u32) -> T { return T(bitcast<i32>(x[i])); }
// The bits of a half, to be copied.
//@ load half
fn load_half(i: u32) -> T { return T((x[i >> 1u] >> ((i & 1u) << 4u)) & 0xffffu); }

//@ store f32
fn store_f32(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(f32(v.x)); }
//@ store i32
fn store_i32(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(i32(v.x)); }
// A float.
//@ store whole
fn store_whole(w: u32, v: vec2<T>) { out[w] = whole(f32(v.x)); }
// Negative numbers wrap, as on the CPU.
//@ store u32
fn store_u32(w: u32, v: vec2<T>) { out[w] = select(u32(v.x), bitcast<u32>(i32(v.x)), v.x < T(0)); }
//@ store bool
fn store_bool(w: u32, v: vec2<T>) { out[w] = u32(v.x != T(0)); }
// A float is tested by its bits: float comparisons may assume that there is no NaN.
//@ store truth
fn store_truth(w: u32, v: vec2<T>) { out[w] = u32((bitcast<u32>(v.x) & 0x7fffffffu) != 0u); }
//@ store f16
fn store_f16(w: u32, v: vec2<T>) { out[w] = to_f16(f32(v.x)) | (to_f16(f32(v.y)) << 16u); }
//@ store bf16
fn store_bf16(w: u32, v: vec2<T>) { out[w] = to_bf16(f32(v.x)) | (to_bf16(f32(v.y)) << 16u); }
//@ store half
fn store_half(w: u32, v: vec2<T>) { out[w] = u32(v.x) | (u32(v.y) << 16u); }
// A narrow integer is a word in its range.
//@ store u8
fn store_u8(w: u32, v: vec2<T>) { out[w] = u32(v.x) & 0xffu; }
//@ store u16
fn store_u16(w: u32, v: vec2<T>) { out[w] = u32(v.x) & 0xffffu; }
//@ store i8
fn store_i8(w: u32, v: vec2<T>) { out[w] = bitcast<u32>((i32(v.x) << 24u) >> 24u); }
//@ store i16
fn store_i16(w: u32, v: vec2<T>) { out[w] = bitcast<u32>((i32(v.x) << 16u) >> 16u); }
