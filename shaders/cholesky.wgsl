// The lower triangular factor of positive definite matrices, in place: column by column, each one taken out
// of what is right of it as soon as it is there.
//
// bindings: out, info, p. grid: one workgroup of 256 threads per matrix. `info` holds 0, and gets the order
// of the first leading minor that is not positive; what is behind it means nothing then. The matrix is the
// block of `n` rows on the diagonal of one of `whole` that begins at row `start`.
struct Params { count: u32, n: u32, whole: u32, start: u32 }
@group(0) @binding(0) var<storage, read_write> out: array<f32>;
@group(0) @binding(1) var<storage, read_write> info: array<u32>;
@group(0) @binding(2) var<uniform> p: Params;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let matrix = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (matrix >= p.count) { return; }
  let a = matrix * p.whole * p.whole + p.start * (p.whole + 1u);
  var failed = 0u;
  for (var j = 0u; j < p.n; j += 1u) {
    let pivot = out[a + j * (p.whole + 1u)];
    let is_positive = pivot > 0.0 && (bitcast<u32>(pivot) & 0x7f800000u) != 0x7f800000u;
    failed = select(failed, j + 1u, failed == 0u && !is_positive);
    let root = sqrt(pivot);
    storageBarrier();
    for (var i = j + t; i < p.n; i += 256u) {
      let at = a + i * p.whole + j;
      out[at] = select(out[at] / root, root, i == j);
    }
    storageBarrier();
    let rest = p.n - j - 1u;
    for (var e = t; e < rest * rest; e += 256u) {
      let row = a + (j + 1u + e / rest) * p.whole;
      let column = j + 1u + e % rest;
      if (e % rest <= e / rest) {
        out[row + column] -= out[row + j] * out[a + column * p.whole + j];
      } else if (j == 0u) {
        out[row + column] = 0.0;
      }
    }
    for (var i = t; j == 0u && i + 1u < p.n; i += 256u) { out[a + i + 1u] = 0.0; }
    storageBarrier();
  }
  if (t == 0u && failed > 0u && info[matrix] == 0u) { info[matrix] = p.start + failed; }
}
