// Products of float16 where shaders have that type: the lines that the host puts in the place of those of
// `tile` that `halves` marks, and for bindings of halves under their names. Operands are of type S there.
enable f16;
@group(0) @binding(0) var<storage, read> x: array<f16>;
@group(0) @binding(1) var<storage, read> h: array<vec4<f16>>;

//@ halves S
alias S = f16;
//@ load f16
fn load_f16(i: u32) -> S { return x[i]; }
//@ load4 f16
fn load4_f16(i: vec4<u32>) -> vec4<S> { return h[i.x >> 2u]; }
// One element of a binding by fours.
//@ load any
fn load_any(i: u32) -> S { return load4_any(vec4<u32>(i))[i & 3u]; }
//@ halves put
var<workgroup> sums: array<vec4<T>, BLOCKS_A>; fn put_sum(i: u32, v: vec4<T>) { sums[i] = v; }
//@ halves sum
fn sum_at(i: u32) -> vec4<T> { return sums[i]; }
