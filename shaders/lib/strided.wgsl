// A strided write, out[offset and strides of i] = x[offset and strides of i] for every index i of `shape`:
// its parameters, which the file behind it binds as `p`, and its places.
struct Params {
  shape: array<vec4<u32>, 2>, out_strides: array<vec4<u32>, 2>, x_strides: array<vec4<u32>, 2>,
  ndim: u32, count: u32, out_off: u32, x_off: u32,
}

// The place that element i is read from, and the one that it is written to.
fn places(i: u32) -> vec2<u32> {
  var rest = i;
  var at = vec2<u32>(p.x_off, p.out_off);
  for (var d = p.ndim; d > 0u; d -= 1u) {
    let a = (d - 1u) >> 2u;
    let b = (d - 1u) & 3u;
    let c = rest % p.shape[a][b];
    rest /= p.shape[a][b];
    at += c * vec2<u32>(p.x_strides[a][b], p.out_strides[a][b]);
  }
  return at;
}
