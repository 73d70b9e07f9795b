// Elements by fours: how four adjacent ones of each dtype, of which the first is a multiple of four, lie in a
// vector of words. As in `elements`, the host copies the line of a dtype into a kernel under the name of a
// binding; `h` and `o` are those of halves.
//@ use to_f16
//@ use to_bf16
//@ use whole
@group(0) @binding(0) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> h: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> out: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> o: array<vec2<u32>>;

//@ alias T
alias T = f32;
//@ load4 f32
fn load4_f32(i: vec4<u32>) -> vec4<T> { return vec4<T>(bitcast<vec4<f32>>(x[i.x >> 2u])); }
//@ load4 i32
fn load4_i32(i: vec4<u32>) -> vec4<T> { return vec4<T>(bitcast<vec4<i32>>(x[i.x >> 2u])); }
//@ load4 u32
fn load4_u32(i: vec4<u32>) -> vec4<T> { return vec4<T>(x[i.x >> 2u]); }
//@ load4 bool
fn load4_bool(i: vec4<u32>) -> vec4<T> { return vec4<T>(x[i.x >> 2u]); }
//@ load4 f16
fn load4_f16(i: vec4<u32>) -> vec4<T> { return vec4<T>(four_of_f16(h[i.x >> 2u])); }
//@ load4 bf16
fn load4_bf16(i: vec4<u32>) -> vec4<T> { return vec4<T>(four_of_bf16(h[i.x >> 2u])); }
//@ load4 u8
fn load4_u8(i: vec4<u32>) -> vec4<T> { return vec4<T>(x[i.x >> 2u]); }
//@ load4 u16
fn load4_u16(i: vec4<u32>) -> vec4<T> { return vec4<T>(x[i.x >> 2u]); }
//@ load4 i8
fn load4_i8(i: vec4<u32>) -> vec4<T> { return vec4<T>(bitcast<vec4<i32>>(x[i.x >> 2u])); }
//@ load4 i16
fn load4_i16(i: vec4<u32>) -> vec4<T> { return vec4<T>(bitcast<vec4<i32>>(x[i.x >> 2u])); }
// The bits of halves, to be copied; the store drops what stands above them.
//@ load4 half
fn load4_half(i: vec4<u32>) -> vec4<T> { return vec4<T>(h[i.x >> 2u].xxyy >> vec4u(0u, 16u, 0u, 16u)); }
// Where one element stands for four.
//@ load4 one
fn load4_one(i: vec4<u32>) -> vec4<T> { return vec4<T>(load_one(i.x)); }
// One element of a binding by fours.
//@ load any
fn load_any(i: u32) -> T { return load4_any(vec4<u32>(i))[i & 3u]; }
// The same of an output; where four are stored, it is not called.
//@ store any
fn store_any(w: u32, v: vec2<T>) { store4_any(w, v.xyxy); }
fn store4_any(i: u32, v: vec4<T>) { store4_f32(i, v); }
fn load4_any(i: vec4<u32>) -> vec4<T> { return load4_f32(i); }
fn load_one(i: u32) -> T { return load_any(i); }

//@ store4 f32
fn store4_f32(i: u32, v: vec4<T>) { out[i >> 2u] = bitcast<vec4<u32>>(vec4<f32>(v)); }
//@ store4 i32
fn store4_i32(i: u32, v: vec4<T>) { out[i >> 2u] = bitcast<vec4<u32>>(vec4<i32>(v)); }
// Floats.
//@ store4 whole
fn store4_whole(i: u32, v: vec4<T>) { out[i >> 2u] = four_whole(vec4<f32>(v)); }
// Negative numbers wrap, as on the CPU.
//@ store4 u32
fn store4_u32(i: u32, v: vec4<T>) { out[i >> 2u] = select(vec4u(v), vec4u(vec4i(v)), v < vec4<T>()); }
//@ store4 bool
fn store4_bool(i: u32, v: vec4<T>) { out[i >> 2u] = vec4<u32>(v != vec4<T>()); }
// A float is tested by its bits: float comparisons may assume that there is no NaN.
//@ store4 truth
fn store4_truth(i: u32, v: vec4<T>) { out[i >> 2u] = vec4u(vec4<bool>(bitcast<vec4u>(v) << vec4u(1u))); }
//@ store4 f16
fn store4_f16(i: u32, v: vec4<T>) { o[i >> 2u] = four_to_f16(vec4<f32>(v)); }
//@ store4 bf16
fn store4_bf16(i: u32, v: vec4<T>) { o[i >> 2u] = four_to_bf16(vec4<f32>(v)); }
//@ store4 u8
fn store4_u8(i: u32, v: vec4<T>) { out[i >> 2u] = vec4u(v) & vec4u(0xffu); }
//@ store4 u16
fn store4_u16(i: u32, v: vec4<T>) { out[i >> 2u] = vec4u(v) & vec4u(0xffffu); }
//@ store4 i8
fn store4_i8(i: u32, v: vec4<T>) { out[i >> 2u] = bitcast<vec4u>((vec4i(v) << vec4(24u)) >> vec4(24u)); }
//@ store4 i16
fn store4_i16(i: u32, v: vec4<T>) { out[i >> 2u] = bitcast<vec4u>((vec4i(v) << vec4(16u)) >> vec4(16u)); }
//@ store4 half
fn store4_half(i: u32, v: vec4<T>) { o[i >> 2u] = (vec2u(v.xz) & vec2(65535u)) | (vec2u(v.yw) << vec2(16u)); }
