// A chain of elementwise operations into dense outputs: y0[i], y1[i], ... = op(x0[i], x1[i], ...).
//
// bindings  0 x0 (read), ... one for each input, y0 (write), ... one for each output, params
// grid      ceil(count / 1024) workgroups; linear fold over x, y, z
// workgroup 256 threads, each making four adjacent elements; no workgroup memory
//
// The last four are written whole, what is past the end into the padding of the output.
//@ use chain
struct Params { chain: Chain, count: u32 }
//@ words y0
@group(0) @binding(1) var<storage, read_write> y0: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> p: Params;

alias T = f32;
//@ store4 y0
fn store4_y0(i: u32, v: vec4<T>) { y0[i >> 2u] = bitcast<vec4<u32>>(v); }

// Makes four elements from element i on.
fn make_four(i: u32) {
  if (i >= p.count) { return; }
  let o = outputs(min(i + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(p.count - 1u)));
  //@ lists y0
  store4_y0(i, vec4<T>(o[0].y0, o[1].y0, o[2].y0, o[3].y0));
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  make_four(group * 1024u + t * 4u);
}
