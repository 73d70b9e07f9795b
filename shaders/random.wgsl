// Random numbers from Philox4x32-10 (Salmon, Moraes, Dror and Shaw 2011), a counter-based generator: element
// i depends only on the seed, the offset and i, so the CPU, any GPU and any batching give the same stream.
//
// bindings  0 out (write), 1 params
// entries   draw_bits: raw u32 words
//           draw_uniform: low + scale * u, u in [0, 1)
//           draw_normal: low + scale * z
//           draw_randint: i32, low + the upper word of bits * span
// grid      ceil(count / 1024) workgroups; linear fold over x, y, z
// workgroup 256 threads, each drawing one counter = four elements; no workgroup memory
//
// The counter of elements 4 j .. 4 j + 3 is (offset + j) in 64 bits, then stream in its upper 64 bits; the
// key is the 64-bit seed. u = (bits >> 8) * 2^-24. Normals come in pairs (Box and Muller): from lanes 0 and 1
// with u1 in (0, 1] and u2 in [0, 1), z = sqrt(-2 ln u1) * (cos, sin)(2 pi u2), and likewise from lanes 2 and
// 3. Bits and integers take one word per element. BELOW_ONE keeps 16-bit
// uniforms from being rounded up to 1.
//@ use philox
struct Params {
  count: u32, seed_low: u32, seed_high: u32, offset_low: u32, offset_high: u32,
  stream_low: u32, stream_high: u32,
  low: f32, scale: f32, int_low: i32, span: u32,
}
@group(0) @binding(0) var<storage, read_write> out: array<u32>;
@group(0) @binding(1) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ const DIGITS
const DIGITS: u32 = 24u; // of the mantissa of the output type
const BELOW_ONE: f32 = 1.0 - 1.0 / f32(1u << DIGITS); // its largest value below 1
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }
//@ fn log_
fn log_(x: f32) -> f32 { return log(x); }
//@ fn sin_
fn sin_(x: f32) -> f32 { return sin(x); }
//@ fn cos_
fn cos_(x: f32) -> f32 { return cos(x); }

// The four words of counter offset + j.
fn draw(j: u32) -> vec4<u32> {
  let low = p.offset_low + j;
  let high = p.offset_high + select(0u, 1u, low < j);
  return philox(vec4<u32>(low, high, p.stream_low, p.stream_high), vec2<u32>(p.seed_low, p.seed_high));
}

// Two independent normals from two words.
fn gauss(a: u32, b: u32) -> vec2<f32> {
  let r = sqrt(-2.0 * log_(f32((a >> 8u) + 1u) * 0x1p-24));
  let angle = f32(b >> 8u) * (6.2831853 * 0x1p-24);
  return r * vec2<f32>(cos_(angle), sin_(angle));
}

// Write four values at element i, word by word.
fn store4(i: u32, v: vec4<f32>) {
  let w = i / EPW;
  if (EPW == 1u) {
    store_out(w, vec2<T>(T(v.x)));
    if (i + 1u < p.count) { store_out(w + 1u, vec2<T>(T(v.y))); }
    if (i + 2u < p.count) { store_out(w + 2u, vec2<T>(T(v.z))); }
    if (i + 3u < p.count) { store_out(w + 3u, vec2<T>(T(v.w))); }
  } else {
    store_out(w, vec2<T>(v.xy));
    if (i + 2u < p.count) { store_out(w + 1u, vec2<T>(v.zw)); }
  }
}

// Write four whole words at element i.
fn store_words(i: u32, v: vec4<u32>) {
  out[i] = v.x;
  if (i + 1u < p.count) { out[i + 1u] = v.y; }
  if (i + 2u < p.count) { out[i + 2u] = v.z; }
  if (i + 3u < p.count) { out[i + 3u] = v.w; }
}

@compute @workgroup_size(256)
fn draw_bits(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let i = (group * 256u + t) * 4u;
  if (i >= p.count) { return; }
  let b = draw(i / 4u);
  store_words(i, b);
}

@compute @workgroup_size(256)
fn draw_uniform(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let i = (group * 256u + t) * 4u;
  if (i >= p.count) { return; }
  let b = draw(i / 4u);
  let u = min(vec4<f32>(b >> vec4<u32>(8u)) * 0x1p-24, vec4<f32>(BELOW_ONE));
  store4(i, p.low + p.scale * u);
}

@compute @workgroup_size(256)
fn draw_normal(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let i = (group * 256u + t) * 4u;
  if (i >= p.count) { return; }
  let b = draw(i / 4u);
  store4(i, p.low + p.scale * vec4<f32>(gauss(b.x, b.y), gauss(b.z, b.w)));
}

@compute @workgroup_size(256)
fn draw_randint(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  let i = (group * 256u + t) * 4u;
  if (i >= p.count) { return; }
  let b = draw(i / 4u);
  let k = vec4<u32>(
    multiply(b.x, p.span).y,
    multiply(b.y, p.span).y,
    multiply(b.z, p.span).y,
    multiply(b.w, p.span).y,
  );
  store_words(i, k + vec4<u32>(bitcast<u32>(p.int_low)));
}
