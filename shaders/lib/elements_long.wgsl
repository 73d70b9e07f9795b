// The lines of `elements` for arithmetic of two words (`long`): how integers of two words lie in memory, and
// how those and numbers of other dtypes become each other. Fours of elements are taken one by one.
//@ use to_f16
//@ use to_bf16
//@ use long
const SIGNED: bool = true;
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;

alias T = vec2<u32>;
//@ load i64
fn load_i64(i: u32) -> T { return T(x[2u * i], x[2u * i + 1u]); }
//@ load u64
fn load_u64(i: u32) -> T { return T(x[2u * i], x[2u * i + 1u]); }
//@ load i32
fn load_i32(i: u32) -> T { return T(x[i], 0u - (x[i] >> 31u)); }
//@ load u32
fn load_u32(i: u32) -> T { return T(x[i], 0u); }
//@ load f32
fn load_f32(i: u32) -> T { return long_of(bitcast<f32>(x[i])); }
//@ load f16
fn load_f16(i: u32) -> T { return long_of(unpack2x16float((x[i >> 1u] >> ((i & 1u) << 4u)) & 0xffffu).x); }
//@ load bf16
fn load_bf16(i: u32) -> T { return long_of(bitcast<f32>((x[i >> 1u] >> ((i & 1u) << 4u)) << 16u)); }
// Where one element stands for four.
//@ load4 one
fn load4_one(i: vec4<u32>) -> Four { return four_of(load_one(i.x)); }
fn load_one(i: u32) -> T { return load_i64(i); }

//@ store i64
fn store_i64(w: u32, v: Two) { out[2u * w] = v.x.x; out[2u * w + 1u] = v.x.y; }
//@ store u64
fn store_u64(w: u32, v: Two) { out[2u * w] = v.x.x; out[2u * w + 1u] = v.x.y; }
//@ store i32
fn store_i32(w: u32, v: Two) { out[w] = v.x.x; }
//@ store u32
fn store_u32(w: u32, v: Two) { out[w] = v.x.x; }
//@ store u8
fn store_u8(w: u32, v: Two) { out[w] = v.x.x & 0xffu; }
//@ store u16
fn store_u16(w: u32, v: Two) { out[w] = v.x.x & 0xffffu; }
//@ store i8
fn store_i8(w: u32, v: Two) { out[w] = bitcast<u32>(bitcast<i32>(v.x.x << 24u) >> 24u); }
//@ store i16
fn store_i16(w: u32, v: Two) { out[w] = bitcast<u32>(bitcast<i32>(v.x.x << 16u) >> 16u); }
//@ store bool
fn store_bool(w: u32, v: Two) { out[w] = u32(is_true(v.x)); }
//@ store f32
fn store_f32(w: u32, v: Two) { out[w] = bitcast<u32>(float_of(v.x, false)); }
// Rounded to odd digits first, so that the second rounding is the only one.
//@ store f16
fn store_f16(w: u32, v: Two) { out[w] = to_f16(rounded(v.x)) | (to_f16(rounded(v.y)) << 16u); }
//@ store bf16
fn store_bf16(w: u32, v: Two) { out[w] = to_bf16(rounded(v.x)) | (to_bf16(rounded(v.y)) << 16u); }
//@ store4 words
fn store4_words(i: u32, v: Four) { for (var k = 0u; k < 4u; k += 1u) { store_words(i + k, pick(v, k)); } }
//@ store4 pairs
fn store4_pairs(i: u32, v: Four) { store_pairs(i / 2u, pick(v, 0u)); store_pairs(i / 2u + 1u, pick(v, 2u)); }
fn store_words(w: u32, v: Two) { store_i64(w, v); }
fn store_pairs(w: u32, v: Two) { store_f16(w, v); }
