// Lines along an axis of x and of out: a line is one position on the other ("kept") axes. The file behind
// this one binds its parameters as `p`, with the lengths of these axes and their strides.

// Offsets of a line in x and in out.
fn line_at(line: u32) -> vec2<u32> {
  var rest = line;
  var at = vec2<u32>(p.x_off, p.out_off);
  for (var d = p.kept_ndim; d > 0u; d -= 1u) {
    let a = (d - 1u) >> 2u;
    let b = (d - 1u) & 3u;
    at += (rest % p.kept_shape[a][b]) * vec2<u32>(p.x_strides[a][b], p.out_strides[a][b]);
    rest /= p.kept_shape[a][b];
  }
  return at;
}
